"""Every sentence and every number in a sentence that the book computes. No result is typed on a page."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fpt.evidence.attention import maps_of, scores
from fpt.evidence.baselines import baseline_scores
from fpt.evidence.cells import AT_PAPERS_RATE, CONFIRMATION, NOT_RUN, SELECTION, TUNED, Cell, StudyCells
from fpt.evidence.runs import SHORT, rate_text, sweeps_table
from fpt.evidence.show.numbers import NONE, difference, interval, middle, number, percent, points, title
from fpt.evidence.stats import SIGNIFICANCE, paired
from fpt.evidence.verdicts import CONTRADICTED, EDGE, INCONCLUSIVE, LEFT_OUT, SUPPORTED, Part, Verdict, overall
from fpt.papers import Table, paper_of, table

GAINS = {"FR x0.5": 0.5, "FR": 1.0, "FR x2": 2.0, "FR x4": 4.0}  # rows of ours-scales, in the order of their gain
ARMS = "ours-arms"  # the table of the four arms on every task that a study has
QUANTITY = {
    "accuracy": "test accuracy (%)",
    "steps": "steps to the threshold",
    "gap": "training minus test accuracy (points)",
    "attention": "part of the attention (%)",
}


def scale_words(verdicts: Iterable[Verdict]) -> str:
    """The scales of the studies among them; nothing where no study was needed."""
    return " and ".join(sorted({verdict.scale for verdict in verdicts if verdict.study}))


def verdict_sentence(verdict: Verdict) -> str:
    """laptop: inconclusive, at reduced scale (tiny-lm, 300 steps). Digits, UP - FP, +1.3 (-2.0 to 4.6) points; ..."""
    words = f"{verdict.study}: {verdict.word}"
    words += f", at {verdict.scale} scale ({verdict.setting})" if verdict.setting else ""
    words += ", exploratory" if verdict.exploratory else ""
    tests = [f"{title(p.task)}, {p.comparison}, {difference(p)}, {p.word}" for p in verdict.parts if difference(p)]
    return f"{words}. {'; '.join(tests)}{'.' if tests else ''}".strip()


def words_by_task(verdict: Verdict) -> dict[str, str]:
    """The word of each task that was tried: all of its comparisons hold, or one does not, by Holm's correction."""
    found: dict[str, list[Part]] = {}
    for part in verdict.parts:
        if part.word not in LEFT_OUT:
            found.setdefault(part.task, []).append(part)
    return {task: _word(parts) for task, parts in found.items()}


def _word(parts: Sequence[Part]) -> str:
    if max(part.supports for part in parts) < SIGNIFICANCE:
        return SUPPORTED
    contradicted = len(parts) * min(part.contradicts for part in parts) < SIGNIFICANCE
    return CONTRADICTED if contradicted else INCONCLUSIVE


def tally(found: Iterable[Verdict]) -> str:
    """One claim over every pair of task and model with fresh seeds: how many support it, how many contradict it.

    Runs that two studies share are counted once.
    """
    count, seen = Counter[str](), set[tuple[str, str, tuple[float, ...]]]()
    for verdict in found:
        fresh = {} if verdict.exploratory or not verdict.study else words_by_task(verdict)
        for task, word in fresh.items():
            compared = {(task, p.comparison, p.test.differences) for p in verdict.parts if p.task == task}
            count[word] += not compared <= seen
            seen |= compared
    listed = [f"{word} on {count[word]}" for word in (SUPPORTED, CONTRADICTED, INCONCLUSIVE)]
    return f"{', '.join(listed)} of {count.total()} pairs of task and model"


def counts(found: Mapping[str, Sequence[Verdict]]) -> str:
    """How many claims have which verdict at which scale; those whose rule is to come are among them."""
    scales = {name: scale_words(verdicts) if any(v.parts for v in verdicts) else "" for name, verdicts in found.items()}
    each = Counter((overall(verdicts), scales[name]) for name, verdicts in found.items())
    words = [f"{n} {word}" + (f" at {scale} scale" if scale else "") for (word, scale), n in each.most_common()]
    return f"{len(found)} claims: {', '.join(words)}"


def whose(study_folder: str | Path) -> str:
    """One sentence: whose results these are, where they were computed, and whether they are complete."""
    sweeps, name = sweeps_table(study_folder), Path(study_folder).name
    done = sweeps[sweeps["status"] == "done"]
    if done.empty:
        return f"There are no results of the study {name} yet; the command fpt run {name} makes them."
    left = ", ".join(dict.fromkeys(sweeps.loc[sweeps["status"] != "done", "label"]))
    part = f", {len(done)} of its {len(sweeps)} sweeps (not {left})" if left else ""
    device = ", ".join(sorted(set(done["device"].astype(str))))
    owner = "your own results" if done["origin"].iloc[0] == "own" else "the published results"
    return f"These are {owner} of the study {name}{part}, computed on {device}."


