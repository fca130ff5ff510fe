"""A fleet from its first step to its tables: evaluations, what is reported, checkpoints, parts where memory lacks."""

import gc
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from fpt.errors import SpecError, check_known
from fpt.models.layers import multiplied_in
from fpt.models.template import Template
from fpt.tasks.arrays import Examples
from fpt.tasks.task import Split, Task
from fpt.training import compute, features, measures, memory
from fpt.training.checkpoint import Folder, Tables, check_disk, identify
from fpt.training.evaluate import Best, score
from fpt.training.fleet import Fleet, stack
from fpt.training.recipe import ANSWERS, ATTENTION, MEASURES, TRAIN_MODE, WINDOWS, Recipe, as_written

Progress = Callable[[int, int], None]
SCORES = ("validation_loss", "validation_accuracy")  # at every evaluation
NUMBERED = ("step", "trained", "query", "key", "part", "window", "example")  # columns that number the rows of a run
# Of a task, what its model is built for
OF_A_MODEL = (
    "name", "variant", "options", "tokens", "width", "vocabulary", "classes", "readout", "per_token", "pooling",
    "mask_padding", "own_table",
)  # fmt: skip
TESTED = ("test_accuracy", "test_accuracy_exact", "train_accuracy")  # at every budget


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

    def __init__(self, fleet: Fleet) -> None:
        self.fleet, self.done, self.best = fleet, 0, Best(fleet)
        recipe = fleet.recipe
        self.validation = stack([split.validation_sample(recipe.evaluation_examples) for split in fleet.splits])
        self.stops, self.budgets = recipe.evaluation_steps(), recipe.budgets()

        def table(rows: Sequence[int], columns: Sequence[str]) -> Tensor:
            shape = (len(rows), len(columns), len(fleet.parameters))
            return torch.zeros(shape, dtype=torch.float64, device=fleet.device)

        self.scores, self.tested = table(self.stops, SCORES), table(self.budgets, TESTED)

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
        scores = torch.stack([found.accuracy, found.exact, seen.accuracy])
        self.tested[number] = scores.masked_fill(self.best.step == 0, torch.nan)

    def _samples(self, number: int) -> tuple[Examples, Examples]:
        """B at this budget, and training examples: as many, but never more than `budget_examples`."""
        recipe, splits = self.fleet.recipe, self.fleet.splits
        count = recipe.test_examples if number == len(self.budgets) - 1 else recipe.budget_examples
        test = stack([split.test_sample(count) for split in splits])
        size = test.targets.shape[1]
        return test, stack([split.train_sample(min(size, recipe.budget_examples or size)) for split in splits])

    def state(self) -> dict[str, Tensor]:
        """Everything, as tensors, for a checkpoint."""
        own = {"scores": self.scores, "tested": self.tested, "done": torch.tensor([self.done])}
        return {**self.fleet.state(), **self.best.state(), **own}

    def load(self, state: dict[str, Tensor]) -> None:
        """Go on from what `state()` gave."""
        self.fleet.load(state)
        for name, tensor in (self.best.state() | {"scores": self.scores, "tested": self.tested}).items():
            tensor.copy_(state[name])
        self.done = int(state["done"].item())

    def tables(self, asked: Sequence[str] = ()) -> Tables:
        """Tables of runs and curves, and of what is `asked` for (of fpt.training.recipe.MEASURES)."""
        tables = {"runs": self._runs(), "curves": self._curves()}
        if ATTENTION in asked:
            tables["attention"] = measures.attention(self.fleet, self.best.parameters)
        if WINDOWS in asked:
            drawn = {part: [draw(each) for each in self.fleet.splits] for part, draw in self._at_end.items()}
            tables[WINDOWS] = measures.windows(self.fleet, drawn)
        if ANSWERS in asked:
            tables[ANSWERS] = measures.answers(self.fleet, self.best, self._at_end)
        if TRAIN_MODE in asked:
            tables["runs"]["train_accuracy_train_mode"] = measures.train_mode_accuracy(self.fleet).cpu().numpy()
        return tables

    @property
    def _at_end(self) -> dict[str, Callable[[Split], Examples]]:
        """What draws the samples that stop and select, and that are tested at the end, from a seed's split."""
        recipe = self.fleet.recipe
        return {
            "validation": lambda split: split.validation_sample(recipe.evaluation_examples),
            "test": lambda split: split.test_sample(recipe.test_examples),
        }

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
        fleet, names = self.fleet, ("test_accuracy", "train_accuracy")
        columns = {name: self.tested[-1, TESTED.index(name)].clone() for name in names}
        samples = dict(zip(names, self._samples(len(self.budgets) - 1), strict=True))
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
        of_budgets = dict(zip(self.budgets, self.tested.cpu().numpy(), strict=True))
        untested = self.tested.new_full((len(TESTED), len(self.fleet.parameters)), torch.nan).cpu().numpy()
        rows = []
        for stop, scores in zip(self.stops, self.scores.cpu().numpy(), strict=True):
            tested = dict(zip(TESTED, of_budgets.get(stop, untested), strict=True))
            del tested["test_accuracy_exact"]
            scored = dict(zip(SCORES, scores, strict=True))
            rows.append(pd.DataFrame(run_columns(self.fleet) | {"step": stop} | scored | tested))
        return pd.concat(rows)


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
    keep: tuple[int, Callable[[float], Path]] | None = None,
    progress: Progress | None = None,
    checkpoints: Path | str | None = None,
    device: torch.device | str | None = None,
) -> FleetResult:
    """Train learning_rates x seeds, evaluate, keep the parameters that each run reports, test them at every budget.

    asked: of fpt.training.recipe.MEASURES. keep: a seed, and the file for what its run at each rate reports.
    progress(run_steps, of_all) is called at evaluations and about every second. Fleets that do not fit in memory are
    split; `parts` records it. With a folder for `checkpoints`, the same call after a crash goes on from the last one;
    on a CPU its tables are those of an uninterrupted call, bit for bit. Another call removes those checkpoints from the
    folder, and nothing else that lies there. Raises SpecError for arguments that are not
    allowed, and for a batch larger than the training set; FptError where memory or disk are too small.
    """
    device = find_device(device)
    check_model(task, template)
    check_kind("recipe", recipe, Recipe, "fpt.training.Recipe")
    recipe.check_head(template.trainable_groups)
    if recipe.solver == "logistic" or recipe.probe is not None:
        features.check_probe(task)
    learning_rates, seeds = check_lists(learning_rates, seeds)
    check_asked(asked, task, template)
    folder = None if checkpoints is None else Folder(Path(checkpoints))
    made_by = {"rates": list(learning_rates), "seeds": list(seeds), "asked": list(asked), **kept_seed(keep, seeds)}
    made_by |= identify(task, template, recipe, device) if folder else {}
    plan = (folder.plan(made_by) if folder else None) or decide(template, recipe, made_by, device, folder)
    recipe = recipe.model_copy(update={"compute_type": plan["compute_type"]})

    def conclude(training: Training) -> Tables:
        if keep:
            measures.keep_weights(training.fleet, training.best.parameters, *keep)
        return training.tables(asked)

    with compute.computing(plan["threads"]), compute.own_modes(device):
        make = partial(Fleet if ATTENTION in asked else features.fleet, task, template, recipe)
        results = Job(make, plan, device, conclude, progress, folder).parts()
    tables = {name: in_order([each[name] for each in results]) for name in results[0]}
    parts = [(len(rates), len(some_seeds)) for rates, some_seeds in plan["parts"]]
    kept = {name: plan[name] for name in ("compute_type", "threads", "compiled")}
    return FleetResult(tables, device=device.type, parts=parts, **kept)


