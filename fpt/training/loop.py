"""A fleet from its first step to its tables: evaluations, what is reported, checkpoints, parts where memory lacks."""

import gc
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from fpt.models.layers import multiplied_in
from fpt.models.template import Template
from fpt.tasks.arrays import Examples
from fpt.tasks.task import Task
from fpt.training import compute, features, measures, memory
from fpt.training.checkpoint import Folder, Plan, Tables, check_disk, identify
from fpt.training.evaluate import Best, score
from fpt.training.fleet import Fleet, stack
from fpt.training.recipe import Recipe

Leader = tuple[float, float]  # a learning rate, and the mean validation accuracy over its seeds, a fraction
Progress = Callable[[int, int, Leader | None], None]
Keep = tuple[int, Path]  # a seed, and the folder for all weights of its runs
REPORT_EVERY = 1.0  # seconds between reports of progress, and at evaluations
SCORES = ("validation_loss", "validation_accuracy")  # at every evaluation
TESTED = ("test_accuracy", "train_accuracy")  # at every budget
NUMBERED = ("step", "trained", "query", "key", "part", "window", "example")  # columns that number the rows of a run


@dataclass(frozen=True)
class FleetResult:
    """Tables of a fleet, and how it was trained: `runs` (one row per run), `curves` (one per evaluation), and what else
    was asked for. Accuracies are fractions."""

    tables: Tables
    compute_type: str
    threads: int
    device: str
    parts: list[tuple[int, int]]  # (rates, seeds) of each fleet that was trained: more than one where memory was short
    compiled: bool

    @property
    def runs(self) -> pd.DataFrame:
        return self.tables["runs"]

    @property
    def curves(self) -> pd.DataFrame:
        return self.tables["curves"]

    @property
    def multiplied_in(self) -> str:
        """The type of its products, which differs from `compute_type` where a processor lacks that."""
        kind = multiplied_in(getattr(torch, self.compute_type), torch.device(self.device))
        return str(kind).removeprefix("torch.")