def stages(study: StudyCells) -> str:
    """One sentence: the rates and seeds of a study, and how many of its sweeps confirm nothing."""
    runs = [each.runs for each in study.results.values()]
    if not runs:
        return ""
    chosen = pd.concat([each[each["stage"] == SELECTION] for each in runs])
    rates = ", ".join(map(rate_text, sorted(chosen["learning_rate"].unique())))
    without = sum(not (each["stage"] == CONFIRMATION).any() for each in runs)
    words = f"Learning rates {rates}; {chosen['seed'].nunique()} seeds choose among them."
    return words + (f" Exploratory: in {without} sweeps the seeds shown also chose the rate." if without else "")


def budget_share(steps: str, task: str) -> str:
    """One sentence: what share of Rothermel et al.'s gradient steps (their Table 5) these runs took."""
    if steps == NONE:
        return "Nothing was run yet."
    here, theirs = int(steps.replace(",", "")), int(paper_of("rothermel2021").tasks[task]["steps"])
    return f"{here:,} steps are {here / theirs:.2%} of the {theirs:,} that Rothermel et al. allow on this task."


def arms(study: StudyCells, task: str, rows: str = ARMS) -> dict[str, Cell]:
    """The four arms (or the rows of another table) of a study on one task; nothing where it has none of them."""
    return study.by_task(table(rows)).get(task, {})


def arms_by_setup(studies: Iterable[StudyCells]) -> Iterator[tuple[str, dict[str, Cell]]]:
    """(name, cells) of every task of a study on which all four arms have fresh seeds."""
    for study in studies:
        for task, cells in study.by_task(table(ARMS), list(SHORT.values())).items():
            done = [cell for cell in cells.values() if not cell.problem and not cell.is_exploratory]
            if len(done) == len(SHORT):
                yield f"{title(task)} ({study.name})", cells


def best_arms(studies: Iterable[StudyCells], arm: str = "FR") -> str:
    """One sentence: on how many setups an arm has the highest mean of all four, each tuned, over fresh seeds."""
    setups = dict(arms_by_setup(studies))
    best = [name for name, cells in setups.items() if max(cells, key=lambda row: middle(cells[row], TUNED)) == arm]
    listed = f": {', '.join(best)}" if best else ""
    return f"{len(best)} of {len(setups)} pairs of task and model{listed}"


def rate_ratios(studies: Iterable[StudyCells]) -> str:
    """In how many pairs of an unfrozen and a frozen arm of one initialisation the best rate is at most a third."""
    cells = [cells for _, cells in arms_by_setup(studies)]
    pairs = [(each[f"U{init}"].best_rate, each[f"F{init}"].best_rate) for each in cells for init in "PR"]
    lower = sum(1 for unfrozen, frozen in pairs if unfrozen and frozen and unfrozen <= frozen / 3 * (1 + 1e-6))
    return f"{lower} of {len(pairs)}"


def undecided(found: Iterable[Verdict]) -> str:
    """One sentence: how many comparisons the ends of the grid leave open."""
    parts = [part for verdict in found for part in verdict.parts if part.test.n]
    edges = sum(part.word == EDGE for part in parts)
    return (
        f"{edges} of the {len(parts)} comparisons on this page are undecided because a best rate is an end of the grid."
    )


def scale_effect(cells: Mapping[str, Cell]) -> str:
    """One sentence: what a tuned scale of the initialisation gives frozen random weights, and beside the pretrained.

    The gain is chosen by the validation accuracy of the selection seeds, the difference is of fresh seeds.
    """
    gains = {row: cells[row] for row in GAINS if row in cells and not cells[row].problem}
    if "FR" not in gains or len(gains) < 2 or cells["FP"].problem:
        return NONE
    validation = {row: cell.at(TUNED, stage=SELECTION)["validation_accuracy"].mean() for row, cell in gains.items()}
    best = max(validation, key=lambda row: validation[row])
    over_one = paired(gains[best].values(), gains["FR"].values())
    over_random = paired(cells["FP"].values(), gains[best].values())
    edge = (
        " (an end of the gains)"
        if best in (min(gains, key=GAINS.__getitem__), max(gains, key=GAINS.__getitem__))
        else ""
    )
    effect = f"{points(over_one.mean)} points over gain 1 ({interval(over_one)})" if best != "FR" else "which is gain 1"
    return (
        f"{title(cells['FR'].task)}, {cells['FR'].spec.backbone if cells['FR'].spec else ''}: the gain with the best "
        f"validation accuracy is {GAINS[best]:g}{edge}, {effect}; frozen pretrained minus frozen random at this gain "
        f"is {points(over_random.mean)} points ({interval(over_random)})."
    )


def sampling_error(task: str, accuracy: float, examples: int) -> str:
    """The standard error that a fixed test set adds to one accuracy, and no interval over seeds shows."""
    error = 100 * math.sqrt(accuracy * (1 - accuracy) / examples)
    return f"{title(task)} has {examples:,} test images: at an accuracy of {accuracy:.0%}, {error:.1f} points"


