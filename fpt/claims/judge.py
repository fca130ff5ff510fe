"""Verdicts as data: every contrast of every claim and finding, computed once from the runs, and the words they give.

One table has a row for each contrast of a question, a claim or a finding, in a study. The first study of a pair's list
that has it speaks (fpt/results/pairs.yaml), and the others are robustness; what speaks on a pair is joined, and then
the pairs of a question. fpt.claims.verdicts has the files.
"""

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from fpt.claims import words
from fpt.claims.arithmetic import computed
from fpt.claims.asked import LABELS, of_contrast, planned_word
from fpt.claims.case import Case, Comparison, cases_of, decides
from fpt.claims.rules import EVERY_RATE, baseline_verdict, comparisons_of, contrasts_of, is_likeness, rates_of
from fpt.claims.verdicts import COLUMNS, DECADES, FLOORED, NUMBERS, ROBUSTNESS, SPEAKS
from fpt.papers import claims, findings, papers, rules_of
from fpt.papers.schema import Claim, Finding, Quantifier, Rule
from fpt.results.baselines import best_trivial
from fpt.results.cells import FEW_SEEDS, NOT_RUN_YET, PAPER_SCALE, REDUCED, StudyCells, TableCell, every_study
from fpt.results.estimate import NATS, POINTS, SHARE, TIMES
from fpt.results.pairs import pairs
from fpt.results.runs import find_study
from fpt.results.stats import POINT
from fpt.training.recipe import Recipe, about

# Of several rules the first of these is that of a claim.
STRICTEST: tuple[Quantifier, ...] = ("all", "most", "", "some")
NO_STUDY = "no study has its rows"
ITS_OWN_SCALE = "its own scale alone"  # why a claim about the paper's own models has no row
PLAIN = {  # what a recipe and its data are where nothing is said of them; arms of other batches are compared alike
    **{name: Recipe.model_fields[name].default for name, field in about(Recipe).items()
       if field.part != "budget" and name != "batch_size"},
    "data_fraction": 1.0, "shuffle_tokens": False,
}  # fmt: skip
ODDITY = "O-"  # claims of ours that a printed number is a slip
# Columns that no file has: `question` is the place of a claim or finding among those that are judged
INSIDE = ("question", "rule", "missing", "variant", "is_sound", "rank", "label")
CONTRAST = ["question", "rule", "pair"]  # the columns that name one
SPEAKER, OF_PAIR = [*CONTRAST, "study", "task"], ["question", "pair"]
UNLISTED = -1  # the rank of a study that does not speak for a pair


Question = Claim | Finding
Key = tuple[Any, ...]


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
    known = [without_runs(each) for each in questions]
    rules = {place: rules_for(each) for place, each in enumerate(questions) if known[place] is None}
    rows = pd.DataFrame(_evidence(studies, questions, rules, alone), columns=list(dict.fromkeys([*COLUMNS, *INSIDE])))
    rows = _with_words(_with_steps(_with_roles(rows, studies)), rules)
    evidence = dict(list(rows.groupby("question")))
    empty: dict[str, Any] = dict.fromkeys(COLUMNS, "") | dict.fromkeys(NUMBERS, math.nan)
    empty |= {"last": False, "shorter": 0.0}
    ends = [
        {**empty, "question": place, **_named(each), **(known[place] or summed(rules[place], evidence.get(place)))}
        for place, each in enumerate(questions)
    ]
    # pairs by name; what speaks before robustness, the longest first
    rows = rows.assign(last=rows["role"] == ROBUSTNESS, shorter=-rows["steps"])
    parts = [pd.DataFrame(ends), rows[rows["missing"] == ""]]
    table = pd.concat([part for part in parts if len(part)], ignore_index=True)
    order = ["question", "pair", "last", "shorter", "study"]
    return table.sort_values(order, kind="stable", ignore_index=True)[list(COLUMNS)]


def rules_for(question: Question) -> tuple[Rule, ...]:
    return question.rule if isinstance(question, Claim) else rules_of(question)


def _named(question: Question) -> dict[str, str]:
    if isinstance(question, Finding):
        return {"claim": "", "finding": question.id}
    owner = next((each.id for each in findings().values() if question.id in each.claims), "")
    return {"claim": question.id, "finding": owner}


def _asked_by(question: Question) -> list[Claim]:
    """The claims whose records in the results say that the runs were made for a question."""
    if isinstance(question, Claim):
        return [question]
    return [claims()[name] for name in dict.fromkeys([*filter(None, [question.by]), *question.claims])]


