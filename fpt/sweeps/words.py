"""What a sweep is called. In full, for titles: task, arm, and whatever is not its default. In short, for tables and
figures: the letters of its arm, and what tells it apart from the sweeps beside it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from fpt import models, tasks
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

IN_LEGEND = {name: how for name, how in FULLY.items() if name != "backbone"} | {"random_init": "{} scale"}
TITLES = {  # where there is little room
    "homology": "Homology", "digits": "Digits", "digits-lra": "Digits, by pixel", "listops-short": "ListOps, short",
}  # fmt: skip
Fields = Mapping[str, Any]  # of a sweep, by name, as JSON values
Key = TypeVar("Key")


def task_name(task: str) -> str:
    """A task as tables and figures name it."""
    known = tasks.known()
    return TITLES.get(task) or (known[task].title if task in known else task)


def model_name(backbone: str) -> str:
    """A backbone as tables and figures name it."""
    return models.AS_PRINTED.get(backbone, backbone)


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
    return _label(_recorded(spec))


def labels(specs: Iterable[SweepSpec]) -> dict[str, str]:
    """By folder name, a label that no other of these sweeps on the same task has: the arm's, then in brackets what
    tells it apart from them, as FP (layers 2, warm-up 0.1)."""
    specs = list(specs)
    names = {}
    for folder, said in _apart(specs).items():
        arm, *rest = said.values()
        names[folder] = in_brackets(arm, rest)
    alike = Counter((spec.task, names[spec.folder_name]) for spec in specs)
    for spec in specs:
        if alike[spec.task, names[spec.folder_name]] > 1:  # other measures, or weights of two sweeps on one task
            names[spec.folder_name] += f" {spec.hash}"
    return names


def legends(sweeps: Sequence[Fields]) -> list[str]:
    """Each sweep of a figure in words: its arm, and in brackets what tells it apart from the others of its task."""
    return [in_brackets(arm, apart) for arm, apart in legend_parts(sweeps)]


def legend_parts(sweeps: Sequence[Fields]) -> list[tuple[str, list[str]]]:
    """For each sweep, by its fields as a record has them: its arm in words, and what tells it apart from the others of
    its task, in words too, as ("frozen random weights", ["2 layers", "warm-up 0.1"])."""
    found = apart(dict(enumerate(sweeps)))
    return [
        (_arm_in_words(fields), [_in_legend(name, value) for name, value in found[number].items()])
        for number, fields in enumerate(sweeps)
    ]


def of_panel(told: Sequence[tuple[str, Sequence[str]]]) -> tuple[list[str], list[str]]:
    """What is said of all sweeps of a panel, which stands in its title, and the sweeps in its legend without that."""
    shared = [word for word in told[0][1] if all(word in apart for _, apart in told)]
    return shared, [in_brackets(arm, [word for word in apart if word not in shared]) for arm, apart in told]


def in_brackets(name: str, more: Sequence[str]) -> str:
    """frozen (2 layers, warm-up 0.1)."""
    return f"{name} ({', '.join(more)})" if more else name


def with_options(name: str, options: Mapping[str, Any]) -> str:
    """bit-xor (length 16)."""
    return in_brackets(name, [f"{key} {value}" for key, value in options.items()])


def in_words(name: str, value: Any, how: Mapping[str, str] = {}) -> str:
    """A field, or an option, that is not its default."""
    if name == "data_fraction":
        return f"{100 * value:g}% of the data"
    if (name, value) in (("clip", None), ("backbone", "none")) and name not in how:
        return {"clip": "no clipping", "backbone": "no backbone"}[name]
    said = ", ".join(f"{each:g}" for each in value) if isinstance(value, list) else value
    return how.get(name, WORDS.get(name, f"{name.replace('_', ' ')} {{}}")).format(said)


def _in_legend(name: str, value: Any) -> str:
    """As `in_words`, for readers who do not know the fields: 2 layers, not layers 2."""
    if name == "layers":
        return f"{value} layer{'s' * (value != 1)}"
    if name == "backbone" and value != "none":
        return model_name(value)
    if value is True:
        return name.replace("_", " ")
    if isinstance(value, float) and name not in IN_LEGEND | WORDS:
        return f"{name.replace('_', ' ')} {value:g}"
    return in_words(name, value, IN_LEGEND).replace("_", " ")


def arm_of(fields: Fields) -> models.Treatment:
    """What the arm of a sweep is called and drawn by; a probe is an arm of its own."""
    return models.PROBE if fields.get("solver") == "logistic" else models.arm(fields["arm"])


def _label(fields: Fields) -> str:
    first = ["probe-first"] if fields.get("probe") is not None else []
    own = [in_words(name, value, IN_LABEL) for name, value in _not_default(fields, IN_LABEL).items()]
    return " ".join([arm_of(fields).letters, *first, *own])


def _arm_in_words(fields: Fields) -> str:
    """As _label, in words: frozen random weights, fixed scale."""
    first = ["from the probe"] if fields.get("probe") is not None else []
    own = [_in_legend(name, value) for name, value in _not_default(fields, IN_LABEL).items()]
    return ", ".join([arm_of(fields).label, *first, *own])


def _recorded(spec: SweepSpec) -> Fields:
    """The fields of a spec as its record will have them."""
    return {**spec.model_dump(mode="json"), "arm": spec.arm}


def _not_default(fields: Fields, names: Iterable[str]) -> dict[str, Any]:
    """Of these fields, those that are not their default, as they are said: weights are those of a task. A record that
    is older than a field has the default."""
    defaults = SweepSpec.model_fields
    found = {name: fields[name] for name in names if name in fields and fields[name] != defaults[name].default}
    if "pretrained_by" in found:
        found["pretrained_by"] = found["pretrained_by"].partition(".")[0]
    return found


def _in_full(spec: SweepSpec) -> dict[str, str]:
    """In the order of IN_FULL. A number type is named where it is no plain one; steps along a schedule, where a run of
    other steps is another recipe, and not the beginning of this one."""
    found: dict[str, Any] = _not_default(_recorded(spec), IN_FULL)
    if spec.backbone_options or "backbone" in found:
        found["backbone"] = with_options(spec.backbone, spec.backbone_options)
    if spec.schedule == "constant":
        found.pop("steps", None)
    else:
        found["steps"] = spec.steps
    if spec.compute_type != "bfloat16":
        found.pop("compute_type", None)
    return {name: in_words(name, found[name], FULLY) for name in IN_FULL if name in found}


def apart(sweeps: Mapping[Key, Fields]) -> dict[Key, dict[str, Any]]:
    """By key, of sweeps by their fields as records have them: the fields and options, with their values, in which the
    sweeps on a task differ and that are not their default; those of how long it is trained where nothing else differs.
    What the short name of an arm says is not among them."""
    told = {key: _told(fields) for key, fields in sweeps.items()}
    found: dict[Key, dict[str, Any]] = {key: {} for key in sweeps}
    for keys in _grouped(sweeps, lambda key: sweeps[key]["task"]):
        _add_differing(keys, told, found, without=HOW_LONG)
    for keys in _grouped(sweeps, lambda key: (sweeps[key]["task"], _label(sweeps[key]), repr(found[key]))):
        _add_differing(keys, told, found, without=set())
    return found


def _apart(specs: Iterable[SweepSpec]) -> dict[str, dict[str, str]]:
    """By folder name, the arm in short, and the fields in words that tell a sweep apart."""
    sweeps = {spec.folder_name: _recorded(spec) for spec in specs}
    return {
        folder: {"arm": _label(sweeps[folder]), **{name: in_words(name, value) for name, value in differ.items()}}
        for folder, differ in apart(sweeps).items()
    }


def _grouped(keys: Iterable[Key], of: Callable[[Key], Any]) -> list[list[Key]]:
    """The keys in groups, each in the place of its first one."""
    groups: dict[Any, list[Key]] = {}
    for key in keys:
        groups.setdefault(of(key), []).append(key)
    return list(groups.values())


def _add_differing(
    keys: Sequence[Key], told: Mapping[Key, Fields], found: Mapping[Key, dict[str, Any]], without: set[str]
) -> None:
    """Add to what is `found` the fields in which the sweeps of a group differ."""
    counted = Counter((name, repr(value)) for key in keys for name, value in told[key].items())
    differ = {name for (name, _), count in counted.items() if count < len(keys)} - without
    for key in keys:
        found[key].update({name: value for name, value in told[key].items() if name in differ})


def _told(fields: Fields) -> dict[str, Any]:
    """Every field and option that is not its default and that the short name of the arm does not say."""
    names = (name for name in SweepSpec.model_fields if name not in {*OF_THE_ARM, *OF_THE_STUDY, "measures"})
    found = _not_default(fields, names)
    for name in ("backbone_options", "task_options"):
        found |= found.pop(name, {})
    return found
