"""Trivial scores: exact, counted from the data, and as they are published."""

import csv
import json
import math
from pathlib import Path
from typing import Any

import committed
import numpy as np
import pytest
from notebook_code import definitions
from scipy.sparse import hstack
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.svm import LinearSVC
from statsmodels.stats.proportion import proportion_confint

from fpt.results.baselines import (
    FILE,
    LINEAR,
    MAJORITY,
    Score,
    baseline_scores,
    best_trivial,
    chance,
    counted,
    floor,
    known_scores,
    untouched_loss,
)
from fpt.tasks import TASKS, data_folder, intents, load
from fpt.tasks.task import FiniteSplit, Task

NOTEBOOK = definitions("notebooks/ladder.py")
INTENTS = ("banking77", "clinc150")


def test_bits_are_exact() -> None:
    assert baseline_scores("bit-memory") == {"chance": Score(0.5), "copy the visible bits": Score(0.75)}
    assert baseline_scores("bit-xor") == {"chance": Score(0.5)}


def test_copying_the_visible_bits_is_right_three_times_in_four() -> None:
    test = load("bit-memory").split(0).test
    visible, target = test.inputs[:, -1], test.targets
    right = ((visible > 0).long() == target)[visible != 0].double()
    assert right.mean() == 1
    assert abs((visible == 0).double().mean() - 0.5) < 0.01  # these are guessed


@pytest.mark.parametrize("task", ["digits", "digits-lra", "bit-xor", "bit-memory", "listops-short"])
def test_chance_is_that_of_the_classes_of_the_task(task: str, tmp_path: Path) -> None:
    options = {"train": 200, "heldout": 20} if task == "listops-short" else {}
    assert chance(task) == 1 / load(task, tmp_path, **options).classes


def test_only_data_of_ones_own_have_no_known_chance() -> None:
    assert all((entry.classes is None) == bool(entry.path) for entry in TASKS.values())
    assert known_scores("npz:PATH") == {}
    assert math.isnan(floor("npz:PATH"))


def test_the_interval_of_a_share_is_wilsons() -> None:
    low, high = Score(0.3, 200).interval
    assert (low, high) == pytest.approx(proportion_confint(60, 200, method="wilson"))
    centre, z = (low + high) / 2, 1.959964  # Wilson 1927: the interval's middle is drawn towards a half
    assert centre == pytest.approx((0.3 + z**2 / 400) / (1 + z**2 / 200), abs=1e-6)
    assert Score(0.75).interval == (0.75, 0.75)
    assert Score(1.0, 10_000).interval[1] == 1


# --- what is published


def published(*tasks: str) -> list[Any]:
    scores = counted()
    return list(scores[scores["task"].isin(tasks)].itertuples())


def test_the_file_says_what_computed_it_on_which_data() -> None:
    content = json.loads(FILE.read_text())
    assert {"version", "git", "versions", "computed_utc", "scores", "left", "losses", "suspicious"} == set(content)
    assert content["git"]["dirty"] is False
    for line in content["scores"] + content["left"]:
        assert set(line) == {"task", "variant", "options", "what", "share", "of", "train", "seeds", "data_checksum"}
        assert 0 <= line["share"] <= 1
        right = line["share"] * line["of"] * line["seeds"]
        assert math.isclose(right, round(right))
        small = line["task"].startswith("digits") or line["task"] in INTENTS
        assert line["of"] >= 10_000 or small or line["variant"] == "released"
        assert len(line["data_checksum"]) == 64
    for line in content["losses"]:
        assert set(line) == {"task", "backbone", "nats", "data_checksum"}
        assert {line["data_checksum"]} == {each.data_checksum for each in published(line["task"])}
    for line in content["suspicious"]:
        assert line["examples"] == sorted(set(line["examples"]))
        assert {line["data_checksum"]} == {each.data_checksum for each in published(line["task"])}


def test_every_task_of_both_papers_and_ours_has_a_score() -> None:
    for task in [
        name for name, entry in TASKS.items() if not entry.path and name != "homology"
    ]:  # the data of homology are not downloaded
        assert chance(task) <= floor(task) <= 0.75, task
    for task in ("digits", "digits-lra", "mnist", "cifar10", "cifar10-lra", *INTENTS):
        assert {"chance", MAJORITY, LINEAR} == set(known_scores(task)), task


def test_what_is_published_is_on_the_data_that_sweeps_recorded() -> None:
    recorded = set()
    for path in (each for each in committed.tracked() if each.match("runs/*/published/*/result.json")):
        result = json.loads(path.read_text())
        recorded.add((result["spec"]["task"], result["spec"]["variant"], result["data_checksum"]))
    known = {(line.task, line.variant): line.data_checksum for line in counted().itertuples() if not line.options}
    assert [each for each in recorded if known.get(each[:2], each[2]) != each[2]] == []
    assert {task for task, _, _ in recorded} & {task for task, _ in known}


WHOLE = [pytest.mark.data, pytest.mark.timeout(3600)]


