"""Mutants of the core: small mistakes, each of which the fast tests of its room must notice. Run by hand.

    python tests/mutants/run.py            # all; about a minute each on a busy core, less on an idle one
    python tests/mutants/run.py --to FILE  # and the table, with the test that noticed each, as CSV

A mutant changes one place of a copy of the repository. It is killed by a test that fails, and survives where none
does. The tests must pass without it, which is tried first. pytest never collects this file.
"""

import argparse
import csv
import os
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
OUTCOMES = {0: "survived", 1: "killed"}  # exit codes of pytest

ARRAYS, BATCHES = "tests/tasks/test_arrays.py", "tests/tasks/test_arrays.py tests/tasks/test_bits.py"
FLEET = "tests/training/test_fleet.py"
LOOP = "tests/training/test_loop.py tests/training/test_fleet.py"
RESUME = "tests/training/test_contract.py"
INITIAL = "tests/models/test_initialise.py"
LAYERS = "tests/models/test_layers.py tests/models/test_families.py tests/training/test_fleet.py"
ARMS = "tests/training/test_contract.py"
EXTENDING = "tests/test_extending.py"
LORA = "tests/models/test_lora.py"
SELECTION = "tests/sweeps/test_selection.py"
RUN = "tests/sweeps/test_run.py"
STATS = "tests/results/test_stats.py"
CELLS = "tests/results/test_cells.py"
ESTIMATE = "tests/results/test_estimate.py"


@dataclass(frozen=True)
class Mutant:
    """In `file` (below fpt/), `old` becomes `new`; `tests` are the fast ones that should notice."""

    file: str
    old: str
    new: str
    tests: str


