"""The functions that decide claims, each entered by its decorator: by its kind, or for the claims that it serves."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from fpt.errors import check_known
from fpt.results.cells import AT_PAPERS_RATE, TUNED

if TYPE_CHECKING:
    from fpt.claims.case import Case, Comparison

    Decides = Callable[[Case], list[Comparison]]

F = TypeVar("F", bound=Callable[..., Any])

# How a rule splits into contrasts, of which each may be read in another study; by default it is one.
WITH_FIRST, ALONE, IN_ORDER = "the others with the first", "each row alone", "each row with the one before"
EVERY_RATE: tuple[str, ...] = ()  # read on the whole grid
AT_BOTH = (TUNED, AT_PAPERS_RATE)


@dataclass(frozen=True)
class Entry:
    """A function that decides rules, and what holds of all of them."""

    function: "Decides"
    claims: tuple[str, ...] = ()  # that it serves; none: a kind that many share
    splits: str = ""
    at: tuple[str, ...] | None = None  # where rates are read; None: where the rule says
    likeness: bool = False


KINDS: dict[str, Entry] = {}  # the kinds of `fpt.papers.schema.KINDS`, by name
SINGLE: dict[str, Entry] = {}  # functions of one claim or a few, by name


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
