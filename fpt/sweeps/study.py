"""A study: the sweeps that a `study.yaml` describes, expanded, merged and checked before anything runs."""

import copy
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from fpt import models, tasks
from fpt.errors import SpecError, unknown
from fpt.sweeps.spec import FIELDS, SweepSpec, resolve
from fpt.training.recipe import WEIGHTS

FILE = "study.yaml"
STUDY_FIELDS = ["name", "defaults", "tasks", "sweeps", "extends", "replace", "only", "without"]
SWEEP_FIELDS = [*FIELDS, "keep_as"]
CROSSED = (
    "task",
    "variant",
    "task_options",
    "backbone",
    "backbone_options",
    "arm",
    "init",
    "random_init",
    "random_gain",
    "input_init",
    "dropout",
)  # a list means one sweep each
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

Request = tuple[dict[str, Any], str]  # the fields of one sweep, and where they were written


@dataclass(frozen=True)
class Study:
    """A title, the folder that is the study's identity, and its sweeps: distinct, in the order written."""

    name: str
    folder: Path
    sweeps: tuple[SweepSpec, ...]

    def feeding(self, only: str | None) -> tuple[SweepSpec, ...]:
        """The sweeps that serve the table or figure `only` (all of them if None), and those whose weights these start
        from."""
        if only is None:
            return self.sweeps
        feeds = {feed for spec in self.sweeps for feed in spec.feeds}
        if only not in feeds:
            raise unknown("feed", only, feeds, _label(self.folder))
        needed = {spec.pretrained_by for spec in self.sweeps if only in spec.feeds}
        return tuple(spec for spec in self.sweeps if only in spec.feeds or spec.folder_name in needed)


def study_folder(runs: Path, name: str) -> Path:
    """`runs/<name>`; names are bare folder names, so that no study reaches outside `runs`."""
    existing = sorted(path.parent.name for path in runs.glob(f"*/{FILE}"))
    if not NAME.fullmatch(name) or name not in existing:
        raise unknown("study", name, existing, f"folders of {runs.name} that hold a {FILE}")
    return runs / name


def load_study(folder: Path | str) -> Study:
    """Read `folder/study.yaml`. Raises SpecError for everything that is not allowed in it."""
    folder = Path(folder)
    document = _read(folder)
    sweeps: dict[str, SweepSpec] = {}
    for spec in _resolved(_requests(folder, document, ()), _label(folder)):
        known = sweeps.get(spec.hash, spec)  # nothing trains twice: equal requests become one
        feeds = tuple(sorted({*known.feeds, *spec.feeds}))
        sweeps[spec.hash] = known.model_copy(update={"feeds": feeds})
    if not sweeps:
        raise SpecError(f"no sweeps: {_label(folder)} needs at least one entry under sweeps, or extends")
    return Study(str(document.get("name", folder.name)), folder, tuple(sweeps.values()))


def _resolved(requests: list[Request], label: str) -> Iterator[SweepSpec]:
    """The specs; the name of a sweep that keeps its weights (`keep_as`) becomes its folder where it is used."""
    kept: dict[str, str] = {}
    for fields, source in requests:
        if (name := fields.get("keep_as")) is not None:
            keeper = _keeper(fields, source)
            if kept.setdefault(str(name), keeper.folder_name) != keeper.folder_name:
                raise SpecError(f"keep_as = {name!r}: more than one sweep has this name ({source})")
    for fields, source in requests:
        if "keep_as" in fields:
            yield _keeper(fields, source)
            continue
        wanted = fields.get("pretrained_by")
        if wanted is not None and wanted not in kept:
            raise unknown("sweep that keeps its weights (keep_as)", wanted, kept, source or label)
        yield resolve(fields if wanted is None else {**fields, "pretrained_by": kept[wanted]}, source)


def _keeper(fields: dict[str, Any], source: str) -> SweepSpec:
    kept = {name: value for name, value in fields.items() if name != "keep_as"}
    return resolve({**kept, "measures": [*(kept.get("measures") or []), WEIGHTS]}, source)


