"""The loss of the next symbol, by window: what claims about losses read.

A sweep that measures `windows` has the mean loss of every window of the test part, in nats a prediction, after the last
step. All seeds test the same windows, so two arms are compared window by window.
"""

import math

import pandas as pd

from fpt.results.cells import TableCell
from fpt.results.rate_ratio import last_losses
from fpt.results.runs import SweepTables, same_rate
from fpt.results.stats import Paired, paired
from fpt.sweeps import selection


def tuned_losses(tables: SweepTables) -> pd.DataFrame:
    """Test loss in nats, seeds x windows: each seed at the rate whose mean validation loss over the other seeds is
    least. A rate at which another seed diverged is not chosen; a seed that diverged at its own has nan. No rows where
    no rate is left, or no window was measured."""
    return tables.once(("tuned losses",), lambda: _tuned(tables))


def _tuned(tables: SweepTables) -> pd.DataFrame:
    if tables.windows.empty:
        return pd.DataFrame()
    rates = selection.choices(-last_losses(tables))
    test = tables.windows[tables.windows["part"] == "test"]
    own = same_rate(test["learning_rate"].to_numpy(float), test["seed"].map(rates).to_numpy(float))
    return test[own].pivot(index="seed", columns="window", values="loss")


def nats_text(lead: Paired) -> str:
    """A difference of losses in nats, with its 95% interval: 0.147 (0.140 to 0.153)."""
    return f"{lead.mean:.3f} ({lead.low:.3f} to {lead.high:.3f})".replace("-", "−")


def lower_loss(first: TableCell, other: TableCell) -> Paired:
    """The loss of the other arm minus that of the first, in nats, paired by seed; positive where the first is better.

    The windows are the same for all seeds, so their sampling is a part of the noise: the variance, over windows, of the
    difference of the arms. No pairs where an arm has no losses.
    """
    one, two = (tuned_losses(each.tables) if each.tables else pd.DataFrame() for each in (first, other))
    if one.empty or two.empty:
        return Paired(0)
    apart = (two - one).dropna(how="all").mean()
    noise = float(apart.var(ddof=1)) / len(apart) if len(apart) > 1 else math.nan
    return paired(two.mean(axis=1), one.mean(axis=1), noise=noise)