def decide(
    template: Template, recipe: Recipe, made_by: dict[str, Any], device: torch.device, folder: Folder | None
) -> dict[str, Any]:
    """The plan of a fleet: its parts, number type and threads. It stays as it is when the fleet goes on after a crash.

    Raises FptError where not one run fits in memory, or the checkpoints do not fit on the disk.
    """
    parts = memory.split(template, recipe, made_by["rates"], made_by["seeds"], device)
    most = max(len(rates) * len(seeds) for rates, seeds in parts)
    if folder:
        check_disk(template, most, folder.path)
    # where little is left to compute; attention lies below what is cached
    cached = ATTENTION not in made_by["asked"] and features.constant(template.task, template, recipe)
    return {
        "identity": made_by,
        "parts": parts,
        "compute_type": str(compute.dtype(recipe.compute_type, device)).removeprefix("torch."),
        "threads": torch.get_num_threads(),
        "compiled": not cached and compute.compiling_pays(template, recipe, most, device),
    }


@dataclass
class Job:
    """A plan at work: its parts are trained one after the other, each from its last checkpoint if it has one."""

    make: Callable[..., Fleet]
    plan: dict[str, Any]
    device: torch.device
    conclude: Callable[[Training], Tables]
    progress: Progress | None
    folder: Folder | None

    def parts(self) -> list[Tables]:
        """Train every part; one that runs out of memory becomes two, in the plan too."""
        results: list[Tables] = []
        while (number := len(results)) < len(self.plan["parts"]):
            gc.collect()  # a compiled fleet is a cycle, and its memory is needed
            if self.folder:
                self.folder.write_plan(self.plan)
            try:
                results.append(self.part(number))
            except (RuntimeError, MemoryError) as error:
                if not memory.ran_out(error):
                    raise
                # The prediction was too low: halve the fleet and go on.
                self.plan["parts"][number : number + 1] = memory.halve(self.plan["parts"][number])
                if self.folder:
                    self.folder.drop(number)
        return results

    def part(self, number: int) -> Tables:
        """Train one fleet to its end."""
        if self.folder and (tables := self.folder.tables(number)):
            return tables
        training = Training(self.make(*self.plan["parts"][number], self.device, self.plan["compiled"]))
        runs = [len(rates) * len(seeds) for rates, seeds in self.plan["parts"]]
        steps, reported = training.fleet.recipe.steps, time.monotonic()
        if self.folder and (state := self.folder.load(number, training.state())):
            training.load(state)
        while training.done < steps:
            evaluated = training.step()
            if self.progress and (evaluated or time.monotonic() - reported > 1):
                self.progress(sum(runs[:number]) * steps + runs[number] * training.done, sum(runs) * steps)
                reported = time.monotonic()
            if self.folder and self.folder.due() and training.done < steps:
                self.folder.save(number, training.state())
        tables = self.conclude(training)
        if self.folder:
            self.folder.finish(number, tables)
        return tables


