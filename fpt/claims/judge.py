"""Verdicts as data: every contrast of every claim and finding, computed once from the runs, and the words they give.

One table has a row for each contrast of a claim in a study. The first study of a pair's list that has it speaks
(fpt/results/pairs.yaml), and the others are robustness; what speaks on a pair is joined, and then the pairs of a claim.
fpt.claims.verdicts has the files.
"""

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar, cast

import pandas as pd

from fpt.claims import words
from fpt.claims.arithmetic import computed
from fpt.claims.asked import CHANGED, EXPLORATORY, LABELS, PLANNED, asked_as
from fpt.claims.case import Case, Comparison, cases_of, decides, sweep_of
from fpt.claims.registry import EVERY_RATE, SPLITS, entry_of
from fpt.claims.rules import baseline_verdict, comparisons_of, is_likeness
from fpt.claims.verdicts import COLUMNS, FLOORED, NUMBERS, ROBUSTNESS, SPEAKS
from fpt.models import backbone as lookup
from fpt.papers import claims, findings, paper_of, papers, rules_of, table
from fpt.papers.schema import Claim, Finding, Quantifier, Rule
from fpt.results.baselines import best_trivial
from fpt.results.cells import FEW_SEEDS, NOT_RUN_YET, PAPER_SCALE, REDUCED, StudyCells, TableCell, every_study
from fpt.results.pairs import pairs
from fpt.results.runs import find_study
from fpt.results.stats import MINIMUM_PAIRS

T = TypeVar("T")
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
INSIDE = ("rule", "missing", "is_sound", "rank", "at_floor", "label")  # columns that no file has
CONTRAST = ["claim", "finding", "rule", "pair"]  # the columns that name one
UNLISTED = -1  # the rank of a study that does not speak for a pair