def _evidence(
    studies: Sequence[StudyCells], questions: Sequence[Question], rules: Mapping[int, Sequence[Rule]], alone: bool
) -> list[dict[str, Any]]:
    """A row for each comparison of each question, in every study that has it."""
    compared: dict[Rule, list[tuple[Case, list[dict[str, Any]]]]] = {}  # claims and findings share contrasts
    rows = []
    for place, several in rules.items():
        question = {"question": place, "quantifier": quantifier(several), **_named(questions[place])}
        for part, rule in enumerate(several):
            for contrast in contrasts_of(rule):
                made_for = of_contrast(contrast, _asked_by(questions[place]))
                plain = contrast.model_copy(update=dict.fromkeys(("of", "part", "words"), ""))  # these decide nothing
                if plain not in compared:
                    cases = [
                        (case, study.name) for study in studies for case in cases_of(plain, study) if decides(case)
                    ]
                    compared[plain] = [(case, rows_of(case, name, alone)) for case, name in cases]
                for case, found in compared[plain]:
                    planned = planned_word(made_for, case, found[0]["shared_seeds"])
                    label = {"rule": _key(part, contrast), "planned": planned, "label": LABELS.index(planned)}
                    rows += [row | question | label for row in found]
    return rows


def rows_of(case: Case, study: str, alone: bool = False) -> list[dict[str, Any]]:
    """The columns of all comparisons of a contrast on one task of one study, whichever question asks for it."""
    cells = list(case.rows.values())
    with_backbone = next((cell for cell in cells if cell.fields["backbone"] != "none"), cells[0])
    pair, seeds = with_backbone.pair, shared_seeds(cells)
    of_case = {
        "study": study,
        "pair": pair,
        "backbone": cells[0].fields["backbone"],
        "layers": cells[0].arm.layers if cells[0].arm else math.nan,
        "task": case.task,
        "variant": case.variant,
        "steps": max(cell.budgets[-1] for cell in cells),
        "shared_seeds": seeds,
        "scale": PAPER_SCALE if all(cell.scale == PAPER_SCALE for cell in cells) else REDUCED,
        "is_sound": alone or (seeds >= FEW_SEEDS and all(map(_is_plain, cells))),
        "rank": 0 if alone else rank_of(study, pair, rates_of(case.rule) == EVERY_RATE),
    }
    return [of_case | of_comparison(case, of_case, comparison) for comparison in comparisons_of(case)]


def rank_of(study: str, pair: str, every_rate: bool) -> int:
    """The place of a study in the list of those that speak for a pair; `every_rate`: for what is read on a whole
    grid."""
    listed = pairs().speakers(pair, every_rate=every_rate)
    return listed.index(study) if study in listed else UNLISTED


def _keys(rows: pd.DataFrame, columns: Sequence[str]) -> list[Key]:
    return list(rows[list(columns)].itertuples(index=False, name=None))


def _with_roles(rows: pd.DataFrame, studies: Sequence[StudyCells]) -> pd.DataFrame:
    """Of the studies that may speak for a contrast on a pair, which have a plain recipe and enough seeds, the first of
    the pair's list does so; on this pair nothing is said where no arm of that study is above the floor."""
    by_name, tested = {study.name: study for study in studies}, rows["missing"] == ""
    may_speak = rows[tested & rows["is_sound"].astype(bool) & (rows["rank"] > UNLISTED)]
    best = may_speak.sort_values("rank", kind="stable").drop_duplicates(CONTRAST)
    chosen, place = {*_keys(best, SPEAKER)}, ["study", "task", "variant"]
    low = {key for key in {*_keys(best, place)} if at_floor(by_name[key[0]], *key[1:])}
    roles = [
        ROBUSTNESS if missing or speaker not in chosen else FLOORED if key in low else SPEAKS
        for missing, speaker, key in zip(rows["missing"], _keys(rows, SPEAKER), _keys(rows, place), strict=True)
    ]
    return rows.assign(role=roles)


def _joined(rows: pd.DataFrame, by: Sequence[str]) -> dict[Key, tuple[float, float]]:
    """p for and p against of the rows that are equal in some columns, which stand in ascending order."""
    found: dict[Key, list[tuple[float, float]]] = {}
    for key, p_values in zip(_keys(rows, by), _keys(rows, ["p_for", "p_against"]), strict=True):
        found.setdefault(key, []).append(p_values)
    return {key: words.of_contrasts(*zip(*found[key], strict=True)) for key in sorted(found)}


