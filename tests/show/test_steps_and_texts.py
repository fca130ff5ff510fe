"""Leads over the steps, and ways of training on labelled texts: what is drawn is what the results say."""

import pytest

from fpt.results import contrast
from fpt.results.texts import linear, probes, tried
from fpt.show import PAIRS
from fpt.show.pages.lora import lora_ratios
from fpt.show.pages.steps import OverSteps, ends_table, over_steps, ratios_table
from fpt.show.pages.texts import texts_by_rate, texts_figure, texts_table

MINILM = "MNIST, MiniLM, 1,600"
PLACES = {MINILM: OverSteps(PAIRS[MINILM], 0.5), "lists": OverSteps(PAIRS["ListOps, tiny-lm, 1,500"], 0.5)}


def test_leads_over_the_steps_are_the_contrasts() -> None:
    data = over_steps(PLACES, "What to see.").figure.data
    assert data is not None
    found = data.set_index(["place", "at", "steps"])["points"]
    for budget in (50, 400, 1600):
        expected = contrast("plane-minilm", "UP", "FP", budget=budget).mean
        assert found[MINILM, "equal steps", budget] == pytest.approx(expected)
    halved = found[MINILM, "equal compute", 1600]
    levels = (contrast("plane-minilm", "UP", "FP", budget=budget) for budget in (800, 1600))
    assert halved == pytest.approx(next(levels).first - next(levels).second)
    assert (MINILM, "equal compute", 50) not in found.index


def test_a_place_names_the_budgets_at_which_either_arm_leads() -> None:
    place = PLACES[MINILM]
    assert place.led(-1) == [100, 200, 400, 800]
    assert set(place.led(-1, corrected=True)) < set(place.led(-1))
    assert place.led(1) == []
    first, second = ends_table(PLACES, "").frame.to_dict("records")
    assert first["freezing leads after"] == "100, 200*, 400*, 800"
    assert (first["full training leads after"], second["freezing leads after"]) == ("–", "–")
    assert first["at the end, full minus frozen, points"] == place.end.cell
    assert first["full / frozen / to beat, %"].endswith(" / 92.1")


def test_ratios_stand_by_steps_and_width() -> None:
    table = ratios_table({steps: lora_ratios(steps) for steps in (125, 1000)}, "").frame
    assert list(table.columns) == ["steps", "width 64", "width 128", "width 256"]
    assert table.set_index("steps").loc["1,000", "width 64"] == lora_ratios()[64].cell


def test_every_published_way_of_training_on_texts_has_a_row() -> None:
    rows = texts_table("banking77", "").frame
    settings = tried("banking77")
    assert len(rows) == 3 + len(probes("banking77")) + sum(map(len, settings.values()))
    assert list(rows["labels a class"].unique()) == ["10 labels", "30 labels", "all labels"]
    full = rows.set_index(["labels a class", "trained"]).loc[("10 labels", "full training, 481 steps")]
    each = next(iter(settings.values()))["WP"]
    assert (full["test accuracy, %"], full["minus the probe, points"]) == (each.level().cell, each.over_probe().cell)
    assert full["rate"] == "3e-4"


def test_the_figure_of_texts_has_a_panel_a_setting_and_lines_of_what_is_to_beat() -> None:
    figure = texts_by_rate("banking77", "What to see.").figure
    settings = tried("banking77")
    assert len([axes for axes in figure.axes if axes.get_visible()]) == len(settings)
    few = figure.axes[0]
    across = {line.get_label(): line.get_ydata()[0] for line in few.lines if len(set(line.get_ydata())) == 1}
    assert across["probe"] == pytest.approx(probes("banking77")[10].level().value)
    assert across["TF-IDF, linear SVM"] == pytest.approx(100 * linear("banking77", 10).share)
    assert "full training: 83.9%" in figure.get_label()


def test_where_no_text_is_published_the_figure_says_so() -> None:
    assert "no results" in texts_figure("clinc150").get_label()
