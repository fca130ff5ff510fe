"""Every sentence and every number in a sentence that the book computes. No result is typed on a page."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd

from fpt.evidence.cells import CONFIRMATION, SELECTION, Cell, StudyCells
from fpt.evidence.reading import word_of
from fpt.evidence.runs import SHORT, rate_text, sweeps_table
from fpt.evidence.show.numbers import NONE, title
from fpt.evidence.verdicts import CONTRADICTED, INCONCLUSIVE, LEFT_OUT, SUPPORTED, Verdict, deciding, overall
from fpt.papers import paper_of, table

ARMS = "ours-arms"  # the table of the four arms on every task that a study has


def scale_words(verdicts: Iterable[Verdict]) -> str:
    """The scales of the studies that tested it; nothing where none did, or none was needed."""
    return " and ".join(sorted({each.scale for each in verdicts if each.study and each.word not in LEFT_OUT}))


def verdict_words(found: Sequence[Verdict]) -> str:
    """The verdict over all studies, its scale, and whether only seeds decide it that also chose the rates."""
    scale = scale_words(found)
    tested = [each for each in deciding(found) if each.study and each.word not in LEFT_OUT]
    words = [overall(found)] + ([f"at {scale} scale"] if scale else [])
    return ", ".join(words + (["exploratory"] if tested and all(each.exploratory for each in tested) else []))


def words_by_task(verdict: Verdict) -> dict[str, str]:
    """The word of each task that was tried: all of its comparisons hold, or one does not, by Holm's correction."""
    tried = [part for part in verdict.parts if part.word not in LEFT_OUT]
    by_task = {task: [part for part in tried if part.task == task] for task in dict.fromkeys(p.task for p in tried)}
    return {
        task: word_of(max(part.supports for part in parts), len(parts) * min(part.contradicts for part in parts))
        for task, parts in by_task.items()
    }


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


def arms(study: StudyCells, task: str) -> dict[str, Cell]:
    """The four arms of a study on one task; nothing where it has none of them."""
    return study.by_task(table(ARMS)).get(task, {})


def arms_by_setup(studies: Iterable[StudyCells]) -> Iterator[tuple[str, dict[str, Cell]]]:
    """(name, cells) of every task of a study on which all four arms have fresh seeds."""
    for study in studies:
        for task, cells in study.by_task(table(ARMS), list(SHORT.values())).items():
            done = [cell for cell in cells.values() if not cell.problem and not cell.is_exploratory]
            if len(done) == len(SHORT):
                yield f"{title(task)} ({study.name})", cells


def rate_ratios(studies: Iterable[StudyCells]) -> str:
    """In how many pairs of an unfrozen and a frozen arm of one initialisation the best rate is at most a third."""
    cells = [cells for _, cells in arms_by_setup(studies)]
    pairs = [(each[f"U{init}"].best_rate, each[f"F{init}"].best_rate) for each in cells for init in "PR"]
    lower = sum(1 for unfrozen, frozen in pairs if unfrozen and frozen and unfrozen <= frozen / 3 * (1 + 1e-6))
    return f"{lower} of {len(pairs)}"


def what_was_run(panels: Mapping[str, Mapping[str, Cell]]) -> str:
    """One sentence on the cells of a table (task -> row -> cell): the tasks, their steps, and how much is there."""
    cells = {cell.spec.folder_name: cell for rows in panels.values() for cell in rows.values() if cell.spec}
    tasks = dict.fromkeys(f"{title(cell.task)} for {cell.spec.steps:,} steps" for cell in cells.values() if cell.spec)
    done = sum(not cell.problem for cell in cells.values())
    return f"{', '.join(tasks)}; {done} of {len(cells)} sweeps are there."


def papers_rates(cells: Iterable[Cell]) -> str:
    """The rates that the paper prints for these cells."""
    rates = {cell.papers_rate for cell in cells if cell.papers_rate is not None}
    return " or ".join(rate_text(rate) for rate in sorted(rates, reverse=True)) or "none"
