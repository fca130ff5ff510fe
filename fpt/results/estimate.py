"""A number with its 95% interval: levels, contrasts, interactions, ratios of rates and of steps are all of this kind.

It knows what its variance is made of, so it answers for any limit how likely chance alone would put it beyond. How
numbers are written is here and nowhere else: they are kept as they were computed, and rounded once, in a text.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from decimal import ROUND_HALF_UP, Decimal
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy import special

from fpt.seeds import stream

SIGNIFICANCE = 0.05
MINIMUM_PAIRS = 3  # two pairs carry a t-interval of 12.7 standard errors: no verdict from them
MOST_FLIPS = 2**16  # of signs: all of them up to 16 pairs, beyond that so many drawn from a fixed stream
FINE = 1e-7  # of a share: so near is the end of an interval by flips
# Units: a share of 1, which is never printed; a difference of accuracies and an accuracy, of 100; a ratio; loss a
# prediction; the exponent of a power law.
SHARE, POINTS, PERCENT, TIMES, NATS, EXPONENT = "share", "points", "percent", "times", "nats", "exponent"
DIGITS = {POINTS: 1, PERCENT: 1, NATS: 3, EXPONENT: 2}  # after the point; a ratio has two digits in all
IN_WORDS = {POINTS: "{} points", PERCENT: "{}%", TIMES: "{} times", NATS: "{} nats", EXPONENT: "exponent {}"}
MORE = 9  # digits beside these that a text has at most
MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True)
class Estimate:
    """A value with its 95% interval, in one unit. A ratio ("times") has its variance, and is tested, in log10.

    `n`: seeds, or pairs of seeds. The squared standard error is `seed_variance`, of the mean over seeds, plus
    `test_variance`, of test examples that all seeds share and that no further seed makes smaller; with `df` degrees of
    freedom, n - 1 also where there is test variance (those of Welch and Satterthwaite are more: with few seeds noise
    would make an interval shorter). `slack`: by so much the interval is wider at each end.
    `by_seed`: the values of which it is the mean. `flips`: where nothing varies or a run collapsed, the values whose
    signs are flipped in the t-test's place, or those of the noise alone where these give the larger p; the interval is
    of the means that they do not refuse, and `df` is nan.
    `ends`, `p_of_none`: the interval and the p of no effect where they were found in another way; p at any other limit
    is not known then. `reason`: why there is no value, in words. Without a value or with fewer than three pairs, p at
    any limit is 1.
    """

    value: float = math.nan
    n: int = 0
    unit: str = SHARE
    seed_variance: float = math.nan
    test_variance: float = 0.0
    df: float = math.nan
    slack: float = 0.0
    by_seed: tuple[float, ...] = ()
    flips: tuple[float, ...] = ()
    ends: tuple[float, float] | None = None
    p_of_none: float | None = None
    reason: str = ""

    @classmethod
    def of(cls, estimate: "Estimate", **beside: Any) -> Self:
        """The same estimate as one of a kind that has more `beside` it."""
        return cls(**{each.name: getattr(estimate, each.name) for each in fields(Estimate)}, **beside)

    @property
    def mean(self) -> float:
        """The value, by the name that pages have for it."""
        return self.value

    @property
    def none(self) -> float:
        """The value of no effect."""
        return 1.0 if self.unit == TIMES else 0.0

    @property
    def sd(self) -> float:
        """The standard deviation between seeds."""
        return math.sqrt(self.n * self.seed_variance)

    @property
    def error(self) -> float:
        """The standard error."""
        return math.sqrt(self.seed_variance + self.test_variance)

    @cached_property
    def interval(self) -> tuple[float, float]:
        """The 95% interval: what neither `above` nor `below` refuses at 2.5%; nan where there is none."""
        if self.ends is not None:
            return self.ends
        if self.flips:
            return self._interval_by_flips()
        half = self.error * float(special.stdtrit(self.df, 1 - SIGNIFICANCE / 2)) + self.slack
        low, high = self._scale(self.value) - half, self._scale(self.value) + half
        return (10**low, 10**high) if self.unit == TIMES else (low, high)

    @property
    def low(self) -> float:
        return self.interval[0]

    @property
    def high(self) -> float:
        return self.interval[1]

    @cached_property
    def p(self) -> float:
        """Two-sided p of no effect."""
        if self.p_of_none is not None:
            return self.p_of_none
        return min(1.0, 2 * min(self.above(self.none), self.below(self.none)))

    def above(self, limit: float) -> float:
        """One-sided p: small where the value is shown to be above `limit`."""
        return self._tail(limit, 1)

    def below(self, limit: float) -> float:
        """One-sided p: small where the value is shown to be below `limit`."""
        return self._tail(limit, -1)

    def excludes(self, value: float) -> bool:
        """Whether a value lies outside of the interval."""
        return value < self.low or value > self.high

    @property
    def open(self) -> bool:
        """Whether the interval holds no effect; also where nothing is known."""
        return not self.excludes(self.none)

    def __neg__(self) -> Self:
        """The other way round: the second minus the first, or of a ratio the second over the first."""
        ends = None if self.ends is None else (self._turned(self.ends[1]), self._turned(self.ends[0]))
        values, flips = (tuple(-each for each in some) for some in (self.by_seed, self.flips))
        return replace(self, value=self._turned(self.value), ends=ends, by_seed=values, flips=flips)

    def scaled(self, by: float, unit: str) -> Self:
        """The same in a unit of which there are `by` times as many."""
        return replace(
            self,
            value=by * self.value,
            unit=unit,
            seed_variance=by**2 * self.seed_variance,
            test_variance=by**2 * self.test_variance,
            slack=by * self.slack,
            by_seed=tuple(by * each for each in self.by_seed),
            flips=tuple(by * each for each in self.flips),
            ends=(by * self.low, by * self.high),
            p_of_none=self.p,
        )

    @property
    def in_points(self) -> Self:
        """Of a share."""
        return self.scaled(100, POINTS)

    @property
    def in_percent(self) -> Self:
        """Of a share."""
        return self.scaled(100, PERCENT)

    def within(self, least: float, most: float) -> Self:
        """The same with its interval as far as values go, as of an accuracy from 0 to 100 percent."""
        low, high = (float(np.clip(each, least, most)) for each in self.interval)
        return replace(self, ends=(low, high))

    def texts(self, signed: bool | None = None) -> tuple[str, str]:
        """The value, and its interval without brackets: "6.4", "3.3 to 9.5". Why there is no value, where there is none
        ("-": not said), and no interval where it has no ends, as that of one seed.

        `signed`: with a plus; by default where the interval holds no effect. No end is written as no effect where the
        interval excludes it.
        """
        if math.isnan(self.value):
            return self.reason or "-", ""
        plus = self.unit not in (PERCENT, TIMES) and (self.value < 0 or self.open if signed is None else signed)
        most = 1 if self.open else MORE
        value, low, high = (number_text(each, self.unit, plus, most) for each in (self.value, *self.interval))
        return value, "" if math.isnan(self.low) else f"{low} to {high}"

    @property
    def cell(self) -> str:
        """As a table shows it: 6.4 (3.3 to 9.5), signed where it is open."""
        return _joined(*self.texts())

    def __str__(self) -> str:
        """As a sentence says it: 6.4 points (3.3 to 9.5)."""
        value, interval = self.texts()
        return _joined(value if math.isnan(self.value) else IN_WORDS[self.unit].format(value), interval)

    def _scale(self, value: float) -> float:
        """A value on the scale on which intervals are symmetric."""
        if self.unit != TIMES:
            return value
        return math.log10(value) if value else -math.inf

    def _turned(self, value: float) -> float:
        if self.unit != TIMES:
            return -value
        return 1 / value if value else math.inf

    def _tail(self, limit: float, sign: int) -> float:
        if math.isnan(self.value) or self.n < MINIMUM_PAIRS:
            return 1.0
        at = self._scale(limit)
        if math.isinf(at):
            return float(at * sign > 0)
        beyond = sign * (self._scale(self.value) - at)
        if self.flips:
            return self._tail_by_flips(limit, sign, beyond)
        if not self.error:  # without any spread a difference is certain
            return float(beyond <= self.slack)
        if self.slack and beyond <= self.slack:
            return 1.0
        return float(special.stdtr(self.df, (self.slack - beyond) / self.error))

    def _tail_by_flips(self, limit: float, sign: int, beyond: float) -> float:
        from scipy import stats  # half a second that most readers of results do not need

        flips = stats.permutation_test(
            (sign * (np.array(self.flips) - limit),), np.mean, permutation_type="samples", n_resamples=MOST_FLIPS,
            alternative="greater", rng=stream(0, "flips"),
        )  # fmt: skip
        of_noise = float(special.ndtr(-beyond / math.sqrt(self.test_variance))) if self.test_variance else 0.0
        return max(float(flips.pvalue), of_noise)

    def _interval_by_flips(self) -> tuple[float, float]:
        """Sign flips of fewer than six pairs refuse nothing at 2.5% a side: the interval has no ends then."""
        if not self.error:
            refused = 2.0**-self.n <= SIGNIFICANCE / 2  # of equal differences one of 2^n flips is as extreme
            return (self.value, self.value) if refused else (-math.inf, math.inf)
        reach = 10 * (float(np.ptp(self.flips)) + math.sqrt(self.test_variance))
        return _end(self.above, self.value, -reach), _end(self.below, self.value, reach)


def _end(p_value: Callable[[float], float], value: float, reach: float) -> float:
    """Where a one-sided p-value, which is large at the value, falls to 2.5%; infinite where it never does."""
    side = SIGNIFICANCE / 2
    if p_value(value + reach) > side:
        return math.copysign(math.inf, reach)
    from scipy import optimize

    return float(optimize.bisect(lambda limit: p_value(limit) - side, value + reach, value, xtol=FINE))


def _joined(value: str, interval: str) -> str:
    return f"{value} ({interval})" if interval else value


def number_text(value: float, unit: str, signed: bool = False, most: int = 1) -> str:
    """A number in a unit as text, with a true minus, and with a plus where asked for.

    Up to `most` digits more where fewer would make it no effect: 0.04 points, 1.004 times. Without an end a ratio is
    "any" number of times.
    """
    if unit == TIMES and math.isinf(value):
        return "any"
    shown = [_unsigned(value, unit, more) for more in range(most + 1)]
    told = [text for text in shown if text != "1" and text.strip("0.")]
    if unit == TIMES or not told:
        return (told or shown)[0]
    return (MINUS if value < 0 else "+" * signed) + told[0]


def _unsigned(value: float, unit: str, more: int) -> str:
    return two_digits(value, more) if unit == TIMES else rounded(abs(value), DIGITS[unit] + more)


def rounded(value: float, digits: int, sign: str = "") -> str:
    """A number as text, halves away from zero, with thousands and a true minus; `sign` "+": with its sign.

    Pages round what was computed, cards the digits that a table keeps of it: binary halves would go either way.
    """
    if not math.isfinite(value):
        return f"{value:{sign}}".replace("-", MINUS)
    exact = Decimal(str(round(value, 9)))  # equal means print alike, however they were summed
    nearest = exact.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP) + 0  # + 0: no minus before 0
    return f"{nearest:{sign},f}".replace("-", MINUS)


def two_digits(value: float, more: int = 0) -> str:
    """The first two digits of a number, or some `more`, with a true minus and no power of ten: 0.5, 2.4, 1,000."""
    text = f"{float(f'{abs(value):.{2 + more}g}'):,.10g}"
    return MINUS + text if value < 0 else text
