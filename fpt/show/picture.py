"""The picture that opens README.md and the book: test accuracy over the learning rate, in full training and frozen.

On MNIST, two layers of MiniLM (study plane-minilm), with eight new seeds (fresh-minilm). On the texts of BANKING77, all
of MiniLM (intents-rates): what is published there with as many labels as full training is. `make picture` draws it
anew for README.md, light and dark, from the published runs.
"""

import io
from collections.abc import Mapping
from dataclasses import dataclass, fields
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import pandas as pd

from fpt import models
from fpt.results.arm import TUNED, Arm
from fpt.results.baselines import LINEAR, known_scores
from fpt.results.contrasts import arms_of, find_arm
from fpt.results.estimate import PERCENT, Estimate, number_text
from fpt.results.runs import rate_text
from fpt.results.texts import TUNING, labels_of
from fpt.show import plot
from fpt.show.explore import picture
from fpt.show.html import CaptionedFigure, Page

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FULL, FROZEN, LORA, PROBE = "full training", "frozen", "LoRA", "probe"
DRAWN_AS = {"UP": FULL, "WP": FULL, "FP": FROZEN, "NP": FROZEN, "LP": LORA, "probe": PROBE}  # by an arm's letters
LOOKS = {FULL: models.arm("UP"), FROZEN: models.arm("FP"), LORA: models.arm("LP")}
MARKED = 1e-3  # the rate of Lu et al.
LEAST = 40  # percent: an axis begins there or lower, which leaves room for the legend
LARGER: dict[Any, Any] = {
    "font.size": 12,
    "axes.titlesize": 12,
}  # a phone shows the file of README.md at half of its size
INKED: Any = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
FILES = {"light": "#1f2328", "dark": "#f0f6fc"}  # of README.md, on a transparent background: GitHub's colours of text
FOLDER = Path("book/_static")
DATA = "Data"  # the entry of a file that holds what it draws, as CSV
DOTS = 200  # an inch


@dataclass(frozen=True)
class Panel:
    """What a panel shows: arms over their learning rates, the same arms with new seeds, and lines to beat (percent);
    all by what the legend calls them."""

    title: str
    arms: Mapping[str, Arm]
    again: Mapping[str, Arm]
    lines: Mapping[str, float]

    @property
    def name(self) -> str:
        """The title in one line."""
        return self.title.replace("\n", " ")


def digits_panel() -> Panel:
    """MNIST. SpecError where an arm is not published."""
    arms, again = (
        {DRAWN_AS[letters]: find_arm(study, letters) for letters in ("UP", "FP")}
        for study in ("plane-minilm", "fresh-minilm")
    )
    title = f"MNIST, 2 layers of MiniLM,\n{arms[FULL].steps:,} steps"
    return Panel(title, arms, again, {LINEAR: 100 * known_scores("mnist")[LINEAR].share})


def texts_panel() -> Panel:
    """BANKING77."""
    arms = texts_arms()
    known = known_scores("banking77", labels=labels_of(arms[FULL]))
    lines = {LINEAR: 100 * known[LINEAR].share}
    if probe := arms.pop(PROBE, None):
        lines[PROBE] = probe.estimate().in_percent.value
    title = f"BANKING77, all of MiniLM,\n{_labels(arms[FULL])}, {arms[FULL].steps:,} steps"
    return Panel(title, arms, {}, lines)


def texts_arms() -> dict[str, Arm]:
    """The published arms on texts, full training first: of those with as many labels a class as full training has, and
    as many steps. Of several such trainings it is the one with most labels, and then most steps."""
    found = [arm for arm in arms_of(TUNING).values() if arm.letters in DRAWN_AS]  # and from no probe
    full = [arm for arm in found if DRAWN_AS[arm.letters] == FULL]
    assert full, "the study intents-rates has no published full training, which the picture draws"
    chosen = max(full, key=lambda arm: (labels_of(arm) or float("inf"), arm.steps))
    alike = [arm for arm in found if labels_of(arm) == labels_of(chosen)]
    by_name = {DRAWN_AS[arm.letters]: arm for arm in alike if arm.letters == PROBE or arm.steps == chosen.steps}
    return {name: by_name[name] for name in (FULL, FROZEN, LORA, PROBE) if name in by_name}


def _labels(arm: Arm) -> str:
    return f"{labels} labels a class" if (labels := labels_of(arm)) else "all labels"


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Beside(Arm):
    """A probe beside another arm. It has neither learning rates nor steps: at each rate and budget of the other arm it
    is what it is at the strength that was chosen for it."""

    probe: Arm
    other: Arm

    @property
    def rates(self) -> list[float]:
        return self.other.rates

    @property
    def budgets(self) -> list[int]:
        return self.other.budgets

    def ends(self, budget: int | None = None) -> set[str]:
        return self.probe.ends()

    def values(self, at: str | float = TUNED, budget: int | None = None) -> "pd.Series[float]":
        return self.probe.values()

    def chooses(self, at: str | float) -> bool:
        return True

    def without(self, at: str | float = TUNED, budget: int | None = None) -> pd.DataFrame:
        return self.probe.without()

    def test_noise(self, at: str | float = TUNED, budget: int | None = None) -> float:
        return self.probe.test_noise()

    def collapsed(self, at: str | float = TUNED, budget: int | None = None) -> "pd.Series[bool]":
        return self.probe.collapsed()

    def estimate(self, at: str | float = TUNED, budget: int | None = None, noise: float = 0.0) -> Estimate:
        return self.probe.estimate(noise=noise)

    def right(self, at: str | float = TUNED, budget: int | None = None) -> pd.DataFrame:
        return self.probe.right()


