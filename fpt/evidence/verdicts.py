"""Verdicts: what the runs of each study say about a claim, by the claim's rule (fpt/papers)."""

from dataclasses import dataclass

from fpt.evidence.cells import REDUCED
from fpt.evidence.stats import Paired

SUPPORTED, CONTRADICTED, INCONCLUSIVE = "supported", "contradicted", "inconclusive"
EDGE, DIVERGED = "inconclusive (edge)", "inconclusive (diverged)"
NOT_TESTED, DOCUMENTARY, OPEN = "not tested", "documentary", "rule to come"
DEPENDS = "depends on scale"


@dataclass(frozen=True)
class Part:
    """One comparison that a rule makes on one task."""

    task: str  # as it was run
    comparison: str  # "FPT - random"
    test: Paired
    word: str
    note: str = ""


@dataclass(frozen=True)
class Verdict:
    """What one study (or arithmetic, or a document: `study` is empty) says about one claim."""

    claim: str
    word: str
    study: str = ""
    at: str = "tuned"
    scale: str = REDUCED  # of the study's cells: paper or reduced
    setting: str = ""  # backbones and steps: no verdict holds beyond them
    parts: tuple[Part, ...] = ()
    exploratory: bool = False
    note: str = ""
def overall(v): return ", ".join(sorted({x.word for x in v})) or "none"
def verdicts(c, s): return [Verdict(c.id, OPEN)]
def other_reading(c, s): return None
def all_verdicts(s):
    from fpt.papers import claims
    return {k: [Verdict(k, OPEN)] for k in claims()}
