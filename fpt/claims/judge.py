"""Verdicts as data: every contrast of every claim and finding, computed once from the runs, and the words they give.

`runs/verdicts.csv` has a row for each contrast of a claim on a pair: the first study of the pair's list that has it
speaks there, the others are robustness. A row without a pair is the summary of a claim, or (without a claim) of a
finding.
"""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd

from fpt.claims import words
from fpt.claims.arithmetic import computed
from fpt.claims.asked import CHANGED, EXPLORATORY, PLANNED, asked_as
from fpt.claims.case import Case, Comparison, cases_of, decides
from fpt.claims.registry import ALONE, EVERY_RATE, IN_ORDER, WITH_FIRST, entry_of
from fpt.claims.rules import baseline_verdict, comparisons_of, is_likeness
from fpt.claims.verdicts import COLUMNS, FLOORED, NUMBERS, ROBUSTNESS, SPEAKS
from fpt.claims.words import PairTest
from fpt.models import backbone as lookup
from fpt.papers import claims, findings, paper_of, papers, rules_of, table
from fpt.papers.schema import Claim, Finding, Quantifier, Rule
from fpt.results.baselines import best_trivial
from fpt.results.cells import FEW_SEEDS, NOT_RUN_YET, PAPER_SCALE, REDUCED, StudyCells, TableCell, every_study
from fpt.results.contrasts import arm_cell
from fpt.results.pairs import pairs
from fpt.results.runs import find_study
from fpt.results.stats import holm

LABELS = (EXPLORATORY, CHANGED, PLANNED)  # beside a word, the weakest first
# Of several rules the first of these is that of a claim.
STRICTEST: tuple[Quantifier, ...] = ("all", "most", "", "some")
DIFFERENCES = ("beats", "matches", "comparable", "order")  # kinds that compare two rows, each with a limit of its own
NO_STUDY = "no study has its rows"
ITS_OWN_SCALE = "its own scale alone"  # why a claim about the paper's own models has no row
PLAIN = (
    "warmup", "schedule", "head_rate", "weight_decay", "clip", "dropout", "report", "solver", "probe",
    "data_fraction", "shuffle_tokens",
)  # fmt: skip
ODDITY = "O-"  # claims of ours that a printed number is a slip


@dataclass(frozen=True)
class Asked:
    """What is judged: a claim, or the contrast that answers a finding."""

    claim: str
    finding: str
    rules: tuple[Rule, ...]
    asked_by: tuple[Claim, ...]  # claims whose records in the results say that the runs were made for it

    @property
    def of(self) -> Quantifier:
        """The quantifier over pairs: of a likeness always `all`."""
        if self.is_likeness:
            return "all"
        named = {rule.of for rule in self.rules}
        return next(of for of in STRICTEST if of in named)

    def of_contrast(self, contrast: Rule) -> list[Claim]:
        """The claims that ask for this contrast, whatever the limit: of those of a finding, some ask the opposite."""
        wanted = _question(contrast)
        return [each for each in self.asked_by if any(wanted & _question(rule) for rule in each.rule)]

    @property
    def is_likeness(self) -> bool:
        return any(map(is_likeness, self.rules))


@dataclass(frozen=True)
class Evidence:
    """One contrast on one task of one study."""

    contrast: Rule
    case: Case
    comparisons: tuple[Comparison, ...]
    study: str
    pair: str
    planned: str
    role: str = ROBUSTNESS

    @property
    def tested(self) -> list[Comparison]:
        return [comparison for comparison in self.comparisons if not comparison.missing]

    @property
    def is_missing(self) -> bool:
        """Whether it is planned and was not run."""
        return not self.tested and any(comparison.missing == NOT_RUN_YET for comparison in self.comparisons)

    @property
    def cells(self) -> list[TableCell]:
        return list(self.case.rows.values())

    @property
    def steps(self) -> int:
        return max(cell.spec.steps for cell in self.cells if cell.spec)

    @property
    def seeds(self) -> int:
        return shared_seeds(self.cells)

    @property
    def scale(self) -> str:
        return PAPER_SCALE if all(cell.scale == PAPER_SCALE for cell in self.cells) else REDUCED

    @property
    def may_speak(self) -> bool:
        """A constant rate, one for all weights, no weight decay, no warm-up that its row does not name, and enough
        seeds."""
        return bool(self.tested) and all(map(_is_plain, self.cells)) and self.seeds >= FEW_SEEDS

    @property
    def word(self) -> str:
        """Of its comparisons together."""
        return words.of_contrasts([comparison.one_sided for comparison in self.tested]).word

    @property
    def rank(self) -> int | None:
        """The place of its study in the list of those that speak for the pair; None: it is not there."""
        listed = pairs().speakers(self.pair, every_rate=self.case.ats == EVERY_RATE)
        return listed.index(self.study) if self.study in listed else None


