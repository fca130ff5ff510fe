"""A rule read on one task of one study: the values of its rows, and the words of comparison."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from fpt.papers import paper_of, table
from fpt.papers.schema import Rule
from fpt.results.baselines import Score
from fpt.results.cells import AT_PAPERS_RATE, NOT_RUN, PAPER_SCALE, TUNED, Cell, Point, StudyCells, compared, total
from fpt.results.runs import rate_text
from fpt.results.stats import MINIMUM_PAIRS, POINT, SIGNIFICANCE, Paired, seeds_for_half_width, seeds_needed
from fpt.sweeps.fields import with_options

SUPPORTED, CONTRADICTED, INCONCLUSIVE = "supported", "contradicted", "inconclusive"
EDGE, DIVERGED, NOT_TESTED = "inconclusive (edge)", "inconclusive (diverged)", "not tested"
MARGIN, LISTOPS_MARGIN = 1 * POINT, 2 * POINT  # comparable: within so much
MANY = "1,000 are not enough"
BY_RATE = ("drop", "inverts", "orders_differ", "lower_rate", "plane")  # read on the whole grid
NOTHING = Score(0.0)
FEW_TASKS = 3  # that are named
NOISE_LIMIT = float(special.ndtri(1 - SIGNIFICANCE))  # standard errors from the mean to an end of a 90% interval
AT_BOTH = ("unstable", "fixed_and_tuned")
OWN_RATES = (*BY_RATE, *AT_BOTH, "crossing", "baseline")  # kinds that say themselves at which rates they are read


@dataclass(frozen=True)
class Part:
    """One comparison that a rule makes on one task, at the level of 5%."""

    task: str  # as it was run
    comparison: str  # "FPT - random"
    test: Paired
    word: str
    note: str = ""
    supports: float = 1.0  # p-values, 1 where an edge of the grid could change the word
    contradicts: float = 1.0
    seeds: str = ""  # with which it would be decided, where it is not
    at: str = ""  # the learning rate, where the rule does not say it: "1e-3", "tuned and 1e-3"
    margin: float = 0.0  # of a likeness, a fraction; 0: it is none

    @property
    def unreachable(self) -> bool:
        """Whether a likeness cannot be shown with any number of seeds: the noise of the test set alone is too large."""
        return bool(self.margin) and NOISE_LIMIT * math.sqrt(self.test.noise) >= self.margin


@dataclass(frozen=True)
class Reading:
    """A rule on one task: `cells` are all rows of its table there."""

    rule: Rule
    cells: Mapping[str, Cell]

    @property
    def needed(self) -> list[str]:
        """The rows that the rule names, and the one that others have to reach."""
        until = next(iter(self.cells.values())).table.until
        return [*self.rule.rows, *([until] if self.rule.kind == "faster" and until != "threshold" else [])]

    @property
    def rows(self) -> dict[str, Cell]:
        return {row: self.cells[row] for row in self.needed}

    def label(self, row: str) -> str:
        return self.rows[row].label

    @property
    def any_cell(self) -> Cell:
        return self.cells[self.rule.rows[0]]

    @property
    def task(self) -> str:
        return self.any_cell.task

    @property
    def margin(self) -> float:
        return LISTOPS_MARGIN if self.task.startswith("listops") else MARGIN

    @property
    def ats(self) -> tuple[str, ...]:
        """Where the learning rate is read."""
        if self.rule.kind in BY_RATE:
            return ()
        return (TUNED, AT_PAPERS_RATE) if self.rule.kind in AT_BOTH else (self.rule.at,)

    def problem(self) -> tuple[str, str]:
        """Why the rows are not compared here, as a word and a note; empty if they are."""
        rows = self.rows.values()
        if missing := [cell.label for cell in rows if cell.problem]:
            return NOT_RUN, f"not run: {', '.join(missing)}"
        if len({cell.spec.steps for cell in rows if cell.spec}) > 1:
            return NOT_TESTED, "not compared: trained for different numbers of steps"
        if len({cell.tables.result["compute_type"] for cell in rows if cell.tables}) > 1:
            return NOT_TESTED, "not compared: different number types"
        if own := [c.label for c in rows if c.spec and c.spec.pretrained_on == c.task]:
            return NOT_TESTED, f"not compared: {own[0]} was pretrained on this very task"
        if never := [cell.label for cell in rows if TUNED in self.ats and cell.best_rate is None]:
            return DIVERGED, f"diverged at every rate: {', '.join(never)}"
        off = AT_PAPERS_RATE in self.ats and not all(len(cell.at(AT_PAPERS_RATE)) for cell in rows)
        return (NOT_TESTED, "not run at the paper's rate") if off else ("", "")

    def untested(self, why: str, word: str = NOT_TESTED) -> Part:
        return Part(self.task, "", Paired(0), word, why)

    def part(
        self,
        comparison: str,
        test: Paired,
        low: float = 0.0,
        high: float = math.inf,
        *,
        equivalence: bool = False,
        up: Sequence[str] = (),
        down: Sequence[str] = (),
        notes: Iterable[str] = (),
        at: str = "",
    ) -> Part:
        """Whether the mean lies between the limits: by its 95% interval, or by two one-sided tests.

        `up`, `down`: the rows for which a better rate may lie beyond the grid, so that the true difference may be
        larger, smaller than the one measured. A word stands if it is the same for all of them.
        """
        bounded = (len(up) > 0 and high < math.inf) or (len(down) > 0 and low > -math.inf)
        inside = max(test.above(low), test.below(high))
        supports = 1.0 if bounded else min(1.0, inside if equivalence else 2 * inside)
        contradicts = min(1.0, 2 * min(1 if up else test.below(low), 1 if down else test.above(high)))
        edges = list(dict.fromkeys([*up, *down]))
        word = word_of(supports, contradicts, EDGE if edges else INCONCLUSIVE)
        at_edge = [f"edge of the grid: {', '.join(edges)}"] if edges else []
        note = "; ".join([*notes, *at_edge, *_of_test(test)])
        seeds = seeds_to_decide(test) if word == INCONCLUSIVE and test.sd > 0 else ""
        margin = (high - low) / 2 if equivalence else 0.0
        return Part(self.task, comparison, test, word, note, supports, contradicts, seeds, at, margin)

    def contrast(
        self,
        plus: Sequence[str],
        minus: Sequence[str] = (),
        low: float = 0.0,
        high: float = math.inf,
        *,
        equivalence: bool = False,
        at: tuple[str | float, str | float] | None = None,
        less: Score = NOTHING,
        comparison: str = "",
        notes: Iterable[str] = (),
    ) -> Part:
        """Rows `plus` minus rows `minus` and the score `less`, at the rule's rate [or each side at its own]."""
        both = zip((plus, minus), at or (self.rule.at, self.rule.at), strict=True)
        sides: list[list[Point]] = [[(self.rows[row], rate, None) for row in rows] for rows, rate in both]
        up, down = ([cell.label for cell, rate, _ in side if rate == TUNED and cell.at_edge] for side in sides)
        if self.any_cell.table.kind != "accuracy":  # an edge bounds an accuracy alone
            up = down = [*up, *down]
        gap = "gap of " if self.any_cell.table.kind == "gap" else ""
        lost = [f"{cell.label} ({n})" for side in sides for cell, rate, _ in side if (n := cell.diverged(rate))]
        test = compared(sides[0], sides[1], less.share, less.standard_error**2)
        return self.part(
            comparison or " - ".join(f"{gap}{self.label(row)}" for row in (*plus, *minus)),
            test, low, high, equivalence=equivalence, up=up, down=down,
            notes=[*notes, *_collapsed(sides, less.share), *([f"diverged runs: {', '.join(lost)}"] if lost else [])],
            at=self.rates_in_words(at or (self.rule.at,)),
        )  # fmt: skip

    def rates_in_words(self, ats: Iterable[str | float]) -> str:
        """Where the learning rate is read: tuned, 1e-3, tuned and 1e-3."""
        rates = {at: self.any_cell.papers_rate if at == AT_PAPERS_RATE else at for at in ats}
        words = [TUNED if rate == TUNED else rate_text(rate) for rate in rates.values() if rate is not None]
        return " and ".join(dict.fromkeys(words))


