"""Samples, budgets and tables of a fleet: A stops and selects, B reports and selects nothing, a curve contains every
shorter budget."""

import math
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from plain_loop import plain_run
from small_models import short_recipe
from torch.func import functional_call

import fpt.models
import fpt.tasks
from fpt.sweeps.record import TABLES
from fpt.tasks.arrays import Examples
from fpt.tasks.task import FiniteSplit, Task
from fpt.training import Recipe, measures, train_fleet
from fpt.training.evaluate import score
from fpt.training.fleet import Fleet, stack
from fpt.training.loop import Training, in_order, run_columns

RATES, SEEDS, WILD = [1e-3, 3e-2], [0, 5], 1e30
KEYS = ["learning_rate", "seed"]
BEST = ["validation_accuracy", "test_accuracy", "train_accuracy"]

recipe = partial(
    short_recipe, steps=16, batch_size=4, evaluations=6, evaluation_examples=40, test_examples=50, dropout=0.1
)


@pytest.fixture
def model(digits: Task, small_backbones: Any) -> Any:
    return fpt.models.build(digits, "small-gpt2", "random", "all")


def by_hand(task: Task, model: Any, how: Recipe, rates: list[float], seeds: list[int]) -> tuple[pd.DataFrame, ...]:
    """Curves and runs from parameters that are saved at every evaluation, and scored one after the other."""
    fleet = Fleet(task, model, how, rates, seeds, torch.device("cpu"))
    saved = {}
    for step in range(1, how.steps + 1):
        fleet.step(step)
        saved[step] = fleet.parameters.clone()

    def accuracy(parameters: torch.Tensor, sample: str, count: int | None) -> torch.Tensor:
        drawn = stack([getattr(task.split(seed), f"{sample}_sample")(count) for seed in seeds])
        return score(fleet, parameters, drawn).accuracy

    top, best, at = torch.full((len(rates) * len(seeds),), -1.0), saved[1], torch.zeros(len(rates) * len(seeds))
    rows = []
    for step in how.evaluation_steps():
        found = accuracy(saved[step], "validation", how.evaluation_examples)
        best = torch.where((found > top)[:, None], saved[step], best)
        at = torch.where(found > top, step, at)
        top = torch.maximum(found, top)
        tested: dict[str, Any] = {"test_accuracy": math.nan, "train_accuracy": math.nan}
        if step in how.budgets():
            b = (how.test_examples if step == how.steps else how.budget_examples) or task.test_size
            sizes = {"test": b, "train": min(b, how.budget_examples or b)}
            tested = {f"{name}_accuracy": accuracy(best, name, size) for name, size in sizes.items()}
        rows.append(pd.DataFrame(run_columns(fleet) | {"step": step, "validation_accuracy": found} | tested))
    last = {f"{name}_accuracy_last": accuracy(saved[how.steps], name, size) for name, size in sizes.items()}
    runs = pd.DataFrame(run_columns(fleet) | {"best_step": at.long(), "validation_accuracy": top} | tested | last)
    return runs.sort_values(KEYS, ignore_index=True), pd.concat(rows).sort_values([*KEYS, "step"], ignore_index=True)


@pytest.mark.parametrize(
    "changes",
    [
        {"budget_examples": None, "test_examples": None},
        {"evaluation_examples": None, "test_examples": 25},
        {"warmup": 0.25},
    ],
    ids=["all test examples", "all validation examples", "one budget"],
)
def test_every_number_is_what_it_is_by_hand(changes: dict[str, Any], digits: Task, model: Any) -> None:
    how = recipe(**changes)
    found = train_fleet(digits, model, how, RATES, SEEDS)
    runs, curves = by_hand(digits, model, how, RATES, SEEDS)
    assert set(curves["step"]) == set(how.evaluation_steps())
    assert how.budgets() == ([16] if how.warmup else [1, 2, 4, 8, 16])
    assert len(how.evaluation_steps()) > len(how.budgets())
    pd.testing.assert_frame_equal(found.curves[list(curves)], curves, check_dtype=False, check_exact=True)
    pd.testing.assert_frame_equal(found.runs[list(runs)], runs, check_dtype=False, check_exact=True)
    assert (runs["best_step"] < how.steps).any(), "for some runs the last parameters are not the best ones"
    assert (runs["test_accuracy"] != runs["test_accuracy_last"]).any()
    assert found.runs["diverged_at"].isna().all()
    assert {"sweep", *found.runs} == {*TABLES["runs"]}
    assert {"sweep", *found.curves} == {*TABLES["curves"]}


