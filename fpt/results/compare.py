"""Contrasts of anybody's table of runs, every arm at its own rate, as `fpt compare` prints them.

A comparison at one learning rate measures the rate. So each seed of an arm is read at the setting that is best on the
arm's other seeds (fpt.sweeps.selection); the setting with the best mean over all seeds stands beside it, and every
setting that two arms share, with the places between which the order flips.
"""

import math
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, groupby, pairwise
from typing import Any

import numpy as np
import pandas as pd

from fpt.errors import SpecError
from fpt.results.difference import Reading, difference
from fpt.results.estimate import Estimate
from fpt.results.stats import MINIMUM_PAIRS, SIGNIFICANCE, holm, sampling_noise, seeds_needed, spread, welch
from fpt.results.table import LARGEST, Columns, ResultsTable, Rules, Runs, columns, rows_where, table_of
from fpt.sweeps import selection
from fpt.tasks.tables import few

PARTS = re.compile(r"fold|split|(^|_)cv", re.IGNORECASE)  # names of columns whose values are parts of one collection
RANGES = {  # of numbers that are given
    "test_examples": (1, 1e12), "point": (1 / LARGEST, LARGEST), "margin": (0, LARGEST), "collapse": (0, LARGEST),
    "diverged": (-LARGEST, LARGEST),
}  # fmt: skip
MOST_LISTED = 10  # groups that a note names
LEAST_POWER = -900  # of 2, by which scores are scaled: its inverse, and the square of what it leaves, are numbers
AS_GIVEN, TUNED, COMMON = "as given", "tuned", "common"  # where two arms are read; else it is a setting that they share
CONTRAST = (
    "within", "first", "second", "at", "n", "n_first", "n_second", "level_first", "level_second", "mean", "low", "high",
    "p", "p_alike", "seeds",
)  # fmt: skip
LEVELS_AND_ENDS = ("level_first", "level_second", "mean", "low", "high")
FLIP = ("within", "first", "second", "tune", "below", "above", "leads_below", "leads_above", "shown")
JOINED = ("within", "first", "second", "groups", "first_leads", "second_leads", "word")

CHOSEN_ON_SCORES = (
    "The settings were chosen by the scores that are reported, of the other seeds. Where seeds share their test "
    "examples this flatters every arm, most the one with most settings: --choose COLUMN chooses by a validation score."
)
NOISE_LEFT_OUT = (
    "If every {pair} is scored on the same test examples, these intervals hold for those examples alone; of "
    "accuracies, --test-examples N adds the noise of N examples."
)


@dataclass(frozen=True)
class Compared:
    """What `compare` finds.

    `contrasts`: a row for each two arms (and group), read tuned, and at the common settings, the best of each arm over
    all seeds; or as given, where nothing is tuned. `n` (pairs of seeds; unpaired, the runs of the smaller arm), both
    levels, the `mean` difference with its 95% interval `low` to `high`, `p` (two-sided), `p_holm` (corrected over all
    rows read alike), `leads` (the arm that an uncorrected p below 5% shows to lead), `p_alike` (of two one-sided
    tests: small where the difference is shown to lie within the margin), `seeds`, with which the test at 5% finds a
    difference of one point with 80% power (nan: more than 1,000, or no number of them), and `more_seeds`, beyond those
    that there are. Pairs go by a t-test, or where it is wider by a jackknife that chooses anew without each of up to
    1,000 seeds; what is no pair by Welch's, whose `seeds` of each arm count with the fewest degrees of freedom that it
    can have. Where all differences are equal, `p` is that of sign flips, and `low`, `high` and `seeds` are nan unless
    the noise of a test set is added. Two arms with fewer than three seeds, or with a chosen run that has no score, have
    nan in all of these but `n`, and no part in the correction.
    `rates`: the same at every setting that both arms share, uncorrected. `flips`: the neighbours among these between
    which the other arm leads; `shown`, where both leads are. `joined`: over all groups, who leads: a lead counts that
    survives Bonferroni's correction, and the word needs one on its side and none on the other. `arms`: the settings of
    each arm, which were chosen by how many seeds, and whether one of these is an end of the grid. `runs`: all that were
    read. `notes`: what a reader must know, a sentence each.
    """

    columns: Columns
    rules: Rules
    contrasts: pd.DataFrame
    rates: pd.DataFrame
    flips: pd.DataFrame
    joined: pd.DataFrame
    arms: pd.DataFrame
    runs: pd.DataFrame
    notes: tuple[str, ...]


