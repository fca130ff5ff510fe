"""The experiments of Lu et al. 2021 (lu2021.yaml): which sweeps are the rows of a table, and what these measured."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from fpt.errors import unknown
from fpt.evidence.claims import DIVERGED
from fpt.evidence.runs import Origin, load_attention, load_curves, load_plan, load_runs, rate_text
from fpt.models import BACKBONES
from fpt.tasks import TASKS
from fpt.training.recipe import Recipe

NOT_AT_THIS_SCALE, NOT_RUN = "not tested at this scale", "not run yet"
TUNED, FIXED = READINGS = ("tuned", "fixed")  # each sweep at its own rate; all at that of Lu et al., scaled
RATE, LSTM_RATE, HOMOLOGY_RATE = 1e-3, 3e-4, 1e-4  # Lu et al. 2021, appendix C
BASES = ("gpt2", "tiny-lm", "minilm")  # what a study takes as its language model
PAPER_TASKS = ("bit-memory", "bit-xor", "listops", "mnist", "cifar10", "cifar10-lra", "homology")
WIDTH = 768  # of GPT-2 base and of the paper's LSTMs
IMAGES, LISTOPS = ("mnist", "cifar10", "cifar10-lra"), ("listops",)
STAND_INS = {"digits": IMAGES + LISTOPS, "listops-short": LISTOPS}  # in a study that has none of the named tasks
CHOSEN = ("stage", "learning_rate", "seed", "selected")
RUN_COLUMNS = (
    *CHOSEN, "selected_rate", "at_edge", "test_accuracy", "test_accuracy_last", "train_accuracy_last",
    "train_accuracy_train_mode", "diverged_at",
)  # fmt: skip
CURVE_COLUMNS = (*CHOSEN, "step", "validation_accuracy")
ATTENTION_COLUMNS = (*CHOSEN, "trained", "query", "key", "weight", "relevant", "chance")
PLAIN = {
    "backbone": BASES, "layers": 0, "residual": False, "positions": False, "dropout": Recipe().dropout,
    "input_init": "orthogonal", "pretrained_by": "", "random_init": "matched", "random_gain": 1.0,
    "length": None,
}  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One row of a table: the fields in which its sweeps differ from the plain frozen model, the numbers printed."""

    label: str
    fields: Mapping[str, Any]
    paper: Mapping[str, Any] = field(default_factory=dict)

    def is_served_by(self, sweep: Mapping[str, Any]) -> bool:
        """Whether a sweep (a row of `load_plan` or `load_runs`) trains what this row means."""
        given = {**sweep, **json.loads(sweep["backbone_options"] or "{}")}
        given["pretrained_by"] = str(sweep["pretrained_by"]).partition(".")[0]
        given["length"] = None  # only that of Bit XOR tells rows apart
        if sweep["task"] == "bit-xor":
            standard = TASKS["bit-xor"].options["length"]
            length = json.loads(sweep["task_options"] or "{}").get("length", standard)
            given["length"] = None if length == standard else length
        if given["random_init"] in ("matched", "fixed") and _width(sweep) == WIDTH:  # there both draw with 0.02
            given["random_init"] = {**PLAIN, **self.fields}["random_init"]
        for name, wanted in {**PLAIN, **self.fields}.items():
            allowed = wanted if isinstance(wanted, list | tuple) else [wanted]
            if given.get(name, PLAIN.get(name)) not in allowed:
                return False
        return True


@dataclass(frozen=True)
class Experiment:
    """One table of the paper."""

    name: str  # lu-table-2
    title: str
    kind: str  # accuracy, steps or gap
    rows: tuple[Row, ...]
    claims: tuple[Mapping[str, Any], ...]

    @property
    def number(self) -> str:
        return self.name.removeprefix("lu-").replace("table-", "Table ")

    @property
    def tasks(self) -> tuple[str, ...]:
        """The paper's tasks for which the table prints a number."""
        printed = {task for row in self.rows for task in row.paper}
        return tuple(task for task in PAPER_TASKS if task in printed)

    def row(self, label: str) -> Row:
        found = next((row for row in self.rows if row.label == label), None)
        if found is None:
            raise unknown(f"row of {self.name}", label, [row.label for row in self.rows], "lu2021.yaml")
        return found