def _with_steps(rows: pd.DataFrame) -> pd.DataFrame:
    """Beside what speaks, the other words that studies of the pair have after other steps."""
    sound = rows[rows["is_sound"].astype(bool) & (rows["missing"] == "")]
    said: dict[Key, dict[tuple[str, int], str]] = {}  # by contrast, the word of each study after its steps
    for (*names, study, steps), p_values in _joined(sound, [*CONTRAST, "study", "steps"]).items():
        said.setdefault(tuple(names), {})[study, steps] = words.pair_word(*p_values)
    told, speaks = pd.Series("", index=rows.index), sound[sound["role"] == SPEAKS]
    for row, contrast, ours in zip(
        speaks.index, _keys(speaks, CONTRAST), _keys(speaks, ["study", "steps"]), strict=True
    ):
        others = {each: word for each, word in said[contrast].items() if each[1] != ours[1]}
        moved = {each: word for each, word in others.items() if word != said[contrast][ours]}
        told[row] = ", ".join(f"{word} after {n:,} in {study}" for (study, n), word in moved.items())
    return rows.assign(other_steps=told)


def _with_words(rows: pd.DataFrame, rules: Mapping[int, Sequence[Rule]]) -> pd.DataFrame:
    """The p-values and the word of each pair of a question, and what it lacks, in the rows that speak; those of the
    paper's own scale decide, if there are any."""
    speaks, own_scale = rows["role"] == SPEAKS, rows["scale"] == PAPER_SCALE
    speaks &= own_scale | ~rows["question"].isin(rows.loc[speaks & own_scale, "question"])
    spoken, not_run = (_rules_by_pair(rows[chosen]) for chosen in (speaks, rows["missing"] == NOT_RUN_YET))
    lacking = {key: _lacking(rules[key[0]], spoken[key], not_run.get(key, set())) for key in spoken}
    tests = {
        key: (1.0 if lacking[key] else p_for, p_against)
        for key, (p_for, p_against) in _joined(rows[speaks], OF_PAIR).items()
    }
    keys = [key if says else None for key, says in zip(_keys(rows, OF_PAIR), speaks, strict=True)]
    p_for, p_against = ([tests[key][side] if key else math.nan for key in keys] for side in (0, 1))
    return rows.assign(
        pair_for=p_for,
        pair_against=p_against,
        pair_word=[words.pair_word(*tests[key]) if key else "" for key in keys],
        lacking=[lacking[key] if key else "" for key in keys],
    )


def _rules_by_pair(rows: pd.DataFrame) -> dict[Key, set[str]]:
    found: dict[Key, set[str]] = {}
    for key, rule in zip(_keys(rows, OF_PAIR), rows["rule"], strict=True):
        found.setdefault(key, set()).add(rule)
    return found


def _lacking(rules: Sequence[Rule], spoken: set[str], not_run: set[str]) -> str:
    """Which contrasts of a rule are not there on a pair, so that nothing is for the claim: planned and not run, or of a
    rule of which others are there."""
    missing = not_run - spoken
    for part, rule in enumerate(rules):
        parts = {_key(part, contrast) for contrast in contrasts_of(rule)}
        missing |= parts - spoken if parts & spoken else set()
    return "; ".join(sorted(missing))


def _key(part: int, contrast: Rule) -> str:
    """The name of a contrast in its question: of which rule it is, and its rows."""
    return f"{part}: {' and '.join(contrast.rows)}"


def summed(rules: Sequence[Rule], evidence: pd.DataFrame | None) -> dict[str, Any]:
    """The word of a question over its pairs, with the counts. `evidence`: its rows, if there are any."""
    found: dict[str, Any] = {
        "quantifier": quantifier(rules),
        "contrast": "; ".join(dict.fromkeys(filter(None, (r.part for r in rules)))),
    }
    own_scale = any(rule.of_own_scale for rule in rules)
    if evidence is None:
        return found | {"word": words.NOT_RUN, "note": ITS_OWN_SCALE if own_scale else NO_STUDY}
    speaking, not_run = evidence[evidence["pair_word"] != ""], evidence["missing"] == NOT_RUN_YET
    by_pair = speaking.drop_duplicates("pair").sort_values("pair")
    floor = {*evidence.loc[evidence["role"] == FLOORED, "pair"]} - {*by_pair["pair"]}
    missing = ({*evidence.loc[not_run, "pair"]} & {*pairs().pairs}) - {*by_pair["pair"]} - floor
    if len(by_pair):
        p_values = words.over_pairs(list(by_pair["pair_for"]), list(by_pair["pair_against"]), quantifier(rules))
        found |= {"p_for": p_values[0], "p_against": p_values[1]}
        found |= {"scale": speaking["scale"].iloc[0], "planned": LABELS[int(speaking["label"].min())]}
    if len(by_pair) or floor:
        word = words.claim_word(*p_values) if len(by_pair) else words.AT_FLOOR
        return found | {"word": word, "note": _counts(list(by_pair["pair_word"]), len(floor), len(missing))}
    return found | {"word": words.NOT_RUN, "note": ITS_OWN_SCALE if own_scale else _why_not_run(evidence)}


