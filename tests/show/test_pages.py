"""Figures and tables that pages ask for by the names of arms, or of pairs of model and task: what they show is what
`contrast` and `level` say."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import synthetic
from made_cells import Made, cell, paper
from small_studies import workspace

from fpt.errors import SpecError
from fpt.models import ARMS
from fpt.results import StudyCells, arms_of, baseline, contrast, floor, known_scores, level
from fpt.results.rate_ratio import last_losses, rate_ratio
from fpt.results.runs import rate_text
from fpt.results.texts import tried
from fpt.show import PAIRS, Place, by_rate, dots, explorer, plane, plot, setups
from fpt.show.figures import cells_of
from fpt.show.pages.advice import NAME, rates_on_texts, rates_table
from fpt.show.pages.lora import rate_ratios_figure, valleys, valleys_figure
from fpt.show.pages.rothermel import best_of
from fpt.show.places import NONE
from fpt.show.plot import LEGEND_LINE, nothing
from fpt.show.reference import newest
from fpt.sweeps.words import legends

STUDY = "plane-minilm"
SEEN = "What to see."
LABEL = {arm.letters: arm.label for arm in ARMS.values()}


def test_baselines_are_lines() -> None:
    axes = dots(STUDY, ["FP", "UP"], SEEN).figure.axes[0]
    assert [line.get_xdata()[0] for line in axes.lines if str(line.get_label()).startswith("linear")] == [
        baseline("mnist", "linear classifier")
    ]


def test_no_baseline_is_left_out_however_many_there_are() -> None:
    names = list(known_scores("listops-short"))[:4]
    axes = dots("laptop-rothermel2021", ["FP"], "", task="listops-short", baselines=names).figure.axes[0]
    assert len(names) == 4
    assert [str(line.get_label()).split(",")[0] for line in axes.lines if "%" in str(line.get_label())] == names


def test_an_arm_has_its_colour() -> None:
    figure = by_rate(STUDY, ["FP", "UP"], SEEN).figure
    lines = {str(each.get_label()): each.lines[0].get_color() for each in figure.axes[0].containers}
    assert lines == {
        ARMS[f"{each}-pretrained"].label: ARMS[f"{each}-pretrained"].colour for each in ("frozen", "unfrozen")
    }


def test_the_data_of_each_figure_are_those_of_its_arms_rates_and_budgets() -> None:
    seeds = dots(STUDY, ["FP", "UP"], SEEN).figure.data.dropna(subset="seed").groupby("arm")["accuracy"]
    assert dict(seeds.mean()) == pytest.approx({name: level(STUDY, name).mean for name in ("FP", "UP")})
    drawn, at = (
        by_rate(STUDY, ["FP", "UP"], SEEN).figure.data.set_index(["arm", "rate"]).loc[("UP", 1e-3)],
        level(STUDY, "UP", at=1e-3),
    )
    assert (drawn["accuracy"], drawn["low"], drawn["high"]) == pytest.approx((at.mean, at.low, at.high))
    place = plane(STUDY, "FP", "UP", SEEN).figure.data.set_index(["rate", "budget"])["mean"]
    budget = place.index.get_level_values("budget").max()
    assert place[1e-3, budget] == pytest.approx(contrast(STUDY, "FP", "UP", at=1e-3, budget=budget).mean)


def fields_of(study: str, *names: str, task: str = "") -> list[dict[str, object]]:
    return [arm.fields for arm in cells_of(study, names, task).values()]


def test_a_legend_tells_the_arms_of_a_figure_apart_and_leaves_out_what_all_share() -> None:
    """Names of arms are never read: which fields differ is what their records say."""
    wide = fields_of("lora-text", "LP (tiny-lm-256)", "UP (tiny-lm-256)")
    assert legends(wide) == [LABEL["LP"], LABEL["UP"]]
    both = legends(fields_of("lora-digits", "LP", "LP (rank 1)"))
    assert both == [LABEL["LP"], f"{LABEL['LP']} (rank 1)"]
    fixed = legends(fields_of("scales", "FR", "FR fixed"))
    assert fixed[0] == LABEL["FR"] != fixed[1]
    assert fixed[1].startswith(LABEL["FR"])
    deep = fields_of("laptop-lu2021", "FR", "FR (lstm, width 128, layers 12, residual True)", task="digits")
    assert all(each in legends(deep)[1] for each in ("LSTM", "12 layers", "residual"))
    assert "True" not in legends(deep)[1]


LAPTOP = Place("laptop", "digits")
TASKS = "laptop-rothermel2021"  # a study of several
REFUSED = [
    ("arm with results in the study plane-minilm", lambda: dots(STUDY, ["FP", "XP"], "")),
    ("baseline of mnist", lambda: dots(STUDY, ["FP"], "", baselines=["a coin"])),
    ("'UX'", lambda: LAPTOP.signs("FP", "UX")),
    ("arm with results in the study plane-minilm 'LP'", lambda: valleys("plane-minilm", ["LP", "UP"], "")),
    ("name one as `task`", lambda: dots(TASKS, ["FP"], "")),
]


@pytest.mark.parametrize(("named", "show"), REFUSED)
def test_what_is_not_there_is_refused(named: str, show: Callable[[], object]) -> None:
    with pytest.raises(SpecError, match=named):
        show()


def test_variants_of_one_arm_have_its_colour_and_another_line() -> None:
    full, lora, *ranks = plot.looks_of(fields_of("lora-text", "UP", "LP", "LP (rank 2)", "LP (rank 32)"))
    assert {look["color"] for look in ranks} == {lora["color"]} != {full["color"]}
    assert len({look["linestyle"] for look in (lora, *ranks)}) == 3


def test_no_two_arms_of_a_figure_look_alike_in_grey() -> None:
    """Marker and line tell them apart where colours do not."""
    for names in (("FP", "FR", "UP", "UR"), ("FP", "fpt-attention-pretrained", "fpt-feed-forward-pretrained", "UP")):
        looks = plot.looks_of(fields_of("laptop-lu2021", *names, task="digits"))
        assert len({(look["marker"], str(look["linestyle"])) for look in looks}) == len(names)


# --- pairs of model and task, a row each

ROWS = {"MNIST": Place("plane-mnist", "mnist"), "SmolLM2": Place("smollm2", "mnist", "layers 4")}


def test_an_arm_stands_with_its_level_and_its_best_rate() -> None:
    shown = best_of(ROWS, "caption").frame.set_index("pair")
    frozen = level("plane-mnist", "FP")
    assert shown.loc["MNIST", f"{LABEL['FP']}, %"].split(" (")[0] == f"{frozen.mean:.1f}"
    assert shown.loc["SmolLM2", f"{LABEL['UR']}, %"].endswith("(1e-4)")


# --- the rates to try, signs over a map, accuracy over compute

LISTS = """
name: Lists as they were released
defaults: {backbone: tiny-lm, compute_type: float32, steps: 400, learning_rates: [1e-4, 1e-3, 1e-2], seeds: [0, 1, 2]}
sweeps:
  - {task: listops, variant: released, arm: [frozen-pretrained, unfrozen-pretrained]}
