"""The schema of a paper: rows, tables with the numbers printed in them, and claims with the rules that decide them.

A file `fpt/papers/NAME.yaml`, or papers/NAME.yaml in a workspace:

    name, title, authors; `own_scale: false` where the fields below are ours, since the paper's models cannot run here
    defaults:  fields of a sweep that hold for the whole paper (backbone, ...)
    rates:     the learning rate as printed, by `default`, backbone or task
    tasks:     the paper's tasks in its order, each with the fields of a sweep that it fixes (variant, steps, threshold)
    rows:      named once: the fields in which a row's sweep differs from the defaults, `label` where it is printed
               otherwise, `scale` where it is trained for other steps than its task says; options of task and backbone
               (length, layers, ...) are named like fields. A row without `arm` or `trainable` is a model of the
               literature: it is printed and never run
    arms:      in a workspace: name -> init, trainable, and for figures letters, label, colour (#RRGGBB), marker. Every
               study of the workspace may use these names; in the package they stand in fpt/models/arms.py
    tables:    id -> title, where, kind, measures, and rows: row -> task -> printed number. A number may carry more:
               {is: 72.1, sem: 0.1, mark: "†", literature: "Tay et al.", keep: true} and fields in which the cell
               differs from its row. `ours: why` explains a row that the paper does not print, with the `tasks` on
               which we run it; `drawn: [tasks]` a row that the paper draws in a figure.
    claims:    id -> says, quote, where, and one of rule, documentary (why), `arithmetic: true`, printed: a list of
               what holds of numbers, {relation: equal, differ or below, of: [a, b], tasks, by: tolerance}, each a cell
               {table, row, minus: the best of other rows, of: sem, train or test} or {claim, number}.
               `numbers` holds what no table prints. A rule: {beats: [rows], table, of: all, most or some, where the
               claim says so}. Rows of `beats`, `matches` and `comparable`: the first, and all that it is compared with;
               of `order`: from worst to best. `by` and `to` are points of accuracy: of `beats` and `order` by how much
               at least and at most, of `matches`, `comparable` and `near` the margin, else the task's.
               A rule that serves one or two claims: {function: NAME, rows, table, words: the rule in a sentence}
    findings:  id -> question, the claims of any paper that answer it, and what answers it in one contrast: a `rule` as
               that of a claim, `by: ID` (the rule of that claim), or `read: why` where no run answers. `printed` says
               where the papers print the same contrast: a list of {table, row, minus}
"""

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, FiniteFloat, model_validator

from fpt.errors import unknown

RULES = 2  # raised when a rule comes to mean something else: what was asked before is then another question

Fields = dict[str, Any]  # fields of a sweep, and options of its task and backbone

