"""Where the first layer looks (Lu et al. 2021, figures 3 to 5): maps, scores against chance, and the verdicts."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fpt.evidence.experiments import FIXED, NOT_AT_THIS_SCALE, NOT_RUN, READINGS, TUNED, Cell, Experiment, Results, Row
from fpt.evidence.rulings import Ruling, directional, scale, worst
from fpt.evidence.runs import rate_text
from fpt.evidence.show.figures import _nothing
from fpt.evidence.show.html import Table
from fpt.evidence.show.tables import percent
from fpt.evidence.stats import Paired, mean_interval, paired
from fpt.tasks import TASKS

ROWS = (Row("FPT", {"arm": "frozen-pretrained"}), Row("random", {"arm": "frozen-random"}))
MAPS = Experiment("lu-figure-3", "Attention of the first layer", "accuracy", ROWS, ())
CLAIMS = {  # id -> task, rows, what is tested
    "L-22": ("bit-xor", ("FPT",), "FPT: attention to the needed bits above twice an even spread"),
    "L-23": ("bit-memory", ("FPT",), "FPT: every query attends most to its string, more than untrained"),
    "L-24": ("bit-xor", ("FPT", "random"), "random: above an even spread, and below FPT"),
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
    """Mean maps, query x key, after training at the own rate, on one scale; dots mark what every query needs."""
    maps = {label: aligned(_at(*found, TUNED, True)) for label, found in _shown(results, task).items()}
    if not maps:
        return _nothing()
    top = max(float(each["weight"].max()) for each in maps.values())
    figure = Figure(figsize=(3.7 * len(maps), 3.3), layout="constrained")
    grid = figure.subplots(1, len(maps), squeeze=False, sharey=True)[0]
    for axes, (label, each) in zip(grid, maps.items(), strict=True):
        weights = each["weight"].unstack()
        image = axes.imshow(weights, aspect="auto", cmap="Blues", vmin=0, vmax=top)
        places = np.argwhere(each["needed"].unstack(fill_value=False).to_numpy())
        axes.scatter(places[:, 1], places[:, 0], s=14, color="#D55E00", linewidths=0)
        axes.set_yticks(range(len(weights)), weights.index)
        every = slice(None, None, math.ceil(len(weights.columns) / 20))
        axes.set_xticks(range(len(weights.columns))[every], weights.columns[every], rotation=90, fontsize=8)
        axes.set(xlabel="token attended to", title=label)
    grid[0].set_ylabel("token that reads")
    figure.colorbar(image, ax=grid, shrink=0.8, label="part of the attention")
    what = f"Attention of the first layer on {TASKS[task].title}, mean over heads, examples and seeds."
    figure.set_label(f"{what} {attention_to_see(results, task)}")
    return figure


def attention_to_see(results: Results, task: str) -> str:
    """A sentence a map: the attention on the needed tokens after training, before it, and if it were even."""
    words = []
    for label, found in _shown(results, task).items():
        now, then = (scores(_at(*found, TUNED, trained)) for trained in (True, False))
        score = f"{percent(now['mass'].mean())}% on the needed tokens (untrained {percent(then['mass'].mean())}%"
        words.append(f"{label}: {score}, even spread {percent(now['chance'].mean())}%).")
    return " ".join(words)


def aligned(maps: pd.DataFrame) -> pd.DataFrame:
    """By query and key, means over seeds: `weight`, and whether the query always needs this key (`needed`).

    Where examples need different strings, as on Bit Memory, the keys are the tokens of the string that matches and of
    the mean other string: `relevant` is the part of the weight that lay on a string when it was the one that matches.
    """
    means = maps.groupby(["query", "key"])[["weight", "relevant", "chance"]].mean()
    strings = round(maps["query"].min() / maps["query"].nunique())
    if strings == 1:
        return means.assign(needed=means["chance"] > 0)
    query, key = (means.index.get_level_values(name) for name in ("query", "key"))
    length = maps["query"].nunique()
    earlier, place = key < maps["query"].min(), (key % length + 1).astype(str).str.zfill(len(str(length)))
    others = means["weight"].where(~earlier, (means["weight"] - means["relevant"]) / (strings - 1))
    parts = [
        means["relevant"][earlier].groupby([query[earlier], "match " + place[earlier]]).sum(),
        others.groupby([query, np.where(earlier, "other ", "query ") + place]).sum(),
    ]
    weight = pd.concat(parts).rename_axis(["query", "key"])
    return pd.DataFrame({"weight": weight, "needed": weight.index.get_level_values("key").str.startswith("match")})


def _shown(results: Results, task: str) -> dict[str, tuple[Cell, pd.DataFrame]]:
    found = {row.label: attention_cell(results, row, task) for row in ROWS}
    return {label: (cell, maps) for label, (cell, maps) in found.items() if len(maps)}


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
