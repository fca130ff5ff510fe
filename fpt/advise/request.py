"""What `fpt advise` is asked for, refused before any training where it cannot be."""

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fpt import models, tasks
from fpt.advise.metrics import ACCURACY, METRICS
from fpt.errors import SpecError, check_known
from fpt.models import hub, tokens
from fpt.sweeps import run
from fpt.sweeps.spec import SweepSpec, resolve
from fpt.tasks.tables import ENDINGS
from fpt.training import check_room
from fpt.training.recipe import ANSWERS

if TYPE_CHECKING:
    from fpt.models.template import Template
    from fpt.tasks.task import Task

NAMES = models.SHORT
PROBE = "output-pretrained"  # with `solver: logistic`
USUAL = ("lora", "full")  # what trains longer than the probe, unless the reader names the arms
WHOLE = "whole-pretrained"  # what `full` means where the model's own embeddings read texts: they train, too
CONTENT = "content"  # of `asked`: task and backbone by the checksums of your own files
STUDY = "advise-"  # the study is runs/advise-NAME
RECIPE = {"weight_decay": 0.01, "warmup": 0.1, "schedule": "cosine", "report": "last"}  # as people fine-tune
SAMPLES = {"evaluation_examples": 1000, "budget_examples": 100, "test_examples": 1000}
FEWEST_SEEDS = 3  # fewer have no interval


@dataclass(frozen=True)
class Request:
    """Data as a task, a backbone, and the arms that train beside the probe; how long it may take; `tolerance` in points
    of the `metric`. `seeds`: fresh ones, that report. `steps`: at most; None: as many as fit."""

    name: str
    task: str
    options: Mapping[str, Any]
    backbone: str
    arms: tuple[str, ...]
    minutes: float = 10.0
    tolerance: float = 1.0
    metric: str = ACCURACY
    batch_size: int = 32
    seeds: int = 5
    named: bool = False  # whether the reader named the arms
    steps: int | None = None

    @property
    def study(self) -> Path:
        """In the workspace, which is the working directory."""
        return Path("runs", STUDY + self.name)

    @property
    def pilot(self) -> Path:
        """The study of the tuning seeds, which choose rates."""
        return Path("runs", f"{STUDY}{self.name}-pilot")

    @property
    def asked(self) -> dict[str, Any]:
        """What makes another study, as JSON: all but the time and how results are read. Raises FptError for data or a
        model that are not there."""
        fields = asdict(self)
        names = ("name", "task", "options", "backbone", "metric", "batch_size", "seeds")
        named = {name: fields[name] for name in names} | {"arms": list(self.arms)}
        return named | {CONTENT: self.probe([1.0], [0], compute_type="float32").identity}

    def probe(self, strengths: Sequence[float], seeds: Sequence[int], **fields: Any) -> SweepSpec:
        """The sweep of the probe, with other fields. Raises SpecError for what does not fit together."""
        how = {"solver": "logistic", "steps": 1, "evaluations": 1}
        return self._spec(PROBE, {**how, "learning_rates": list(strengths), "seeds": list(seeds), **fields})

    def trained(self, arm: str, strength: float, steps: int, **grid: Any) -> SweepSpec:
        """The sweep of an arm whose output layer starts from the probe of this strength, if it starts from pretrained
        weights; `grid`: learning rates, seeds, and other fields. Raises SpecError for what does not fit together."""
        start = {"probe": strength} if models.arm(arm).init == "pretrained" else {}
        return self._spec(arm, {**RECIPE, **start, "steps": steps, "evaluations": 1, **grid})

    def _spec(self, arm: str, how: Mapping[str, Any]) -> SweepSpec:
        fields: dict[str, Any] = {"task": self.task, "task_options": dict(self.options), "backbone": self.backbone}
        fields |= {"arm": arm, "input_init": self.input_init, "extend": 0, "measures": [ANSWERS]}
        return resolve({**fields, **SAMPLES, **how}, "fpt advise")

    @property
    def input_init(self) -> str:
        """With a bias where the model adds no positions: fpt.models.initialise.input_bias says why."""
        backbone = models.backbone(self.backbone)
        groups = models.groups_of(backbone, own_table=tasks.own_table(self.task, self.options))
        return "biased" if "input" in groups and "positions" not in groups else "orthogonal"


