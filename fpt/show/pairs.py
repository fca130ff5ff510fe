"""Tables with a row a pair of model and task: accuracy and best rate by arm; what less evidence would have said."""

from collections.abc import Mapping

import pandas as pd

from fpt.claims.sensitivity import conclusions
from fpt.results.estimate import PERCENT, number_text
from fpt.results.runs import rate_text
from fpt.show.html import Table
from fpt.show.places import Place

ARMS = ("FR", "FP", "UR", "UP")  # of Rothermel et al., in the order of their Table 1


def best_of(places: Mapping[str, Place], caption: str) -> Table:
    """Tuned accuracy in percent of the four arms and, in brackets, the rate with the best mean over all seeds."""
    rows = []
    for name, place in places.items():
        row = {"pair": name}
        for arm in ARMS:
            shown = place.level(arm)
            rate = "" if shown.rate is None else f" ({rate_text(shown.rate)})"
            row[f"{arm}, %"] = number_text(shown.value, PERCENT) + rate
        rows.append(row)
    return Table(pd.DataFrame(rows), caption)


def less_evidence(places: Mapping[str, Place], first: str, second: str, caption: str) -> Table:
    """What one shared rate, three rates or three seeds would have concluded of the first arm minus the second.

    Shares in percent of the choices of rates or seeds (`fpt.claims.sensitivity.conclusions`). The last column counts
    single seeds in which the first arm is ahead, each arm at its own rate.
    """
    rows = []
    for name, place in places.items():
        one, other = place.cell(first), place.cell(second)
        said = conclusions(one, other).set_index(["of", "kept"])
        ahead = (one.values() - other.values()).dropna() > 0
        rows.append(
            {
                "pair": name,
                f"one rate: {first} / {second} ahead, %": f"{_share(said, 'first')} / {_share(said, 'second')}",
                "three rates say the same, %": _share(said, "same", "rates", 3),
                "three seeds say the same, %": _share(said, "same", "seeds", 3),
                f"seeds with {first} ahead": f"{int(ahead.sum())} of {len(ahead)}",
            }
        )
    return Table(pd.DataFrame(rows), caption)


def _share(said: pd.DataFrame, what: str, of: str = "rates", kept: int = 1) -> str:
    """In percent: of the choices of so many rates or seeds, those that say so."""
    return f"{100 * float(said[what].loc[(of, kept)]):.0f}"