def compare(  # noqa: PLR0913 - every choice of a comparison, by its name
    frame: pd.DataFrame,
    by: str | None = None,
    pair: str | Sequence[str] = (),
    score: str | None = None,
    *,
    tune: str | Sequence[str] = (),
    choose: str | None = None,
    within: str | Sequence[str] = (),
    example: str | None = None,
    where: Mapping[str, Sequence[str]] | None = None,
    lower_is_better: bool = False,
    choose_lower: bool | None = None,
    unpaired: bool = False,
    test_examples: int | None = None,
    test_share: float | None = None,
    point: float | None = None,
    margin: float | None = None,
    collapse: float | None = None,
    diverged: float | None = None,
) -> Compared:
    """Contrasts of every two arms of a table, a row a run; what is found, and by which tests, says `Compared`.

    `by`, `pair`, `score`: the columns of arms, of seeds (several together name a pair) and of scores, guessed by their
    names where they are not given. `where`: values of columns, of which one must be a row's.
    `tune`: columns of hyperparameters. Each seed of an arm is then read at the setting with the best mean of `choose`
    (a column; without it, of the scores) over the arm's other seeds, ties to the smaller. `within`: columns of data
    sets or tasks: arms are compared apart in each. `example`: a row is the answer of a run to an example, whose mean
    over the examples is the run's score. The other choices are those of `Rules`.

    Raises SpecError where no two arms have three seeds, for seeds that an arm lacks, for folds without `test_share`,
    for options that exclude each other, for numbers out of their range, and where `test_examples` are of scores that
    are no accuracies; errors of `columns` and `table_of`.
    """
    _check_numbers(
        {"test_examples": test_examples, "point": point, "margin": margin, "collapse": collapse, "diverged": diverged}
    )
    given = Columns(by or "", _all(pair), score or "", _all(tune), choose or "", _all(within), example or "")
    named = columns(frame, given, unpaired)
    if choose_lower is not None and not choose:
        raise SpecError("--choose-lower and --choose-higher are of --choose: name its column, or --lower-is-better")
    rules = Rules(
        lower_is_better, lower_is_better if choose_lower is None else choose_lower, unpaired, test_examples,
        test_share, margin, collapse, diverged, where=where or {},
    )  # fmt: skip
    _check_options(named, rules)
    table = table_of(rows_where(frame, rules.where), named, rules)
    whole = _whole(table, test_examples)
    return _compared(table, replace(rules, whole=whole, point=point or whole / 100))


def difference_text(row: Mapping[Hashable, Any]) -> str:
    """The difference with its interval; what there is instead where it cannot be tested."""
    if math.isnan(row["p"]):
        return "not tested" if row["n"] >= MINIMUM_PAIRS else "too few seeds"
    interval = "no spread" if math.isnan(row["low"]) else f"{row['low']:+.4g} to {row['high']:+.4g}"
    return f"{row['mean']:+.4g} ({interval})"


def leads_text(row: Mapping[Hashable, Any]) -> str:
    """The arm that leads, or that none does; nothing where it could not be tested."""
    return row["leads"] or ("" if math.isnan(row["p"]) else "open")


def chosen_text(row: Mapping[Hashable, Any]) -> str:
    """The settings that the seeds of an arm choose, each with how many do."""
    return "; ".join(f"{setting} ({seeds})" for setting, seeds in row["chosen"].items())


def level_text(row: Mapping[Hashable, Any]) -> str:
    """What an arm scores, tuned; nothing where a chosen run has no score."""
    return "" if math.isnan(row["level"]) else f"{row['level']:.4g}"


def score_text(found: Compared) -> str:
    """What is compared, and whether less of it is better."""
    return found.columns.score + (" (lower is better)" if found.rules.lower_is_better else "")


def pair_text(row: Mapping[Hashable, Any]) -> str:
    """The two arms, and their group."""
    return f"{row['first']} - {row['second']}" + (f", {row['within']}" if row["within"] else "")


