"""Types of the fields of a sweep, with their rules, and what is named in them: arms, options."""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field

from fpt import models
from fpt.errors import check_known
from fpt.training.recipe import MEASURES, Positive, as_written

SWEEP = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_+-]+-[0-9a-f]{8}")

T = TypeVar("T", int, float, str)


def distinct(values: tuple[T, ...]) -> tuple[T, ...]:
    """The values as written, sorted. Raises ValueError where one is given more than once."""
    values = as_written(values)
    if twice := sorted(value for value, count in Counter(values).items() if count > 1):
        raise ValueError(f"{', '.join(map(str, twice))} given more than once")
    return tuple(sorted(values))


def sweep_folder(name: str) -> str:
    if not SWEEP.fullmatch(name):
        raise ValueError("must be the folder name of a sweep of the same study")
    return name


def known_measures(measures: tuple[str, ...]) -> tuple[str, ...]:
    for name in measures:
        check_known("measure", name, MEASURES)
    return tuple(sorted(set(measures)))


def one_value(value: Any) -> Any:
    """Refused here: pydantic would name every type that the value is not."""
    if not isinstance(value, bool | int | float | str):
        raise ValueError("must be true or false, a number or text")
    return value


def text_or_texts(trainable: Any) -> Any:
    """A policy, or a list, in which YAML makes a mapping of `layers: last 2`. Refused here: pydantic would name both
    types that the value is not."""
    if isinstance(trainable, list | tuple):
        trainable = [models.arms.as_text(group) for group in trainable]
    listed = isinstance(trainable, list) and all(isinstance(group, str) for group in trainable)
    if not (listed or isinstance(trainable, str)):
        raise ValueError("must be a policy, or a list of groups, layers and patterns of names")
    return tuple(trainable) if listed else trainable


def policy_or_groups(trainable: str | tuple[str, ...]) -> str | tuple[str, ...]:
    """A list of groups that is a policy is that policy: the same request is the same sweep."""
    if isinstance(trainable, str):
        check_known("trainable policy", trainable, models.POLICIES)
        return trainable
    for group in trainable:
        models.part(group)  # SpecError for one that there is not
    groups = distinct(trainable)
    return next((name for name, policy in models.POLICIES.items() if groups == tuple(sorted(policy))), groups)


Seed = Annotated[int, Field(ge=0, lt=2**63, strict=True)]
Rates = Annotated[tuple[Positive, ...], AfterValidator(distinct)]
Seeds = Annotated[tuple[Seed, ...], AfterValidator(distinct)]
Trainable = Annotated[str | tuple[str, ...], BeforeValidator(text_or_texts), AfterValidator(policy_or_groups)]
Options = dict[str, Annotated[bool | int | float | str, BeforeValidator(one_value)]]
SweepFolder = Annotated[str, AfterValidator(sweep_folder)]
Measures = Annotated[tuple[str, ...], AfterValidator(known_measures)]


def canonical(options: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Options that differ from their default."""
    return {name: value for name, value in options.items() if value != defaults.get(name)}
