"""Verdicts as data: every contrast of every claim and finding, computed once from the runs, and the words they give.

`judged` reads each single rule of a question, a claim or a finding, in every study that has its rows: that is
`Evidence`, and on this question an `Answer`. A `Verdict` weighs the answers: the first study of a pair's list that has
one speaks (fpt/results/pairs.yaml), and the others are robustness; what speaks on a pair is joined, and then the pairs.
Its rows are those of the files of fpt.claims.verdicts.
"""

import hashlib
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from fpt.claims import words
from fpt.claims.arithmetic import is_computed, without_runs
from fpt.claims.asked import HOW_PLANNED, claims_that_ask, planned_word
from fpt.claims.case import Case, Comparison, backbone_of, cases_of, pairs_not_run
from fpt.claims.rules import EVERY_RATE, comparisons_of, is_likeness, rates_of, single_rules
from fpt.claims.verdicts import COLUMNS, DECADES, FLOORED, NUMBERS, ROBUSTNESS, SPEAKS
from fpt.papers import claims, findings, papers, rules_of
from fpt.papers.schema import Claim, Finding, Quantifier, Rule
from fpt.results.arm import Arm, remembered
from fpt.results.baselines import best_trivial
from fpt.results.cells import FEW_SEEDS, StudyCells, TableCell, every_study
from fpt.results.estimate import NATS, POINTS, SHARE, TIMES
from fpt.results.pairs import pairs
from fpt.results.runs import BEFORE, find_study
from fpt.results.stats import POINT
from fpt.sweeps.row_on_task import PAPER_SCALE, REDUCED
from fpt.sweeps.spec import SweepSpec, fields_of
from fpt.training.recipe import Recipe

# Of several rules the first of these is that of a claim.
STRICTEST: tuple[Quantifier, ...] = ("all", "most", "", "some")
NO_STUDY = "no study has its rows"
ITS_OWN_SCALE = "its own scale alone"  # why a claim about the paper's own models has no row
# What a recipe and its data are where nothing is said of them; arms of other batches are compared alike.
OF_RECIPE = {*Recipe.model_fields} - fields_of("budget") - {"batch_size"}
PLAIN = {name: SweepSpec.model_fields[name].default for name in OF_RECIPE | fields_of("data")}
EMPTY: dict[str, Any] = dict.fromkeys(COLUMNS, "") | dict.fromkeys(NUMBERS, math.nan)

Question = Claim | Finding


def judge(root: Path | None = None, study: str = "") -> pd.DataFrame:
    """The table of verdicts: from all published results, or from the reader's own runs of one study.

    A study that cannot be read is left out: a warning names it. Raises SpecError for an unknown study.
    """
    if study:
        return judged([StudyCells(find_study(study, root), "own")], every_question(by_runs=True), alone=True)
    return judged(every_study(root, "published", planned=True), every_question())


def every_question(by_runs: bool = False) -> list[Question]:
    """Every claim, in the order of papers, and then every finding; `by_runs`: without claims that are computed, about
    which a reader's own study says nothing."""
    of_papers = [claim for paper in papers().values() for claim in paper.claims.values()]
    return [*(claim for claim in of_papers if not (by_runs and is_computed(claim))), *findings().values()]


def judged(studies: Sequence[StudyCells], questions: Sequence[Question], alone: bool = False) -> pd.DataFrame:
    """The rows of claims and findings, each summary before its contrasts.

    `alone`: a reader's own study, where every contrast that was run speaks, whatever its pair and its seeds.
    """

    @cache  # claims and findings share rules
    def read(rule: Rule) -> tuple[list[Evidence], list[tuple[str, str]]]:
        found = [each for study in studies for each in evidence_of(rule, study, alone)]
        return found, [(study.name, pair) for study in studies for pair in pairs_not_run(rule, study)]

    rows = []
    for question in questions:
        if known := without_runs(question):
            word, note = known
            rows.append(EMPTY | named(question) | {"word": word, "note": note})
            continue
        answers, not_run = list[Answer](), list[NotRun]()
        for part, rule in enumerate(rules_for(question)):
            for single in single_rules(rule):
                name, asking = name_of(part, single), claims_that_ask(single, asked_by(question))
                found, lacking = read(single.model_copy(update=dict.fromkeys(("of", "part", "words"), "")))
                answers += [Answer(name, each, planned_word(asking, each.case, each.seeds)) for each in found]
                not_run += [NotRun(name, pair, study) for study, pair in lacking]
        rows += Verdict(question, answers, not_run).rows()
    return pd.DataFrame(rows, columns=list(COLUMNS))


