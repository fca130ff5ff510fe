"""What `fpt compare` prints: tables of 80 columns and the notes below them, or JSON."""

import json
import math
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

import pandas as pd
import typer
from rich.table import Table

from fpt.cli.tables import before_numbers, console, printable, table_of
from fpt.files import plain
from fpt.results.compare import (
    AS_GIVEN,
    COMMON,
    TUNED,
    Compared,
    chosen_text,
    difference_text,
    leads_text,
    level_text,
    pair_text,
    score_text,
)

MOST_ROWS = 40  # of a table on the screen; --json and --page have all


def show(compared: Compared, json_alone: bool) -> None:
    """Print the tables and what is to be known, or JSON."""
    if json_alone:
        typer.echo(as_json(compared))
        return
    for part in screen(compared):
        console.print(printable(part) if isinstance(part, str) else part, markup=False)


def screen(compared: Compared) -> Iterator[Table | str]:
    """The contrasts; where hyperparameters are tuned the arms, the settings that arms share, and where the order flips;
    what groups say together; and the notes."""
    named, tuned = compared.columns, bool(compared.columns.tune)
    yield _contrasts(compared, TUNED if tuned else AS_GIVEN)
    if len(compared.joined):
        yield _joined(compared)
    if tuned:
        yield _arms(compared)
        yield _rates(compared)
        yield from (flip_text(row) for row in compared.flips.to_dict("records"))
        if compared.flips.empty and one_order(compared.rates):
            yield (
                f"No order flips: at all {', '.join(named.tune)} that two arms share and that were tested, the mean of "
                "the same arm is ahead."
            )
    yield from compared.notes


def one_order(rates: pd.DataFrame) -> bool:
    """Whether two arms share several settings, and everywhere the same of them is ahead at all of these."""
    means = rates[rates["mean"].notna()].groupby(["within", "first", "second"])["mean"]
    return bool((means.size() > 1).any() and ((means.min() >= 0) | (means.max() <= 0)).all())


def as_json(compared: Compared) -> str:
    """Everything but the single runs, as JSON; null where there is no number."""
    frames = {name: getattr(compared, name) for name in ("contrasts", "rates", "flips", "joined", "arms")}
    shown: dict[str, Any] = {"columns": asdict(compared.columns), "rules": asdict(compared.rules)}
    shown |= {name: frame.to_dict("records") for name, frame in frames.items()}
    return json.dumps(plain(shown | {"notes": list(compared.notes)}), allow_nan=False, default=str)


def how(compared: Compared) -> str:
    """How arms are compared, for the title of a table."""
    named, rules = compared.columns, compared.rules
    text = "unpaired, by Welch's t-test" if rules.unpaired else f"paired by {', '.join(named.pair)}"
    if named.tune:
        best = f"{'lowest' if rules.choose_lower else 'highest'} {named.choose or named.score}"
        text = f"each at its own {', '.join(named.tune)} by the {best}, {text}"
    if named.example:
        text += f", with the noise of the examples of {named.example}"
    if rules.test_examples:
        text += f", with the noise of {rules.test_examples:,} test examples"
    if rules.test_share:
        text += f", corrected for parts that are tested on {rules.test_share:g} of the data"
    return text


def flip_text(row: Mapping[Hashable, Any]) -> str:
    """Between which settings the order of two arms flips."""
    told = "" if row["shown"] else ", though not both leads are told from chance"
    lower, upper = (f"{row[f'leads_{side}']} leads at {row[side]}" for side in ("below", "above"))
    return f"The order flips ({pair_text(row)}): {lower} and {upper}{told}."


def _shown(rows: pd.DataFrame) -> list[dict[Hashable, Any]]:
    return rows.head(MOST_ROWS).to_dict("records")


def _title(text: str, rows: pd.DataFrame) -> str:
    return text if len(rows) <= MOST_ROWS else f"{text}; {MOST_ROWS} of {len(rows):,} rows, --json and --page have all"


