"""Speed as tables of text and sentences, for a page or a terminal: what `fpt bench` measured, and whether the targets
are met."""

import pandas as pd

from fpt.bench.cost import Bench, Measurement
from fpt.sweeps.words import SHORT

# Decided before anything was measured: backbone, task, trainable groups, runs (None: the largest fleet that was
# measured), ratio at least. Those of the processor are for two cores that multiply in bfloat16.
Target = tuple[str, str, str, int | None, float]
ON_CPU: list[Target] = [("gpt2", "mnist", "fpt", None, 5.0), ("gpt2", "mnist", "all", None, 3.0)]
ON_CPU += [("tiny-lm", "digits", "fpt", 21, 6.0), ("tiny-lm", "digits", "all", 21, 4.0)]
ON_GPU: list[Target] = [("gpt2", "mnist", trainable, 27, 25.0) for trainable in ("fpt", "all")]
ARMS = {"fpt": "frozen", "all": "unfrozen"}


def bench_table(bench: Bench) -> pd.DataFrame:
    """One row per cell, as text; a dash without a reference. Times are ms per run-step; `range` is that of the ratio
    over the rounds; `utilisation` is the share of the device's rate of products."""
    rows = []
    for row in sorted(bench.rows, key=lambda row: (row.backbone, row.tokens, row.task, row.runs)):
        used = bench.utilisation(row)
        cell = {
            "task": row.task if row.variant == "paper" else f"{row.task} ({row.variant})",
            "backbone": f"{row.backbone}:{layers}" if (layers := row.backbone_options.get("layers")) else row.backbone,
            "how": f"{row.compute_type}{', compiled' * row.compiled}",
            "tokens": f"{row.tokens:,}",
            "arm": SHORT.get(row.arm, row.arm),
            "runs": str(row.runs),
            "ratio": f"{row.ratio:.2f}" if row.ratio else "-",
            "range": f"{min(row.ratios):.2f} to {max(row.ratios):.2f}" if row.ratios else "-",
            "utilisation": f"{used:.1%}" if used >= 0.001 else f"{used:.2%}",
            "peak GiB": f"{row.peak_gib:.2f}",
            "reference": f"{1e3 * row.reference_seconds:,.1f}" if row.reference_seconds else "-",
            "fleet": f"{1e3 * row.seconds:,.1f}",
        }
        rows.append(cell)
    return pd.DataFrame(rows)


def bench_targets(bench: Bench) -> pd.DataFrame:
    """One row per target of this kind of device, as text: the ratio wanted and measured, and whether it is met."""
    rows = []
    for backbone, task, trainable, runs, wanted in ON_CPU if bench.kind == "cpu" else ON_GPU:
        cell = (backbone, task, "paper", trainable)
        fitting = [row for row in bench.rows if (row.backbone, row.task, row.variant, row.trainable) == cell]
        fitting = [row for row in fitting if runs in (None, row.runs) and not row.backbone_options.get("layers")]
        best = max(fitting, key=lambda row: (row.runs, row.ratio or 0), default=None)
        named = {"backbone": backbone, "task": task, "arm": ARMS[trainable], "runs": str(best.runs) if best else ""}
        ratio = best.ratio if best else None
        met = "not measured"
        if ratio is not None:
            met = "yes" if ratio >= wanted else "no"
        rows.append(named | {"at least": f"{wanted:.2f}", "measured": f"{ratio:.2f}" if ratio else "-", "met": met})
    return pd.DataFrame(rows)


def frozen_shares(bench: Bench) -> pd.DataFrame:
    """What a step of a run with frozen layers costs, as a share of one of full training: `flop` and `seconds`, a row a
    workload that was measured both ways in one number type, by `model`. Each is of the largest fleet of its kind."""
    fields = {"task", "variant", "backbone", "backbone_options", "compute_type", "compiled"}
    by_way: dict[str, dict[str, Measurement]] = {way: {} for way in ARMS}
    for row in sorted(bench.rows, key=lambda row: row.runs):
        if isinstance(row.trainable, str) and row.trainable in by_way:
            by_way[row.trainable][row.model_dump_json(include=fields)] = row
    frozen, full = by_way.values()
    both = [(frozen[key], full[key]) for key in frozen if key in full]
    return pd.DataFrame(
        [[one.backbone, one.flop / other.flop, one.seconds / other.seconds] for one, other in both],
        columns=["model", "flop", "seconds"],
    )


def bench_words(bench: Bench) -> str:
    """One sentence: the device, its threads, and the rates that were measured as its ceiling."""
    single, half = bench.ceiling.float32_flop_per_second / 1e12, bench.ceiling.bfloat16_flop_per_second / 1e12
    return f"{bench.title}; {single:,.2f} TFLOP/s in float32, {half:,.2f} in bfloat16."
