"""What is learned: a task is data and how it becomes tokens.

`catalogue` lists the tasks, `registry` finds and loads them, `task` and `arrays` are what is loaded, `own` reads your
own data, and the other modules load one kind of task each. What is named here needs no torch, so that plans and hashes
of specs need none.
"""

from fpt.tasks.catalogue import (
    BRIGHTEST_16,
    BY_BYTES,
    BY_MODEL,
    BYTES,
    LONGEST_SIDE,
    MEAN,
    PREDICTS,
    READS,
    TASKS,
    Entry,
    OwnTable,
    Pooling,
)
from fpt.tasks.own.paths import own_checksum, own_kind, own_path
from fpt.tasks.registry import CODE, check_task, data_folder, entry, known, load, own_code, own_table

__all__ = [
    "BRIGHTEST_16",
    "BYTES",
    "BY_BYTES",
    "BY_MODEL",
    "CODE",
    "LONGEST_SIDE",
    "MEAN",
    "PREDICTS",
    "READS",
    "TASKS",
    "Entry",
    "OwnTable",
    "Pooling",
    "check_task",
    "data_folder",
    "entry",
    "known",
    "load",
    "own_checksum",
    "own_code",
    "own_kind",
    "own_path",
    "own_table",
]