def rules_for(question: Question) -> tuple[Rule, ...]:
    return question.rule if isinstance(question, Claim) else rules_of(question)


def named(question: Question) -> dict[str, str]:
    """Its columns: which claim or finding it is, and of a claim the finding that has it."""
    if isinstance(question, Finding):
        return {"claim": "", "finding": question.id}
    owner = next((each.id for each in findings().values() if question.id in each.claims), "")
    return {"claim": question.id, "finding": owner}


def asked_by(question: Question) -> list[Claim]:
    """The claims whose records in the results say that the runs were made for a question."""
    if isinstance(question, Claim):
        return [question]
    return [claims()[name] for name in dict.fromkeys([*filter(None, [question.by]), *question.claims])]


def name_of(part: int, single: Rule) -> str:
    """The name of a single rule in its question: of which of the question's rules it is, and its rows."""
    return f"{part}: {' and '.join(single.rows)}"


# --- a single rule in one study


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a study says of a single rule on one task, whichever question asks for it.

    `seeds`: those that all of its arms have, as many pairs as there are. `rank`: the place of the study among those
    that speak for the pair; None: it is not among them. `is_sound`: its recipe is plain, and its seeds are enough.
    `at_floor`: no arm of the study is above the floor on this task.
    """

    study: str
    case: Case
    comparisons: Sequence[Comparison]
    pair: str
    seeds: int
    rank: int | None
    is_sound: bool
    at_floor: bool

    @property
    def tested(self) -> list[Comparison]:
        return [each for each in self.comparisons if each.tested]

    @property
    def may_speak(self) -> bool:
        return self.is_sound and self.rank is not None and bool(self.tested)

    @property
    def steps(self) -> int:
        return max(arm.budgets[-1] for arm in self.case.arms.values())

    @property
    def scale(self) -> str:
        is_papers = all(cell.scale == PAPER_SCALE for cell in self.case.rows.values())
        return PAPER_SCALE if is_papers else REDUCED


class Answer(NamedTuple):
    """Evidence on a question: by the name of the question's single rule (`name_of`), and whether the runs were
    `planned` for the question."""

    of_rule: str
    evidence: Evidence
    planned: str


class NotRun(NamedTuple):
    """A single rule of a question that a study plans on a pair, and has not run yet."""

    of_rule: str
    pair: str
    study: str


def evidence_of(single: Rule, study: StudyCells, alone: bool = False) -> list[Evidence]:
    """What a study says of a single rule on each of its tasks."""
    found = []
    for case in cases_of(single, study):
        arms = list(case.arms.values())
        backbone = backbone_of([arm.fields["backbone"] for arm in arms])
        pair = next(arm.pair for arm in arms if arm.fields["backbone"] == backbone)
        seeds = len(set.intersection(*({*arm.runs["seed"]} for arm in arms)))
        is_sound = alone or (seeds >= FEW_SEEDS and all(map(_is_plain, case.rows.values())))
        rank = 0 if alone else rank_of(study.name, pair, rates_of(single) == EVERY_RATE)
        low = at_floor(study, case.task, case.any_cell.arm.variant)
        found.append(Evidence(study.name, case, comparisons_of(case), pair, seeds, rank, is_sound, low))
    return found


def rank_of(study: str, pair: str, every_rate: bool) -> int | None:
    """The place of a study in the list of those that speak for a pair; `every_rate`: for what is read on a whole
    grid."""
    listed = pairs().speakers(pair, every_rate=every_rate)
    return listed.index(study) if study in listed else None


def _is_plain(cell: TableCell) -> bool:
    """Whether recipe and data are those that its paper, its row and its task name, else the defaults."""
    paper, task, fields = cell.paper, cell.task, BEFORE | cell.arm.fields
    said = {**paper.defaults, **paper.tasks.get(task, {}), **cell.table.named(cell.row, task, paper)}
    return all(fields[name] == said.get(name, PLAIN[name]) for name in PLAIN)


def at_floor(study: StudyCells, task: str, variant: str) -> bool:
    """Whether no arm of a study on a task is above the best trivial baseline, by 95%, each arm tuned."""
    floor = best_trivial(task, variant)
    if floor is None:
        return False
    arms = [arm for arm in study.results.values() if (arm.task, arm.variant) == (task, variant)]
    # nan with one seed, which has no interval and so cannot be told from the floor either way
    lows = [low for arm in arms if not math.isnan(low := _low(arm, floor.standard_error**2))]
    return bool(lows) and max(lows) <= floor.share


@remembered
def _low(arm: Arm, noise: float) -> float:
    return arm.estimate(noise=noise).low


# --- all of the answers to a question


class PairWord(NamedTuple):
    """What a question comes to on a pair, and which of its single rules are `lacking` there, so that nothing is for
    it."""

    p_for: float
    p_against: float
    lacking: str

    @property
    def word(self) -> str:
        return words.pair_word(self.p_for, self.p_against)


@dataclass(frozen=True)
class Verdict:
    """The answers to a question, weighed; and what of it was not run."""

    question: Question
    answers: Sequence[Answer]
    not_run: Sequence[NotRun]

    @cached_property
    def speakers(self) -> dict[tuple[str, str], Answer]:
        """By rule and pair what speaks there: of the studies that may, the first of the pair's list."""
        found: dict[tuple[str, str], Answer] = {}
        may_speak = (each for each in self.answers if each.evidence.may_speak)
        for each in sorted(may_speak, key=lambda each: each.evidence.rank or 0):
            found.setdefault((each.of_rule, each.evidence.pair), each)
        return found

    def role(self, each: Answer) -> str:
        """On its pair a rule says nothing where no arm of the study that would speak is above the floor."""
        if self.speakers.get((each.of_rule, each.evidence.pair)) is not each:
            return ROBUSTNESS
        return FLOORED if each.evidence.at_floor else SPEAKS

    @cached_property
    def deciding(self) -> list[Answer]:
        """Of what speaks, that of the paper's own scale decides, if there is any."""
        speaks = [each for each in self.answers if self.role(each) == SPEAKS]
        return [each for each in speaks if each.evidence.scale == PAPER_SCALE] or speaks

    @cached_property
    def by_pair(self) -> dict[str, PairWord]:
        found = {}
        for pair in sorted({each.evidence.pair for each in self.deciding}):
            here = [each for each in self.deciding if each.evidence.pair == pair]
            lacking, (p_for, p_against) = self._lacking(pair, {each.of_rule for each in here}), joined(here)
            found[pair] = PairWord(1.0 if lacking else p_for, p_against, lacking)
        return found

    def _lacking(self, pair: str, spoken: set[str]) -> str:
        """The single rules that lack on a pair: planned and not run, or of a rule of which others are there."""
        missing = {each.of_rule for each in self.not_run if each.pair == pair} - spoken
        for part, rule in enumerate(rules_for(self.question)):
            parts = {name_of(part, single) for single in single_rules(rule)}
            missing |= parts - spoken if parts & spoken else set()
        return "; ".join(sorted(missing))

    def other_steps(self, ours: Answer) -> str:
        """Beside what speaks, the other words that sound studies of the pair have after other steps."""
        by_steps: dict[tuple[str, int], list[Answer]] = {}
        for each in self.answers:
            read, is_alike = each.evidence, (each.of_rule, each.evidence.pair) == (ours.of_rule, ours.evidence.pair)
            if is_alike and read.is_sound and read.tested:
                by_steps.setdefault((read.study, read.steps), []).append(each)
        said = {steps: words.pair_word(*joined(by_steps[steps])) for steps in sorted(by_steps)}
        own = said[ours.evidence.study, ours.evidence.steps]
        others = {each: word for each, word in said.items() if each[1] != ours.evidence.steps and word != own}
        return ", ".join(f"{word} after {steps:,} in {study}" for (study, steps), word in others.items())

    def rows(self) -> list[dict[str, Any]]:
        """The summary, and a row a comparison: pairs by name; what speaks before robustness, the longest first."""
        same = {"quantifier": quantifier(rules_for(self.question)), **named(self.question)}
        contrasts = [
            EMPTY | columns_of(each.evidence, comparison) | self._weight(each) | same
            for each in sorted(self.answers, key=self._place)
            for comparison in each.evidence.tested
        ]
        return [EMPTY | same | self.summary, *contrasts]

    def _place(self, each: Answer) -> tuple[Any, ...]:
        read = each.evidence
        return read.pair, self.role(each) == ROBUSTNESS, -read.steps, read.study

    def _weight(self, each: Answer) -> dict[str, str]:
        """The columns of what an answer counts for."""
        role, decides, pair = self.role(each), each in self.deciding, each.evidence.pair
        return {
            "planned": each.planned,
            "role": role,
            "other_steps": self.other_steps(each) if role == SPEAKS else "",
            "pair_word": self.by_pair[pair].word if decides else "",
            "lacking": self.by_pair[pair].lacking if decides else "",
        }

    @property
    def summary(self) -> dict[str, Any]:
        """The word over the pairs, with the counts."""
        rules, pair_words = rules_for(self.question), self.by_pair.values()
        found: dict[str, Any] = {"contrast": "; ".join(dict.fromkeys(rule.part for rule in rules if rule.part))}
        floor = {each.evidence.pair for each in self.answers if self.role(each) == FLOORED} - {*self.by_pair}
        if not pair_words and not floor:
            return found | {"word": words.NOT_RUN, "note": self._why_not_run()}
        word = words.AT_FLOOR
        if pair_words:
            p_for, p_against = words.over_pairs(
                [each.p_for for each in pair_words], [each.p_against for each in pair_words], quantifier(rules)
            )
            word = words.claim_word(p_for, p_against)
            weakest = min((each.planned for each in self.deciding), key=HOW_PLANNED.index)
            found |= {
                "p_for": p_for,
                "p_against": p_against,
                "scale": self.deciding[0].evidence.scale,
                "planned": weakest,
            }
        listed = {each.pair for each in self.not_run} & {*pairs().pairs}
        counts = _counts([each.word for each in pair_words], len(floor), len(listed - {*self.by_pair} - floor))
        return found | {"word": word, "note": counts}

    def _why_not_run(self) -> str:
        """The studies that would decide and were not run; where all were, why none of them does."""
        if any(rule.of_own_scale for rule in rules_for(self.question)):
            return ITS_OWN_SCALE
        if self.not_run:
            return f"not run: {', '.join(sorted({each.study for each in self.not_run}))}"
        read = [each.evidence for each in self.answers]
        silent = [f"{each.study}: {why.note}" for each in read for why in each.comparisons if not why.tested]
        return "; ".join(dict.fromkeys(silent)) or NO_STUDY


