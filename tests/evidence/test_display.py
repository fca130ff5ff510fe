"""Figures, tables and pages: what they say agrees with the runs, and nothing is without alt text."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
import synthetic
from matplotlib.figure import Figure

from fpt.evidence import (
    Picture,
    Table,
    alt_text,
    beside_paper,
    beside_published,
    budget_figure,
    budget_table,
    curves_figure,
    difference_figure,
    gain_figure,
    headline,
    learning_rate_figure,
    load_curves,
    load_runs,
    paper_table,
    protocol_table,
    summary,
    table_one,
)
from fpt.sweeps import SweepSpec

Maker = Callable[[Path], Figure]
FIGURES: dict[str, Maker] = {
    "learning rate": lambda study: learning_rate_figure(load_runs(study), {"digits": 0.1}),
    "curves": lambda study: curves_figure(load_curves(study)),
    "budget": lambda study: budget_figure(load_curves(study)),
    "gain": lambda study: gain_figure(load_runs(study)),
    "difference": lambda study: difference_figure(headline(load_runs(study))),
}


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("complete", [True, False])
def test_figures_describe_themselves_with_and_without_results(
    name: str, complete: bool, study: Path, tmp_path: Path
) -> None:
    figure = FIGURES[name](study if complete else synthetic.workspace(tmp_path))
    assert len(alt_text(figure)) > 40
    assert '<img src="data:image/png;base64,' in Picture(figure, "What to see.")._repr_html_()
    if complete and name != "difference":
        assert "frozen pretrained" in alt_text(figure)


def test_one_learning_rate_has_a_figure_without_a_warning(runs: pd.DataFrame) -> None:
    one = runs[(runs["label"] == runs["label"].iloc[0]) & runs["selected"].astype(bool)]
    assert one["learning_rate"].nunique() == 1
    low, high = learning_rate_figure(one).axes[0].get_xlim()
    assert low < one["learning_rate"].iloc[0] < high


def test_the_learning_rate_figure_shows_every_run(study: Path, runs: pd.DataFrame) -> None:
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
    assert "9 of 168 runs diverged" in alt_text(figure)  # 3 unfrozen sweeps, 3 selection seeds each
    assert summary(runs)["diverged runs"].sum() == 9


def test_every_run_of_an_arm_may_diverge(tmp_path: Path) -> None:
    def never(spec: SweepSpec, rate: float, seed: int) -> float:
        return float("nan") if spec.trainable == "all" else synthetic.accuracy(spec, rate, seed)

    study = synthetic.finish(synthetic.workspace(tmp_path), accuracy=never)
    assert "no learning rate was eligible" in alt_text(learning_rate_figure(load_runs(study)))
    assert "unfrozen random: 0.0% at rate" in alt_text(budget_figure(load_curves(study)))
    table = summary(load_runs(study)).set_index("arm")
    assert table.loc["UP", "learning rate"] == "none eligible"
    assert table.loc["UP", "test accuracy"] == "-"
    for figure in (curves_figure(load_curves(study)), difference_figure(headline(load_runs(study)))):
        Picture(figure, "What to see.")._repr_html_()


def test_a_panel_for_every_task(tmp_path: Path) -> None:
    study = synthetic.STUDY.replace("{task: digits, arm: [frozen-p", "{task: [digits, bit-xor], arm: [frozen-p")
    runs = load_runs(synthetic.finish(synthetic.workspace(tmp_path, study=study)))
    assert [axes.get_title() for axes in learning_rate_figure(runs).axes] == ["digits", "bit-xor"]
    assert list(table_one(runs).frame.columns) == ["arm", "digits", "bit-xor"]


def test_table_1_as_the_paper_prints_it() -> None:
    table = paper_table().frame.set_index("arm")
    assert table.loc["unfrozen pretrained", "CIFAR-10 LRA"] == "67.8 ± 0.3"
    assert table.loc["frozen random", "ListOps"] == "38.9 ± 0.3"
    bold = paper_table().bold
    assert bold is not None
    assert list(bold["CIFAR-10"]) == [False, False, True, False]
    assert not bold["arm"].any()


def test_our_table_1_is_the_mean_and_its_standard_error(runs: pd.DataFrame) -> None:
    chosen = runs[(runs["label"] == "UP") & (runs["stage"] == "confirmation") & runs["selected"]]["test_accuracy"]
    expected = f"{100 * chosen.mean():.1f} ± {100 * chosen.std() / 8**0.5:.1f}"
    assert table_one(runs).frame.set_index("arm").loc["unfrozen pretrained", "digits"] == expected
    assert list(beside_paper(runs).frame.columns)[:3] == ["arm", "digits (here)", "ListOps (paper)"]


def test_an_arm_that_gains_in_its_second_half_still_rises() -> None:
    arms = {"FP": [0.2, 0.5, 0.7, 0.8], "UP": [0.2, 0.6, 0.6, 0.6]}
    rows = [
        {"stage": "confirmation", "selected": True, "label": label, "step": 100 * (place + 1), "seed": seed}
        | {"validation_accuracy": value + 0.01 * seed * (place == 3 if label == "UP" else place)}
        for label, values in arms.items()
        for place, value in enumerate(values)
        for seed in (-1, 0, 1)
    ]
    table = budget_table(pd.DataFrame(rows)).set_index("arm")
    assert list(table.loc["FP", ["after 25%", "after 50%", "after 100%"]]) == ["20.0", "50.0", "80.0"]
    assert list(table["gain of the second half"]) == ["+30.0", "+0.0"]
    assert list(table["still rises"]) == ["yes", "not shown"]
    few = budget_table(pd.DataFrame([row for row in rows if row["step"] == 400 and row["seed"] < 1])).iloc[0]
    assert list(few)[1:] == ["-", "-", "78.5", "-", "-", "not shown"]


def test_tables_of_no_runs(tmp_path: Path) -> None:
    study = synthetic.workspace(tmp_path)
    assert summary(load_runs(study)).empty
    assert budget_table(load_curves(study)).empty
    assert list(table_one(load_runs(study)).frame.columns) == ["arm"]
    assert beside_published(study).empty


def test_yours_beside_the_published(tmp_path: Path) -> None:
    study = synthetic.finish(synthetic.workspace(tmp_path), inside="published")
    assert set(beside_published(study)["your accuracy"]) == {"-"}

    def lower(spec: SweepSpec, rate: float, seed: int) -> float:
        return synthetic.accuracy(spec, rate, seed) - 0.02

    synthetic.finish(study, accuracy=lower)
    table = beside_published(study)
    assert set(table["difference"]) == {"-2.0"}
    assert list(table["your rate"]) == list(table["published rate"])


def test_html_is_escaped_and_a_picture_needs_words() -> None:
    html = Table(pd.DataFrame({"<b>": ["a & b", None]}), caption="x < y")._repr_html_()
    assert "&lt;b&gt;" in html
    assert "a &amp; b" in html
    assert "x &lt; y" in html
    with pytest.raises(ValueError, match="alt text"):
        Picture(Figure(), "no words")._repr_html_()


def test_a_protocol_row_for_every_recipe_that_was_published(study: Path) -> None:
    root = study.parents[1]
    assert protocol_table(root).empty  # the study's results are the reader's own
    shutil.copytree(study, study / "published", ignore=shutil.ignore_patterns("published", "study.yaml"))
    table = protocol_table(root)
    assert table.columns.tolist()[:3] == ["study", "model", "task"]
    assert len(table) == len(table.drop_duplicates())
    row = table.iloc[0]
    assert (row["study"], row["model"], row["task"], row["steps"]) == ("laptop", "tiny-lm", "digits", "400")
    assert row["seeds"] == "3 + 8"
