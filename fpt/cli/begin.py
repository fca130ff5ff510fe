"""A new workspace, for `fpt init`: a folder with one study, which runs as it is."""

from pathlib import Path

from fpt.errors import SpecError
from fpt.files import NAME, STUDY_FILE, write_atomically

FIRST = Path(__file__).with_name("first_study.yaml")
README = """\
A workspace of fpt: every folder of runs/ with a study.yaml is a study, and its results lie beside that file.
Train one by `fpt run {study}`, then `fpt report {study}` writes runs/{study}/report.html.
Papers, arms and tasks of your own lie in papers/ and tasks/; `fpt list` shows what there is.
"""


def begin(folder: Path, study: str) -> Path:
    """Write a first study into the folder, and a README where it has none; returns the file of the study.

    Raises SpecError for a name that no study can have, and for one that is there.
    """
    if not NAME.fullmatch(study):
        raise SpecError(f"{study!r} cannot name a study: letters and digits, then . _ - as well")
    file = folder / "runs" / study / STUDY_FILE
    if file.exists():
        raise SpecError(f"{file} is there: `fpt run {study}` trains it; give another name")
    file.parent.mkdir(parents=True, exist_ok=True)
    text = FIRST.read_text(encoding="utf-8")
    write_atomically(file, text.replace("name: first", f"name: {study}").replace("run first", f"run {study}").encode())
    if not (folder / "README.md").exists():
        write_atomically(folder / "README.md", README.format(study=study).encode())
    return file