def joined(answers: Iterable[Answer]) -> tuple[float, float]:
    """p for and p against of all comparisons together."""
    tested = [comparison for each in answers for comparison in each.evidence.tested]
    return words.of_comparisons([each.supports for each in tested], [each.contradicts for each in tested])


def quantifier(rules: Sequence[Rule]) -> Quantifier:
    """How a claim goes over pairs: a likeness is always one of all."""
    if any(map(is_likeness, rules)):
        return "all"
    named = {rule.of for rule in rules}
    return next(of for of in STRICTEST if of in named)


def _counts(of_pairs: Sequence[str], floor: int, missing: int) -> str:
    """4 for, 0 against, 3 open, 1 at floor, 2 not run."""
    notes = [words.counts(of_pairs)] if of_pairs else []
    notes += [f"{floor} {words.AT_FLOOR}"] if floor else []
    notes += [f"{missing} {words.NOT_RUN}"] if missing else []
    return ", ".join(notes)


# --- a comparison as the files have it


def columns_of(evidence: Evidence, comparison: Comparison) -> dict[str, Any]:
    """The columns of a comparison, read as its claim reads it; `sign` -1: the file has the second minus the first."""
    case, ats = evidence.case, rates_of(evidence.case.rule)
    at = comparison.at or (case.rates_in_words(ats) if ats else "every rate")
    budget, sides = comparison.budget or evidence.steps, (_side(comparison.plus), _side(comparison.minus))
    of_sweeps = bool(comparison.minus) and {*comparison.minus} <= {*case.sweeps(case.rows)}
    sign = -1 if of_sweeps and sides[0] > sides[1] and " and " not in at else 1
    key = "|".join([evidence.study, case.task, comparison.of, *sides[::sign], at, str(budget)])
    first = next(iter(case.arms.values()))
    return {
        "id": hashlib.sha256(key.encode()).hexdigest()[:8],
        "study": evidence.study,
        "pair": evidence.pair,
        "backbone": first.fields["backbone"],
        "layers": first.layers,
        "task": case.task,
        "steps": evidence.steps,
        "scale": evidence.scale,
        "of": comparison.of,
        "first": sides[0],
        "second": sides[1],
        "at": at,
        "budget": budget,
        "seeds": evidence.seeds,
        "contrast": comparison.label,
        "sign": sign,
        "sided": "one" if comparison.likeness else "two",
        "p_for": comparison.supports,
        "p_against": comparison.contradicts,
        "word": comparison.word,
        "note": comparison.note,
        **numbers_of(comparison),
    }