def _collapsed(sides: Sequence[Sequence[Point]], less: float) -> list[str]:
    """How many runs collapsed, and the medians of both sides."""
    runs = {(cell.row, rate): cell.collapsed(rate) for side in sides for cell, rate, _ in side}
    count = sum(int(each.sum()) for each in runs.values())
    medians = [f"{100 * np.nanmedian(values):.1f}" for values in (total(sides[0]), total(sides[1], less)) if count]
    return [f"{count} collapsed runs, medians {' and '.join(medians)}"] if count else []


def _of_test(test: Paired) -> list[str]:
    if test.n < MINIMUM_PAIRS:
        return ["too few pairs"] if test.n else []
    return ["p by sign flips"] if test.exact else []


def seeds_to_decide(test: Paired, of: int = 1) -> str:
    """With how many seeds a test, one of so many that are corrected together, would find 1 and 3 points."""
    one, three = (seeds_needed(points * POINT, test.sd, noise=test.noise, of=of) for points in (1, 3))
    return f"seeds to detect a difference of 1 point: {one or MANY}; of 3 points: {three or MANY}"


def seeds_for_a_point(test: Paired) -> str:
    """What it would take for an interval of 1 point to each side, where it is wider."""
    if not test.half_width > POINT:  # nan: there is no interval
        return ""
    seeds = seeds_for_half_width(POINT, test.sd, test.noise)
    return f"seeds for a half-width of 1 point: {seeds or MANY}"


