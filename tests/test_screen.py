"""Tables on narrow screens: no number is broken, and no name is cut."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from rich.table import Table
from typer.testing import CliRunner

from fpt.cli import app
from fpt.cli.progress import SweepBars
from fpt.cli.tables import before_numbers, console, table_of
from fpt.sweeps.study import load_study

NAMES = st.text("abcdefgh-0123456789 ", min_size=1, max_size=90).map(str.strip).filter(bool)
NUMBERS = st.sampled_from(["12", "10,660,234", "-0.001234 (-0.02345 to +0.001234)", "0.8123 and 0.8345", "1.7e-05", ""])
WIDTHS = [60, 80]


def columns_of(shown: str) -> list[str]:
    """What stands in each column of a table that was printed, without blanks."""
    lines = [line.split("│")[1:-1] for line in shown.splitlines() if line.startswith("│")]
    return ["".join("".join(cells).split()) for cells in zip(*lines, strict=True)]


@settings(max_examples=100, deadline=None)
@given(
    st.integers(1, 8).flatmap(lambda n: st.lists(st.tuples(NAMES, *[NUMBERS] * n), min_size=1, max_size=4)),
    st.sampled_from(WIDTHS),
)
def test_every_number_is_whole_and_every_name_complete(rows: list[tuple[str, ...]], width: int) -> None:
    before, console.width = console.width, width
    heads = ["first - second", *(f"number {place}" for place in range(len(rows[0]) - 1))]
    with console.capture() as captured:
        console.print(table_of("", before_numbers(*heads), rows))
    console.width = before
    shown = captured.get()
    assert max(map(len, shown.splitlines())) <= width
    assert "…" not in shown
    for row in rows:
        assert all(number in shown for number in row[1:])
    if len(columns_of(shown)) == len(heads):
        assert columns_of(shown)[0] == "".join("".join(name.split()) for name, *_ in rows)
    else:  # a block of lines for each row
        assert columns_of(shown)[1] == "".join("".join(cell.split()) for row in rows for cell in row)


@pytest.mark.parametrize("name", ["[/b]rate", "[red]", "\x1b[31mred"])
def test_names_are_shown_as_they_are_and_obeyed_by_nobody(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "width", 80)
    with console.capture() as captured:
        console.print(table_of(name, [name, "other"], [(name, "x")]))
    shown = "".join(captured.get().split())
    assert shown.count(name.replace("\x1b", r"\x1b")) == 3
    assert "\x1b" not in shown


@pytest.fixture(params=WIDTHS)
def width(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr("fpt.cli.tables.console.width", request.param)
    return int(request.param)


def printed(width: int, *words: str) -> str:
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == 0, done.output
    table = [line for line in done.output.splitlines() if line and line[0] in "│┃┏└"]
    assert table
    assert max(map(len, table)) <= width
    assert "…" not in done.output
    return done.output


def test_compared_arms_can_be_told_apart(width: int, tmp_path: Path) -> None:
    arms = {f"pythia-410m-{kind}-of-the-attention-layers": 0.8 + 0.01 * place for place, kind in enumerate("ab")}
    rows = [f"{arm},{seed},{level + 0.001234 * (seed % 3) * level}" for arm, level in arms.items() for seed in range(8)]
    (tmp_path / "runs.csv").write_text("\n".join(["model,seed,accuracy", *rows]))
    shown = printed(width, "compare", str(tmp_path / "runs.csv"))
    assert "-".join(arms) in columns_of(shown)[1]
    assert re.search(r"-0\.01\d* \(-0\.01\d* to -0\.01\d*\)", shown)
    assert re.search(r"0\.8\d+ and 0\.81\d+", shown)


def test_models_show_whole_counts(width: int) -> None:
    assert "797,322" in printed(width, "models", "--backbone", "tiny-lm")


@pytest.mark.parametrize("command", ["plan", "status"])
def test_sweeps_are_shown_by_their_whole_names(width: int, command: str) -> None:
    study = load_study(Path("runs/plane-digits"))
    columns = columns_of(printed(width, command, "plane-digits"))
    for spec in study.sweeps:
        assert any(spec.folder_name in column for column in columns)


def test_bars_of_two_sweeps_can_be_told_apart(width: int) -> None:
    study = load_study(Path("runs/controls"))
    bars = SweepBars(study.sweeps, study.folder)
    bars.watch(study.sweeps, [])
    narrow = Console(width=width, force_terminal=True, color_system=None)
    with narrow.capture() as captured:
        narrow.print(bars.bars.get_renderable())
    assert "…" not in captured.get()


def test_a_table_without_rows_is_one() -> None:
    assert isinstance(table_of("nothing", before_numbers("name", "number"), []), Table)