def _decades(ratio: float) -> float:
    return math.log10(ratio) if ratio > 0 else ratio if math.isnan(ratio) else -math.inf


UNITS: dict[str, tuple[str, Callable[[float], float]]] = {  # of estimates, as the file has them
    SHARE: (POINTS, lambda share: share / POINT),
    TIMES: (DECADES, _decades),
}


def numbers_of(comparison: Comparison) -> dict[str, Any]:
    """The estimate of a comparison, with the claim's limits, as the file has them: shares in points, ratios in log10.
    What an estimate varies by is there where it is paired by seed."""
    found = comparison.estimate
    unit, scaled = UNITS.get(found.unit, (found.unit, float))
    limits = comparison.limits
    numbers = {
        **dict(zip(("level_first", "level_second"), map(scaled, comparison.levels), strict=True)),
        **dict(zip(("least", "most"), map(scaled, limits) if limits else (0.0, math.inf), strict=True)),
    }
    if not math.isfinite(found.value) or (found.unit == TIMES and not found.value):
        return numbers | {"unit": ""}
    numbers |= dict(zip(("estimate", "low", "high"), map(scaled, (found.value, *found.interval)), strict=True))
    if found.unit not in (SHARE, NATS):
        return numbers | {"unit": unit, "p": found.p}
    square = scaled(1.0) ** 2
    variances = {"seed_variance": square * found.seed_variance, "test_variance": square * found.test_variance}
    return numbers | {"unit": unit, "p": found.p, "seeds": found.n, "df": found.df, **variances}


def _side(sweeps: Iterable[str]) -> str:
    return " + ".join(sorted(sweeps))
