"""The claims of both papers, and the verdicts on the four headline claims, computed from runs."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import Any

import pandas as pd
import yaml

from fpt.errors import SpecError, unknown
from fpt.evidence.runs import rate_text
from fpt.evidence.stats import SIGNIFICANCE, Paired, holm, paired, seeds_needed

SUPPORTED, CONTRADICTED, INCONCLUSIVE = "supported", "contradicted", "inconclusive"
EDGE, DIVERGED, NOT_TESTED = "inconclusive (edge)", "inconclusive (diverged)", "not tested"

# The four headlines: at a fixed rate FP beats UP and UR; tuned, these beat FP; pretraining helps a frozen model;
# FP wins at a fixed rate and loses tuned. The sign at every rate of the grid is in fpt.evidence.ordering.
SOURCES = {  # (headline, arm compared with FP) -> ids in claims.yaml
    ("fixed-rate", "UP"): ("L-36", "X-02"),
    ("fixed-rate", "UR"): ("X-01",),
    ("tuned", "UP"): ("R-01", "R-03"),
    ("tuned", "UR"): ("R-27", "X-01"),
    ("pretraining", "FR"): ("L-10", "R-02"),
    ("inversion", ""): ("X-01", "X-02"),
}
NAMES = {
    "FP": "the frozen pretrained model",
    "FR": "the frozen random model",
    "UP": "the unfrozen pretrained model",
    "UR": "the unfrozen random model",
}


@dataclass(frozen=True)
class Verdict:
    """What the runs say about one claim. Accuracies and differences are fractions (0.01 is one point)."""

    headline: str  # fixed-rate, tuned, pretraining or inversion
    claims: tuple[str, ...]  # ids in claims.yaml
    task: str
    scale: str  # backbone and steps: no claim is made beyond them
    comparison: str  # e.g. "FP - UP at 1e-3"
    statement: str  # `sentence` adds the scale
    verdict: str = NOT_TESTED
    test: Paired = field(default_factory=lambda: Paired(0))
    p_adjusted: float = math.nan
    n_needed: int | None = None
    note: str = ""
    arm: str = ""  # the arm compared with FP
    setup: str = ""  # the column of load_runs

    @property
    def sentence(self) -> str:
        return f"On {self.task} ({self.scale}), {self.statement[0].lower()}{self.statement[1:]}"


@cache
def claims() -> dict[str, dict[str, Any]]:
    """Every checkable claim of both papers by id, with the numbers the paper reports (percent)."""
    text = files("fpt.evidence").joinpath("claims.yaml").read_text(encoding="utf-8")
    return {entry["id"]: entry for entry in yaml.safe_load(text)}


def claim(name: str) -> dict[str, Any]:
    """One claim by id. Raises SpecError for an unknown id."""
    if name not in claims():
        raise unknown("claim", name, claims(), source="claims.yaml")
    return claims()[name]


def headline(runs: pd.DataFrame) -> list[Verdict]:
    """The headline verdicts for every setup (task, backbone, recipe) in `runs`, as `load_runs` gives them.

    Differences are paired by confirmation seed. Holm's correction runs over all tests of the frame, so pass
    the runs of one study. A directional claim is supported or contradicted if its adjusted p is below 0.05,
    by the sign of the mean; else inconclusive, with the number of seeds that would decide. Arms that were
    never run give "not tested". Raises SpecError where one arm has two sweeps, of different grids.
    """
    tests: list[Verdict] = []
    for _, group in runs.groupby("setup", sort=False):
        tests += _tests(group)
    adjusted = holm([test.test.p for test in tests])
    tests = [_word(test, p) for test, p in zip(tests, adjusted, strict=True)]
    found: list[Verdict] = []
    for setup in dict.fromkeys(test.setup for test in tests):
        same = [test for test in tests if test.setup == setup]
        found += [*same, _inversion(same)]
    return found


def verdict_table(verdicts: Sequence[Verdict]) -> pd.DataFrame:
    """Verdicts as a table for display; differences and intervals in percentage points."""
    rows = [
        {
            "task": v.task,
            "scale": v.scale,
            "claim": v.statement,
            "ids": ", ".join(v.claims),
            "comparison": v.comparison,
            "difference": points(v.test.mean),
            "95% interval": f"{points(v.test.low)} to {points(v.test.high)}" if v.test.n > 2 else "",
            "pairs": v.test.n or "",
            "p (Holm)": _p_text(v.p_adjusted),
            "within 1 point": ("yes" if v.test.comparable else "no") if v.test.n > 2 else "",
            "verdict": v.verdict,
            "would decide": f"{v.n_needed} seeds" if v.n_needed else "",
            "note": v.note,
        }
        for v in verdicts
    ]
    return pd.DataFrame(rows)


def _p_text(p: float) -> str:
    return "" if math.isnan(p) else "< 0.001" if p < 0.001 else f"{p:.3f}"


def points(value: float) -> str:
    """A difference of fractions in percentage points, as text with its sign; empty for nan."""
    return "" if math.isnan(value) else f"{100 * value:+.1f}"


@dataclass(frozen=True)
class _Arm:
    """One arm's confirmation runs of a setup."""

    name: str
    runs: pd.DataFrame
    fixed_rate: float | None = None  # None: its own selected rate

    @property
    def values(self) -> "pd.Series[float]":
        at = self.runs["selected"] if self.fixed_rate is None else _at(self.runs, self.fixed_rate)
        chosen = self.runs[at & (self.runs["stage"] == "confirmation")]
        return chosen.drop_duplicates("seed").set_index("seed")["test_accuracy"].astype(float)

    @property
    def problem(self) -> str:
        """Why a comparison with this arm cannot be decided, or nothing."""
        if self.runs.empty:
            return NOT_TESTED
        if self.fixed_rate is None and self.runs["selected_rate"].isna().all():
            return DIVERGED
        if self.fixed_rate is None and self.runs["at_edge"].astype(bool).any():
            return EDGE
        if self.values.empty:
            return NOT_TESTED
        return DIVERGED if self.values.isna().all() else ""


