"""Verdicts: what the runs of each study say about a claim, by the claim's rule (fpt/papers)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from fpt.claims.arithmetic import computed
from fpt.claims.asked import PLANNED, asked_as
from fpt.claims.reading import (
    CONTRADICTED,
    DIVERGED,
    EDGE,
    INCONCLUSIVE,
    NOT_TESTED,
    SUPPORTED,
    Part,
    Reading,
    covered,
    decides,
    readings_of,
    setting,
    tasks_in_words,
    word_of,
)
from fpt.claims.rules import baseline_verdict, parts_of
from fpt.papers import claims
from fpt.papers.schema import Claim, Rule
from fpt.results.cells import AT_PAPERS_RATE, NOT_RUN, PAPER_SCALE, REDUCED, TUNED, StudyCells
from fpt.results.stats import holm, partial_conjunction

__all__ = ["CONTRADICTED", "DIVERGED", "EDGE", "INCONCLUSIVE", "NOT_TESTED", "SUPPORTED", "Part", "Verdict"]

DOCUMENTARY = "documentary"
UNFINISHED = "not all run yet"
ASKED, CHANGED = "asked before the runs", "rule changed since"
# The first of these names the verdict where several keep it open.
UNDECIDED = (UNFINISHED, DIVERGED, EDGE, INCONCLUSIVE)
LEFT_OUT = (NOT_RUN, NOT_TESTED)  # parts that say nothing


@dataclass(frozen=True)
class Verdict:
    """What one study (or arithmetic, or a document: `study` is empty) says about one claim."""

    claim: str
    word: str
    study: str = ""
    at: str = TUNED
    scale: str = REDUCED  # of the study's cells: paper or reduced
    setting: str = ""  # backbones, tasks and steps: no verdict holds beyond them
    covered: str = ""  # how many of the tasks that the rules name the study has, where these are not all
    parts: tuple[Part, ...] = ()
    exploratory: bool = False
    note: str = ""
    supports: float = 1.0  # p-values over all parts; of a primary claim after Holm's correction
    contradicts: float = 1.0
    asked: str = ""  # ASKED or CHANGED, where every sweep that is read was run for this claim
    primary: bool = False


def verdict(claim: Claim, study: StudyCells) -> Verdict | None:
    """By the runs of one study; None where it has the rows of none of the claim's rules on a common task.

    Every part must hold (intersection-union, each at 5%), or most or some tasks (partial conjunction); a contradiction
    counts after Holm's correction over the rules, within each over tasks, and within these over the parts. Of several
    rules all must hold, of those that the study can test; while some of it is not run yet, nothing is supported.
    Primary claims are Holm-corrected together, those that the study tests at one scale.
    """
    found = _judged(claim, claim.rule, study)
    return _corrected(found, study) if found and claim.primary and found.word not in LEFT_OUT else found


def _corrected(found: Verdict, study: StudyCells) -> Verdict:
    """A primary claim's verdict among the others of its study and scale, by the smaller of its two-sided p-values."""
    others = (_judged(each, each.rule, study) for each in claims().values() if each.primary and each.id != found.claim)
    tested = [each for each in others if each and each.scale == found.scale and each.word not in LEFT_OUT]
    p, *_ = holm([min(each.supports, each.contradicts) for each in (found, *tested)])
    supports, contradicts = max(found.supports, p), max(found.contradicts, p)
    decided = found.word in (SUPPORTED, CONTRADICTED)
    word = word_of(supports, contradicts, INCONCLUSIVE if decided else found.word)
    alone = f"p = {min(found.supports, found.contradicts):.2g} alone"
    notes = [found.note, f"{alone}, {p:.2g} after Holm's correction over {len(tested) + 1} primary claims"]
    return replace(
        found, word=word, supports=supports, contradicts=contradicts, primary=True, note="; ".join(filter(None, notes))
    )


def verdicts(claim: Claim, studies: Iterable[StudyCells]) -> list[Verdict]:
    """One for each study that can decide the claim, never pooled; one without a study if none is needed."""
    if claim.documentary:
        return [Verdict(claim.id, DOCUMENTARY, note=claim.documentary)]
    if claim.arithmetic or claim.printed:
        word, note = computed(claim)
        return [Verdict(claim.id, word, note=note)]
    if any(rule.kind == "baseline" for rule in claim.rule):
        return [_by_baselines(claim)]
    return [found for study in studies if (found := verdict(claim, study)) is not None]


