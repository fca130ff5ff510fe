"""Numbers for sentences: every figure in the book's prose is computed here or in the chapter, never typed."""

import math
from pathlib import Path

import pandas as pd

from fpt.evidence.claims import Verdict, claim, headline, points
from fpt.evidence.ordering import turning
from fpt.evidence.runs import SHORT, find_study, load_runs, rate_text, sweeps_table
from fpt.evidence.show.tables import percent
from fpt.evidence.stats import mean_interval

NONE = "(no result)"
ARMS = (*SHORT.values(), "FR fixed", "UR fixed")
RATES = (1e-3, 1e-2)  # the reference rates that chapters speak of
OTHERS = ("up", "ur")
COMPARISONS = (
    *(f"fp-{other}-{rate_text(rate)}" for other in OTHERS for rate in RATES),
    *(f"{other}-fp-tuned" for other in OTHERS),
    "fp-fr-tuned",
    "fp-fr-fixed-tuned",
    "fp-fr-best-gain-tuned",
)


def facts(runs: pd.DataFrame) -> dict[str, str]:
    """Text by key for one setup's runs. The keys are always the same; what is not there reads "(no result)".

    `fp-tuned`, `fp-rate`, `fp-1e-3`, ... for each arm (fp, fr, up, ur, fr-fixed, ur-fixed); `steps`,
    `backbone`, `selection-seeds`, `confirmation-seeds`, `runs`, `diverged`, `grid`.
    """
    found = {}
    confirmed = runs[runs["stage"] == "confirmation"]
    for name in ARMS:
        arm, key = confirmed[confirmed["label"] == name], slug(name)
        found[f"{key}-tuned"] = _accuracy(arm[arm["selected"].astype(bool)])
        rates = runs.loc[runs["label"] == name, "selected_rate"].dropna()
        found[f"{key}-rate"] = NONE if rates.empty else rate_text(rates.iloc[0])
        for rate in RATES:
            at = (arm["learning_rate"].astype(float) / rate - 1).abs() < 1e-6
            found[f"{key}-{rate_text(rate)}"] = _accuracy(arm[at])
    for key in ("steps", "backbone"):
        found[key] = NONE if runs.empty else str(runs[key].iloc[0])
    for stage in ("selection", "confirmation"):
        found[f"{stage}-seeds"] = str(runs.loc[runs["stage"] == stage, "seed"].nunique() or NONE)
    grid = sorted(runs.loc[runs["stage"] == "selection", "learning_rate"].unique())
    found["grid"] = ", ".join(map(rate_text, grid)) if grid else NONE
    found["runs"], found["diverged"] = f"{len(runs):,}", str(int(runs["diverged_at"].notna().sum()))
    return found


def verdict_facts(verdicts: list[Verdict]) -> dict[str, str]:
    """For each headline comparison of one setup: the difference with its interval, and `<key>-verdict`."""
    found = dict.fromkeys(COMPARISONS, NONE) | {f"{key}-verdict": "not tested" for key in COMPARISONS}
    found["inversion-verdict"] = "not tested"
    for verdict in verdicts:
        key, test = slug(verdict.comparison), verdict.test
        found[f"{key}-verdict"] = verdict.verdict
        if not math.isnan(test.mean):
            interval = f"{points(test.low)} to {points(test.high)}"
            found[key] = f"{points(test.mean)} points (95% interval {interval}, {test.n} seeds)"
    return found


def digits_runs() -> pd.DataFrame:
    """The study `laptop` with the gains that `laptop-more` adds under the same recipe.

    The one frame of all headline tests on digits: Holm's correction is then the same on every page.
    """
    runs, more = load_runs(find_study("laptop")), load_runs(find_study("laptop-more"))
    same = more[more["setup"].isin(set(runs["setup"]))]
    both = pd.concat([runs, same]) if len(same) else runs
    return both.drop_duplicates(["sweep", "stage", "learning_rate", "seed"])