def request(
    data: str,
    backbone: str,
    arms: str | None,
    *,
    root: Path,
    name: str | None = None,
    options: Mapping[str, Any] | None = None,
    **how: Any,
) -> Request:
    """The request of a command given in the working directory; paths in it become relative to the workspace `root`.

    `data`: a folder of images, an npz file, a table, or the name of a task. `arms`: names with commas between them, of
    what trains beside the probe; None: USUAL. `options`: of the task, None where one was not given. `how`: other
    fields of a Request. Raises SpecError for what does not exist, and for minutes and a tolerance that are not finite.
    """
    check_known("metric", how.get("metric", ACCURACY), METRICS, "--metric")
    if (seeds := how.get("seeds", FEWEST_SEEDS)) < FEWEST_SEEDS:
        raise SpecError(f"--seeds {seeds}: fewer than {FEWEST_SEEDS} have no interval")
    for option in ("minutes", "tolerance"):
        if not math.isfinite(number := how.get(option, 1)):
            raise SpecError(f"--{option} {number}: must be a finite number")
    task = _task_of(data, root)
    known = tasks.entry(task).options
    given = {key: value for key, value in (options or {}).items() if value is not None}
    for key in given:
        if key not in known:
            raise SpecError(f"--{key}: {task} has no such option; it has {', '.join(known) or 'none'}")
    model = _model_of(backbone, root)
    if "tokenizer" in known:
        given = _reading(task, model, given, root)
    own_table = tasks.own_table(task, given)
    if own_table == tasks.PREDICTS:
        raise SpecError(f"task {task}: what is predicted is the next symbol; advice needs one class an example")
    chosen = _arms(arms, own_table == tasks.READS)
    return Request(title_of(data, name), task, given, model, chosen, named=bool(arms), **how)


def title_of(data: str, name: str | None) -> str:
    """NAME of the study advise-NAME. Raises SpecError for what cannot name one."""
    title = name or re.sub(r"[^A-Za-z0-9]+", "-", Path(data).stem).strip("-").lower()
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", title):
        raise SpecError(f"{name or data}: letters a to z, digits, - and _ name a study; give such a name by --name")
    return title


def _arms(arms: str | None, own_table: bool) -> tuple[str, ...]:
    """The names of what trains beside the probe. Raises SpecError for one that there is not."""
    names = [each.strip() for each in arms.split(",")] if arms else list(USUAL)
    if own_table:
        names = [WHOLE if each == "full" else each for each in names]
    try:
        entries = [models.arm(each) for each in names if each != "probe"]
    except SpecError as error:
        raise SpecError(f"--arms: {error} Short names: {', '.join(NAMES)}.") from None
    return tuple(dict.fromkeys(models.name_of(each.init, each.trainable) for each in entries))


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
    """The options of texts. The model's own tokenizer reads them where it has one and nothing else is asked for, and
    the mean over the last layer is what is read of it; without it, the most `tokens` of a text are its most bytes."""
    from fpt.tasks.own.table import holds_texts

    path = _inside(root, task)
    if tasks.own_kind(task) and not (path.is_file() and holds_texts(path, given.get("target", ""))):
        return dict(given)
    if hub.path_of(backbone) is not None:
        own: object = tokens.files(_inside(root, backbone))
    else:
        own = tokens.identity(models.backbone(backbone))
    how = given.get("tokenizer", tasks.BY_MODEL if own else tasks.BY_BYTES)
    if how == tasks.BY_MODEL:
        return {"pooling": tasks.MEAN, **given, "tokenizer": how}
    return {"bytes" if name == "tokens" else name: value for name, value in given.items()}


def _inside(root: Path, name: str) -> Path:
    """The path that the name of a task or a backbone has after its colon, from the working directory."""
    return Path(os.path.relpath(root / os.path.expanduser(name.partition(":")[2])))


def _from(root: Path, path: Path) -> str:
    """A path as it is named from the workspace, which may be reached by a link."""
    return Path(os.path.relpath(os.path.realpath(path), os.path.realpath(root))).as_posix()


def task_and_model(spec: SweepSpec, task: "Task | None" = None) -> "tuple[Task, Template]":
    """The task and the model of a sweep. What can be refused before training is refused here: data, model, window,
    memory, and a task that is not a class an example, which no probe can have. Raises FptError."""
    if task is None:
        found = run.prepare(spec)
    else:
        found = run.fitted(spec, task, None)
        check_room(found.template, spec.recipe, 1, None)
    return found.task, found.template
