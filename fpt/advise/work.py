"""From a request to two finished studies: baselines, the probe, then what trains longer. A killed call goes on.

Everything is trained in this process, one sweep after the other, so that features of the model are computed once.
"""

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from fpt import models, tasks
from fpt.advise import baselines, metrics, schedule, studies, words
from fpt.advise.request import FEWEST_SEEDS, PROBE, SAMPLES, Request, task_and_model
from fpt.advise.studies import BASELINES, PLAN, chosen, finished_arms, read_baselines, test_answers, write_study
from fpt.errors import DataError, FptError
from fpt.files import STUDY_FILE, read_json, write_atomically, write_json
from fpt.models import hub, tokens
from fpt.results.runs import rate_text
from fpt.sweeps.run import Prepared, parquet, run_sweep
from fpt.sweeps.spec import SweepSpec
from fpt.sweeps.study import load_study
from fpt.training.recipe import ANSWERS, KEEP_ADAPTER, KEEP_WEIGHTS

if TYPE_CHECKING:
    from fpt.models.template import Template
    from fpt.tasks.task import Task

TESTED_TUNING = 200  # test examples of a tuning run: they choose nothing, the page shows them
LATE = 1.05  # of the minutes: what still trains then is stopped
SAID_EVERY = 15.0  # seconds
TIMED, FEWEST_TIMED, LONGEST = 8, 4, 10.0  # steps that are timed; fewer where they take so many seconds
TIMED_EXAMPLES = 64


class OutOfTimeError(Exception):
    """The minutes are over while something trains: what is finished is the answer."""


