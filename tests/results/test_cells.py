"""What runs become by seed: tuned at every budget, edges, collapses, chance, test noise, and steps to a goal."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from made_cells import Arm, Made, cell, paper, swept

from fpt.claims.steps import reach, slower
from fpt.errors import SpecError
from fpt.results.cells import AT_PAPERS_RATE
from fpt.results.difference import paired_difference, shared_rates
from fpt.results.runs import tidy
from fpt.results.stats import example_noise
from fpt.sweeps.spec import resolve

STEPS = 32  # budgets 1, 2, 4, 8, 16, 32
RATES = (1e-4, 1e-3, 1e-2)


@pytest.fixture(autouse=True)
def _toy(monkeypatch):
    monkeypatch.setattr("fpt.papers.papers", lambda: {"toy": paper(["a", "b"])})


def made(validation, test=None, seeds=3, diverged=None, study="made", kind="accuracy", rates=RATES, **fields):
    """An arm whose accuracies (fractions) are given by functions; test is validation plus a hundredth."""
    test, diverged = test or (lambda *at: validation(*at) + 0.01), diverged or {}
    grid = {"learning_rates": rates, "seeds": range(seeds)}
    spec = resolve({"task": "digits", "arm": "frozen-random", "steps": STEPS, **grid, **fields})
    runs, curves = [], []
    for rate in rates:
        for seed in range(seeds):
            lost = diverged.get((rate, seed), 10**9)
            alive = [step for step in spec.evaluation_steps() if step < lost]
            key = {"learning_rate": rate, "seed": seed}
            a = {step: validation(rate, seed, step) for step in alive}
            for step in alive:
                b = {"test_accuracy": test(rate, seed, step)} if step in spec.budgets() else {}
                curves.append(key | {"step": step, "validation_accuracy": a[step], "train_accuracy": 0.9} | b)
            best = test(rate, seed, alive[-1]) if alive else np.nan
            runs.append(key | {"validation_accuracy": max(a.values(), default=np.nan), "test_accuracy": best,
                               "train_accuracy": 0.9, "test_accuracy_last": best, "train_accuracy_last": 0.95,
                               "diverged_at": lost if lost <= STEPS else None})  # fmt: skip
    fixed = {"test": {"drawn_by_seed": False, "size": 500}}
    result = {"grid": list(rates), "selected_rate": 1e-3} | fixed
    return swept(spec, result, study, kind, runs=runs, curves=curves)


def by_budget(rate, seed, step):
    """High rates are best early, low ones late."""
    return {1e-2: 0.5, 1e-3: 0.3 + step / 100, 1e-4: 0.1 + step / 50}[rate]


def test_the_rate_of_a_seed_is_chosen_by_the_others_at_every_budget():
    found = made(by_budget)
    assert [set(found.choices(budget)) for budget in found.budgets] == [{1e-2}] * 5 + [{1e-4}]
    assert found.values(budget=1).tolist() == pytest.approx([0.51] * 3)
    assert found.values().tolist() == pytest.approx([0.1 + 32 / 50 + 0.01] * 3)
    assert [found.ends(budget) for budget in (1, 32)] == [{"high"}, {"low"}]
    assert found.at_edge
    # seed 0 alone likes 1e-2; the others are not misled by it, and it is not by itself
    lucky = made(lambda rate, seed, _: 0.8 if rate == 1e-3 else 1.0 if (rate, seed) == (1e-2, 0) else 0.75)
    assert lucky.choices().to_dict() == {0: 1e-3, 1: 1e-2, 2: 1e-2}
    assert lucky.values().to_dict() == pytest.approx({0: 0.81, 1: 0.76, 2: 0.76})


def test_a_single_rate_is_both_ends_of_its_grid():
    """A better one may lie on either side, so no word of a tuned arm may rest on it."""
    alone = made(by_budget, rates=[1e-3])
    assert (alone.ends(), alone.at_edge) == ({"low", "high"}, True)


def test_the_validation_accuracy_that_chooses_is_the_best_so_far():
    found = made(lambda rate, _, step: 0.9 if (rate, step) == (1e-2, 2) else 0.5 if rate == 1e-3 else 0.2)
    assert found.validation(1).loc[0].tolist() == [0.2, 0.5, 0.2]
    assert found.validation(8).loc[0].tolist() == [0.2, 0.5, 0.9]
    assert (set(found.choices(1)), set(found.choices(8))) == ({1e-3}, {1e-2})
    assert found.validated().loc[[1, 2, 32], 0].tolist() == [0.5, 0.9, 0.9]


def test_what_reports_the_last_step_is_chosen_by_its_validation_accuracy():
    found = made(
        lambda rate, _, step: 0.9 if (rate, step) == (1e-2, 2) else 0.5 if rate == 1e-3 else 0.2, report="last"
    )
    assert found.validation(2).loc[0].tolist() == [0.2, 0.5, 0.9]
    assert found.validation(8).loc[0].tolist() == [0.2, 0.5, 0.2]
    assert (set(found.choices(2)), set(found.choices(8))) == ({1e-2}, {1e-3})


def test_a_run_that_was_never_finite_counts_as_a_guess_among_the_classes_that_its_record_names():
    named = made(by_budget, diverged={(1e-2, 0): 0})
    named.result["test"]["classes"] = 4  # as of own data
    assert named.values(1e-2)[0] == tidy(named, "runs")["guessing"][0] == 1 / 4


def test_a_run_that_diverges_is_chosen_by_nobody_from_then_on_and_keeps_its_best():
    found = made(by_budget, diverged={(1e-2, 0): 5})
    assert found.choices(4).to_dict() == {0: 1e-2, 1: 1e-2, 2: 1e-2}
    assert found.choices(8).to_dict() == {0: 1e-2, 1: 1e-3, 2: 1e-3}  # its own choice rests on the others
    assert found.values(budget=8)[0] == found.values(1e-2, 8)[0] == pytest.approx(0.51)
    assert (found.diverged(1e-2), found.diverged(1e-3), found.diverged()) == (1, 0, 0)


def test_a_run_that_was_never_finite_counts_as_chance():
    found = made(by_budget, diverged={(1e-2, 0): 1})
    assert found.values(1e-2).tolist() == pytest.approx([0.1, 0.51, 0.51])
    assert found.values(1e-2, 2).tolist() == pytest.approx([0.1, 0.51, 0.51])
    assert made(by_budget, diverged={(1e-2, 0): 1}, kind="gap").values(1e-2).isna().sum() == 1


def test_a_rate_is_one_that_was_run():
    found = made(by_budget)
    assert found.values(1e-3 * (1 + 1e-9)).equals(found.values(1e-3))
    assert found.values(2e-3).empty
    assert found.plane(4).shape == (3, 3)
    with pytest.raises(SpecError, match=r"budget 5: .* is reported at \[1, 2, 4, 8, 16, 32\] steps"):
        found.values(budget=5)


def test_a_collapse_is_one_below_the_median_of_its_own_rate_at_that_budget():
    def test(rate, seed, step):
        return 0.2 if rate == 1e-4 else 0.4 if (seed, step) == (1, 32) else 0.8

    # seed 0 is tuned to 1e-4, where all are low: it has not collapsed; seed 1 has, at the end
    found = made(lambda rate, seed, _: {1e-4: 0.9, 1e-3: 0.8}.get(rate, 0.1), test)
    assert found.collapsed().to_dict() == {0: False, 1: False, 2: False}
    assert found.collapsed(1e-3).to_dict() == {0: False, 1: True, 2: False}
    assert not found.collapsed(1e-3, 16).any()


def test_gaps_are_those_of_the_last_parameters_and_earlier_of_the_best():
    found = made(by_budget, kind="gap")
    assert found.values(1e-2).tolist() == pytest.approx([0.95 - 0.51] * 3)
    assert found.values(1e-2, 8).tolist() == pytest.approx([0.9 - 0.51] * 3)


def test_the_images_that_all_seeds_share_add_noise_and_examples_made_anew_none():
    found = made(by_budget)
    assert found.test_noise(1e-2) == pytest.approx(0.51 * 0.49 / 500)
    assert found.test_noise(1e-4, 1) == pytest.approx(0.13 * 0.87 / 500)
    found.result["test"]["drawn_by_seed"] = True
    assert found.test_noise(1e-2) == pytest.approx(0.51 * 0.49 / 1797)  # every seed splits the same images
    assert replace(found, collection=None).test_noise(1e-2) == 0


def test_a_cell_is_read_at_the_rate_that_its_paper_prints():
    found = cell(paper(["a"]).tables["toy-table"], "a", Made())
    assert [found.rate(at) for at in (AT_PAPERS_RATE, 1e-2, "tuned")] == [1e-3, 1e-2, "tuned"]


GOAL = 0.9  # the threshold of made cells


def steps(*arrives, top=90):
    return cell(paper(["a", "b"], "steps").tables["toy-table"], "a", Made(arrives=arrives, top=top)).arm


def test_steps_of_the_mean_with_their_interval():
    found = steps(20, 60, 70)  # budgets 12, 25, 50, 100, 200, 400
    assert found.threshold == GOAL
    first = reach(found, GOAL)
    assert (first.first, first.interval) == (100, (50, 100))
    assert first.words == "100 (50 to 100)"
    assert first.there[-1] == pytest.approx(1 / 2**8)  # all at the goal, without spread
    fine = reach(found, GOAL, fine=True)
    assert 70 <= fine.first <= 90  # the next evaluation
    assert len(fine.steps) > 20
    never = reach(steps(top=60), GOAL)
    assert (never.words, never.interval) == ("> 400", (400, math.inf))


def test_a_fixed_test_set_adds_noise_to_steps_too():
    """What is compared with the goal are test accuracies."""
    table = paper(["a", "b"], "steps").tables["toy-table"]
    found = cell(table, "a", Made(top=60, result={"test": {"drawn_by_seed": False, "size": 100}})).arm
    reached = reach(found, GOAL)
    assert reached.last.test_variance == pytest.approx(0.6 * 0.4 / 100, rel=0.02)


def test_the_rates_that_all_cells_have_are_those_of_the_first():
    table = paper(["a", "b"]).tables["toy-table"]
    wide, narrow = (
        cell(table, "a", Made(dict.fromkeys(rates, 80.0), beyond=False)).arm for rates in (RATES, RATES[:2])
    )
    shifted = cell(table, "b", Made(dict.fromkeys([rate * (1 + 1e-9) for rate in RATES], 80.0), beyond=False)).arm
    assert shared_rates(wide, shifted) == list(RATES)
    assert shared_rates(shifted, narrow, wide) == pytest.approx(list(RATES[:2]))


def noisy_reach(rng, crossing):
    """Of a curve whose mean rises through the goal at `crossing`; each seed is off by its own 3 points and noise."""
    budgets = np.array([12, 25, 50, 100, 200, 400])
    off = rng.normal(0, 0.03, 8) + rng.normal(0, 0.02, (6, 8))
    curve = pd.DataFrame((0.5 + 0.05 * np.log2(budgets / crossing)[:, None] + off).T, columns=budgets)
    return reach(Arm("a", {"tuned": curve}), 0.5)


def test_the_interval_covers_the_step_at_which_the_mean_arrives():
    rng = np.random.default_rng(0)
    intervals = [noisy_reach(rng, 150).interval for _ in range(200)]
    assert np.mean([low < 150 <= high for low, high in intervals]) > 0.94


@pytest.mark.parametrize("other", [150, 200])
def test_rows_that_arrive_together_are_seldom_said_to_differ(other):
    """200: at a budget, where a curve that comes earlier and one that comes later are one test apart."""
    rng = np.random.default_rng(1)
    pairs = [(noisy_reach(rng, other), noisy_reach(rng, other)) for _ in range(100)]
    wrong = [min(slower(one, two, 1), slower(two, one, 1)) < 0.05 for one, two in pairs]
    assert np.mean(wrong) <= 0.05
    pairs = [(noisy_reach(rng, 30), noisy_reach(rng, other)) for _ in range(20)]
    assert np.mean([slower(one, two, 1) < 0.05 for one, two in pairs]) > 0.7  # and those that do not, often


def test_a_goal_that_another_row_sets_is_compared_by_seed():
    seeds = pd.Series(range(8))
    curve = pd.DataFrame({1: 0.3 + seeds / 20, 2: 0.5 + seeds / 20 + seeds % 2 / 1000})
    goal = Arm("b", {"tuned": pd.DataFrame({2: 0.45 + seeds / 20})})
    found = reach(Arm("a", {"tuned": curve}), goal)
    assert (found.first, found.interval) == (2, (1, 2))  # seeds differ by far more than the rows
    assert math.isfinite(found.last.low)


def test_the_noise_of_a_gap_is_that_of_its_test_accuracy_at_every_budget() -> None:
    found = made(lambda *_: 0.96, kind="gap")  # training accuracy is 0.9: the gap is negative
    assert found.test_noise(1e-2, 8) == pytest.approx(0.97 * 0.03 / 500)
    assert found.test_noise(1e-2) == pytest.approx(0.97 * 0.03 / 500)


def test_an_edge_at_an_early_budget_leaves_open_that_the_goal_was_not_reached_by_then() -> None:
    curve = pd.DataFrame({step: np.full(8, 0.5) + np.arange(8) / 1000 for step in (10, 20, 40)})
    found = reach(Arm("a", {"tuned": curve}, edges=(20,)), 0.9)  # type: ignore[arg-type]
    assert [p < 0.05 for p in found.short] == [True, False, False]
    assert found.interval == (10, math.inf)


TEXTS = pd.Index(range(40), name="example")


def with_answers(name, wrong, texts=TEXTS, shared=True, lost=(), kind="accuracy", **fields):
    """An arm with one rate and four seeds; `wrong`: by seed, the numbers of the test examples that it misses."""
    spec = resolve(
        {
            "task": "digits", "arm": name, "steps": STEPS, "learning_rates": [1e-3], "seeds": range(4),
            "measures": ["answers"], **fields,
        }
    )  # fmt: skip
    runs, answers = [], []
    for seed, missed in enumerate(wrong):
        score = 1 - len(missed) / len(texts)
        names = ("validation_accuracy", "test_accuracy", "train_accuracy", "test_accuracy_last", "train_accuracy_last")
        scores = dict.fromkeys(names, score)
        runs.append({"learning_rate": 1e-3, "seed": seed, "diverged_at": None, **scores})
        key = {"learning_rate": 1e-3, "seed": seed, "target": texts % 3}
        given = [-1 if seed in lost else (each % 3 + (each in missed)) % 3 for each in texts]
        for part in ("validation", "test"):
            answers.append(pd.DataFrame({**key, "part": part, "example": texts, "predicted": given}))
    result = {"grid": [1e-3], "test": {"drawn_by_seed": not shared, "size": len(texts)}}
    return swept(spec, result, kind=kind, runs=runs, answers=pd.concat(answers), curves=[])


HARD = ([0, 1, 2, 3], [0, 1, 2, 4], [0, 1, 2, 5], [0, 1, 2])
FULL, FROZEN = with_answers("unfrozen-pretrained", HARD), with_answers("frozen-pretrained", [[0, 1, 7]] * 4)


def difference(*cells):
    plus, *minus = [(each, 1e-3, None) for each in cells]
    return paired_difference([plus, *minus[1:2]], minus[:1])


def test_the_noise_of_a_difference_is_paired_over_the_examples_that_both_arms_answered():
    right = [cell.right(1e-3) for cell in (FULL, FROZEN)]
    assert [each.mean(axis=1).to_list() for each in right] == [c.values(1e-3).to_list() for c in (FULL, FROZEN)]
    found, alone = difference(FULL, FROZEN), FULL.test_noise(1e-3) + FROZEN.test_noise(1e-3)
    assert found.test_variance == pytest.approx(example_noise(right[0] - right[1]))
    assert 0 < found.test_variance < alone / 3
    assert found.mean == pytest.approx(float((right[0] - right[1]).to_numpy().mean()))
    assert difference(FULL).test_variance == pytest.approx(example_noise(right[0]))  # a level alone
    both = difference(FULL, FROZEN, FULL)  # what is read twice counts twice
    assert both.test_variance == pytest.approx(example_noise(2 * right[0] - right[1]))


@pytest.mark.parametrize(
    "other",
    [
        with_answers("frozen-random", HARD, texts=TEXTS[1:]),
        with_answers("frozen-random", HARD, texts=TEXTS + 1),
        with_answers("frozen-random", HARD, shared=False),
        with_answers("frozen-random", HARD, lost=[2]),
        with_answers("frozen-pretrained", [[0, 1, 7]] * 4, kind="gap"),
    ],
    ids=["a part of the examples", "other examples", "each seed its own", "a run without an answer", "gaps"],
)
def test_without_answers_to_the_same_examples_each_arm_has_its_own_noise(other):
    test = paired_difference([(FULL, 1e-3, None)], [(other, 1e-3, None)])
    assert test.test_variance == FULL.test_noise(1e-3) + other.test_noise(1e-3) > 0


def test_before_the_last_budget_there_are_no_answers():
    assert FULL.right(1e-3, 8).empty
    assert not FULL.right(1e-3, STEPS).empty
