"""What a sweep is called. In full, for titles: task, arm, and whatever is not its default. In short, for tables and
figures: the letters of its arm, and what tells it apart from the sweeps beside it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from fpt import models, tasks
from fpt.sweeps.spec import ABOUT, HOW_LONG, SweepSpec, fields_of
from fpt.training.recipe import About

SHORT = {name: models.ARMS[name].letters for name in models.FOUR}
NAMED_BY_ARM = [name for name, about in ABOUT.items() if about.part == "arm" and about.short]
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


def words(spec: SweepSpec) -> dict[str, str]:
    """By field: task, arm, and every other that is not its default."""
    return {"task": with_options(spec.task, spec.task_options), "arm": spec.arm, **_in_full(spec)}


def words_apart(specs: Iterable[SweepSpec]) -> dict[str, dict[str, str]]:
    """By folder name, what tells each of these sweeps apart, by field: the arm in short, and every other field that is
    not its default, and in which the sweeps on its task differ."""
    sweeps = {spec.folder_name: _recorded(spec) for spec in specs}
    return {
        folder: {
            "arm": _label(sweeps[folder]),
            **{name: _said(name, value, short=True) for name, value in differ.items()},
        }
        for folder, differ in _differing(sweeps).items()
    }


def label(spec: SweepSpec) -> str:
    """The letters of an arm: FP, FR, UP, UR, LP; or probe. What else tells it apart is named, a default is not."""
    return _label(_recorded(spec))


def labels(specs: Iterable[SweepSpec]) -> dict[str, str]:
    """By folder name, a label that no other of these sweeps on the same task has: the arm's, then in brackets what
    tells it apart from them, as FP (layers 2, warm-up 0.1)."""
    specs = list(specs)
    names = {}
    for folder, said in words_apart(specs).items():
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
    differing = _differing(dict(enumerate(sweeps)))
    return [
        (_arm_in_words(fields), [_in_legend(name, value) for name, value in differing[number].items()])
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


def arm_of(fields: Fields) -> models.Treatment:
    """What the arm of a sweep is called and drawn by; a probe is an arm of its own."""
    return models.PROBE if fields.get("solver") == "logistic" else models.arm(fields["arm"])


# --- one field


def _said(name: str, value: Any, short: bool = False) -> str:
    """A field, or an option, that is not its default: as a title says it, or in short as the name of an arm does."""
    if name == "data_fraction":
        return f"{100 * value:g}% of the data"
    if (name, value) in (("clip", None), ("backbone", "none")):
        return {"clip": "no clipping", "backbone": "no backbone"}[name]
    if isinstance(value, list):
        value = ", ".join(f"{each:g}" for each in value)
    about, number = ABOUT.get(name, About()), "{:g}" if isinstance(value, float) and not short else "{}"
    return ((short and about.short) or about.said or f"{name.replace('_', ' ')} {number}").format(value)


def _in_legend(name: str, value: Any) -> str:
    """As `_said`, for readers who do not know the fields: 2 layers, not layers 2."""
    if name == "layers":
        return f"{value} layer{'s' * (value != 1)}"
    if name == "backbone" and value in models.AS_PRINTED:
        return model_name(value)
    if value is True and name not in ABOUT:  # an option of a model
        return name.replace("_", " ")
    return _said(name, value).replace("_", " ")


# --- an arm


def _label(fields: Fields) -> str:
    first = ["probe-first"] if fields.get("probe") is not None else []
    own = [_said(name, value, short=True) for name, value in _not_default(fields, NAMED_BY_ARM).items()]
    return " ".join([arm_of(fields).letters, *first, *own])


def _arm_in_words(fields: Fields) -> str:
    """As _label, in words: frozen random weights, fixed scale."""
    first = ["from the probe"] if fields.get("probe") is not None else []
    own = [_in_legend(name, value) for name, value in _not_default(fields, NAMED_BY_ARM).items()]
    return ", ".join([arm_of(fields).label, *first, *own])


# --- a sweep, in full and beside others


def _recorded(spec: SweepSpec) -> Fields:
    """The fields of a spec as its record will have them."""
    return {**spec.resolved(), "arm": spec.arm}


def _not_default(fields: Fields, names: Iterable[str]) -> dict[str, Any]:
    """Of these fields, those that are not their default, as they are said: weights are those of a task. A record that
    is older than a field has the default."""
    defaults = SweepSpec.model_fields
    found = {name: fields[name] for name in names if name in fields and fields[name] != defaults[name].default}
    if "pretrained_by" in found:
        found["pretrained_by"] = found["pretrained_by"].partition(".")[0]
    return found


def _in_full(spec: SweepSpec) -> dict[str, str]:
    """What a title says after task and arm. Of the budget it names a number type that is no plain one, and the steps
    along a schedule, where a run of other steps is another recipe, and not the beginning of this one."""
    left_out = {"task", "task_options", "init", "trainable", *HOW_LONG, *fields_of("measured")}
    left_out -= {"compute_type"} if spec.compute_type == "bfloat16" else set()
    found = _not_default(fields := spec.resolved(), (name for name in fields if name not in left_out))
    if found.pop("backbone_options", {}):
        found["backbone"] = with_options(spec.backbone, spec.backbone_options)
    if spec.schedule != "constant":
        found["steps"] = spec.steps
    return {name: _said(name, found[name]) for name in fields if name in found}


def _differing(sweeps: Mapping[Key, Fields]) -> dict[Key, dict[str, Any]]:
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
    unsaid = fields_of("arm", "measured", "reading")
    found = _not_default(fields, (name for name in SweepSpec.model_fields if name not in unsaid))
    for name in ("backbone_options", "task_options"):
        found |= found.pop(name, {})
    return found
