"""The ladder of ListOps: readers that understand more and more of a list, and where printed accuracies stand on it."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from operator import eq
from typing import TYPE_CHECKING

import pandas as pd

from fpt.evidence.arithmetic import GAP
from fpt.evidence.baselines import MAJORITY, OPERATOR, Score, known_scores
from fpt.papers import claim, paper_of, papers
from fpt.papers.schema import LEVELS
from fpt.tasks import TASKS

if TYPE_CHECKING:
    from fpt.tasks.arrays import Examples
    from fpt.tasks.task import Task

DIGITS = "operator and direct digits"
NESTED, OPERATOR_OR_CLOSE = re.compile(rb"[\x0b-\x0e][\x01-\x0a]*\x0f"), rb"[\x0b-\x0f]"  # of symbols: a list of digits
TASK = "listops"
TESTED = TASKS[TASK].options["heldout"]  # lists in Long Range Arena's test file: what a printed accuracy rests on


def ladder(task: "Task") -> dict[str, Score]:
    """Accuracies of the readers on the test lists of seed 0, lowest first.

    The first three name the commonest answer of the training lists that look the same to them: all of them, those with
    the same outermost operator, and those that also share the least and the largest digit that stands directly in the
    outermost list. The others evaluate the outermost levels and take deeper lists for typical ones, until all answers
    are right. They need brackets: `released` has the first three alone.
    """
    from fpt.tasks.listops import evaluate

    split = task.split(0)
    train, test = split.train_sample(None), split.test
    seen, texts = lists_of(train), lists_of(test)
    known, answers = (part.targets[:, 0].tolist() for part in (train, test))
    looks: dict[str, Callable[[bytes], Hashable]] = {
        MAJORITY: lambda _: 0,
        OPERATOR: lambda text: text[0],
        DIGITS: direct_digits,
    }
    found = {name: share(_looked_up(look, seen, known, texts), answers) for name, look in looks.items()}
    for depth, name in enumerate(LEVELS) if test.lengths is not None else ():
        found[name] = share([evaluate(text, depth) for text in texts], answers)
        if found[name].share == 1:
            break
    return found


def lists_of(examples: "Examples") -> list[bytes]:
    """Each list as a string of symbols, without its padding."""
    return [row.tobytes().rstrip(b"\0") for row in examples.inputs.numpy()]


def direct_digits(text: bytes) -> tuple[int, int, int]:
    """The outermost operator, and the least and the largest of the digits that stand directly in its list (0: none).

    Without brackets: of those before the first nested list, since no one sees where that ends.
    """
    inside = text[1:]
    while NESTED.search(inside):
        inside = NESTED.sub(b"", inside)
    digits = re.split(OPERATOR_OR_CLOSE, inside)[0]
    return text[0], min(digits, default=0), max(digits, default=0)


def place(accuracy: float, rungs: Mapping[str, Score], of: int = TESTED) -> str:
    """Where an accuracy (a fraction) on `of` lists stands: at the nearest rung within its 95% interval, else above
    one and below the next."""
    low, high = Score(accuracy, of).interval
    near = {name: abs(rung.share - accuracy) for name, rung in rungs.items() if low <= rung.share <= high}
    if near:
        return f"at: {min(near, key=near.__getitem__)}"
    below = [f"above {name}" for name, rung in rungs.items() if rung.share < low]
    above = [f"below {name}" for name, rung in rungs.items() if rung.share > high]
    return ", ".join([*below[-1:], *above[:1]])


def rungs(task: str = TASK, variant: str = "paper") -> dict[str, Score]:
    """The ladder as published, lowest rung first; without the reader that takes the whole list for a typical one, which
    is all but the outermost operator's."""
    scores = {name: score for name, score in known_scores(task, variant).items() if name != LEVELS[0]}
    return dict(sorted(scores.items(), key=lambda each: each[1].share))


def placed() -> pd.DataFrame:
    """Every accuracy on ListOps that a paper prints, once for a row, highest first.

    `paper`, `where` (in which tables), `row`, `data` (the variant that the paper trains on), `accuracy` (percent; of a
    gap that on test data), and its place `on the ladder` of these data.
    """
    rows = []
    for table in (table for paper in papers().values() for table in paper.tables.values()):
        paper = paper_of(table.paper)
        by, data = paper.authors.partition(",")[0].split(" ")[-1], paper.tasks.get(TASK, {}).get("variant", "paper")
        for row, entry in table.rows.items() if table.kind in ("accuracy", "gap") else ():
            if (cell := entry.printed.get(TASK)) is None or cell.value is None:
                continue
            value = cell.value[GAP.index("test")] if isinstance(cell.value, tuple) else cell.value
            label = paper.label(row) + f" ({cell.literature})" * bool(cell.literature)
            rows += [(f"{by} et al.", name, label, data, value) for name in re.findall(r"Table \d+", table.where)]
    rows.append(("Tay et al.", "Table 1", "Transformer", "paper", claim("O-08").numbers["tay_listops"]))
    columns = ["paper", "where", "row", "data", "accuracy"]
    frame = pd.DataFrame(rows, columns=columns).drop_duplicates()
    frame = (
        frame.groupby(["paper", "row", "data", "accuracy"], sort=False)["where"].agg(", ".join).reset_index()[columns]
    )
    each = zip(frame["accuracy"] / 100, frame["data"], strict=True)
    frame["on the ladder"] = [place(accuracy, rungs(TASK, data)) for accuracy, data in each]
    return frame.sort_values("accuracy", ascending=False, kind="stable", ignore_index=True)


def _looked_up(
    look: Callable[[bytes], Hashable], seen: Sequence[bytes], known: Sequence[int], texts: Sequence[bytes]
) -> list[int]:
    """For each text the commonest of the `known` answers of the lists seen that look the same; if there are none, of
    all."""
    counts: dict[Hashable, Counter[int]] = defaultdict(Counter)
    for text, answer in zip(seen, known, strict=True):
        counts[look(text)][answer] += 1
    ((usual, _),) = Counter(known).most_common(1)
    best = {key: count.most_common(1)[0][0] for key, count in counts.items()}
    return [best.get(look(text), usual) for text in texts]


def share(guesses: Sequence[object], answers: Sequence[object]) -> Score:
    """How often a guess is the answer."""
    return Score(sum(map(eq, guesses, answers)) / len(answers), len(answers))
