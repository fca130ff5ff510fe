"""Where the first layer looks (Lu et al. 2021, figures 3 to 5): maps, and scores against chance."""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from fpt.results.arm import TUNED, Arm
from fpt.results.contrasts import Level, find_arm
from fpt.results.stats import mean_of

Scores = dict[str, "pd.Series[float]"]


def maps_of(arm: Arm, at: str | float = TUNED, trained: bool = True) -> pd.DataFrame:
    """One row per run, query and key, after [before] training; no rows if the sweep did not measure attention."""
    if arm.attention.empty:
        return pd.DataFrame()
    maps = arm.at(at, "attention")
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

    Where examples need different strings, as on Bit Memory, the queries are numbered in the string asked about, and the
    keys are the tokens of the string that matches and of the mean other string: `relevant` is the part of the weight
    that lay on a string when it was the one that matches.
    """
    means = maps.groupby(["query", "key"])[["weight", "relevant", "chance"]].mean()
    strings = round(maps["query"].min() / maps["query"].nunique())
    if strings == 1:
        return means.assign(needed=means["chance"] > 0)
    query, key = (means.index.get_level_values(name) for name in ("query", "key"))
    length = maps["query"].nunique()
    earlier, place = key < maps["query"].min(), (key % length + 1).astype(str).str.zfill(len(str(length)))
    others = means["weight"].where(~earlier, (means["weight"] - means["relevant"]) / (strings - 1))
    asks = "query " + (query % length + 1).astype(str).str.zfill(len(str(length)))
    parts = [
        means["relevant"][earlier].groupby([asks[earlier], "match " + place[earlier]]).sum(),
        others.groupby([asks, np.where(earlier, "other ", "query ") + place]).sum(),
    ]
    weight = pd.concat(parts).rename_axis(["query", "key"])
    return pd.DataFrame({"weight": weight, "needed": weight.index.get_level_values("key").str.startswith("match")})


def attention_maps(arms: Iterable[Arm]) -> dict[str, pd.DataFrame]:
    """Name -> `aligned` maps after training, each seed at its own rate, of the arms that were measured."""
    found = {arm.name: maps_of(arm) for arm in arms}
    return {name: aligned(maps) for name, maps in found.items() if len(maps)}


def attended(study: str, arm: str, *, task: str, score: str = "mass", trained: bool = True) -> Level:
    """Where the first layer of an arm looks, in percent of its attention, with a 95% interval over seeds.

    `score`: one of `scores`: "mass", "chance" or "lead". `trained`: after training, else before it. Raises SpecError
    for a study, task or arm that is not there.
    """
    read = find_arm(study, arm, task=task)
    maps = maps_of(read, trained=trained)
    assert not maps.empty, f"{study}, {task}, {arm}: its attention was not measured"
    return Level.of(mean_of(scores(maps)[score]).in_percent, rate=read.best_rate())