def test_the_last_parameters_are_those_of_the_step_that_is_reported(
    digits: Task, model: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """At every budget, and for the weights that are kept; the runs themselves, and their curves, are the same."""
    kept: list[torch.Tensor] = []
    monkeypatch.setattr(measures, "keep_weights", lambda fleet, parameters, *_: kept.append(parameters.clone()))
    keep = (0, tmp_path)
    best = train_fleet(digits, model, recipe(), [*RATES, WILD], SEEDS, keep=keep)
    last = train_fleet(digits, model, recipe(report="last"), [*RATES, WILD], SEEDS, keep=keep)
    lives = best.runs["learning_rate"] < WILD
    runs = last.runs[lives]
    assert runs["best_step"].eq(16).all()
    for name in ("test_accuracy", "train_accuracy"):
        assert runs[name].equals(best.runs.loc[lives, f"{name}_last"])
        assert runs[name].equals(runs[f"{name}_last"])
    curves = ["validation_loss", "validation_accuracy"]
    pd.testing.assert_frame_equal(last.curves[curves], best.curves[curves], check_exact=True)
    at_end = last.curves[last.curves["step"] == 16].reset_index(drop=True)
    assert at_end["validation_accuracy"].equals(last.runs["validation_accuracy"])
    assert not best.runs["validation_accuracy"].equals(last.runs["validation_accuracy"])
    assert last.runs.loc[~lives, ["test_accuracy", "validation_accuracy"]].isna().all(axis=None)
    assert (kept[0] != kept[1]).any()
    for steps in (4, 8):  # the budgets before: a run of so many steps has the same last parameters
        shorter = train_fleet(digits, model, recipe(report="last", steps=steps, test_examples=30), RATES, SEEDS).runs
        then = last.curves[last.curves["step"].eq(steps) & last.curves["learning_rate"].lt(WILD)].reset_index()
        assert then["test_accuracy"].equals(shorter["test_accuracy"])


@pytest.mark.parametrize(("lost_at", "reported"), [(7, 6), (1, 0), (16, 15)])
def test_a_run_that_diverges_reports_its_last_finite_step(
    lost_at: int, reported: int, digits: Task, model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its gradient is not finite: it still has the parameters of the step before, at every later budget."""
    update = Fleet._update

    def wreck(fleet: Fleet, gradients: Any, norms: torch.Tensor, number: int) -> None:
        if number == lost_at:  # the first run: the first seed at the smaller rate
            fleet.mark_diverged(number, torch.arange(len(norms)) > 0)
        update(fleet, gradients, norms, number)

    monkeypatch.setattr(Fleet, "_update", wreck)
    how = recipe(report="last", steps=16, test_examples=30)
    found = train_fleet(digits, model, how, RATES, SEEDS)
    monkeypatch.undo()
    first = found.runs.iloc[0]
    assert (first["diverged_at"], first["best_step"]) == (lost_at, reported)
    assert found.runs["best_step"].iloc[1:].eq(16).all()
    at_budgets = found.curves[(found.curves[KEYS] == [RATES[0], SEEDS[0]]).all(axis=1)].set_index("step")
    later = [step for step in how.budgets() if step >= lost_at]
    assert at_budgets.loc[later, "test_accuracy"].nunique() == (reported > 0)
    if reported:
        shorter = recipe(report="last", steps=reported, test_examples=30, evaluations=1)
        alone = train_fleet(digits, model, shorter, RATES, SEEDS).runs.iloc[0]
        assert first[BEST].tolist() == alone[BEST].tolist()
    else:
        assert first[BEST].isna().all()


def test_a_recipe_as_people_train(digits: Task, model: Any) -> None:
    """Warm-up and cosine, decay, batches of 32, dropout, the last step: five evaluations, one budget."""
    how = recipe(
        steps=40, batch_size=32, warmup=0.1, schedule="cosine", weight_decay=0.01, clip=1.0, dropout=0.1,
        evaluations=5, report="last",
    )  # fmt: skip
    found = train_fleet(digits, model, how, [3e-3], SEEDS)
    assert found.curves.groupby("seed").size().eq(5).all()
    assert found.curves["test_accuracy"].notna().sum() == len(SEEDS)
    assert found.runs["best_step"].eq(40).all()
    for seed, run in found.runs.set_index("seed").iterrows():
        weights, _ = plain_run(digits, model, how, 3e-3, int(seed))  # type: ignore[call-overload]
        test = digits.split(int(seed)).test_sample(how.test_examples)  # type: ignore[call-overload]
        model.module.drop_with([])
        logits = functional_call(model.module, weights, (digits.encode(test.inputs), test.lengths))
        right = (logits.argmax(-1) == test.targets).double().mean().item()
        assert run["test_accuracy"] == pytest.approx(right, abs=1.01 / len(test))  # a tie may fall either way


def test_a_curve_contains_every_shorter_run(digits: Task, model: Any) -> None:
    """With the same evaluation steps: dropout, batches and samples know nothing of how long the run will be."""
    same = {"evaluations": 1, "budget_examples": 30, "test_examples": 30}
    long, short = (train_fleet(digits, model, recipe(steps=steps, **same), [*RATES, WILD], SEEDS) for steps in (16, 8))
    assert recipe(steps=16, **same).evaluation_steps() == [1, 2, 4, 8, 16]
    until = long.curves[long.curves["step"] <= 8].reset_index(drop=True)
    pd.testing.assert_frame_equal(until, short.curves, check_exact=True)
    at = until[until["step"] == 8].reset_index(drop=True)
    pd.testing.assert_frame_equal(at[KEYS + BEST[1:]], short.runs[KEYS + BEST[1:]], check_exact=True)
    lives = short.runs["learning_rate"] < WILD
    assert (long.runs["test_accuracy"] != short.runs["test_accuracy"])[lives].any(), "the second half changed something"


@pytest.mark.parametrize("sample", ["test_sample", "train_sample"])
def test_what_reports_selects_nothing(sample: str, digits: Task, model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other test (or training) examples: other accuracies of them, and the same runs in every other number; the
    caller's generator is left alone."""
    generator = torch.get_rng_state()
    before = train_fleet(digits, model, recipe(), RATES, SEEDS)
    draw = getattr(FiniteSplit, sample)

    def wrong(split: FiniteSplit, count: int | None = None) -> Examples:
        examples = draw(split, count)
        return replace(examples, targets=(examples.targets + 1) % 10)

    monkeypatch.setattr(FiniteSplit, sample, wrong)
    after = train_fleet(digits, model, recipe(), RATES, SEEDS)
    name = sample.partition("_")[0]
    for one, other in ((before.runs, after.runs), (before.curves, after.curves)):
        of_it = [column for column in one if column.startswith(f"{name}_accuracy")]
        assert of_it
        assert all((one[column] != other[column]).any() for column in of_it)
        pd.testing.assert_frame_equal(one.drop(columns=of_it), other.drop(columns=of_it), check_exact=True)
    assert torch.equal(generator, torch.get_rng_state())


def test_parts_that_an_earlier_version_finished_are_joined_by_what_both_measure() -> None:
    new = pd.DataFrame({"learning_rate": [1e-3], "seed": [1], "test_accuracy": [0.5]})
    old = new.assign(seed=0, test_accuracy_exact=0.5)
    assert in_order([old, new]).equals(pd.concat([new.assign(seed=0), new], ignore_index=True))


def test_a_run_that_was_never_finite_has_no_accuracy_anywhere(digits: Task, model: Any) -> None:
    found = train_fleet(digits, model, recipe(), [1e-3, WILD], SEEDS)
    for table in (found.runs, found.curves):
        wild = table["learning_rate"] == WILD
        accuracies = [column for column in table if "accuracy" in column]
        assert table.loc[wild, accuracies].isna().all(axis=None)
        assert table.loc[~wild, "validation_accuracy"].notna().all()
    lives = found.runs["learning_rate"] < WILD
    assert found.runs["best_step"].gt(0).eq(lives).all()
    assert (found.runs["diverged_at"].isna() == lives).all()


def test_a_run_that_diverges_keeps_its_best_until_then(
    digits: Task, model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is reported at later budgets with the parameters that were best while it was finite; its last have none."""
    calm = train_fleet(digits, model, recipe(), RATES, SEEDS)
    step, lost_after = Fleet.step, 6  # between the evaluations at 5 and 8

    def wreck(fleet: Fleet, number: int, *batch: Any) -> Any:
        losses = step(fleet, number, *batch)
        if number == lost_after:
            fleet.parameters[0] = torch.nan  # the first seed at the smaller rate
        return losses

    monkeypatch.setattr(Fleet, "step", wreck)
    found = train_fleet(digits, model, recipe(), RATES, SEEDS)
    wrecked = (found.runs["learning_rate"] == RATES[0]) & (found.runs["seed"] == SEEDS[0])
    (run,) = found.runs[wrecked].to_dict("records")
    assert run["diverged_at"] == 7
    assert run["best_step"] in (1, 2, 3, 4, 5)
    assert math.isnan(run["test_accuracy_last"])
    assert math.isnan(run["train_accuracy_last"])
    own = found.curves[(found.curves[KEYS] == [RATES[0], SEEDS[0]]).all(axis=1)].set_index("step")
    before = calm.curves[(calm.curves[KEYS] == [RATES[0], SEEDS[0]]).all(axis=1)].set_index("step")
    pd.testing.assert_frame_equal(own[own.index <= 5], before[before.index <= 5], check_exact=True)
    assert own.loc[own.index > 5, "validation_accuracy"].isna().all()
    assert run["validation_accuracy"] == before.loc[before.index <= 5, "validation_accuracy"].max()
    assert own.loc[[8, 16], ["test_accuracy", "train_accuracy"]].notna().all(axis=None)
    pd.testing.assert_frame_equal(found.runs[~wrecked], calm.runs[~wrecked], rtol=1e-6)


def test_frozen_weights_are_not_copied_for_every_run_whose_last_step_is_not_its_best(
    digits: Task, small_backbones: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    frozen = fpt.models.build(digits, "small-gpt2", "random")
    training = Training(Fleet(digits, frozen, recipe(), [*RATES, 1e-2], SEEDS, torch.device("cpu")))
    training.best.step[1:] = 1
    copies, real = [], Fleet.subset

    def subset(fleet: Fleet, rows: torch.Tensor) -> Any:
        found = real(fleet, rows)
        copies.extend(len(values) for values in found.per_seed.values())
        return found

    monkeypatch.setattr(Fleet, "subset", subset)
    last = training.tables()["runs"]["test_accuracy_last"]
    assert copies
    assert max(copies) <= len(SEEDS)
    assert last[1:].gt(0).all(), "scored"


def test_the_leader_is_the_rate_that_the_curves_have_as_best_so_far(digits: Task, small_backbones: Any) -> None:
    fleet = Fleet(digits, fpt.models.build(digits, "small-gpt2"), recipe(), RATES, SEEDS, torch.device("cpu"))
    training = Training(fleet)
    assert training.leader() is None
    seen = [training.leader() for evaluated in training if evaluated]
    curves = training.tables()["curves"]
    means = curves.groupby(["step", "learning_rate"])["validation_accuracy"].mean().unstack()
    assert seen == [(rates.idxmax(), pytest.approx(rates.max())) for _, rates in means.iterrows()]