@dataclass
class Judge:
    """Reads the results of some studies once for all claims.

    `alone`: a reader's own study, where every contrast that was run speaks, whatever its pair and its seeds.
    """

    studies: Sequence[StudyCells]
    alone: bool = False
    _known: dict[tuple[Any, ...], Any] = field(default_factory=dict, repr=False)  # claims and findings share contrasts

    def table(self) -> pd.DataFrame:
        """Every claim, in the order of papers, and then every finding."""
        of_papers = [claim for paper in papers().values() for claim in paper.claims.values()]
        return self.judged([claim for claim in of_papers if self._reads(claim)], list(findings().values()))

    def judged(self, given: Sequence[Claim], asked: Sequence[Finding] = ()) -> pd.DataFrame:
        """The rows of claims and findings, each summary before its contrasts."""
        evidence, said = list[dict[str, Any]](), dict[tuple[str, str], dict[str, Any] | None]()
        for claim in given:
            key = (claim.id, next((found.id for found in findings().values() if claim.id in found.claims), ""))
            said[key] = without_runs(claim)
            if said[key] is None:
                evidence += self._evidence(*key, claim.rule, [claim])
        for finding in asked:
            said["", finding.id] = {"word": words.READ, "note": finding.read} if finding.read else None
            if not finding.read:
                by = dict.fromkeys([*([finding.by] if finding.by else []), *finding.claims])
                evidence += self._evidence("", finding.id, rules_of(finding), [claims()[name] for name in by])
        rows = with_roles(pd.DataFrame(evidence, columns=list(dict.fromkeys([*COLUMNS, *INSIDE]))))
        of_key = dict(list(rows.groupby(["claim", "finding"], sort=False)))
        rules = {claim.id: claim.rule for claim in given} | {each.id: rules_of(each) for each in asked if not each.read}
        parts = []
        for key, known in said.items():
            found = of_key.get(key, rows.iloc[:0]).copy()
            word = summed(rules[key[0] or key[1]], found) if known is None else known
            parts += [pd.DataFrame([_summary(*key, **word)]), _shown(found)]
        return pd.concat([part for part in parts if len(part)], ignore_index=True)[list(COLUMNS)]

    def _reads(self, claim: Claim) -> bool:
        """A reader's own study changes nothing about what is computed without runs."""
        without_runs = claim.arithmetic or bool(claim.printed) or any(rule.kind == "baseline" for rule in claim.rule)
        return not (self.alone and without_runs)

    def _evidence(
        self, claim: str, finding: str, rules: Sequence[Rule], asked_by: Sequence[Claim]
    ) -> Iterator[dict[str, Any]]:
        """A row for each contrast of a question in every study that has it.

        `asked_by`: the claims whose records in the results say that the runs were made for it.
        """
        question = {"claim": claim, "finding": finding, "quantifier": quantifier(rules)}
        for part, rule in enumerate(rules):
            for contrast in contrasts_of(rule):
                made_for = of_contrast(contrast, asked_by)
                for study in self.studies:
                    for case in filter(decides, cases_of(contrast, study)):
                        planned = planned_word(made_for, case)
                        label = {"rule": _key(part, contrast), "planned": planned, "label": LABELS.index(planned)}
                        for of_comparison in self._compared(case, study.name):
                            yield question | label | of_comparison

    def _compared(self, case: Case, study: str) -> list[dict[str, Any]]:
        """The columns of all comparisons of a contrast on one task of one study, whichever claim asks for it."""
        rule = case.rule
        asked = (rule.kind, rule.rows, rule.at, rule.by, rule.to, rule.level)

        def compared() -> list[dict[str, Any]]:
            of_case = self._once((rule.table, rule.rows, study, case.task), lambda: self._of_case(case, study))
            rank = 0 if self.alone else rank_of(study, of_case["pair"], case.ats == EVERY_RATE)
            return [of_case | {"rank": rank} | of_comparison(case, study, each) for each in comparisons_of(case)]

        return self._once((rule.table, asked, study, case.task), compared)

    def _once(self, key: tuple[Any, ...], make: Callable[[], T]) -> T:
        if key not in self._known:
            self._known[key] = make()
        return cast(T, self._known[key])

    def _of_case(self, case: Case, study: str) -> dict[str, Any]:
        """What holds of all comparisons of some rows on one task of one study."""
        cells = list(case.rows.values())
        spec, seeds, pair = next(cell.spec for cell in cells if cell.spec), shared_seeds(cells), pair_of(case)
        scale = PAPER_SCALE if all(cell.scale == PAPER_SCALE for cell in cells) else REDUCED
        is_sound = self.alone or (all(map(_is_plain, cells)) and seeds >= FEW_SEEDS)
        return {
            "study": study,
            "pair": pair,
            "backbone": spec.backbone,
            "layers": int(spec.backbone_options.get("layers") or lookup(spec.backbone).layers),
            "task": case.task,
            "steps": max(cell.spec.steps for cell in cells if cell.spec),
            "scale": scale,
            "is_sound": is_sound,
            "at_floor": is_sound and self._at_floor(study, case.task, case.variant),
        }

    def _at_floor(self, study: str, task: str, variant: str) -> bool:
        """Whether the best arm of the study on this task is not above what needs no look at most of an example."""
        cells = next(each for each in self.studies if each.name == study)
        return self._once((study, task, variant), lambda: at_floor(cells, task, variant))


def rank_of(study: str, pair: str, every_rate: bool) -> int:
    """The place of a study in the list of those that speak for a pair; `every_rate`: for what is read on a whole
    grid."""
    listed = pairs().speakers(pair, every_rate=every_rate)
    return listed.index(study) if study in listed else UNLISTED


