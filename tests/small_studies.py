"""Studies of a few steps, and the workspaces in which tests run, refuse or show them: one place for all rooms."""

import shutil
from pathlib import Path

ROOT = Path(__file__).parents[1]
FEW = (
    "evaluations: 2, evaluation_examples: 20, budget_examples: 20, test_examples: 20, compute_type: float32, "
    "random_init: matched, extend: 0"
)
# One sweep of three steps.
PLAIN = f"""
defaults: {{{FEW}, backbone: tiny-lm, steps: 3, learning_rates: [1e-3, 1e-2], seeds: [0, 1]}}
sweeps:
  - {{task: digits, arm: frozen-pretrained}}
"""
# The four arms of a paper's table on digits, with tiny-lm in the place of its model.
STANDS_FOR = "stands_for: {gpt2: tiny-lm, mnist: digits}"
FOUR_ARMS = (
    "sweeps:\n  - {task: digits, arm: [frozen-random, frozen-pretrained, unfrozen-random, unfrozen-pretrained]}\n"
)
# One of its arms, of two steps.
ONE_ARM = f"""
{STANDS_FOR}
defaults: {{{FEW}, steps: 2, learning_rates: [1e-3], seeds: [0, 1]}}
sweeps:
  - {{task: digits, arm: frozen-pretrained, backbone: tiny-lm}}
"""


def workspace(root: Path, study: str = PLAIN, name: str = "mine", notebooks: bool = True) -> Path:
    """A workspace in `root` with one study, and with the notebooks of this repository if wanted; returns the folder of
    the study."""
    folder = root / "runs" / name
    folder.mkdir(parents=True)
    (folder / "study.yaml").write_text(study, encoding="utf-8")
    if notebooks:
        shutil.copytree(ROOT / "notebooks", root / "notebooks", dirs_exist_ok=True)
    return folder