@dataclass
class Work:
    """One call of the command: what is wanted, when it began, and how it is shown."""

    wanted: Request
    log: Callable[[str], None]
    began: float = field(default_factory=time.monotonic)
    said: float = field(default_factory=time.monotonic)  # when the last line was
    task: "Task" = field(init=False)
    rule: dict[str, Any] = field(init=False)  # fields that all sweeps share
    _templates: "dict[str, Template]" = field(default_factory=dict)

    @property
    def passed(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self.began

    @property
    def rows(self) -> int:
        """Training examples of a seed."""
        return self.task.split(0).train_size or 0

    @property
    def left(self) -> float:
        """Seconds of the time that was given."""
        return 60 * self.wanted.minutes - self.passed

    def say(self, line: str) -> None:
        """A line of the output."""
        self.said = time.monotonic()
        self.log(line)

    def run(self) -> None:
        """Baselines and the probe whatever they take; then what fits. What an earlier call of the same request did is
        kept. Raises FptError for what cannot be run."""
        with beating(self):
            self.prepare()
            self.count_baselines()
            strength = self.probe()
            try:
                self.train_longer(strength)
            except OutOfTimeError:
                self.say(
                    f"the {self.wanted.minutes:g} minutes are over: what trained is stopped; start again with more "
                    "--minutes, and it goes on"
                )

    def prepare(self) -> None:
        """Read the data and the model, say what was read, and take the two folders. Raises FptError for what cannot be
        run."""
        wanted = self.wanted
        studies.check_same(wanted)
        kind = _compute_type(wanted)
        self.task, self._templates[PROBE] = task_and_model(wanted.probe([1.0], [0], compute_type=kind, batch_size=1))
        self.rule = {"compute_type": kind, "batch_size": min(wanted.batch_size, self.rows)}
        for line in reading(self.task, wanted.backbone):
            self.say(line)
        if count := leaked(self.task):
            self.say(words.LEAKED.format(count=count))
        studies.begin(wanted)

    def count_baselines(self) -> None:
        """What the baselines answer on the test examples of every fresh seed, unless it is there."""
        path = self.wanted.study / BASELINES
        frames = [read_baselines(self.wanted.study)] if path.is_file() else []
        done = set(frames[0]["seed"]) if frames else set()
        for seed in [seed for seed in range(self.wanted.seeds) if seed not in done]:
            self.say(f"{', '.join(baselines.names_of(self.task))}: seed {seed} of {self.wanted.seeds}")
            frames.append(baselines.answers(self.task, seed, SAMPLES["test_examples"]))
            write_atomically(path, parquet(pd.concat(frames, ignore_index=True)))
        for name, rows in pd.concat(frames).groupby("baseline", sort=False):
            self.say_score(str(name), rows)

    def say_score(self, name: str, answers: pd.DataFrame) -> None:
        """What something scores, in the mean over seeds."""
        score = metrics.by_seed(answers, self.wanted.metric).mean()
        self.say(f"{words.label(name)}: {100 * score:.1f}% ({self.wanted.metric}), {self.passed / 60:.1f} minutes")

    def probe(self) -> float:
        """The probe on the tuning seeds, then on fresh ones; the strength that is chosen."""
        wanted = self.wanted
        if not (wanted.pilot / STUDY_FILE).is_file():
            spec = wanted.probe(schedule.STRENGTHS, schedule.probe_seeds(self.rows), **self.rule)
            self.write(wanted.pilot, [spec])
        self.say(f"probe: features of all examples of {wanted.backbone}, then logistic regressions on them")
        self.train(wanted.pilot, [PROBE])
        strength = chosen(wanted, PROBE)
        if strength is None:
            raise DataError(
                f"{wanted.backbone}: its features of {wanted.task} are not finite, so that nothing can be fitted"
            )
        if not (wanted.study / STUDY_FILE).is_file():
            spec = wanted.probe([strength], range(wanted.seeds), **self.rule)
            self.write(wanted.study, [spec])
        self.train(wanted.study, [PROBE])
        self.say_score(PROBE, test_answers(finished_arms(wanted.study)[PROBE]))
        return strength

    def train_longer(self, strength: float) -> None:
        """The arms that fit into the time: rates by tuning seeds, then fresh ones. Raises OutOfTimeError."""
        wanted = self.wanted
        plan = read_json(wanted.pilot / PLAN)
        if plan is None or plan["minutes"] < wanted.minutes:
            self.plan(strength)
        else:
            self.say("planned already: fewer minutes, or as many, change nothing")
        arms = [spec.arm for spec in load_study(wanted.pilot).sweeps if spec.arm != PROBE]
        self.train(wanted.pilot, arms)
        if arms and len(load_study(wanted.study).sweeps) == 1:
            self.plan_fresh(arms, strength)
        self.train(wanted.study, [spec.arm for spec in load_study(wanted.study).sweeps if spec.arm != PROBE])

    def plan(self, strength: float) -> None:
        """Time a few steps of every arm, and write the tuning sweeps of those that fit."""
        wanted, paces = self.wanted, self.paces(strength)
        rows, batch = self.rows, self.rule["batch_size"]
        whole = min(schedule.whole_steps(rows, batch), wanted.steps or schedule.MOST_STEPS)
        examples = self.evaluated(SAMPLES["test_examples"])
        plan = schedule.planned(paces, self.left, whole, FEWEST_SEEDS, examples)
        needed = {}
        for arm, pace in paces.items():
            seconds = schedule.cost(arm, pace, whole, schedule.WHOLE_TUNING, wanted.seeds, examples)
            needed[arm] = math.ceil((self.passed + seconds / schedule.SHARE) / 60)
        probes = [
            spec for study in (wanted.pilot, wanted.study) for spec in load_study(study).sweeps if spec.arm == PROBE
        ]
        specs = []
        for arm in plan.arms:
            seeds = schedule.TUNING_SEEDS[: plan.tuning]
            grid = {"learning_rates": schedule.rates_of(arm), "seeds": seeds, "test_examples": TESTED_TUNING}
            specs.append(wanted.trained(arm, strength, plan.steps, **grid, **self.rule))
        self.say(
            f"{' and '.join(map(words.label, plan.arms))}: {plan.steps:,} steps, {plan.steps * batch / rows:.1f} times "
            f"through the training examples; first {plan.tuning} tuning seeds at every rate"
            if specs
            else "nothing beside the probe has the steps that tell anything in the time that is left"
        )
        self.write(wanted.study, probes[1:])
        self.write(wanted.pilot, [probes[0], *specs])
        found = {"minutes": wanted.minutes, "steps": plan.steps, "whole": whole, "needed": needed}
        write_json(wanted.pilot / PLAN, found)

    def paces(self, strength: float) -> dict[str, schedule.Pace]:
        """How long steps and evaluations of the arms take. One that this model cannot have is left out, and said."""
        start = float(finished_arms(self.wanted.study)[PROBE].result["wall_seconds"]) / self.wanted.seeds
        found = {}
        for arm in self.wanted.arms:
            spec = self.wanted.trained(arm, strength, 1, learning_rates=[1e-5], seeds=[0], **self.rule)
            try:
                self._templates[arm] = task_and_model(spec, self.task)[1]
            except FptError as error:
                if self.wanted.named:
                    raise
                self.say(f"left out: {words.label(arm)}: {error}")
                continue
            self.say(f"timing a few steps: {words.label(arm)}")
            found[arm] = timed(self.task, self._templates[arm], spec, start if spec.probe else 0.0)
        return found

    def evaluated(self, test: int) -> int:
        """Examples that a run evaluates: validation and test, once for scores and once for answers, and training."""
        split = self.task.split(0)
        held = min(SAMPLES["evaluation_examples"], len(split.validation))
        return 2 * (held + min(test, len(split.test))) + SAMPLES["budget_examples"]

    def plan_fresh(self, arms: Sequence[str], strength: float) -> None:
        """The fresh seeds that fit, by what the tuning runs took, are written into the study."""
        wanted, tuned, (probe,) = self.wanted, finished_arms(self.wanted.pilot), load_study(self.wanted.study).sweeps
        rates = {arm: chosen(wanted, arm) for arm in arms}
        for arm in [arm for arm in arms if rates[arm] is None]:
            self.say(words.DIVERGED.format(arm=words.label(arm)))
        took = {arm: tuned[arm].result["wall_seconds"] / len(tuned[arm].runs) for arm in arms if rates[arm] is not None}
        fitting, seeds = schedule.fresh_seeds(took, self.left, wanted.seeds, FEWEST_SEEDS)
        if left_out := [words.label(arm) for arm in took if arm not in fitting]:
            self.say(
                f"{' and '.join(left_out)}: {FEWEST_SEEDS} fresh seeds do not fit into the time that is left; start "
                "again with more --minutes"
            )
        if not fitting:
            return
        specs = []
        for arm in fitting:
            grid = {"learning_rates": [rates[arm]], "seeds": range(seeds)}
            specs.append(wanted.trained(arm, strength, tuned[arm].steps, **grid, **self.rule))
        minutes = seeds * sum(took[arm] for arm in fitting) / 60
        at = " and ".join(f"{words.label(spec.arm)} at {rate_text(spec.learning_rates[0])}" for spec in specs)
        self.say(f"{at}: {seeds} fresh seeds, about {minutes:.1f} minutes")
        self.write(wanted.study, [probe, *specs])

    def write(self, folder: Path, specs: Sequence[SweepSpec]) -> None:
        """The study of these sweeps; those of fresh seeds keep their weights."""
        if folder == self.wanted.study:
            specs = [spec.changed(measures=kept(spec)) for spec in specs]
        write_study(self.wanted, folder, specs, self.task.read)

    def train(self, study: Path, arms: Sequence[str]) -> None:
        """Run these sweeps of a study, unless they are done. Raises FptError where one fails, and OutOfTimeError."""
        for spec in load_study(study).sweeps:
            if spec.arm in arms:
                if spec.arm not in self._templates:
                    self._templates[spec.arm] = task_and_model(spec, self.task)[1]
                both = Prepared(spec, self.task, self._templates[spec.arm])
                run_sweep(spec, study / spec.folder_name, prepared=both, watch=self.watch(spec))

    def watch(self, spec: SweepSpec) -> Callable[[int, int], None]:
        """Says now and then how far a sweep is; raises OutOfTimeError where the minutes are over, never of a probe."""
        began, first = time.monotonic(), -1.0

        def see(done: int, of_all: int) -> None:
            nonlocal first
            share, now = done / of_all, time.monotonic()
            first = share if first < 0 else first
            if spec.arm != PROBE and self.passed > LATE * 60 * self.wanted.minutes and share < 1:
                raise OutOfTimeError
            if now - self.said > SAID_EVERY and first < share < 1:
                left = (now - began) * (1 - share) / (share - first)
                self.say(f"{words.label(spec.arm)}: {share:.0%}, about {left / 60:.1f} minutes left")

        return see


@contextmanager
def beating(job: Work) -> Iterator[None]:
    """Says how long it has been where nothing else is said: of features, and of fits, nobody knows how far they are."""
    over = threading.Event()

    def beat() -> None:
        while not over.wait(SAID_EVERY / 4):
            if time.monotonic() - job.said > 2 * SAID_EVERY:
                job.say(f"still at work, {job.passed / 60:.1f} of {job.wanted.minutes:g} minutes")

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def kept(spec: SweepSpec) -> list[str]:
    """What a sweep of fresh seeds is asked for: answers, and files of which the winner is made."""
    return [ANSWERS, KEEP_WEIGHTS, *([KEEP_ADAPTER] if models.adapted(spec.trainable) else [])]


def timed(task: "Task", template: "Template", spec: SweepSpec, start: float) -> schedule.Pace:
    """Seconds of a step and of an evaluated example of one run; `start`: those of its probe."""
    from fpt.training.evaluate import score
    from fpt.training.fleet import Fleet, stack
    from fpt.training.loop import find_device

    recipe = spec.recipe.model_copy(update={"probe": None, "steps": 10 * TIMED})
    fleet = Fleet(task, template, recipe, [1e-6], [0], find_device())
    fleet.step(1)  # what is made once is made now
    began, step = time.monotonic(), 1
    while step <= FEWEST_TIMED or (step <= TIMED and time.monotonic() - began < LONGEST):
        step += 1
        float(fleet.step(step).sum())
    of_step = (time.monotonic() - began) / (step - 1)
    sample = stack([fleet.splits[0].validation_sample(TIMED_EXAMPLES)])
    began = time.monotonic()
    float(score(fleet, fleet.parameters, sample).accuracy.sum())
    return schedule.Pace(of_step, (time.monotonic() - began) / sample.targets.shape[1], start)


def reading(task: "Task", backbone: str) -> list[str]:
    """What was read; how it becomes tokens; and of texts, what reads them."""
    tokens_of = f"{task.tokens:,} tokens" if task.tokens > 1 else "one token"
    lines = [task.read] if task.read else []
    lines += [f"an example becomes {tokens_of}: {task.scaling.removeprefix('none: ')}"]
    if task.own_table:
        return [*lines, f"the embeddings of {backbone} are the input; of its last layer the {task.pooling} is read"]
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


def _compute_type(wanted: Request) -> str:
    """The faster number type of this machine, or that of the study which is there."""
    from fpt.training import compute
    from fpt.training.loop import find_device

    if (wanted.pilot / STUDY_FILE).is_file():
        return load_study(wanted.pilot).sweeps[0].compute_type
    return str(compute.dtype("auto", find_device())).removeprefix("torch.")
