"""Tables with a row a pair of model and task: accuracy and best rate by arm; what less evidence would have said."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from fpt.claims.sensitivity import conclusions
from fpt.results.cells import TableCell
from fpt.results.contrasts import cell_of, level
from fpt.results.runs import rate_text
from fpt.show.html import Table

ARMS = ("FR", "FP", "UR", "UP")  # of Rothermel et al., in the order of their Table 1


@dataclass(frozen=True)
class Pair:
    """A model and a task with the study that speaks for them; `suffix` ends the names of its arms, as " (layers 4)"."""

    name: str
    study: str
    task: str = ""
    suffix: str = ""

    def cell(self, arm: str) -> TableCell:
        return cell_of(self.study, arm + self.suffix, self.task)


def best_of(pairs: Sequence[Pair], caption: str) -> Table:
    """Tuned accuracy in percent of the four arms and, in brackets, the rate with the best mean over all seeds."""
    rows = []
    for pair in pairs:
        row = {"pair": pair.name}
        for arm in ARMS:
            shown = level(pair.study, arm + pair.suffix, task=pair.task)
            rate = "" if shown.rate is None else f" ({rate_text(shown.rate)})"
            row[f"{arm}, %"] = f"{shown.mean:.1f}{rate}"
        rows.append(row)
    return Table(pd.DataFrame(rows), caption)


def less_evidence(pairs: Sequence[Pair], first: str, second: str, caption: str) -> Table:
    """What one shared rate, three rates or three seeds would have concluded of the first arm minus the second.

    Shares in percent of the choices of rates or seeds (`fpt.claims.sensitivity.conclusions`). The last column counts
    single seeds in which the first arm is ahead, each arm at its own rate.
    """
    rows = []
    for pair in pairs:
        one, other = pair.cell(first), pair.cell(second)
        said = conclusions(one, other).set_index(["of", "kept"])
        ahead = one.values() > other.values()
        rows.append(
            {
                "pair": pair.name,
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
