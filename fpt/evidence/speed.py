"""Speed: what `fpt bench` measured, as tables of text for a page or a terminal, and whether the targets are met."""

from pathlib import Path

import pandas as pd

from fpt.evidence.show.text import points
from fpt.evidence.runs import label, rate_text, studies
from fpt.evidence.stats import paired
from fpt.models import import_without_widgets
from fpt.sweeps.ledger import sweep_state, workspace
from fpt.sweeps.speeds import ADAM_BYTES, Bench, benches, predict
from fpt.sweeps.study import load_study

# Decided before anything was measured: backbone, task, trainable groups, runs (None: the largest fleet that was
# measured), figure, at least. Those of the processor are for two cores that multiply in bfloat16.
LONG = ("cifar10-lra", "listops")
Target = tuple[str, str, str, int | None, str, float]
ON_CPU: list[Target] = [("gpt2", "mnist", "fpt", None, "ratio", 4.0), ("gpt2", "mnist", "all", None, "ratio", 2.5)]
ON_CPU += [("tiny-lm", "digits", trainable, 21, "ratio", 3.0) for trainable in ("fpt", "all")]
ON_GPU: list[Target] = [("gpt2", "mnist", trainable, 27, "ratio", 25.0) for trainable in ("fpt", "all")]
ON_GPU += [("gpt2", "mnist", "fpt", 27, "utilisation", 0.45), ("gpt2", "mnist", "all", 27, "utilisation", 0.2)]
ON_GPU += [("gpt2", task, trainable, None, "utilisation", 0.35) for task in LONG for trainable in ("fpt", "all")]
ARMS = {"fpt": "frozen", "all": "unfrozen"}
SHOWN = {
    "backbone": "{}", "tokens": "{:,}", "arm": "{}", "runs": "{}", "ratio": "{:.2f}", "range": "{}",
    "utilisation": "{:.1%}", "ceiling": "{:.0%}", "peak_gib": "{:.2f}",
}  # fmt: skip


def load_benches(root: Path | None = None) -> list[Bench]:
    """What was measured, a device each, in the workspace around the working directory (or `root`); may be empty.

    Raises DataError for a file of runs/bench that `fpt bench` did not write.
    """
    return benches(workspace(root) / "runs")


def bench_table(bench: Bench) -> pd.DataFrame:
    """A row a cell, as text; a dash where there was no reference. Times are ms a run-step; `range` is that of the ratio
    over the rounds; `ceiling` is the utilisation of a fleet that multiplied at the device's rate and then updated at
    the rate of its memory."""
    rows = []
    for row in sorted(bench["rows"], key=lambda row: (row["backbone"], row["tokens"], row["task"], row["runs"])):
        products = row["flop"] / bench["ceiling"][f"{row['compute_type']}_flop_per_second"]
        updates = ADAM_BYTES * row["trainable_parameters"] / bench["ceiling"]["bytes_per_second"]
        variant = "" if row["variant"] == "paper" else f" ({row['variant']})"
        compared = "ratio" in row
        reference = f"{1e3 * row['reference_seconds']:,.1f}" if compared else "-"
        times = {"reference": reference, "fleet": f"{1e3 * row['seconds']:,.1f}"}
        added = {"arm": label(row["arm"]), "ceiling": products / (products + updates)}
        added["range"] = f"{min(row['ratios']):.2f} to {max(row['ratios']):.2f}" if compared else "-"
        shown = {name: text.format((row | added)[name]) for name, text in SHOWN.items() if compared or name != "ratio"}
        cells = {name.replace("_gib", " GiB"): text for name, text in ({"ratio": "-"} | shown).items()}
        rows.append({"task": f"{row['task']}{variant}{' *' * (row['inputs'] == 'random')}", **cells, **times})
    return pd.DataFrame(rows)