MUTANTS = [
    # tasks: which examples, in which order, from which stream
    Mutant("tasks/arrays.py", "sort(descending=True, stable=True)", "sort(descending=False, stable=True)", ARRAYS),
    Mutant("tasks/arrays.py", "return rows[:-count], rows[-count:]", "return rows[count:], rows[:count]", ARRAYS),
    Mutant("tasks/arrays.py", "rows = rows[some]", "rows = rows", ARRAYS + " tests/sweeps/test_run.py"),
    Mutant("tasks/task.py", 'generator(self.seed, "order", epoch)', 'generator(0, "order", epoch)', BATCHES),
    Mutant("tasks/task.py", 'generator(self.seed, "train", step)', 'generator(self.seed, "train")', BATCHES),
    Mutant("tasks/bits.py", "visible * (2 * chosen - 1)", "(2 * chosen - 1)", "tests/tasks/test_bits.py"),
    Mutant("tasks/pixels.py", "permute(0, 2, 4, 3, 5, 1)", "permute(0, 4, 2, 3, 5, 1)", "tests/tasks/test_pixels.py"),
    # models: what a run starts from, and what of it trains
    Mutant("models/initialise.py", "sqrt(REFERENCE_WIDTH / width)", "sqrt(width / REFERENCE_WIDTH)", INITIAL),
    Mutant("models/initialise.py", "std /= math.sqrt(2 * layers)", "std /= math.sqrt(layers)", INITIAL),
    Mutant("models/initialise.py", "return table.mean() + normal(", "return normal(", INITIAL),
    Mutant("models/layers.py", "mul_(1 / (1 - self.rate))", "mul_(1.0)", LAYERS),
    Mutant("models/layers.py", 'stream(seed, "dropout", step)', 'stream(seed, "dropout")', LAYERS),
    Mutant("models/layers.py", ">= lengths[:, None]", "> lengths[:, None]", "tests/models/test_families.py"),
    Mutant("models/layers.py", "scores = (query * scaling) @", "scores = query @", "tests/models/test_families.py"),
    Mutant("models/arms.py", "layers=slice(-1, None))", "layers=slice(-2, None))", ARMS),
    Mutant("models/arms.py", "and re.search(self.names, name) is not None", "", EXTENDING),
    Mutant("models/template.py", "any(name in names for names in held.values())", "True", ARMS),
    Mutant("models/template.py", "module.compute_type = compute_type", "pass", "tests/training/test_contract.py"),
    Mutant("models/template.py", "self.random_gain * state[name]", "state[name]", INITIAL),
    Mutant("models/template.py", "else family.first_row  #", "else 0  #", "tests/models/test_families.py"),
    Mutant("models/lora.py", "adapters.alpha / adapters.rank)", "adapters.alpha)", LORA),
    Mutant("models/lora.py", "change.t() if layer.transposed else change", "change", LORA),
    Mutant(
        "models/arms.py",
        '"output", "attention", "feed_forward"),',
        '"output", "attention"),',
        ARMS,
    ),
    # training: the step, the evaluation, going on after a crash
    Mutant("training/fleet.py", "excess.clamp(min=1)", "excess.clamp(min=0)", FLEET),
    Mutant("training/layout.py", 'and group != "layer_norm" and not name.endswith("bias")', "or True", FLEET),
    Mutant("training/layout.py", "is not None and group in HEAD", "is not None and group not in HEAD", FLEET),
    Mutant("training/fleet.py", "self._groups(row, rate)", "self._groups(row, self.rates[0])", FLEET),
    Mutant("training/fleet.py", "dead = (~self.alive).float()", "dead = 0 * self.alive.float()", FLEET),
    Mutant("training/fleet.py", '("parameters", "moments", "adam_steps",', '("parameters", "adam_steps",', RESUME),
    Mutant("training/loop.py", 'int(state["done"].item())', 'int(state["done"].item()) + 1', RESUME),
    Mutant("training/loop.py", "number == len(self.budgets) - 1", "number == 0", LOOP),
    Mutant(
        "training/loop.py", "masked_fill(self.best.step == 0, torch.nan)", "masked_fill(self.best.step < 0, 0.0)", LOOP
    ),
    Mutant("training/evaluate.py", "validation > self.validation", "validation >= self.validation", LOOP),
    Mutant("training/evaluate.py", "accuracy.where(loss.isfinite(), torch.nan)", "accuracy", LOOP),
    Mutant(
        "training/recipe.py",
        "return LAST_RATE + (1 - LAST_RATE) *",
        "return (1 - LAST_RATE) *",
        "tests/training/test_recipe.py",
    ),
    Mutant("training/recipe.py", "[2**k for k", "[3**k for k", "tests/training/test_recipe.py"),
    Mutant(
        "training/memory.py",
        "free // (shared + len(rates) * run)",
        "free // (len(rates) * run)",
        "tests/training/test_memory.py",
    ),
    Mutant(
        "training/features.py",
        "(recipe.dropout == 0 and not task.by_length)",
        "(recipe.dropout < 1 and not task.by_length)",
        "tests/training/test_features.py",
    ),
    Mutant(
        "training/checkpoint.py",
        "zlib.crc32(content.data, zlib.crc32(name.encode(), total))",
        "len(content)",
        "tests/training/test_checkpoint.py",
    ),
    # sweeps: which runs, their names, what is believed
    Mutant(
        "sweeps/selection.py",
        "return before + after",
        "return before + after + values",
        SELECTION,
    ),
    Mutant("sweeps/selection.py", "and validation[grid[-1]].notna().all()", "", SELECTION),
    Mutant("sweeps/selection.py", '.where(runs["diverged_at"].isna())', "", SELECTION),
    Mutant(
        "sweeps/spec.py",
        "exclude_defaults=True, exclude=READING)",
        'exclude_defaults=True, exclude={*READING, "extend"})',
        "tests/sweeps/test_spec.py",
    ),
    Mutant(
        "sweeps/record.py", "!= recorded:", "is None:", "tests/bad_input/test_results.py tests/results/test_runs.py"
    ),
    Mutant("sweeps/record.py", "found.get(SEAL) is not None and", "False and", "tests/bad_input/test_results.py"),
    Mutant("sweeps/record.py", "if result[name] != chosen:", "if False:", "tests/bad_input/test_results.py"),
    Mutant("sweeps/run.py", "added[end] < spec.extend", "added[end] <= spec.extend", RUN),
    Mutant(
        "sweeps/ledger.py",
        'if owner.get("hash", spec.hash) != spec.hash:',
        "if False:",
        "tests/sweeps/test_ledger.py " + RUN,
    ),
    Mutant(
        "sweeps/rows.py",
        "**({**paper.tasks.get(task, {}),",
        "**({**paper.tasks.get(task, {}), **paper.defaults,",
        "tests/sweeps/test_study.py",
    ),
    Mutant("sweeps/publish.py", "if missing and not partial:", "if False:", "tests/sweeps/test_publish.py"),
    # results: what runs become
    Mutant(
        "claims/words.py",
        "len(p_values) * sorted(p_values)[least - 1]",
        "sorted(p_values)[least - 1]",
        "tests/claims/test_words.py",
    ),
    Mutant("results/estimate.py", "self.seed_variance + self.test_variance)", "self.seed_variance)", STATS),
    Mutant("results/estimate.py", "return max(float(flips.pvalue), of_noise)", "return float(flips.pvalue)", STATS),
    Mutant("results/estimate.py", "most = 1 if self.open else MORE", "most = 1", ESTIMATE),
    Mutant("results/estimate.py", "float(beyond <= self.slack)", "0.0", ESTIMATE),
    Mutant("results/arm.py", "plane < plane.median() - least", "plane < 1 - least", CELLS),
    Mutant("results/arm.py", "fillna(self.guessing)", "fillna(0.0)", CELLS),
    Mutant(
        "results/estimate.py",
        "(self._turned(self.ends[1]), self._turned(self.ends[0]))",
        "(self._turned(self.ends[0]), self._turned(self.ends[1]))",
        ESTIMATE,
    ),
]