def with_roles(rows: pd.DataFrame) -> pd.DataFrame:
    """Of the studies that may speak for a contrast on a pair, which have a plain recipe and enough seeds, the first of
    the pair's list does so."""
    may_speak = rows[rows["is_sound"].astype(bool) & (rows["rank"] > UNLISTED) & (rows["missing"] == "")]
    best = may_speak.sort_values("rank", kind="stable").drop_duplicates(CONTRAST)
    place = [*CONTRAST, "study", "task"]
    speaking = pd.MultiIndex.from_frame(rows[place]).isin(pd.MultiIndex.from_frame(best[place])) & (
        rows["missing"] == ""
    )
    floored = rows["at_floor"].astype(bool)
    role = pd.Series(ROBUSTNESS, rows.index).mask(speaking, SPEAKS).mask(speaking & floored, FLOORED)
    return _with_steps(rows.assign(role=role))


def _with_steps(rows: pd.DataFrame) -> pd.DataFrame:
    """The note of what speaks says where other studies of the pair have another word after other steps."""
    sound = rows[rows["is_sound"].astype(bool) & (rows["missing"] == "")]
    notes = rows["note"].copy()
    for _, several in sound.groupby(CONTRAST):
        if several["study"].nunique() < 2 or not (several["role"] == SPEAKS).any():
            continue
        said = {
            (study, steps): words.pair_word(*words.of_contrasts(list(each["p_for"]), list(each["p_against"])))
            for (study, steps), each in several.groupby(["study", "steps"])
        }
        ours = several[several["role"] == SPEAKS]
        speaker = ours["study"].iloc[0], ours["steps"].iloc[0]
        moved = [each for each, word in said.items() if each[1] != speaker[1] and word != said[speaker]]
        if moved:
            told = ", ".join(f"{said[each]} after {each[1]:,} in {each[0]}" for each in moved)
            for row in ours.index:
                notes[row] = "; ".join(filter(None, [notes[row], f"depends on steps: {told}"]))
    return rows.assign(note=notes)


def _key(part: int, contrast: Rule) -> str:
    """The name of a contrast in its claim: of which rule it is, and its rows."""
    return f"{part}: {' and '.join(contrast.rows)}"


def summed(rules: Sequence[Rule], evidence: pd.DataFrame) -> dict[str, Any]:
    """The word of a claim over its pairs, with the counts; the pairs of the paper's own scale decide, if there are any.

    Writes the word of each pair, and what it lacks, into the rows that speak.
    """
    speaks = evidence["role"] == SPEAKS
    if (evidence["scale"][speaks] == PAPER_SCALE).any():
        speaks &= evidence["scale"] == PAPER_SCALE
    speaking, tests, lacking = evidence[speaks], dict[str, tuple[float, float]](), dict[str, str]()
    for pair in sorted(set(speaking["pair"])):
        rows = speaking[speaking["pair"] == pair]
        lacking[pair] = _lacking(rules, evidence[evidence["pair"] == pair], set(rows["rule"]))
        p_for, p_against = words.of_contrasts(list(rows["p_for"]), list(rows["p_against"]))
        tests[pair] = (1.0 if lacking[pair] else p_for, p_against)
    said = {pair: words.pair_word(*each) for pair, each in tests.items()}
    evidence["pair_word"], evidence["lacking"] = (
        evidence["pair"].map(each).where(speaks, "") for each in (said, lacking)
    )
    floor = {*evidence.loc[evidence["role"] == FLOORED, "pair"]} - {*tests}
    listed = evidence["pair"].isin(list(pairs().pairs)) & _not_run(evidence)
    missing = {*evidence.loc[listed, "pair"]} - {*tests} - floor
    p_for, p_against = math.nan, math.nan
    word = words.AT_FLOOR if floor else words.NOT_RUN
    if tests:
        in_each = [list(each) for each in zip(*tests.values(), strict=True)]
        p_for, p_against = words.over_pairs(in_each[0], in_each[1], quantifier(rules))
        word = words.claim_word(p_for, p_against)
    if tests or floor:
        note = _counts(list(said.values()), len(floor), len(missing))
    elif any(rule.only_paper_scale or rule.kind == "near" for rule in rules):
        note = ITS_OWN_SCALE
    else:
        note = _why_not_run(evidence)
    return {
        "p_for": p_for,
        "p_against": p_against,
        "word": word,
        "quantifier": quantifier(rules),
        "scale": speaking["scale"].iloc[0] if tests else "",
        "planned": LABELS[int(speaking["label"].min())] if tests else "",
        "note": note,
        "contrast": "; ".join(dict.fromkeys(rule.part for rule in rules if rule.part)),
    }


