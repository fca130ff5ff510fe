"""study.yaml: tables of a paper at a scale, lists, defaults, and what a bad file gets."""

import json
from itertools import product
from pathlib import Path

import committed
import pytest

from fpt import papers
from fpt.errors import SpecError
from fpt.files import study_folder
from fpt.sweeps import load_study, results_folder
from fpt.sweeps.rows import AS_PRINTED, GRIDLESS, meant
from fpt.sweeps.spec import resolve
from fpt.sweeps.words import labels, title

DEFAULTS = {"learning_rates": [1e-3, 1e-2], "seeds": [0], "compute_type": "float32"}


def write(runs, name="mine", text=None, **document):
    folder = runs / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "study.yaml").write_text(json.dumps(document) if text is None else text)
    return folder


def study(runs, *sweeps, **document):
    return load_study(write(runs, defaults=DEFAULTS, sweeps=list(sweeps), **document))


def test_every_sweep_of_the_repository_has_a_title_a_label_and_a_folder_of_its_own(monkeypatch):
    monkeypatch.chdir(committed.ROOT)  # the workspace of its folders
    for name, study in committed.studies().items():
        sweeps = committed.loaded(name).sweeps
        assert len({title(spec) for spec in sweeps}) == len(sweeps), name
        found = labels(sweeps)
        assert len({(spec.task, found[spec.folder_name]) for spec in sweeps}) == len(sweeps), name
        folders = {spec.folder_name for spec in sweeps}
        assert {folder.name for folder in (study / "published").glob("*")} <= folders, name
        for folder in folders:  # whatever the name of its arm
            assert results_folder(f"runs/{name}/{folder}") == Path(f"runs/{name}/{folder}")


def test_every_row_of_every_paper_is_a_sweep_that_exists():
    """So a row without a sweep in a study does not fit its models and tasks, and has no mistake of its own."""
    for paper in papers.papers().values():
        for table in paper.tables.values():
            for row in table.rows:
                for task in table.on(row, paper) or ["digits"]:
                    fields = meant(AS_PRINTED, paper, table, row, task)
                    if fields is not None:
                        resolve(fields | GRIDLESS | {"pretrained_by": None}, f"{table.id}/{row}/{task}")


def test_a_sweep_serves_a_row_only_where_it_has_what_the_row_names():
    """A study may put two layers in the place of the paper's model, and a row that names one layer means one. What
    stands for a row by its own name is the study's choice."""
    served = 0
    for name in committed.studies():
        found = committed.loaded(name)
        for paper in papers.papers().values():
            for table in paper.tables.values():
                for planned in found.planned(table):
                    for task in planned.stands_for:
                        named = table.named(planned.row, task, paper).items()
                        has = planned.spec.model_dump() | planned.spec.task_options | planned.spec.backbone_options
                        chosen = {"arm", "backbone", "pretrained_by", *found.file.in_place_of(planned.row, "row")}
                        for field, value in named:
                            if field in has and field not in chosen:
                                assert has[field] == value, f"{name}, {table.id}/{planned.row}/{task}: {field}"
                                served += 1
    assert served > 100


MINILM = """
stands_for: {gpt2: {backbone: minilm, layers: 2}, mnist: digits}
defaults: {compute_type: float32, learning_rates: [1e-3], seeds: [0], task: digits, backbone: minilm}
sweeps:
  - {arm: frozen-random, layers: 2}
"""


def served(study, table):
    return {(each.row, each.task): each for each in study.planned(papers.table(table))}


def test_what_a_row_names_is_replaced_by_name_alone(tmp_path):
    found = served(load_study(write(tmp_path, text=MINILM)), "ours-backbone")
    assert found["FR", "digits"].spec.backbone_options == {"layers": 2}
    assert ("FR, 1 layer", "digits") not in found
    by_name = MINILM.replace("mnist: digits", "mnist: digits, 'FR, 1 layer': {layers: 2}")
    found = served(load_study(write(tmp_path, "by-name", by_name)), "ours-backbone")
    assert found["FR, 1 layer", "digits"].spec.backbone_options == {"layers": 2}