def in_order(tables: list[pd.DataFrame]) -> pd.DataFrame:
    """One table, its rows by run and then by what numbers the rows of a run."""
    keys = [name for name in ("learning_rate", "seed", *NUMBERED) if name in tables[0]]
    return pd.concat(tables).sort_values(keys, ignore_index=True)


def check_lists(learning_rates: Sequence[float], seeds: Sequence[int]) -> tuple[list[float], list[int]]:
    """Both as lists of Python's numbers, NumPy's arrays too. SpecError for what no fleet can be made of."""
    lists = {"learning_rates": plain(learning_rates), "seeds": plain(seeds)}
    for name, values in lists.items():
        if not isinstance(values, list):
            raise SpecError(f"{name} = {values!r}: a list of numbers is needed")
        wrong = [value for value in values if isinstance(value, bool) or not isinstance(value, int | float)]
        wrong += [] if wrong else [value for value in values if not allowed(name, value)]
        if wrong:
            rule = "a whole number from 0" if name == "seeds" else "a finite number above 0"
            raise SpecError(f"{name} = {values}: {wrong[0]!r} is not {rule}")
        if not values or len(set(as_written(values))) != len(values):
            raise SpecError(f"{name} = {values}: at least one is needed, and none twice")
    return [float(rate) for rate in lists["learning_rates"]], lists["seeds"]


def plain(values: Any) -> Any:
    """Arrays, tensors and their numbers as Python's, sequences as lists; anything else as it is."""
    if hasattr(values, "tolist"):
        return values.tolist()
    return [plain(value) for value in values] if isinstance(values, list | tuple | range) else values


def allowed(name: str, value: float) -> bool:
    return isinstance(value, int) and 0 <= value < 2**63 if name == "seeds" else 0 < value <= sys.float_info.max


def kept_seed(keep: tuple[int, Callable[[float], Path]] | None, seeds: list[int]) -> dict[str, int]:
    """What of `keep` identifies a fleet: its seed. SpecError for one that is not trained."""
    if keep is None:
        return {}
    if (seed := plain(keep[0])) not in seeds:
        raise SpecError(f"keep = {seed!r}: it must be one of the seeds {', '.join(map(str, seeds))}")
    return {"keep": seed}


def check_asked(asked: Sequence[str], task: Task, template: Template) -> None:
    """SpecError for a measure that there is not, or that this task or this model does not have."""
    for name in asked:
        check_known("measure", name, MEASURES, "asked")
    if ATTENTION in asked:
        measures.check_attention(task, template)
    if ANSWERS in asked:
        measures.check_answers(task)


def find_device(device: torch.device | str | None) -> torch.device:
    """The device; None: CUDA if there is any, else the CPU. SpecError for one that is not here."""
    here = ["cpu", *(f"cuda:{index}" for index in range(torch.cuda.device_count()))]
    wanted = device
    if wanted is None:
        wanted = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        found = torch.device(wanted)
    except (RuntimeError, TypeError):
        found = None
    if found is None or f"{found.type}:{found.index or 0}" not in ["cpu:0", *here]:
        raise SpecError(f"device = {device!r}: this machine has {', '.join(here)}")
    return found


def check_model(task: Task, template: Template) -> None:
    """SpecError for a model that was built for tokens or answers of another kind."""
    check_kind("task", task, Task, "fpt.tasks.load")
    check_kind("model", template, Template, "fpt.models.build")
    for name in OF_A_MODEL:
        built, given = getattr(template.task, name), getattr(task, name)
        if built != given:
            raise SpecError(
                f"the model was built for task {template.task.name} with {name} = {built!r}, but the task to train on "
                f"is {task.name} with {name} = {given!r}"
            )


def check_kind(name: str, value: object, kind: type, source: str) -> None:
    """SpecError for an argument of another type; source: what makes one."""
    if not isinstance(value, kind):
        raise SpecError(f"{name} = {value!r}: must be a {kind.__name__} ({source})")
