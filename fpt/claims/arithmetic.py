"""Claims that no run decides: printed numbers against each other, against baselines, and against models and data as
they are.

A claim with `arithmetic: true` in fpt/papers has a function here, under its id in `FUNCTIONS`. It says whether what the
claim `says` holds, and by which numbers; what it counts in models and data is in counted.json.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

import numpy as np

from fpt.claims import words
from fpt.claims.counted import LISTS, counted
from fpt.errors import check_known
from fpt.papers import claim, paper_of, printed_number, table
from fpt.papers.schema import LEVELS, Claim, Finding, Number, Relation
from fpt.results.baselines import known_scores
from fpt.results.sizes import SIZES
from fpt.tasks import entry

Outcome = tuple[bool, str]

ODDITY = "O-"  # claims of ours that a printed number is a slip
TOLERANCE = 0.5  # points, of a computed baseline
CLOSE = 1.2  # "about the same number": within this factor
FROZEN = "what is attended to still moves with input, positions and layer-norm gains"
CIFAR10_BATCHES = (  # images of each class in data_batch_1 to 5, counted
    (1005, 974, 1032, 1016, 999, 937, 1030, 1001, 1025, 981),
    (984, 1007, 1010, 995, 1010, 988, 1008, 1026, 987, 985),
    (994, 1042, 965, 997, 990, 1029, 978, 1015, 961, 1029),
    (1003, 963, 1041, 976, 1004, 1021, 1004, 981, 1024, 983),
    (1014, 1014, 952, 1016, 997, 1025, 980, 977, 1003, 1022),
)


def without_runs(question: Claim | Finding) -> tuple[str, str] | None:
    """The word of a claim or finding that no run decides, and what shows it; None for the others."""
    if isinstance(question, Finding):
        return (words.READ, question.read) if question.read else None
    if question.documentary:
        return words.READ, question.documentary
    if not is_computed(question):
        return None
    if question.arithmetic or question.printed:
        holds, note = computed(question)
        return in_print(question, holds), note
    return by_baselines(question)


def is_computed(claim: Claim) -> bool:
    """Whether a claim is decided by what is printed, counted or read off baselines."""
    return claim.arithmetic or bool(claim.printed) or any(rule.kind == "baseline" for rule in claim.rule)


def in_print(claim: Claim, holds: bool) -> str:
    """Whether what is printed is consistent, or a slip."""
    is_slip = holds if claim.id.startswith(ODDITY) else not holds
    return words.SLIP if is_slip else words.CONSISTENT


# --- baselines


def by_baselines(claim: Claim) -> tuple[str, str]:
    """By each baseline that the claim names: one that is off contradicts it."""
    found = [_by_baseline(claim, str(rule.level), task) for rule in claim.rule for task in rule.tasks]
    given = {word for word, _ in found}
    word = next((word for word in (words.SLIP, words.READ, words.TOO_CLOSE) if word in given), words.CONSISTENT)
    return word, "; ".join(dict.fromkeys(note for _, note in found))


def _by_baseline(claim: Claim, name: str, task: str) -> tuple[str, str]:
    """Consistent where the computed score is the printed number within 0.5 points or two standard errors of their
    difference; a slip beyond twice that; only read where it was not counted."""
    scores = known_scores(task)
    if name not in scores:
        return words.READ, f"{task}: {name} was not counted"
    score, noise = 100 * scores[name].share, 100 * scores[name].standard_error
    printed, error = claim.numbers["accuracy"], claim.numbers.get("se", 0.0)
    if isinstance(printed, dict):
        printed = printed[LEVELS.index(name)]
    allowed = printed if isinstance(printed, list | tuple) else [printed]
    away, close = min(abs(score - number) for number in allowed), max(TOLERANCE, 2 * math.hypot(error, noise))
    word = words.CONSISTENT if away <= close else words.TOO_CLOSE if away <= 2 * close else words.SLIP
    return word, f"{task}: {name} {score:.1f}, printed {' and '.join(f'{number:g}' for number in allowed)}"


# --- printed numbers, and what is counted


def computed(claim: Claim) -> Outcome:
    """Whether what the claim says holds, and a note. Raises SpecError where there is no function for the claim."""
    if claim.printed:
        return _of_relations(claim.printed)
    check_known("claim with a function in fpt.claims.arithmetic", claim.id, FUNCTIONS)
    return FUNCTIONS[claim.id](claim)


def _of_relations(relations: Iterable[Relation]) -> Outcome:
    found, notes = [], []
    for each in relations:
        numbers = []
        for task in each.tasks:
            first, second = (printed_at(place, task) for place in each.of)
            apart = np.abs(first - second)
            if each.relation == "equal":
                found.append(apart <= each.by)
            if each.relation == "differ":
                found.append(apart > each.by)
            if each.relation == "below":
                found.append(first < second)
            numbers.append(f"{entry(task).title if task else ''} {_listed(first)} and {_listed(second)}".strip())
        notes.append(f"{_named(each.of[0])} against {_named(each.of[1])}: {', '.join(numbers)}")
    return bool(np.concatenate(found).all()), "; ".join(notes)


def _named(place: Number) -> str:
    """The row and its table, e.g. "FPT (Table 1)", or the claim."""
    if place.claim:
        return place.claim
    read = table(place.table)
    label, *others = (paper_of(read.paper).label(row) for row in (place.row, *place.minus))
    what = "" if place.of == "value" else f"{place.of} of "
    less = f" less the best of {', '.join(others)}" if others else ""
    return f"{what}{label}{less} ({', '.join(re.findall('Table [0-9]+', read.where))})"


def printed_at(place: Number, task: str) -> "np.ndarray[Any, Any]":
    """The number printed there for a task, several where a claim has them. Raises SpecError where there is none."""
    if place.claim:
        return np.atleast_1d(claim(place.claim).numbers[place.number])
    return np.atleast_1d(printed_number(place, task))


def _listed(numbers: Iterable[float]) -> str:
    return ", ".join(f"{number:,.10g}" for number in numbers)


def lstm_parameters(claim: Claim) -> Outcome:
    base, *lstms = counted()["trained"].values()
    ratios = [trained / base for trained in lstms]
    return all(1 / CLOSE < r < CLOSE for r in ratios), f"ratio {' and '.join(f'{r:.2f}' for r in ratios)}"


def trained_parameters(claim: Claim) -> Outcome:
    names, printed = list(SIZES.values())[:3], claim.numbers
    near = [abs(_trained(n) / 1000 - k) < 2 for n, k in zip(names, printed["trained_K"], strict=True)]
    totals = [(counted()["library_total"][n] / 1e6, m) for n, m in zip(names, printed["total_M"], strict=True)]
    wrong = [f"{printed}M is {live:.1f}M" for live, printed in totals if abs(live / printed - 1) > 0.01]
    parts = f"the trained ones {'hold' if all(near) else 'do not hold'} by the paper's formula"
    return all(near) and not wrong, f"{parts}; totals: {', '.join(wrong) or 'they hold'}"


def _trained(backbone: str) -> int:
    """What trains, by the paper's formula."""
    return sum(counted()["by_formula"][backbone].values())


