"""A workspace of made-up results in the documented format, whose verdicts are known beforehand."""

import json
import math
from functools import partial

import numpy as np
import pandas as pd
import small_studies
from small_studies import FOUR_ARMS, STANDS_FOR

from fpt.files import sha256
from fpt.papers.schema import RULES
from fpt.results.mapping import write_mapping
from fpt.seeds import stream
from fpt.sweeps import load_study, selection
from fpt.sweeps.record import sealed
from fpt.training.recipe import ATTENTION

STUDY = f"""
name: A made-up study
{STANDS_FOR}
defaults: {{compute_type: float32, random_init: matched, steps: 400,
           learning_rates: [1e-4, 1e-3, 1e-2, 1e-1],
           seeds: [0, 1, 2, 3, 4, 5, 6, 7]}}
{FOUR_ARMS}  - {{task: digits, arm: [frozen-random, unfrozen-random], random_init: fixed}}
"""
PEAKS = {  # the learning rate at which each arm is best, and how good it is there
    "frozen-pretrained": (1e-2, 0.86),
    "frozen-random": (1e-2, 0.80),
    "unfrozen-pretrained": (1e-3, 0.90),
    "unfrozen-random": (1e-3, 0.88),
}


def accuracy(spec, rate, seed):
    """A hump over the learning rate, 8 points lower a decade away for frozen arms, 40 for unfrozen ones."""
    best, top = PEAKS[spec.arm]
    width = 0.08 if spec.trainable == "fpt" else 0.4
    noise = np.random.default_rng(stream(seed, spec.hash, f"{rate:g}")).normal(0, 0.004)
    return round(float(np.clip(top - width * abs(math.log10(rate / best)) + noise, 0.1, 1)), 4)


def workspace(root, name="laptop", study=STUDY):
    """A workspace with one study and no results; returns the study's folder."""
    return small_studies.workspace(root, study, name, notebooks=False)


def finish(study, inside="", accuracy=accuracy, skip=()):
    """Write results for every sweep of the study whose arm is not in `skip`."""
    for spec in load_study(study).sweeps:
        if spec.arm not in skip:
            write(spec, study / inside / spec.folder_name, accuracy)
    if inside == "published":
        write_mapping(study.parent, [load_study(study)])
    return study


def write(spec, folder, accuracy=accuracy, added=(), **change):
    """A finished sweep: nan from `accuracy` means that the run diverged before its first evaluation. The grid was
    extended by the rates `added`; `change` is of result.json."""
    grid = sorted({*spec.learning_rates, *added})
    runs = runs_of(grid, spec.seeds, spec.steps, partial(accuracy, spec)).assign(sweep=spec.folder_name)
    validation = selection.by_seed(runs)
    folder.mkdir(parents=True, exist_ok=True)
    tables = {"runs": runs, "curves": _curves(spec, runs)}
    if ATTENTION in spec.measures:
        tables["attention"] = _attention(runs)
    for name, frame in tables.items():
        frame.to_parquet(folder / f"{name}.parquet", index=False)
    result = {
        "spec": spec.resolved() | {"arm": spec.arm},
        "hash": spec.hash,
        "protocol": 2,
        "grid": grid,
        **selection.chosen(validation),
        "test": {"drawn_by_seed": False, "size": 10**9, "budget": 150, "last": 300},
        "asks": {},
        "rules": RULES,
        "fleets": [[len(grid), len(spec.seeds)]],
        "compiled": False,
        "tables": {name: sha256(folder / f"{name}.parquet") for name in tables},
        "data_checksum": "0" * 64,
        "weights_checksum": "0" * 64,
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
    (folder / "result.json").write_text(json.dumps(sealed(result | change)))


def rewrite(path, frame):
    """Another table in the place of one of a finished sweep, and its checksum in the record."""
    frame.to_parquet(path, index=False)
    result = path.with_name("result.json")
    record = json.loads(result.read_text())
    record["tables"][path.stem] = sha256(path)
    result.write_text(json.dumps(sealed(record)))


def runs_of(rates, seeds, steps, accuracy):
    """A row a run of this accuracy, wherever it is measured; nan means that it diverged before its evaluation."""
    values = [(rate, seed, accuracy(rate, seed)) for rate in rates for seed in seeds]
    runs = pd.DataFrame(values, columns=["learning_rate", "seed", "validation_accuracy"])
    names = ("train_accuracy", "test_accuracy", "test_accuracy_last", "train_accuracy_last")
    diverged = runs["validation_accuracy"].isna().map({True: 1, False: None}).astype("Int64")
    return runs.assign(**dict.fromkeys(names, runs["validation_accuracy"]), best_step=steps, diverged_at=diverged)


def _curves(spec, runs):
    """Every run climbs from chance with the square root of the steps; B at the budgets is what A is."""
    steps = pd.DataFrame({"step": spec.evaluation_steps()})
    rows = steps.merge(runs[["sweep", "learning_rate", "seed", "validation_accuracy"]], how="cross")
    value = 0.1 + (rows["validation_accuracy"] - 0.1) * (rows["step"] / spec.steps) ** 0.5
    tested = value.where(rows["step"].isin(spec.budgets()))
    return rows.assign(
        validation_loss=2.3 * (1 - value), validation_accuracy=value, test_accuracy=tested, train_accuracy=tested
    )


def _attention(runs):
    """Two queries after two keys, of which each needs the one at its own place; training turns to it."""
    rows = [
        {"trained": trained, "query": query, "key": key, "chance": (key == query - 2) / 4}
        | {"weight": (0.2 + 0.5 * trained) if key == query - 2 else 0.1}
        for trained in (False, True)
        for query in (2, 3)
        for key in range(4)
    ]
    maps = runs[["sweep", "learning_rate", "seed"]].merge(pd.DataFrame(rows), how="cross")
    return maps.assign(relevant=maps["weight"].where(maps["chance"] > 0, 0.0))
