"""From the name of a task to its entry, its checked options, and the task itself. No torch before a task is loaded."""

import os
import re
import runpy
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import cache
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from fpt.errors import SpecError, check_known, check_options, naming
from fpt.files import State, cache_folder, from_workspace, state_of, workspace_around
from fpt.tasks.catalogue import BY_MODEL, MOST, READS, TASKS, Entry, OwnTable
from fpt.tasks.own.paths import check_there, own_kind, own_path

if TYPE_CHECKING:
    from fpt.tasks.task import Task
    from fpt.tasks.texts import Tokenizer

CODE = "FPT_TASKS"  # the environment variable that names a folder of tasks of your own


def entry(name: str, source: str = "") -> Entry:
    """The entry of task `name`; `npz:` and any path share one, as `folder:` and `csv:` do. Raises SpecError for an
    unknown name."""
    key, every = f"{kind}:PATH" if (kind := own_kind(name)) else name, known()
    if key not in list(every) and not os.environ.get(CODE):
        _refuse_unasked(key)
    check_known("task", key, every, source)
    return every[key]


def known() -> dict[str, Entry]:
    """Every task: ours, and those of your own, a Python file each, in the folder that FPT_TASKS names. Nobody's code is
    executed where it does not name one. Raises SpecError for a file without a task."""
    if not os.environ.get(CODE):
        return TASKS
    folder = from_workspace(os.environ[CODE])
    if not os.path.isdir(folder):
        raise SpecError(f"{CODE} = {os.environ[CODE]!r}: there is no folder {folder}; name one of tasks, or unset it")
    files = sorted(folder.glob("[!_]*.py"))
    return TASKS | {path.stem: _executed(path.absolute(), state_of(path)) for path in files}


def own_code(name: str) -> Path | None:
    """The Python file of a task of your own; None for every other task."""
    folder = os.environ.get(CODE)
    if not folder or name in TASKS or name not in known():
        return None
    return from_workspace(folder) / f"{name}.py"


@cache
def _executed(path: Path, state: State) -> Entry:
    """The entry TASK of a file, which is executed once for as long as it stays as it is."""
    found = runpy.run_path(str(path), run_name=f"fpt_task_{path.stem}").get("TASK")
    if not isinstance(found, Entry) or path.stem in TASKS or not re.fullmatch(r"[A-Za-z0-9_-]+", path.stem):
        raise SpecError(
            f"{path}: a task of your own is a file NAME.py that defines TASK, an Entry of fpt.tasks, under a name of "
            f"letters, digits, - and _ that no other task has; TASK is {found!r} ({CODE})"
        )
    return found


def _refuse_unasked(name: object) -> None:
    """SpecError where the workspace has code of this name."""
    root = workspace_around(Path.cwd())
    if root and (root / "tasks" / f"{name}.py").is_file():
        raise SpecError(
            f"task {name!r}: tasks/{name}.py is code, and code is executed only where you ask for it: set {CODE}=tasks"
        )


def own_table(name: str, options: Mapping[str, Any]) -> OwnTable:
    """What the backbone's own table does on this task: it reads texts that its own tokenizer made symbols of.

    Raises SpecError for an unknown name.
    """
    found = entry(name)
    return READS if options.get("tokenizer") == BY_MODEL else found.own_table


def check_task(name: str, variant: str, options: Mapping[str, Any], source: str = "") -> Entry:
    """The entry of a task. Raises SpecError unless the task, the variant and every option exist, the options have their
    type and go together, and your own data are there."""
    found, where = entry(name, source), f" ({source})" if source else ""
    check_known(f"variant of {name}", variant, found.variants, source)
    check_options(name, options, found.options, source)
    for option, value in options.items():
        if type(value) is not int:
            continue
        least, most = min(1, found.options[option]), found.most.get(option, MOST)
        if not least <= value <= most:
            allowed = f"at least {least}, at most {most:,}"
            raise SpecError(f"{name}: option {option} is {value}{where}, but must be {allowed}.")
    try:
        if found.path:
            check_there(name, found.path)
        found.check(**{**found.options, **options})
    except SpecError as error:
        raise SpecError(f"{name}{where}: {error}") from None
    return found


def data_folder(data_dir: str | os.PathLike[str] | None = None) -> Path:
    """Where data are looked for and downloaded to: `data_dir`, else $FPT_DATA, else the cache."""
    return Path(os.path.expanduser(data_dir or os.environ.get("FPT_DATA") or cache_folder()))


def load(
    name: str,
    data_dir: str | os.PathLike[str] | None = None,
    variant: str = "paper",
    *,
    reader: "Tokenizer | None" = None,
    **options: Any,
) -> "Task":
    """The task `name`. It holds no seed: `task.split(seed)` does.

    reader: a model's own tokenizer, for option `tokenizer: own`; fpt.models.load_task gives it. Raises SpecError for
    what does not exist, DataError for data that are missing, truncated or altered.
    """
    found = check_task(name, variant, options, source="fpt.tasks.load")
    chosen = {**found.options, **options}
    given = {"reader": reader} if chosen.get("tokenizer") == BY_MODEL else {}
    assert reader or not given, f"{name}: a model's own tokenizer reads it: fpt.models.load_task(task, backbone)"
    loader = found.loader  # what is named by text is imported only now
    if isinstance(loader, str):
        loader = resolve_name(f"fpt.tasks.{loader}")
    place = own_path(name) if found.path else data_folder(data_dir)
    with naming(place) if found.path else nullcontext():
        made: Task = loader(place, variant, **chosen, **given)
    table = own_table(name, chosen)
    task = replace(made, name=name, variant=variant, options=chosen, title=found.title, own_table=table)
    return replace(task, checksum=task.checksum or task.content)
