"""Short names of sweeps: of an arm alone, and of every sweep of a set so that none is taken for another."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from fpt import models
from fpt.sweeps.fields import in_words
from fpt.sweeps.spec import BUDGET, GRID, OF_THE_STUDY, SweepSpec

SHORT = {name: models.ARMS[name].letters for name in models.FOUR}
IN_LABEL = {"task", "init", "trainable", "random_init", "random_gain", "input_init", "pretrained_by"}
HOW_LONG = {*GRID, *BUDGET}  # named only where nothing else tells two sweeps apart


def label(spec: SweepSpec) -> str:
    """The letters of an arm: FP, FR, UP, UR, LP; what else tells it apart is named, a default is not."""
    words = [models.arm(spec.arm).letters]
    words += [] if spec.random_init == "matched" else [spec.random_init]
    words += [] if spec.random_gain == 1 else [f"x{spec.random_gain:g}"]
    words += [] if spec.input_init == "orthogonal" else [f"{spec.input_init}-input"]
    words += [f"by-{spec.pretrained_on}"] if spec.pretrained_by else []
    return " ".join(words)


def labels(specs: Iterable[SweepSpec]) -> dict[str, str]:
    """By folder name, a label that no other of these sweeps on the same task has: the arm's, then in brackets every
    field in which the sweeps on that task differ and that is not its default, as FP (layers 2, warm-up 0.1)."""
    specs = list(specs)
    groups: dict[Any, list[SweepSpec]] = {}
    for spec in specs:
        groups.setdefault(spec.task, []).append(spec)
    told: dict[str, dict[str, str]] = {spec.folder_name: {} for spec in specs}
    names = _add(told, groups, without=HOW_LONG)
    names = _add(told, _alike(specs, names), without=set())
    for several in _alike(specs, names).values():
        if len(several) > 1:  # other measures, or weights of two sweeps on one task
            names |= {spec.folder_name: f"{names[spec.folder_name]} {spec.hash}" for spec in several}
    return names


def _alike(specs: Iterable[SweepSpec], names: Mapping[str, str]) -> dict[Any, list[SweepSpec]]:
    """The sweeps by task and name."""
    groups: dict[Any, list[SweepSpec]] = {}
    for spec in specs:
        groups.setdefault((spec.task, names[spec.folder_name]), []).append(spec)
    return groups


def _add(told: dict[str, dict[str, str]], groups: Mapping[Any, list[SweepSpec]], without: set[str]) -> dict[str, str]:
    """Tells of each sweep the fields in which those of its group differ; returns the names."""
    names = {}
    for several in groups.values():
        words = {spec.folder_name: _told(spec) for spec in several}
        differ = _differing(words.values()) - without
        for spec in several:
            own = told[spec.folder_name]
            own |= {field: text for field, text in words[spec.folder_name].items() if field in differ}
            names[spec.folder_name] = label(spec) + (f" ({', '.join(own.values())})" if own else "")
    return names


def _differing(words: Collection[Mapping[str, str]]) -> set[str]:
    """The fields in which not all of these are equal."""
    counted = Counter(item for each in words for item in each.items())
    return {field for (field, _), count in counted.items() if count < len(words)}


def _told(spec: SweepSpec) -> dict[str, str]:
    """Every field that is not its default and that the label does not say, in words."""
    left_out = {*IN_LABEL, *OF_THE_STUDY, "measures"}
    fields: dict[str, Any] = spec.model_dump(mode="json", exclude_defaults=True, exclude=left_out)
    for name in ("backbone_options", "task_options"):
        fields |= fields.pop(name, {})
    return {name: in_words(name, value) for name, value in fields.items()}
