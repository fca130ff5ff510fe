"""The command about a table of results."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from fpt.cli.options import AsJson, check_page
from fpt.errors import SpecError
from fpt.files import write_atomically

Results = Annotated[Path, typer.Argument(metavar="RESULTS", help="A CSV, TSV or parquet file, a row a run.")]
By = Annotated[str | None, typer.Option(metavar="COLUMN", help="The column of arms (default: guessed).")]
Pair = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN", help="The column of seeds (default: guessed); or several.")
]
Score = Annotated[str | None, typer.Option(metavar="COLUMN", help="The column of scores (default: guessed).")]
Tune = Annotated[
    list[str] | None,
    typer.Option("--tune", "--rate", metavar="COLUMN", help="Of learning rates, or others: every arm at its own."),
]
Choose = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="By what a rate is chosen, on the other seeds: validation.")
]
Within = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN", help="Of data sets or tasks: each is compared apart.")
]
Example = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Of examples, where a row is an answer: their noise is added, in pairs."),
]
Where = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN=VALUE", help="Only these rows; several values of one: any.")
]
LowerIsBetter = Annotated[bool, typer.Option("--lower-is-better", help="Of scores, such as losses.")]
ChooseLower = Annotated[
    bool | None,
    typer.Option("--choose-lower/--choose-higher", help="Which is better of --choose (default: as of scores)."),
]
Unpaired = Annotated[
    bool, typer.Option("--unpaired", help="Seeds of two arms are no pairs: Welch's t-test on all runs of each.")
]
TestExamples = Annotated[
    int | None,
    typer.Option(metavar="N", help="Of accuracies: add the noise of N test examples, which all seeds share or split."),
]
TestShare = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE", help="Of folds or splits: the share of the data that each tests on (0.1 of ten folds)."
    ),
]
Point = Annotated[
    float | None,
    typer.Option(help="The difference to plan for, as the scores (default: a percentage point)."),
]
Margin = Annotated[float | None, typer.Option(help="Test whether two arms are less than this apart.")]
Collapse = Annotated[float | None, typer.Option(help="A run so far behind the median of its rate: signs are flipped.")]
Diverged = Annotated[
    float | None, typer.Option(help="The score that a run without a finite one counts as, such as chance.")
]
PageFile = Annotated[Path | None, typer.Option("--page", metavar="FILE", help="Write one HTML page with figures.")]


def compare(
    results: Results,
    by: By = None,
    pair: Pair = None,
    score: Score = None,
    tune: Tune = None,
    choose: Choose = None,
    within: Within = None,
    example: Example = None,
    where: Where = None,
    lower_is_better: LowerIsBetter = False,
    choose_lower: ChooseLower = None,
    unpaired: Unpaired = False,
    test_examples: TestExamples = None,
    test_share: TestShare = None,
    point: Point = None,
    margin: Margin = None,
    collapse: Collapse = None,
    diverged: Diverged = None,
    page: PageFile = None,
    as_json: AsJson = False,
) -> None:
    """Compare the arms of any table of results, every arm at its own rate: intervals, corrections, seeds needed.

    fpt compare sweeps.csv --by method --pair seed --rate lr --score test_acc --choose val_acc
    """
    from fpt.cli.compared import show
    from fpt.results.compare import compare as compared
    from fpt.results.table import read_results

    if page:
        check_page("--page", page)
    rows = _where(where or ())
    found = compared(
        read_results(results), by, pair or (), score, tune=tune or (), choose=choose, within=within or (),
        example=example, where=rows, lower_is_better=lower_is_better, choose_lower=choose_lower,
        unpaired=unpaired, test_examples=test_examples, test_share=test_share, point=point, margin=margin,
        collapse=collapse, diverged=diverged,
    )  # fmt: skip
    if page:
        from fpt.show.compared_page import compared_page

        write_atomically(page.absolute(), compared_page(found, results.name).encode())
    show(found, as_json)


def _where(given: Sequence[str]) -> dict[str, list[str]]:
    """COLUMN=VALUE by column. Raises SpecError for what is none."""
    found: dict[str, list[str]] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not (name and equals):
            raise SpecError(f"--where {each}: must be COLUMN=VALUE")
        found.setdefault(name, []).append(value)
    return found
