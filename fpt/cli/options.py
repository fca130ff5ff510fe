"""The options of several commands."""

from pathlib import Path
from typing import Annotated

import typer

from fpt.errors import FptError

PAGES = (".html", ".htm")

StudyName = Annotated[str, typer.Argument(metavar="STUDY", help="A folder below runs/ that holds a study.yaml.")]
Root = Annotated[Path | None, typer.Option("--root", help="The workspace, with runs/STUDY/study.yaml: else nearest.")]
Only = Annotated[str | None, typer.Option("--only", metavar="ID", help="Only this table, figure or sweep ('mnist.*').")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def check_page(option: str, path: Path) -> None:
    """Refuse (FptError) what can be no page to write: what is there and no page holds data, or a study."""
    if not path.absolute().parent.is_dir() or path.is_dir():
        raise FptError(f"{option} {path}: must be a file in a folder that exists")
    if path.exists() and path.suffix.lower() not in PAGES:
        raise FptError(f"{option} {path}: is there already, and would be lost; give a name that ends in {PAGES[0]}")