@dataclass
class Judge:
    """Reads the results of some studies once for all claims.

    `alone`: a reader's own study, where every contrast that was run speaks, whatever its pair and its seeds.
    """

    studies: Sequence[StudyCells]
    alone: bool = False
    _comparisons: dict[tuple[Rule, str, str], tuple[Comparison, ...]] = field(default_factory=dict, repr=False)
    _floor: dict[tuple[str, str, str], bool] = field(default_factory=dict, repr=False)

    def table(self) -> pd.DataFrame:
        """Every row, in the order of papers, claims and findings."""
        rows = []
        for paper in papers().values():
            rows += self._of_paper([claim for claim in paper.claims.values() if self._reads(claim)])
        for finding in findings().values():
            rows += self.of_finding(finding)
        return pd.DataFrame(rows, columns=list(COLUMNS))

    def _reads(self, claim: Claim) -> bool:
        """A reader's own study changes nothing about what is computed without runs."""
        without_runs = claim.arithmetic or bool(claim.printed) or any(rule.kind == "baseline" for rule in claim.rule)
        return not (self.alone and without_runs)

    def of_finding(self, finding: Finding) -> list[dict[str, Any]]:
        if finding.read:
            return [_summary("", finding.id, word=words.READ, note=finding.read)]
        by = [claims()[name] for name in dict.fromkeys([*([finding.by] if finding.by else []), *finding.claims])]
        return self._rows(Asked("", finding.id, rules_of(finding), tuple(by)))

    def of_claim(self, claim: Claim) -> list[dict[str, Any]]:
        """The rows of one claim, its summary first; a primary claim's is not corrected for the others here."""
        finding = next((found.id for found in findings().values() if claim.id in found.claims), "")
        if claim.documentary:
            return [_summary(claim.id, finding, word=words.READ, note=claim.documentary)]
        if claim.arithmetic or claim.printed:
            holds, note = computed(claim)
            return [_summary(claim.id, finding, word=in_print(claim, holds), note=note)]
        if any(rule.kind == "baseline" for rule in claim.rule):
            word, note = _by_baselines(claim)
            return [_summary(claim.id, finding, word=word, note=note)]
        return self._rows(Asked(claim.id, finding, claim.rule, (claim,)))

    def _of_paper(self, of_paper: Sequence[Claim]) -> list[dict[str, Any]]:
        """The rows of a paper's claims; its primary claims are corrected together."""
        found = {claim.id: self.of_claim(claim) for claim in of_paper}
        primary = [claim.id for claim in of_paper if claim.primary]
        alone = [found[name][0]["p"] for name in primary]
        corrected = holm([1.0 if math.isnan(p) else p for p in alone])
        for name, p, before in zip(primary, corrected, alone, strict=True):
            summary = found[name][0]
            if not math.isnan(before):
                summary |= {"p": p, "word": words.after_correction(summary["word"], p)}
                if len(primary) > 1:
                    summary["note"] += f"; p = {before:.2g} alone, {p:.2g} among {len(primary)} primary claims (Holm)"
        return [row for rows in found.values() for row in rows]

    def _rows(self, asked: Asked) -> list[dict[str, Any]]:
        """The summary of a claim or finding that runs decide, and a row a contrast."""
        contrasts = [contrast for rule in asked.rules for contrast in contrasts_of(rule)]
        evidence = self._with_roles([each for contrast in contrasts for each in self._of(asked, contrast)])
        shown = [_row(asked, each, comparison, evidence) for each in evidence for comparison in each.tested]
        return [self._summed(asked, evidence), *sorted(shown, key=_order)]

    def _of(self, asked: Asked, contrast: Rule) -> Iterable[Evidence]:
        """A contrast in every study that has it."""
        for study in self.studies:
            for case in cases_of(contrast, study):
                if decides(case):
                    yield Evidence(
                        contrast,
                        case,
                        comparisons=self._tested(contrast, case, study.name),
                        study=study.name,
                        pair=pair_of(case),
                        planned=planned_word(asked.of_contrast(contrast), case),
                    )

    def _tested(self, contrast: Rule, case: Case, study: str) -> tuple[Comparison, ...]:
        """Its comparisons, computed once: claims and findings share contrasts."""
        key = (contrast, study, case.task)
        if key not in self._comparisons:
            self._comparisons[key] = tuple(comparisons_of(case))
        return self._comparisons[key]

    def _with_roles(self, evidence: Sequence[Evidence]) -> list[Evidence]:
        """The first study in the list of a pair that may speak does so for a contrast on it."""
        best: dict[tuple[Rule, str], Evidence] = {}
        for each in sorted(filter(self._may_speak, evidence), key=lambda each: each.rank or 0):
            best.setdefault((each.contrast, each.pair), each)
        roles = {id(each): FLOORED if self._at_floor(each) else SPEAKS for each in best.values()}
        return [replace(each, role=roles.get(id(each), ROBUSTNESS)) for each in evidence]

    def _may_speak(self, evidence: Evidence) -> bool:
        if self.alone:
            return bool(evidence.tested)
        return evidence.may_speak and evidence.rank is not None

    def _at_floor(self, evidence: Evidence) -> bool:
        """Whether the best arm of the study on this task is not above what needs no look at most of an example."""
        key = (evidence.study, evidence.case.task, evidence.case.variant)
        if key not in self._floor:
            study = next(each for each in self.studies if each.name == evidence.study)
            self._floor[key] = at_floor(study, *key[1:])
        return self._floor[key]

    def _summed(self, asked: Asked, evidence: Sequence[Evidence]) -> dict[str, Any]:
        """The word of a claim over its pairs, with the counts."""
        speaking = [each for each in evidence if each.role == SPEAKS]
        paper_scale = [each for each in speaking if each.scale == PAPER_SCALE]
        speaking = paper_scale or speaking
        names = sorted({each.pair for each in speaking})
        tests = [_pair_test(asked, [each for each in evidence if each.pair == name]) for name in names]
        floor = {each.pair for each in evidence if each.role == FLOORED} - {*names}
        missing = {each.pair for each in evidence if each.is_missing and each.pair in pairs().pairs} - {*names} - floor
        word = words.claim_word(tests, asked.of, asked.is_likeness)
        if not tests and floor:
            word = words.AT_FLOOR
        if tests or floor:
            note = _counts(tests, len(floor), len(missing))
        elif any(rule.only_paper_scale or rule.kind == "near" for rule in asked.rules):
            note = ITS_OWN_SCALE
        else:
            note = _why_not_run(evidence)
        scale = PAPER_SCALE if paper_scale else REDUCED
        p = words.two_sided(*words.over_pairs(tests, asked.of)) if tests else math.nan
        return _summary(
            asked.claim,
            asked.finding,
            word=words.at_papers_scale(word) if paper_scale else word,
            p=p,
            scale=scale if speaking else "",
            planned=_worst(each.planned for each in speaking),
            note=note,
            contrast="; ".join(dict.fromkeys(rule.part for rule in asked.rules if rule.part)),
        )


