"""Every sentence and every number in a sentence that the book computes. No result is typed on a page."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import pandas as pd

from fpt.evidence.cells import FEW_SEEDS, FEW_SEEDS_OF, Cell, StudyCells
from fpt.evidence.planes import crossing_of, plane_table, plane_tests
from fpt.evidence.runs import rate_text, same_rate, sweeps_table
from fpt.evidence.show.numbers import interval, known_in_words, points, title
from fpt.evidence.stats import SIGNIFICANCE, Paired, paired
from fpt.evidence.verdicts import LEFT_OUT, Verdict, deciding, expected_false, overall
from fpt.papers import table
from fpt.sweeps import SweepSpec

FEW_LABELS = 6  # if more sweeps are missing, they are not named: the page on the status has them
ARMS = "ours-arms"  # the table of the four arms on every task that a study has


def scale_words(verdicts: Iterable[Verdict]) -> str:
    """The scales of the studies that tested it; nothing where none did, or none was needed."""
    return " and ".join(sorted({each.scale for each in verdicts if each.study and each.word not in LEFT_OUT}))


def verdict_words(found: Sequence[Verdict]) -> str:
    """The verdict over all studies; its scale, models and steps; whether it was asked before the runs, and whether few
    seeds decide it."""
    scale, tested = scale_words(found), [each for each in deciding(found) if each.study and each.word not in LEFT_OUT]
    settings = "; ".join(dict.fromkeys(each.setting for each in tested))
    words = [overall(found)] + ([f"at {scale} scale ({settings})"] if scale else [])
    words += dict.fromkeys(each.asked for each in tested if each.asked)
    return ", ".join(words + (["exploratory"] if tested and all(each.exploratory for each in tested) else []))


def listed(names: Sequence[str]) -> str:
    """One, two and three."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def counts(found: Mapping[str, Sequence[Verdict]]) -> str:
    """How many claims have which verdict at which scale, and how many false verdicts are to be expected."""
    scales = {name: scale_words(verdicts) if any(v.parts for v in verdicts) else "" for name, verdicts in found.items()}
    each = Counter((overall(verdicts), scales[name]) for name, verdicts in found.items())
    words = [f"{n} {word}" + (f" at {scale} scale" if scale else "") for (word, scale), n in each.most_common()]
    expected = expected_false(verdict for verdicts in found.values() for verdict in verdicts)
    false = f"; by chance alone, runs would decide about {expected:.1f} verdicts" if expected else ""
    return f"{len(found)} claims: {', '.join(words)}{false}"


def whose(study_folder: str | Path) -> str:
    """One sentence: whose results these are, where they were computed, and whether they are complete."""
    sweeps, name = sweeps_table(study_folder), Path(study_folder).name
    done = sweeps[sweeps["status"] == "done"]
    if done.empty:
        return f"There are no results of the study {name} yet; the command fpt run {name} makes them."
    left = list(dict.fromkeys(sweeps.loc[sweeps["status"] != "done", "label"]))
    named = f" (not {', '.join(left)})" if len(left) <= FEW_LABELS else ""
    part = f", {len(done)} of its {len(sweeps)} sweeps{named}" if left else ""
    device = ", ".join(sorted(set(done["device"].astype(str))))
    owner = "your own results" if done["origin"].iloc[0] == "own" else "the published results"
    return f"These are {owner} of the study {name}{part}, computed on {device}."


def design(study: StudyCells) -> str:
    """One sentence: the rates and seeds of a study, and how many of its sweeps have few seeds."""
    specs = [each.spec for each in study.results.values()]
    if not specs:
        return ""
    rates = ", ".join(map(rate_text, sorted({rate for each in study.results.values() for rate in each.rates})))
    seeds = " or ".join(map(str, sorted({len(spec.seeds) for spec in specs})))
    words = f"Learning rates {rates}; {seeds} seeds, of which each takes the rate that is best for the others."
    few = sum(len(spec.seeds) < FEW_SEEDS_OF.get(study.name, FEW_SEEDS) for spec in specs)
    return words + (f" Exploratory: {few} of {len(specs)} sweeps have fewer than {FEW_SEEDS} seeds." if few else "")


def plane(first: Cell, second: Cell) -> str:
    """One sentence on the plane of two arms: how often each is ahead for sure, at one rate for both, and where."""
    if first.problem or second.problem:
        return "Nothing was run yet."
    table = plane_table(plane_tests(first, second))
    sure = table[table["corrected"] < SIGNIFICANCE]
    words = []
    for cell, ahead in ((first, sure[sure["mean"] > 0]), (second, sure[sure["mean"] < 0])):
        rates = [rate_text(rate) for rate in sorted(ahead["rate"].unique())]
        where = f" ({'rates' if len(rates) > 1 else 'rate'} {', '.join(rates)})" if rates else ""
        words.append(f"{cell.label} is ahead at {len(ahead)}{where}")
    return f"Of {len(table)} pairs of learning rate and budget, {' and '.join(words)}; the others are open."


def crossing(first: Cell, second: Cell) -> str:
    """One sentence: from which budget on the first arm leads the second, each at its own rate."""
    if first.problem or second.problem:
        return "Nothing was run yet."
    found = crossing_of(first, second)
    band = ", ".join(f"{budget:,}" for budget in found.band)
    words = f"{first.label} against {second.label}, each at its own learning rate: {found.answer[1]}"
    return f"{words}. The 95% interval of the difference holds 0 after {band} steps." if band else f"{words}."


