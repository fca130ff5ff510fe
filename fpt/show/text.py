"""The sentences that several pages compute, with their numbers; a page computes those that it alone has. No result is
typed on a page."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from fpt.claims.planes import Crossing, by_budget, crossing_of, plane_table, plane_tests, steps_in_words
from fpt.claims.verdicts import CONTRADICTED, SUPPORTED, Verdict, by_runs, expected_false, giving, overall
from fpt.papers import table
from fpt.results.cells import FEW_SEEDS, TUNED, Cell, StudyCells
from fpt.results.runs import SHORT, rate_text, sweeps_table
from fpt.results.stats import SIGNIFICANCE, Paired
from fpt.show.numbers import interval, known_in_words, percent, points, title
from fpt.sweeps import SweepSpec

FEW_LABELS = 6  # if more sweeps are missing, they are not named: the page on the status has them
MADE = ("L", "R")  # ids of claims that the papers make begin so
ARMS = "ours-arms"  # the table of the four arms on every task that a study has
GAINS, LOSES, OPEN = "gains", "loses", "makes no clear difference"
ALL_SEEN = ("bit-xor",)  # tasks whose inputs are so few that training shows all of them
PLANES = ("plane-digits", "plane-minilm", "plane-mnist")  # studies of long runs, in the order of the book and of README


def scale_words(verdicts: Iterable[Verdict]) -> str:
    """The scales of the studies that tested it; nothing where none did, or none was needed."""
    return " and ".join(sorted({each.scale for each in verdicts if each.by_runs}))


def verdict_words(found: Sequence[Verdict]) -> str:
    """The verdict over all studies; its scale, and the models, tasks and steps that decide it; of each, whether it was
    asked before the runs; then the studies that leave it open, by their names; and whether few seeds decide it."""
    own, word = giving(found), overall(found)
    decisive = [each for each in own if each.word in (SUPPORTED, CONTRADICTED) or len(own) == 1]
    settings = [
        f"{'' if word.startswith(each.word) else f'{each.word} in '}{each.setting}{each.asked and f', {each.asked}'}"
        for each in decisive
    ]
    left = [each for each in by_runs(found) if each not in decisive]
    for other, asked in dict.fromkeys((each.word, each.asked) for each in left):
        names = listed([each.study for each in left if (each.word, each.asked) == (other, asked)])
        settings.append(f"{'' if other == word else f'{other} '}in {names}{asked and f', {asked}'}")
    words = [word] + ([f"at {scale_words(own)} scale ({'; '.join(dict.fromkeys(settings))})"] if own else [])
    return ", ".join(words + (["exploratory"] if own and all(each.exploratory for each in own) else []))


def listed(names: Sequence[str]) -> str:
    """One, two and three."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def tally(found: Mapping[str, Sequence[Verdict]]) -> str:
    """How many claims have which verdict."""
    each = Counter(overall(verdicts).partition(" (")[0] for verdicts in found.values())
    return ", ".join(f"{word} {number}" for word, number in each.most_common()) or "none"


def score(found: Mapping[str, Sequence[Verdict]]) -> str:
    """What came of the claims that the papers make, by runs and without them. What this project adds is not counted:
    contradictions between the papers, oddities, baselines and questions of its own."""
    made = {name: verdicts for name, verdicts in found.items() if name[0] in MADE}
    tested = {name: verdicts for name, verdicts in made.items() if scale_words(verdicts)}
    rest = {name: verdicts for name, verdicts in made.items() if name not in tested}
    single = [each for verdicts in tested.values() for each in by_runs(verdicts)]
    chance = f"about {expected_false(single):.1f} of the {len(single)} verdicts of single studies behind them"
    tallied = f" at {scale_words(single)} scale: {tally(tested)} (by chance alone, {chance} would be decided)"
    by_them = f"Runs tested {len(tested)} of them{tallied if tested else ''}."
    return f"The papers make {len(made)} claims. {by_them} Without runs: {tally(rest)}."


def whose(study_folder: str | Path) -> str:
    """One sentence: whose results these are, where they were computed, and whether they are complete."""
    sweeps, name = sweeps_table(study_folder), Path(study_folder).name
    done = sweeps[sweeps["status"] == "done"]
    if done.empty:
        return f"There are no results of the study {name} yet; the command fpt run {name} makes them."
    left = list(dict.fromkeys(sweeps.loc[sweeps["status"] != "done", "name"]))
    # Without its task a name tells nothing where the arm is there on one task and not on another.
    named = f" (not {', '.join(left)})" if len(left) <= FEW_LABELS and not set(left) & set(done["name"]) else ""
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
    words = f"Learning rates {rates}; {seeds} seeds. Each seed takes the rate that is best for the others (validation)."
    few = sum(len(spec.seeds) < FEW_SEEDS for spec in specs)
    return words + (f" Exploratory: {few} of {len(specs)} sweeps have fewer than {FEW_SEEDS} seeds." if few else "")


def plane(first: Cell, second: Cell) -> str:
    """One sentence on the plane of two arms: how often each is significantly ahead, at one rate for both, and where."""
    table = plane_table(plane_tests(first, second))
    clear = table[table["corrected"] < SIGNIFICANCE]
    words = []
    for cell, ahead in ((first, clear[clear["mean"] > 0]), (second, clear[clear["mean"] < 0])):
        rates = [rate_text(rate) for rate in sorted(ahead["rate"].unique())]
        where = f" ({'rates' if len(rates) > 1 else 'rate'} {', '.join(rates)})" if rates else ""
        words.append(f"{cell.label} is ahead at {len(ahead)}{where}")
    alone, undecided = len(table) - len(clear), int(table["band"].sum())
    pairs = f"Of {len(table)} pairs of learning rate and budget, {' and '.join(words)}, after correction for all pairs."
    return f"{pairs} Significant only without correction: {alone - undecided}; undecided: {undecided}."