def contrasts_of(rule: Rule) -> list[Rule]:
    """A rule as rules of one contrast each, so that each may be read in the study that speaks for it."""
    first, *others = rule.rows
    apart: dict[str, list[tuple[str, ...]]] = {
        WITH_FIRST: [(first, other) for other in others],
        IN_ORDER: list(pairwise(rule.rows)),
        ALONE: [(row,) for row in rule.rows],
    }
    return [rule.model_copy(update={"rows": rows}) for rows in apart.get(entry_of(rule.kind).splits, [rule.rows])]


def _question(rule: Rule) -> set[tuple[str, ...]]:
    """What a rule compares, whatever the limit: what is measured at which rates, and the models of two rows, the one
    that is to be above first; of one row, where it is compared with itself."""
    if not rule.table:
        return set()
    read = table(rule.table)
    fields = [json.dumps(paper_of(read.paper).rows[row].fields, sort_keys=True) for row in rule.rows]
    of_kind = "difference" if rule.kind in DIFFERENCES else rule.kind
    if rule.kind == "order":
        sides = {(above, under) for under, above in pairwise(fields)}
    else:
        sides = {(fields[0], other) for other in fields[1:] or [""]}
    return {(of_kind, read.kind, rule.at, *both) for both in sides}


def pair_of(case: Case) -> str:
    """The pair of the first row with a backbone."""
    names = [cell.spec.backbone for cell in case.rows.values() if cell.spec]
    return pairs().name(next((name for name in names if name != "none"), names[0]), case.task)