def _at(runs: pd.DataFrame, rate: float) -> "pd.Series[bool]":
    return (runs["learning_rate"] / rate - 1).abs() < 1e-6


def _arm(group: pd.DataFrame, name: str, rate: float | None = None) -> _Arm:
    runs = group[group["label"] == name]
    if runs["sweep"].nunique() > 1:  # which of them would be the tuned one?
        raise SpecError(
            f"two sweeps of one arm ({', '.join(runs['sweep'].unique())}): give it one grid of learning rates"
        )
    return _Arm(name, runs, rate)


def _tests(group: pd.DataFrame) -> Iterator[Verdict]:
    """The planned comparisons of one setup."""
    frozen = _arm(group, "FP")
    for rate in sorted(group.loc[group["reference"].astype(bool), "learning_rate"].unique()):
        for other in ("UP", "UR"):
            statement = f"At learning rate {rate_text(rate)}, {NAMES['FP']} beats {NAMES[other]}."
            arms = _arm(group, "FP", rate), _arm(group, other, rate)
            yield _compare(group, "fixed-rate", *arms, f"at {rate_text(rate)}", statement)
    for other in ("UP", "UR"):
        statement = f"Each at its own learning rate, {NAMES[other]} beats {NAMES['FP']}."
        yield _compare(group, "tuned", _arm(group, other), frozen, "tuned", statement)
    for arm, how in _random_arms(group):
        statement = f"Each at its own learning rate, {NAMES['FP']} beats {NAMES['FR']} ({how})."
        yield _compare(group, "pretraining", frozen, arm, "tuned", statement)


def _compare(group: pd.DataFrame, key: str, first: _Arm, second: _Arm, how: str, statement: str) -> Verdict:
    # A problem that no seed can mend decides first: no arm, then divergence, then the edge.
    problems = [arm.problem for arm in (first, second)]
    problem = next((p for p in (NOT_TESTED, DIVERGED, EDGE) if p in problems), "")
    test = Paired(0) if problem in (NOT_TESTED, DIVERGED) else paired(first.values, second.values)
    lost = max(len(first.values), len(second.values)) - test.n if test.n else 0
    notes = [f"{lost} seeds without a pair"] if lost else []
    if len({*first.runs["origin"], *second.runs["origin"]}) > 1:
        notes.append("own and published runs")
    row = group.iloc[0]
    arm = next(arm.name for arm in (first, second) if arm.name != "FP")[:2]
    return Verdict(
        headline=key,
        claims=SOURCES[key, arm],
        task=_named(row["task"], row["variant"], row["task_options"]),
        scale=f"{_named(row['backbone'], '', row['backbone_options'])}, {int(row['steps']):,} steps",
        comparison=f"{first.name} - {second.name} {how}",
        statement=statement,
        verdict=problem,
        test=test,
        note="; ".join(notes),
        arm=arm,
        setup=row["setup"],
    )