def _lacking(rules: Sequence[Rule], of_pair: pd.DataFrame, spoken: set[str]) -> str:
    """Which contrasts of a rule are not there on a pair, so that nothing is for the claim: planned and not run, or of a
    rule of which others are there."""
    missing = {*of_pair.loc[_not_run(of_pair), "rule"]} - spoken
    for part, rule in enumerate(rules):
        parts = {_key(part, contrast) for contrast in contrasts_of(rule)}
        missing |= parts - spoken if parts & spoken else set()
    return "; ".join(sorted(missing))


def _not_run(evidence: pd.DataFrame) -> "pd.Series[bool]":
    """The rows of what is planned and was not run."""
    return evidence["missing"] == NOT_RUN_YET


def _shown(evidence: pd.DataFrame) -> pd.DataFrame:
    """What was tested: pairs by name; what speaks before robustness, the longest first."""
    tested = evidence[evidence["missing"] == ""]
    order = tested.assign(last=tested["role"] == ROBUSTNESS, shorter=-tested["steps"])
    return order.sort_values(["pair", "last", "shorter", "study"], kind="stable")[list(COLUMNS)]


def quantifier(rules: Sequence[Rule]) -> Quantifier:
    """How a claim goes over pairs: a likeness is always one of all."""
    if any(map(is_likeness, rules)):
        return "all"
    named = {rule.of for rule in rules}
    return next(of for of in STRICTEST if of in named)


def of_contrast(contrast: Rule, asked_by: Sequence[Claim]) -> list[Claim]:
    """The claims that ask for this contrast, whatever the limit: of those of a finding, some ask the opposite."""
    wanted = _question(contrast)
    return [each for each in asked_by if any(wanted & _question(rule) for rule in each.rule)]


def contrasts_of(rule: Rule) -> list[Rule]:
    """A rule as rules of one contrast each, so that each may be read in the study that speaks for it."""
    split = SPLITS.get(entry_of(rule.kind).splits)
    return [rule.model_copy(update={"rows": rows}) for rows in (split(rule.rows) if split else [rule.rows])]


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
    for arm in study.results.values():
        if (arm.task, arm.variant) == (task, variant):
            lows.append(arm.interval(noise=floor.standard_error**2)[1])
    known = [low for low in lows if not math.isnan(low)]
    return bool(known) and max(known) <= floor.share


def without_runs(claim: Claim) -> dict[str, Any] | None:
    """The word of a claim that no run decides, and what shows it; None for the others."""
    if claim.documentary:
        return {"word": words.READ, "note": claim.documentary}
    if claim.arithmetic or claim.printed:
        holds, note = computed(claim)
        return {"word": in_print(claim, holds), "note": note}
    if any(rule.kind == "baseline" for rule in claim.rule):
        return _by_baselines(claim)
    return None


def in_print(claim: Claim, holds: bool) -> str:
    """The word of a claim that no run decides: whether what is printed is consistent, or a slip."""
    is_slip = holds if claim.id.startswith(ODDITY) else not holds
    return words.SLIP if is_slip else words.CONSISTENT


def _by_baselines(claim: Claim) -> dict[str, Any]:
    """By each baseline that the claim names: one that is off contradicts it."""
    found = [baseline_verdict(claim, rule, task) for rule in claim.rule for task in rule.tasks]
    given = {word for word, _ in found}
    word = next((word for word in (words.SLIP, words.READ, words.TOO_CLOSE) if word in given), words.CONSISTENT)
    return {"word": word, "note": "; ".join(dict.fromkeys(note for _, note in found))}


