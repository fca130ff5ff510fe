"""Errors that a user can correct: they say what was given, what is allowed and where it came from."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

MOST_NAMES = 120  # of a message: the library alone has some 400 kinds of models


class FptError(Exception):
    """Base of every error the command line prints without a traceback (exit code 2)."""


class SpecError(FptError):
    """A study, a notebook parameter or an argument that is not allowed."""


class MisfitError(SpecError):
    """Fields of a sweep that do not go together, though each is allowed: eight layers of a model that has four."""


class DataError(FptError):
    """Data that is missing, truncated or altered."""


class WeightsError(FptError):
    """Pretrained weights that are missing or altered."""


class LockedError(FptError):
    """A results folder that another process is writing, or that holds another spec."""


@contextmanager
def naming(place: object) -> Iterator[None]:
    """The door of a file: what is wrong inside is told with the place before it."""
    try:
        yield
    except FptError as error:
        raise type(error)(f"{place}: {error}") from error


def check_known(kind: str, given: object, allowed: Collection[Any], source: str = "") -> None:
    """Raise the error of `unknown` unless `given` is one of `allowed`."""
    if given not in list(allowed):  # what is given may be of any type, and then has no place in a mapping
        raise unknown(kind, given, allowed, source)


def unknown(kind: str, given: object, allowed: Iterable[str], source: str = "") -> SpecError:
    """The error for a name that does not exist: the name, the nearest match, the list of what exists."""
    names = sorted(allowed)
    near = get_close_matches(str(given), names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    where = f" ({source})" if source else ""
    listed = ", ".join(names[:MOST_NAMES]) or "none"
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return SpecError(f"unknown {kind} {given!r}{where}.{hint} Known: {listed}{more}.")


def check_options(owner: str, given: Mapping[str, Any], defaults: Mapping[str, Any], source: str = "") -> None:
    """Raise SpecError for an option that `owner` does not have, and for a value of another type than its default."""
    for name, value in given.items():
        check_known(f"option of {owner}", name, defaults, source)
        if type(value) is not (kind := type(defaults[name])):
            where = f" ({source})" if source else ""
            raise SpecError(f"{owner}: option {name} is {value!r}{where}, but must be {kind.__name__}.")
