"""Figures: what they draw agrees with the runs, and each describes itself."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
import synthetic
from bs4 import BeautifulSoup
from made_cells import Made, cell, paper
from matplotlib.collections import QuadMesh
from seaborn.utils import relative_luminance

from fpt.claims.planes import plane_table, plane_tests
from fpt.models import ARMS
from fpt.papers import table
from fpt.results import StudyCells, contrast, find_study, load_runs
from fpt.results.arm import Arm
from fpt.results.baselines import floor
from fpt.results.runs import tidy
from fpt.show import by_rate, dots, learning_rate_figure, plane
from fpt.show.figures import budget_figure, cells_of
from fpt.show.html import CaptionedFigure
from fpt.show.pages.lu import attention_figure, spread_figure
from fpt.show.planes import crossing_figure, plane_figure
from fpt.show.plot import Plot
from fpt.sweeps import SweepSpec

Maker = Callable[[Path], Plot]
LABEL = {arm.letters: arm.label for arm in ARMS.values()}


def four(study: Path) -> dict[str, Arm]:
    """The four arms on digits."""
    return {row: cell.arm for row, cell in StudyCells(study).by_task(table("ours-arms"))["digits"].items()}


def _arms(study: Path, *rows: str) -> list[Arm]:
    return [four(study)[row] for row in rows]


MADE: dict[str, Maker] = {
    "learning_rate_figure": lambda study: learning_rate_figure(load_runs(study)),
    "budget_figure": lambda study: budget_figure(four(study)),
    "plane_figure": lambda study: plane_figure(*_arms(study, "FP", "UP")),
    "crossing_figure": lambda study: crossing_figure(*_arms(study, "UP", "FP")),
}
NAMED = ("plane-minilm", "FP", "UP", "")  # published
CHARTS: dict[str, Maker] = {
    "dots": lambda _: dots(NAMED[0], NAMED[1:3], "").figure,
    "by_rate": lambda _: by_rate(NAMED[0], NAMED[1:3], "").figure,
    "plane": lambda _: plane(*NAMED).figure,
}
FIGURES = MADE | CHARTS


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_has_data_runs_and_words_for_those_who_do_not_see_it(name: str, study: Path) -> None:
    figure = FIGURES[name](study)
    assert figure.data is not None
    assert figure.runs is not None
    assert min(len(figure.data), len(figure.runs)) > 1
    assert LABEL["FP"] in figure.get_label()
    assert LABEL["UP"] in figure.get_label()
    html = CaptionedFigure(figure, "What to see.")._repr_html_()
    assert "<svg " in html
    assert "What to see." in html


@pytest.mark.parametrize(("name", "arms"), [*zip(MADE, (6, 4, 2, 2), strict=True)])
def test_the_runs_behind_a_figure_are_those_of_its_arms(name: str, arms: int, study: Path) -> None:
    figure = MADE[name](study)
    assert figure.function == name
    assert figure.runs is not None
    assert len(figure.runs) == arms * 4 * 8  # rates x seeds
    assert set(figure.runs["study"]) == {"laptop"}
    assert set(figure.runs["commit"]) == {"00000000"}


def test_a_figure_without_results_says_so(tmp_path: Path) -> None:
    for figure in (learning_rate_figure(load_runs(synthetic.workspace(tmp_path))), budget_figure()):
        assert "<svg " in CaptionedFigure(figure, "What to see.")._repr_html_()
        assert "no results" in figure.get_label()


@pytest.mark.parametrize("name", CHARTS)
def test_text_is_nine_points_or_more_on_a_phone(name: str, study: Path) -> None:
    with CHARTS[name](study).on_a_phone() as figure:
        figure.draw_without_rendering()
        width = figure.get_size_inches()[0] * 96  # pixels
        shrunk = min(1.0, max(0.9, 343 / width))
        sizes = [text.get_fontsize() for text in figure.findobj(lambda each: hasattr(each, "get_fontsize"))]
        assert min(sizes) * shrunk >= 9


@pytest.mark.parametrize("name", CHARTS)
def test_a_single_panel_is_as_wide_as_the_page_and_has_a_drawing_for_a_phone(name: str, study: Path) -> None:
    page = BeautifulSoup(CaptionedFigure(CHARTS[name](study), "")._repr_html_(), "html.parser")
    wide, narrow = ([int(str(svg["width"])) for svg in page.select(f".fpt-{kind} svg")] for kind in ("wide", "narrow"))
    assert max(wide) > 700
    assert max(narrow) <= 343 / 0.85
    assert "none" in str(page.select_one(".fpt-narrow")["style"]), "a notebook, without the style, shows one of both"


def test_the_best_trivial_strategy_is_a_dotted_line(study: Path) -> None:
    axes, *_ = learning_rate_figure(load_runs(study)).axes
    (line,) = [line for line in axes.lines if line.get_label() == "trivial baseline"]
    assert set(line.get_ydata()) == {100 * floor("digits")}


def test_the_trivial_strategy_is_that_of_the_variant_that_was_run(study: Path) -> None:
    runs = load_runs(study).assign(task="listops", variant="released")
    (line,) = [line for line in learning_rate_figure(runs).axes[0].lines if line.get_label() == "trivial baseline"]
    assert set(line.get_ydata()) == {100 * floor("listops", "released")} != {100 * floor("listops")}


def test_the_runs_of_one_sweep_have_a_figure(study: Path) -> None:
    """As the notebook of a sweep draws it."""
    (arm, *_) = StudyCells(study).results.values()
    assert learning_rate_figure(tidy(arm, "runs")).axes[0].get_title() == "Digits"


def test_the_learning_rate_figure_shows_every_run(runs: pd.DataFrame) -> None:
    axes = learning_rate_figure(runs).axes[0]
    drawn = sum(len(collection.get_offsets()) for collection in axes.collections)
    assert drawn == len(runs)
    assert axes.get_xscale() == "log"
    outlined = [c for c in axes.collections if (c.get_edgecolor()[:, :3] == 0).all() and len(c.get_offsets())]
    assert sum(len(c.get_offsets()) for c in outlined) == runs["selected"].sum() == 6 * 8  # a run a seed of each sweep


def test_two_sweeps_of_one_arm_are_two_lines() -> None:
    """LoRA of rank 1 and of rank 8 differ in nothing that a setup or a label says."""
    runs = load_runs(find_study("lora-digits"), "published")
    axes = learning_rate_figure(runs).axes[0]
    lines = {line.get_label(): list(line.get_ydata()) for line in axes.lines}
    for name, words in {"LP": LABEL["LP"], "LP (rank 1)": f"{LABEL['LP']} (rank 1)"}.items():
        arm = runs[runs["name"] == name]
        assert lines[words] == pytest.approx(list(100 * arm.groupby("learning_rate")["test_accuracy"].mean()))


def test_where_no_trivial_strategy_is_known_the_legend_names_none(runs: pd.DataFrame) -> None:
    figure = learning_rate_figure(runs.assign(task="folder:mine"))
    assert "trivial baseline" not in [text.get_text() for text in figure.legends[0].texts]


def test_the_interval_beside_a_difference_is_that_of_the_contrast() -> None:
    """Full training of MiniLM collapses at 3e-3 after 200 steps: the interval goes by sign flips."""
    pair = cells_of("plane-minilm", ("FP", "UP"))
    first, second = pair.values()
    found, test = contrast("plane-minilm", "FP", "UP", at=3e-3, budget=200), plane_tests(first, second)[3e-3, 200]
    assert test.flips
    assert (test.in_points.value, *test.in_points.interval) == pytest.approx((found.value, *found.interval))
    row = plane_table(plane_tests(first, second)).set_index(["rate", "budget"]).loc[(3e-3, 200)]
    assert (100 * row["low"], 100 * row["high"]) == pytest.approx((found.low, found.high))


def test_diverged_runs_are_marked_not_dropped(tmp_path: Path) -> None:
    def cliff(spec: SweepSpec, rate: float, seed: int) -> float:
        return float("nan") if rate == 1e-1 and spec.trainable == "all" else synthetic.accuracy(spec, rate, seed)

    runs = load_runs(synthetic.finish(synthetic.workspace(tmp_path), accuracy=cliff))
    figure = learning_rate_figure(runs)
    assert sum(len(c.get_offsets()) for c in figure.axes[0].collections) == len(runs)
    assert "24 of 192 runs diverged" in figure.get_label()  # 3 unfrozen sweeps, 8 seeds each


def test_every_run_of_an_arm_may_diverge(tmp_path: Path) -> None:
    def never(spec: SweepSpec, rate: float, seed: int) -> float:
        return float("nan") if spec.trainable == "all" else synthetic.accuracy(spec, rate, seed)

    study = synthetic.finish(synthetic.workspace(tmp_path), accuracy=never)
    assert f"{LABEL['UR']}: no rate was eligible, 10.0% at 1e-4" in learning_rate_figure(
        load_runs(study)
    ).get_label().replace("digits, ", "")  # chance
    assert f"Digits, {LABEL['FP']}: " in budget_figure(four(study)).get_label()


def test_the_budget_figure_shows_what_is_tuned_at_each_budget(study: Path) -> None:
    arms = four(study)
    figure = budget_figure(arms, arms)
    assert len([axes for axes in figure.axes if axes.get_visible()]) == 2
    tested = {budget: 100 * arms["UP"].values(budget=budget).mean() for budget in arms["UP"].budgets}
    line = ", ".join(f"{mean:.1f}% after {budget}" for budget, mean in tested.items())
    assert f"Digits, {LABEL['UP']}: {line} steps" in figure.get_label()


def test_the_plane_shows_every_place_with_its_marks(study: Path) -> None:
    first, second = _arms(study, "FP", "UP")
    figure, table = plane_figure(first, second), plane_table(plane_tests(first, second))
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["1e-1", "1e-2", "1e-3", "1e-4"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["12", "25", "50", "100", "200", "400"]
    assert len(axes.texts) == len(table) == 24
    starred = [each for each in axes.texts if each.get_text().endswith("*")]
    assert len(starred) == (table["corrected"] < 0.05).sum()
    assert {each.get_fontweight() for each in starred} == {"bold"}
    hatched = [each for each in axes.collections if each.get_hatch()]
    assert len(hatched) == table["band"].sum()
    at_the_end = table[(table["rate"] == 1e-2) & (table["budget"] == 400)].iloc[0]
    assert f"at rate 1e-2: {axes.texts[6].get_text()}" in figure.get_label()
    assert axes.texts[11].get_text() == f"{100 * at_the_end['mean']:+.1f}*"


def test_a_heavy_line_where_the_winner_changes_between_two_budgets(tmp_path: Path) -> None:
    """At 1e-3 the unfrozen arm is made to trail until half of the steps, and to lead from then on."""
    study = synthetic.finish(synthetic.workspace(tmp_path))
    for path in study.glob("digits.unfrozen-pretrained*/curves.parquet"):
        curves = pd.read_parquet(path)
        early = curves["step"] < 300
        curves["test_accuracy"] = curves["test_accuracy"].where(~early, curves["test_accuracy"] / 2)
        synthetic.rewrite(path, curves)
    figure = plane_figure(*_arms(study, "FP", "UP"))
    lines = [line.get_xydata().tolist() for line in figure.axes[0].lines]
    assert lines == [[[5.0, 2.0], [5.0, 3.0]]]  # between 200 and 400 steps, in the third row from the top
    words = str(crossing_figure(*_arms(study, "UP", "FP")).get_label())
    assert words.endswith(f"{LABEL['UP'].capitalize()}: overtakes between 200 and 400 steps.")


def test_the_crossing_shows_every_seed_and_a_sign_a_budget(study: Path) -> None:
    figure = crossing_figure(*_arms(study, "UP", "FP"))
    right = figure.axes[1]
    assert [each.get_text() for each in right.texts] == ["+"] * 6
    dots = [line for line in right.lines if line.get_marker() == "."]
    assert [len(line.get_xdata()) for line in dots] == [8] * 6
    assert f"{LABEL['UP'].capitalize()}: ahead at 12, 25, 50, 100, 200, 400 steps." in figure.get_label()


def test_attention_maps_share_one_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    toy = paper(["a", "b"], "attention")
    monkeypatch.setattr("fpt.papers.papers", lambda: {"toy": toy})
    made = {"a": Made(attention=(50, 30, 33)), "b": Made(attention=(10, 10, 33))}
    figure = attention_figure([cell(toy.tables["toy-table"], *each).arm for each in made.items()], "words")
    meshes = [axes.collections[0] for axes in figure.axes[:2]]
    (low, high), other = (mesh.get_clim() for mesh in meshes)
    assert (low, high) == other
    assert low == 0
    assert high == pytest.approx(0.9, abs=0.02)  # what row b leaves to the token that it does not need
    assert len(figure.axes[0].collections[1].get_offsets()) == 1
    assert figure.data is not None
    assert set(figure.data["row"]) == {"FP", "FR"}


def test_text_on_colours_can_be_read(study: Path) -> None:
    """At least 4.5:1, by WCAG's formula."""
    axes = plane_figure(*_arms(study, "FP", "UP")).axes[0]
    (mesh,) = [each for each in axes.collections if isinstance(each, QuadMesh)]
    light = [sorted(map(relative_luminance, pair)) for pair in
             zip((text.get_color() for text in axes.texts), mesh.get_facecolor(), strict=True)]  # fmt: skip
    assert min((high + 0.05) / (low + 0.05) for low, high in light) >= 4.4


def test_models_whose_weights_are_here_have_a_panel_of_their_spread_and_others_none() -> None:
    figure = spread_figure(("tiny-lm", "gpt2"))  # no weights of gpt2 here
    assert [axes.get_title() for axes in figure.axes if axes.get_visible()] == ["tiny-lm"]
    assert "tiny-lm, attention weight: 0." in figure.get_label()
    assert "no results" in spread_figure(("gpt2",)).get_label()


def test_two_variants_of_one_arm_have_names_and_colours_of_their_own() -> None:
    pair = cells_of("lora-digits", ("LP", "LP (rank 1)"))
    names = [LABEL["LP"], f"{LABEL['LP']} (rank 1)"]
    figure = plane_figure(*pair.values())
    low, high = (tuple(figure.axes[0].collections[0].cmap(end)) for end in (0.0, 1.0))
    assert low != high
    assert f"of {names[0]} minus {names[1]} in points" in figure.get_label()
    crossing = crossing_figure(*pair.values())
    assert [text.get_text() for text in crossing.legends[0].get_texts()] == names
    assert crossing.data is not None
    assert set(crossing.data["arm"]) >= set(names)
    assert [f"Digits, {name}: " in budget_figure(pair).get_label() for name in names] == [True, True]
