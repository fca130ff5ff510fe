"""Where the first layer looks (Lu et al. 2021, figures 3 to 5): maps, and scores against chance."""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from fpt.results.cells import TUNED, Cell

Scores = dict[str, "pd.Series[float]"]


def maps_of(cell: Cell, at: str = TUNED, trained: bool = True) -> pd.DataFrame:
    """One row per run, query and key, after [before] training; no rows if the sweep did not measure attention."""
    if cell.tables is None or cell.tables.attention.empty:
        return pd.DataFrame()
    maps = cell.at(at, "attention")
    return maps[maps["trained"].astype(bool) == trained]


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


def attention_maps(cells: Iterable[Cell]) -> dict[str, pd.DataFrame]:
    """Row -> `aligned` maps after training, each seed at its own rate, of the rows that were measured."""
    found = {cell.label: maps_of(cell) for cell in cells}
    return {label: aligned(maps) for label, maps in found.items() if len(maps)}