def parameter_shares(claim: Claim) -> Outcome:
    printed, live = claim.numbers, counted()["by_formula"]["gpt2"]
    wrong = [f"{printed[group]:,} is {count:,}" for group, count in live.items() if printed[group] != count]
    shares = {"percent_base": "gpt2", "percent_xl": "gpt2-xl"}
    percent = {key: 100 * _trained(name) / counted()["library_total"][name] for key, name in shares.items()}
    wrong += [f"{printed[key]}% is {share:.4f}%" for key, share in percent.items() if abs(share - printed[key]) > 5e-4]
    return not wrong, f"not so: {', '.join(wrong)}; the others hold" if wrong else "all hold"


def model_shapes(claim: Claim) -> Outcome:
    shapes = {size: counted()["shapes"][SIZES[size]] for size in claim.numbers}
    wrong = {size: found for size, found in shapes.items() if found != claim.numbers[size]}
    return not wrong, f"the library's models: {wrong or 'equal'}"


def token_shapes(claim: Claim) -> Outcome:
    printed = {task: list(map(int, re.findall(r"\d+", text)[:2])) for task, text in claim.numbers.items()}
    ours = counted()["tokens"]
    wrong = [f"{task} {_x(printed[task])} is {_x(ours[task])}" for task in printed if printed[task] != ours[task]]
    return not wrong, f"as loaded here: {', '.join(wrong) or 'equal'}"


def _x(numbers: list[int]) -> str:
    return "x".join(map(str, numbers))


