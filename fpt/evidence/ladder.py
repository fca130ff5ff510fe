"""The ladder of ListOps: readers that understand more and more of a list, and what is left of lists as released."""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import pandas as pd

from fpt.evidence.arithmetic import GAP
from fpt.evidence.baselines import MAJORITY, OPERATOR, Score, known_scores
from fpt.papers import claim, papers
from fpt.papers.schema import LEVELS
from fpt.tasks import TASKS

if TYPE_CHECKING:
    from fpt.tasks.arrays import Examples
    from fpt.tasks.task import Task

DIGITS = "operator and direct digits"
TESTED = TASKS["listops"].options["heldout"]  # lists in Long Range Arena's test file: what a printed accuracy rests on


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
    seen, texts, answers = lists_of(train), lists_of(test), test.targets[:, 0].tolist()
    looks: dict[str, Callable[[bytes], Hashable]] = {MAJORITY: lambda _: 0, OPERATOR: lambda text: text[0]}
    known = train.targets[:, 0].tolist()
    found = {
        name: share(_looked_up(look, seen, known, texts), answers)
        for name, look in (looks | {DIGITS: direct_digits}).items()
    }
    for depth, name in enumerate(LEVELS) if test.lengths is not None else ():
        found[name] = share((evaluate(text, depth) for text in texts), answers)
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
    from fpt.tasks.listops import CLOSE, OPERATORS

    depth, digits = 0, []
    for symbol in text:
        if symbol in OPERATORS:
            depth += 1
        elif symbol == CLOSE:
            depth -= 1
        elif depth == 1:
            digits.append(symbol)
    return text[0], min(digits, default=0), max(digits, default=0)


def left(task: "Task") -> dict[str, Score]:
    """Of the test lists with brackets, what dropping these and cutting to 512 symbols leaves: shares of the lists."""
    from fpt.tasks.listops import CLOSE, CUT, evaluate

    split = task.split(0)
    texts, answers = lists_of(split.test), split.test.targets[:, 0].tolist()
    whole = [text.replace(bytes([CLOSE]), b"") for text in texts]
    cut = [text[:CUT] for text in whole]
    possible: dict[bytes, set[int]] = defaultdict(set)
    for text, answer in zip(cut, answers, strict=True):
        possible[text].add(answer)
    yes = [True] * len(texts)
    return {
        "longer than the cut": share((len(text) > CUT for text in whole), yes),
        "looks like a list with another answer": share((len(possible[text]) > 1 for text in cut), yes),
        "right: cut, with brackets": share((evaluate(_closed(_prefix(text, CUT))) for text in texts), answers),
        "right: whole, without brackets": share((evaluate(_closed(text)) for text in whole), answers),
        "right: cut, without brackets": share((evaluate(_closed(text)) for text in cut), answers),
        "certain: cut, without brackets": share((certain(text) is not None for text in cut), yes),
    }


def certain(text: bytes) -> int | None:
    """The answer, where what is left of a list without brackets and maybe without its end leaves no other: 9, where a
    largest is asked for and a 9 is sure to be among its arguments, or 0, where a least.

    Sure are the digits before the first nested list, and of that list, and of a list in it, the first two arguments:
    it may end after them.
    """
    from fpt.tasks.listops import OPERATORS

    chain: list[tuple[int, list[int]]] = []
    for symbol in text:
        if len(chain) > 1 and len(chain[-1][1]) > 1:
            break
        if symbol in OPERATORS:
            chain.append((symbol, []))
        else:
            chain[-1][1].append(symbol - 1)
    value: int | None = None
    for operator, digits in reversed(chain):
        extreme = {"MAX": 9, "MIN": 0}.get(OPERATORS[operator][0])
        value = extreme if extreme in (*digits, value) else None
    return value


def reduced(text: bytes, exact: int) -> bytes:
    """A list as a reader sees it who takes lists nested `exact` deep or deeper for typical ones."""
    from fpt.tasks.listops import CLOSE, OPERATORS

    kept, depth = bytearray(), 0
    for symbol in text:
        depth += symbol in OPERATORS
        if depth <= exact:
            kept.append(symbol)
        elif depth == exact + 1 and symbol in OPERATORS:
            kept.append(OPERATORS[symbol][2] + 1)
        depth -= symbol == CLOSE
    return bytes(kept)


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


def rungs(task: str = "listops", variant: str = "paper") -> dict[str, Score]:
    """The ladder as published, lowest rung first; without the reader that takes the whole list for a typical one, which
    is all but the outermost operator's."""
    scores = {name: score for name, score in known_scores(task, variant).items() if name != LEVELS[0]}
    return dict(sorted(scores.items(), key=lambda each: each[1].share))


def printed_accuracies(task: str = "listops") -> pd.DataFrame:
    """Every accuracy that a paper prints for a task, once for a row: `paper`, `where` (its tables), `row`, `accuracy`
    (percent; of a gap that on test data), highest first."""
    found: dict[tuple[str, str, float], list[str]] = defaultdict(list)
    for paper in papers().values():
        for table in paper.tables.values():
            for row, entry in table.rows.items() if table.kind in ("accuracy", "gap") else ():
                if (cell := entry.printed.get(task)) is not None and cell.value is not None:
                    value = cell.value[GAP.index("test")] if isinstance(cell.value, tuple) else cell.value
                    words = f"{paper.label(row)} ({cell.literature})" if cell.literature else paper.label(row)
                    found[paper.name, words, float(value)].append(table.where)
    if task == "listops":
        found["Tay et al. 2021", "Transformer", claim("O-08").numbers["tay_listops"]].append("Table 1")
    rows = [(paper, ", ".join(where), row, value) for (paper, row, value), where in found.items()]
    frame = pd.DataFrame(rows, columns=["paper", "where", "row", "accuracy"])
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


def _prefix(text: bytes, cut: int) -> bytes:
    """A list up to its symbol number `cut`, closing brackets not counted."""
    from fpt.tasks.listops import CLOSE

    places = [place for place, symbol in enumerate(text) if symbol != CLOSE]
    return text[: places[cut]] if len(places) > cut else text


def _closed(text: bytes) -> bytes:
    """A list that breaks off, closed: every list that is open ends where the text does; those without an argument yet
    are dropped."""
    from fpt.tasks.listops import CLOSE, OPERATORS

    text = text.rstrip(bytes(OPERATORS))
    missing = sum(text.count(operator) for operator in OPERATORS) - text.count(CLOSE)
    return text + missing * bytes([CLOSE])


def share(guesses: Iterable[object], answers: Sequence[object]) -> Score:
    """How often a guess is the answer."""
    right = sum(guess == answer for guess, answer in zip(guesses, answers, strict=True))
    return Score(right / len(answers), len(answers))
