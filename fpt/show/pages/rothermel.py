"""The page on Rothermel et al. 2021: accuracy and best rate of their four arms."""

from collections.abc import Mapping

import pandas as pd

from fpt import models
from fpt.results.estimate import PERCENT, number_text
from fpt.results.runs import rate_text
from fpt.show.html import Table
from fpt.show.places import Place, to_beat

ARMS = ("FR", "FP", "UR", "UP")  # in the order of their Table 1


def best_of(places: Mapping[str, Place], caption: str) -> Table:
    """Tuned accuracy in percent of the four arms and, in brackets, the rate with the best mean over all seeds;
    and what to beat."""
    rows = []
    for name, place in places.items():
        row = {"pair": name}
        for arm in ARMS:
            shown = place.level(arm)
            rate = "" if shown.rate is None else f" ({rate_text(shown.rate)})"
            row[f"{models.arm(arm).label}, %"] = number_text(shown.value, PERCENT) + rate
        rows.append(row | {"to beat, %": to_beat(place, ARMS)})
    return Table(pd.DataFrame(rows), caption)