# The kinds of rules that many claims share, each in words. What serves one or two claims is one of FUNCTIONS.
KINDS: Mapping[str, str] = {
    "beats": "{first} is above {others}{more}",
    "matches": "{first} is not below {others} by more than {margin}",
    "comparable": "{first} is within {margin} of {others}",  # two one-sided tests
    "order": "from worst to best, each above the one before: {rows}",
    "near": "within {margin} of the printed number: {rows}",
    "faster": "more steps to reach {goal} than {first}{times}: {others}",
    "smaller_gap": "the gap between training and test accuracy of {first} is smaller than that of {others}{more}",
    "rate_ratio": "the best learning rate of {first}, by validation loss, is {least} to {most} times that of {others}",
    "baseline": "the computed score is the printed number: {level}",
}
MANY = 99
# What decides one claim or two, each by a row of its name in KINDS of fpt/claims/rules.py: how many rows it reads,
# at least and at most.
FUNCTIONS: Mapping[str, tuple[int, int]] = {
    "above_linear": (1, MANY), "attends": (1, MANY), "crossing": (2, 2), "drop": (1, MANY),
    "falls_with_steps": (2, MANY), "fixed_and_tuned": (2, MANY), "inverts": (2, 2), "inverts_somewhere": (2, 2),
    "jump": (3, MANY), "larger_difference": (4, 4), "linear": (1, MANY), "loses_at_papers_rate": (1, MANY),
    "lower": (2, MANY), "lower_rate": (2, MANY), "never_reaches": (2, 2), "orders_differ": (4, 4), "plane": (2, 2),
    "ratio_slope": (4, MANY), "reaches": (1, MANY), "same_loss": (2, MANY), "small_gap": (1, MANY),
    "underfits": (2, MANY), "unstable": (1, MANY),
}  # fmt: skip
ANY_BOUND = ("by", "to", "level")  # what a function of its own may read
# By what a rule of each kind is bounded; it is refused another bound, which nothing would read.
BOUNDS: Mapping[str, tuple[str, ...]] = {
    "beats": ("by", "to"),
    "matches": ("by",),  # the margin, in the place of the task's
    "comparable": ("by",),
    "order": ("by", "to"),
    "near": ("by",),
    "faster": ("by", "to"),
    "smaller_gap": ("by",),
    "rate_ratio": ("by", "to"),
    "baseline": ("level",),
}
LEVELS = tuple(f"exact to depth {depth}" for depth in range(10))  # of ListOps: deeper lists count as typical ones
BASELINES = ("chance", "linear classifier", "majority class", "copy the visible bits", "outermost operator", *LEVELS)
NEVER = "never"  # the only text that a table prints: of steps
GAP = ("train", "test")  # the places of what a gap prints
Quantifier = Literal["", "all", "most", "some"]  # of the pairs; none: what the claim says in general


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Rule(_Strict):
    """How cells decide a claim: a kind, the rows that it names, and the table and tasks on which they are read."""

    kind: str  # one of KINDS, or of FUNCTIONS
    words: str = ""  # the rule in a sentence, where a function of its own decides it
    rows: tuple[str, ...] = ()
    table: str = ""
    tasks: tuple[str, ...] = ()  # of the table; none: all that the rows have there
    at: Literal["tuned", "paper"] = "tuned"  # each row at its own tuned rates, or all at the rate that the paper prints
    of: Quantifier = ""
    by: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    to: Annotated[float, Field(gt=0)] = math.inf  # not nan, which compares with nothing
    level: float | str = ""  # percent, the name of a score, or the rate to which a drop leads
    only_paper_scale: bool = False  # only the paper's own models on its own tasks decide it
    part: str = ""  # what of the claim is tested, where that is not all of it

    @model_validator(mode="before")
    @classmethod
    def _kind_as_key(cls, data: Any) -> Any:
        """In the file `{beats: [FPT, random], table: ...}`, or `{function: drop, rows: [FPT], words: ..., ...}`."""
        if not isinstance(data, Mapping) or (isinstance(data.get("kind"), str) and not {*KINDS} & {*data}):
            return data
        kinds = [key for key in (*KINDS, "function") if key in data]
        if len(kinds) != 1 or "kind" in data:
            raise ValueError(f"needs one kind of rule, one of {', '.join(KINDS)}, or the function that decides it")
        rest = {key: value for key, value in data.items() if key != kinds[0]}
        named = data[kinds[0]]
        for name in rest:
            if name not in cls.model_fields:
                raise ValueError(str(unknown("field of a rule", name, {*cls.model_fields} - {"kind"})))
        if kinds == ["function"]:
            return {"kind": named, **rest}
        return {"kind": kinds[0], "rows": [named] if isinstance(named, str) else named, **rest}

    @property
    def has_function(self) -> bool:
        """Whether a function of its own decides it."""
        return self.kind not in KINDS

    @property
    def of_own_scale(self) -> bool:
        """Whether only the paper's own models decide it, as all that is compared with a printed number."""
        return self.only_paper_scale or self.kind == "near"


def _rules(value: Any) -> Any:
    return value if isinstance(value, list | tuple) else [value]


class Number(_Strict):
    """Where a number is printed: in a row of a table, or among the numbers of a claim."""

    table: str = ""
    row: str = ""
    minus: tuple[str, ...] = ()  # rows, of which the best is subtracted
    of: Literal["value", "sem", "train", "test"] = "value"
    claim: str = ""
    number: str = ""


class Relation(_Strict):
    """A relation of two printed numbers that holds on each of the tasks."""

    relation: Literal["equal", "differ", "below"]
    of: tuple[Number, Number]
    tasks: tuple[str, ...] = ("",)  # none where both are numbers of claims
    by: float = 0.0


class Claim(_Strict):
    """A checkable statement of a paper, and how it is decided."""

    id: str = ""
    paper: str = ""
    says: str  # as we read it
    quote: str = ""
    where: str
    note: str = ""
    numbers: Any = None  # printed outside tables; as in the paper, percent for accuracies
    rule: Annotated[tuple[Rule, ...], BeforeValidator(_rules)] = ()  # several: all must hold
    documentary: str = ""
    arithmetic: bool = False  # whether a function of fpt.claims.arithmetic decides it, entered under its id
    printed: tuple[Relation, ...] = ()  # all must hold

    @model_validator(mode="after")
    def _is_decided_in_one_way(self) -> "Claim":
        ways = [name for name in ("rule", "documentary", "arithmetic", "printed") if getattr(self, name)]
        if len(ways) != 1:
            given = " and ".join(ways) or "none of them"
            raise ValueError(f"needs one of rule, documentary, arithmetic and printed; it has {given}")
        return self


class Finding(_Strict):
    """One question that a reader has: the contrast that answers it, and every claim that it covers."""

    id: str = ""
    paper: str = ""  # in whose file it stands; its claims may be of any paper
    question: str
    rule: Annotated[tuple[Rule, ...], BeforeValidator(_rules)] = ()
    by: str = ""  # the claim whose rule gives the contrast
    read: str = ""  # why no run answers it
    claims: tuple[str, ...] = ()
    printed: tuple[Number, ...] = ()  # where the papers print the contrast: a row minus others

    @model_validator(mode="after")
    def _is_answered_in_one_way(self) -> "Finding":
        ways = [name for name in ("rule", "by", "read") if getattr(self, name)]
        if len(ways) != 1:
            raise ValueError(f"needs one of rule, by and read; it has {' and '.join(ways) or 'none of them'}")
        return self