"""


def test_what_is_to_beat_is_counted_on_the_variant_that_was_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    synthetic.finish(synthetic.workspace(tmp_path, "lists", LISTS), "published")
    released = 100 * floor("listops", "released")
    assert released != 100 * floor("listops")
    lines = by_rate("lists", ["FP", "UP"], SEEN).figure.axes[0].lines
    assert [line.get_ydata()[0] for line in lines if line.get_label() == "trivial baseline"] == [released]
    (cells,) = setups([StudyCells(tmp_path / "runs/lists", "published")]).values()
    assert f'"floor": {released:.2f}' in explorer({("lists", ""): cells})._repr_html_()


def test_every_pair_has_both_arms():
    for place in PAIRS.values():
        assert set(place.arms("FP", "UP", "FR", "UR")) == {"FP", "UP", "FR", "UR"}


def test_best_rates_stand_beside_those_of_an_eighth_of_the_steps():
    pixel, pilot = "digits by pixel, tiny-lm, 1,500", {NAME: "a pilot", "FP": "1e-3"}
    table = rates_table({pixel: PAIRS[pixel]}, ("FP", "LP"), "", [pilot]).frame
    frozen = LABEL["FP"]
    assert table.to_dict("records") == [
        {NAME: pixel, "layers": "4", "batch": "8", frozen: "3e-3 (1e-2)"},
        {NAME: "a pilot", "layers": NONE, "batch": NONE, frozen: "1e-3"},
    ]
    place = PAIRS[pixel]
    assert [rate_text(place.level("FP", budget=steps).rate) for steps in (1500, 94)] == ["3e-3", "1e-2"]


def test_rates_on_texts_are_those_that_validation_chose() -> None:
    found = {setting: ways["WP"] for setting, ways in tried("banking77").items() if "WP" in ways}
    rows = [row for row in rates_on_texts("banking77", "MiniLM") if "UP" in row]
    assert [row["UP"] for row in rows] == [rate_text(each.rate) for each in found.values()]
    assert [row["batch"] for row in rows] == ["32"] * len(found)


def test_signs_are_those_of_the_contrasts():
    found = LAPTOP.signs("FP", "UP")
    budgets = arms_of("laptop")["digits", "FP"].budgets
    assert all(len(row) == len(budgets) for row in found.values())
    for rate, row in found.items():
        for budget, sign in zip(budgets[-2:], row[-2:], strict=True):
            each = contrast("laptop", "FP", "UP", at=rate, budget=budget)
            assert sign == ("0" if each.open else "+" if each.mean > 0 else "-")


def test_the_newest_result_has_a_day(tmp_path, monkeypatch):
    assert newest().split()[-1].isdigit()
    workspace(tmp_path, notebooks=False)
    monkeypatch.chdir(tmp_path)
    assert newest() == ""


def test_budgets_at_which_an_arm_leads_are_those_whose_interval_is_above_0() -> None:
    place = PAIRS["MNIST, tiny-lm, 3,000"]
    frozen, trained = place.leads_at("FP", "UP"), place.leads_at("UP", "FP")
    assert 375 in frozen
    assert 3000 in trained
    assert not {*frozen} & {*trained}


def test_p_of_a_cell_is_corrected_for_all_cells_of_its_map() -> None:
    place = PAIRS["MNIST, tiny-lm, 3,000"]
    corrected = place.corrected("FP", "UP")
    alone = {cell: place.contrast("FP", "UP", at=cell[0], budget=cell[1]).p for cell in corrected}
    least = min(alone, key=lambda cell: alone[cell])
    assert corrected[least] == pytest.approx(len(alone) * alone[least])  # Holm's first step
    assert all(alone[cell] <= corrected[cell] <= 1 for cell in alone)
    assert alone[1e-3, 3000] < 0.05 < corrected[1e-3, 3000]


# --- valleys: loss over the rate, and the interval of the ratio of two best rates

ARM = {"LP": "lora", "UP": "unfrozen"}
GRID = dict.fromkeys((float(rate) for rate in 10.0 ** np.arange(-4.5, -1.4, 0.25)), 80.0)


@pytest.fixture
def cells(monkeypatch):
    """LoRA best at 2e-3, full training at 1e-3."""
    toy = paper(["LP", "UP"])
    monkeypatch.setattr("fpt.papers.papers", lambda: {"toy": toy})
    places = {"LP": -2.7, "UP": -3.0}
    made = {
        name: Made(GRID, best=1e-3, beyond=False, losses=(place, 1.5), fields={"arm": f"{ARM[name]}-pretrained"})
        for name, place in places.items()
    }
    return {name: cell(toy.tables["toy-table"], name, each).arm for name, each in made.items()}


def test_both_lowest_points_and_the_interval_of_their_ratio(cells) -> None:
    figure = valleys_figure(cells)
    found = rate_ratio(*(last_losses(each) for each in cells.values()))
    (axes,) = figure.axes[:1]
    diamonds = [line.get_xdata()[0] for line in axes.lines if line.get_marker() == "D" and len(line.get_xdata()) == 1]
    assert diamonds == pytest.approx([found.first.rate, found.second.rate])
    assert diamonds == pytest.approx([2e-3, 1e-3], rel=0.05)
    assert found.cell in figure.get_label()
    assert f"{LABEL['LP']} {found.first.words};" in figure.get_label(), "two digits, as on the page"
    texts = [text.get_text() for legend in figure.legends for text in legend.texts]
    assert found.cell in " ".join(texts).replace("\n", " ")
    assert max(len(line) for text in texts for line in text.splitlines()) <= LEGEND_LINE, "a phone shows it"
    assert figure.data is not None
    assert len(figure.data) == 2 * len(GRID)
    lowest = figure.data.loc[figure.data.groupby("arm")["loss"].idxmin()]
    assert (lowest["low"] < lowest["loss"]).all()
    assert (lowest["loss"] < lowest["high"]).all()


def test_arms_that_diverged_at_every_rate_have_no_valleys(cells, monkeypatch) -> None:
    lost = last_losses(cells["LP"])
    lost.iloc[0] = np.nan
    monkeypatch.setattr("fpt.show.pages.lora.last_losses", lambda cell: lost)
    assert valleys_figure(cells).get_label() == nothing().get_label()


def test_ratios_stand_in_rows_with_their_intervals_beside_ten_and_the_theory(cells) -> None:
    figure = rate_ratios_figure({"width 128": cells, "other way": dict(reversed(cells.items()))})
    found = rate_ratio(*(last_losses(each) for each in cells.values()))
    assert figure.data is not None
    table = figure.data.set_index("row")
    drawn = table.loc["width 128", ["ratio", "low", "high"]].tolist()
    assert drawn == pytest.approx([found.value, found.low, found.high])
    assert table.loc["other way", "ratio"] == pytest.approx(1 / found.value)
    assert table["width / (2 alpha)"].tolist()[0] == pytest.approx(2)  # tiny-lm: 128; alpha: 32
    assert np.isnan(table["width / (2 alpha)"].tolist()[1])
    assert found.cell in figure.get_label()


def test_an_open_ratio_has_its_reason(cells, monkeypatch) -> None:
    losses = last_losses(cells["LP"])
    monkeypatch.setattr("fpt.show.pages.lora.last_losses", lambda cell: losses.iloc[:, :2])
    assert "end of the grid" in rate_ratios_figure({"short": cells}).get_label()


def test_an_open_ratio_is_no_number_of_times_in_the_legend(cells, monkeypatch) -> None:
    monkeypatch.setattr("fpt.show.pages.lora.last_losses", lambda arm: last_losses(arm).iloc[:, :2])
    figure = valleys_figure(cells)
    (_, text) = [text.get_text().replace("\n", " ") for text in figure.legends[0].texts]
    assert "end of the grid" in text
    assert "times" not in text


def test_no_ratio_is_drawn_outside_of_the_panel(cells, monkeypatch) -> None:
    found = rate_ratio(*(last_losses(each) for each in cells.values()))
    wide = replace(found, value=10**0.5, seed_variance=0.0, slack=1.3)  # 0.16 to 63
    monkeypatch.setattr("fpt.show.pages.lora.rate_ratio", lambda *_: wide)
    least, most = rate_ratios_figure({"wide": cells}).axes[0].get_xlim()
    assert least < 0.2
    assert most > 60
