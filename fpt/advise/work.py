"""From a request to two finished studies: timing, the coarse grid, the fine grid. A call that was killed goes on."""

import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from pydantic import ValidationError

from fpt import models, tasks
from fpt.advise import schedule, words
from fpt.advise.baselines import SECONDS, baselines, names_of
from fpt.advise.request import CONTENT, IF_TIME, PILOT_SAMPLES, SAMPLES, Request, prepared
from fpt.advise.schedule import COARSE, PILOT_SEEDS, Machine
from fpt.bench.cost import Measurement
from fpt.bench.step import step_cost
from fpt.errors import DataError, FptError, SpecError
from fpt.files import check_writable, read_json, write_atomically, write_json
from fpt.models import hub, tokens
from fpt.results.baselines import LINEAR, MAJORITY
from fpt.results.runs import arms_in, rate_text
from fpt.sweeps import engines, run
from fpt.sweeps.engines import local
from fpt.sweeps.ledger import sweep_state
from fpt.sweeps.spec import SweepSpec
from fpt.sweeps.study import Study, load_study
from fpt.sweeps.study_file import FILE
from fpt.sweeps.words import title

if TYPE_CHECKING:
    from fpt.models.template import Template
    from fpt.sweeps.engines import Watch
    from fpt.tasks.task import Task

ASKED, TIMING, BASELINES = "advise.json", "timing.json", "baselines.json"  # beside study.yaml
BY_SEED = "test accuracy by seed"  # of the baselines
ENOUGH_FOR_SCRATCH = 400  # steps; where fewer fit, training from scratch is left out
MOST_PILOT = 2000  # steps
ADAPTED, WHOLE = ["adapter", "weights"], ["weights"]  # what is kept of the best run


# Of sweeps and the folder of their study: what shows those that run, from when it is entered.
Bars = Callable[[Sequence[SweepSpec], Path], AbstractContextManager["Watch"]]