def _all(names: str | Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _check_numbers(given: Mapping[str, float | None]) -> None:
    """SpecError for an option that is not a number in its range."""
    for name, number in given.items():
        low, high = RANGES[name]
        if number is not None and not low <= number <= high:
            option = name.replace("_", "-")
            raise SpecError(f"--{option} {number:g}: must be a number from {low:g} to {high:g}")


def _check_options(named: Columns, rules: Rules) -> None:
    """SpecError for options that exclude each other, and for folds of which nothing is known."""
    share = rules.test_share
    if named.choose and not named.tune:
        raise SpecError(f"--choose {named.choose} chooses a setting: name the column of settings by --tune")
    if rules.collapse is not None and rules.unpaired:
        raise SpecError("--collapse flips the signs of pairs: leave out --unpaired")
    if named.example and (rules.unpaired or rules.test_examples or share is not None):
        raise SpecError(f"--example {named.example} pairs answers, and brings the noise of the examples itself: leave "
                        "out --unpaired, --test-examples and --test-share")  # fmt: skip
    if share is None:
        if parts := [name for name in named.pair if PARTS.search(name)]:
            raise SpecError(
                f"--pair {parts[0]}: folds and splits share data for training, which makes a t-interval too short "
                "(Nadeau and Bengio 2003).\nGive --test-share, the share of the data that each is tested on (0.1 of "
                "ten folds; 0: they share none), or another --pair"
            )
        return
    if not 0 <= share < 1:
        raise SpecError(f"--test-share {share:g}: must be a share of the data, from 0 to less than 1")
    if rules.unpaired or rules.test_examples:
        raise SpecError(
            f"--test-share {share:g} is for pairs of folds or splits: leave out --unpaired and --test-examples"
        )


def _whole(table: ResultsTable, test_examples: int | None) -> float:
    """The score of an arm that misses nothing: 1 where all scores are fractions, else 100."""
    scores = np.concatenate([arm.scores.to_numpy(float).ravel() for arm in table.arms])
    scores = scores[np.isfinite(scores)]
    if not len(scores):
        raise SpecError(f"no run has a finite {table.columns.score}: there is nothing to compare")
    whole = 1.0 if scores.min() >= 0 and scores.max() <= 1 else 100.0
    if test_examples and (wrong := scores[(scores < 0) | (scores > whole)]).size:
        raise SpecError(f"--test-examples is for accuracies, from 0 to 1 or in percent; a score is {wrong[0]:g}")
    return whole


def _compared(table: ResultsTable, rules: Rules) -> Compared:
    rows, shared = [], []
    for one, other in _pairs(table):
        _check_seeds(table, one, other, rules)
        names = {"within": one.group, "first": one.name, "second": other.name}
        at = TUNED if table.columns.tune else AS_GIVEN
        rows.append(names | {"at": at} | _contrast(one.tuned, other.tuned, rules))
        if not table.columns.tune:
            continue
        if not math.isnan(one.common + other.common):
            both = _contrast(one.at(one.common), other.at(other.common), rules, plan=False)
            rows.append(names | {"at": COMMON} | both)
        for place in map(int, one.scores.columns.intersection(other.scores.columns)):
            both = _contrast(one.at(place), other.at(place), rules, plan=False)
            shared.append(names | {"at": table.setting(place), "place": place} | both)
    contrasts = _led(pd.DataFrame(rows, columns=[*CONTRAST]), rules)
    rates = _led(pd.DataFrame(shared, columns=[*CONTRAST, "place"]), rules)
    if contrasts["p"].isna().all():
        _refuse_untested(table, contrasts)
    contrasts["p_holm"] = contrasts.groupby("at")["p"].transform(_holm)
    contrasts["more_seeds"] = (contrasts["seeds"] - contrasts["n"]).clip(lower=0)
    arms = _arms(table)
    return Compared(
        table.columns,
        rules,
        contrasts,
        rates.drop(columns=["place", "seeds"]),
        pd.DataFrame(list(_flips(table, rates, rules)), columns=[*FLIP]),
        _joined(contrasts),
        arms,
        _runs_frame(table),
        tuple(_notes(table, arms, contrasts, rates, rules)),
    )


def _pairs(table: ResultsTable) -> Iterator[tuple[Runs, Runs]]:
    """Every two arms of a group."""
    for _, arms in groupby(table.arms, key=lambda arm: arm.group):
        yield from combinations(arms, 2)


def _check_seeds(table: ResultsTable, one: Runs, other: Runs, rules: Rules) -> None:
    """SpecError for a seed that one of two arms lacks, unless runs are no pairs."""
    if rules.unpaired or one.scores.index.equals(other.scores.index):
        return
    known = dict(zip([*one.scores.index, *other.scores.index], [*one.seeds, *other.seeds], strict=True))
    arm, missing = next(
        (arm, missing) for arm in (one, other) if (missing := sorted(set(known) - set(arm.scores.index)))
    )
    group = f" ({', '.join(table.columns.within)} {arm.group})" if arm.group else ""
    raise SpecError(
        f"{len(missing)} of {len(known)} seeds are not in every arm; {table.pair} {known[missing[0]]} is missing for "
        f"{arm.name}{group}. Take them out of every arm; or --unpaired compares all runs of each arm, by Welch's t-test"
    )


def _contrast(first: Reading, second: Reading, rules: Rules, plan: bool = True) -> dict[str, Any]:
    """The numbers of one contrast; nan where it cannot be tested. `plan`: count the seeds that it would need.

    Scores are scaled by a power of 2, which rounds nothing, so that the squares of any are numbers.
    """
    counts = [int(each.scores.notna().sum()) for each in (first, second)]
    row: dict[str, Any] = {"n": min(counts), "n_first": counts[0], "n_second": counts[1]}
    if min(counts) < MINIMUM_PAIRS or counts != [len(first.scores), len(second.scores)]:
        return row
    largest = max(float(each.scores.abs().max()) for each in (first, second))
    unit = 2.0 ** max(math.frexp(largest)[1], LEAST_POWER)
    one, other = (_scaled(each, unit, rules) for each in (first, second))
    margin = None if rules.margin is None else rules.margin / unit
    test, sd, p_alike = _welch(one, other, margin) if rules.unpaired else _paired(one, other, margin, rules)
    ends = test.interval if test.error > 0 else (math.nan, math.nan)
    numbers = (float(one.scores.mean()), float(other.scores.mean()), test.value, *ends)
    row |= {name: unit * value for name, value in zip(LEVELS_AND_ENDS, numbers, strict=True)}
    wanted = min(rules.point / unit, 16.0)  # more than four times any spread of scaled scores: three seeds find it
    known = plan and (sd > 0 or test.test_variance)  # no spread: nothing to plan by
    needed = seeds_needed(wanted, sd, test.test_variance) if known else None
    return row | {"p": test.p, "p_alike": p_alike, "seeds": math.nan if needed is None else float(needed)}


def _scaled(reading: Reading, unit: float, rules: Rules) -> Reading:
    """The same in a unit, with the noise of the test examples that are given."""
    scores, noise = reading.scores / unit, 0.0
    if rules.test_examples:
        whole = rules.whole / unit
        noise = sampling_noise(float(scores.mean()) / whole, rules.test_examples) * whole**2
    without, right = (None if each is None else each / unit for each in (reading.without, reading.right))
    return Reading(scores, without, right, reading.collapsed, noise)


def _paired(one: Reading, other: Reading, margin: float | None, rules: Rules) -> tuple[Estimate, float, float]:
    """The difference, whose test variance has what folds share; the deviation of a pair; and p of two one-sided tests
    that the mean lies within the margin (Schuirmann 1987)."""
    test = difference([one], [other])
    if rules.test_share:
        test = replace(test, test_variance=rules.test_share / (1 - rules.test_share) * test.sd**2)
    return test, test.sd, math.nan if margin is None else max(test.above(-margin), test.below(margin))


def _welch(one: Reading, other: Reading, margin: float | None) -> tuple[Estimate, float, float]:
    """The same of runs that are no pairs; the deviation is that of the difference of two runs, 0 without any spread."""
    first, second = (pd.Series(spread(each.scores, each.without)) for each in (one, other))
    noise = one.noise + other.noise
    test = welch(first, second, noise)
    sd = 0.0 if math.isnan(test.seed_variance) else math.hypot(first.std(), second.std())
    if margin is None:
        return test, sd, math.nan
    sides = [welch(sign * first + margin, sign * second, noise) for sign in (1, -1)]
    return test, sd, max(each.p / 2 if each.value > 0 else 1 - each.p / 2 for each in sides)


def _led(rows: pd.DataFrame, rules: Rules) -> pd.DataFrame:
    """Contrasts with the arm that leads, where p is below 5%."""
    rows[["mean", "p"]] = rows[["mean", "p"]].astype(float)
    return rows.assign(leads=_ahead(rows, rules).where(rows["p"] < SIGNIFICANCE, ""))


def _ahead(rows: pd.DataFrame, rules: Rules) -> "pd.Series[str]":
    """The arm with the better mean."""
    first = (rows["mean"] < 0) if rules.lower_is_better else (rows["mean"] > 0)
    return rows["first"].where(first, rows["second"])


def _holm(p_values: "pd.Series[float]") -> "pd.Series[float]":
    tested = p_values.dropna()
    return pd.Series(holm(list(tested)), tested.index, dtype=float).reindex(p_values.index)


def _refuse_untested(table: ResultsTable, contrasts: pd.DataFrame) -> None:
    if lost := list(_without_score(table)):
        raise SpecError(f"no two arms can be compared. {lost[0]}")
    most = contrasts["n"].max() if len(contrasts) else 0
    raise SpecError(f"no two arms have {MINIMUM_PAIRS} seeds, but {most} at most: too few for intervals")


def _flips(table: ResultsTable, rates: pd.DataFrame, rules: Rules) -> Iterator[dict[str, Any]]:
    """The neighbours among the settings that two arms share, in one hyperparameter, between which the order flips."""
    apart = rates.assign(ahead=_ahead(rates, rules))[rates["mean"].fillna(0) != 0]
    for (group, first, second), rows in apart.groupby(["within", "first", "second"]):
        for name, *two in _neighbours(table.settings.iloc[rows["place"]].set_axis(rows.index)):
            below, above = (rows.loc[place] for place in two)
            if below["ahead"] != above["ahead"]:
                yield {
                    "within": group, "first": first, "second": second, "tune": name, "below": below["at"],
                    "above": above["at"], "leads_below": below["ahead"], "leads_above": above["ahead"],
                    "shown": bool(below["leads"] and above["leads"]),
                }  # fmt: skip


def _neighbours(settings: pd.DataFrame) -> Iterator[tuple[Any, Any, Any]]:
    """Every two rows, ascending, that differ in one hyperparameter alone with no other row between them: its name and
    theirs."""
    for name in settings:
        others = [other for other in settings if other != name]
        lines = [each.index for _, each in settings.groupby(others, dropna=False)] if others else [settings.index]
        yield from ((name, *two) for line in lines for two in pairwise(line))


def _joined(contrasts: pd.DataFrame) -> pd.DataFrame:
    """Over groups: who leads in some after Bonferroni's correction, and the other arm in none."""
    rows = []
    for (at, first, second), each in contrasts.groupby(["at", "first", "second"], sort=False):
        tested = each[each["p"].notna()]
        if at == COMMON or len(tested) < 2:
            continue
        survive = tested.loc[tested["p"] * len(tested) < SIGNIFICANCE, "leads"]
        one, other = int((survive == first).sum()), int((survive == second).sum())
        word = "too close to call"
        if one or other:
            word = "mixed" if one and other else f"{first if one else second} leads"
        rows.append((", ".join(tested["within"]), first, second, len(tested), one, other, word))
    return pd.DataFrame(rows, columns=[*JOINED])


def _arms(table: ResultsTable) -> pd.DataFrame:
    """A row an arm (and group): its settings, the choices of its seeds, and the ends of the grid among these."""
    rows = []
    for arm in table.arms:
        counts = arm.choices.value_counts().sort_index()
        rows.append({
            "within": arm.group,
            "arm": arm.name,
            "seeds": len(arm.scores),
            "settings": arm.scores.shape[1],
            "chosen": {table.setting(place): int(count) for place, count in zip(counts.index, counts, strict=True)},
            "common": table.setting(arm.common),
            "level": float(arm.tuned.scores.mean(skipna=False)),
            "level_common": math.nan if math.isnan(arm.common) else float(arm.scores[arm.common].mean(skipna=False)),
            "ends": _ends(table, arm),
            "diverged": int(arm.validation.isna().to_numpy().sum()),
            "incomplete": {table.setting(place): seed for place, seed in arm.incomplete.items()},
        })  # fmt: skip
    return pd.DataFrame(rows)


def _ends(table: ResultsTable, arm: Runs) -> list[str]:
    """The ends of the grid that some seed's choice is, by hyperparameter: "lr high"."""
    found = []
    for name in table.settings:
        values = table.settings[name].iloc[arm.scores.columns].set_axis(arm.scores.columns)
        if not pd.api.types.is_numeric_dtype(values) or values.nunique() < 2:
            continue
        grid = {value: arm.validation[places].mean(axis=1, skipna=False)
                for value, places in values.groupby(values).groups.items()}  # fmt: skip
        found += [f"{name} {end}" for end in sorted(selection.ends(arm.choices.map(values), pd.DataFrame(grid)))]
    return found


def _runs_frame(table: ResultsTable) -> pd.DataFrame:
    """Every run that was read, and whether it is at its own seed's choice."""
    frames = []
    for arm in table.arms:
        n, k = arm.scores.shape
        places = np.tile(arm.scores.columns.to_numpy(int), n)
        frames.append(pd.DataFrame({
            "within": arm.group, "arm": arm.name, "seed": np.repeat(arm.seeds, k), "place": places,
            "score": arm.scores.to_numpy(float).ravel(), "chosen": places == np.repeat(arm.choices.to_numpy(float), k),
        }))  # fmt: skip
    found = pd.concat(frames, ignore_index=True)
    names = {place: table.setting(place) if table.columns.tune else "" for place in found["place"].unique()}
    return found.assign(setting=found["place"].map(names))


def _without_score(table: ResultsTable) -> Iterator[str]:
    """The arms that have a seed whose run at its choice has no score."""
    for arm in table.arms:
        lost = np.flatnonzero(arm.tuned.scores.isna())
        if not len(lost):
            continue
        choice = arm.choices.iloc[lost[0]]
        why = (
            f"chosen is {table.setting(choice)}, where that run has no finite score. To leave the run out would "
            "flatter the arm; --diverged VALUE says what it counts as."
        )
        if np.isnan(choice):
            why = "none can be chosen, since at every setting a run of another seed diverged."
        yield f"{arm.label} is not compared where it is tuned: for {table.pair} {arm.seeds[lost[0]]} {why}"


def _notes(
    table: ResultsTable, arms: pd.DataFrame, contrasts: pd.DataFrame, rates: pd.DataFrame, rules: Rules
) -> Iterator[str]:
    """What a reader must know, a sentence each."""
    named = table.columns
    for group, names in arms.groupby("within", sort=False)["arm"]:
        if lacking := sorted(set(arms["arm"]) - set(names)):
            yield f"{', '.join(named.within)} {group} has no run of {', '.join(lacking)}."
    if named.tune:
        if not named.choose:
            yield CHOSEN_ON_SCORES
        for _, rows in arms.groupby("arm", sort=False):
            yield from _notes_of(table, rows.to_dict("records"))
        yield from _without_score(table)
        if apart := list(_share_none(contrasts, rates)):
            yield f"No {', '.join(named.tune)} is shared by {few(apart)}: there is none at which both were run."
    if collapsed := [arm.label for arm in table.arms if arm.tuned.collapsed]:
        yield f"A chosen run of {few(collapsed)} collapsed, so that sign flips take the t-test's place."
    if named.example or rules.test_examples or rules.test_share is not None:
        return
    yield NOISE_LEFT_OUT.format(pair=table.pair or "run")


def _share_none(contrasts: pd.DataFrame, rates: pd.DataFrame) -> Iterator[str]:
    """The two arms that have no setting in common."""
    names = ["within", "first", "second"]
    shared = set(rates[names].itertuples(index=False, name=None))
    for row in contrasts[contrasts["at"] == TUNED].to_dict("records"):
        if tuple(row[name] for name in names) not in shared:
            yield pair_text(row)


def _notes_of(table: ResultsTable, rows: Sequence[Mapping[Hashable, Any]]) -> Iterator[str]:
    """What there is to say of one arm, in all groups together."""
    name, tuned, pair = rows[0]["arm"], ", ".join(table.columns.tune), table.pair
    if lacking := _listed(rows, lambda row: ", ".join(f"{at} ({pair} {of})" for at, of in row["incomplete"].items())):
        yield f"{name} lacks runs, so that these {tuned} of it are left out for every {pair}: {lacking}."
    if alone := _listed(rows, lambda row: row["common"] if row["settings"] == 1 else ""):
        yield f"{name} has one {tuned} alone, {alone}: it is not tuned, and its best may be elsewhere."
    if diverged := _listed(rows, lambda row: f"{row['diverged'] or ''}"):
        runs = sum(row["seeds"] * row["settings"] for row in rows if row["diverged"])
        yield (
            f"{diverged} of the {runs:,} runs of {name} have no finite score. No other {pair} chooses such a setting."
        )
    if ends := _listed(rows, lambda row: ", ".join(row["ends"])):
        yield f"A chosen setting of {name} is an end of its grid, {ends}: a better one may lie beyond."


def _listed(rows: Sequence[Mapping[Hashable, Any]], text: Callable[[Mapping[Hashable, Any]], str]) -> str:
    """What there is to say of an arm in each group, in a line; nothing where there is nothing in any."""
    found = [(row["within"], each) for row in rows if (each := text(row))]
    listed = [f"{each} ({group})" if group else each for group, each in found[:MOST_LISTED]]
    return "; ".join(listed) + (f"; and {len(found) - MOST_LISTED:,} more" if len(found) > MOST_LISTED else "")
