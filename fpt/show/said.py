"""Numbers for prose: what a page glues into its sentences, and what it says of them.

`say` shows a value. `leads`, `trails` and `open_` show it as well, and refuse it where its interval lies elsewhere.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

from fpt.errors import FptError
from fpt.results.contrasts import Contrast, Level
from fpt.results.estimate import POINTS, Estimate, number_text, rounded
from fpt.results.runs import rate_text

INSTEAD: ContextVar[dict[str, str] | None] = ContextVar("instead", default=None)  # of the page, where it is checked


class GuardError(FptError):
    """Numbers are no longer what their page says of them. `failed`: what is wrong, by the name of the number."""

    def __init__(self, failed: dict[str, str], phrases: tuple[str, ...] = ()):
        self.failed, self.phrases = failed, phrases
        resting = f". Sentences that rest on it: {'; '.join(phrases)}" if phrases else ""
        super().__init__("; ".join(f"{name}: {why}" for name, why in failed.items()) + resting)


@dataclass(frozen=True)
class Word:
    """The verdict on a claim or a finding: its word, and the counts of pairs behind it."""

    word: str
    counts: str

    def __str__(self) -> str:
        return f"{self.word} ({self.counts})" if self.counts else self.word


def say(**shown: Any) -> None:
    """Glue each value under its name, for `{glue:text}` in the page's prose.

    Of a contrast `d`: d (6.4 points (3.3 to 9.5)), d.cell (without the unit), d.mean, d.low, d.high, d.most_lost,
    d.first, d.second, d.n. Of a level `x`: x (96.9% (95.6 to 98.2)), x.cell, x.mean, x.low, x.high, x.rate.
    Of a verdict `w`: w (holds here (4 for, 0 against, 3 open)), w.word, w.counts. A fraction of points has one decimal,
    a whole number its thousands; text stays as it is. No value is nan.
    """
    texts: dict[str, str] = {}
    for name, value in shown.items():
        texts |= said(name, value)
    if (instead := INSTEAD.get()) is not None:
        instead |= texts
        return
    from myst_nb import glue

    for key, text in texts.items():
        glue(key, text, display=False)


def leads(*told: Any, **shown: Any) -> None:
    """Show each value as `say` does, where the page says that the first arm leads: the interval must lie above 0,
    and that of a ratio above 1.

    `told`: phrases of sentences that rest on the values and show none of them; after a phrase also values that are held
    alike and not shown. Raises GuardError for intervals that lie elsewhere.
    """
    _guarded("leads", "above {none:g}", lambda value: value.low > value.none, told, shown)


def trails(*told: Any, **shown: Any) -> None:
    """Show each value, where the page says that the first arm trails: the interval must lie below 0.

    Phrases, further values and errors as those of `leads`.
    """
    _guarded("trails", "below {none:g}", lambda value: value.high < value.none, told, shown)


def open_(*told: Any, **shown: Any) -> None:
    """Show each value, where the page says that it is too close to call: the interval must hold 0.

    Phrases, further values and errors as those of `leads`.
    """
    _guarded("open_", "on both sides of {none:g}", lambda value: value.low <= value.none <= value.high, told, shown)


def _guarded(guard: str, place: str, holds: Callable[[Any], bool], told: Sequence[Any], shown: dict[str, Any]) -> None:
    say(**shown)
    phrases = tuple(each for each in told if isinstance(each, str))
    further = [each for each in told if not isinstance(each, str)]
    assert phrases or not further, f"{guard}: a value that is not shown needs a phrase of the sentence that rests on it"
    held = shown | {f"value {number}": each for number, each in enumerate(further, 1)}
    without = [name for name, value in held.items() if not isinstance(value, Estimate)]
    assert not without, f"{guard}({', '.join(without)}): it has no interval; `say` shows it"
    failed = {
        name: f"{value}, but {guard}({name}=...) says that the interval lies {place.format(none=value.none)}"
        for name, value in held.items()
        if not holds(value)
    }
    if failed:
        raise GuardError(failed, phrases)


@contextmanager
def collected() -> Iterator[dict[str, str]]:
    """What `say` is given inside goes into this mapping, and into no page."""
    texts: dict[str, str] = {}
    before = INSTEAD.set(texts)
    try:
        yield texts
    finally:
        INSTEAD.reset(before)


def said(name: str, value: Any) -> dict[str, str]:
    """The texts of one value by the keys under which a page finds them."""
    if isinstance(value, Word):
        return {name: str(value), f"{name}.word": value.word, f"{name}.counts": value.counts}
    if not isinstance(value, Estimate):
        assert not (isinstance(value, Real) and math.isnan(value)), f"say({name}=...): it is not a number (nan)"
        return {name: text_of(name, value)}
    found = {name: str(value), f"{name}.cell": value.cell, f"{name}.n": rounded(value.n, 0)}
    found |= {f"{name}.{part}": number_text(getattr(value, part), value.unit) for part in ("mean", "low", "high")}
    if isinstance(value, Contrast):
        beside = ("most_lost", "first", "second")
        found |= {f"{name}.{part}": number_text(getattr(value, part), POINTS) for part in beside}
    if isinstance(value, Level) and value.rate is not None:
        found[f"{name}.rate"] = rate_text(value.rate)
    return found


def text_of(name: str, value: Any) -> str:
    """A number or a text as prose shows it."""
    if isinstance(value, str):
        return value
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    assert is_number, f"say({name}=...): {value!r} is no contrast, level, verdict, number or text"
    return rounded(int(value), 0) if isinstance(value, Integral) else number_text(float(value), POINTS)