@cache
def experiments() -> dict[str, Experiment]:
    """Every experiment by id, in the paper's order of its tables."""
    text = files("fpt.evidence").joinpath("lu2021.yaml").read_text(encoding="utf-8")
    found = {}
    for name, entry in yaml.safe_load(text).items():
        rows = tuple(Row(str(row["label"]), row["is"], row.get("paper", {})) for row in entry["rows"])
        kind, claims = entry.get("kind", "accuracy"), tuple(entry["claims"])
        found[name] = Experiment(name, entry["title"], kind, rows, claims)
    return found


def experiment(name: str) -> Experiment:
    """One experiment by id, e.g. "lu-table-2". Raises SpecError for an unknown id."""
    if name not in experiments():
        raise unknown("experiment", name, experiments(), "lu2021.yaml")
    return experiments()[name]


@dataclass(frozen=True)
class Results:
    """What a study asks for (`plan`) and what of it has been run, both by sweep."""

    folder: Path
    origin: Origin = "auto"

    @cached_property
    def plan(self) -> list[dict[str, Any]]:
        """The spec of every sweep, as in a row of `load_runs`."""
        return [{str(name): value for name, value in row.items()} for row in load_plan(self.folder).to_dict("records")]

    @cached_property
    def runs(self) -> dict[str, pd.DataFrame]:
        return _by_sweep(load_runs(self.folder, self.origin), RUN_COLUMNS)

    @cached_property
    def curves(self) -> dict[str, pd.DataFrame]:
        return _by_sweep(load_curves(self.folder, self.origin), CURVE_COLUMNS)

    @cached_property
    def attention(self) -> dict[str, pd.DataFrame]:
        return _by_sweep(load_attention(self.folder, self.origin), ATTENTION_COLUMNS)

    @cached_property
    def tasks(self) -> set[str]:
        return {sweep["task"] for sweep in self.plan}

    @property
    def backbone(self) -> str:
        """The study's own language model."""
        return next(str(sweep["backbone"]) for sweep in self.plan if sweep["backbone"] in BASES)

    def tasks_for(self, named: Iterable[str]) -> list[str]:
        """Those of the paper's tasks that the study has, and what stands in for the others."""
        named = tuple(named)
        standing_in = [
            task
            for task, replaced in STAND_INS.items()
            if task in self.tasks and any(each in named and each not in self.tasks for each in replaced)
        ]
        return [task for task in named if task in self.tasks] + standing_in

    def cell(self, experiment: Experiment, row: Row, task: str) -> "Cell":
        """The sweep that is `row` on `task`: finished ones first, then those that say they serve this table."""
        found = [sweep for sweep in self.plan if sweep["task"] == task and row.is_served_by(sweep)]
        if not found:
            return Cell(experiment.kind, row, task)
        serves = [(each["sweep"] in self.runs, experiment.name in each["feeds"].split(", ")) for each in found]
        sweep = found[serves.index(max(serves))]
        runs = self.runs.get(sweep["sweep"], pd.DataFrame())
        curves = self.curves.get(sweep["sweep"], pd.DataFrame()) if experiment.kind == "steps" else pd.DataFrame()
        return Cell(experiment.kind, row, task, sweep, runs, curves)


def load_results(study_folder: str | Path, origin: Origin = "auto") -> Results:
    """The study's plan and results, read when they are first asked for; origins, and what it raises, as `load_runs`."""
    return Results(Path(study_folder), origin)


def _by_sweep(frame: pd.DataFrame, columns: Sequence[str]) -> dict[str, pd.DataFrame]:
    kept = frame.reindex(columns=list(columns))  # few columns: these tables are cut into pieces thousands of times
    return {str(name): part for name, part in kept.groupby(frame["sweep"], sort=False)}