def word_of(supports: float, contradicts: float, otherwise: str = INCONCLUSIVE) -> str:
    if supports < SIGNIFICANCE:
        return SUPPORTED
    return CONTRADICTED if contradicts < SIGNIFICANCE else otherwise


def readings_of(rule: Rule, study: StudyCells) -> list[Reading]:
    """A rule on every task on which the study has a sweep for each of its rows."""
    readings = [Reading(rule, cells) for cells in study.by_task(table(rule.table)).values()]
    planned = [each for each in readings if all(row in each.cells and each.cells[row].spec for row in each.needed)]
    # No sweep is compared with itself: two rows of a paper may be one model in a study that sets its layers.
    sweeps = [{cell.spec.folder_name for cell in each.rows.values() if cell.spec} for each in planned]
    planned = [each for each, names in zip(planned, sweeps, strict=True) if len(names) == len(each.rows)]
    if not rule.tasks:
        return planned
    # What stands for other tasks too cannot tell apart what the claim does.
    return [each for each in planned if each.task in rule.tasks or {*each.any_cell.stands_for} <= {*rule.tasks}]


def decides(reading: Reading) -> bool:
    """What is printed of the paper's own models is tested on these alone."""
    only = reading.rule.only_paper_scale or reading.rule.kind == "near"
    return not only or all(cell.scale == PAPER_SCALE for cell in reading.rows.values())


def tasks_in_words(rules: Sequence[Rule], readings: Sequence[Reading]) -> list[str]:
    """What stands in for which of the tasks that the rules name."""
    named = _named(rules)
    others = {each.task: named & {*each.any_cell.stands_for} for each in readings if each.task not in named}
    return [f"{task} stands in for {' and '.join(sorted(tasks))}" for task, tasks in others.items() if tasks]


def _named(rules: Sequence[Rule]) -> set[str]:
    """The tasks of the paper that the rules name, or on which all rows of a rule stand."""
    return {task for rule in rules for task in rule.tasks or _tasks(rule)}


def _tasks(rule: Rule) -> set[str]:
    read = table(rule.table)
    return set.intersection(*(set(read.on(row, paper_of(read.paper))) for row in rule.rows))


def covered(rules: Sequence[Rule], readings: Sequence[Reading]) -> str:
    """How many of the tasks that the rules name are here, as " (2 of 7 tasks)"; nothing where all are."""
    named, here = _named(rules), {task for each in readings for task in (each.task, *each.any_cell.stands_for)}
    return f" ({len(named & here)} of {len(named)} tasks)" if named - here else ""


def setting(rules: Sequence[Rule], readings: Sequence[Reading]) -> str:
    """Models, tasks and steps, in words; of the tasks that the rules name how many, where these are not all."""
    specs = [cell.spec for reading in readings for cell in reading.rows.values() if cell.spec]
    steps = " and ".join(f"{n:,}" for n in sorted({spec.steps for spec in specs}))
    models = dict.fromkeys(with_options(spec.backbone, spec.backbone_options) for spec in specs)
    tasks = dict.fromkeys(spec.task for spec in specs)
    few = ", ".join(tasks) if len(tasks) <= FEW_TASKS else f"{len(tasks)} tasks"
    return f"{', '.join(models)}, {few}{covered(rules, readings)}, {steps} steps"
