"""Verdicts: what the runs of each study say about a claim, by the claim's rule (fpt/papers)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fpt.evidence.arithmetic import computed
from fpt.evidence.baselines import baseline_scores, chance, linear_score, missing_data
from fpt.evidence.cells import AT_PAPERS_RATE, NOT_RUN, PAPER_SCALE, REDUCED, SELECTION, TUNED, StudyCells
from fpt.evidence.reading import (
    AT_BOTH,
    BY_RATE,
    CONTRADICTED,
    DIVERGED,
    EDGE,
    INCONCLUSIVE,
    NOT_TESTED,
    SUPPORTED,
    Part,
    Reading,
)
from fpt.evidence.rules import parts_of
from fpt.evidence.stats import SIGNIFICANCE, partial_conjunction
from fpt.papers import claims, paper_of, table
from fpt.papers.schema import Claim, Rule

__all__ = ["CONTRADICTED", "DIVERGED", "EDGE", "INCONCLUSIVE", "NOT_TESTED", "SUPPORTED", "Part", "Verdict"]

DOCUMENTARY, OPEN, DEPENDS = "documentary", "rule to come", "depends on scale"
UNDECIDED = (DIVERGED, EDGE, INCONCLUSIVE)  # which names the verdict where several keep it from being decided
LEFT_OUT = (NOT_RUN, NOT_TESTED)  # parts that say nothing
STRENGTH = (SUPPORTED, CONTRADICTED, DOCUMENTARY, INCONCLUSIVE, EDGE, DIVERGED, NOT_RUN, OPEN, NOT_TESTED)
TOLERANCE = 0.5  # points, of a computed baseline; or the printed standard error


@dataclass(frozen=True)
class Verdict:
    """What one study (or arithmetic, or a document: `study` is empty) says about one claim."""

    claim: str
    word: str
    study: str = ""
    at: str = TUNED
    scale: str = REDUCED  # of the study's cells: paper or reduced
    setting: str = ""  # backbones and steps: no verdict holds beyond them
    parts: tuple[Part, ...] = ()
    exploratory: bool = False
    note: str = ""


def verdict(claim: Claim, study: StudyCells) -> Verdict | None:
    """By the runs of one study; None where it has the rows of none of the claim's rules on a common task.

    Every part must hold (intersection-union, each at 5%), or most tasks (partial conjunction); a contradiction counts
    after Holm's correction over the parts. Of several rules all must hold, of those that the study can test.
    """
    return _by_rules(claim, claim.rule, study)


def other_reading(claim: Claim, study: StudyCells) -> Verdict | None:
    """The same at the paper's learning rate; None where the claim's rules are not read tuned."""
    fixed = (*BY_RATE, *AT_BOTH, "baseline")
    tuned = [rule.at == TUNED and rule.kind not in fixed for rule in claim.rule]
    rules = [rule.model_copy(update={"at": AT_PAPERS_RATE}) if turn else rule
             for rule, turn in zip(claim.rule, tuned, strict=True)]  # fmt: skip
    return _by_rules(claim, rules, study) if any(tuned) else None


def verdicts(claim: Claim, studies: Iterable[StudyCells]) -> list[Verdict]:
    """One a study that can decide the claim, never pooled; one without a study where none is needed."""
    if claim.documentary or claim.todo:
        return [Verdict(claim.id, DOCUMENTARY if claim.documentary else OPEN, note=claim.documentary or claim.todo)]
    if claim.arithmetic or claim.printed:
        word, note = computed(claim)
        return [Verdict(claim.id, word, note=note)]
    if any(rule.kind == "baseline" for rule in claim.rule):
        return [_by_baselines(claim)]
    return [found for study in studies if (found := verdict(claim, study)) is not None]


def all_verdicts(studies: Sequence[StudyCells]) -> dict[str, list[Verdict]]:
    """The verdicts on every claim of every paper, by id."""
    return {name: verdicts(claim, studies) for name, claim in claims().items()}


def overall(found: Iterable[Verdict]) -> str:
    """One word: a decided one before the others; where one study supports and another contradicts, that it depends.

    What fresh seeds decide goes before what the seeds decide that also chose the rates.
    """
    words = {each.word for each in deciding(found)}
    if {SUPPORTED, CONTRADICTED} <= words:
        return DEPENDS
    return next((word for word in STRENGTH if word in words), NOT_TESTED)


def deciding(found: Iterable[Verdict]) -> list[Verdict]:
    """The verdicts that `overall` rests on: those decided by fresh seeds, where there are any."""
    found = list(found)
    fresh = [each for each in found if each.word in (SUPPORTED, CONTRADICTED) and not each.exploratory]
    return fresh or found


def _by_rules(claim: Claim, rules: Sequence[Rule], study: StudyCells) -> Verdict | None:
    readings = [each for rule in rules for each in _readings(rule, study)]
    if not readings:
        return None
    decisive = [each for each in readings if _decides(each)]
    parts = [(each.rule, part) for each in decisive for part in parts_of(each)]
    by_rule = [(rule, [part for of, part in parts if of == rule and part.word not in LEFT_OUT]) for rule in rules]
    tested = [(rule, some) for rule, some in by_rule if some]
    every = tuple(part for _, part in parts)
    word, remarks = _word(tested, every)
    notes = [rule.part for rule in rules if rule.part]
    notes += [] if decisive else ["decided only at the paper's scale"]
    notes += [f"{len(tested)} of its {len(rules)} rules tested here"] if 0 < len(tested) < len(rules) else []
    notes += _untested_tasks(rules, decisive)
    used = decisive or readings
    return Verdict(
        claim.id,
        word,
        study.name,
        AT_PAPERS_RATE if all(rule.at == AT_PAPERS_RATE for rule in rules) else TUNED,
        PAPER_SCALE if all(cell.scale == PAPER_SCALE for each in used for cell in each.rows.values()) else REDUCED,
        _setting(used),
        every,
        word not in LEFT_OUT and any(each.stage == SELECTION for each in used),
        "; ".join(dict.fromkeys([*notes, *remarks])),
    )


def _untested_tasks(rules: Sequence[Rule], readings: Sequence[Reading]) -> list[str]:
    """How many of the tasks that the rules name are tested, where that is not all of them."""
    named = {task for rule in rules for task in rule.tasks or _tasks(rule)}
    tested = named & {task for each in readings for task in (each.task, *each.any_cell.stands_for)}
    return [f"{len(tested)} of its {len(named)} tasks tested here"] if 0 < len(tested) < len(named) else []


def _tasks(rule: Rule) -> set[str]:
    """The tasks of the paper on which all rows of the rule stand."""
    read = table(rule.table)
    return set.intersection(*(set(read.on(row, paper_of(read.paper))) for row in rule.rows))


def _readings(rule: Rule, study: StudyCells) -> list[Reading]:
    """A rule on every task on which the study has a sweep for each of its rows."""
    readings = [Reading(rule, cells) for cells in study.by_task(table(rule.table)).values()]
    planned = [each for each in readings if all(row in each.cells and each.cells[row].spec for row in each.needed)]
    return [each for each in planned if not rule.tasks or {each.task, *each.any_cell.stands_for} & set(rule.tasks)]


def _decides(reading: Reading) -> bool:
    """What is printed of the paper's own models is tested on these alone."""
    only = reading.rule.only_paper_scale or reading.rule.kind == "near"
    return not only or all(cell.scale == PAPER_SCALE for cell in reading.rows.values())