def crossing(first: Cell, second: Cell) -> str:
    """One sentence: from which budget on the first arm leads the second, each at its own rate."""
    found = crossing_of(first, second)
    words = f"{first.label} against {second.label}, each at its own rate, for all budgets together: {found.answer}."
    band = f" Without correction, the 95% interval holds 0 only after {steps_in_words(found.band)} steps."
    return words + (band if found.band else "")


def answers(cells: Mapping[str, Cell]) -> list[str]:
    """Should one freeze? Sentences from the four arms on one task, after the last step: each at its own learning rate,
    at that of Lu et al., with one rate for both at every budget, and with random weights instead. Differences in points
    with 95% intervals."""
    if any(arm not in cells or cells[arm].problem for arm in SHORT.values()):
        return ["Not decided yet: not all of the arms were run."]
    if len(steps := {cell.spec.steps for cell in cells.values() if cell.spec}) > 1:
        numbers = listed([f"{number:,}" for number in sorted(steps)])
        return [f"Not compared: the arms were trained for different numbers of steps, {numbers}."]
    frozen, full, scratch = cells["FP"], cells["UP"], cells["UR"]
    named = {"frozen": frozen, "all weights trained": full, "trained from scratch": scratch}
    tuned = ", ".join(f"{name} {percent(cell.values().mean())}%" for name, cell in named.items())
    rate = frozen.papers_rate or math.nan
    own, other = (_gained(frozen, cell) for cell in (full, scratch))
    at_one, at_other = (_gained(frozen, cell, rate) for cell in (full, scratch))
    against = "{} against training all weights, and {} against training from scratch"
    return [
        f"Each at its own learning rate: {tuned}. Freezing {against.format(own, other)}.",
        f"At {rate_text(rate)}, the rate of Lu et al., freezing {against.format(at_one, at_other)}.",
        f"With one rate for both: {plane(frozen, full)[0].lower()}{plane(frozen, full)[1:]}",
        f"Among frozen models, pretraining {_gained(frozen, cells['FR'])} against random weights.",
    ]


def _gained(first: Cell, second: Cell, at: str | float = TUNED) -> str:
    """`gain` in one phrase; at one rate with both accuracies."""
    verb, test = gain(first, second, at)
    both = " against ".join(f"{percent(cell.values(at).mean())}%" for cell in (first, second))
    return f"{verb} ({points(test.mean)} points, {interval(test)}{'' if at == TUNED else f'; {both}'})"


def gain(first: Cell, second: Cell, at: str | float = TUNED) -> tuple[str, Paired]:
    """What the first arm gains over the second after the last step, each at its own rate [both at one], as a verb and a
    number. It is not clear where p is 0.05 or more, or where the tuned arm that trails is at an edge."""
    found = crossing_of(first, second) if at == TUNED else Crossing(by_budget(first, second, at))
    *_, (last, test) = found.tests.items()
    return (OPEN if last in found.band else GAINS if test.mean > 0 else LOSES), test


def arms(study: StudyCells, task: str) -> dict[str, Cell]:
    """The four arms of a study on one task; nothing where it has none of them."""
    return study.by_task(table(ARMS)).get(task, {})


def whole(studies: Iterable[StudyCells]) -> dict[str, dict[str, Cell]]:
    """By task and study, as "Digits, plane-digits": the cells of the four arms by arm, where all of them were run."""
    return {
        f"{title(task)}, {study.name}": cells
        for study in studies
        for task, cells in study.by_task(table(ARMS)).items()
        if set(SHORT.values()) <= cells.keys() and not any(cell.problem for cell in cells.values())
    }


def what_was_run(panels: Mapping[str, Mapping[str, Cell]]) -> str:
    """One sentence on the cells of a table (task -> row -> cell): the tasks, their steps, and how much is there."""
    cells = {cell.spec.folder_name: cell for rows in panels.values() for cell in rows.values() if cell.spec}
    tasks = dict.fromkeys(f"{title(cell.task)} for {cell.spec.steps:,} steps" for cell in cells.values() if cell.spec)
    done = sum(not cell.problem for cell in cells.values())
    return f"{', '.join(tasks)}; {done} of {len(cells)} sweeps are there."


def baselines(tasks: Iterable[str]) -> str:
    """One sentence: what can be had on these tasks without training the model."""
    return f"Baselines: {'; '.join(f'{title(task)}: {known_in_words(task)}' for task in dict.fromkeys(tasks))}."


def papers_rates(cells: Iterable[Cell]) -> str:
    """The rates that the paper prints for these cells."""
    rates = {cell.papers_rate for cell in cells if cell.papers_rate is not None}
    return " or ".join(rate_text(rate) for rate in sorted(rates, reverse=True)) or "none"


def resolution(specs: Iterable[SweepSpec]) -> str:
    """One sentence: how far apart the steps are at which accuracy is known."""
    steps = [(spec.steps, pair) for spec in specs for pair in pairwise(spec.evaluation_steps())]
    gaps = [later / step - 1 for last, (step, later) in steps if 10 * step >= last]
    return f"Budgets are a factor of two apart; after a tenth, validations at most {max(gaps, default=0):.0%}."