def _gathered(data: Mapping[str, Any], rest: str, own: set[str]) -> dict[str, Any]:
    """What is not among the names `own` goes below the name `rest`."""
    parts: dict[str, Any] = {rest: {}}
    for name, value in data.items():
        (parts if name in own else parts[rest])[name] = value
    return parts


class Printed(_Strict):
    """What a table prints in one cell. A gap: training and test accuracy, and their difference where it is printed."""

    value: FiniteFloat | tuple[FiniteFloat, ...] | str | None = Field(None, alias="is")  # text: NEVER
    sem: FiniteFloat | None = None
    mark: str = ""
    literature: str = ""  # whose number it is, where it is not the paper's own
    keep: bool = False  # other rows start from the weights of this cell's model
    fields: Fields = {}  # in which the cell differs from its row

    @model_validator(mode="before")
    @classmethod
    def _sort(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return {"is": tuple(data) if isinstance(data, list) else data}
        return _gathered(data, "fields", {"is", "sem", "mark", "literature", "keep"})

    @model_validator(mode="after")
    def _is_a_number(self) -> "Printed":
        if isinstance(self.value, str) and self.value != NEVER:
            raise ValueError(f"{self.value!r} is no number: text is {NEVER!r} alone")
        return self


class TableRow(_Strict):
    """A row in one table: what is printed by task, or why it stands there without a number."""

    printed: dict[str, Printed] = {}
    ours: str = ""
    drawn: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _sort(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            raise ValueError("must map tasks to printed numbers")
        return _gathered(data, "printed", {"ours", "drawn", "tasks"})


class Row(_Strict):
    """The fields in which a row's sweep differs from the paper's defaults."""

    label: str = ""
    scale: Fields = {}  # of its budget, at the paper's scale: no part of what the row means
    fields: Fields = {}

    @model_validator(mode="before")
    @classmethod
    def _sort(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            raise ValueError("must be a mapping of the fields in which its sweep differs")
        return _gathered(data, "fields", {"label", "scale"})


class PaperTable(_Strict):
    """One table or figure of a paper: rows on tasks."""

    id: str = ""
    paper: str = ""
    title: str
    where: str = ""
    kind: Literal["accuracy", "steps", "gap", "attention"] = "accuracy"
    until: str = "threshold"  # of steps: the sweep's threshold, or the row whose accuracy at its end is to be reached
    measures: tuple[str, ...] = ()
    any_task: bool = False  # ours: its rows are read on every task that a study has; it makes no sweeps
    rows: dict[str, TableRow]

    def on(self, row: str, paper: "Paper") -> list[str]:
        """The tasks on which the row stands, in the paper's order."""
        entry = self.rows[row]
        return [task for task in paper.tasks if task in {*entry.printed, *entry.drawn, *entry.tasks}]

    def named(self, row: str, task: str, paper: "Paper") -> Fields:
        """The fields that the row names on a task: the row's, and those in which its cell differs."""
        printed = self.rows[row].printed.get(task)
        return {**paper.rows[row].fields, **(printed.fields if printed else {})}

    def keeps(self, row: str, task: str) -> bool:
        """Whether other rows start from the weights of this cell's model."""
        printed = self.rows[row].printed.get(task)
        return printed is not None and printed.keep


def _named(entries: Any, paper: str) -> Any:
    """Each entry with its id and its paper."""
    if not isinstance(entries, dict):
        return entries
    return {
        name: entry | {"id": str(name), "paper": paper} if isinstance(entry, dict) else entry
        for name, entry in entries.items()
    }


class Paper(_Strict):
    """Everything that one paper says; the head of this file describes it."""

    name: str
    title: str
    source: str = ""  # the file, known once it is read
    place: int = 100  # among the papers, where they are shown
    own_scale: bool = True  # False: no sweep is at the paper's scale
    authors: str = ""
    defaults: Fields = {}
    rates: dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False, strict=True)]] = {}
    tasks: dict[str, Fields] = {}
    rows: dict[str, Row] = {}
    arms: dict[str, Fields] = {}
    tables: dict[str, PaperTable] = {}
    claims: dict[str, Claim] = {}
    findings: dict[str, Finding] = {}

    @model_validator(mode="before")
    @classmethod
    def _name_parts(cls, data: dict[str, Any]) -> dict[str, Any]:
        """Tables, claims and findings learn their ids and their paper; their shape is checked afterwards."""
        paper = str(data.get("name", ""))
        return data | {part: _named(data[part], paper) for part in ("tables", "claims", "findings") if part in data}

    def label(self, row: str) -> str:
        """The row as it is printed."""
        return self.rows[row].label or row

    def rate(self, task: str, backbone: str) -> float | None:
        """The learning rate that the paper prints for this backbone, else task; None where it prints none."""
        family = backbone.partition("-")[0]
        return next((self.rates[key] for key in (backbone, family, task, "default") if key in self.rates), None)