@dataclass
class Work:
    """One call of the command: what is wanted, when it began, and how it is shown."""

    wanted: Request
    log: Callable[[str], None]
    bars: Bars | None = None  # None: running sweeps are not shown
    began: float = field(default_factory=time.monotonic)
    read: str = ""  # what the task is, in a line
    counted: int = 0  # seeds whose baselines are there

    @property
    def left(self) -> float:
        """Seconds for sweeps: of the time that was given, less what passed and what the end takes."""
        whole = 60 * self.wanted.minutes * (1 - schedule.KEPT_BACK) - schedule.REPORT
        return whole - (time.monotonic() - self.began)

    def left_without_baselines(self, seeds: int) -> float:
        """The same, less what the baselines of so many seeds will still take."""
        of_a_seed = float((read_json(self.wanted.study / TIMING) or {}).get(SECONDS, 0))
        return self.left - of_a_seed * max(0, seeds - self.counted)

    @property
    def most(self) -> int:
        """Steps that the reader allows."""
        return self.wanted.steps or schedule.MOST_STEPS

    def run(self) -> None:
        """Both studies, to their end. What an earlier call of the same request did is kept.

        Raises FptError before any training for what cannot be run, or not in the time; and where a sweep fails.
        """
        _check_same(self.wanted)
        compute_type = _compute_type(self.wanted)
        task, templates = prepared(self.wanted, compute_type)
        self.read = task.read
        machine = machine_of(len(templates))
        if not any((folder / FILE).is_file() for folder in (self.wanted.study, self.wanted.pilot)):
            _check_possible(self.wanted, templates, compute_type, machine.slots)
        for line in reading(task, self.wanted.backbone):
            self.log(line)
        if count := leaked(task):
            self.log(words.LEAKED.format(count=count))
        self.wanted.study.mkdir(parents=True, exist_ok=True)
        if read_json(self.wanted.study / ASKED) != self.wanted.asked:  # of a request that was stopped before its plan
            (self.wanted.study / BASELINES).unlink(missing_ok=True)
        write_json(self.wanted.study / ASKED, self.wanted.asked)
        self.count_baselines(task, 1)  # what they take is known before anything is planned
        if not (self.wanted.study / FILE).is_file():
            if not (self.wanted.pilot / FILE).is_file():
                self.plan_pilot(machine, compute_type)
            self.count_baselines(task, schedule.SEEDS[-1])
            self.plan_fine(machine, templates)
        else:
            both = f"{self.wanted.study} and {self.wanted.pilot}"
            self.log(f"planned already: --minutes and --steps change nothing. For a new plan remove {both}")
        planned = load_study(self.wanted.study).sweeps
        self.count_baselines(task, max(seed for spec in planned for seed in spec.seeds) + 1)
        train(self.wanted.study, machine.threads, self.bars)

    def count_baselines(self, task: "Task", seeds: int) -> None:
        """Count the baselines of the first so many seeds, unless they are there, and say what they score."""
        path = self.wanted.study / BASELINES
        scores = (read_json(path) or {}).get(BY_SEED, {})
        before = self.counted = min(map(len, scores.values()), default=0)
        for seed in range(before, seeds):
            names = list(scores) or names_of(task)
            self.log(f"{', '.join(names)}: fitted to the training examples of seed {seed}")
            found = baselines(task, [seed], SAMPLES["test_examples"], names)
            if not scores:
                found = self.affordable(found)
            scores = {str(name): scores.get(name, [])[:seed] + values.tolist() for name, values in found.items()}
            path.parent.mkdir(parents=True, exist_ok=True)
            write_json(path.parent / TIMING, {SECONDS: sum(found.attrs[SECONDS][name] for name in found)})
            write_json(path, {BY_SEED: scores})
            self.counted = seed + 1
        if before < seeds > 1:
            for name, values in scores.items():
                self.log(f"{name}: {100 * statistics.fmean(values):.1f}%")

    def affordable(self, found: pd.DataFrame) -> pd.DataFrame:
        """The baselines of the first seed, without those that take more than an arm of the coarse grid may take; the
        simplest two are quick, and always there."""
        most = schedule.PILOT_SHARE * self.left / len(self.wanted.arms)
        all_seeds = {name: seconds * schedule.SEEDS[-1] for name, seconds in found.attrs[SECONDS].items()}
        dear = [name for name in found if all_seeds[name] > most and name not in (MAJORITY, LINEAR)]
        for name in dear:
            self.log(f"left out, since {schedule.SEEDS[-1]} seeds would take {all_seeds[name]:.0f} seconds: {name}")
        return found.drop(columns=dear)

    def plan_pilot(self, machine: Machine, compute_type: str) -> None:
        """Time a few steps of every arm, and write the study of the coarse grid."""
        wanted = self.wanted
        grid = (COARSE, PILOT_SEEDS, schedule.LEAST_PILOT, compute_type, PILOT_SAMPLES)
        specs = [wanted.spec(arm, *grid) for arm in wanted.arms]
        self.log(f"timing a few steps of {len(specs)} arms")
        rows = timed(specs, machine.threads)
        steps, fine_steps = self.forecast(specs, rows, machine)
        if fine_steps < ENOUGH_FOR_SCRATCH and not wanted.named:
            specs = [spec for spec in specs if spec.arm != IF_TIME]
            self.log(f"left out, since few steps fit: {IF_TIME}")
            steps, fine_steps = self.forecast(specs, rows, machine)
        shortest = machine.wall(schedule.with_steps(specs, schedule.LEAST_PILOT), rows)
        shortest += machine.wall(schedule.with_steps(specs, schedule.LEAST, **SAMPLES), rows)
        self.check_time(fine_steps, shortest)
        specs = schedule.with_steps(specs, steps)
        wall = machine.wall(specs, rows)
        planned = f"{len(COARSE)} rates, {len(PILOT_SEEDS)} seeds, {steps:,} steps"
        self.log(f"coarse grid: {planned}: {wall / 60:.1f} minutes")
        fine = self.left_without_baselines(schedule.SEEDS[-1]) - wall
        self.log(f"then the fine grid: {fine / 60:.1f} minutes, about {fine_steps:,} steps")
        wanted.pilot.mkdir(parents=True, exist_ok=True)
        write_json(wanted.pilot / ASKED, wanted.asked)
        write_json(wanted.pilot / TIMING, {"rows": {arm: row.model_dump(mode="json") for arm, row in rows.items()}})
        notes = [self.read, "The coarse grid: it says where the fine one lies."]
        write_study(wanted, wanted.pilot, specs, notes, {})

    def forecast(self, specs: Sequence[SweepSpec], rows: dict[str, Measurement], machine: Machine) -> tuple[int, int]:
        """Steps of the coarse grid, and those that the fine one will then have with the fewest seeds."""

        def wall(steps: int) -> float:
            return machine.wall(schedule.with_steps(specs, steps), rows)

        left = self.left_without_baselines(schedule.SEEDS[-1])
        found = schedule.most_steps(wall, schedule.PILOT_SHARE * left)
        steps = min(MOST_PILOT, self.most, max(schedule.LEAST_PILOT, found))
        fine_steps = schedule.most_steps(
            lambda fine: machine.wall(schedule.with_steps(specs, fine, **SAMPLES), rows), left - wall(steps)
        )
        return steps, min(self.most, fine_steps)

    def check_time(self, steps: int, shortest: float) -> None:
        """SpecError where too few steps fit. `shortest`: seconds that the sweeps to come take with the fewest steps."""
        needed = shortest + 60 * self.wanted.minutes - self.left_without_baselines(schedule.SEEDS[-1])
        schedule.check_time(steps, needed, self.wanted.minutes, self.wanted.backbone)

    def plan_fine(self, machine: Machine, templates: "dict[str, Template]") -> None:
        """Run the coarse grid, see how long it took, and write the study that fits into the time that is left."""
        wanted, pilot = self.wanted, load_study(self.wanted.pilot)
        rows = read_timing(wanted.pilot)
        untouched = all(sweep_state(spec, pilot.folder).state == "waiting" for spec in pilot.sweeps)
        if not untouched:  # an earlier call had other minutes
            self.check_rest(pilot, rows, machine)
        began = time.monotonic()
        train(wanted.pilot, machine.threads, self.bars)
        seconds = time.monotonic() - began if untouched else None
        machine = retimed(wanted.pilot, rows, machine, seconds)
        coarse = list(arms_in(pilot, "own").values())
        best = {arm.fields["arm"]: arm.best_rate() for arm in coarse}
        # What compiling saves is in the pace of these already.
        paced = {arm.fields["arm"] for arm in coarse if arm.result["compiled"]}

        def specs(seeds: int, steps: int = schedule.LEAST) -> list[SweepSpec]:
            kind = pilot.sweeps[0].compute_type
            grids = {arm: schedule.fine_rates(rate or min(COARSE)) for arm, rate in best.items()}
            return [wanted.spec(arm, grid, range(seeds), steps, kind) for arm, grid in grids.items()]

        def fit(seeds: int) -> int:
            chosen = specs(seeds)
            left = self.left_without_baselines(seeds)
            fitting = schedule.most_steps(lambda steps: machine.wall(schedule.with_steps(chosen, steps), rows), left)
            return min(self.most, fitting)

        def planned() -> tuple[int, int]:
            seeds, steps = schedule.seeds_and_steps(fit)
            if not untouched:
                self.check_time(steps, machine.wall(specs(seeds), rows))
            return seeds, max(schedule.LEAST, steps)

        seeds, steps = planned()
        uncompiled = [spec for spec in specs(seeds, steps) if spec.arm not in paced]
        if paying := [spec for spec in uncompiled if _is_compiled(templates[spec.arm], spec)]:
            self.log(f"timing a few compiled steps of {len(paying)} arms: compiling takes a minute or two")
            rows |= timed(paying, machine.threads, compiled=True)
            seeds, steps = planned()
        self.write_fine(specs(seeds, steps), machine.wall(specs(seeds, steps), rows))

    def write_fine(self, specs: Sequence[SweepSpec], wall: float) -> None:
        """The study of the fine grid, whose sweeps take `wall` seconds."""
        wanted, seeds, steps = self.wanted, len(specs[0].seeds), specs[0].steps
        self.log(f"fine grid: {seeds} seeds, {steps:,} steps: {wall / 60:.1f} minutes")
        if (late := wall - self.left) > 0:
            self.log(words.LATE.format(steps=steps, minutes=late / 60))
        notes = [
            self.read,
            f"The fine grid around the best rates of {wanted.pilot.name}. {self.left / 60:.1f} minutes were left;",
            f"by the pace of the coarse grid {seeds} seeds and {steps:,} steps take {wall / 60:.1f}. Change either.",
        ]
        measures = {spec.arm: ADAPTED if models.adapted(spec.trainable) else WHOLE for spec in specs}
        write_study(wanted, wanted.study, specs, notes, measures)

    def check_rest(self, pilot: Study, rows: Mapping[str, Measurement], machine: Machine) -> None:
        """SpecError where what is left of a coarse grid, and the shortest fine one, take more than the time."""
        specs = [spec for spec in pilot.sweeps if not sweep_state(spec, pilot.folder).complete]
        fine = schedule.with_steps(pilot.sweeps, schedule.LEAST, **SAMPLES)
        shortest = machine.wall(specs, rows) + machine.wall(fine, rows)
        self.check_time(schedule.LEAST if shortest <= self.left else 0, shortest)


