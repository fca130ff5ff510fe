"""A workspace of made-up results in the documented format, whose verdicts are known beforehand."""

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from fpt.seeds import stream
from fpt.sweeps import SweepSpec, load_study
from fpt.training.recipe import ATTENTION

STUDY = """
name: A made-up study
paper: rothermel2021
tables: [rothermel-table-1]
replace:
  - {where: {backbone: gpt2}, with: {backbone: tiny-lm}}
  - {where: {task: mnist}, with: {task: digits}}
  - {where: {task: [listops, cifar10, cifar10-lra]}, with: null}
defaults: {backbone: tiny-lm, random_init: matched, steps: 400, learning_rates: [1e-4, 1e-3, 1e-2, 1e-1],
           selection_seeds: [0, 1, 2], confirmation_seeds: [10, 11, 12, 13, 14, 15, 16, 17],
           reference_rates: [1e-3, 1e-2]}
sweeps:
  - {task: digits, arm: [frozen-random, unfrozen-random], random_init: fixed}
"""
TABLE = """
name: A made-up study of a table
paper: lu2021
tables: [lu-table-2, lu-table-6, lu-figure-3]
replace:
  - {where: {backbone: gpt2}, with: {backbone: tiny-lm}}
  - {where: {backbone: vit}, with: null}
  - {where: {pretrained_by: full/bit-memory}, with: null}
  - {where: {task: mnist}, with: {task: digits}}
  - {where: {task: [bit-memory, listops, cifar10, cifar10-lra, homology]}, with: null}
defaults: {random_init: matched, steps: 400, learning_rates: [1e-4, 1e-3, 1e-2, 1e-1], threshold: 0.8,
           selection_seeds: [0, 1, 2], confirmation_seeds: [10, 11, 12, 13, 14], reference_rates: [1e-3]}
"""
PEAKS = {  # the learning rate at which each arm is best, and how good it is there
    "frozen-pretrained": (1e-2, 0.86),
    "frozen-random": (1e-2, 0.80),
    "unfrozen-pretrained": (1e-3, 0.90),
    "unfrozen-random": (1e-3, 0.88),
}

Accuracy = Callable[[SweepSpec, float, int], float]


def accuracy(spec: SweepSpec, rate: float, seed: int) -> float:
    """A hump over the learning rate, 8 points lower a decade away for frozen arms, 40 for unfrozen ones."""
    best, top = PEAKS[spec.arm]
    width = 0.08 if spec.trainable == "fpt" else 0.4
    noise = np.random.default_rng(stream(seed, spec.hash, f"{rate:g}")).normal(0, 0.004)
    return round(float(np.clip(top - width * abs(math.log10(rate / best)) + noise, 0.1, 1)), 4)


def workspace(root: Path, name: str = "laptop", study: str = STUDY) -> Path:
    """A workspace with one study and no results; returns the study's folder."""
    (root / "notebooks").mkdir(parents=True, exist_ok=True)
    folder = root / "runs" / name
    folder.mkdir(parents=True)
    (folder / "study.yaml").write_text(study)
    return folder


def finish(study: Path, inside: str = "", accuracy: Accuracy = accuracy, skip: tuple[str, ...] = ()) -> Path:
    """Write results for every sweep of the study whose arm is not in `skip`."""
    for spec in load_study(study).sweeps:
        if spec.arm not in skip:
            write(spec, study / inside / spec.folder_name, accuracy)
    return study


def write(spec: SweepSpec, folder: Path, accuracy: Accuracy = accuracy) -> None:
    """A finished sweep: nan from `accuracy` means that the run diverged before its first evaluation."""
    from fpt.sweeps.selection import select

    selection = _runs(spec, "selection", spec.learning_rates, spec.selection_seeds, accuracy)
    chosen = select(selection)
    rates = sorted({*spec.reference_rates, *([chosen.rate] if chosen.rate else [])})
    runs = pd.concat([selection, _runs(spec, "confirmation", rates, spec.confirmation_seeds, accuracy)])
    folder.mkdir(parents=True)
    runs.to_parquet(folder / "runs.parquet", index=False)
    _curves(spec, runs).to_parquet(folder / "curves.parquet", index=False)
    if ATTENTION in spec.measures:
        _attention(runs).to_parquet(folder / "attention.parquet", index=False)
    result = {
        "spec": spec.resolved() | {"arm": spec.arm},
        "hash": spec.hash,
        "protocol": 1,
        "selected_rate": chosen.rate,
        "at_edge": chosen.at_edge,
        "within_one_se": chosen.within_one_se,
        "eligible": chosen.eligible,
        "data_checksum": "0" * 64,
        "compute_type": "float32",
        "threads": 1,
        "device": "a processor",
        "version": "0.1.0",
        "git": {"commit": "0" * 40, "dirty": False},
        "versions": {"python": "3.11", "torch": "2.0"},
        "started_utc": "2026-01-01T00:00:00Z",
        "finished_utc": "2026-01-01T00:01:00Z",
        "wall_seconds": 60.0,
    }
    (folder / "result.json").write_text(json.dumps(result))


def _runs(
    spec: SweepSpec,
    stage: str,
    rates: tuple[float, ...] | list[float],
    seeds: tuple[int, ...],
    accuracy: Accuracy,
) -> pd.DataFrame:
    rows = []
    for rate in rates:
        for seed in seeds:
            value = accuracy(spec, rate, seed)
            rows.append(
                {
                    "sweep": spec.folder_name,
                    "stage": stage,
                    "learning_rate": rate,
                    "seed": seed,
                    "best_step": spec.steps,
                    "validation_accuracy": value,
                    "train_accuracy": value,
                    "test_accuracy": value,
                    "test_accuracy_exact": value,
                    "test_accuracy_last": value,
                    "train_accuracy_last": value,
                    "diverged_at": 1 if math.isnan(value) else None,
                }
            )
    return pd.DataFrame(rows).astype({"diverged_at": "Int64"}) if rows else pd.DataFrame()


def _curves(spec: SweepSpec, runs: pd.DataFrame) -> pd.DataFrame:
    frames = []
    for k in range(1, spec.evaluations + 1):
        share = k / spec.evaluations
        value = 0.1 + (runs["validation_accuracy"] - 0.1) * share**0.5
        frame = runs[["sweep", "stage", "learning_rate", "seed"]].copy()
        frame["step"] = round(share * spec.steps)
        frames.append(
            frame.assign(
                train_loss=2.3 * (1 - value),
                train_accuracy=value,
                validation_loss=2.3 * (1 - value),
                validation_accuracy=value,
            )
        )
    return pd.concat(frames, ignore_index=True)


def _attention(runs: pd.DataFrame) -> pd.DataFrame:
    """Two queries after two keys, of which each needs the one at its own place; training turns to it."""
    rows = [
        {"trained": trained, "query": query, "key": key, "chance": (key == query - 2) / 4}
        | {"weight": (0.2 + 0.5 * trained) if key == query - 2 else 0.1}
        for trained in (False, True)
        for query in (2, 3)
        for key in range(4)
    ]
    maps = runs[["sweep", "stage", "learning_rate", "seed"]].merge(pd.DataFrame(rows), how="cross")
    return maps.assign(relevant=maps["weight"].where(maps["chance"] > 0, 0.0))