def shared_seeds(cells: Iterable[TableCell]) -> int:
    """How many seeds all of these arms have: as many pairs there are."""
    return len(set.intersection(*({*cell.tables.runs["seed"]} if cell.tables else set() for cell in cells)))


def planned_word(asked_by: Sequence[Claim], case: Case) -> str:
    """Whether the sweeps that are read were run for one of these claims, and with its rule as it stands now."""
    records = [cell.tables.result for cell in case.rows.values() if cell.tables]
    found = EXPLORATORY
    if shared_seeds(case.rows.values()) < FEW_SEEDS:
        return found
    for claim in asked_by:
        given = {asked_as(claim, record) for record in records}
        if given == {PLANNED}:
            return PLANNED
        if EXPLORATORY not in given:
            found = CHANGED
    return found


def _is_plain(cell: TableCell) -> bool:
    """Whether recipe and data are those that its paper, its row and its task name, else the defaults."""
    if cell.spec is None:
        return True
    paper = cell.paper
    named = {**paper.defaults, **paper.tasks.get(cell.task, {}), **cell.table.named(cell.row, cell.task, paper)}
    fields = type(cell.spec).model_fields
    return all(getattr(cell.spec, name) == named.get(name, fields[name].default) for name in PLAIN)


def at_floor(study: StudyCells, task: str, variant: str) -> bool:
    """Whether no arm of a study on a task is above the best trivial baseline, by 95%, each arm tuned."""
    floor = best_trivial(task, variant)
    if floor is None:
        return False
    lows = []  # nan with one seed, which has no interval and so cannot be told from the floor either way
    for sweep in study.results.values():
        if (sweep.spec.task, sweep.spec.variant) == (task, variant):
            cell = arm_cell(sweep, sweep.spec.folder_name, study.name)
            lows.append(cell.interval(noise=floor.standard_error**2)[1])
    known = [low for low in lows if not math.isnan(low)]
    return bool(known) and max(known) <= floor.share


def in_print(claim: Claim, holds: bool | None) -> str:
    """The word of a claim that no run decides: whether what is printed is consistent, or a slip."""
    if holds is None:
        return words.READ
    is_slip = holds if claim.id.startswith(ODDITY) else not holds
    return words.SLIP if is_slip else words.CONSISTENT


def _by_baselines(claim: Claim) -> tuple[str, str]:
    """By each baseline that the claim names: one that is off contradicts it."""
    found = [baseline_verdict(claim, rule, task) for rule in claim.rule for task in rule.tasks]
    given = {word for word, _ in found}
    word = next((word for word in (words.SLIP, words.READ, words.TOO_CLOSE) if word in given), words.CONSISTENT)
    return word, "; ".join(dict.fromkeys(note for _, note in found))


def _pair_test(asked: Asked, evidence: Sequence[Evidence]) -> PairTest:
    """All contrasts of a claim on one pair. Nothing is for the claim while one of them is planned and not run, or while
    a rule has some of its contrasts there and not the others."""
    speaking = [each for each in evidence if each.role == SPEAKS]
    found = words.of_contrasts([comparison.one_sided for each in speaking for comparison in each.tested])
    spoken = {each.contrast for each in speaking}
    missing = {each.contrast for each in evidence if each.is_missing} - spoken
    parts = [set(contrasts_of(rule)) for rule in asked.rules]
    in_part = any(part & spoken and not part <= spoken for part in parts)
    return PairTest(1.0, found.p_against, found.unreachable) if missing or in_part else found