def bench_targets(bench: Bench) -> pd.DataFrame:
    """A row a target of this kind of device, as text: what was wanted, what was measured, and whether it is met."""
    rows = []
    for backbone, task, trainable, runs, figure, wanted in ON_CPU if bench["kind"] == "cpu" else ON_GPU:
        cell: dict[str, object] = {"backbone": backbone, "task": task, "variant": "paper", "trainable": trainable}
        cell |= {"runs": runs} if runs else {}
        fitting = [row for row in bench["rows"] if cell.items() <= {k: row[k] for k in cell}.items()]
        best = max(fitting, key=lambda row: int(row["runs"]), default=None)
        met = "not measured" if best is None else "yes" if best[figure] >= wanted else "no"
        measured = SHOWN[figure].format(best[figure]) if best else "-"
        named = {"backbone": backbone, "task": task, "arm": ARMS[trainable], "runs": str(best["runs"] if best else "")}
        wants = {"figure": figure, "at least": SHOWN[figure].format(wanted), "measured": measured, "met": met}
        rows.append(named | wants)
    return pd.DataFrame(rows)


def precision_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Confirmed test accuracies with bfloat16 and with float32 products, paired by seed, as text: a row a task, arm and
    rate. `spread` is the standard deviation over seeds with float32; `within` says whether the mean difference is."""
    rows = []
    confirmed = runs[runs["stage"] == "confirmation"]
    for (task, arm, rate), cell in confirmed.groupby(["task", "label", "learning_rate"], sort=False):
        half, single = (
            cell[cell["compute_type"] == kind].set_index("seed")["test_accuracy"] for kind in ("bfloat16", "float32")
        )
        test, spread = paired(half, single), single.std()
        rows.append(
            {
                "task": task,
                "arm": arm,
                "rate": rate_text(rate),
                "seeds": str(test.n),
                "bfloat16": f"{100 * half.mean():.1f}",
                "float32": f"{100 * single.mean():.1f}",
                "difference": points(test.mean),
                "95% interval": f"{points(test.low)} to {points(test.high)}",
                "spread": f"{100 * spread:.1f}",
                "within": "yes" if abs(test.mean) <= spread else "no",
            }
        )
    return pd.DataFrame(rows)


def plan_table(root: Path | None = None) -> pd.DataFrame:
    """A row a study, as text: core-hours that its published sweeps took, those that `fpt plan` would have foretold by
    the figures of their device, and the ratio, with its range over the sweeps. Sweeps without a forecast are left out.
    """
    import_without_widgets()
    from fpt.sweeps.flop import estimate

    runs, rows = workspace(root) / "runs", []
    by_device = {bench["device"]: bench for bench in load_benches(root)}
    for name in studies(root):
        study, pairs = load_study(runs / name), []
        for state in (sweep_state(spec, study.folder) for spec in study.sweeps):
            done = state.published or {}
            if not (bench := by_device.get(done.get("device", ""))):
                continue
            if foretold := predict(state.spec, bench["rows"]) or estimate(state.spec, bench["rows"]):
                pairs.append((done["wall_seconds"] * done["threads"], foretold * bench["threads"]))
        if pairs:
            took, expected = (sum(side) / 3600 for side in zip(*pairs, strict=True))
            ratios = sorted(one / other for one, other in pairs)
            row = {"study": name, "sweeps": str(len(pairs)), "foretold": f"{expected:.2f}", "took": f"{took:.2f}"}
            rows.append(row | {"ratio": f"{took / expected:.1f}", "range": f"{ratios[0]:.1f} to {ratios[-1]:.1f}"})
    return pd.DataFrame(rows)


def bench_words(bench: Bench) -> str:
    """One sentence: the device, its threads, and the rates that were measured as its ceiling."""
    kinds = ("float32_flop", "bfloat16_flop", "bytes")
    single, half, copied = (bench["ceiling"][f"{kind}_per_second"] for kind in kinds)
    rates = f"{single / 1e12:,.2f} TFLOP/s in float32, {half / 1e12:,.2f} in bfloat16, {copied / 1e9:,.0f} GB/s"
    return f"{bench['device']}, threads: {bench['threads']}; {rates}."