def _word(tested: Sequence[tuple[Rule, list[Part]]], every: Sequence[Part]) -> tuple[str, list[str]]:
    """The verdict by the parts of each rule that say something, and what is to be said of it."""
    judged = [_combined(rule, parts) for rule, parts in tested]
    if not judged:
        return (NOT_RUN if NOT_RUN in {part.word for part in every} else NOT_TESTED), []
    supports, contradicts = _all(judged)
    if supports < SIGNIFICANCE:
        return SUPPORTED, []
    if contradicts < SIGNIFICANCE:
        return CONTRADICTED, []
    words = {part.word for part in every}
    lost = ["no contradiction is left after Holm's correction"] if CONTRADICTED in words else []
    seeds = [part.seeds for part in every if part.word == INCONCLUSIVE and part.seeds]
    return next((word for word in UNDECIDED if word in words), INCONCLUSIVE), [*lost, *seeds[:1]]


def _combined(rule: Rule, parts: Sequence[Part]) -> tuple[float, float]:
    """p-values of a rule and of its contrary, over its parts and tasks."""
    tasks = dict.fromkeys(part.task for part in parts)
    found = [_all([(part.supports, part.contradicts) for part in parts if part.task == task]) for task in tasks]
    if rule.of == "all":
        return _all(found)
    supports, contradicts = zip(*found, strict=True)
    most = len(found) // 2 + 1
    return partial_conjunction(supports, most), partial_conjunction(contradicts, len(found) - most + 1)


def _all(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """That all hold, and that one does not: the smallest p after Holm's correction."""
    supports, contradicts = zip(*pairs, strict=True)
    return max(supports), min(1.0, len(pairs) * min(contradicts))


def _setting(readings: Sequence[Reading]) -> str:
    specs = [cell.spec for reading in readings for cell in reading.rows.values() if cell.spec]
    steps = " and ".join(f"{n:,}" for n in sorted({spec.steps for spec in specs}))
    return f"{', '.join(dict.fromkeys(spec.backbone for spec in specs))}, {steps} steps"


def _by_baselines(claim: Claim) -> Verdict:
    """Supported where each computed score is the printed number within 0.5 points or its standard error; contradicted
    beyond twice that; not tested where the data are not on this machine."""
    parts = [_baseline(claim, rule, task) for rule in claim.rule for task in rule.tasks]
    words = {word for word, _ in parts}
    word = next((word for word in (CONTRADICTED, NOT_TESTED, INCONCLUSIVE) if word in words), SUPPORTED)
    notes = [*(rule.part for rule in claim.rule if rule.part), *(note for _, note in parts)]
    return Verdict(claim.id, word, note="; ".join(dict.fromkeys(notes)))


def _baseline(claim: Claim, rule: Rule, task: str) -> tuple[str, str]:
    name = str(rule.level)
    if name == "chance":
        score = 100 * chance(task)
    elif missing := missing_data(task):
        return NOT_TESTED, missing
    else:
        score = 100 * (linear_score(task) if name == "linear" else baseline_scores(task)[name])
    printed, error = claim.numbers["accuracy"], claim.numbers.get("se", 0.0)
    if isinstance(printed, dict):
        printed = printed[LEVELS.index(name) + 1]
    allowed = printed if isinstance(printed, list | tuple) else [printed]
    away, close = min(abs(score - number) for number in allowed), max(TOLERANCE, error)
    word = SUPPORTED if away <= close else CONTRADICTED if away > 2 * close else INCONCLUSIVE
    return word, f"{task}: {name} {score:.1f}, printed {' and '.join(f'{number:g}' for number in allowed)}"


LEVELS = ("one level", "two levels", "three levels")  # of listops_ladder
