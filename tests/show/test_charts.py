"""The figures that pages ask for by the names of arms: what they draw is what `contrast` and `level` say."""

from collections.abc import Callable

import pytest

from fpt.errors import SpecError
from fpt.models import ARMS
from fpt.results import baseline, contrast, known_scores, level
from fpt.show import by_budget, by_rate, dots, plane, plot
from fpt.show.html import CaptionedFigure

STUDY = "plane-minilm"
FIGURES: dict[str, Callable[[], CaptionedFigure]] = {
    "dots": lambda: dots(STUDY, ["FP", "UP"], "What to see."),
    "by_rate": lambda: by_rate(STUDY, ["FP", "UP"], "What to see."),
    "by_budget": lambda: by_budget(STUDY, "FP", "UP", "What to see."),
    "plane": lambda: plane(STUDY, "FP", "UP", "What to see."),
}


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_has_data_runs_and_words_for_those_who_do_not_see_it(name: str) -> None:
    shown = FIGURES[name]()
    assert shown.figure.data is not None
    assert shown.figure.runs is not None
    assert min(len(shown.figure.data), len(shown.figure.runs)) > 1
    assert "frozen pretrained" in shown.figure.get_label()
    assert "unfrozen pretrained" in shown.figure.get_label()
    assert "What to see." in shown._repr_html_()


@pytest.mark.parametrize("name", FIGURES)
def test_text_is_nine_points_or_more_on_a_phone(name: str) -> None:
    figure = FIGURES[name]().figure
    figure.draw_without_rendering()
    width = figure.get_size_inches()[0] * 96  # pixels
    shrunk = min(1.0, max(0.9, 343 / width))
    sizes = [text.get_fontsize() for text in figure.findobj(lambda each: hasattr(each, "get_fontsize"))]
    assert min(sizes) * shrunk >= 9


def test_baselines_are_lines() -> None:
    axes = FIGURES["dots"]().figure.axes[0]
    assert [line.get_xdata()[0] for line in axes.lines if str(line.get_label()).startswith("linear")] == [
        baseline("mnist", "linear classifier")
    ]


def test_no_baseline_is_left_out_however_many_there_are() -> None:
    names = list(known_scores("listops-short"))[:4]
    axes = dots("laptop-rothermel2021", ["FP"], "", task="listops-short", baselines=names).figure.axes[0]
    assert len(names) == 4
    assert [str(line.get_label()).split(",")[0] for line in axes.lines if "%" in str(line.get_label())] == names


def test_an_arm_has_its_colour() -> None:
    figure = by_rate(STUDY, ["FP", "UP"], "What to see.").figure
    lines = {str(each.get_label()): each.lines[0].get_color() for each in figure.axes[0].containers}
    assert lines == {
        ARMS[f"{each}-pretrained"].label: ARMS[f"{each}-pretrained"].colour for each in ("frozen", "unfrozen")
    }


def test_the_data_of_each_figure_are_those_of_its_arms_rates_and_budgets() -> None:
    data = {name: make().figure.data for name, make in FIGURES.items()}
    seeds = data["dots"].dropna(subset="seed").groupby("arm")["accuracy"]
    assert dict(seeds.mean()) == pytest.approx({name: level(STUDY, name).mean for name in ("FP", "UP")})
    drawn, at = data["by_rate"].set_index(["arm", "rate"]).loc[("UP", 1e-3)], level(STUDY, "UP", at=1e-3)
    assert (drawn["accuracy"], drawn["low"], drawn["high"]) == pytest.approx((at.mean, at.low, at.high))
    tuned = contrast(STUDY, "FP", "UP")
    last = data["by_budget"].iloc[-1]
    assert tuple(last[["points", "low", "high"]]) == pytest.approx((tuned.mean, tuned.low, tuned.high))
    place = data["plane"].set_index(["rate", "budget"])["mean"]
    budget = place.index.get_level_values("budget").max()
    assert place[1e-3, budget] == pytest.approx(contrast(STUDY, "FP", "UP", at=1e-3, budget=budget).mean)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("FP", "frozen pretrained"),
        ("FR (layers 1)", "frozen random (1 layer)"),
        ("FR (layers 2, warm-up 0.1)", "frozen random (2 layers, warm-up 0.1)"),
        ("FR fixed", "frozen random, fixed"),
        ("fpt-attention-random (layers 1)", "frozen random, attention trained too (1 layer)"),
        ("output-pretrained", "output-pretrained"),
        ("FR (lstm-released, layers 12, residual True)", "frozen random (LSTM-released, 12 layers, residual)"),
    ],
)
def test_an_arm_is_named_in_words(name: str, words: str) -> None:
    assert plot.arm_words(name) == words


def test_what_is_not_there_is_refused() -> None:
    with pytest.raises(SpecError, match="arm with results in the study plane-minilm"):
        dots(STUDY, ["FP", "XP"], "")
    with pytest.raises(SpecError, match="at least one arm"):
        by_rate(STUDY, [], "")
    with pytest.raises(SpecError, match="baseline of mnist"):
        dots(STUDY, ["FP"], "", baselines=["a coin"])


def test_variants_of_one_arm_have_its_colour_and_another_line() -> None:
    looks = plot.looks_of(["UP", "LP", "LP (rank 1)", "LP (rank 2)"])
    assert looks["LP"]["color"] == looks["LP (rank 1)"]["color"] != looks["UP"]["color"]
    assert len({look.get("linestyle") for name, look in looks.items() if name != "UP"}) == 3
