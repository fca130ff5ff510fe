"""Accuracy over the number of layers (Rothermel et al. 2021, table 4): a table and a figure."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd
import seaborn as sns

from fpt.papers.schema import Table as PaperTable
from fpt.results.cells import TUNED, Cell, StudyCells
from fpt.results.stats import mean_interval, sampling_noise
from fpt.show import plot
from fpt.show.html import Table
from fpt.show.numbers import layers, percent, title
from fpt.show.printed import ABSENT, MARKS, reading

Depths = Mapping[str, Sequence[Cell]]  # model, task and study in words -> its cells of all depths


def by_depth(shown: PaperTable, studies: Iterable[StudyCells]) -> dict[str, list[Cell]]:
    """The cells with results of a table, by study and task: those of arms that have several depths."""
    arms: dict[tuple[str, str], list[Cell]] = {}
    for study in studies:
        for cell in (each for each in study.cells(shown) if not each.problem):
            arms.setdefault((f"{title(cell.task)} ({study.name})", _arm(cell)), []).append(cell)
    found: dict[str, list[Cell]] = {}
    for (name, _), cells in arms.items():
        if len(set(map(layers, cells))) > 1:
            found.setdefault(name, []).extend(cells)
    return found


def depth_table(found: Depths) -> Table:
    """One row per arm on a task, one column per depth."""
    depths = sorted({layers(cell) for cells in found.values() for cell in cells})
    rows: dict[tuple[str, str], dict[int, str]] = {}
    for name, cells in found.items():
        for cell in cells:
            rows.setdefault((name, _arm(cell)), {})[layers(cell)] = reading(cell, TUNED)
    frame = pd.DataFrame(
        [(*row, *(shown.get(depth, ABSENT) for depth in depths)) for row, shown in rows.items()],
        columns=["task and study", "arm", *(f"{depth} layer{'s' * (depth > 1)}" for depth in depths)],
    )
    return Table(frame, f"Tuned test accuracy in percent, mean ± standard error over seeds. {MARKS}")


@plot.drawn
def depth_figure(found: Depths) -> plot.Plot:
    """Tuned test accuracy over the number of layers, with 95% intervals over seeds: panels of tasks, lines of arms."""
    frames = [
        pd.DataFrame({"accuracy": 100 * cell.values(), "layers": layers(cell), "arm": _arm(cell), "of": name})
        for name, cells in found.items()
        for cell in cells
    ]
    shown = pd.concat(frames)
    arms = [name for name in plot.HUES if name in set(shown["arm"])]  # a panel may lack some
    figure, panels = plot.panels_of(shown["of"].nunique())
    for axes, (name, part) in zip(panels, shown.groupby("of", sort=False), strict=False):
        look: dict[str, Any] = {"hue": "arm", "palette": plot.HUES, "style": "arm", "markers": plot.SHAPES}
        look |= {"hue_order": arms, "style_order": arms}
        images = next(cell.tables.sampled_from for cell in found[str(name)] if cell.tables)
        look |= {"errorbar": partial(_bar, images=images), "err_style": "bars", "dashes": False}
        sns.lineplot(part, x="layers", y="accuracy", **look, ax=axes)
        axes.set(title=name, ylabel="test accuracy, tuned (%)", xticks=sorted(part["layers"].unique()))
    plot.shared_legend(figure, panels)
    means = shown.groupby(["of", "arm", "layers"], sort=False, as_index=False)["accuracy"].mean().to_numpy().tolist()
    words = [f"{of}, {arm}, {layers} layers: {percent(mean / 100)}%" for of, arm, layers, mean in means]
    cells = [cell for cells in found.values() for cell in cells]
    shown = shown.rename(columns={"of": "task and study"}).rename_axis("seed").reset_index()
    return figure.describe(f"Test accuracy by the number of layers. {'; '.join(words)}.", shown, plot.runs_of(cells))


def _bar(values: "pd.Series[float]", images: float) -> tuple[float, float]:
    """The 95% interval of accuracies in percent; `images` as in `sampling_noise`."""
    return mean_interval(values, 1e4 * sampling_noise(float(values.mean()) / 100, images))[1:]


def _arm(cell: Cell) -> str:
    return cell.spec.arm.replace("-", " ") if cell.spec else ""
