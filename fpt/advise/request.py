"""What `fpt advise` is asked for, refused before any training where it cannot be."""

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fpt import models, tasks
from fpt.errors import SpecError
from fpt.models import hub, tokens
from fpt.sweeps import run
from fpt.sweeps.spec import SweepSpec, resolve
from fpt.tasks.tables import ENDINGS
from fpt.training import check_room

if TYPE_CHECKING:
    from fpt.models.template import Template
    from fpt.tasks.task import Task

NAMES = models.SHORT
IF_TIME = "unfrozen-random"  # from scratch, unless the reader names the arms
CONTENT = "content"  # of `asked`: task and backbone by the checksums of your own files
STUDY = "advise-"  # the study is runs/advise-NAME
BATCH = 8  # as in the study of the papers, so that rates can be compared with theirs
SAMPLES = {"evaluations": 8, "evaluation_examples": 200, "budget_examples": 100, "test_examples": 1000}
PILOT_SAMPLES = {"evaluations": 4, "evaluation_examples": 200, "budget_examples": 20, "test_examples": 20}


@dataclass(frozen=True)
class Request:
    """Data as a task, a backbone and arms; how long it may take; `tolerance` in points of accuracy."""

    name: str
    task: str
    options: Mapping[str, Any]
    backbone: str
    arms: tuple[str, ...]
    minutes: float = 10.0
    tolerance: float = 1.0
    named: bool = False  # whether the reader named the arms
    steps: int | None = None  # at most; None: as many as fit

    @property
    def study(self) -> Path:
        """In the workspace, which is the working directory."""
        return Path("runs", STUDY + self.name)

    @property
    def pilot(self) -> Path:
        """The study of the coarse grid."""
        return Path("runs", f"{STUDY}{self.name}-pilot")

    @property
    def asked(self) -> dict[str, Any]:
        """What makes another study, as JSON: all but the time and how results are read. Raises FptError for data or a
        model that are not there."""
        fields = asdict(self)
        named = {name: fields[name] for name in ("name", "task", "options", "backbone")} | {"arms": list(self.arms)}
        return named | {CONTENT: self.one_run(self.arms[0], "float32").identity}

    def spec(
        self,
        arm: str,
        rates: Sequence[float],
        seeds: Sequence[int],
        steps: int,
        compute_type: str,
        samples: Mapping[str, int] = SAMPLES,
    ) -> SweepSpec:
        """One arm's sweep. Raises SpecError for what does not fit together."""
        fields = {"task": self.task, "task_options": dict(self.options), "backbone": self.backbone, "arm": arm}
        how = {"input_init": self.input_init, "batch_size": BATCH, "compute_type": compute_type}
        grid = {"learning_rates": list(rates), "seeds": list(seeds), "extend": 0, "steps": steps}
        return resolve({**fields, **how, **grid, **samples}, "fpt advise")

    @property
    def input_init(self) -> str:
        """With a bias where the model adds no positions: fpt.models.initialise.input_bias says why."""
        groups = models.groups_of(self.backbone, own_table=tasks.own_table(self.task, self.options))
        return "biased" if "input" in groups and "positions" not in groups else "orthogonal"

    def one_run(self, arm: str, compute_type: str) -> SweepSpec:
        """A sweep of one run and one step, for what is the same at every rate and seed. Raises SpecError as `spec`."""
        return self.spec(arm, [1e-3], [0], 1, compute_type)


def request(
    data: str,
    backbone: str,
    arms: str | None,
    *,
    root: Path,
    minutes: float = Request.minutes,
    tolerance: float = Request.tolerance,
    name: str | None = None,
    options: Mapping[str, Any] | None = None,
    steps: int | None = None,
) -> Request:
    """The request of a command given in the working directory; paths in it become relative to the workspace `root`.

    `data`: a folder of images, an npz file, a table, or the name of a task. `arms`: names with commas between them;
    None: those of NAMES. `options`: of the task, None where one was not given. Raises SpecError for what does not
    exist, and for minutes and a tolerance that are not finite.
    """
    for option, number in {"minutes": minutes, "tolerance": tolerance}.items():
        if not math.isfinite(number):
            raise SpecError(f"--{option} {number}: must be a finite number")
    task = _task_of(data, root)
    known = tasks.entry(task).options
    given = {key: value for key, value in (options or {}).items() if value is not None}
    for key in given:
        if key not in known:
            raise SpecError(f"--{key}: {task} has no such option; it has {', '.join(known) or 'none'}")
    names = [each.strip() for each in arms.split(",")] if arms else list(NAMES)
    try:
        entries = [models.arm(each) for each in names]
    except SpecError as error:
        raise SpecError(f"--arms: {error} Short names: {', '.join(NAMES)}.") from None
    chosen = tuple(dict.fromkeys(models.name_of(each.init, each.trainable) for each in entries))
    if len(chosen) < 2:
        raise SpecError(f"--arms {arms}: two arms or more are compared; known are {', '.join(NAMES)}, or any arm")
    model = _model_of(backbone, root)
    if tasks.own_kind(task) == "csv":
        given = _reading(task, model, given, root)
    return Request(
        title_of(data, name),
        task,
        given,
        model,
        chosen,
        minutes=minutes,
        tolerance=tolerance,
        named=bool(arms),
        steps=steps,
    )