def tables(study):
    return {row.table.id for row in study.rows}


def test_a_study_leaves_out_what_its_sweeps_are_not_to_serve(tmp_path):
    whole = load_study(write(tmp_path, text=MINILM))
    assert {"ours-depth", "lu-table-9"} <= tables(whole)
    less = load_study(write(tmp_path, "less", f"{MINILM}leaves_out: ['lu-*', ours-depth/FR/*]"))
    assert {name for name in tables(whole) if name.startswith("lu-")} == tables(whole) - tables(less)
    assert [each.row for each in less.planned(papers.table("ours-depth"))] == ["FR, 2 layers"]
    assert [spec.hash for spec in less.sweeps] == [spec.hash for spec in whole.sweeps]


def test_of_sweeps_that_differ_in_their_steps_alone_none_is_the_row(tmp_path):
    text = MINILM.replace("layers: 2}\n", "layers: 2, test_examples: [100, 200]}\n")
    assert load_study(write(tmp_path, text=text)).rows == ()


def test_sweeps_that_start_from_others_may_stand_before_them(tmp_path):
    """And a name is that of one sweep, whatever the order."""
    user = {"task": "digits", "arm": "frozen-pretrained", "pretrained_by": "bits"}
    keeper = {"task": "bit-xor", "arm": "unfrozen-random", "keep_as": "bits"}
    found = study(tmp_path, user, keeper)
    assert [spec.task for spec in found.sweeps] == ["digits", "bit-xor"]
    assert found.sweeps[0].pretrained_by == found.sweeps[1].folder_name
    assert found.sweeps[1].measures == ("weights",)
    with pytest.raises(SpecError, match=r"keep_as = 'bits': more than one sweep has this name.*sweep 2"):
        study(tmp_path, keeper, {**keeper, "task": "bit-memory"})
    with pytest.raises(SpecError, match=r"unknown sweep that keeps its weights.*'bit'.*sweep 1.*Did you mean 'bits'"):
        study(tmp_path, {**user, "pretrained_by": "bit"}, keeper)


def test_lists_are_crossed_and_options_are_named_like_fields(tmp_path):
    lists = {"task": ["bit-memory", "bit-xor"], "strings": [3, 4], "random_gain": [0.5, 2]}
    found = study(tmp_path, {**lists, "arm": ["frozen-random"], "layers": 2})
    assert {(s.task, s.task_options["strings"], s.random_gain) for s in found.sweeps} == {*product(*lists.values())}
    assert all(s.backbone_options == {"layers": 2} for s in found.sweeps)


def test_equal_sweeps_become_one_that_measures_all(tmp_path):
    one = {"task": "bit-xor", "arm": "frozen-random"}
    found = study(tmp_path, one, {**one, "measures": ["train-mode"]}, {**one, "measures": ["attention"]})
    (spec,) = found.sweeps
    assert spec.measures == ("attention", "train-mode")


def test_rates_without_a_point_are_numbers(tmp_path):
    folder = write(tmp_path, text=f"sweeps: [{{task: digits, {GOOD}}}]".replace("1e-3", "1e-3, 3E-5"))
    assert load_study(folder).sweeps[0].learning_rates == (3e-5, 1e-3)


def test_name_claims_and_threshold_change_no_run(tmp_path):
    plain = study(tmp_path, {"task": "digits"})
    asking = study(tmp_path, {"task": "digits", "threshold": 0.5}, name="My study", asks=["R-01", "L-04"])
    assert (plain.name, asking.name) == ("mine", "My study")
    assert asking.file.asks == ["R-01", "L-04"]
    assert [spec.hash for spec in asking.sweeps] == [spec.hash for spec in plain.sweeps]


