"""Values of a study's fields: arms by name, lists without repetition, options and what of them is the default."""

from collections.abc import Mapping
from typing import Any, TypeVar

from fpt import models
from fpt.errors import unknown

T = TypeVar("T", int, float, str)


def split_arm(arm: Any) -> tuple[str, str | list[str]]:
    """Initialisation and trainable groups of an arm by name; raises SpecError for an unknown one."""
    if arm in list(models.ARMS):
        init, policy = models.ARMS[arm]
        return init, policy
    trainable, _, init = str(arm).rpartition("-")
    groups = trainable.split("+")
    if init in models.INITS and trainable in models.POLICIES:
        return init, trainable
    if init in models.INITS and all(group in (*models.GROUPS, *models.PARTS) for group in groups):
        return init, groups
    raise unknown("arm", arm, models.ARMS)


def with_options(name: str, options: Mapping[str, Any]) -> str:
    """bit-xor (length 16)."""
    return f"{name} ({', '.join(f'{key} {value}' for key, value in options.items())})" if options else name


def distinct(values: tuple[T, ...]) -> tuple[T, ...]:
    twice = {value for value in values if values.count(value) > 1}
    if twice:
        raise ValueError(f"{listing(twice)} given more than once")
    return tuple(sorted(values))


def listing(values: set[Any]) -> str:
    return ", ".join(f"{value:g}" if isinstance(value, float) else str(value) for value in sorted(values))


def canonical(options: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Options that differ from their default; a whole number given for a float is that float."""
    kept = {}
    for name, value in options.items():
        default = defaults.get(name)
        value = float(value) if isinstance(default, float) else value
        if value != default:
            kept[name] = value
    return kept