def _counts(of_pairs: Sequence[str], floor: int, missing: int) -> str:
    """4 for, 0 against, 3 open, 1 at floor, 2 not run."""
    notes = [words.counts(of_pairs)] if of_pairs else []
    notes += [f"{floor} {words.AT_FLOOR}"] if floor else []
    notes += [f"{missing} {words.NOT_RUN}"] if missing else []
    return ", ".join(notes)


def _why_not_run(evidence: pd.DataFrame) -> str:
    """The studies that would decide and were not run; where all were, why none of them does."""
    if studies := sorted({*evidence.loc[_not_run(evidence), "study"]}):
        return f"not run: {', '.join(studies)}"
    silent = evidence[evidence["missing"] != ""]
    return "; ".join(dict.fromkeys(silent["study"] + ": " + silent["note"])) or NO_STUDY


def _summary(claim: str, finding: str, **fields: Any) -> dict[str, Any]:
    empty: dict[str, Any] = dict.fromkeys(COLUMNS, "")
    return empty | dict.fromkeys(NUMBERS, math.nan) | {"claim": claim, "finding": finding} | fields


def of_comparison(case: Case, study: str, comparison: Comparison) -> dict[str, Any]:
    """The columns of a comparison, read as its claim reads it; `sign` -1: the file has the second minus the first."""
    cells, test = case.rows.values(), comparison.test
    steps = max(cell.spec.steps for cell in cells if cell.spec)
    at = comparison.at or (case.rates_in_words(case.ats) if case.ats else "every rate")
    budget, sides = comparison.budget or steps, (_side(comparison.plus), _side(comparison.minus))
    of_sweeps = bool(comparison.minus) and {*comparison.minus} <= {sweep_of(cell) for cell in cells}
    sign = -1 if of_sweeps and sides[0] > sides[1] and " and " not in at else 1
    key = "|".join([study, case.task, comparison.of, *sides[::sign], at, str(budget)])
    estimate = comparison.estimate
    by_t = test.n >= MINIMUM_PAIRS
    return {
        "missing": comparison.missing,
        "id": hashlib.sha256(key.encode()).hexdigest()[:8],
        "of": comparison.of,
        "first": sides[0],
        "second": sides[1],
        "at": at,
        "budget": budget,
        "seeds": test.n if by_t else shared_seeds(cells),
        "unit": comparison.unit if estimate else "",
        **dict(zip(("estimate", "low", "high"), estimate or (math.nan,) * 3, strict=True)),
        **dict(zip(("level_first", "level_second"), comparison.levels, strict=True)),
        "p": comparison.p if estimate else math.nan,
        "seed_variance": test.sd**2 / test.n / comparison.scale**2 if by_t else math.nan,
        "test_variance": test.noise / comparison.scale**2 if by_t else math.nan,
        "df": test.n - 1 if by_t and not test.exact else math.nan,
        "contrast": comparison.label,
        "sign": sign,
        "least": comparison.limits[0],
        "most": comparison.limits[1],
        "sided": "one" if comparison.likeness else "two",
        "p_for": comparison.supports,
        "p_against": comparison.contradicts,
        "word": comparison.word,
        "pair_word": "",
        "lacking": "",
        "note": comparison.note,
    }


def _side(sweeps: Iterable[str]) -> str:
    return " + ".join(sorted(sweeps))


def judge(root: Path | None = None, study: str = "") -> pd.DataFrame:
    """The table of verdicts: from all published results, or from the reader's own runs of one study.

    A study that cannot be read is left out: a warning names it. Raises SpecError for an unknown study.
    """
    if study:
        return Judge([StudyCells(find_study(study, root), "own")], alone=True).table()
    return Judge(every_study(root, "published", planned=True)).table()
