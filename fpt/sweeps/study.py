"""A study: the sweeps that a `study.yaml` describes, expanded, merged and checked before anything runs."""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from fpt.errors import SpecError, unknown
from fpt.sweeps.spec import FIELDS, SweepSpec, resolve

FILE = "study.yaml"
STUDY_FIELDS = ["name", "defaults", "sweeps", "extends", "only", "without"]
CROSSED = (
    "task",
    "variant",
    "backbone",
    "arm",
    "init",
    "random_init",
    "random_gain",
)  # a list means one sweep each
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

Entry = tuple[dict[str, Any], str]  # the fields of one entry under `sweeps`, and where they were written


@dataclass(frozen=True)
class Study:
    """A title, the folder that is the study's identity, and its sweeps: distinct, in the order written."""

    name: str
    folder: Path
    sweeps: tuple[SweepSpec, ...]

    def feeding(self, only: str | None) -> tuple[SweepSpec, ...]:
        """The sweeps that serve the table or figure `only` (all of them if None)."""
        if only is None:
            return self.sweeps
        feeds = {feed for spec in self.sweeps for feed in spec.feeds}
        if only not in feeds:
            raise unknown("feed", only, feeds, _label(self.folder))
        return tuple(spec for spec in self.sweeps if only in spec.feeds)


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
    for entry, source in _entries(folder, document, ()):
        for spec in _expand(entry, source):
            known = sweeps.get(spec.hash, spec)  # nothing trains twice: equal requests become one
            feeds = tuple(sorted({*known.feeds, *spec.feeds}))
            sweeps[spec.hash] = known.model_copy(update={"feeds": feeds})
    if not sweeps:
        raise SpecError(f"no sweeps: {_label(folder)} needs at least one entry under sweeps, or extends")
    return Study(str(document.get("name", folder.name)), folder, tuple(sweeps.values()))


def _entries(folder: Path, document: dict[str, Any], children: tuple[str, ...]) -> list[Entry]:
    """The entries of a study, those it extends first, with the defaults applied."""
    label = _label(folder)
    defaults = document.get("defaults") or {}
    entries: list[Entry] = []
    if (parent := document.get("extends")) is not None:
        if parent in (*children, folder.name):
            raise SpecError(f"extends = {parent!r}: studies extend each other in a circle ({label})")
        above = study_folder(folder.parent, str(parent))
        inherited = _entries(above, _read(above), (*children, folder.name))
        entries += [(_override(entry, defaults), f"{label}, extending {source}") for entry, source in inherited]
    for number, entry in enumerate(document.get("sweeps") or [], start=1):
        entries.append((_override(defaults, entry), f"{label}, sweep {number}"))
    return list(_filter(entries, document, label))


def _filter(entries: list[Entry], document: dict[str, Any], label: str) -> Iterator[Entry]:
    """Keep the entries that `only` names and `without` does not, both being lists of feeds."""
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


def _expand(entry: dict[str, Any], source: str) -> Iterator[SweepSpec]:
    crossed = {name: entry[name] for name in CROSSED if isinstance(entry.get(name), list)}
    for name, values in crossed.items():
        if not values:
            raise SpecError(f"{name} = []: the list is empty ({source})")
        if None in values:
            raise SpecError(f"{name} = {values!r}: one of them is empty ({source})")
    for values in itertools.product(*crossed.values()):
        yield resolve({**entry, **dict(zip(crossed, values, strict=True))}, source)


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
    shapes = {"name": str, "defaults": dict, "sweeps": list, "extends": str, "only": list, "without": list}
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
    entries += [(entry, f"{label}, sweep {n}") for n, entry in enumerate(document.get("sweeps") or [], 1)]
    for entry, source in entries:
        if not isinstance(entry, dict):
            raise SpecError(f"{entry!r}: each sweep must be a mapping of fields ({source})")
        for field in entry:
            if field not in FIELDS:
                raise unknown("study field", field, FIELDS, source)
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
    except yaml.YAMLError as error:
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
