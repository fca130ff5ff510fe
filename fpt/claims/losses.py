"""The rules on losses: where the best learning rates of two arms lie, and which arm ends with the lower loss."""

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pandas as pd

from fpt.claims.case import DECADES, EXPONENT, NATS, Case, Comparison, decades, limits_in_decades
from fpt.claims.registry import EVERY_RATE, decides, kind
from fpt.models import backbone
from fpt.results.baselines import untouched_loss
from fpt.results.estimate import Estimate
from fpt.results.losses import lower_loss, tuned_losses
from fpt.results.rate_ratio import TENFOLD, RateRatio, fall, last_losses, ratio_in_theory, slope
from fpt.results.rate_ratio import rate_ratio as ratio_of
from fpt.results.stats import MINIMUM_PAIRS, POINT

RATES = "best rate by validation loss"  # what is compared
SAME = 0.25  # exponents so close are the same: half of the way from 0 to one half
EXPONENTS = (0.0, 0.5, 1.0)  # of ten times for every model, of the other power, of width / (2 alpha)


@kind(at=EVERY_RATE)
def rate_ratio(case: Case) -> list[Comparison]:
    """The best rate of the first row over that of the second, by validation loss, lies between `by` and `to`.

    A likeness where both bound it: two one-sided tests, together at 5%. Read by fpt.results.rate_ratio.
    """
    first, second = case.rule.rows
    planes = [_losses(case, row) for row in (first, second)]
    if too_few(planes):
        return []
    found = ratio_of(*planes)
    words = f"best rate of {case.label(first)} / {case.label(second)}"
    if found.reason:
        return [Comparison(words, Estimate(), note=found.reason, unit=DECADES, **_of_rates(case))]
    least, most = case.rule.by, case.rule.to
    above, below = found.above(least) if least else 0.0, found.below(most) if math.isfinite(most) else 0.0
    both = bool(least) and math.isfinite(most)
    supports = min(1.0, max(above, below) * (1 if both else 2))
    against = [found.below(least) if least else 1.0, found.above(most) if math.isfinite(most) else 1.0]
    contradicts = min(1.0, 2 * min(against))
    estimate = decades(found)
    return [
        Comparison(
            words,
            Estimate(),
            supports=supports,
            contradicts=contradicts,
            note=_excluded(case, found),
            likeness=both,
            unit=DECADES,
            ratio=estimate,
            at_zero=found.p,
            limits=limits_in_decades(least, most),
            **_of_rates(case),
        )
    ]


def _of_rates(case: Case) -> dict[str, Any]:
    """The arms whose best rates are compared, two by two."""
    sweeps = case.sweeps(case.rule.rows)
    return {"of": RATES, "plus": sweeps[::2], "minus": sweeps[1::2]}


def too_few(planes: Iterable[pd.DataFrame]) -> bool:
    """Whether arms have fewer seeds in common than an interval needs."""
    return len(set.intersection(*(set(plane.index) for plane in planes))) < MINIMUM_PAIRS


def _losses(case: Case, row: str) -> pd.DataFrame:
    tables = case.rows[row].arm
    return last_losses(tables) if tables else pd.DataFrame()


def _excluded(case: Case, found: RateRatio) -> str:
    """Which of 1, width / (2 alpha) and 10 the interval excludes."""
    first, second = (case.rows[row].spec for row in case.rule.rows)
    named = {"1": 1.0, "10": TENFOLD}
    if first and second and (theory := ratio_in_theory(first, second)):
        named[f"width / (2 alpha) = {theory:g}"] = theory
    excluded = [name for name, ratio in named.items() if found.excludes(ratio)]
    return f"excludes {', '.join(excluded) or 'none of ' + ', '.join(named)}"


@decides("S-08", at=EVERY_RATE)
def falls_with_steps(case: Case) -> list[Comparison]:
    """The ratio of the best rates of two rows, by validation loss, is larger after an eighth of the steps than after
    all of them: their rate is constant, so the runs are those of a shorter study."""
    first, second = (case.rows[row] for row in case.rule.rows)
    if first.arm is None or second.arm is None or too_few([_losses(case, row) for row in case.rule.rows]):
        return []
    step = max((budget for budget in first.budgets if 8 * budget <= first.budgets[-1]), default=None)
    if step is None:  # with a warm-up or a schedule a run is no shorter one on its way
        return []
    found, sides = fall(first.arm, second.arm, step), _of_rates(case) | {"of": f"fall of the {RATES}"}
    words = f"best rate of {first.label} / {second.label}, after {step:,} steps / after {first.budgets[-1]:,}"
    if found.reason:
        return [Comparison(words, Estimate(), note=found.reason, unit=DECADES, budget=step, **sides)]
    return [
        Comparison(
            words,
            Estimate(),
            supports=min(1.0, 2 * found.above(1)),
            contradicts=min(1.0, 2 * found.below(1)),
            unit=DECADES,
            ratio=decades(found),
            at_zero=found.p,
            budget=step,
            **sides,
        )
    ]


