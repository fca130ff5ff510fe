"""The experiments of Lu et al. 2021: which sweeps are whose rows, what a table shows, and every kind of verdict."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import synthetic

from fpt.errors import SpecError
from fpt.evidence import claim, load_runs
from fpt.evidence.baselines import linear_score
from fpt.evidence.exhibits import (
    experiment_figure,
    experiment_table,
    printed_table,
    ruling_table,
    what_to_see,
    what_was_run,
)
from fpt.evidence.experiments import Cell, Experiment, Results, Row, experiment, experiments
from fpt.evidence.rulings import KINDS, Ruling, overall, rulings
from fpt.evidence.runs import load_plan
from fpt.evidence.show.figures import alt_text
from fpt.evidence.show.html import Picture
from fpt.seeds import stream
from fpt.sweeps import SweepSpec

ROOT = Path(__file__).parents[2]
STUDY = """
name: Small
defaults: {backbone: gpt2, steps: 400, evaluations: 4, learning_rates: [1e-4, 1e-3, 1e-2], threshold: 0.6,
           selection_seeds: [0, 1, 2], confirmation_seeds: [10, 11, 12, 13, 14], reference_rates: [1e-3]}
sweeps:
  - {task: digits, arm: [frozen-pretrained, frozen-random, unfrozen-random]}
  - {task: bit-xor, arm: [frozen-pretrained, frozen-random]}
  - {task: bit-xor, arm: frozen-pretrained, task_options: {length: 16}}
  - {task: digits, arm: frozen-pretrained, input_init: default}
  - {task: digits, arm: frozen-pretrained, backbone_options: {layers: 2}}
  - {task: digits, arm: frozen-random, random_gain: 2}
  - {task: digits, arm: unfrozen-random, keep_as: digits}
  - {task: digits, arm: frozen-pretrained, pretrained_by: digits}
