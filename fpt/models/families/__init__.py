"""Families of backbones, a module each: what a family changes of the default in library.py is its FAMILY.

A module is imported when a backbone of its family is used. No torch here.
"""

import re
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fpt.models.catalogue import Backbone
    from fpt.models.families.library import Family


def family(backbone: "Backbone") -> "Family":
    """The family of a backbone, with what was measured of a foreign model."""
    found: Family = import_module(f"{__name__}.{backbone.family}").FAMILY
    return replace(found, **(backbone.measured or {}))


def layer_of(name: str) -> int | None:
    """The number of the layer that parameter `name` is in, from 0; None outside the layers."""
    found = re.search(r"\.(\d+)\.", name)
    return int(found[1]) if found else None
