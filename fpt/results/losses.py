"""The loss of the next symbol, by window: what claims about losses read.

A sweep that measures `windows` has the mean loss of each window that it tests, in nats a prediction, after the last
step. A seed tests its own sample of the test part, the same for all arms and rates: so two arms are compared window by
window within a seed.
"""

import math

import pandas as pd

from fpt.results.cells import TableCell
from fpt.results.contrasts import rounded
from fpt.results.rate_ratio import last_losses
from fpt.results.runs import SweepTables, same_rate
from fpt.results.stats import Paired, paired
from fpt.sweeps import selection


def tuned_losses(tables: SweepTables) -> pd.DataFrame:
    """Test loss in nats, seeds x windows: each seed at the rate whose mean validation loss over the other seeds is
    least. A rate at which another seed diverged is not chosen; a seed that diverged at its own has nan. No rows where
    no rate is left, or no window was measured."""
    return tables.once(("tuned losses",), lambda: _tuned(tables))


def _tuned_without(tables: SweepTables) -> pd.DataFrame:
    """The mean loss of each seed without another, as fpt.sweeps.selection.tuned_without."""
    test = tables.windows[tables.windows["part"] == "test"]
    means = test.groupby(["seed", "learning_rate"])["loss"].agg(lambda losses: losses.mean(skipna=False)).unstack()
    return selection.tuned_without(-last_losses(tables), means)


def _tuned(tables: SweepTables) -> pd.DataFrame:
    if tables.windows.empty:
        return pd.DataFrame()
    rates = selection.choices(-last_losses(tables))
    test = tables.windows[tables.windows["part"] == "test"]
    chosen = same_rate(test["learning_rate"].to_numpy(float), test["seed"].map(rates).to_numpy(float))
    return test[chosen].pivot(index="seed", columns="window", values="loss")


def nats_text(lead: Paired) -> str:
    """A difference of losses in nats, with its 95% interval: 0.147 (0.140 to 0.153)."""
    mean, low, high = (rounded(each, 3) for each in (lead.mean, lead.low, lead.high))
    return f"{mean} ({low} to {high})"


def lower_loss(first: TableCell, other: TableCell) -> Paired:
    """The loss of the other arm minus that of the first, in nats, paired by seed; positive where the first is better.

    All seeds draw their windows from one test part, so the sampling of that part is noise which seeds share: the
    variance, over the windows of a seed, of the difference of the arms, divided by the windows of the part (0 where
    each seed tests windows made for it). No pairs where an arm has no losses.
    """
    one, two = (tuned_losses(each.tables) if each.tables else pd.DataFrame() for each in (first, other))
    if first.tables is None or other.tables is None or one.empty or two.empty:
        return Paired(0)
    apart = two - one
    noise = float(apart.var(axis=1).mean()) / first.tables.sampled_from
    without = _tuned_without(other.tables) - _tuned_without(first.tables)
    noise = noise if math.isfinite(noise) else 0.0
    return paired(apart.mean(axis=1, skipna=False), 0.0, noise=noise, without=without)