class Training:
    """A fleet on its way: the steps done, every score so far, the parameters that each run reports.

    The seed draws three samples, each with one purpose. A, of the validation set, stops and selects. B, of the test
    set, is what is reported, with the parameters that were best on A so far, or, where the recipe says so, with the
    last. Training examples show how well these were learned.
    """

    def __init__(self, fleet: Fleet, asked: Sequence[str] = (), keep: Keep | None = None) -> None:
        self.fleet, self.done, self.best = fleet, 0, Best(fleet)
        self.asked, self.keep = asked, keep
        recipe = fleet.recipe
        self.validation = stack([split.validation_sample(recipe.evaluation_examples) for split in fleet.splits])
        self.stops, self.budgets = recipe.evaluation_steps(), recipe.budgets()
        self.scores = self.best.validation.new_zeros(len(self.stops), len(SCORES), len(fleet.runs))
        self.tested = self.best.validation.new_zeros(len(self.budgets), len(TESTED), len(fleet.runs))

    def __iter__(self) -> Iterator[bool]:
        """The steps that are left, one by one."""
        while self.done < self.fleet.recipe.steps:
            yield self.step()

    def step(self) -> bool:
        """One gradient step, and the evaluation that is due after it; True after an evaluation."""
        self.done += 1
        if self.fleet.active.row_numbers:
            self.fleet.step(self.done)
        if self.done not in self.stops:
            return False
        self._evaluate(self.stops.index(self.done))
        if self.done in self.budgets:
            self._test(self.budgets.index(self.done))
        self.fleet.release()
        return True

    def _evaluate(self, number: int) -> None:
        """Score the active runs; one that has left keeps its scores, since its parameters do not change any more."""
        fleet, subset = self.fleet, self.fleet.active
        if number:
            self.scores[number] = self.scores[number - 1]
        if not subset.row_numbers:
            return
        found = score(fleet, fleet.parameters, self.validation, subset)
        self.scores[number].index_copy_(1, subset.rows.flatten(), torch.stack([found.loss, found.accuracy]))
        fleet.mark_diverged(self.done, found.loss.isfinite())
        self.best.update(self.done, fleet, self.scores[number, SCORES.index("validation_accuracy")])

    def _test(self, number: int) -> None:
        """Test every run with what it reports so far; one that was never finite has no parameters, and no accuracy."""
        test, train = self._samples(number)
        found = score(self.fleet, self.best.parameters, test)
        seen = score(self.fleet, self.best.parameters, train)
        scores = torch.stack([found.accuracy, seen.accuracy])
        self.tested[number] = scores.masked_fill(self.best.step == 0, torch.nan)

    def _samples(self, number: int) -> tuple[Examples, Examples]:
        """B at this budget, and training examples: as many, but never more than `budget_examples`."""
        recipe, splits = self.fleet.recipe, self.fleet.splits
        count = recipe.test_examples if number == len(self.budgets) - 1 else recipe.budget_examples
        test = stack([split.test_sample(count) for split in splits])
        size = test.targets.shape[1]
        return test, stack([split.train_sample(min(size, recipe.budget_examples or size)) for split in splits])

    def leader(self) -> Leader | None:
        """The learning rate that was best when it was evaluated last; None before, and where some run diverged at
        every rate."""
        evaluated = sum(stop <= self.done for stop in self.stops)
        if not evaluated:
            return None
        accuracy = self.scores[evaluated - 1, SCORES.index("validation_accuracy")].cpu()
        means = pd.DataFrame(run_columns(self.fleet) | {"accuracy": accuracy}).groupby("learning_rate")["accuracy"]
        known = means.mean(skipna=False).dropna()
        return (float(known.index[int(known.argmax())]), float(known.max())) if len(known) else None

    def state(self) -> dict[str, Tensor]:
        """Everything, as tensors, for a checkpoint."""
        own = {"scores": self.scores, "accuracies": self.tested, "done": torch.tensor([self.done])}
        return {**self.fleet.state(), **self.best.state(), **own}

    def load(self, state: dict[str, Tensor]) -> None:
        """Go on from what `state()` gave."""
        self.fleet.load(state)
        for name, tensor in (self.best.state() | {"scores": self.scores, "accuracies": self.tested}).items():
            tensor.copy_(state[name])
        self.done = int(state["done"].item())

    def keep_weights(self) -> None:
        """Write what the runs of the seed report of which that is to be kept, one file for each rate."""
        if self.keep:
            measures.keep_weights(self.fleet, self.best.parameters, *self.keep)

    def tables(self) -> Tables:
        """Tables of runs and curves, and of what is asked for (of fpt.training.recipe.MEASURES)."""
        tables = {"runs": self._runs(), "curves": self._curves()}
        for name, measure in measures.asked_for(self.asked).items():
            if measure.table:
                tables[name] = measure.table(self.fleet, self.best)
        return tables

    def _runs(self) -> pd.DataFrame:
        """One row per run: its scores at the end with the parameters that it reports, and with its last ones."""
        fleet, best = self.fleet, self.best
        columns = {"best_step": best.step, "validation_accuracy": best.validation.where(best.step > 0, torch.nan)}
        columns |= dict(zip(TESTED, self.tested[-1], strict=True)) | self._last()
        runs = pd.DataFrame(run_columns(fleet) | {name: value.cpu().numpy() for name, value in columns.items()})
        diverged = pd.Series(fleet.diverged_at.cpu().numpy(), dtype="Int64")
        runs["diverged_at"] = diverged.mask(diverged == 0)
        return runs

    def _last(self) -> dict[str, Tensor]:
        """Scores with the last parameters, which in many runs are the best ones."""
        fleet, columns = self.fleet, dict(zip(TESTED, self.tested[-1].clone(), strict=True))
        samples = dict(zip(TESTED, self._samples(len(self.budgets) - 1), strict=True))
        moved = self.best.step != self.stops[-1]
        for of_seed in fleet.all_runs.rows:  # its frozen tensors are there once for all its runs
            rows = of_seed[moved[of_seed]]
            if not len(rows):
                continue
            subset = fleet.subset(rows[None])
            for name, sample in samples.items():
                columns[name][rows] = score(fleet, fleet.parameters, sample, subset).accuracy
        return {f"{name}_last": value for name, value in columns.items()}

    def _curves(self) -> pd.DataFrame:
        """One row per run and evaluation; test scores are nan at steps that are not budgets."""
        at_budgets = dict(zip(self.budgets, self.tested.cpu().numpy(), strict=True))
        frames = []
        for stop, scores in zip(self.stops, self.scores.cpu().numpy(), strict=True):
            columns = run_columns(self.fleet) | {"step": stop} | dict(zip(SCORES, scores, strict=True))
            tested = at_budgets.get(stop, [math.nan] * len(TESTED))
            frames.append(pd.DataFrame(columns | dict(zip(TESTED, tested, strict=True))))
        return pd.concat(frames)


def run_columns(fleet: Fleet) -> dict[str, list[float] | list[int]]:
    """Columns that name the runs, in the order of the parameter rows."""
    return {"learning_rate": [rate for _, rate in fleet.runs], "seed": [seed for seed, _ in fleet.runs]}


