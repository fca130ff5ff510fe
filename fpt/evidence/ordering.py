"""Who is on top at which learning rate: unfrozen arms beside the frozen pretrained one (Rothermel et al., Fig. 1-3)."""

import pandas as pd

from fpt.evidence.claims import NAMES, points
from fpt.evidence.runs import rate_text
from fpt.evidence.stats import Paired, paired

OTHERS = ("UP", "UR")


def ordering(runs: pd.DataFrame) -> dict[str, dict[float, Paired]]:
    """For each unfrozen arm of one setup, by rate of the grid: its test accuracy minus FP's, paired by selection seed.

    The intervals are not adjusted for their number: this describes; the verdicts are those of `headline`.
    """
    chosen = runs[runs["stage"] == "selection"]
    by_seed = {
        key: cell.set_index("seed")["test_accuracy"].astype(float)
        for key, cell in chosen.groupby(["label", "learning_rate"])
    }
    rates = sorted(chosen["learning_rate"].unique())
    return {
        arm: {rate: paired(by_seed[arm, rate], by_seed["FP", rate]) for rate in rates
              if (arm, rate) in by_seed and ("FP", rate) in by_seed}
        for arm in OTHERS
    }  # fmt: skip


def ordering_table(runs: pd.DataFrame) -> pd.DataFrame:
    """A row a rate, as text, in points: each unfrozen arm minus FP and its 95% interval; empty where fewer than three
    seeds of both stayed finite."""
    found = ordering(runs)
    rows = []
    for rate in sorted({rate for tests in found.values() for rate in tests}):
        row = {"rate": rate_text(rate)}
        for arm, tests in found.items():
            test = tests.get(rate, Paired(0))
            row[f"{arm} - FP"] = points(test.mean)
            row[f"95% interval ({arm})"] = f"{points(test.low)} to {points(test.high)}" if points(test.mean) else ""
        rows.append(row)
    return pd.DataFrame(rows)


def turning(runs: pd.DataFrame, arm: str = "UP") -> tuple[bool | None, str]:
    """Whether the sign of `arm` - FP changes over the grid, and a clause that says where it leads and trails most.

    Only differences count whose interval excludes zero; None where there is no such difference.
    """
    tests = ordering(runs)[arm]
    leads = {rate: test.mean for rate, test in tests.items() if test.low > 0}
    trails = {rate: -test.mean for rate, test in tests.items() if test.high < 0}
    clauses, whom = [], NAMES["FP"]
    for word, means in (("leads", leads), ("trails", trails)):
        if means:
            rate = max(means, key=means.__getitem__)
            clauses.append(f"{word} {whom} by {100 * means[rate]:.1f} points at {rate_text(rate)}")
            whom = "it"
    return bool(leads and trails) if clauses else None, f"{NAMES[arm]} {' and '.join(clauses)}"