def answer(runs: pd.DataFrame, command: str = "make report") -> str:
    """Two sentences: does the learning rate decide whether to freeze, in these runs, and who wins with rates tuned?
    `command` would make them."""
    verdict = next((v for v in headline(runs) if v.headline == "tuned" and v.arm == "UP"), None)
    if verdict is None:
        return f"There are no results yet; the command {command} trains them."
    turns, clause = turning(runs)
    openings = {
        True: f"the learning rate decides which is on top: {clause}",
        False: f"no learning rate of the grid turns the ordering: {clause}",
        None: "frozen and unfrozen pretrained cannot be told apart at any learning rate of the grid",
    }
    margin = f"{abs(100 * verdict.test.mean):.1f} points"
    endings = {"supported": f"it wins by {margin}", "contradicted": f"it loses by {margin}"}
    ending = endings.get(verdict.verdict, f"who wins is {verdict.verdict}")
    where = {"mnist": "MNIST", "cifar10": "CIFAR-10"}.get(verdict.task, verdict.task)
    return f"On {where}, with {verdict.scale}, {openings[turns]}. Each at its own rate, {ending}."


def rug(verdicts: list[Verdict]) -> str:
    """One sentence a setup: frozen pretrained against frozen random, with the random scale untuned and tuned.

    The words in brackets are the verdicts on "pretraining helps a frozen model".
    """
    scales = {
        "FP - FR fixed tuned": "at the library's fixed scale",
        "FP - FR tuned": "at a scale matched to the width",
        "FP - FR best gain tuned": "at the best of several scales",
    }
    sentences = []
    for setup in dict.fromkeys(verdict.setup for verdict in verdicts):
        same = {verdict.comparison: verdict for verdict in verdicts if verdict.setup == setup}
        said = [(same[key], how) for key, how in scales.items() if key in same and points(same[key].test.mean)]
        if len(said) < 2:
            continue
        words = [f"{_apart(verdict.test.mean)} it {how} ({verdict.verdict})" for verdict, how in said]
        first = said[0][0]
        where = f"On {first.task} with {first.scale}, the frozen pretrained model beside the frozen random one"
        sentences.append(f"{where}: {'; '.join(words)}.")
    return " ".join(sentences) or "The gains have not been run yet."


def _apart(mean: float) -> str:
    """7.6 points below, 1.2 points above."""
    return f"{abs(100 * mean):.1f} points {'above' if mean > 0 else 'below'}"


def gains(runs: pd.DataFrame) -> str:
    """The gains of the random initialisations in these runs."""
    swept = runs.loc[(runs["init"] == "random") & (runs["random_init"] == "matched"), "random_gain"]
    return ", ".join(f"{gain:g}" for gain in sorted(swept.unique())) or "(none yet)"


def budget_share(runs: pd.DataFrame, task: str) -> str:
    """One sentence: what share of Rothermel et al.'s gradient steps (their Table 5) these runs took."""
    if runs.empty:
        return "Nothing was run yet."
    steps, theirs = int(runs["steps"].iloc[0]), int(claim("R-23")["reported"]["steps"][task])
    return f"{steps:,} steps are {steps / theirs:.2%} of the {theirs:,} that Rothermel et al. allow on this task."


def whose(study_folder: str | Path) -> str:
    """One sentence: whose results these are, where they were computed, and whether they are complete."""
    table, name = sweeps_table(study_folder), Path(study_folder).name
    done = table[table["status"] == "done"]
    if done.empty:
        return f"There are no results of the study {name} yet; the command fpt run {name} makes them."
    left = ", ".join(dict.fromkeys(table.loc[table["status"] != "done", "label"]))
    part = f", {len(done)} of its {len(table)} sweeps (not {left})" if left else ""
    device = ", ".join(sorted(set(done["device"].astype(str))))
    owner = "your own results" if done["origin"].iloc[0] == "own" else "the published results"
    return f"These are {owner} of the study {name}{part}, computed on {device}."


def slug(text: str) -> str:
    """FP - UP at 1e-3 -> fp-up-1e-3; FR fixed -> fr-fixed."""
    return text.lower().replace(" - ", "-").replace(" at ", "-").replace(" ", "-")


def _accuracy(runs: pd.DataFrame) -> str:
    mean = mean_interval(runs["test_accuracy"].astype(float))[0]
    return NONE if math.isnan(mean) else f"{percent(mean)}%"