def reading(task: "Task", backbone: str) -> list[str]:
    """What was read; how it becomes tokens; and of texts, whose embeddings read them, or why they are bytes."""
    tokens_of = f"{task.tokens:,} tokens" if task.tokens > 1 else "one token"
    lines = [task.read] if task.read else []
    lines += [f"an example becomes {tokens_of}: {task.scaling.removeprefix('none: ')}"]
    if task.own_table:
        return [*lines, f"the embeddings of {backbone} are the input, frozen in every arm; from scratch, random ones"]
    folder = hub.path_of(backbone)
    lacking = backbone.startswith(hub.HUB) and not (folder and tokens.files(folder))
    if lacking and tasks.own_kind(task.name) == "csv" and task.vocabulary:
        lines.append(f"texts are read as bytes, by a new input layer: {backbone} is no folder with a tokenizer")
    return lines


def leaked(task: "Task") -> int:
    """Examples that may be test and training examples at once: those of the test set, or of all that seeds draw from,
    that repeat another one."""
    from fpt.tasks.arrays import Finite, repeated

    return repeated(task.data.train, task.data.test) if isinstance(task.data, Finite) else 0  # else drawn anew


def machine_of(arms: int) -> Machine:
    """Sweeps run side by side, and share the cores that are left."""
    slots, threads = local.free_slots(None)
    if not slots[0]:  # cores, no GPUs
        slots, threads = local.free_slots(max(1, len(slots) // arms))
    return Machine(len(slots), threads)


def _compute_type(wanted: Request) -> str:
    """The faster number type of this machine, or that of the study which is there."""
    from fpt.training import compute
    from fpt.training.loop import find_device

    for folder in (wanted.study, wanted.pilot):
        if (folder / FILE).is_file():
            return load_study(folder).sweeps[0].compute_type
    return str(compute.dtype("auto", find_device())).removeprefix("torch.")


def _check_same(wanted: Request) -> None:
    """Refuse a name under which something else was asked, and a folder that cannot be written."""
    check_writable(Path("runs"))
    asked, either = wanted.asked, f"give another --name, or remove {wanted.study} and {wanted.pilot}"
    for folder in (wanted.study, wanted.pilot):
        before = read_json(folder / ASKED)
        if before is None and (folder / FILE).is_file():
            raise SpecError(f"{folder} is a study that fpt advise did not write: {either}")
        if before is None or before == asked:
            continue
        if not any((each / FILE).is_file() for each in (wanted.study, wanted.pilot)):
            continue  # it was stopped before it was planned
        why = [f"{key} was {before.get(key)!r}" for key in asked if key != CONTENT and before.get(key) != asked[key]]
        raise SpecError(f"{folder} is of another request ({'; '.join(why) or 'its files have changed'}): {either}")


def _check_possible(wanted: Request, templates: "dict[str, Template]", compute_type: str, slots: int) -> None:
    """Refuse what the fastest products of this machine could not do in the time, before a single step is timed."""
    recipe = wanted.one_run(wanted.arms[0], compute_type).recipe
    asked = [template for arm, template in templates.items() if arm != IF_TIME or wanted.named]
    flop = sum(step_cost(template, recipe).flop for template in asked)
    steps = len(COARSE) * schedule.SEEDS[-1] * (schedule.LEAST_PILOT + schedule.LEAST)
    both_grids = 2 * schedule.makespan([schedule.OVERHEAD] * len(asked), slots)
    needed = flop * steps / product_rate(compute_type) + both_grids + schedule.REPORT
    if needed > 60 * wanted.minutes:
        raise SpecError(
            f"--minutes {wanted.minutes:g}: {schedule.LEAST} steps of {wanted.backbone}, the least that tell anything, "
            f"take more than {needed / 60:.1f} minutes; give twice as many, or a smaller model or shorter data"
        )


def product_rate(compute_type: str) -> float:
    """FLOP a second of this machine's best products in a number type, on all of its GPUs together."""
    import torch

    from fpt.bench import measure
    from fpt.training.loop import find_device

    rate = measure.product_rate(getattr(torch, compute_type), find_device(), 0.2)
    torch.cuda.empty_cache()  # else this process holds a gibibyte beside the sweeps; without a GPU it does nothing
    return rate * max(1, torch.cuda.device_count())


def _is_compiled(template: "Template", spec: SweepSpec) -> bool:
    """Whether a fleet of this sweep is so long that it is compiled first: its steps are then faster."""
    from fpt.training import compute
    from fpt.training.loop import find_device

    return compute.compiling_pays(template, spec.recipe, spec.runs, find_device())


def timed(specs: Sequence[SweepSpec], threads: int, compiled: bool = False) -> dict[str, Measurement]:
    """Seconds of a step and of an evaluation of every arm, in a process like that of a sweep."""
    from fpt.bench.measure import apart

    rows: list[Measurement] = apart(_timed_each, threads, compiled, *specs)
    return {spec.arm: row for spec, row in zip(specs, rows, strict=True)}


def _timed_each(threads: int, compiled: bool, *specs: SweepSpec) -> list[Measurement]:
    import torch

    from fpt.bench.measure import measure

    torch.set_num_threads(threads)
    return [measure(spec, 3, 0.4, False, compiled) for spec in specs]


def read_timing(pilot: Path) -> dict[str, Measurement]:
    """What was timed for the coarse grid, by arm. Raises DataError where the file is not there, or damaged."""
    path = pilot / TIMING
    try:
        rows = (read_json(path) or {})["rows"]
        return {arm: Measurement.model_validate_json(json.dumps(row)) for arm, row in rows.items()}
    except (LookupError, AttributeError, ValidationError):
        raise DataError(f"{path} is missing or damaged: remove {pilot}, and start again") from None


def retimed(pilot: Path, rows: dict[str, Measurement], machine: Machine, seconds: float | None) -> Machine:
    """The machine as the coarse grid found it. `seconds`: of all its sweeps; None where an earlier call began them."""
    found = {arm.fields["arm"]: arm for arm in arms_in(pilot, "own").values()}
    walls = {name: float(arm.result["wall_seconds"]) for name, arm in found.items()}
    factors = {arm: wall / machine.seconds(found[arm].spec, rows[arm]) for arm, wall in walls.items()}
    overhead = machine.overhead
    if seconds is not None:
        rounds = -(-len(walls) // machine.slots)
        overhead = max(1.0, (seconds - schedule.makespan(list(walls.values()), machine.slots)) / rounds)
    return replace(machine, overhead=overhead, factors=factors)


def train(study: Path, threads: int, bars: Bars | None) -> None:
    """Run what is not done of a study, as `fpt run` does. Raises FptError where a sweep fails."""
    todo = [spec for spec in load_study(study).sweeps if not sweep_state(spec, study).complete]
    if not todo:
        return
    run.check_all(todo, study)
    with bars(todo, study) if bars else nullcontext() as watch:
        failures = engines.in_order(partial(local.run_local, threads=threads, watch=watch), todo, study)
    if failures:
        first = failures[0]
        raise FptError(f"{title(first.spec)} failed: {first.reason} (see {first.evidence})")


def write_study(
    wanted: Request, folder: Path, specs: Sequence[SweepSpec], notes: Sequence[str], measures: dict[str, list[str]]
) -> None:
    """An ordinary study.yaml: what its sweeps share under defaults, and a line an arm."""
    first = specs[0]
    shared: dict[str, Any] = {"task": wanted.task, "backbone": wanted.backbone}
    shared |= {"task_options": dict(wanted.options)} if wanted.options else {}
    shared |= {"input_init": first.input_init} if first.input_init != "orthogonal" else {}
    shared |= {"compute_type": first.compute_type, "batch_size": first.batch_size, "steps": first.steps}
    shared |= {name: getattr(first, name) for name in SAMPLES}
    shared |= {"extend": 0, "seeds": list(first.seeds)}
    notes = [f"Written by fpt advise. To run it again, or changed: fpt run {folder.name}", *filter(None, notes)]
    lines = [f"# {note}" for note in notes]
    rule = f"The cheapest arm whose loss against the best is ruled out above {wanted.tolerance:g} points is advised."
    lines += [f"name: {folder.name}", f"plan: [{_yaml(rule)}]"]
    lines += ["defaults:", *(f"  {name}: {_yaml(value)}" for name, value in shared.items()), "sweeps:"]
    for spec in specs:
        rates = ", ".join(map(rate_text, spec.learning_rates))
        kept = f", measures: {_yaml(measures[spec.arm])}" if spec.arm in measures else ""
        lines.append(f"  - {{arm: {spec.arm}, learning_rates: [{rates}]{kept}}}")
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / FILE, ("\n".join(lines) + "\n").encode())


def _yaml(value: Any) -> str:
    """JSON is YAML, but for characters that it writes as two escapes."""
    return json.dumps(value, ensure_ascii=False)


def read_baselines(study: Path, seeds: Sequence[int]) -> pd.DataFrame:
    """Test accuracy of the baselines, seeds x names. Raises DataError where the file is not what `fpt advise` wrote."""
    scores = (read_json(study / BASELINES) or {}).get(BY_SEED)
    if not isinstance(scores, dict) or any(len(values) < len(seeds) for values in scores.values()):
        raise DataError(f"{study / BASELINES} is missing or damaged: run fpt advise again")
    return pd.DataFrame({name: values[: len(seeds)] for name, values in scores.items()}, index=list(seeds))
