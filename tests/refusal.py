"""What every refusal of bad input has in common; tests/bad_input/ has a table of bad inputs for each kind."""

from pathlib import Path

from typer.testing import CliRunner

from fpt.cli import app

TRAINED = ("*.parquet", "*.safetensors", "result.json", "progress.json", "checkpoint")


def trained(root: Path) -> set[Path]:
    """Everything below `root` that only training leaves."""
    return {path for pattern in TRAINED for path in root.rglob(pattern)}


def refused(*words: str, named: tuple[str, ...]) -> str:
    """The message of `fpt WORDS`, which must refuse: exit code 2, no traceback, all of `named` in the message, and
    nothing trained below the working directory."""
    before = trained(Path.cwd())
    done = CliRunner().invoke(app, list(words))
    message = " ".join(done.output.split())
    assert done.exit_code == 2, f"{words}: exit code {done.exit_code}\n{done.output}"
    assert isinstance(done.exception, SystemExit), f"{words}: {done.exception!r}"
    assert "Traceback" not in message
    for name in named:
        assert name in message, f"{words}: {name!r} is not named in: {message}"
    assert trained(Path.cwd()) == before, f"{words}: something was trained"
    return message