@pytest.mark.parametrize(
    ("task", "tolerance"),  # an image of the 400 digits: libraries round differently
    [("digits", 0.0025), ("digits-lra", 0.0025)]
    + [pytest.param(task, 0.003, marks=WHOLE) for task in ("mnist", "cifar10", "cifar10-lra")],
)
def test_images_come_out_again(task: str, tolerance: float) -> None:
    """A logistic regression that ends with its iterations differs a little by machine; what is counted does not."""
    lines = {line.what: line for line in published(task)}
    assert set(lines) == {MAJORITY, LINEAR}
    assert {line.data_checksum for line in lines.values()} == {load(task).checksum}
    assert baseline_scores(task)[MAJORITY] == known_scores(task)[MAJORITY]
    assert NOTEBOOK.linear_score(load(task)).share == pytest.approx(lines[LINEAR].share, abs=tolerance)


def test_more_labels_make_a_better_linear_classifier() -> None:
    for task in INTENTS:
        shares = [known_scores(task, labels=labels)[LINEAR].share for labels in (10, 30, 0)]
        assert 0.7 < shares[0] < shares[1] < shares[2] < 0.95
        assert known_scores(task)[MAJORITY].share == pytest.approx(chance(task))  # a test class is as large as another


def independent_score(task: Task, seed: int) -> float:
    """The texts of the files, and the parts of the classifier one by one."""
    every = texts_in_files(task.name)
    split = task.split(seed)
    assert isinstance(split, FiniteSplit)
    train, test = [every[row] for row in split.rows.tolist()], every[-len(split.test) :]
    seen, asked = ([text for text, _ in part] for part in (train, test))
    x, x_test = [], []
    for how in ({"analyzer": "word", "ngram_range": (1, 2)}, {"analyzer": "char_wb", "ngram_range": (2, 5)}):
        weights = TfidfVectorizer(sublinear_tf=True, **how)
        x.append(weights.fit_transform(seen))
        x_test.append(weights.transform(asked))
    planes = LinearSVC(random_state=1).fit(hstack(x).tocsr(), [intent for _, intent in train])
    return float(planes.score(hstack(x_test).tocsr(), [intent for _, intent in test]))


def texts_in_files(task: str) -> list[tuple[str, str]]:
    """Texts and intents, those of the test part last."""
    if task == "clinc150":
        content = json.loads((data_folder() / intents.FULL).read_text())
        return [(text, intent) for part in ("train", "val", "test") for text, intent in content[part]]
    found = []
    for name in (intents.TRAIN, intents.TEST):
        with open(data_folder() / name, newline="", encoding="utf-8") as stream:
            found += [(row["text"], row["category"]) for row in csv.DictReader(stream)]
    return found


@pytest.mark.data
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("labels", [0, 10])
@pytest.mark.parametrize("name", INTENTS)
def test_a_program_of_its_own_finds_the_same_score_of_texts(name: str, labels: int) -> None:
    task = load(name, labels=labels)
    (line,) = [each for each in published(name) if each.what == LINEAR and each.options["labels"] == labels]
    assert (line.train, line.of, line.data_checksum) == (task.card["train"], task.card["test"], task.checksum)
    found = np.mean([independent_score(task, seed) for seed in range(line.seeds)])
    assert found == pytest.approx(line.share, abs=0.001)


def test_short_lists_come_out_again(tmp_path: Path) -> None:
    lines = published("listops-short")
    options, checksum = lines[0].options, lines[0].data_checksum
    assert load("listops-short", tmp_path, **options).checksum == checksum
    found = baseline_scores("listops-short", data_dir=tmp_path, **options)
    task = load("listops-short", tmp_path, **options)
    assert found | NOTEBOOK.ladder_scores(task) == known_scores("listops-short")


@pytest.mark.data
@pytest.mark.parametrize("variant", ["paper", "released"])
@pytest.mark.timeout(1200)
def test_long_lists_come_out_again(variant: str) -> None:
    lines = [line for line in published("listops") if line.variant == variant]
    ladder = NOTEBOOK.ladder_scores(load("listops", variant=variant, **lines[0].options))
    assert {"chance": Score(0.1)} | ladder == known_scores("listops", variant)


def test_a_variant_without_lines_of_its_own_has_those_of_the_paper() -> None:
    assert known_scores("mnist", "released") == known_scores("mnist")
    assert known_scores("listops", "lra") == known_scores("listops")
    released = known_scores("listops", "released")
    assert known_scores("listops", "lra-released") == released
    assert list(released) == ["chance", MAJORITY, "outermost operator", "operator and direct digits"]


def test_the_floor_is_what_needs_no_look_at_most_of_an_example() -> None:
    assert floor("bit-memory") == 0.75
    assert floor("digits") == known_scores("digits")[MAJORITY].share
    assert floor("listops") == known_scores("listops")["outermost operator"].share
    released = known_scores("listops", "released")["outermost operator"]
    assert floor("listops", "released") == released.share != floor("listops")
    assert best_trivial("listops", "released") == released
    assert best_trivial("npz:PATH") is None


def test_an_untouched_model_of_bytes_knows_more_than_the_byte_before_it() -> None:
    narrow, wide = (untouched_loss("text", name) for name in ("tiny-lm-64", "tiny-lm"))
    assert 0 < wide < narrow < math.log(256)
    assert known_scores("text")["untouched tiny-lm"].share > known_scores("text")["the byte before"].share
    assert untouched_loss("text", "gpt2") is None
    assert untouched_loss("digits", "tiny-lm") is None