@dataclass(frozen=True)
class Cell:
    """A row of a table on one task: no sweep of the study (`sweep` None), one without results, or one with them."""

    kind: str
    row: Row
    task: str
    sweep: Mapping[Any, Any] | None = None
    runs: pd.DataFrame = field(default_factory=pd.DataFrame)
    curves: pd.DataFrame = field(default_factory=pd.DataFrame)

    @property
    def problem(self) -> str:
        return NOT_AT_THIS_SCALE if self.sweep is None else NOT_RUN if self.runs.empty else ""

    @property
    def stage(self) -> str:
        """Fresh seeds where there are any; else those that also chose the rate: an exploratory number."""
        return "confirmation" if (self.runs["stage"] == "confirmation").any() else "selection"

    @property
    def is_exploratory(self) -> bool:
        """Whether what is shown comes from seeds that also chose the rate."""
        return not self.problem and self.stage == "selection"

    @property
    def at_edge(self) -> bool:
        return not self.runs.empty and bool(self.runs["at_edge"].iloc[0])

    @property
    def width(self) -> int:
        return _width(self.sweep) if self.sweep else WIDTH

    @property
    def is_narrow(self) -> bool:
        return self.width < WIDTH

    @property
    def papers_rate(self) -> float:
        """As Lu et al. print it, for models at least 768 wide."""
        lstm = self.sweep is not None and str(self.sweep["backbone"]).startswith("lstm")
        return LSTM_RATE if lstm else HOMOLOGY_RATE if self.task == "homology" else RATE

    @property
    def fixed_rate(self) -> float:
        """The paper's rate; for a narrower model the point of its grid nearest to that rate x 768/width, if near."""
        scaled = self.papers_rate * max(1.0, WIDTH / self.width)
        grid = list(self.runs["learning_rate"].unique()) if self.is_narrow and not self.problem else []
        close = [float(rate) for rate in grid if abs(math.log10(rate / scaled)) <= 0.5]
        return min(close, key=lambda rate: abs(math.log(rate / scaled)), default=scaled)

    @property
    def fixed_words(self) -> str:
        """The fixed rate, and what it stands for where that is not the paper's own: 1e-2 for 1e-3 x 768/128."""
        stands_for = f" for {rate_text(self.papers_rate)} x {WIDTH}/{self.width}" if self.is_narrow else ""
        return rate_text(self.fixed_rate) + stands_for

    @property
    def is_the_papers(self) -> bool:
        """Whether this is the paper's own model on the paper's own task, not one at the size of a laptop."""
        if self.sweep is None or self.is_narrow:
            return False
        return self.task in PAPER_TASKS and self.sweep["task_options"] in ("", "{}")

    def at(self, reading: str | float, frame: pd.DataFrame | None = None, stage: str | None = None) -> pd.DataFrame:
        """The runs (or the rows of `frame`) of a stage at the sweep's own rate, at the paper's, or at a given one."""
        frame = self.runs if frame is None else frame
        wanted = reading if isinstance(reading, float) else self.fixed_rate
        rate = frame["selected"].astype(bool) if reading == TUNED else _near(frame["learning_rate"], wanted)
        return frame[rate & (frame["stage"] == (stage or self.stage))]

    def values(self, reading: str | float, stage: str | None = None) -> "pd.Series[float]":
        """By seed: test accuracy, steps to the threshold (infinite: not reached), or train minus test accuracy."""
        if self.problem:
            return pd.Series(dtype=float)
        if self.kind == "steps":
            return self._steps(self.at(reading, self.curves, stage))
        runs = self.at(reading, stage=stage).drop_duplicates("seed").set_index("seed")
        if self.kind == "gap":
            return (runs["train_accuracy_last"] - runs["test_accuracy_last"]).astype(float)
        return runs["test_accuracy"].astype(float)

    def _steps(self, curves: pd.DataFrame) -> "pd.Series[float]":
        """First evaluated step at which validation accuracy reached the sweep's threshold, by seed."""
        threshold = self.sweep["threshold"] if self.sweep else math.nan
        reached = curves["validation_accuracy"].astype(float) >= threshold
        steps = curves["step"].astype(float).where(reached, np.inf)
        return steps.groupby(curves["seed"]).min()

    def diverged(self, reading: str) -> int:
        """How many runs of any stage diverged at this rate."""
        if self.problem:
            return 0
        return sum(int(self.at(reading, stage=s)["diverged_at"].notna().sum()) for s in ("selection", "confirmation"))

    def trouble(self, reading: str) -> str:
        """Why a claim about this cell cannot be decided, or nothing."""
        if self.problem:
            return self.problem
        if reading == TUNED and self.runs["selected_rate"].isna().all():
            return DIVERGED
        return "" if len(self.values(reading)) else NOT_AT_THIS_SCALE


def _width(sweep: Mapping[str, Any]) -> int:
    own = json.loads(sweep["backbone_options"] or "{}").get("width")
    return int(own or BACKBONES[str(sweep["backbone"])].width)


def _near(rates: "pd.Series[float]", rate: float) -> "pd.Series[bool]":
    return (rates.astype(float) / rate - 1).abs() < 1e-6