def quantifier(rules: Sequence[Rule]) -> Quantifier:
    """How a claim goes over pairs: a likeness is always one of all."""
    if any(map(is_likeness, rules)):
        return "all"
    named = {rule.of for rule in rules}
    return next(of for of in STRICTEST if of in named)


def shared_seeds(cells: Iterable[TableCell]) -> int:
    """How many seeds all of these arms have: as many pairs there are."""
    return len(set.intersection(*({*cell.arm.runs["seed"]} if cell.arm else set() for cell in cells)))


def _is_plain(cell: TableCell) -> bool:
    """Whether recipe and data are those that its paper, its row and its task name, else the defaults."""
    paper = cell.paper
    named = {**paper.defaults, **paper.tasks.get(cell.task, {}), **cell.table.named(cell.row, cell.task, paper)}
    return all(cell.fields[name] == named.get(name, PLAIN[name]) for name in PLAIN)


def at_floor(study: StudyCells, task: str, variant: str) -> bool:
    """Whether no arm of a study on a task is above the best trivial baseline, by 95%, each arm tuned."""
    floor = best_trivial(task, variant)
    if floor is None:
        return False
    lows = []  # nan with one seed, which has no interval and so cannot be told from the floor either way
    for arm in study.results.values():
        if (arm.task, arm.variant) == (task, variant):
            lows.append(arm.estimate(noise=floor.standard_error**2).low)
    known = [low for low in lows if not math.isnan(low)]
    return bool(known) and max(known) <= floor.share


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
    if studies := sorted({*evidence.loc[evidence["missing"] == NOT_RUN_YET, "study"]}):
        return f"not run: {', '.join(studies)}"
    silent = evidence[evidence["missing"] != ""]
    return "; ".join(dict.fromkeys(silent["study"] + ": " + silent["note"])) or NO_STUDY


def without_runs(question: Question) -> dict[str, Any] | None:
    """The word of a claim or finding that no run decides, and what shows it; None for the others."""
    if isinstance(question, Finding):
        return {"word": words.READ, "note": question.read} if question.read else None
    if question.documentary:
        return {"word": words.READ, "note": question.documentary}
    if not is_computed(question):
        return None
    if question.arithmetic or question.printed:
        holds, note = computed(question)
        return {"word": in_print(question, holds), "note": note}
    return _by_baselines(question)


def is_computed(claim: Claim) -> bool:
    """Whether a claim is decided by what is printed, counted or read off baselines."""
    return claim.arithmetic or bool(claim.printed) or any(rule.kind == "baseline" for rule in claim.rule)


def of_comparison(case: Case, of_case: Mapping[str, Any], comparison: Comparison) -> dict[str, Any]:
    """The columns of a comparison, read as its claim reads it; `sign` -1: the file has the second minus the first."""
    ats, cells = rates_of(case.rule), case.rows.values()
    at = comparison.at or (case.rates_in_words(ats) if ats else "every rate")
    budget, sides = comparison.budget or of_case["steps"], (_side(comparison.plus), _side(comparison.minus))
    of_sweeps = bool(comparison.minus) and {*comparison.minus} <= {cell.sweep for cell in cells}
    sign = -1 if of_sweeps and sides[0] > sides[1] and " and " not in at else 1
    key = "|".join([of_case["study"], case.task, comparison.of, *sides[::sign], at, str(budget)])
    return {
        "missing": comparison.missing,
        "id": hashlib.sha256(key.encode()).hexdigest()[:8],
        "of": comparison.of,
        "first": sides[0],
        "second": sides[1],
        "at": at,
        "budget": budget,
        "seeds": of_case["shared_seeds"],
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