def _requests(folder: Path, document: dict[str, Any], children: tuple[str, ...]) -> list[Request]:
    """One request for every sweep of a study, those of the study it extends first.

    What is written nearer decides: the fields of a sweep before those that the study gives its task under `tasks`,
    these before its `defaults`; in a study that extends another, defaults and tasks override what was inherited.
    """
    label = _label(folder)
    defaults, by_task = document.get("defaults") or {}, document.get("tasks") or {}
    requests: list[Request] = []
    if (parent := document.get("extends")) is not None:
        if parent in (*children, folder.name):
            raise SpecError(f"extends = {parent!r}: studies extend each other in a circle ({label})")
        above = study_folder(folder.parent, str(parent))
        for inherited, source in _requests(above, _read(above), (*children, folder.name)):
            fields = _replaced(inherited, document.get("replace") or {})
            if fields is not None:
                both = f"{label}, extending {source}"
                for request in _crossed(_override(fields, defaults), both, ("task",)):
                    own = by_task.get(request.get("task")) or {}
                    requests += [(each, both) for each in _crossed(_override(request, own), both)]
    for number, entry in enumerate(document.get("sweeps") or [], start=1):
        source = f"{label}, sweep {number}"
        for request in _crossed(_override(defaults, entry), source, ("task",)):
            fields = _override(_override(defaults, by_task.get(request.get("task")) or {}), entry)
            fields |= {"task": request["task"]} if "task" in request else {}
            requests += [(each, source) for each in _crossed(fields, source)]
    return list(_filter(requests, document, label))


def _replaced(fields: dict[str, Any], replace: Mapping[str, Mapping[Any, Any]]) -> dict[str, Any] | None:
    """An inherited request with other values of fields or options in the place of the named ones; None: dropped."""
    fields = copy.deepcopy(fields)
    for name, stands_in in replace.items():
        for place in (fields, fields.get("task_options") or {}, fields.get("backbone_options") or {}):
            if isinstance(place.get(name), str | int | float) and place[name] in stands_in:
                place[name] = stands_in[place[name]]
                if place[name] is None:
                    return None
    return fields


def _crossed(entry: dict[str, Any], source: str, names: tuple[str, ...] = CROSSED) -> Iterator[dict[str, Any]]:
    """One request for every combination of the values in the lists of `names`."""
    crossed = {name: entry[name] for name in names if isinstance(entry.get(name), list)}
    for name, values in crossed.items():
        if not values:
            raise SpecError(f"{name} = []: the list is empty ({source})")
        if None in values:
            raise SpecError(f"{name} = {values!r}: one of them is empty ({source})")
    for values in itertools.product(*crossed.values()):
        yield {**entry, **dict(zip(crossed, values, strict=True))}


def _filter(entries: list[Request], document: dict[str, Any], label: str) -> Iterator[Request]:
    """Keep the requests that `only` names and `without` does not, both being lists of feeds."""
    named = {feed for entry, _ in entries for feed in entry.get("feeds") or []}
    only, without = document.get("only"), document.get("without") or []
    for feed in [*(only or []), *without]:
        if feed not in named:
            raise unknown("feed", feed, named, label)
    for entry, source in entries:
        feeds = set(entry.get("feeds") or [])
        if (only is None or feeds & set(only)) and not feeds & set(without):
            yield entry, source


