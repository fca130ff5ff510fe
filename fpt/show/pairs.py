"""A table with a row a pair of model and task: accuracy and best rate by arm."""

from collections.abc import Mapping

import pandas as pd

from fpt.results.estimate import PERCENT, number_text
from fpt.results.runs import rate_text
from fpt.show.html import Table
from fpt.show.places import Place, to_beat

# The arms of Rothermel et al., in the order of their Table 1, as prose names them.
ARMS = {"FR": "frozen random", "FP": "frozen", "UR": "from scratch", "UP": "full training"}


def best_of(places: Mapping[str, Place], caption: str) -> Table:
    """Tuned accuracy in percent of the four arms and, in brackets, the rate with the best mean over all seeds;
    and what to beat."""
    rows = []
    for name, place in places.items():
        row = {"pair": name}
        for arm, name_of_arm in ARMS.items():
            shown = place.level(arm)
            rate = "" if shown.rate is None else f" ({rate_text(shown.rate)})"
            row[f"{name_of_arm}, %"] = number_text(shown.value, PERCENT) + rate
        rows.append(row | {"to beat, %": to_beat(place, ARMS)})
    return Table(pd.DataFrame(rows), caption)
