"""What a sweep is called. In full, for titles: task, arm, and whatever is not its default. In short, for tables and
figures: the letters of its arm, and what tells it apart from the sweeps beside it.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from fpt import models
from fpt.sweeps.spec import BUDGET, GRID, OF_THE_STUDY, SweepSpec

SHORT = {name: models.ARMS[name].letters for name in models.FOUR}
HOW_LONG = {*GRID, *BUDGET}  # tells sweeps apart only where nothing else does
IN_FULL = (  # the fields of a title, in its order
    "variant", "backbone", "random_init", "random_gain", "input_init", *models.ADAPTERS, "pretrained_by",
    "data_fraction", "shuffle_tokens", "batch_size", "warmup", "schedule", "steps", "head_rate", "weight_decay",
    "clip", "report", "solver", "probe", "dropout", "compute_type",
)  # fmt: skip
# Fields that the short name of an arm says itself, and how
IN_LABEL = {"random_init": "{}", "random_gain": "x{:g}", "input_init": "{}-input", "pretrained_by": "by-{}"}
OF_THE_ARM = {"task", "solver", "init", "trainable", *IN_LABEL}
WORDS = {
    "backbone": "{}", "compute_type": "{}", "shuffle_tokens": "shuffled tokens", "warmup": "warm-up {:g}",
    "schedule": "{} schedule", "head_rate": "head rate {:g}", "weight_decay": "weight decay {:g}",
    "learning_rates": "rates {}", "seeds": "seeds {}", "clip": "clip {:g}",
    "report": "results of the {} step",
    "solver": "{} regression",
    "probe": "strength {:g}",
}  # fmt: skip
FULLY = {  # where a title says more, or otherwise
    "random_init": "{}", "random_gain": "gain {:g}", "input_init": "{} input", "pretrained_by": "pretrained by {}",
    "steps": "{:,} steps", "dropout": "dropout {:g}", "backbone": "{}",
}  # fmt: skip


def title(spec: SweepSpec) -> str:
    return ", ".join(words(spec).values())


def words(spec: SweepSpec, apart_from: Iterable[SweepSpec] | None = None) -> dict[str, str]:
    """By field: task, arm, and every other that is not its default; or, apart from other sweeps, the arm in short, and
    every field in which the sweeps on its task differ and that is not its default."""
    if apart_from is not None:
        return _apart([spec, *apart_from])[spec.folder_name]
    return {"task": with_options(spec.task, spec.task_options), "arm": spec.arm, **_in_full(spec)}


def label(spec: SweepSpec) -> str:
    """The letters of an arm: FP, FR, UP, UR, LP; or probe. What else tells it apart is named, a default is not."""
    first = "probe" if spec.solver == "logistic" else models.arm(spec.arm).letters
    own = [in_words(name, value, IN_LABEL) for name, value in _not_default(spec, IN_LABEL).items()]
    return " ".join([first, *(["probe-first"] if spec.probe is not None else []), *own])


def labels(specs: Iterable[SweepSpec]) -> dict[str, str]:
    """By folder name, a label that no other of these sweeps on the same task has: the arm's, then in brackets what
    tells it apart from them, as FP (layers 2, warm-up 0.1)."""
    specs = list(specs)
    names = {}
    for folder, said in _apart(specs).items():
        arm, *rest = said.values()
        names[folder] = arm + (f" ({', '.join(rest)})" if rest else "")
    alike = Counter((spec.task, names[spec.folder_name]) for spec in specs)
    for spec in specs:
        if alike[spec.task, names[spec.folder_name]] > 1:  # other measures, or weights of two sweeps on one task
            names[spec.folder_name] += f" {spec.hash}"
    return names


def with_options(name: str, options: Mapping[str, Any]) -> str:
    """bit-xor (length 16)."""
    return f"{name} ({', '.join(f'{key} {value}' for key, value in options.items())})" if options else name


def in_words(name: str, value: Any, how: Mapping[str, str] = {}) -> str:
    """A field, or an option, that is not its default."""
    if name == "data_fraction":
        return f"{100 * value:g}% of the data"
    if (name, value) in (("clip", None), ("backbone", "none")) and name not in how:
        return {"clip": "no clipping", "backbone": "no backbone"}[name]
    said = ", ".join(f"{each:g}" for each in value) if isinstance(value, list) else value
    return how.get(name, WORDS.get(name, f"{name.replace('_', ' ')} {{}}")).format(said)


def _not_default(spec: SweepSpec, names: Iterable[str]) -> dict[str, Any]:
    """Of these fields, those that are not their default, as they are said: weights are those of a task."""
    defaults = type(spec).model_fields
    found = {name: value for name in names if (value := getattr(spec, name)) != defaults[name].default}
    return found | ({"pretrained_by": spec.pretrained_on} if "pretrained_by" in found else {})


def _in_full(spec: SweepSpec) -> dict[str, str]:
    """In the order of IN_FULL. A number type is named where it is no plain one; steps along a schedule, where a run of
    other steps is another recipe, and not the beginning of this one."""
    found: dict[str, Any] = _not_default(spec, IN_FULL)
    if spec.backbone_options or "backbone" in found:
        found["backbone"] = with_options(spec.backbone, spec.backbone_options)
    if spec.schedule == "constant":
        found.pop("steps", None)
    else:
        found["steps"] = spec.steps
    if spec.compute_type != "bfloat16":
        found.pop("compute_type", None)
    return {name: in_words(name, found[name], FULLY) for name in IN_FULL if name in found}


def _apart(specs: Sequence[SweepSpec]) -> dict[str, dict[str, str]]:
    """By folder name, the arm in short, and the fields in words that tell a sweep apart: how long it is trained where
    nothing else does."""
    named = {spec.folder_name: {"arm": label(spec)} for spec in specs}
    _add_differing(_grouped(specs, lambda spec: spec.task), named, without=HOW_LONG)
    alike = _grouped(specs, lambda spec: (spec.task, *named[spec.folder_name].values()))
    _add_differing(alike, named, without=set())
    return named


def _grouped(specs: Iterable[SweepSpec], key: Callable[[SweepSpec], Any]) -> list[list[SweepSpec]]:
    """The sweeps in groups of one key, each in the place of its first sweep."""
    groups: dict[Any, list[SweepSpec]] = {}
    for spec in specs:
        groups.setdefault(key(spec), []).append(spec)
    return list(groups.values())


def _add_differing(
    groups: Iterable[Sequence[SweepSpec]], named: Mapping[str, dict[str, str]], without: set[str]
) -> None:
    """Add to the fields that are `named` those in which the sweeps of a group differ."""
    for several in groups:
        said = {spec.folder_name: _each_in_words(spec) for spec in several}
        differ = _differing(said.values()) - without
        for folder, fields in said.items():
            named[folder].update({field: text for field, text in fields.items() if field in differ})


def _differing(said: Collection[Mapping[str, str]]) -> set[str]:
    """The fields in which not all of these are equal."""
    counted = Counter(item for each in said for item in each.items())
    return {field for (field, _), count in counted.items() if count < len(said)}


def _each_in_words(spec: SweepSpec) -> dict[str, str]:
    """Every field and option that is not its default and that the short name of the arm does not say."""
    left_out = {*OF_THE_ARM, *OF_THE_STUDY, "measures"}
    fields: dict[str, Any] = spec.model_dump(mode="json", exclude_defaults=True, exclude=left_out)
    for name in ("backbone_options", "task_options"):
        fields |= fields.pop(name, {})
    return {name: in_words(name, value) for name, value in fields.items()}