def _override(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Both, `above` deciding; an arm there replaces init and trainable here, and the other way round."""
    dropped = {"init", "trainable"} if "arm" in above else {"arm"} if {"init", "trainable"} & set(above) else set()
    return {name: value for name, value in below.items() if name not in dropped} | dict(above)


def _label(folder: Path) -> str:
    """The study file as its users know it: runs/<study>/study.yaml."""
    return "/".join([*folder.parts[-2:], FILE])


def _read(folder: Path) -> dict[str, Any]:
    """The document, with the shape of each field checked."""
    label = _label(folder)
    try:
        text = (folder / FILE).read_text(encoding="utf-8")
    except OSError:
        raise SpecError(f"no study here: {label} does not exist or cannot be read") from None
    except UnicodeDecodeError:
        raise SpecError(f"{label} is not YAML: it is not UTF-8 text") from None
    document = _parse(text, label)
    if document is None:
        raise SpecError(f"{label} is empty; a study needs sweeps (or extends)")
    kinds = (str, dict, dict, list, str, dict, list, list)
    shapes = dict(zip(STUDY_FIELDS, kinds, strict=True))
    if not isinstance(document, dict):
        raise SpecError(f"{label} must be a mapping with the fields {', '.join(STUDY_FIELDS)}")
    for field, value in document.items():
        if field not in shapes:
            raise unknown("study field", field, STUDY_FIELDS, label)
        if value is not None and not isinstance(value, shapes[field]):
            kind = {str: "text", dict: "a mapping", list: "a list"}[shapes[field]]
            raise SpecError(f"{field} = {value!r}: must be {kind} ({label})")
    for field in ("only", "without"):
        _check_names(field, document.get(field), label)
    _check_entries(document, label)
    return document


def _check_entries(document: dict[str, Any], label: str) -> None:
    entries = [(document.get("defaults") or {}, f"defaults of {label}")]
    for name, fields in (document.get("tasks") or {}).items():
        tasks.entry(name, f"tasks of {label}")
        entries.append((fields, f"tasks of {label}, {name}"))
    options = [name for table in (tasks.TASKS, models.BACKBONES) for entry in table.values() for name in entry.options]
    for name, stands_in in (document.get("replace") or {}).items():
        if name not in (*SWEEP_FIELDS, *options):
            raise unknown("field to replace", name, [*SWEEP_FIELDS, *dict.fromkeys(options)], label)
        if not isinstance(stands_in, dict):
            raise SpecError(
                f"replace, {name} = {stands_in!r}: must map values to those that stand in for them ({label})"
            )
    entries += [(entry, f"{label}, sweep {n}") for n, entry in enumerate(document.get("sweeps") or [], 1)]
    for entry, source in entries:
        if not isinstance(entry, dict):
            raise SpecError(f"{entry!r}: each sweep must be a mapping of fields ({source})")
        for field in entry:
            if field not in SWEEP_FIELDS:
                raise unknown("study field", field, SWEEP_FIELDS, source)
        _check_names("feeds", entry.get("feeds"), source)


def _check_names(field: str, value: Any, source: str) -> None:
    if value is not None and not (isinstance(value, list) and all(isinstance(name, str) for name in value)):
        raise SpecError(f"{field} = {value!r}: must be a list of names ({source})")


def _parse(text: str, label: str) -> Any:
    try:
        events = yaml.parse(text, Loader=yaml.SafeLoader)
        if tag := next((tag for event in events if (tag := getattr(event, "tag", None))), None):
            raise SpecError(f"{label}: the YAML tag {tag!r} is not allowed in a study")
        _refuse_twice([yaml.compose(text, Loader=yaml.SafeLoader)], label)
        return yaml.safe_load(text)
    except RecursionError:
        raise SpecError(f"{label} is not a study: it is nested too deeply") from None
    except (yaml.YAMLError, ValueError) as error:  # ValueError: an impossible date, a number of thousands of digits
        reason = " ".join(str(error).split())
        raise SpecError(f"{label} is not YAML: {reason}") from None


def _refuse_twice(nodes: Iterable[Any], label: str) -> None:
    """YAML lets the last of two equal keys win without a word; a study must not lose a line like that."""
    seen: set[int] = set()
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if id(node) in seen or not isinstance(node, yaml.CollectionNode):
            continue
        seen.add(id(node))
        if not isinstance(node, yaml.MappingNode):
            waiting += node.value
            continue
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        if twice := {key for key in keys if keys.count(key) > 1}:
            line = node.start_mark.line + 1
            raise SpecError(f"{label}, line {line}: {', '.join(sorted(twice))} given more than once")
        waiting += [value for _, value in node.value]
