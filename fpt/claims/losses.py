"""What is measured of losses: where the best learning rates of two arms lie, and which arm ends with the lower loss."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fpt.claims.case import Case, Comparison, of_test
from fpt.models import backbone
from fpt.results.baselines import untouched_loss
from fpt.results.estimate import Estimate
from fpt.results.losses import lower_loss, tuned_losses
from fpt.results.rate_ratio import TENFOLD, fall, last_losses, rate_ratio, ratio_in_theory, slope
from fpt.results.stats import MINIMUM_PAIRS, POINT

RATES = "best rate by validation loss"  # what is compared
EXPONENTS = {f"{each:g}": each for each in (0.0, 0.5, 1.0)}  # of ten times, of the other power, of width / (2 alpha)


def ratio_of_rates(case: Case, plus: Sequence[str], minus: Sequence[str]) -> list[Comparison]:
    """The best rate of one row over that of another, by validation loss (fpt.results.rate_ratio)."""
    if (planes := _losses(case, plus, minus)) is None:
        return []
    (first,), (second,) = plus, minus
    named = {"1": 1.0, "10": TENFOLD}
    if theory := ratio_in_theory(case.arms[first].spec, case.arms[second].spec):
        named[f"width / (2 alpha) = {theory:g}"] = theory
    words = f"best rate of {case.label(first)} / {case.label(second)}"
    found = rate_ratio(*planes)
    return [_of_rates(case, words, found, _excluded(found, named), plus, minus)]


def fall_of_ratio(case: Case, plus: Sequence[str], minus: Sequence[str]) -> list[Comparison]:
    """That ratio after an eighth of the steps over that after all of them: their rate is constant, so the runs are
    those of a shorter study."""
    if _losses(case, plus, minus) is None:
        return []
    first, second = case.arms[plus[0]], case.arms[minus[0]]
    step = max((budget for budget in first.budgets if 8 * budget <= first.budgets[-1]), default=None)
    if step is None:  # with a warm-up or a schedule a run is no shorter one on its way
        return []
    rows = f"{case.label(plus[0])} / {case.label(minus[0])}"
    words = f"best rate of {rows}, after {step:,} steps / after {first.budgets[-1]:,}"
    found = fall(first, second, step)
    return [replace(_of_rates(case, words, found, "", plus, minus, f"fall of the {RATES}"), budget=step)]


def exponent_in_width(case: Case, plus: Sequence[str], minus: Sequence[str]) -> list[Comparison]:
    """The exponent of the ratio in width, of an arm and full training at each of the widths."""
    by_width = {}
    for first, second in zip(plus, minus, strict=True):
        if (planes := _losses(case, [first], [second])) is None:
            return []
        by_width[float(backbone(case.arms[first].fields["backbone"]).width)] = planes
    words = f"exponent in width of the ratio of best rates, {case.label(plus[0])} / {case.label(minus[0])}"
    found = slope(by_width)
    return [_of_rates(case, words, found, _excluded(found, EXPONENTS), plus, minus, f"exponent of the {RATES}")]


def _losses(case: Case, *sides: Sequence[str]) -> Any:
    """Of the row of each side, seeds x rates; None where they share fewer seeds than an interval needs."""
    planes = [last_losses(case.arms[row]) for rows in sides for row in rows]
    shared = set.intersection(*({*plane.index} for plane in planes))
    return planes if len(shared) >= MINIMUM_PAIRS else None


def _excluded(found: Estimate, named: dict[str, float]) -> str:
    """Which of some values the interval excludes."""
    excluded = [name for name, value in named.items() if found.excludes(value)]
    return f"excludes {', '.join(excluded) or 'none of ' + ', '.join(named)}"


def _of_rates(
    case: Case, words: str, found: Estimate, note: str, plus: Sequence[str], minus: Sequence[str], of: str = RATES
) -> Comparison:
    above, under = case.sweeps(plus), case.sweeps(minus)
    return Comparison(words, found, note=found.reason or note, of=of, plus=above, minus=under)


def test_loss(case: Case, plus: Sequence[str], minus: Sequence[str]) -> list[Comparison]:
    """The test loss at the end, each row at its own rate, paired by seed."""
    (above,), (under,) = plus, minus
    found = lower_loss(case.arms[under], case.arms[above])
    if not found.n:
        return []
    one, two = (tuned_losses(case.arms[row]).mean(axis=1, skipna=False) for row in (above, under))
    both = (one - two).dropna().index
    return [
        Comparison(
            f"loss of {case.label(above)} - {case.label(under)}",
            found,
            note=of_test(found),
            of="test loss",
            plus=case.sweeps(plus),
            minus=case.sweeps(minus),
            levels=(float(one[both].mean()), float(two[both].mean())),
        )
    ]


def same_loss(case: Case) -> list[Comparison]:
    """Two rows end within `by` percent of what the last row gains over the untouched model, in test loss."""
    first, second, *_ = case.rule.rows
    last = case.rule.rows[-1]
    full = case.arms[last]
    before = untouched_loss(full.task, full.fields["backbone"])
    if before is None:
        return [case.untested("the loss of the untouched model was not counted")]
    found = test_loss(case, [second], [first])
    if not found:
        return []
    gain = before - float(tuned_losses(full).dropna(how="all").to_numpy().mean())
    margin = case.rule.by * POINT * gain
    if not margin > 0:
        nothing = f"{case.label(last)} gains nothing over the untouched model"
        return [replace(each, note=_joined(nothing, each.note), limits=(math.nan, math.nan)) for each in found]
    note = f"margin {margin:.3f}: {case.rule.by:g}% of a gain of {gain:.3f} nats"
    return [replace(each, note=_joined(note, each.note)).within(-margin, margin, likeness=True) for each in found]


def _joined(*notes: str) -> str:
    return "; ".join(filter(None, notes))