def train_fleet(
    task: Task,
    template: Template,
    recipe: Recipe,
    learning_rates: Sequence[float],
    seeds: Sequence[int],
    *,
    asked: Sequence[str] = (),
    keep: Keep | None = None,
    progress: Progress | None = None,
    checkpoints: Path | str | None = None,
    device: torch.device | str | None = None,
) -> FleetResult:
    """Train learning_rates x seeds, evaluate, keep the parameters that each run reports, test them at every budget.

    asked: of fpt.training.recipe.MEASURES. keep: a seed, and the folder for what its run at each rate reports.
    progress(run_steps, of_all, leader) is called at evaluations and about every second. Fleets that do not fit in
    memory are split, and the leader is that of the part at work; `parts` records it. With a folder for `checkpoints`,
    the same call after a crash goes on from the last one; on a CPU its tables are those of an uninterrupted call, bit
    for bit. Another call removes those checkpoints from the folder, and nothing else that lies there.

    What does not fit together is refused before, by fpt.training.check_recipe. Raises FptError where memory or disk
    are too small.
    """
    its = template.task
    assert (its.name, its.variant, its.options) == (task.name, task.variant, task.options), "a model of another task"
    device, folder = find_device(device), None if checkpoints is None else Folder(Path(checkpoints))
    rates, seeds = [float(rate) for rate in learning_rates], [int(seed) for seed in seeds]
    identity: dict[str, Any] = {"rates": rates, "seeds": seeds, "asked": [*asked]}
    identity |= {"keep": keep[0]} if keep else {}
    identity |= identify(task, template, recipe, device) if folder else {}
    plan = (folder.plan(identity) if folder else None) or decide(template, recipe, identity, device, folder)
    recipe = recipe.model_copy(update={"compute_type": plan.compute_type})
    finished: list[Tables] = []
    with compute.computing(plan.threads), compute.own_modes(device):
        while (number := len(finished)) < len(plan.parts):
            gc.collect()  # a compiled fleet is a cycle, and its memory is needed
            if folder:
                folder.write_plan(plan)
            try:
                if tables := folder.tables(number) if folder else None:
                    finished.append(tables)
                    continue
                # Nothing here holds the fleet: its memory is needed by its halves.
                how = (task, template, recipe, *plan.parts[number], device, plan.compiled, asked)
                finished.append(train_part(Training(features.fleet(*how), asked, keep), number, plan, progress, folder))
            except (RuntimeError, MemoryError) as error:
                if not memory.ran_out(error):
                    raise
                # The prediction was too low: two halves take the place of the part.
                plan.parts[number : number + 1] = memory.halve(plan.parts[number])
                if folder:
                    folder.drop(number)
    joined = {name: in_order([tables[name] for tables in finished]) for name in finished[0]}
    parts = [(len(rates), len(seeds)) for rates, seeds in plan.parts]
    return FleetResult(joined, plan.compute_type, plan.threads, device.type, parts, plan.compiled)


def decide(
    template: Template, recipe: Recipe, identity: dict[str, Any], device: torch.device, folder: Folder | None
) -> Plan:
    """The plan of a fleet: its parts, number type and threads. It stays as it is when the fleet goes on after a crash.

    Raises FptError where not one run fits in memory, or the checkpoints do not fit on the disk.
    """
    parts = memory.split(template, recipe, identity["rates"], identity["seeds"], device)
    most = max(len(rates) * len(seeds) for rates, seeds in parts)
    if folder:
        check_disk(template, most, folder.path)
    little = features.constant(template.task, template, recipe, identity["asked"])  # is left to compute
    return Plan(
        identity=identity,
        parts=parts,
        compute_type=str(compute.dtype(recipe.compute_type, device)).removeprefix("torch."),
        threads=torch.get_num_threads(),
        compiled=not little and compute.compiling_pays(template, recipe, most, device),
    )


def train_part(training: Training, number: int, plan: Plan, progress: Progress | None, folder: Folder | None) -> Tables:
    """Train a part of the plan to its end, from its last checkpoint where it has one."""
    runs, steps, reported = plan.runs, training.fleet.recipe.steps, time.monotonic()
    if folder and (state := folder.load(number, training.state())):
        training.load(state)
    for evaluated in training:
        if progress and (evaluated or time.monotonic() - reported > REPORT_EVERY):
            progress(sum(runs[:number]) * steps + runs[number] * training.done, sum(runs) * steps, training.leader())
            reported = time.monotonic()
        if folder and folder.due() and training.done < steps:
            folder.save(number, training.state())
    training.keep_weights()
    tables = training.tables()
    if folder:
        folder.finish(number, tables)
    return tables


def in_order(tables: list[pd.DataFrame]) -> pd.DataFrame:
    """One table, its rows by run and then by what numbers the rows of a run. A part that an earlier version finished
    may have a column that this one does not measure: it goes."""
    keys = [name for name in ("learning_rate", "seed", *NUMBERED) if name in tables[0]]
    return pd.concat(tables, join="inner").sort_values(keys, ignore_index=True)


def find_device(device: torch.device | str | None = None) -> torch.device:
    """The device; None: CUDA if there is any, else the CPU."""
    return torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
