"""Where the first layer looks (Lu et al. 2021, figures 3 to 5): maps, scores against chance, and the verdicts."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fpt.evidence.experiments import FIXED, NOT_AT_THIS_SCALE, NOT_RUN, READINGS, TUNED, Cell, Experiment, Results, Row
from fpt.evidence.figures import _nothing
from fpt.evidence.page import Table
from fpt.evidence.results import rate_text
from fpt.evidence.rulings import Ruling, directional, scale, worst
from fpt.evidence.stats import Paired, mean_interval, paired
from fpt.evidence.tables import percent
from fpt.tasks import TASKS

ROWS = (Row("pretrained", {"arm": "frozen-pretrained"}), Row("random", {"arm": "frozen-random"}))
MAPS = Experiment("lu-figure-3", "3.5", "Attention of the first layer", "accuracy", ROWS, ())
CLAIMS = {  # id -> task, rows, what is tested
    "L-22": ("bit-xor", ("pretrained",), "pretrained: attention to the needed bits above twice an even spread"),
    "L-23": ("bit-memory", ("pretrained",), "pretrained: every query attends most to its string, more than untrained"),
    "L-24": ("bit-xor", ("pretrained", "random"), "random: above an even spread, and below pretrained"),
}
Scores = dict[str, "pd.Series[float]"]


def scores(maps: pd.DataFrame) -> Scores:
    """By seed, means over queries: `mass` on the needed tokens, `chance` (the same of an even spread), and `lead`, the
    matching string minus the mean of the others, at the query where that is smallest (nan with one string)."""
    first = maps["query"].min()
    queries = maps.groupby(["seed", "query"])
    mass, chance = queries["relevant"].sum(), queries["chance"].sum()
    strings = first / maps["query"].nunique()
    before = maps[maps["key"] < first].groupby(["seed", "query"])["weight"].sum()
    lead = mass - (before - mass) / (strings - 1) if strings > 1 else mass * np.nan
    by_seed = {"mass": mass.groupby("seed").mean(), "chance": chance.groupby("seed").mean()}
    return by_seed | {"lead": lead.groupby("seed").min()}


def attention_cell(results: Results, row: Row, task: str) -> tuple[Cell, pd.DataFrame]:
    """The sweep that is `row`, and its maps; none where it has no sweep that measures attention, or no results."""
    cell = results.cell(MAPS, row, task)
    maps = pd.DataFrame() if cell.problem else results.attention.get(str((cell.sweep or {})["sweep"]), pd.DataFrame())
    return cell, maps


def _measured(cell: Cell) -> bool:
    """Whether the study asks this sweep for its attention: then it says that it serves one of the figures."""
    feeds = set(str(cell.sweep["feeds"]).split(", ")) if cell.sweep else set()
    return bool({"lu-figure-3", "lu-figure-4", "lu-figure-5"} & feeds)


def attention_figure(results: Results, task: str) -> Figure:
    """Mean maps, query x key, after training at the own rate: pretrained, random."""
    shown = [(row, *attention_cell(results, row, task)) for row in ROWS]
    shown = [(row, cell, maps) for row, cell, maps in shown if len(maps)]
    if not shown:
        return _nothing()
    figure = Figure(figsize=(3.7 * len(shown), 3.3), layout="constrained")
    words = []
    for axes, (row, cell, maps) in zip(figure.subplots(1, len(shown), squeeze=False).flat, shown, strict=True):
        after, before = (_at(cell, maps, TUNED, trained) for trained in (True, False))
        mean = after.pivot_table("weight", "query", "key", aggfunc="mean")
        image = axes.imshow(mean, aspect="auto", cmap="Blues", vmin=0)
        figure.colorbar(image, ax=axes, shrink=0.8)
        axes.set_yticks(range(len(mean)), mean.index)
        axes.set(xlabel="token attended to", ylabel="token that reads", title=row.label)
        now, then = (scores(part) for part in (after, before))
        score = f"{percent(now['mass'].mean())}% on the needed tokens (untrained {percent(then['mass'].mean())}%"
        words.append(f"{row.label}: {score}, even spread {percent(now['chance'].mean())}%)")
    figure.set_label(
        f"Attention of the first layer on {TASKS[task].title} after training, mean over heads, examples and seeds. "
        f"{'. '.join(words)}."
    )
    return figure


def attention_table(results: Results, task: str) -> Table:
    """Attention on the needed tokens in percent of all: after training at both rates, before it, and by chance."""
    rows = []
    for row in ROWS:
        cell, maps = attention_cell(results, row, task)
        line = {"weights": row.label}
        if not len(maps):
            rows.append(line | {"at its own rate": NOT_RUN if _measured(cell) else NOT_AT_THIS_SCALE})
            continue
        for reading, name in ((TUNED, "at its own rate"), (FIXED, f"at {rate_text(cell.fixed_rate)}")):
            line[name] = _interval(scores(_at(cell, maps, reading, True))["mass"])
        before, after = (scores(_at(cell, maps, TUNED, trained)) for trained in (False, True))
        line["untrained"] = _interval(before["mass"])
        line["even spread"] = percent(before["chance"].mean())
        if after["lead"].notna().any():
            line |= {"least lead": _interval(after["lead"]), "least lead, untrained": _interval(before["lead"])}
        rows.append(line)
    caption = (
        f"{TASKS[task].title}: percent of the first layer's attention that lies on the tokens that the answer needs"
    )
    return Table(pd.DataFrame(rows), f"{caption}, mean over queries, heads and examples; 95% interval over seeds.")


def attention_rulings(results: Results) -> list[Ruling]:
    """L-22 to L-24, at both readings."""
    return [ruling for name in CLAIMS for ruling in _rulings(results, name)]


def _rulings(results: Results, name: str) -> Iterator[Ruling]:
    task, labels, statement = CLAIMS[name]
    found = [attention_cell(results, row, task) for row in ROWS if row.label in labels]
    base: dict[str, Any] = {"claim": name, "experiment": MAPS.name, "kind": "attention", "statement": statement}
    if not all(_measured(cell) for cell, _ in found):
        yield Ruling(**base)
        return
    cell = found[0][0]
    base |= {"task": task, "scale": scale([cell])}
    if not all(len(maps) for _, maps in found):
        yield Ruling(**base, verdict=NOT_RUN)
        return
    for reading in READINGS:
        at, before = ([scores(_at(cell, maps, reading, t)) for cell, maps in found] for t in (True, False))
        tests = _tests(name, at, before)
        word = worst(map(directional, tests))
        exploratory = any(cell.is_exploratory for cell, _ in found)
        fields = base | {"reading": reading, "rates": rate_text(cell.fixed_rate), "exploratory": exploratory}
        yield Ruling(**fields, verdict=word, tests=tuple(tests))


def _tests(name: str, at: list[Scores], before: list[Scores]) -> list[Paired]:
    if name == "L-22":
        return [paired(at[0]["mass"], 2 * at[0]["chance"])]
    if name == "L-23":
        return [paired(at[0]["lead"], 0 * at[0]["lead"]), paired(at[0]["lead"], before[0]["lead"])]
    return [paired(at[1]["mass"], at[1]["chance"]), paired(at[0]["mass"], at[1]["mass"])]


def _at(cell: Cell, maps: pd.DataFrame, reading: str, trained: bool) -> pd.DataFrame:
    return cell.at(reading, maps[maps["trained"].astype(bool) == trained])


def _interval(values: "pd.Series[float]") -> str:
    mean, low, high = mean_interval(values)
    return percent(mean) if np.isnan(low) else f"{percent(mean)} ({percent(low)} to {percent(high)})"