def _named(name: str, variant: str, options: str) -> str:
    """A task or backbone with what differs from its default form: its variant and options (JSON)."""
    differs = [variant] if variant not in ("", "paper") else []
    differs += [f"{key} {value}" for key, value in json.loads(options or "{}").items()]
    return f"{name} ({', '.join(differs)})" if differs else name


def _random_arms(group: pd.DataFrame) -> list[tuple[_Arm, str]]:
    """FR as it was drawn: `matched` always, `fixed` and the best of several gains where they were run."""
    arms = [(_arm(group, "FR"), "matched initialisation")]
    if (group["label"] == "FR fixed").any():
        arms.append((_arm(group, "FR fixed"), "fixed initialisation, standard deviation 0.02"))
    tuned = _tuned_gain(group)
    return arms if tuned is None else [*arms, tuned]


def _tuned_gain(group: pd.DataFrame) -> tuple[_Arm, str] | None:
    """FR at the gain with the best mean validation accuracy in selection (ties to the smaller), if swept."""
    swept = group[(group["arm"] == "frozen-random") & (group["random_init"] == "matched")]
    if swept["random_gain"].nunique() < 2:
        return None
    chosen = swept[(swept["stage"] == "selection") & swept["selected"].astype(bool)]
    means = chosen.groupby("random_gain")["validation_accuracy"].mean().dropna().round(12)
    if means.empty:
        return None
    gain = min(means[means == means.max()].index.tolist())
    runs = swept[swept["random_gain"] == gain]
    if gain in (swept["random_gain"].min(), swept["random_gain"].max()):
        runs = runs.assign(at_edge=True)  # the edge of the gains is an edge too
    return _Arm("FR best gain", runs), f"matched initialisation at its best gain, {gain:g}"


def _word(test: Verdict, p: float) -> Verdict:
    result = test.test
    if test.verdict:  # a problem found before testing
        return replace(test, p_adjusted=p)
    if math.isnan(p):
        return replace(test, verdict=INCONCLUSIVE, note=test.note or "too few pairs")
    if p < SIGNIFICANCE:
        word = SUPPORTED if result.mean > 0 else CONTRADICTED
        return replace(test, verdict=word, p_adjusted=p)
    alpha = SIGNIFICANCE * result.p / p if result.p > 0 else SIGNIFICANCE  # what Holm left for this test
    needed = seeds_needed(result.mean, result.sd, alpha)
    return replace(test, verdict=INCONCLUSIVE, p_adjusted=p, n_needed=needed)


def _inversion(tests: list[Verdict]) -> Verdict:
    """(4): for one and the same unfrozen arm, FP wins at some reference rate and loses with both tuned."""
    parts = {arm: _inverts(arm, tests) for arm in ("UP", "UR")}
    words = [word for word, _ in parts.values()]
    order = (SUPPORTED, INCONCLUSIVE, EDGE, DIVERGED, NOT_TESTED, CONTRADICTED)
    word = next(w for w in order if w in words)
    adjusted = [p for w, p in parts.values() if w == word and not math.isnan(p)]
    first = tests[0]
    statement = (
        "Frozen pretrained beats an unfrozen arm at a fixed learning rate, "
        "and loses to the same arm when both are tuned."
    )
    note = "; ".join(f"{arm}: {word}" for arm, (word, _) in parts.items())
    return Verdict(
        "inversion", SOURCES["inversion", ""], first.task, first.scale, "inversion", statement,
        verdict=word, p_adjusted=min(adjusted, default=math.nan), note=note, setup=first.setup,
    )  # fmt: skip


def _inverts(arm: str, tests: list[Verdict]) -> tuple[str, float]:
    """The verdict for one arm and the p of the conjunction: the larger of its two parts."""
    fixed = [t for t in tests if t.headline == "fixed-rate" and t.arm == arm]
    tuned = [t for t in tests if t.headline == "tuned" and t.arm == arm]
    if not fixed or not tuned:
        return NOT_TESTED, math.nan
    words, last = [t.verdict for t in fixed], tuned[0].verdict
    if CONTRADICTED in (last, *(words if set(words) == {CONTRADICTED} else ())):
        return CONTRADICTED, math.nan
    best = SUPPORTED if SUPPORTED in words else next((w for w in words if w != CONTRADICTED), INCONCLUSIVE)
    if best == last == SUPPORTED:
        p = min(t.p_adjusted for t in fixed if t.verdict == SUPPORTED)
        return SUPPORTED, max(p, tuned[0].p_adjusted)
    return next(w for w in (NOT_TESTED, DIVERGED, EDGE, INCONCLUSIVE) if w in (best, last)), math.nan