def thresholds(study: StudyCells) -> str:
    """One sentence: what a threshold on ListOps is worth, beside the best guess from the outermost operator."""
    spec = next((spec for spec in study.study.sweeps if spec.task.startswith("listops") and spec.threshold), None)
    if spec is None:
        return ""
    options: dict[str, Any] = dict(spec.task_options)
    guess = baseline_scores(spec.task, **options)["root operator only"]
    return (
        f"On {title(spec.task)} the threshold is low: {100 * (spec.threshold or 0):g}%, where always naming the best "
        f"guess for the outermost operator gives {percent(guess)}%."
    )


def dropout(study: StudyCells, task: str = "digits") -> str:
    """One sentence: the output layer alone without and with dropout, here and in the paper on ListOps."""
    rows = (("lu-table-10", "read-out"), ("lu-table-15", "output only"))
    found = [study.by_task(table(name)).get(task, {}).get(row) for name, row in rows]
    here = [f"{percent(float(cell.values().mean()))}%" for cell in found if cell is not None and not cell.problem]
    printed = [f"{table(name).rows[row].printed['listops'].value}%" for name, row in rows]
    if len(here) < len(rows):
        return "It was not run yet."
    return (
        f"On {title(task)} the output layer alone gives {here[0]} without dropout and {here[1]} with it. The paper's "
        f"own numbers differ too: on ListOps {printed[0]} in its Table 10, without dropout, and {printed[1]} in its "
        "Table 15."
    )


def attention_words(cells: Iterable[Cell]) -> str:
    """A sentence a map: the attention on the needed tokens after training, before it, and if it were even."""
    words = []
    for cell in cells:
        now, then = (scores(maps_of(cell, trained=trained)) for trained in (True, False))
        score = f"{percent(now['mass'].mean())}% on the needed tokens (untrained {percent(then['mass'].mean())}%"
        words.append(f"{cell.label}: {score}, even spread {percent(now['chance'].mean())}%).")
    return " ".join(words)


def what_was_run(cells: Mapping[str, Mapping[str, Cell]]) -> str:
    """One sentence on the cells of a table (task -> row -> cell): the tasks, their steps, and how much is there."""
    sweeps = {cell.spec.folder_name: cell for rows in cells.values() for cell in rows.values() if cell.spec}
    if not sweeps:
        return "The study has no sweep of this table: it needs other weights."
    steps: dict[str, set[int]] = {}
    for cell in sweeps.values():
        steps.setdefault(title(cell.task), set()).add(cell.spec.steps if cell.spec else 0)
    words = [f"{task} ({' and '.join(f'{n:,}' for n in sorted(each))} steps)" for task, each in steps.items()]
    done = sum(not cell.problem for cell in sweeps.values())
    there = f"{'all' if done == len(sweeps) else f'{done} of the'} {len(sweeps)} sweeps are there"
    return f"{', '.join(words)}: {there if done else NOT_RUN}."


def what_to_see(cells: Mapping[str, Mapping[str, Cell]]) -> str:
    """A table's figure in a sentence a panel: its two ends, and the row that loses most at the paper's rate."""
    return " ".join(f"{title(task)}: {_ends(rows)}." for task, rows in cells.items())


def _ends(rows: Mapping[str, Cell]) -> str:
    cell = next(iter(rows.values()))
    middles = {each.label: middle(each, TUNED) for each in rows.values()}
    named: dict[str, list[str]] = {}  # rows that print the same number
    for label, value in sorted(middles.items(), key=lambda item: np.nan_to_num(item[1], nan=-1)):
        named.setdefault(number(cell, value), []).append(label)
    ends = [f"{value} ({' and '.join(labels)})" for value, labels in named.items()]
    words = f"from {ends[0]} to {ends[-1]}" if len(ends) > 1 else f"all at {ends[0]}"
    losses = {each.label: middles[each.label] - middle(each, AT_PAPERS_RATE) for each in rows.values()}
    losses = {label: loss for label, loss in losses.items() if loss >= 1}
    if cell.table.kind != "accuracy" or not losses:
        return words
    most = max(losses, key=lambda label: losses[label])
    return f"{words}; at the paper's rate {most} loses most, {losses[most]:.1f} points"


def figure_words(cells: Mapping[str, Mapping[str, Cell]], name: Table) -> str:
    """The alt text of a table's strips."""
    words = [
        f"{title(task)}, {cell.label}: {number(cell, middle(cell, TUNED))} tuned, "
        f"{number(cell, middle(cell, AT_PAPERS_RATE))} at the paper's rate"
        for task, rows in cells.items()
        for cell in rows.values()
    ]
    return f"{name.title}: {QUANTITY[name.kind]}, one dot per seed. {'. '.join(words)}."


def papers_rates(cells: Iterable[Cell]) -> str:
    """The rates that the paper prints for these cells."""
    rates = {cell.papers_rate for cell in cells if cell.papers_rate is not None}
    return " or ".join(rate_text(rate) for rate in sorted(rates, reverse=True)) or "none"