def answers(cells: Mapping[str, Cell]) -> list[str]:
    """Should one freeze? Three sentences from the arms on one task: at one learning rate for both, each at its own, and
    with random weights instead. Differences in points with 95% intervals."""
    if any(arm not in cells or cells[arm].problem for arm in ("FP", "FR", "UP")):
        return ["Not decided yet: not all of the arms were run."]
    frozen, unfrozen = cells["FP"], cells["UP"]
    tests = plane_tests(frozen, unfrozen)
    table = plane_table(tests)
    sure = table[table["corrected"] < SIGNIFICANCE].sort_values("p")
    clearest = [side.iloc[0] for side in (sure[sure["mean"] > 0], sure[sure["mean"] < 0]) if len(side)]
    found = [(tests[float(each["rate"]), int(each["budget"])], each["rate"], each["budget"]) for each in clearest]
    where = [f"{_gain(test)} at {rate_text(rate)} after {budget:,.0f} steps" for test, rate, budget in found]
    first = f"freezing {' and '.join(where)}, where it is clearest" if where else "nothing is decided yet"
    return [
        f"With one learning rate for both arms, {first}.",
        f"With its own rate for each, freezing {_at_the_end(frozen, unfrozen)}.",
        f"Frozen, a pretrained model instead of a random one {_at_the_end(frozen, cells['FR'])}.",
    ]


def _at_the_end(first: Cell, second: Cell) -> str:
    """What the first tuned arm gains over the second at the last budget, or that it is open."""
    found = crossing_of(first, second)
    *_, last = found.tests
    return f"{_gain(found.tests[last], last not in found.band)} after {last:,} steps"


def _gain(test: Paired, sure: bool = True) -> str:
    verb = ("gains" if test.mean > 0 else "loses") if sure else "has an effect that is not decided yet"
    return f"{verb} ({points(test.mean)} points, {interval(test)})"


def arms(study: StudyCells, task: str) -> dict[str, Cell]:
    """The four arms of a study on one task; nothing where it has none of them."""
    return study.by_task(table(ARMS)).get(task, {})


def what_was_run(panels: Mapping[str, Mapping[str, Cell]]) -> str:
    """One sentence on the cells of a table (task -> row -> cell): the tasks, their steps, and how much is there."""
    cells = {cell.spec.folder_name: cell for rows in panels.values() for cell in rows.values() if cell.spec}
    tasks = dict.fromkeys(f"{title(cell.task)} for {cell.spec.steps:,} steps" for cell in cells.values() if cell.spec)
    done = sum(not cell.problem for cell in cells.values())
    return f"{', '.join(tasks)}; {done} of {len(cells)} sweeps are there."


def baselines(tasks: Iterable[str]) -> str:
    """One sentence: what can be had on these tasks without training the model."""
    return f"Baselines: {'; '.join(f'{title(task)}: {known_in_words(task)}' for task in dict.fromkeys(tasks))}."


def _by_seed(runs: pd.DataFrame) -> "pd.Series[float]":
    """Test accuracy at the last budget of the runs of one sweep at one rate."""
    return runs.set_index("seed")["test_accuracy"].astype(float)


def warm_up(runs: pd.DataFrame, arm: str = "unfrozen-pretrained", rate: float = 1e-3) -> str:
    """One sentence: is an arm's loss at a rate due to the rate, or to the missing warm-up? From runs of one task
    and model without and with a warm-up."""
    own = runs[runs["arm"] == arm]
    plain, there = own[own["warmup"] == 0], own[same_rate(own["learning_rate"], rate)]
    without, warm = (_by_seed(part) for part in (there[there["warmup"] == 0], there[there["warmup"] > 0]))
    if without.empty or warm.empty:
        return "Nothing was run yet that could tell."
    best = plain.groupby("learning_rate")["test_accuracy"].mean().idxmax()
    lost = paired(_by_seed(plain[same_rate(plain["learning_rate"], best)]), without)
    gained, half = paired(warm, without), lost.mean / 2
    if lost.low <= 0:
        answer = "so nothing is lost at this rate that a warm-up could bring back"
    elif gained.low > half:
        answer = "so most of the loss is the warm-up that is missing"
    else:
        answer = "so most of the loss is the rate" if gained.high < half else "which leaves open what the loss is"
    return (
        f"At {rate_text(rate)} and without a warm-up, {arm} is {points(-lost.mean)} points from where it is at its "
        f"best rate, {rate_text(best)} (the loss: {interval(lost)}); a warm-up changes that by {points(gained.mean)} "
        f"({interval(gained)}), {answer}."
    )


def papers_rates(cells: Iterable[Cell]) -> str:
    """The rates that the paper prints for these cells."""
    rates = {cell.papers_rate for cell in cells if cell.papers_rate is not None}
    return " or ".join(rate_text(rate) for rate in sorted(rates, reverse=True)) or "none"


def resolution(specs: Iterable[SweepSpec]) -> str:
    """One sentence: how far apart the steps are at which accuracy is known."""
    steps = [(spec.steps, pair) for spec in specs for pair in pairwise(spec.evaluation_steps())]
    gaps = [later / step - 1 for last, (step, later) in steps if 10 * step >= last]
    return (
        f"Budgets are a factor of two apart, later evaluations on validation data at most {max(gaps, default=0):.0%}."
    )
