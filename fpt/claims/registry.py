"""What decides rules, entered by kind or for the claims that it serves: a row of a table, or a function."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

from fpt.errors import check_known
from fpt.results.cells import AT_PAPERS_RATE, TUNED

if TYPE_CHECKING:
    from fpt.claims.case import Case, Comparison

    Decides = Callable[[Case], list[Comparison]]

F = TypeVar("F", bound=Callable[..., Any])
Rows = tuple[str, ...]


def with_first(rows: Sequence[str]) -> list[tuple[Rows, Rows]]:
    """The first row minus each of the others."""
    first, *others = rows
    return [((first,), (other,)) for other in others]


def less_first(rows: Sequence[str]) -> list[tuple[Rows, Rows]]:
    """Each of the others minus the first."""
    first, *others = rows
    return [((other,), (first,)) for other in others]


def in_order(rows: Sequence[str]) -> list[tuple[Rows, Rows]]:
    """Each row minus the one before."""
    return [((above,), (under,)) for under, above in pairwise(rows)]


def alone(rows: Sequence[str]) -> list[tuple[Rows, Rows]]:
    """Each row, from which a score is taken off, or nothing."""
    return [((row,), ()) for row in rows]


def first_step(rows: Sequence[str]) -> list[tuple[Rows, Rows]]:
    """The difference of the first two rows, minus that of each later two that are neighbours."""
    (start, end), *others = pairwise(rows)
    return [((end, under), (start, above)) for under, above in others]


def two_differences(rows: Sequence[str]) -> list[tuple[Rows, Rows]]:
    """The first row minus the second, minus the difference of the third and the fourth."""
    first, second, third, fourth = rows
    return [((first, fourth), (second, third))]


# How a rule splits into contrasts, of which each may be read in another study; by default it is one.
SPLITS: dict[Any, Callable[[Sequence[str]], list[Rows]]] = {
    with_first: lambda rows: [(rows[0], other) for other in rows[1:]],
    less_first: lambda rows: [(rows[0], other) for other in rows[1:]],
    in_order: lambda rows: list(pairwise(rows)),
    alone: lambda rows: [(row,) for row in rows],
}
EVERY_RATE: tuple[str, ...] = ()  # read on the whole grid
AT_BOTH = (TUNED, AT_PAPERS_RATE)


@dataclass(frozen=True)
class Entry:
    """What decides rules, and what holds of all of them."""

    function: "Decides"
    claims: tuple[str, ...] = ()  # that it serves; none: a kind that many share
    splits: Callable[..., Any] | None = None  # one of SPLITS
    at: tuple[str, ...] | None = None  # where rates are read; None: where the rule says
    likeness: bool = False


KINDS: dict[str, Entry] = {}  # the kinds of `fpt.papers.schema.KINDS`, by name
SINGLE: dict[str, Entry] = {}  # what decides one claim or a few, by name


def kind(**facts: Any) -> Callable[[F], F]:
    """Enters a function that decides rules of the kind of its name, with the facts of its `Entry`."""

    def enter(function: F) -> F:
        KINDS[function.__name__] = Entry(function, **facts)
        return function

    return enter


def decides(*claims: str, **facts: Any) -> Callable[[F], F]:
    """Enters a function that decides these claims; their rules name it: `{function: drop, rows: [UP], ...}`."""

    def enter(function: F) -> F:
        SINGLE[function.__name__] = Entry(function, claims, **facts)
        return function

    return enter


def entry_of(name: str) -> Entry:
    """What decides rules of this kind. Raises SpecError for an unknown one."""
    known = KINDS | SINGLE
    check_known("function of fpt.claims", name, known)
    return known[name]