def main() -> None:
    arguments = argparse.ArgumentParser(description="Mutants of the core, each against the fast tests of its room.")
    arguments.add_argument("--to", type=Path, help="a CSV file for the table")
    arguments.add_argument("--only", default="", help="mutants of files whose name holds this")
    arguments.add_argument("--green", action="store_true", help="the tests are known to pass without a mutant")
    given = arguments.parse_args()
    chosen = [mutant for mutant in MUTANTS if given.only in mutant.file]
    _warm_up()
    with tempfile.TemporaryDirectory(prefix="fpt-mutants-") as name:
        copy = Path(name)
        _copy_repository(copy)
        every = set() if given.green else {mutant.tests for mutant in chosen}
        bad = [tests for tests in sorted(every) if _outcome(copy, tests)[0] != "survived"]
        if bad:
            raise SystemExit("these tests fail without a mutant:\n" + "\n".join(bad))
        rows = [_try(mutant, copy) for mutant in chosen]
    if given.to:
        with given.to.open("w", newline="") as file:
            csv.writer(file).writerows([("file", "old", "new", "outcome", "seconds", "by"), *rows])
    survived = [row for row in rows if row[3] != "killed"]
    print(f"{len(rows) - len(survived)} of {len(rows)} mutants were killed")
    raise SystemExit(1 if survived else 0)


def _warm_up() -> None:
    """Import what takes seconds once: every mutant is tried in a fork of this process. Nothing of fpt is imported."""
    import pandas  # noqa: F401
    import pytest  # noqa: F401
    import scipy.stats  # noqa: F401
    import torch  # noqa: F401
    import transformers  # noqa: F401


def _copy_repository(copy: Path) -> None:
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listing.split("\0")):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, copy / name)


def _try(mutant: Mutant, copy: Path) -> tuple[str, str, str, str, float, str]:
    """The row of one mutant. Raises SystemExit where its place is not there once: the list then wants mending."""
    file = copy / "fpt" / mutant.file
    text = file.read_text()
    if text.count(mutant.old) != 1:
        raise SystemExit(f"{mutant.file}: {text.count(mutant.old)} places read {mutant.old!r}; one is needed")
    file.write_text(text.replace(mutant.old, mutant.new))
    began = time.monotonic()
    outcome, by = _outcome(copy, mutant.tests)
    file.write_text(text)
    row = (mutant.file, mutant.old, mutant.new, outcome, round(time.monotonic() - began, 1), by)
    print(*row[:1], f"{mutant.old!r} -> {mutant.new!r}:", *row[3:], flush=True)
    return row


def _outcome(copy: Path, tests: str) -> tuple[str, str]:
    """Killed or survived, and the first test that fails."""
    log = copy / "pytest.log"
    child = os.fork()
    if child == 0:
        _run_tests(copy, tests.split(), log)
    _, status = os.waitpid(child, 0)
    failed = [line for line in log.read_text().splitlines() if line.startswith(("FAILED", "ERROR"))]
    code = os.waitstatus_to_exitcode(status)
    return OUTCOMES.get(code, f"pytest ended with {code}"), failed[0].partition(" - ")[0] if failed else ""


def _run_tests(copy: Path, tests: list[str], log: Path) -> None:
    """In the child: pytest on the copy, which never returns."""
    import pytest

    os.chdir(copy)
    os.environ |= {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    sys.path[:0] = [str(copy)]
    sys.dont_write_bytecode = True  # a mutant may have the size and the time of the file that it replaces
    with log.open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    options = ["-x", "-q", "-rfE", "--no-header", "--tb=no", "-p", "no:cacheprovider", "--timeout=300"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # of plugins that the parent has imported
    try:
        os._exit(int(pytest.main([*options, *tests])))
    finally:  # nothing of the parent runs in the child, whatever pytest raises
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(4)


if __name__ == "__main__":
    main()
