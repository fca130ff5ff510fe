"""The loss of the next symbol, by window: what claims about losses read.

A sweep that measures `windows` has the mean loss of each window that it tests, in nats a prediction, after the last
step. A seed tests its own sample of the test part, the same for all arms and rates: so two arms are compared window by
window within a seed.
"""

import math

import pandas as pd

from fpt.results.arm import Arm, at_own, remembered
from fpt.results.estimate import NATS, Estimate
from fpt.results.rate_ratio import last_losses
from fpt.results.stats import paired
from fpt.sweeps import selection


@remembered
def tuned_losses(arm: Arm) -> pd.DataFrame:
    """Test loss in nats, seeds x windows: each seed at the rate whose mean validation loss over the other seeds is
    least. A rate at which another seed diverged is not chosen; a seed that diverged at its own has nan. No rows where
    no rate is left, or no window was measured."""
    if arm.windows.empty:
        return pd.DataFrame()
    test = arm.windows[arm.windows["part"] == "test"]
    chosen = at_own(test, selection.choices(-last_losses(arm)))
    return test[chosen].pivot(index="seed", columns="window", values="loss")


def _tuned_without(arm: Arm) -> pd.DataFrame:
    """The mean loss of each seed without another, as fpt.sweeps.selection.tuned_without."""
    test = arm.windows[arm.windows["part"] == "test"]
    means = test.groupby(["seed", "learning_rate"])["loss"].agg(lambda losses: losses.mean(skipna=False)).unstack()
    return selection.tuned_without(-last_losses(arm), means)


def lower_loss(first: Arm, other: Arm) -> Estimate:
    """The loss of the other arm minus that of the first, in nats, paired by seed; positive where the first is better.

    All seeds draw their windows from one test part, so the sampling of that part is noise which seeds share: the
    variance, over the windows of a seed, of the difference of the arms, divided by the windows of the part (0 where
    each seed tests windows made for it). No pairs where an arm has no losses.
    """
    losses = [tuned_losses(arm) for arm in (first, other)]
    if any(each.empty for each in losses):
        return Estimate(unit=NATS)
    apart = losses[1] - losses[0]
    noise = float(apart.var(axis=1).mean()) / first.sampled_from
    without = _tuned_without(other) - _tuned_without(first)
    noise = noise if math.isfinite(noise) else 0.0
    return paired(apart.mean(axis=1, skipna=False), 0.0, noise=noise, without=without, unit=NATS)
