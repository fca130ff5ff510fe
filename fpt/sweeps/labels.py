"""Short names of sweeps: of an arm alone, and of every sweep of a set so that none is taken for another."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from fpt import models
from fpt.sweeps.fields import in_words
from fpt.sweeps.spec import BUDGET, GRID, OF_THE_STUDY, SweepSpec

SHORT = {name: models.ARMS[name].letters for name in models.FOUR}
IN_LABEL = {"task", "solver", "init", "trainable", "random_init", "random_gain", "input_init", "pretrained_by"}
HOW_LONG = {*GRID, *BUDGET}  # named only where nothing else tells two sweeps apart


def label(spec: SweepSpec) -> str:
    """The letters of an arm: FP, FR, UP, UR, LP; or probe. What else tells it apart is named, a default is not."""
    words = ["probe" if spec.solver == "logistic" else models.arm(spec.arm).letters]
    words += [] if spec.probe is None else ["probe-first"]
    words += [] if spec.random_init == "matched" else [spec.random_init]
    words += [] if spec.random_gain == 1 else [f"x{spec.random_gain:g}"]
    words += [] if spec.input_init == "orthogonal" else [f"{spec.input_init}-input"]
    words += [f"by-{spec.pretrained_on}"] if spec.pretrained_by else []
    return " ".join(words)


def labels(specs: Iterable[SweepSpec]) -> dict[str, str]:
    """By folder name, a label that no other of these sweeps on the same task has: the arm's, then in brackets every
    field in which the sweeps on that task differ and that is not its default, as FP (layers 2, warm-up 0.1)."""
    specs = list(specs)
    named: dict[str, dict[str, str]] = {spec.folder_name: {} for spec in specs}

    def task_and_name(spec: SweepSpec) -> tuple[str, str]:
        return spec.task, names[spec.folder_name]

    names = _tell_apart(_grouped(specs, lambda spec: spec.task), named, without=HOW_LONG)
    names = _tell_apart(_grouped(specs, task_and_name), named, without=set())
    for several in _grouped(specs, task_and_name):
        if len(several) > 1:  # other measures, or weights of two sweeps on one task
            names |= {spec.folder_name: f"{names[spec.folder_name]} {spec.hash}" for spec in several}
    return names


def _grouped(specs: Iterable[SweepSpec], key: Callable[[SweepSpec], Any]) -> list[list[SweepSpec]]:
    """The sweeps in groups of one key, each in the place of its first sweep."""
    groups: dict[Any, list[SweepSpec]] = {}
    for spec in specs:
        groups.setdefault(key(spec), []).append(spec)
    return list(groups.values())


def _tell_apart(
    groups: Iterable[Sequence[SweepSpec]], named: dict[str, dict[str, str]], without: set[str]
) -> dict[str, str]:
    """The names of the sweeps; adds to the fields that are `named` those in which the sweeps of a group differ."""
    names = {}
    for several in groups:
        words = {spec.folder_name: _in_words(spec) for spec in several}
        differ = _differing(words.values()) - without
        for spec in several:
            fields = named[spec.folder_name]
            fields |= {field: text for field, text in words[spec.folder_name].items() if field in differ}
            names[spec.folder_name] = label(spec) + (f" ({', '.join(fields.values())})" if fields else "")
    return names


def _differing(words: Collection[Mapping[str, str]]) -> set[str]:
    """The fields in which not all of these are equal."""
    counted = Counter(item for each in words for item in each.items())
    return {field for (field, _), count in counted.items() if count < len(words)}


def _in_words(spec: SweepSpec) -> dict[str, str]:
    """Every field that is not its default and that the label does not say, in words."""
    left_out = {*IN_LABEL, *OF_THE_STUDY, "measures"}
    fields: dict[str, Any] = spec.model_dump(mode="json", exclude_defaults=True, exclude=left_out)
    for name in ("backbone_options", "task_options"):
        fields |= fields.pop(name, {})
    return {name: in_words(name, value) for name, value in fields.items()}
