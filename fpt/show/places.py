"""Places: a task of a study where arms are compared, and the pairs of task and model that several pages speak of."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fpt.claims.planes import plane_table, plane_tests, sign_of
from fpt.results.arm import Arm
from fpt.results.baselines import LINEAR, floor, known_scores
from fpt.results.contrasts import Contrast, Level, arms_of, contrast, find_arm, level
from fpt.results.estimate import PERCENT, number_text

NONE = "\N{EN DASH}"


@dataclass(frozen=True)
class Place:
    """Where arms are compared: a study, one of its tasks, and what its tables add to the name of an arm."""

    study: str
    task: str
    more: str = ""  # as "layers 4"

    def name(self, letters: str) -> str:
        """The name of an arm in the study's tables."""
        return f"{letters} ({self.more})" if self.more else letters

    def arm(self, letters: str) -> Arm:
        """`fpt.results.contrasts.find_arm` of an arm here, with its errors."""
        return find_arm(self.study, self.name(letters), task=self.task)

    def arms(self, *letters: str) -> dict[str, Arm]:
        """Those of the arms that are published, by their letters."""
        found = arms_of(self.study)
        named = {each: (self.task, self.name(each)) for each in letters}
        return {each: found[key] for each, key in named.items() if key in found}

    def contrast(self, first: str, second: str, **how: Any) -> Contrast:
        """`fpt.results.contrast` of two arms here, with its arguments and errors."""
        return contrast(self.study, self.name(first), self.name(second), task=self.task, **how)

    def level(self, arm: str, **how: Any) -> Level:
        """`fpt.results.level` of an arm here, with its arguments and errors."""
        return level(self.study, self.name(arm), task=self.task, **how)

    def leads_at(self, first: str, second: str) -> list[int]:
        """The budgets, in steps, at which the first arm leads the second: each tuned there, each interval alone."""
        budgets = self.arms(first)[first].budgets
        return [budget for budget in budgets if self.contrast(first, second, budget=budget).low > 0]

    def signs(self, first: str, second: str) -> dict[float, str]:
        """By rate that both arms have, a sign a budget in ascending order: + where the 95% interval of the first minus
        the second lies above 0, - where below, 0 where it holds 0."""
        found: dict[float, str] = {}
        for (rate, _), test in plane_tests(self.arm(first), self.arm(second)).items():
            found[rate] = found.get(rate, "") + sign_of(test)
        return found

    def corrected(self, first: str, second: str) -> Mapping[tuple[float, int], float]:
        """p by rate and budget, both arms at that rate, corrected for all cells of the map (Holm)."""
        rows = plane_table(plane_tests(self.arm(first), self.arm(second)))
        return dict(zip(zip(rows["rate"], rows["budget"], strict=True), rows["corrected"], strict=True))


PAIRS = {  # the longest published training of all four arms on each task and model
    "MNIST, MiniLM, 1,600": Place("plane-minilm", "mnist"),
    "CIFAR-10, MiniLM, 800": Place("minilm-cifar10", "cifar10"),
    "digits by pixel, tiny-lm, 1,500": Place("laptop-rothermel2021", "digits-lra"),
    "MNIST, tiny-lm, 3,000": Place("plane-mnist", "mnist"),
    "MNIST, SmolLM2, 400": Place("smollm2", "mnist", "layers 4"),
    "ListOps, tiny-lm, 1,500": Place("laptop-rothermel2021", "listops-short"),
    "digits, tiny-lm, 6,000": Place("plane-digits", "digits"),
}


def to_beat(place: Place, arms: Iterable[str]) -> str:
    """In percent: a linear classifier where there is one, else the best guess that reads only a part of the input."""
    variant = next((arm.variant for arm in place.arms(*arms).values()), "paper")
    known = known_scores(place.task, variant)
    share = known[LINEAR].share if LINEAR in known else floor(place.task, variant)
    return number_text(100 * share, PERCENT)