def test_fields_of_a_task_stand_between_the_defaults_and_what_a_sweep_says(tmp_path):
    folder = write(
        tmp_path,
        defaults=DEFAULTS | {"steps": 5, "arm": "frozen-random"},
        tasks={"bit-xor": {"steps": 7, "threshold": 0.9}, "digits-lra": {"steps": 8}},
        sweeps=[{"task": ["digits", "bit-xor"]}, {"task": "digits-lra", "steps": 9}],
    )
    found = [(spec.task, spec.steps, spec.threshold) for spec in load_study(folder).sweeps]
    assert found == [("digits", 5, None), ("bit-xor", 7, 0.9), ("digits-lra", 9, None)]


PAPER = """
name: toy
title: A paper of one table
defaults: {backbone: gpt2, random_init: fixed, steps: 30}
rates: {default: 1e-2, lstm: 3e-3}
tasks: {mnist: {steps: 50, variant: released}, cifar10: {steps: 70}, bit-xor: {steps: 20, threshold: 0.9}}
rows:
  FP: {arm: frozen-pretrained}
  UR: {arm: unfrozen-random}
  "UR, 3 layers": {arm: unfrozen-random, layers: 3}
  LSTM: {arm: frozen-random, backbone: lstm, width: 768}
  bit: {arm: frozen-pretrained, pretrained_by: UR/bit-xor}
  quoted: {label: a model of the literature}
tables:
  toy-table-1:
    title: Accuracy
    where: Table 1
    rows:
      FP: {mnist: 90, cifar10: {is: 70, backbone: gpt2-large}, bit-xor: 100}
      UR: {mnist: 92, cifar10: 70, bit-xor: {is: 100, keep: true}}
      quoted: {mnist: {is: 99, literature: somebody}}
  toy-table-2:
    title: More
    where: Table 2
    measures: [attention]
    rows:
      FP: {bit-xor: 100}
      LSTM: {bit-xor: 50}
      bit: {mnist: 80}
"""
SMALL = {"gpt2": "tiny-lm", "mnist": "digits", "cifar10": "digits"}


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """Puts a paper beside the others."""
    folder = tmp_path / "papers"
    folder.mkdir()
    monkeypatch.setattr(papers, "FOLDERS", [*papers.FOLDERS, folder])

    def put(text=PAPER):
        (folder / "toy.yaml").write_text(text)

    put()
    return put


