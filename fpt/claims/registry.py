"""The functions that decide claims, each entered by its decorator: by its kind, or for the claims that it serves."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from fpt.errors import check_known

if TYPE_CHECKING:
    from fpt.claims.case import Case, Comparison

    Decides = Callable[[Case], list[Comparison]]

F = TypeVar("F", bound=Callable[..., Any])

KINDS: "dict[str, Decides]" = {}  # the kinds of `fpt.papers.schema.KINDS`, by name
OWN: "dict[str, Decides]" = {}  # functions of one claim or a few, by name
CLAIMS: dict[str, tuple[str, ...]] = {}  # name of such a function -> the claims that it serves


def kind(function: F) -> F:
    """Enters a function that decides rules of the kind of its name."""
    KINDS[function.__name__] = function
    return function


def decides(*claims: str) -> Callable[[F], F]:
    """Enters a function that decides these claims; their rules name it: `{function: drop, rows: [UP], ...}`."""

    def enter(function: F) -> F:
        OWN[function.__name__] = function
        CLAIMS[function.__name__] = claims
        return function

    return enter


def function_of(name: str) -> "Decides":
    """The function that decides rules of this kind. Raises SpecError for an unknown one."""
    known = KINDS | OWN
    check_known("function of fpt.claims", name, known)
    return known[name]