def _counts(tests: Sequence[PairTest], floor: int, missing: int) -> str:
    """4 for, 0 against, 3 open, 1 at floor, 2 not run."""
    notes = [words.counts(tests)] if tests else []
    notes += [f"{floor} {words.AT_FLOOR}"] if floor else []
    notes += [f"{missing} {words.NOT_RUN}"] if missing else []
    return ", ".join(notes)


def _why_not_run(evidence: Sequence[Evidence]) -> str:
    """The studies that would decide and were not run; where all were, why none of them does."""
    if studies := sorted({each.study for each in evidence if each.is_missing}):
        return f"not run: {', '.join(studies)}"
    found = dict.fromkeys(
        f"{each.study}: {comparison.note}" for each in evidence for comparison in each.comparisons if comparison.missing
    )
    return "; ".join(found) or NO_STUDY


def _worst(planned: Iterable[str]) -> str:
    found = set(planned)
    return next((word for word in LABELS if word in found), "")


def _summary(claim: str, finding: str, **fields: Any) -> dict[str, Any]:
    empty: dict[str, Any] = dict.fromkeys(COLUMNS, "")
    return empty | dict.fromkeys(NUMBERS, math.nan) | {"claim": claim, "finding": finding} | fields


def _by_steps(speaks: Evidence, evidence: Sequence[Evidence]) -> list[str]:
    """Where other studies of the pair that may speak have another word after other steps: what they say."""
    if speaks.role != SPEAKS:
        return []
    others = [each for each in evidence if (each.contrast, each.pair) == (speaks.contrast, speaks.pair)]
    moved = [each for each in others if each.may_speak and each.steps != speaks.steps and each.word != speaks.word]
    said = [f"{each.word} after {each.steps:,} in {each.study}" for each in moved]
    return [f"depends on steps: {', '.join(said)}"] if said else []


def _row(asked: Asked, evidence: Evidence, comparison: Comparison, others: Sequence[Evidence]) -> dict[str, Any]:
    case = evidence.case
    numbers: dict[str, Any] = {}
    if (estimate := comparison.estimate) is not None:
        numbers = {"unit": comparison.unit, **dict(zip(("estimate", "low", "high"), estimate, strict=True))}
    one = comparison.one_sided
    spec = next(cell.spec for cell in evidence.cells if cell.spec)
    at = comparison.at or (case.rates_in_words(case.ats) if case.ats else "every rate")
    return _summary(
        asked.claim,
        asked.finding,
        pair=evidence.pair,
        role=evidence.role,
        study=evidence.study,
        backbone=spec.backbone,
        layers=_layers(spec.backbone, spec.backbone_options),
        task=case.task,
        steps=evidence.steps,
        budget=comparison.budget or evidence.steps,
        seeds=evidence.seeds,
        at=at,
        contrast=comparison.label,
        least=comparison.limits[0],
        most=comparison.limits[1],
        p=words.two_sided(one.p_for, one.p_against),
        word=comparison.word,
        scale=evidence.scale,
        planned=evidence.planned,
        note="; ".join(filter(None, [comparison.note, *_by_steps(evidence, others)])),
        **numbers,
    )


def _layers(backbone: str, options: Any) -> int:
    return int(options.get("layers") or lookup(backbone).layers)


def _order(row: dict[str, Any]) -> tuple[Any, ...]:
    """Pairs by name; what speaks before robustness, the longest first."""
    return row["pair"], row["role"] == ROBUSTNESS, -row["steps"], row["study"]


def judge(root: Path | None = None, study: str = "") -> pd.DataFrame:
    """The table of verdicts: from all published results, or from the reader's own runs of one study.

    A study that cannot be read is left out: a warning names it. Raises SpecError for an unknown study.
    """
    if study:
        return Judge([StudyCells(find_study(study, root), "own")], alone=True).table()
    return Judge(every_study(root, "published", planned=True)).table()