def _judged(claim: Claim, rules: Sequence[Rule], study: StudyCells) -> Verdict | None:
    readings = [each for rule in rules for each in readings_of(rule, study)]
    if not readings:
        return None
    decisive = [each for each in readings if decides(each)]
    found = [(each, parts_of(each)) for each in decisive]
    parts = [(each.rule, part) for each, some in found for part in some]
    by_rule = [(rule, [part for of, part in parts if of == rule and part.word not in LEFT_OUT]) for rule in rules]
    tested = [(rule, some) for rule, some in by_rule if some]
    every = tuple(part for _, part in parts)
    word, supports, contradicts, remarks = _word(tested, every)
    notes = [rule.part for rule in [rule for rule, _ in tested] or rules if rule.part]
    notes += [] if decisive else ["decided only at the paper's scale"]
    notes += [f"{len(tested)} of its {len(rules)} rules tested here"] if 0 < len(tested) < len(rules) else []
    notes += tasks_in_words(rules, decisive)
    # What was tested; where nothing was, what would be.
    used = [each for each, some in found if any(part.word not in LEFT_OUT for part in some)] or decisive or readings
    return Verdict(
        claim.id,
        word,
        study.name,
        AT_PAPERS_RATE if all(rule.at == AT_PAPERS_RATE for rule in rules) else TUNED,
        PAPER_SCALE if all(cell.scale == PAPER_SCALE for each in used for cell in each.rows.values()) else REDUCED,
        setting(rules, used),
        covered(rules, used),
        every,
        word not in LEFT_OUT and any(cell.is_exploratory for each in used for cell in each.rows.values()),
        "; ".join(dict.fromkeys([*notes, *remarks])),
        supports,
        contradicts,
        _asked(claim, used),
    )


def _asked(claim: Claim, readings: Sequence[Reading]) -> str:
    """Whether every sweep that is read was run for this claim, and with the rule as it stands now."""
    records = [cell.tables.result for each in readings for cell in each.rows.values() if cell.tables]
    if not records or not all(claim.id in record["asks"] for record in records):
        return ""
    return ASKED if {asked_as(claim, record) for record in records} == {PLANNED} else CHANGED


def _word(tested: Sequence[tuple[Rule, list[Part]]], every: Sequence[Part]) -> tuple[str, float, float, list[str]]:
    """The verdict by the parts of each rule that say something, its p-values, and what is to be said of it."""
    judged = [_combined(rule, parts) for rule, parts in tested]
    if not judged:
        return (NOT_RUN if NOT_RUN in {part.word for part in every} else NOT_TESTED), 1.0, 1.0, []
    supports, contradicts = _all(judged)
    words = {UNFINISHED if part.word == NOT_RUN else part.word for part in every}
    supports = 1.0 if UNFINISHED in words else supports  # not before all parts are there; one of them may contradict
    word = word_of(supports, contradicts, next((word for word in UNDECIDED if word in words), INCONCLUSIVE))
    if word in (SUPPORTED, CONTRADICTED):
        return word, supports, contradicts, []
    lost = ["no contradiction is left after Holm's correction"] if CONTRADICTED in words else []
    needed = sorted((part.test.sd**2 / part.test.n + part.test.noise, part.seeds) for part in every if part.seeds)
    return word, supports, contradicts, [*lost, *(seeds for _, seeds in needed[-1:])]  # the widest needs the most


def _combined(rule: Rule, parts: Sequence[Part]) -> tuple[float, float]:
    """p-values of a rule and of its contrary, over its parts and tasks."""
    tasks = dict.fromkeys(part.task for part in parts)
    found = [_all([(part.supports, part.contradicts) for part in parts if part.task == task]) for task in tasks]
    supports, contradicts = zip(*found, strict=True)
    count = {"all": len(found), "most": len(found) // 2 + 1, "some": 1}[rule.of or "all"]
    return partial_conjunction(supports, count), partial_conjunction(contradicts, len(found) - count + 1)


def _all(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """That all hold, and that one does not: the smallest p after Holm's correction."""
    supports, contradicts = zip(*pairs, strict=True)
    return max(supports), min(1.0, len(pairs) * min(contradicts))


def _by_baselines(claim: Claim) -> Verdict:
    """By each baseline that the claim names."""
    parts = [baseline_verdict(claim, rule, task) for rule in claim.rule for task in rule.tasks]
    words = {word for word, _ in parts}
    word = next((word for word in (CONTRADICTED, NOT_TESTED, INCONCLUSIVE) if word in words), SUPPORTED)
    notes = [*(rule.part for rule in claim.rule if rule.part), *(note for _, note in parts)]
    return Verdict(claim.id, word, note="; ".join(dict.fromkeys(notes)))
