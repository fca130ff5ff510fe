"""Cells of a toy paper whose numbers are chosen, for the engine of verdicts."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fpt.claims.rules import KINDS
from fpt.papers import schema
from fpt.papers.schema import RULES, Claim, Paper
from fpt.results.arm import Arm as Sweep
from fpt.results.cells import TableCell
from fpt.results.mapping import lines_of
from fpt.sweeps.rows import Planned
from fpt.sweeps.spec import resolve

RATES = (1e-4, 1e-3, 1e-2)
STEPS = 400
SEEDS = 8
BEYOND = 30  # the grid goes on so many times lower and higher, where nothing is learned
ARMS = ("frozen-pretrained", "frozen-random", "unfrozen-pretrained", "unfrozen-random")
# examples without end: their sampling adds nothing
TEST = {"drawn_by_seed": False, "size": math.inf, "budget": 100, "last": 1000}


@dataclass(frozen=True)
class Made:
    """What the runs of one row are to be: means by rate (percent), their spread, and what differs from the plain.

    The best rate on validation is `best` at every budget. Before the last budget a run has climbed from chance with
    the square root of the steps; in tables of steps it comes to 90 percent where it `arrives`.
    """

    means: Mapping[float, float | Sequence[float]] | float = 80.0
    sd: float = 0.4
    best: float | None = 1e-3
    edge: bool = False  # the best rate is the last one of the grid
    train: float = 80.0  # training accuracy, for gaps
    arrives: Sequence[float] = ()  # by seed
    top: float = 90.0  # where a run ends that does not arrive
    attention: tuple[float, float, float] | None = None  # on the needed tokens: after, before, even spread
    diverged: Mapping[float, int] = field(default_factory=dict)  # rate -> how many runs, before they were evaluated
    losses: tuple[float, float] | None = None  # log10 of the rate with the least loss, and that loss in nats
    falls: float = 0.0  # decades by which that rate is higher before the last step
    fields: Mapping[str, Any] = field(default_factory=dict)
    result: Mapping[str, Any] = field(default_factory=dict)
    seeds: int = SEEDS
    beyond: bool = True  # whether the grid goes on where nothing is learned
    missing: bool = False  # planned, not run

    @property
    def grid(self):
        means = dict(self.means) if isinstance(self.means, Mapping) else dict.fromkeys(RATES, self.means)
        low = {min(means) / BEYOND: 10.0} if self.beyond else {}
        return low | means | ({max(means) * BEYOND: 10.0} if self.beyond and not self.edge else {})


def paper(rows, kind="accuracy", printed=None, until="threshold"):
    """A paper `toy` with one table, `toy-table`: `printed` is row -> task -> number."""
    entries = {row: {"ours": "a toy", **(printed or {}).get(row, {})} for row in rows}
    table = {"id": "toy-table", "paper": "toy", "title": "Toy", "kind": kind, "until": until, "rows": entries}
    return Paper.model_validate(
        {
            "name": "toy", "title": "Toy", "rates": {"default": 1e-3}, "tables": {"toy-table": table},
            "tasks": {task: {} for task in ("digits", "digits-lra", "listops-short", "bit-xor", "mnist")},
            "rows": {row: {"arm": arm} for row, arm in zip(rows, ARMS * 2, strict=False)},
        }
    )  # fmt: skip


def planned(table, row, made, task="digits", scale="reduced"):
    """The row as a study file plans it."""
    fields = {"task": task, "arm": ARMS[list(table.rows).index(row) % 4], "steps": STEPS, "threshold": 0.9,
                              "learning_rates": list(made.grid), "seeds": list(range(made.seeds))}  # fmt: skip
    return Planned(table, row, (task,), scale, resolve(fields | dict(made.fields)))


def cell(table, row, made, task="digits", scale="reduced", study="made"):
    spec, rates = planned(table, row, made, task).spec, made.grid
    rng = np.random.default_rng(list(table.rows).index(row))
    keys = [(rate, seed, rng.normal(0, made.sd) / 100) for rate in sorted(rates) for seed in range(made.seeds)]
    runs = [_run(made, spec, table.kind, *key) for key in keys]
    curves = [each for key in keys for each in _curve(made, spec, table.kind, *key)]
    maps = [each for rate, seed, noise in keys if made.attention for each in _maps(rate, seed, made.attention, noise)]
    windows = [each for key in keys if made.losses for each in _windows(made, *key)]
    result = {"grid": sorted(rates), "selected_rate": max(rates) if made.edge else made.best, "at_edge": made.edge}
    measured = {"runs": runs, "curves": curves, "attention": maps, "windows": windows}
    arm = swept(spec, result | dict(made.result), study, table.kind, **measured)
    return TableCell(table, row, (task,), scale, arm)


def swept(spec, result, study="made", kind="accuracy", **rows):
    """A sweep that is done, with what is otherwise read from its folder."""
    plain = {"at_edge": False, "test": TEST, "asks": {}, "rules": RULES, "compute_type": "float32", "git": None}
    plain |= {"spec": spec.resolved() | {"arm": spec.arm}, "hash": spec.hash, "selected_rate": None}
    (line,) = lines_of(study, [spec])
    of = "gap" if kind == "gap" else "accuracy"
    arm = Sweep(**line, folder=Path(spec.folder_name), result=plain | result, origin="own", of=of)
    vars(arm).update({name: pd.DataFrame(each) for name, each in rows.items()})
    vars(arm)["runs"] = arm.runs.astype({"diverged_at": "Int64"})
    return arm


def _validation(made, rate):
    return 0.9 if rate == (max(made.grid) if made.edge else made.best) else 0.0


def _test(made, kind, rate, seed, noise, share):
    """Test accuracy after a share of the steps."""
    mean = made.grid[rate]
    level = (mean[seed % len(mean)] if isinstance(mean, Sequence) else mean) / 100 + noise
    if kind != "steps":
        return 0.1 + (level - 0.1) * share**0.5
    arrives = made.arrives[seed % len(made.arrives)] if made.arrives else np.inf
    return 0.9 if share * STEPS >= arrives else (made.top / 100 + noise) * share


def _lost(made, rate, seed):
    """The step at which the run diverged."""
    return STEPS if made.best is None else 5 if seed < made.diverged.get(rate, 0) else None


def _run(made, spec, kind, rate, seed, noise):
    lost = _lost(made, rate, seed)
    accuracy = np.nan if lost == 5 else _test(made, kind, rate, seed, noise, 1.0)
    return {"sweep": spec.folder_name, "learning_rate": rate, "seed": seed, "diverged_at": lost,
            "validation_accuracy": np.nan if lost == 5 else _validation(made, rate),
            "test_accuracy": accuracy, "test_accuracy_last": accuracy,
            "train_accuracy": made.train / 100 + noise / 2, "train_accuracy_last": made.train / 100 + noise / 2,
            }  # fmt: skip


def _curve(made, spec, kind, rate, seed, noise):
    rows = []
    for step in spec.evaluation_steps() if _lost(made, rate, seed) != 5 else []:
        then = _test(made, kind, rate, seed, noise, step / spec.steps)
        tested = {"test_accuracy": then, "train_accuracy": made.train / 100} if step in spec.budgets() else {}
        a = then if kind == "steps" and rate == made.best else _validation(made, rate) * (step / spec.steps) ** 0.5
        falls = made.falls if step < spec.steps else 0.0
        loss = {"validation_loss": _loss(made, rate, noise, falls)} if made.losses else {}
        rows.append({"learning_rate": rate, "seed": seed, "step": step, "validation_accuracy": a} | loss | tested)
    return rows


def _loss(made, rate, noise, higher=0.0):
    """Its logarithm is a parabola over that of the rate."""
    place, least = made.losses or (0.0, 1.0)
    return float(least * np.exp(0.3 * (np.log10(rate) - place - higher) ** 2 + noise))


def _windows(made, rate, seed, noise):
    """Four windows, one harder than the other."""
    key = {"learning_rate": rate, "seed": seed, "part": "test"}
    return [key | {"window": place, "loss": _loss(made, rate, noise) + place / 10} for place in range(4)]


def _maps(rate, seed, shares, noise):
    """Two strings of one token, and a query that needs the first."""
    after, before, chance = shares
    rows = []
    for trained, share in ((True, after / 100 + noise), (False, before / 100 - noise)):
        for place, weight in enumerate((share, 1 - share, 0.0)):
            needed = place == 0
            key = {"learning_rate": rate, "seed": seed, "trained": trained, "query": 2, "key": place}
            rows.append(key | {"weight": weight, "relevant": weight * needed, "chance": chance / 100 * needed})
    return rows


@dataclass(eq=False)
class Arm:
    """What contrasts by budget ask of a cell: accuracies (seeds x budgets) by rate or tuned, and the budgets at which
    its grid ends."""

    name: str
    by_rate: Mapping[float | str, pd.DataFrame]
    edges: Collection[int] = ()
    noise: float = 0.0
    task: str = "digits"
    study: str = "made"
    of: str = "accuracy"
    memory: dict[Any, Any] = field(default_factory=dict)

    @property
    def sweep(self):
        return self.name

    @property
    def folder(self):
        return self.name

    @property
    def budgets(self):
        return list(next(iter(self.by_rate.values())))

    @property
    def rates(self):
        return [rate for rate in self.by_rate if not isinstance(rate, str)]

    @property
    def at_edge(self):
        return bool(self.ends(self.budgets[-1]))

    def values(self, at, budget):
        (values,) = [frame for rate, frame in self.by_rate.items() if rate == at or np.isclose([rate], [at]).all()]
        return values[budget or self.budgets[-1]]

    def chooses(self, at):
        return at == "tuned"

    def without(self, at, budget):
        """No seed changes what another one chooses."""
        values = self.values(at, budget)
        return pd.DataFrame({seed: values.drop(seed) for seed in values.index}).T

    def collapsed(self, at, budget):
        values = self.values(at, budget)
        return values < values.median() - 0.3

    def test_noise(self, at, budget):
        return self.noise

    def right(self, at, budget):
        return pd.DataFrame()

    def diverged(self, at):
        return 0

    def ends(self, budget):
        return {"high"} if budget in self.edges else set()


@dataclass
class MadeStudy:
    """What the engine reads of a StudyCells."""

    tasks: dict[str, dict[str, TableCell]]
    plan: dict[str, dict[str, Planned]]
    name: str = "made"

    @property
    def results(self):
        return {cell.arm.sweep: cell.arm for cells in self.tasks.values() for cell in cells.values()}

    def by_task(self, table):
        return self.tasks

    def not_run(self, table):
        return self.plan


def study(monkeypatch, toy, *tasks, scale="reduced"):
    """One study of the toy paper: a mapping of rows for each task, of digits where no task is named."""
    monkeypatch.setattr("fpt.papers.papers", lambda: {"toy": toy})
    table = toy.tables["toy-table"]
    named = dict(entry if isinstance(entry, tuple) else ("digits", entry) for entry in tasks)
    found, plan = {}, {}
    for task, rows in named.items():
        found[task] = {row: cell(table, row, made, task, scale) for row, made in rows.items() if not made.missing}
        plan[task] = {row: planned(table, row, made, task, scale) for row, made in rows.items()}
    return MadeStudy(found, plan)


def claim(*rules):
    """A claim on the toy table. A kind that is a function of its own is written like the others: {"drop": "a"}."""
    return Claim.model_validate(
        {"id": "T-01", "paper": "toy", "says": "so", "where": "there",
         "rule": [{"table": "toy-table", **_written(rule)} for rule in rules]}
    )  # fmt: skip


def _written(rule):
    """As in the file of a paper."""
    for name in {*rule} & ({*KINDS} - {*schema.KINDS}):
        rows = [rule[name]] if isinstance(rule[name], str) else rule[name]
        return {"function": name, "rows": rows, "words": "so", **{key: rule[key] for key in rule if key != name}}
    return dict(rule)