def beside(probe: Arm, other: Arm) -> Beside:
    """The probe as it stands beside the other arm."""
    named = {field.name: getattr(probe, field.name) for field in fields(Arm) if field.name != "memory"}
    return Beside(**named, probe=probe, other=other)


def opening(caption: str) -> Page:
    """The picture on a page: the reader moves the rate in each panel. The caption is that of the figure that stands
    still. On texts the probe is an arm among the others."""
    texts = texts_arms()
    if PROBE in texts:
        texts[PROBE] = beside(texts[PROBE], texts[FULL])
    shown = {
        ("MNIST", "MiniLM, 2 layers"): digits_panel().arms,
        ("BANKING77", f"MiniLM, {_labels(texts[FULL])}"): texts,
    }
    found = {name: {arm.letters: arm for arm in arms.values()} for name, arms in shown.items()}
    looks = {arm.letters: LOOKS[name] for arms in shown.values() for name, arm in arms.items() if name in LOOKS}
    return picture(found, CaptionedFigure(opening_figure(), caption), looks)


@plot.drawn
def opening_figure() -> plot.Plot:
    """Both panels: means over seeds with 95% intervals, new seeds hollow, and dashed what there is to beat."""
    shown = (digits_panel(), texts_panel())
    with mpl.rc_context(LARGER):
        figure, axes = plot.panels_of(len(shown), 3.2)
        data = pd.concat([_drawn(where, panel) for where, panel in zip(axes, shown, strict=True)], ignore_index=True)
        figure.draw_without_rendering()  # the layout is that of the larger text
    arms = [arm for panel in shown for arm in (*panel.arms.values(), *panel.again.values())]
    return figure.describe(_in_words(data), data, plot.runs_of(arms))


def _drawn(axes: "Axes", panel: Panel) -> pd.DataFrame:
    """Draws a panel. Gives what is drawn, a row for each mark and line, in percent; a mark has its 95% interval."""
    drawn = {}
    for name, arm in panel.arms.items():
        drawn[name] = line = plot.over_rates(arm)
        look = _look(name) | {"label": name, "linewidth": 2}
        plot.intervals(axes, line["rate"], line["accuracy"], line["low"], line["high"], **look)
    for name, arm in panel.again.items():
        drawn[f"{name}, new seeds"] = line = plot.over_rates(arm)
        hollow = _look(name) | {"linestyle": "none", "markerfacecolor": "none", "markersize": 10}
        axes.plot(line["rate"], line["accuracy"], **hollow)
    for (name, share), style in zip(panel.lines.items(), cycle((":", "--")), strict=False):
        drawn[name] = pd.DataFrame({"accuracy": [share]})
        axes.axhline(share, color=plot.GREY, linestyle=style, linewidth=2, label=name)
    _axes(axes, panel)
    return pd.concat(drawn, names=["drawn"]).reset_index("drawn").assign(panel=panel.name)


def _axes(axes: "Axes", panel: Panel) -> None:
    """The scales: of the rates only whole decades are named, so that large text has room."""
    axes.axvline(MARKED, color=mpl.rcParams["axes.edgecolor"], linewidth=1, zorder=1)
    rates = {rate for arm in panel.arms.values() for rate in arm.rates}
    plot.rate_axis(axes, rates, "test accuracy (%)")
    decades = [rate for rate in sorted(rates) if rate_text(rate).startswith("1e")]
    axes.set_xticks(decades, [rate_text(rate) for rate in decades], rotation=0)
    axes.set_ylim(min(LEAST, 10 * (axes.dataLim.ymin // 10)), 100)
    named = dict(zip(*axes.get_legend_handles_labels()[::-1], strict=True))
    names = [*panel.arms, *panel.lines]  # a line to beat is no arm
    axes.legend(
        [named[name] for name in names], names, loc="lower left", fontsize="small", handlelength=1.3, borderpad=0
    )
    axes.set_title(panel.title)


def _look(name: str) -> dict[str, Any]:
    return {"color": LOOKS[name].colour, "marker": LOOKS[name].marker}


def _in_words(data: pd.DataFrame) -> str:
    """The alt text: who is ahead at which rates of the first panel, then every mark."""
    first = data[data["panel"] == data["panel"].iloc[0]].pivot(index="rate", columns="drawn", values="accuracy")
    ahead = [rate_text(rate) for rate in first.index[first[FULL] > first[FROZEN]]]
    told = [f"On MNIST full training is ahead at {', '.join(ahead)}, and frozen layers at the others"]
    for (panel, name), rows in data.groupby(["panel", "drawn"], sort=False):
        shown = [
            f"{number_text(share, PERCENT)}%" + ("" if pd.isna(rate) else f" at {rate_text(rate)}")
            for rate, share in zip(rows["rate"], rows["accuracy"], strict=True)
        ]
        told.append(f"{panel}, {name}: {', '.join(shown)}")
    return f"Test accuracy by learning rate, means over seeds. {'. '.join(told)}."


def as_png(ink: str) -> bytes:
    """The picture with axes and text in this colour, on a transparent background, and what it draws as CSV."""
    with mpl.rc_context(dict.fromkeys(INKED, ink)):
        figure = opening_figure()
    assert figure.data is not None
    buffer = io.BytesIO()
    beside = {DATA: figure.data.to_csv(index=False), "Software": None}
    figure.savefig(buffer, format="png", dpi=DOTS, transparent=True, metadata=beside)
    return buffer.getvalue()


if __name__ == "__main__":
    for name, ink in FILES.items():
        (FOLDER / f"opening-{name}.png").write_bytes(as_png(ink))
