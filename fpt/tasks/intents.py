"""Intents: what a person wants who wrote a short text. BANKING77 and CLINC150, from their authors' own addresses."""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from fpt.tasks.arrays import Divide, Finite, digest, hold_out, last_rows
from fpt.tasks.catalogue import TASKS, Pooling
from fpt.tasks.downloads import fetch
from fpt.tasks.tables import few
from fpt.tasks.task import Task
from fpt.tasks.texts import tokenized

RAW = "https://raw.githubusercontent.com/"
BANKING = RAW + "PolyAI-LDN/task-specific-datasets/57ec275d8078af65b7731c2a98be812d844a6d6b/banking_data/"
CLINC = RAW + "clinc/oos-eval/828f8093932c8fe6ca7936c3d2e52903b1c523de/data/"
((TRAIN, TEST),) = TASKS["banking77"].files
((FULL,),) = TASKS["clinc150"].files
SOURCES = {  # address and SHA-256 of each file
    TRAIN: (BANKING + "train.csv", "b06e26ac675513959a63135f11b94ea7786ed02da65db93a5650d8838cbc664b"),
    TEST: (BANKING + "test.csv", "d12d6e3bc4c3103966ae786dc435913c0c563dfa328f5a3646d0e62cfeeb474d"),
    FULL: (CLINC + "data_full.json", "36923c3705a59e08fe9c3883d8bc2dd966ef93e22cb78ac41171782a698d56e0"),
}
SHARE = 10  # one in so many training texts of BANKING77 is validation: 1,000 of 10,003

Pairs = list[list[str]]  # text, intent


def banking77(data_dir: Path, variant: str, labels: int, tokenizer: str, pooling: Pooling, **reading: Any) -> Task:
    """Customers' queries to a bank. The test set is the official one; of the training file a tenth, stratified and
    drawn by the seed, is validation.

    Of what is left all texts train, or so many `labels` a class, drawn by the seed. `pooling` is as of a Task,
    `reading` as of fpt.tasks.texts.tokenized. Raises DataError as `fetch` does.
    """
    tables = [pd.read_csv(path, dtype=str, keep_default_na=False) for path in _files("banking77", data_dir)]
    train, test = (table[["text", "category"]].to_numpy().tolist() for table in tables)
    return _task(
        "banking77",
        [train, test],
        partial(hold_out, count=max(1, len(train) // SHARE)),
        labels,
        reading,
        pooling=pooling,
        checksum=digest(SOURCES[TRAIN][1], SOURCES[TEST][1]),
        source="BANKING77 (Casanueva et al. 2020), as its authors publish it",
        licence="CC BY 4.0",
    )


def clinc150(data_dir: Path, variant: str, labels: int, tokenizer: str, pooling: Pooling, **reading: Any) -> Task:
    """Queries to an assistant, in the three parts of its authors, without those that are out of scope. Otherwise as
    `banking77`."""
    (path,) = _files("clinc150", data_dir)
    content = json.loads(path.read_text(encoding="utf-8"))
    return _task(
        "clinc150",
        [content["train"], content["val"], content["test"]],
        partial(last_rows, count=len(content["val"])),
        labels,
        reading,
        pooling=pooling,
        checksum=digest(SOURCES[FULL][1]),
        source="CLINC150 (Larson et al. 2019), as its authors publish it",
        licence="CC BY 3.0",
    )


def _files(task: str, data_dir: Path) -> list[Path]:
    """The whole files of a task; downloaded where they are missing."""
    entry = TASKS[task]
    return [fetch(data_dir / name, SOURCES[name][1], [SOURCES[name][0]], entry.advice) for name in entry.files[0]]


def _task(
    name: str, parts: Sequence[Pairs], divide: Divide, labels: int, reading: Mapping[str, Any], **card: Any
) -> Task:
    """The task of these parts, the training part first and the test part last. `divide` is as of Finite."""
    pairs = [pair for part in parts for pair in part]
    classes, tests = sorted({intent for _, intent in pairs}), len(parts[-1])
    texts = [text for text, _ in pairs]
    read = tokenized(name, texts, name, **reading)
    examples = read.examples(torch.tensor([classes.index(intent) for _, intent in pairs])[:, None])
    used = f"{labels} of each class train" if labels else "all that are neither for validation nor for test train"
    return Task(
        Finite(examples[:-tests], examples[-tests:], divide, per_class=labels),
        **read.card,
        **card,
        classes=len(classes),
        texts=tuple(texts),
        read=f"{len(pairs):,} texts, {len(classes)} classes ({few(classes)}); {used}",
    )
