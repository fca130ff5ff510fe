"""Figures: what they draw agrees with the runs, and each describes itself."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import synthetic
from matplotlib.figure import Figure

from fpt.evidence import (
    budget_figure,
    difference_figure,
    learning_rate_figure,
    load_curves,
    load_runs,
    spread_figure,
)
from fpt.evidence.show.html import Picture
from fpt.evidence.show.strips import attention_figure, strip_figure
from fpt.evidence.stats import paired
from fpt.evidence.verdicts import Part, Verdict
from fpt.sweeps import SweepSpec

Maker = Callable[[Path], Figure]
FIGURES: dict[str, Maker] = {
    "learning rate": lambda study: learning_rate_figure(load_runs(study), {"digits": 0.1}),
    "budget": lambda study: budget_figure(load_curves(study)),
}


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("complete", [True, False])
def test_figures_describe_themselves_with_and_without_results(
    name: str, complete: bool, study: Path, tmp_path: Path
) -> None:
    figure = FIGURES[name](study if complete else synthetic.workspace(tmp_path))
    assert '<img src="data:image/svg+xml;base64,' in Picture(figure, "What to see.")._repr_html_()
    assert ("frozen pretrained" in figure.get_label(), "no results" in figure.get_label()) == (complete, not complete)


def test_the_spread_of_the_weights_that_are_here_and_of_none() -> None:
    figure = spread_figure(("tiny-lm", "gpt2"))  # no weights of gpt2 here
    assert [axes.get_title() for axes in figure.axes if axes.get_visible()] == ["tiny-lm"]
    assert "tiny-lm, attention weight: 0." in figure.get_label()
    assert "no results" in spread_figure(("gpt2",)).get_label()


def test_one_learning_rate_has_a_figure_without_a_warning(runs: pd.DataFrame) -> None:
    one = runs[(runs["label"] == runs["label"].iloc[0]) & runs["selected"].astype(bool)]
    assert one["learning_rate"].nunique() == 1
    low, high = learning_rate_figure(one).axes[0].get_xlim()
    assert low < one["learning_rate"].iloc[0] < high


def test_the_learning_rate_figure_shows_every_run(runs: pd.DataFrame) -> None:
    axes = learning_rate_figure(runs).axes[0]
    drawn = sum(len(collection.get_offsets()) for collection in axes.collections)
    assert drawn == len(runs)
    assert axes.get_xscale() == "log"


def test_diverged_runs_are_marked_not_dropped(tmp_path: Path) -> None:
    def cliff(spec: SweepSpec, rate: float, seed: int) -> float:
        return float("nan") if rate == 1e-1 and spec.trainable == "all" else synthetic.accuracy(spec, rate, seed)

    runs = load_runs(synthetic.finish(synthetic.workspace(tmp_path), accuracy=cliff))
    figure = learning_rate_figure(runs)
    assert sum(len(c.get_offsets()) for c in figure.axes[0].collections) == len(runs)
    assert "9 of 168 runs diverged" in figure.get_label()  # 3 unfrozen sweeps, 3 selection seeds each


def test_every_run_of_an_arm_may_diverge(tmp_path: Path) -> None:
    def never(spec: SweepSpec, rate: float, seed: int) -> float:
        return float("nan") if spec.trainable == "all" else synthetic.accuracy(spec, rate, seed)

    study = synthetic.finish(synthetic.workspace(tmp_path), accuracy=never)
    assert "no learning rate was eligible" in learning_rate_figure(load_runs(study)).get_label()
    assert "unfrozen random: 0.0% at rate" in budget_figure(load_curves(study)).get_label()


@pytest.mark.parametrize(("evaluations", "budgets"), [(1, 1), (2, 2), (3, 2), (4, 3)])
def test_a_budget_before_the_first_evaluation_has_no_point(evaluations: int, budgets: int, tmp_path: Path) -> None:
    """With 2 or 3 evaluations, the notebook's default, nothing is known after a quarter of the steps."""
    study = synthetic.STUDY.replace("steps: 400,", f"steps: 400, evaluations: {evaluations},")
    words = str(budget_figure(load_curves(synthetic.finish(synthetic.workspace(tmp_path, study=study)))).get_label())
    assert words.count("digits, frozen pretrained: ") == 1
    line = words.partition("digits, frozen pretrained: ")[2].partition(". digits")[0]
    assert line.count("% at rate 1e-2") == budgets
    assert line.endswith("after 100%")


def test_differences_show_every_seed_and_the_word() -> None:
    first, second = pd.Series([0.8, 0.9, 0.85, 0.86]), pd.Series([0.7, 0.75, 0.77, 0.8])
    part = Part("digits", "UP - FP", paired(first, second), "supported")
    verdict = Verdict("P-04", "supported", "laptop", parts=(part, Part("digits", "", paired(first, first[:1]), "")))
    figure = difference_figure([verdict])
    assert "P-04 digits: UP - FP: +9.8 points, supported" in figure.get_label()
    assert sum(len(c.get_offsets()) for c in figure.axes[0].collections if c.get_offsets().shape[0] > 1) == 4
    assert "no results" in difference_figure([]).get_label()


def test_strips_have_a_panel_a_task_and_mark_what_was_not_reached() -> None:
    seeds = {"task": "Digits", "row": "FPT", "reading": "tuned", "value": [10.0, 20.0], "reached": [True, False]}
    other = {"task": "Bit XOR", "row": "random", "reading": "at the paper's rate", "value": [5.0, 6.0], "reached": True}
    figure = strip_figure(pd.concat([pd.DataFrame(seeds), pd.DataFrame(other)]), "steps", steps=True)
    assert [axes.get_title() for axes in figure.axes] == ["Digits", "Bit XOR"]
    assert [[label.get_text() for label in axes.get_yticklabels()] for axes in figure.axes] == [["FPT"], ["random"]]
    assert "Digits, FPT, tuned: 15.0 (1 never reached)" in figure.get_label()
    drawn = [sum(len(dots.get_offsets()) for dots in axes.collections) for axes in figure.axes]
    assert drawn == [2, 2]


def test_attention_maps_share_one_scale() -> None:
    places = pd.MultiIndex.from_product([[2, 3], [0, 1, 2]], names=["query", "key"])
    maps = pd.DataFrame({"weight": np.linspace(0, 0.5, 6), "needed": [True, False] * 3}, index=places)
    figure = attention_figure({"FPT": maps, "random": maps.assign(weight=0.1)}, "words")
    meshes = [axes.collections[0] for axes in figure.axes[:2]]
    assert [mesh.get_clim() for mesh in meshes] == [(0, 0.5)] * 2
    assert len(figure.axes[0].collections[1].get_offsets()) == 3