def _contrasts(compared: Compared, at: str) -> Table:
    """Each two arms. Levels stand here where nothing is tuned, else with the arms."""
    rows, rules, tuned = compared.contrasts[compared.contrasts["at"] == at], compared.rules, at == TUNED
    heads = [] if tuned else ["n", "levels"]
    heads += ["difference (95% interval)", *([] if tuned else ["p"]), "p (Holm)"]
    heads.append(f"{'runs of each' if rules.unpaired else 'seeds'} to find {rules.point:g}")
    if rules.margin is not None:
        heads.append(f"p of less than {rules.margin:g} apart")
    cells = []
    for row in _shown(rows):
        tested = not math.isnan(row["p"])
        n = f"{row['n_first']} and {row['n_second']}" if rules.unpaired else str(row["n"])
        levels = f"{row['level_first']:.4g} and {row['level_second']:.4g}" if tested else ""
        shown = [pair_text(row), *([] if tuned else [n, levels]), difference_text(row)]
        numbers = [*([] if tuned else [f"{row['p']:.2g}"]), f"{row['p_holm']:.2g}", _seeds(row, compared)]
        numbers += [] if rules.margin is None else [f"{row['p_alike']:.2g}"]
        cells.append(shown + (numbers if tested else [""] * len(numbers)))
    title = _title(f"{score_text(compared)} by {compared.columns.by}, {how(compared)}", rows)
    return table_of(title, before_numbers("first - second", *heads), cells)


def _seeds(row: Mapping[Hashable, Any], compared: Compared) -> str:
    """How many seeds find a point, and how many more these are."""
    if math.isnan(row["low"]):
        return ""  # without spread there is nothing to plan by
    if math.isnan(row["seeds"]):
        return "> 1,000 or none" if compared.rules.test_examples or compared.rules.test_share else "> 1,000"
    return f"{row['seeds']:.0f} ({row['more_seeds']:.0f} more)" if row["more_seeds"] else f"{row['seeds']:.0f}"


def _joined(compared: Compared) -> Table:
    heads = ["groups", "first leads", "second leads", "together"]
    rows = [
        [f"{row['first']} - {row['second']}", str(row["groups"]), str(row["first_leads"]), str(row["second_leads"]),
         row["word"]] for row in compared.joined.to_dict("records")
    ]  # fmt: skip
    title = f"over {', '.join(compared.columns.within)}: leads that survive Bonferroni's correction"
    return table_of(title, before_numbers("first - second", *heads), rows)


def _arms(compared: Compared) -> Table:
    tune, rows = ", ".join(compared.columns.tune), []
    for row in _shown(compared.arms):
        name = row["arm"] + (f", {row['within']}" if row["within"] else "")
        chosen = chosen_text(row) + ("" if row["settings"] > 1 else ", not tuned")
        rows.append([name, str(row["seeds"]), chosen, level_text(row), "; ".join(row["ends"])])
    heads = ["seeds", f"chosen {tune} (by seeds)", "level, tuned", "end of the grid"]
    return table_of(
        _title(f"each {compared.columns.by}", compared.arms), [compared.columns.by, *before_numbers(*heads)], rows
    )


def _rates(compared: Compared) -> Table:
    """At one setting for all: the best of each arm over all seeds, and each that two arms share."""
    tune = ", ".join(compared.columns.tune)
    common = compared.contrasts[compared.contrasts["at"] == COMMON].assign(at="best of each")
    rows = pd.concat([common, compared.rates]).sort_values(["within", "first", "second"], kind="stable")
    cells = [[pair_text(row), row["at"], difference_text(row), leads_text(row)] for row in _shown(rows)]
    title = _title(f"at one {tune} for all seeds, not corrected", rows)
    return table_of(title, before_numbers("first - second", tune, "difference (95% interval)", "leads"), cells)
