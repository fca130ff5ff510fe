"""The options of `fpt compare`, those of `fpt advise` that say how data are read, and those of several commands."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from fpt.tasks import BRIGHTEST_16, LONGEST_SIDE


class Listable(StrEnum):
    """What `fpt list` can list."""

    STUDIES = "studies"
    TASKS = "tasks"
    MODELS = "models"
    ARMS = "arms"
    CLAIMS = "claims"


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
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Size = Annotated[
    int | None, typer.Option(min=1, max=LONGEST_SIDE, help="Of images: the side to which they are resized.")
]
Patch = Annotated[int | None, typer.Option(min=1, help="Pixels of a side, or columns, in a token.")]
White = Annotated[
    int | None, typer.Option(min=1, max=BRIGHTEST_16, help="Of images: white (default: 255; of 16 bits 65535).")
]
Padded = Annotated[bool, typer.Option("--padded", help="Of sequences in npz: 0 only fills, on the right.")]
Tokenizer = Annotated[
    str | None, typer.Option(metavar="own|bytes", help="Of texts (default: the model's own, where it has one).")
]
Pooling = Annotated[
    str | None, typer.Option(metavar="mean|last", help="Of texts in the model's own tokens (default: mean).")
]
Tokens = Annotated[int | None, typer.Option(min=1, help="Of texts: at most so many of each (default: 128).")]