def frozen_communication(claim: Claim) -> Outcome:
    mix = counted()["tokens_mix"]["fpt"]
    return not mix, f"in GPT-2's layout, without frozen attention no token depends on another; {FROZEN}"


def transposed_digits(_: Claim) -> Outcome:
    pairs = [
        (claim("L-30").numbers[group], counted()["by_formula"]["gpt2"][group]) for group in ("layer_norm", "positions")
    ]
    same = all(one != two and sorted(str(one)) == sorted(str(two)) for one, two in pairs)
    return same, ", ".join(f"{one:,} for {two:,}" for one, two in pairs)


def input_bias(_: Claim) -> Outcome:
    printed, (_layers, width, _heads) = claim("L-30").numbers, counted()["shapes"]["gpt2"]
    note = f"{printed['input']:,} = 17 x {width}, {printed['output']:,} = 10 x {width}"
    return printed["input"] == 17 * width and printed["output"] == 10 * width, note


def _tokens(task: str) -> list[int]:
    return [int(n) for n in re.findall(r"\d+", claim("L-51").numbers[task])]


def cifar10_width(_: Claim) -> Outcome:
    width = _tokens("cifar10")[1]
    return width != 4 * 4 * 3, f"{width} printed; a patch of 4x4 pixels in three colours has {4 * 4 * 3}"


def mnist_size(_: Claim) -> Outcome:
    tokens, _width, side, _side = _tokens("mnist")
    note = f"{tokens} tokens of {side}x{side} pixels; 28x28 gives {7 * 7}"
    return tokens == (side // 4) ** 2 != (28 // 4) ** 2, note


def six_strings(_: Claim) -> Outcome:
    tokens, width = _tokens("bit_memory")
    return tokens * width == 6 * 1000, f"{tokens} x {width} / 1000 = {tokens * width / 1000:g} strings"


def listops_data(claim: Claim) -> Outcome:
    ours, cut = counted()["listops"], counted()["long_lists"]
    longer = f"{cut:.0%} of {LISTS} lists are longer than {ours['length'][0]}"
    note = f"symbols {_listed(ours['symbols'])}, tokens {_listed(ours['length'])}; {longer}"
    return claim.numbers == ours and cut > 0.5, note


def batches_balanced(_: Claim) -> Outcome:
    note = f"images of a class in batch 5: {min(CIFAR10_BATCHES[4]):,} to {max(CIFAR10_BATCHES[4]):,}"
    return all(min(batch) == max(batch) for batch in CIFAR10_BATCHES), note


def batches_not_balanced(claim: Claim) -> Outcome:
    balanced, note = batches_balanced(claim)
    return not balanced, note


def mnist_split(claim: Claim) -> Outcome:
    found = counted()["mnist"]
    train, validation, held = found["train"], found["val"], found["a class"]
    equal = claim.numbers == {"train": train, "val": validation} and set(held) == {1000}
    return equal, f"{train:,} and {validation:,} images, {min(held):,} a class, by the rule used here"


def enlarged_positions(_: Claim) -> Outcome:
    learn = counted()["new_positions_learn"]
    note = f"tiny-lm with twice its positions: the new ones train in {sum(learn.values())} of {len(learn)} arms"
    return all(learn.values()), note


def printed_differences(_: Claim) -> Outcome:
    off = {}
    for row, cells in table("rothermel-table-3").rows.items():
        for task, printed in cells.printed.items():
            training, test, gap = cast(tuple[float, ...], printed.value)
            if error := round(abs(gap - (training - test)), 1):
                off[f"{row} on {entry(task).title}: {gap} for {training} - {test} = {training - test:.1f}"] = error
    return list(off.values()) == [0.1, 0.1], "; ".join(off)


FUNCTIONS: Mapping[str, Callable[[Claim], Outcome]] = {  # by the claim that each decides
    "L-19": lstm_parameters,
    "L-29": trained_parameters,
    "L-30": parameter_shares,
    "L-50": model_shapes,
    "L-51": token_shapes,
    "L-52": frozen_communication,
    "O-01": transposed_digits,
    "O-02": input_bias,
    "O-04": cifar10_width,
    "O-05": mnist_size,
    "O-06": six_strings,
    "R-21": listops_data,
    "R-24": batches_balanced,
    "O-26": batches_not_balanced,
    "R-25": mnist_split,
    "R-29": enlarged_positions,
    "O-24": printed_differences,
}