"""


def made(tmp_path: Path, accuracy: synthetic.Accuracy, study: str = STUDY, skip: tuple[str, ...] = ()) -> Results:
    return Results(synthetic.finish(synthetic.workspace(tmp_path, study=study), accuracy=accuracy, skip=skip))


def flat(levels: dict[str, float], spread: float = 0.002) -> synthetic.Accuracy:
    """Every arm at its level at 1e-3, worse at the ends of the grid."""

    def accuracy(spec: SweepSpec, rate: float, seed: int) -> float:
        noise = np.random.default_rng(stream(seed, spec.hash, f"{rate:g}")).normal(0, spread)
        return float(levels.get(spec.arm, 0.5) - (0 if rate == 1e-3 else 0.05) + noise)

    return accuracy


def made_up(claims: list[dict[str, Any]], kind: str = "accuracy") -> Experiment:
    rows = (
        Row("frozen", {"arm": "frozen-pretrained"}, {"mnist": 98, "homology": 12.7}),
        Row("random", {"arm": "frozen-random"}, {"mnist": 91.7}),
        Row("full", {"arm": "unfrozen-random"}, {"mnist": 99.1}),
        Row("ViT", {"arm": "frozen-pretrained", "backbone": "vit"}, {"mnist": 97.8}),
    )
    return Experiment("lu-table-0", "Made up", kind, rows, tuple({"id": "L-10", **each} for each in claims))


def words(found: list[Ruling]) -> list[str]:
    return [ruling.verdict for ruling in found]


# --- which sweep is which row


def sweep(**fields: Any) -> dict[str, Any]:
    plain = {
        "task": "digits",
        "variant": "paper",
        "task_options": "{}",
        "backbone": "tiny-lm",
        "backbone_options": "{}",
    }
    plain |= {"arm": "frozen-pretrained", "dropout": 0.1, "input_init": "orthogonal", "pretrained_by": ""}
    return plain | {"random_init": "matched", "random_gain": 1.0, **fields}


@pytest.mark.parametrize(
    ("row", "given", "served"),
    [
        ({"arm": "frozen-pretrained"}, sweep(), True),
        ({"arm": "frozen-pretrained"}, sweep(backbone="gpt2"), True),
        ({"arm": "frozen-pretrained"}, sweep(backbone="vit"), False),
        ({"arm": "frozen-pretrained"}, sweep(arm="frozen-random"), False),
        ({"arm": "frozen-pretrained"}, sweep(backbone_options='{"layers": 2}'), False),
        ({"arm": "frozen-pretrained", "layers": [6, 2]}, sweep(backbone_options='{"layers": 2}'), True),
        ({"arm": "frozen-pretrained", "layers": 6}, sweep(backbone_options='{"layers": 2}'), False),
        ({"arm": "frozen-pretrained"}, sweep(dropout=0.0), False),
        ({"arm": "frozen-pretrained", "dropout": 0}, sweep(dropout=0.0), True),
        ({"arm": "frozen-pretrained"}, sweep(input_init="default"), False),
        ({"arm": "frozen-pretrained"}, sweep(variant="released"), True),
        ({"arm": "frozen-pretrained"}, sweep(pretrained_by="bit-memory.unfrozen-random-0a1b2c3d"), False),
        ({"arm": "frozen-pretrained", "pretrained_by": "bit-memory"}, sweep(), False),
        (
            {"arm": "frozen-pretrained", "pretrained_by": "bit-memory"},
            sweep(pretrained_by="bit-memory.unfrozen-random-0a1b2c3d"),
            True,
        ),
        ({"arm": "frozen-random"}, sweep(arm="frozen-random", random_gain=2.0), False),
        ({"arm": "frozen-random"}, sweep(arm="frozen-random", random_init="fixed"), False),
        ({"arm": "frozen-random", "random_init": "fixed"}, sweep(arm="frozen-random", random_init="fixed"), True),
        ({"arm": "frozen-random", "random_init": "fixed"}, sweep(arm="frozen-random"), False),
        ({"arm": "frozen-random", "random_init": "fixed"}, sweep(arm="frozen-random", backbone="gpt2"), True),
        ({"arm": "frozen-pretrained"}, sweep(task="bit-xor"), True),
        ({"arm": "frozen-pretrained"}, sweep(task="bit-xor", task_options='{"length": 5}'), True),
        ({"arm": "frozen-pretrained"}, sweep(task="bit-xor", task_options='{"length": 16}'), False),
        ({"arm": "frozen-pretrained", "length": 16}, sweep(task="bit-xor", task_options='{"length": 16}'), True),
        ({"arm": "frozen-pretrained", "length": 16}, sweep(), False),
        ({"arm": "frozen-pretrained"}, sweep(task="bit-memory", task_options='{"length": 40}'), True),
        ({"arm": "frozen-random", "backbone": "lstm"}, sweep(arm="frozen-random"), False),
        (
            {"arm": "frozen-random", "backbone": "lstm", "residual": True, "layers": 12},
            sweep(
                arm="frozen-random", backbone="lstm", backbone_options='{"width": 9, "layers": 12, "residual": true}'
            ),
            True,
        ),
        (
            {"arm": "frozen-random", "backbone": "lstm", "layers": 12},
            sweep(arm="frozen-random", backbone="lstm", backbone_options='{"layers": 12, "residual": true}'),
            False,
        ),
    ],
)
def test_a_row_is_served_by_what_differs_in_nothing_else(
    row: dict[str, Any], given: dict[str, Any], served: bool
) -> None:
    assert Row("a row", row).is_served_by(given) is served


def test_labels_tell_the_arms_of_a_study_apart(tmp_path: Path) -> None:
    plan = load_plan(synthetic.workspace(tmp_path, study=STUDY))
    labels = set(plan.loc[plan["arm"] == "frozen-pretrained", "label"])
    assert labels == {"FP", "FP default-input", "FP by-digits"}
    assert set(plan["threshold"]) == {0.6}


def test_what_stands_in_for_the_papers_tasks(tmp_path: Path) -> None:
    results = Results(synthetic.workspace(tmp_path, study=STUDY))
    assert results.tasks_for(["mnist", "cifar10"]) == ["digits"]
    assert results.tasks_for(["bit-xor", "bit-memory", "listops"]) == ["bit-xor", "digits"]
    assert results.tasks_for(["bit-memory", "homology"]) == []


# --- tables, figures, words


def test_a_cell_says_own_rate_and_the_papers(tmp_path: Path) -> None:
    def accuracy(spec: SweepSpec, rate: float, seed: int) -> float:
        return {1e-4: 0.5, 1e-3: 0.75, 1e-2: 0.875}[rate] if spec.arm == "frozen-random" else 0.75 - (rate != 1e-3) / 4

    results = made(tmp_path, accuracy, skip=("unfrozen-random",))
    table = experiment_table(made_up([]), results)
    rows = table.frame.set_index("")
    assert list(rows) == ["Digits"]
    assert list(rows["Digits"]) == ["75.0 / 75.0", "87.5† / 75.0", "not run yet", "–"]
    assert rows.index[3] == "ViT: not tested at this scale"
    assert "the own rate ends the grid" in table.caption
    assert "–: not run." in table.caption
    elsewhere = printed_table(made_up([]), results).frame
    assert list(elsewhere["MNIST"]) == ["98", "91.7", "99.1", "97.8"]
    assert what_to_see(made_up([]), results) == (
        "Digits: from 75.0 (frozen) to 87.5 (random); at the paper's rate random loses most, 12.5 points."
    )


def test_without_fresh_seeds_everything_is_called_exploratory(tmp_path: Path) -> None:
    study = STUDY.replace("[10, 11, 12, 13, 14]", "[]").replace("  - {task: digits, arm: unfrozen-random, keep", "# ")
    study = study.replace("  - {task: digits, arm: frozen-pretrained, pretrained_by", "# ")
    results = made(tmp_path, flat({"frozen-pretrained": 0.9, "frozen-random": 0.8}), study=study)
    entry = made_up([{"greater": ["frozen", "random"]}])
    assert what_was_run(entry, results) == "Digits (400 steps): all 3 sweeps are there."
    assert {(ruling.verdict, ruling.exploratory) for ruling in rulings(entry, results)} == {("supported", True)}


def test_a_study_without_results_has_tables_figures_and_words(tmp_path: Path) -> None:
    results = Results(synthetic.workspace(tmp_path, study=STUDY))
    for entry in experiments().values():
        assert len(experiment_table(entry, results)._repr_html_()) > 100
        assert "no results" in alt_text(experiment_figure(entry, results))
        assert what_was_run(entry, results)
        assert {ruling.verdict for ruling in rulings(entry, results)} <= {"not run yet", "not tested at this scale"}
    table = ruling_table(rulings(experiment("lu-table-2"), results)).frame
    assert set(", ".join(table["claim"]).split(", ")) == {"L-10", "L-11", "L-12", "L-13", "L-49"}
    assert table["verdict"].str.startswith(("not run yet", "not tested at this scale")).all()


@pytest.mark.parametrize("kind", ["accuracy", "steps", "gap"])
def test_the_figure_shows_every_seed_at_both_rates(tmp_path: Path, kind: str) -> None:
    results = made(tmp_path, flat({"frozen-pretrained": 0.9, "frozen-random": 0.8, "unfrozen-random": 0.7}))
    figure = experiment_figure(made_up([], kind), results)
    drawn = sum(
        len(c.get_offsets()) for c in figure.axes[0].collections if hasattr(c, "get_sizes") and len(c.get_sizes())
    )
    assert drawn == 3 * 2 * 5
    assert "Digits, frozen" in alt_text(figure)
    Picture(figure, "What to see.")._repr_html_()


# --- verdicts


@pytest.mark.parametrize(
    ("claims", "levels", "word"),
    [
        ({"greater": ["frozen", "random"]}, (0.9, 0.8, 0.7), "supported"),
        ({"greater": ["frozen", "random"]}, (0.7, 0.8, 0.7), "contradicted"),
        ({"greater": ["frozen", "random"], "by": 5}, (0.84, 0.8, 0.7), "contradicted"),
        ({"greater": ["frozen", "random"], "by": 5}, (0.9, 0.8, 0.7), "supported"),
        ({"greater": ["frozen", "random"], "by": -1}, (0.797, 0.8, 0.7), "supported"),
        ({"greater": ["frozen", "random"], "by": -1}, (0.78, 0.8, 0.7), "contradicted"),
        ({"order": ["full", "random", "frozen"]}, (0.9, 0.8, 0.7), "supported"),
        ({"order": ["full", "random", "frozen"]}, (0.75, 0.8, 0.7), "contradicted"),
        ({"best": ["frozen", "random", "full"]}, (0.9, 0.8, 0.7), "supported"),
        ({"best": ["random", "frozen", "full"]}, (0.9, 0.8, 0.7), "contradicted"),
        ({"close": ["frozen", "random"]}, (0.8, 0.8, 0.7), "supported"),
        ({"close": ["frozen", "random"]}, (0.85, 0.8, 0.7), "contradicted"),
        ({"jump": ["full", "random", "frozen"]}, (0.85, 0.8, 0.5), "supported"),
        ({"jump": ["full", "random", "frozen"]}, (0.95, 0.8, 0.75), "contradicted"),
        ({"greater": ["frozen", "random"], "by": 5, "to": 9}, (0.87, 0.8, 0.7), "supported"),
        ({"greater": ["frozen", "random"], "by": 5, "to": 9}, (0.95, 0.8, 0.7), "contradicted"),
        ({"greater": ["frozen", "random"], "by": 5, "to": 9}, (0.83, 0.8, 0.7), "contradicted"),
        ({"reaches": "frozen", "level": 79}, (0.8, 0.8, 0.7), "supported"),
        ({"reaches": "frozen", "level": 81}, (0.8, 0.8, 0.7), "contradicted"),
    ],
)
def test_verdicts_on_accuracy(
    tmp_path: Path, claims: dict[str, Any], levels: tuple[float, float, float], word: str
) -> None:
    arms = ("frozen-pretrained", "frozen-random", "unfrozen-random")
    results = made(tmp_path, flat(dict(zip(arms, levels, strict=True))))
    found = rulings(made_up([claims]), results)
    assert words(found) == [word, word]  # tuned, and at the paper's rate
    assert [ruling.reading for ruling in found] == ["tuned", "fixed"]
    assert {ruling.tests[0].n for ruling in found} == {5}
    assert (found[1].task, found[1].scale, found[1].rates) == ("digits", "gpt2, 400 steps", "1e-3")


GPT2 = STUDY.replace("task: digits", "task: mnist")
SMALL = GPT2.replace("backbone: gpt2", "backbone: tiny-lm").replace(
    "reference_rates: [1e-3]", "reference_rates: [1e-2]"
)


@pytest.mark.parametrize(("level", "word"), [(0.972, "supported"), (0.95, "contradicted")])
def test_near_the_printed_number(tmp_path: Path, level: float, word: str) -> None:
    results = made(tmp_path, flat({"frozen-pretrained": level}), study=GPT2)
    (tuned, _) = rulings(made_up([{"near": "frozen"}]), results)
    assert (tuned.verdict, tuned.task) == (word, "mnist")


def test_a_small_model_is_never_near_the_papers_numbers(tmp_path: Path) -> None:
    found = rulings(made_up([{"near": "frozen"}]), made(tmp_path, flat({"frozen-pretrained": 0.98}), study=SMALL))
    assert words(found) == ["not tested at this scale"]


@pytest.mark.parametrize(
    ("backbone", "options", "grid", "rate", "says"),
    [
        ("gpt2", "{}", [1e-4, 1e-3, 1e-2], 1e-3, "1e-3"),
        ("gpt2-large", "{}", [1e-4, 1e-3, 1e-2], 1e-3, "1e-3"),  # wider: the rate is still the paper's own
        ("tiny-lm", "{}", [1e-4, 1e-3, 1e-2], 1e-2, "1e-2 for 1e-3 x 768/128"),
        ("minilm", "{}", [1e-3, 3e-3, 1e-2], 3e-3, "3e-3 for 1e-3 x 768/384"),
        ("lstm", '{"width": 128}', [1e-4, 1e-3, 1e-2], 1e-3, "1e-3 for 3e-4 x 768/128"),
        ("lstm", '{"width": 768}', [1e-4, 1e-3, 1e-2], 3e-4, "3e-4"),  # not in the grid: nothing stands for it
        ("tiny-lm", "{}", [1e-4, 1e-3], 6e-3, "6e-3 for 1e-3 x 768/128"),  # no point of the grid is near
    ],
)
def test_the_papers_rate_is_scaled_to_a_smaller_width(
    backbone: str, options: str, grid: list[float], rate: float, says: str
) -> None:
    runs = pd.DataFrame({"learning_rate": grid})
    cell = Cell("accuracy", Row("a row", {}), "digits", {"backbone": backbone, "backbone_options": options}, runs)
    assert (cell.fixed_rate, cell.fixed_words) == (pytest.approx(rate), says)


def test_a_small_model_is_read_at_the_scaled_rate(tmp_path: Path) -> None:
    def accuracy(spec: SweepSpec, rate: float, seed: int) -> float:
        lead = 0.1 if spec.init == "pretrained" else 0.0
        return {1e-4: 0.3, 1e-3: 0.5 - lead, 1e-2: 0.8 + lead}[rate] + 0.001 * (seed % 3)

    results = made(tmp_path, accuracy, study=SMALL)
    entry = made_up([{"greater": ["frozen", "random"]}])
    (_, fixed) = rulings(entry, results)
    assert (fixed.verdict, fixed.rates) == ("supported", "1e-2")
    assert "at the paper's (1e-2 for 1e-3 x 768/128)" in experiment_table(entry, results).caption


def test_a_small_model_in_few_steps_contradicts_no_level(tmp_path: Path) -> None:
    found = rulings(
        made_up([{"reaches": "frozen", "level": 99}]), made(tmp_path, flat({"frozen-pretrained": 0.8}), study=SMALL)
    )
    assert words(found) == ["inconclusive"] * 2


def test_only_there(tmp_path: Path) -> None:
    claim = {"greater": ["frozen", "random"], "tasks": ["mnist"], "only_there": True}
    assert words(rulings(made_up([claim]), made(tmp_path / "small", flat({})))) == ["not tested at this scale"]
    there = made(tmp_path / "large", flat({"frozen-pretrained": 0.9, "frozen-random": 0.8}), study=GPT2)
    assert words(rulings(made_up([claim]), there)) == ["supported"] * 2


@pytest.mark.parametrize(("gap", "word"), [(0.0, "supported"), (0.1, "contradicted")])
def test_beside_a_linear_classifier(tmp_path: Path, gap: float, word: str) -> None:
    level = linear_score("digits")
    results = made(tmp_path, flat({"frozen-random": level - gap}))
    assert words(rulings(made_up([{"linear": "random", "tasks": ["mnist"]}]), results))[0] == word


def test_a_linear_classifier_reads_digits_well_and_no_stream() -> None:
    assert 0.9 < linear_score("digits") < 0.98
    with pytest.raises(SpecError, match="'bit-xor' is a stream"):
        linear_score("bit-xor")


@pytest.mark.parametrize(("better", "word"), [(1e-4, "supported"), (1e-3, "contradicted")])
def test_homologys_own_rate(tmp_path: Path, better: float, word: str) -> None:
    def accuracy(spec: SweepSpec, rate: float, seed: int) -> float:
        noise = np.random.default_rng(stream(seed, spec.hash, f"{rate:g}")).normal(0, 0.002)
        return float((0.12 if rate == better else 0.08) + noise)

    study = STUDY.replace("task: digits", "task: homology").replace("[1e-3]}", "[1e-4, 1e-3]}")
    (found,) = rulings(made_up([{"rates": "frozen", "tasks": ["homology"]}]), made(tmp_path, accuracy, study=study))
    assert (found.verdict, found.reading, found.tests[0].n) == (word, "fixed", 5)


def test_exact_arrival_reaches(tmp_path: Path) -> None:
    results = made(tmp_path, flat({"frozen-pretrained": 1.0}, spread=0))
    assert words(rulings(made_up([{"reaches": "frozen", "level": 100}]), results)) == ["supported"] * 2


def test_noise_decides_nothing(tmp_path: Path) -> None:
    results = made(tmp_path, flat({"frozen-pretrained": 0.8, "frozen-random": 0.795}, spread=0.02))
    entry = made_up([{"greater": ["frozen", "random"]}, {"close": ["frozen", "random"]}])
    assert words(rulings(entry, results)) == ["inconclusive"] * 4


def test_the_edge_of_the_grid_decides_nothing_tuned(tmp_path: Path) -> None:
    def rising(spec: SweepSpec, rate: float, seed: int) -> float:
        return (0.9 if spec.init == "pretrained" else 0.5) + 0.02 * math.log10(rate) + 0.001 * (seed % 3)

    found = rulings(made_up([{"greater": ["frozen", "random"]}]), made(tmp_path, rising))
    assert words(found) == ["inconclusive (edge)", "supported"]
    assert "frozen, random" in found[0].note


def test_a_row_without_a_sweep_is_never_stood_in_for(tmp_path: Path) -> None:
    results = made(tmp_path, flat({}))
    entry = made_up([{"greater": ["ViT", "random"]}])
    (ruling,) = rulings(entry, results)
    assert (ruling.verdict, ruling.task) == ("not tested at this scale", "")


def test_trainings_of_different_lengths_are_not_compared(tmp_path: Path) -> None:
    study = STUDY.replace(
        "frozen-random, unfrozen-random]}", "frozen-random]}\n  - {task: digits, arm: unfrozen-random, steps: 800}"
    )
    study = study.replace("  - {task: digits, arm: unfrozen-random, keep", "# ")
    study = study.replace("  - {task: digits, arm: frozen-pretrained, pretrained_by", "# ")
    found = rulings(made_up([{"greater": ["frozen", "full"]}]), made(tmp_path, flat({}), study=study))
    assert words(found) == ["not tested at this scale"] * 2
    assert "different numbers of steps" in found[0].note
    rows = experiment_table(made_up([]), Results(tmp_path / "runs/laptop")).frame["Digits"]
    assert [" steps)" in text for text in rows] == [False, False, True, False]
    assert rows[2].endswith("(800 steps)")


def test_pretrained_on_the_very_task_is_not_transfer(tmp_path: Path) -> None:
    row = Row("on itself", {"arm": "frozen-pretrained", "pretrained_by": "digits"})
    entry = made_up([{"greater": ["on itself", "random"]}])
    entry = replace(entry, rows=(*entry.rows, row))
    found = rulings(entry, made(tmp_path, flat({})))
    assert words(found) == ["not tested at this scale"] * 2
    assert "on itself was pretrained on this very task" in found[0].note


def _stuck(share: float) -> Callable[[SweepSpec, float, int], float]:
    def accuracy(spec: SweepSpec, rate: float, seed: int) -> float:
        wiggle = 0.001 * (stream(seed, f"{rate:g}") % 5)
        return 0.3 if rate == 1e-4 else (0.8 if rate == 1e-2 else 0.8 - share) + wiggle

    return accuracy


GRID_WITH_A_TOP = GPT2.replace("[1e-4, 1e-3, 1e-2]", "[1e-4, 1e-3, 1e-2, 1e-1]")


def test_unstable_is_far_below_its_tuned_accuracy_or_diverged(tmp_path: Path) -> None:
    entry = made_up([{"unstable": "full"}])

    def top(spec: SweepSpec, rate: float, seed: int, share: float) -> float:
        return 0.2 if rate == 1e-1 else _stuck(share)(spec, rate, seed)

    def lost(spec: SweepSpec, rate: float, seed: int) -> float:
        return math.nan if (rate, seed) == (1e-3, 1) else top(spec, rate, seed, 0.0)

    for folder, accuracy, word in (
        ("a", lambda *run: top(*run, 0.3), "supported"),
        ("b", lambda *run: top(*run, 0.05), "contradicted"),
        ("c", lost, "supported"),
    ):
        (ruling,) = rulings(entry, made(tmp_path / folder, accuracy, study=GRID_WITH_A_TOP))
        assert (ruling.verdict, ruling.reading) == (word, "fixed"), folder
    assert ruling.note == "1 runs diverged"
    (ruling,) = rulings(entry, made(tmp_path / "d", flat({}), study=GRID_WITH_A_TOP))
    assert ruling.verdict == "inconclusive"
    assert "the same runs" in ruling.note
    small = GRID_WITH_A_TOP.replace("backbone: gpt2", "backbone: tiny-lm")
    assert words(rulings(entry, made(tmp_path / "e", flat({}), study=small))) == ["not tested at this scale"]


def test_fewer_steps_to_the_threshold(tmp_path: Path) -> None:
    # validation rises as 0.1 + (value - 0.1) sqrt(share): 0.95 passes 0.6 at half of the steps, 0.8 at three quarters
    results = made(tmp_path, flat({"frozen-pretrained": 0.95, "frozen-random": 0.8, "unfrozen-random": 0.4}))
    entry = made_up(
        [{"faster": ["frozen", "random"]}, {"faster": ["random", "frozen"]}, {"faster": ["frozen", "full"]}], "steps"
    )
    assert list(experiment_table(entry, results).frame["Digits"])[:3] == [
        "200 / 200",
        "300 / 300",
        "not reached / not reached",
    ]
    found = rulings(entry, results)
    assert words(found) == ["supported"] * 2 + ["contradicted"] * 2 + ["inconclusive"] * 2
    assert math.exp(found[0].tests[0].mean) == pytest.approx(1.5)
    assert (found[4].tests, found[4].note) == ((), "no seed reached the threshold: full")
    twice = rulings(made_up([{"faster": ["frozen", "random"], "by": 4, "to": 9}], "steps"), results)
    assert words(twice) == ["contradicted"] * 2
    assert "by 4 to 9 times" in twice[0].statement
    assert "x 1.50 (1.50 to 1.50)" in ruling_table(found).frame.to_string()


def test_gaps(tmp_path: Path) -> None:
    results = made(tmp_path, flat({"frozen-pretrained": 0.9, "unfrozen-random": 0.9}))
    for name, runs in results.runs.items():
        extra = 0.05 if "unfrozen" in name else 0.002
        runs["train_accuracy_last"] += extra + 0.0001 * runs["seed"].astype(float)
    entry = made_up([{"gap": "frozen"}, {"gap": "full"}, {"smaller-gap": ["frozen", "full"]}], "gap")
    assert words(rulings(entry, results)) == ["supported"] * 2 + ["contradicted"] * 2 + ["supported"] * 2
    assert "Digits: training" in experiment_table(entry, results).frame


def test_one_verdict_for_many_tasks() -> None:
    assert overall(["supported", "supported", "not run yet"]) == "supported"
    assert overall(["supported", "contradicted"]) == "contradicted"
    assert overall(["supported", "inconclusive (edge)"]) == "inconclusive"
    assert overall(["not tested at this scale", "not run yet"]) == "not run yet"
    assert overall([]) == "not tested at this scale"


# --- lu2021.yaml


def test_the_experiments_name_claims_rows_and_kinds_that_exist() -> None:
    assert len(experiments()) == 20  # of the 22 tables: 19 repeats 15, 22 is arithmetic
    for entry in experiments().values():
        for each in entry.claims:
            assert {claim(name)["paper"] for name in each["id"].split(", ")} == {"lu2021"}
            kind = next(name for name in KINDS if name in each)
            named = each[kind] if isinstance(each[kind], list) else [each[kind]]
            assert [entry.row(label).label for label in named] == named
            assert set(each) <= {"id", kind, "by", "to", "level", "tasks", "only_there", "part"}
    with pytest.raises(SpecError, match="lu-table-23"):
        experiment("lu-table-23")
    with pytest.raises(SpecError, match="lu-table-2"):
        experiment("lu-table-2").row("ViTT")


def test_the_lines_of_the_file_are_short() -> None:
    lines = (ROOT / "fpt/evidence/lu2021.yaml").read_text().splitlines()
    assert max(map(len, lines)) <= 118


def test_every_row_has_a_sweep_at_the_papers_scale() -> None:
    results = Results(ROOT / "runs/lu2021")
    feeds = {feed for each in results.plan for feed in each["feeds"].split(", ")}
    for entry in experiments().values():
        assert entry.name in feeds
        for row in entry.rows:
            served = [each["task"] for each in results.plan if row.is_served_by(each)]
            assert served, f"{entry.name}, {row.label}"
            assert set(row.paper) <= {*served, *(["cifar10"] if row.label == "FPT" else [])}, (
                f"{entry.name}, {row.label}"
            )


@pytest.mark.parametrize("study", ["laptop", "laptop-more", "minilm-2"])
def test_older_studies_lack_nothing(study: str) -> None:
    runs = load_runs(ROOT / "runs" / study, "published")
    assert set(runs["input_init"]) == {"orthogonal"}
    assert runs["threshold"].isna().all()
    assert isinstance(runs, pd.DataFrame)
