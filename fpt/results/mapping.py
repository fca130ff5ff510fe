"""What the analysis must know of published sweeps beside their records: runs/arms.csv, under which name, pair and task
a sweep counts, and runs/rows.csv, which rows of which papers' tables it serves.

A record is what happened, and stays. This is how it is read, and changes when a study, a paper or the list of pairs
does: `fpt publish STUDY` writes the lines of a study, `fpt publish --mapping` those of all studies.
"""

import csv
import io
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from fpt.files import known_sha256, write_atomically
from fpt.results.arm import ARMS, LISTED, ROWS, SERVED
from fpt.results.pairs import pairs
from fpt.sweeps.record import PUBLISHED, RESULT, check
from fpt.sweeps.spec import SweepSpec
from fpt.sweeps.study import Study
from fpt.sweeps.words import label, labels


def lines_of(study: str, sweeps: Collection[SweepSpec]) -> Iterator[dict[str, Any]]:
    """A line of runs/arms.csv for every sweep of a study, finished or not: what fpt.results.arm.Arm has beside its
    record. Names tell apart all sweeps of the study."""
    names = labels(sweeps)
    for spec in sweeps:
        own, task = "task" in spec.means.contents, spec.means.task
        layers = spec.backbone_options.get("layers") or spec.means.backbone.layers
        yield {
            "study": study,
            "sweep": spec.folder_name,
            "task": spec.task,
            "name": names[spec.folder_name],
            "letters": label(spec),
            "pair": pairs().name(spec.backbone, spec.task),
            "layers": int(layers),
            "classes": task.classes or None,
            "collection": None if own else task.collection,
            "threshold": spec.threshold,
        }


def rows_of(study: Study) -> Iterator[dict[str, Any]]:
    """A line of runs/rows.csv for every row of a paper's table, on every task, that a sweep of a study serves."""
    for row in study.rows:
        yield {
            "study": study.folder.name,
            "sweep": row.sweep,
            "table": row.table.id,
            "row": row.row,
            "stands_for": ";".join(row.stands_for),
            "scale": row.scale,
        }


def write_mapping(runs: Path, studies: Iterable[Study]) -> None:
    """Write runs/arms.csv and runs/rows.csv with the lines of these studies made anew. Other lines stay; those of a
    sweep that is not published go. Raises DataError for a record that the file does not have yet and that no sweep
    wrote: later its SHA-256 is all that is checked."""
    studies = list(studies)
    names = {study.folder.name for study in studies}
    arms = [line for study in studies for line in lines_of(study.folder.name, study.sweeps)]
    rows = [line for study in studies for line in rows_of(study)]
    for file, columns, anew in ((ARMS, LISTED, arms), (ROWS, SERVED, rows)):
        written = _written(runs / file, columns)
        kept = [line for line in written if line["study"] not in names]
        lines = [line for line in (*kept, *anew) if _record(runs, line).is_file()]
        if file == ARMS:
            known = {line["record"] for line in written}
            lines = [
                line if "record" in line else line | {"record": _checked(_record(runs, line), known)} for line in lines
            ]
        text = io.StringIO()
        writer = csv.DictWriter(text, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(lines, key=lambda line: str(line["study"])))  # within a study as it was written
        write_atomically(runs / file, text.getvalue().encode())


def _checked(path: Path, known: Collection[str]) -> str:
    """The SHA-256 of a record, which is checked with its tables where it is not among those that are `known`."""
    if (sha256 := known_sha256(path)) not in known:
        check(path.parent)
    return sha256


def _written(path: Path, columns: tuple[str, ...]) -> list[dict[str, Any]]:
    """The lines of a file as they stand there; none where it is not there, or has other columns. A line that has not
    as many values is left out: this is what mends such a file."""
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        if tuple(reader.fieldnames or ()) != columns:
            return []
        return [line for line in reader if None not in line and None not in line.values()]


def _record(runs: Path, line: Mapping[str, str]) -> Path:
    return runs / line["study"] / PUBLISHED / line["sweep"] / RESULT
