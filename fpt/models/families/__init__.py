"""Families of backbones, a module each: what a family changes of the default in library.py is its FAMILY.

A module is imported when a backbone of its family is used. No torch here.
"""

import re
from dataclasses import replace
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from fpt.errors import check_known
from fpt.models.arms import GROUPS

if TYPE_CHECKING:
    from fpt.models.catalogue import Backbone
    from fpt.models.families.library import Family


def names() -> list[str]:
    """Families that there are."""
    return [module.name for module in iter_modules(__path__)]


@cache
def family(name: str) -> "Family":
    """The family `name`. Raises SpecError for an unknown one, and for a group in its table that does not exist."""
    check_known("family of backbones", name, names())
    found: Family = import_module(f"{__name__}.{name}").FAMILY
    for _, group in found.classes:
        check_known("parameter group", group, GROUPS, f"classes of family {name!r}")
    return found


def family_of(entry: "Backbone") -> "Family":
    """The family of a backbone, with what its trial found."""
    return replace(family(entry.family), **(entry.found or {}))


def layer_of(name: str) -> int | None:
    """The number of the layer that parameter `name` is in, from 0; None outside the layers."""
    found = re.search(r"\.(\d+)\.", name)
    return int(found[1]) if found else None