@pytest.mark.usefixtures("toy")
class TestTables:
    def made(self, runs, **document):
        defaults = DEFAULTS | document.pop("defaults", {})
        return load_study(write(runs, defaults=defaults, paper="toy", **document))

    def test_rows_times_tasks_give_the_sweeps(self, tmp_path):
        found = self.made(tmp_path)
        assert [(spec.task, spec.backbone, spec.arm, spec.steps) for spec in found.sweeps] == [
            ("mnist", "gpt2", "frozen-pretrained", 50),
            ("cifar10", "gpt2-large", "frozen-pretrained", 70),
            ("bit-xor", "gpt2", "frozen-pretrained", 20),
            ("mnist", "gpt2", "unfrozen-random", 50),
            ("cifar10", "gpt2", "unfrozen-random", 70),
            ("bit-xor", "gpt2", "unfrozen-random", 20),
            ("bit-xor", "lstm", "frozen-random", 20),
            ("mnist", "gpt2", "frozen-pretrained", 50),
        ]
        assert [(spec.task, spec.steps) for spec in self.made(tmp_path, defaults={"steps": 7}).sweeps][1] == (
            "cifar10",
            7,
        )
        assert {spec.variant for spec in found.sweeps if spec.task == "mnist"} == {"released"}
        assert {spec.random_init for spec in found.sweeps if spec.init == "random"} == {"fixed"}

    def test_the_rate_that_the_paper_prints_is_no_field_of_a_sweep(self, tmp_path):
        """It may lie beside the grid: cells say what is known at it."""
        rates = {spec.backbone: spec.learning_rates for spec in self.made(tmp_path).sweeps}
        assert rates == dict.fromkeys(("gpt2", "gpt2-large", "lstm"), (1e-3, 1e-2))

    def test_one_table_trains_the_sweeps_of_the_whole(self, tmp_path):
        found = self.made(tmp_path)
        assert [title(spec) for spec in found.serving("toy-table-2")] == [
            "bit-xor, frozen-pretrained, gpt2",
            "bit-xor, unfrozen-random, gpt2, fixed scale",  # the bit row starts from its weights
            "bit-xor, frozen-random, lstm (width 768), fixed scale",
            "mnist, frozen-pretrained, variant released, gpt2, pretrained by bit-xor",
        ]
        assert found.serving(None) == found.sweeps
        # attention is measured for table 2; the same sweep serves table 1
        assert "attention" in next(spec for spec in found.serving("toy-table-1") if spec.task == "bit-xor").measures
        alone = self.made(tmp_path, tables=["toy-table-2"])
        assert {spec.hash for spec in found.serving("toy-table-2")} == {spec.hash for spec in alone.sweeps}
        with pytest.raises(SpecError, match=r"unknown table, or .*'toy-table-3'.*study.yaml.*toy-table-1, toy-table-2"):
            found.serving("toy-table-3")

    def test_sweeps_by_name(self, tmp_path):
        found = self.made(tmp_path)
        assert found.serving("*.unfrozen-*") == tuple(spec for spec in found.sweeps if spec.trainable == "all")
        plain, started = (
            next(spec for spec in found.sweeps if bool(spec.pretrained_by) is kept) for kept in (False, True)
        )
        assert found.serving(plain.folder_name) == (plain,)
        # with the one whose weights it starts from
        served = found.serving(started.folder_name)
        assert [spec.folder_name for spec in served] == [started.pretrained_by, started.folder_name]
        for wrong in ("*.unfrozen", "MNIST.*", ""):
            with pytest.raises(SpecError, match="unknown table, or name of sweeps"):
                found.serving(wrong)

    def listed(self, runs, *sweeps, **document):
        return study(runs, *sweeps, **{"stands_for": SMALL, **document})

    def test_what_stands_for_what(self, tmp_path):
        found = self.listed(
            tmp_path,
            {"task": ["digits", "bit-xor"], "arm": ["frozen-pretrained", "unfrozen-random"], "random_init": "fixed"},
            {"task": "bit-xor", "arm": "frozen-random", "backbone": "lstm", "width": 32, "random_init": "fixed"},
            stands_for=SMALL | {"LSTM": {"width": 32}},
        )
        first, second = served(found, "toy-table-1"), served(found, "toy-table-2")
        assert first["FP", "digits"].stands_for == ("mnist",)  # there is no large model for CIFAR-10
        assert first["UR", "digits"].stands_for == ("mnist", "cifar10")
        assert first["FP", "bit-xor"].scale == "reduced"
        assert ("quoted", "digits") not in first
        assert second["LSTM", "bit-xor"].spec.backbone_options == {"width": 32}
        assert served(found, "rothermel-table-1").keys() == {("FP", "digits"), ("UR", "digits")}  # of another paper
        assert [title(spec) for spec in found.serving("toy-table-2")] == [
            "bit-xor, frozen-pretrained",
            "bit-xor, frozen-random, lstm (width 32), fixed scale",
        ]

    def test_a_row_whose_tasks_would_be_two_sweeps_is_the_first(self, tmp_path, toy):
        toy(PAPER.replace("cifar10: 70, bit-xor: {", "cifar10: {is: 70, layers: 3}, bit-xor: {"))
        found = self.listed(
            tmp_path, {"task": "digits", "arm": "unfrozen-random", "layers": [3, 4], "random_init": "fixed"}
        )
        row = served(found, "toy-table-1")["UR", "digits"]
        assert row.stands_for == ("cifar10",)  # four layers by name are another sweep than the whole model
        whole = self.listed(
            tmp_path, {"task": "digits", "arm": "unfrozen-random", "layers": [0, 3], "random_init": "fixed"}
        )
        row = served(whole, "toy-table-1")["UR", "digits"]
        assert (row.stands_for, row.spec.backbone_options) == (("mnist",), {"layers": 0})

    @pytest.mark.parametrize(
        ("row", "named"),
        [
            ("arm: unfrozen-random, dropout: 2", "dropout = 2"),
            ("arm: unfrozen-random, drop_out: 0", "'drop_out'"),
            ("init: random, trainable: al", "policy 'al'"),
        ],
    )
    def test_a_mistake_in_a_row_is_told(self, tmp_path, toy, row, named):
        """It is no row without a sweep."""
        toy(PAPER.replace("UR: {arm: unfrozen-random}", f"UR: {{{row}}}"))
        found = self.listed(tmp_path, {"task": "digits", "arm": "frozen-pretrained"})
        with pytest.raises(SpecError, match=f"{named}.*toy.yaml, toy-table-1/UR"):
            found.rows  # noqa: B018

    def test_what_starts_from_kept_weights_serves_the_row_that_does(self, tmp_path):
        keeper = {"task": "bit-xor", "arm": "unfrozen-random", "keep_as": "mine", "random_init": "fixed"}
        user = {"task": "digits", "arm": "frozen-pretrained", "pretrained_by": "mine"}
        row = served(self.listed(tmp_path, keeper, user), "toy-table-2")["bit", "digits"]
        assert (row.stands_for, str(row.spec.pretrained_by).partition(".")[0]) == (("mnist",), "bit-xor")

    def test_the_scale_of_a_row_is_the_papers_from_its_steps_on(self, tmp_path):
        large = self.made(tmp_path, defaults={"steps": 500})
        assert {each.scale for each in large.planned(papers.table("toy-table-1"))} == {"paper"}
        short = served(self.made(tmp_path, defaults={"steps": 60}), "toy-table-1")
        assert (short["UR", "mnist"].scale, short["UR", "cifar10"].scale) == ("paper", "reduced")  # 70 steps

    def test_a_row_may_be_trained_for_longer_than_its_task_says(self, tmp_path, toy):
        toy(PAPER.replace("LSTM: {arm", "LSTM: {scale: {steps: 90}, length: 7, arm"))
        assert {spec.backbone: spec.steps for spec in self.made(tmp_path).sweeps}["lstm"] == 90

    @pytest.mark.parametrize(
        ("document", "message"),
        [
            ({"tasks": {"mnist": {"backbone": "lstm"}}}, r"backbone = 'lstm'.*as they stand.*tasks, mnist of .*mine"),
            (
                {"defaults": {"steps": 0}, "tables": ["toy-table-2"]},
                "steps = 0.*mine/study.yaml, toy-table-1/UR/bit-xor",
            ),
        ],
    )
    def test_bad_ones(self, tmp_path, document, message):
        with pytest.raises(SpecError, match=message):
            load_study(
                write(tmp_path, **{"paper": "toy", **document, "defaults": DEFAULTS | document.get("defaults", {})})
            )


GOOD = "learning_rates: [1e-3], seeds: [0], compute_type: float32"


def test_a_file_that_is_no_text_or_not_there(tmp_path):
    folder = write(tmp_path)
    (folder / "study.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SpecError, match="not YAML"):
        load_study(folder)
    with pytest.raises(SpecError, match="does not exist"):
        load_study(tmp_path / "other")


def test_the_same_sweeps_in_two_number_types_are_a_comparison(tmp_path):
    both = {"arm": ["frozen-random", "unfrozen-random"], "compute_type": ["float32", "bfloat16"]}
    assert len({spec.hash for spec in study(tmp_path, {"task": "digits", **both}).sweeps}) == 4


@pytest.mark.parametrize("name", ["../mine", "mine/", "/etc", "", "lapto", ".hidden"])
def test_a_study_is_a_folder_of_runs(tmp_path, name):
    write(tmp_path, "mine", sweeps=[])
    write(tmp_path, "laptop", sweeps=[])
    with pytest.raises(SpecError, match=r"unknown study .*Known: laptop, mine"):
        study_folder(tmp_path, name)
    assert study_folder(tmp_path, "laptop") == tmp_path / "laptop"
