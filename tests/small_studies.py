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
# A table of a paper on digits: its four arms, of tiny-lm. What follows may replace more.
OF_A_PAPER = """
paper: rothermel2021
tables: [rothermel-table-1]
replace:
  - {where: {backbone: gpt2}, with: {backbone: tiny-lm}}
  - {where: {task: mnist}, with: {task: digits}}
  - {where: {task: [listops, cifar10, cifar10-lra]}, with: null}
"""
# One of its arms, of two steps.
ONE_ARM = f"""{OF_A_PAPER}
  - {{where: {{arm: [frozen-random, unfrozen-pretrained, unfrozen-random]}}, with: null}}
defaults: {{{FEW}, steps: 2, learning_rates: [1e-3], seeds: [0, 1]}}
"""


def workspace(root: Path, study: str = PLAIN, name: str = "mine", notebooks: bool = True) -> Path:
    """A workspace in `root` with one study, and with the notebooks or an empty folder for them; returns the folder of
    the study."""
    folder = root / "runs" / name
    folder.mkdir(parents=True)
    (folder / "study.yaml").write_text(study, encoding="utf-8")
    if notebooks:
        shutil.copytree(ROOT / "notebooks", root / "notebooks", dirs_exist_ok=True)
    (root / "notebooks").mkdir(exist_ok=True)
    return folder
