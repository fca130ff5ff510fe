"""Valleys: loss over the learning rate, with the best rates of arms and the interval of their ratio."""

from dataclasses import replace

import numpy as np
import pytest
from made_cells import Made, cell, paper

from fpt.errors import SpecError
from fpt.results.rate_ratio import last_losses, rate_ratio
from fpt.show import valleys
from fpt.show.best_rates import rate_ratios_figure, valleys_figure
from fpt.show.plot import LINE

ARM = {"LP": "lora", "UP": "unfrozen"}
GRID = dict.fromkeys((float(rate) for rate in 10.0 ** np.arange(-4.5, -1.4, 0.25)), 80.0)


@pytest.fixture
def cells(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """LoRA best at 2e-3, full training at 1e-3."""
    toy = paper(["LP", "UP"])
    monkeypatch.setattr("fpt.papers.papers", lambda: {"toy": toy})
    places = {"LP": -2.7, "UP": -3.0}
    made = {
        name: Made(GRID, best=1e-3, beyond=False, losses=(place, 1.5), fields={"arm": f"{ARM[name]}-pretrained"})
        for name, place in places.items()
    }
    return {name: cell(toy.tables["toy-table"], name, each) for name, each in made.items()}


def test_both_lowest_points_and_the_interval_of_their_ratio(cells) -> None:
    figure = valleys_figure(cells)
    found = rate_ratio(*(last_losses(each.tables) for each in cells.values()))
    (axes,) = figure.axes[:1]
    diamonds = [line.get_xdata()[0] for line in axes.lines if line.get_marker() == "D" and len(line.get_xdata()) == 1]
    assert diamonds == pytest.approx([found.first.rate, found.second.rate])
    assert diamonds == pytest.approx([2e-3, 1e-3], rel=0.05)
    assert found.cell in figure.get_label()
    texts = [text.get_text() for legend in figure.legends for text in legend.texts]
    assert found.cell in " ".join(texts).replace("\n", " ")
    assert max(len(line) for text in texts for line in text.splitlines()) <= LINE, "a phone shows it"
    assert figure.data is not None
    assert len(figure.data) == 2 * len(GRID)
    lowest = figure.data.loc[figure.data.groupby("arm")["loss"].idxmin()]
    assert (lowest["low"] < lowest["loss"]).all()
    assert (lowest["loss"] < lowest["high"]).all()


def test_an_open_ratio_is_no_number_of_times_in_the_legend(cells, monkeypatch) -> None:
    monkeypatch.setattr("fpt.show.best_rates.last_losses", lambda tables: last_losses(tables).iloc[:, :2])
    figure = valleys_figure(cells)
    (_, text) = [text.get_text().replace("\n", " ") for text in figure.legends[0].texts]
    assert "end of the grid" in text
    assert "times" not in text


def test_no_ratio_is_drawn_outside_of_the_panel(cells, monkeypatch) -> None:
    found = rate_ratio(*(last_losses(each.tables) for each in cells.values()))
    monkeypatch.setattr("fpt.show.best_rates.rate_ratio", lambda *_: replace(found, ratio=30.0, low=0.2, high=60.0))
    least, most = rate_ratios_figure({"wide": cells}).axes[0].get_xlim()
    assert least < 0.2
    assert most > 60


def test_one_arm_and_an_arm_without_runs_are_refused(cells) -> None:
    with pytest.raises(SpecError, match="two arms"):
        valleys_figure({"LP": cells["LP"]})
    with pytest.raises(SpecError, match="plane-minilm"):
        valleys("plane-minilm", ["LP", "UP"], "")


def test_ratios_stand_in_rows_with_their_intervals_beside_ten_and_the_theory(cells) -> None:
    figure = rate_ratios_figure({"width 128": cells, "other way": dict(reversed(cells.items()))})
    found = rate_ratio(*(last_losses(each.tables) for each in cells.values()))
    assert figure.data is not None
    table = figure.data.set_index("row")
    drawn = table.loc["width 128", ["ratio", "low", "high"]].tolist()
    assert drawn == pytest.approx([found.ratio, found.low, found.high])
    assert table.loc["other way", "ratio"] == pytest.approx(1 / found.ratio)
    assert table["width / (2 alpha)"].tolist()[0] == pytest.approx(2)  # tiny-lm: 128; alpha: 32
    assert np.isnan(table["width / (2 alpha)"].tolist()[1])
    assert found.cell in figure.get_label()


def test_an_open_ratio_has_its_reason_and_an_arm_without_runs_is_refused(cells, monkeypatch) -> None:
    losses = last_losses(cells["LP"].tables)
    monkeypatch.setattr("fpt.show.best_rates.losses_of", lambda cell: losses.iloc[:, :2])
    assert "end of the grid" in rate_ratios_figure({"short": cells}).get_label()
    monkeypatch.undo()
    with pytest.raises(SpecError, match="LP"):
        rate_ratios_figure({"none": {**cells, "LP": replace(cells["LP"], tables=None)}})