@decides("S-03", at=EVERY_RATE, likeness=True)
def ratio_slope(case: Case) -> list[Comparison]:
    """The ratio of best rates is the same at every width: its exponent in width is nearer to 0 than to one half.

    Rows: an arm and full training at each of the widths, two by two.
    """
    rows = case.rule.rows
    by_width = {}
    for first, second in zip(rows[::2], rows[1::2], strict=True):
        planes = _losses(case, first), _losses(case, second)
        if too_few(planes):
            return []
        by_width[float(backbone(case.rows[first].fields["backbone"]).width)] = planes
    found, sides = slope(by_width), _of_rates(case) | {"of": f"exponent of the {RATES}"}
    words = f"exponent in width of the ratio of best rates, {case.label(rows[0])} / {case.label(rows[1])}"
    if found.reason:
        return [Comparison(words, Estimate(), note=found.reason, unit=EXPONENT, **sides)]
    inside = max(found.above(-SAME), found.below(SAME))
    outside = min(1.0, 2 * min(found.below(-SAME), found.above(SAME)))
    excluded = [f"{each:g}" for each in EXPONENTS if found.excludes(each)]
    note = f"excludes {', '.join(excluded) or 'none of ' + ', '.join(f'{each:g}' for each in EXPONENTS)}"
    estimate = (found.value, found.low, found.high)
    return [
        Comparison(
            words,
            Estimate(),
            supports=inside,
            contradicts=outside,
            note=note,
            unit=EXPONENT,
            ratio=estimate,
            at_zero=found.p,
            limits=(-SAME, SAME),
            likeness=True,
            **sides,
        )
    ]


@decides("S-05", "X-15")
def lower(case: Case) -> list[Comparison]:
    """The first row ends with a lower test loss than each of the others, each at its own rate."""
    first, *others = case.rule.rows
    comparisons = []
    for other in others:
        test = lower_loss(case.rows[first], case.rows[other])
        if test.n:
            words = f"loss of {case.label(other)} - {case.label(first)}"
            comparisons.append(case.comparison(words, test, unit=NATS, **_of_losses(case, other, first)))
    return comparisons


def _of_losses(case: Case, *rows: str) -> dict[str, Any]:
    """Of two rows, the first minus the second: tuned, as `lower_loss` reads them."""
    first, second = rows
    one, two = (tuned_losses(tables).mean(axis=1, skipna=False) for row in rows if (tables := case.rows[row].arm))
    both = (one - two).dropna().index
    return {
        "of": "test loss",
        "plus": case.sweeps([first]),
        "minus": case.sweeps([second]),
        "levels": (float(one[both].mean()), float(two[both].mean())),
    }


@decides("S-01", "S-06", likeness=True)
def same_loss(case: Case) -> list[Comparison]:
    """Two rows end within `by` percent of what the last row gains over the untouched model, in test loss."""
    first, second, *_ = case.rule.rows
    full = case.rule.rows[-1]
    cell = case.rows[full]
    before = untouched_loss(cell.task, cell.fields["backbone"])
    test = lower_loss(case.rows[first], case.rows[second])
    if not test.n or before is None or cell.arm is None:
        return [case.untested("the loss of the untouched model was not counted")] if before is None else []
    gain = before - float(tuned_losses(cell.arm).dropna(how="all").to_numpy().mean())
    margin = case.rule.by * POINT * gain
    words, sides = f"loss of {case.label(second)} - {case.label(first)}", _of_losses(case, second, first)
    if not margin > 0:
        nothing = [f"{case.label(full)} gains nothing over the untouched model"]
        found = case.comparison(words, test, notes=nothing, unit=NATS, **sides)
        return [replace(found, supports=1.0, contradicts=1.0, limits=(math.nan, math.nan))]
    note = f"margin {margin:.3f}: {case.rule.by:g}% of a gain of {gain:.3f} nats"
    return [case.comparison(words, test, -margin, margin, equivalence=True, notes=[note], unit=NATS, **sides)]