def title_of(data: str, name: str | None) -> str:
    """NAME of the study advise-NAME. Raises SpecError for what cannot name one."""
    title = name or re.sub(r"[^A-Za-z0-9]+", "-", Path(data).stem).strip("-").lower()
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", title):
        raise SpecError(f"{name or data}: letters a to z, digits, - and _ name a study; give such a name by --name")
    return title


def _task_of(data: str, root: Path) -> str:
    """The task that a path, or the name of a task, means."""
    if kind := tasks.own_kind(data):
        return f"{kind}:{_from(root, Path(os.path.expanduser(data.partition(':')[2])))}"
    path = Path(os.path.expanduser(data))
    if data in tasks.known() and not path.exists():
        return data
    kinds = {".npz": "npz"} | dict.fromkeys(ENDINGS, "csv")
    kind = "folder" if path.is_dir() else kinds.get(path.suffix.lower(), "")
    if not path.exists():
        raise SpecError(f"{data}: there is no such file or folder, and no task of this name")
    if not kind:
        raise SpecError(f"{data}: a folder of images by class, or a file {', '.join(kinds)}, is what can be read")
    return f"{kind}:{_from(root, path)}"


def _model_of(backbone: str, root: Path) -> str:
    """The backbone, a path in it from the workspace."""
    inside = backbone.removeprefix(hub.HUB)
    if inside == backbone or hub.PINNED.fullmatch(inside) or inside.startswith("~"):
        return backbone
    return hub.HUB + _from(root, Path(inside))


def _reading(task: str, backbone: str, given: Mapping[str, Any], root: Path) -> dict[str, Any]:
    """The options of a table. Texts are read by the model's own tokenizer where its folder has one and nothing else is
    asked for; without it, the most `tokens` of a text are its most bytes."""
    from fpt.tasks.own import holds_texts

    path = _inside(root, task)
    if not path.is_file() or not holds_texts(path, given.get("target", "")):
        return dict(given)
    tokenizer_files = tokens.files(_inside(root, backbone)) if hub.path_of(backbone) is not None else []
    how = given.get("tokenizer", tasks.BY_MODEL if tokenizer_files else tasks.BY_BYTES)
    if how == tasks.BY_MODEL:
        return {**given, "tokenizer": how}
    return {"bytes" if name == "tokens" else name: value for name, value in given.items()}


def _inside(root: Path, name: str) -> Path:
    """The path that the name of a task or a backbone has after its colon, from the working directory."""
    return Path(os.path.relpath(root / os.path.expanduser(name.partition(":")[2])))


def _from(root: Path, path: Path) -> str:
    """A path as it is named from the workspace, which may be reached by a link."""
    return Path(os.path.relpath(os.path.realpath(path), os.path.realpath(root))).as_posix()


def prepared(wanted: Request, compute_type: str) -> "tuple[Task, dict[str, Template]]":
    """The task and the model of every arm. What can be refused before training is refused here: data, model, window,
    memory, and a task that is not a class an example.

    Raises FptError.
    """
    first, *others = (wanted.one_run(arm, compute_type) for arm in wanted.arms)
    task, template = run.prepare(first)
    if task.predictions != 1 or task.own_table == tasks.PREDICTS:
        raise SpecError(f"task {wanted.task}: one class an example can be advised on; it has {task.predictions}")
    found = {first.arm: template}
    for spec in others:
        _, found[spec.arm] = run.fitted(spec, task, None)
        check_room(found[spec.arm], spec.recipe, 1, None)
    return task, found
