"""Claims that need no training: printed numbers against each other, and against models and data as they are.

Every function is named by the `arithmetic:` of a claim in fpt/papers and says whether what the claim `says` holds
(None: it cannot be said on this machine), and by which numbers.
"""

import math
import re
from collections.abc import Callable, Iterable
from typing import Any

from fpt.errors import unknown
from fpt.evidence.reading import CONTRADICTED, NOT_TESTED, SUPPORTED
from fpt.evidence.sizes import (
    DEFAULT_STD,
    SIZES,
    counts,
    library_total,
    lstm_parameters,
    matched_std,
    shape,
    spread,
    trained_as_printed,
)
from fpt.papers import Claim, claim, table
from fpt.tasks import CIFAR10, data_folder

Finding = tuple[bool | None, str]
FUNCTIONS: dict[str, Callable[[Claim], Finding]] = {}

CLOSE = 1.2  # "about the same number": within this factor
FROZEN = "what is attended to still moves with input, positions and layer-norm gains"
LU_ROWS = ("bit-memory", "bit-xor", "listops", "mnist", "cifar10", "cifar10-lra", "homology")
IMAGES = ("mnist", "cifar10", "cifar10-lra")
MNIST_CLASSES = (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949)  # of the 60,000 training images
CIFAR10_BATCHES = (  # images of each class in data_batch_1 to 5, counted
    (1005, 974, 1032, 1016, 999, 937, 1030, 1001, 1025, 981),
    (984, 1007, 1010, 995, 1010, 988, 1008, 1026, 987, 985),
    (994, 1042, 965, 997, 990, 1029, 978, 1015, 961, 1029),
    (1003, 963, 1041, 976, 1004, 1021, 1004, 981, 1024, 983),
    (1014, 1014, 952, 1016, 997, 1025, 980, 977, 1003, 1022),
)


def computed(claim: Claim) -> tuple[str, str]:
    """Verdict and note. Raises SpecError where the claim names a function that does not exist."""
    if claim.arithmetic not in FUNCTIONS:
        raise unknown("function of fpt.evidence.arithmetic", claim.arithmetic, FUNCTIONS, f"claim {claim.id}")
    holds, note = FUNCTIONS[claim.arithmetic](claim)
    return NOT_TESTED if holds is None else SUPPORTED if holds else CONTRADICTED, note


def _arithmetic(function: Callable[[Claim], Finding]) -> Callable[[Claim], Finding]:
    FUNCTIONS[function.__name__] = function
    return function


def _printed(name: str, row: str, task: str) -> Any:
    """What a table prints for a row: a number, or several."""
    return table(name).rows[row].printed[task].value


def _row(name: str, row: str, *tasks: str) -> list[Any]:
    return [_printed(name, row, task) for task in tasks]


def _n(number: float) -> str:
    return f"{number:,.10g}"


def _listed(numbers: Iterable[float]) -> str:
    return ", ".join(map(_n, numbers))


@_arithmetic
def l19_lstm_parameters(claim: Claim) -> Finding:
    base = int(counts("gpt2")["trainable"].sum())
    ratios = [trained / base for trained in lstm_parameters().values()]
    return all(1 / CLOSE < r < CLOSE for r in ratios), f"ratio {' and '.join(f'{r:.2f}' for r in ratios)}"


@_arithmetic
def l29_trained_parameters(claim: Claim) -> Finding:
    names = list(SIZES.values())[:3]
    near = [abs(trained_as_printed(n) / 1000 - k) < 2 for n, k in zip(names, claim.numbers["trained_K"], strict=True)]
    totals = [(library_total(n) / 1e6, m) for n, m in zip(names, claim.numbers["total_M"], strict=True)]
    wrong = [f"{printed}M is {live:.1f}M" for live, printed in totals if abs(live / printed - 1) > 0.01]
    parts = f"the trained ones {'hold' if all(near) else 'do not hold'} by the paper's formula"
    return all(near) and not wrong, f"{parts}; totals: {', '.join(wrong) or 'they hold'}"


@_arithmetic
def l30_parameter_shares(claim: Claim) -> Finding:
    live, width, printed = counts("gpt2")["trainable"], shape("gpt2")[1], claim.numbers
    counted = {"output": 10 * width, "input": live["input"], "positions": live["positions"],
               "layer_norm": live["layer_norm"] - 2 * width}  # fmt: skip
    wrong = [f"{printed[group]:,} is {int(count):,}" for group, count in counted.items() if printed[group] != count]
    shares = {"percent_base": "gpt2", "percent_xl": "gpt2-xl"}
    percent = {key: 100 * trained_as_printed(name) / library_total(name) for key, name in shares.items()}
    wrong += [f"{printed[key]}% is {share:.4f}%" for key, share in percent.items() if abs(share - printed[key]) > 5e-4]
    return not wrong, f"not so: {', '.join(wrong)}; the others hold" if wrong else "all hold"


@_arithmetic
def l32_spread_of_weights(claim: Claim) -> Finding:
    backbone = next((name for name in ("gpt2", "tiny-lm") if len(spread(name))), "")
    if not backbone:
        return None, "no pretrained weights on this machine"
    default, found = DEFAULT_STD if backbone == "gpt2" else matched_std(backbone), spread(backbone)
    by_kind = {str(kind): part["std"] for kind, part in found.groupby("kind")}
    differs = (abs(by_kind["weight"] / default - 1) > 0.1).mean() > 0.5 and (by_kind["bias"] > default / 100).all()
    varies = all(part["std"].max() > 1.1 * part["std"].min() for _, part in found.groupby(["group", "kind"]))
    ranges = [f"{kind} {std.min():.3f} to {std.max():.3f}" for kind, std in by_kind.items()]
    return bool(differs and varies), f"{backbone}: {', '.join(ranges)}; default {default:.3f}"


@_arithmetic
def l50_model_shapes(claim: Claim) -> Finding:
    wrong = {size: shape(SIZES[size]) for size, printed in claim.numbers.items() if [*shape(SIZES[size])] != printed}
    return not wrong, f"the library's models: {wrong or 'equal'}"


@_arithmetic
def l51_token_shapes(claim: Claim) -> Finding:
    printed = {task: [int(n) for n in re.findall(r"\d+", text)[:2]] for task, text in claim.numbers.items()}
    ours = _token_shapes()
    wrong = [f"{task} {_x(printed[task])} is {_x(ours[task])}" for task in printed if printed[task] != ours[task]]
    return not wrong, f"as loaded here: {', '.join(wrong) or 'equal'}"


def _x(numbers: list[int]) -> str:
    return "x".join(map(str, numbers))


def _token_shapes() -> dict[str, list[int]]:
    """Tokens and their width (or number of symbols) of the tasks as they are loaded here; images are blank."""
    import torch

    from fpt.tasks import homology, listops, load
    from fpt.tasks.pixels import Pixels

    images = {"mnist": (Pixels(4, pad=2), (28, 28)), "cifar10": (Pixels(4), (32, 32, 3)),
              "cifar10_lra": (Pixels(1, gray=True), (32, 32, 3))}  # fmt: skip
    found = {
        name: [*pixels(torch.zeros(1, *size, dtype=torch.uint8)).shape[1:]] for name, (pixels, size) in images.items()
    }
    bits = {name: load(name.replace("_", "-")) for name in ("bit_memory", "bit_xor")}
    found |= {name: [task.tokens, task.width or 0] for name, task in bits.items()}
    return found | {"listops": [listops.CUT, listops.CLOSE], "homology": [homology.LONGEST, len(homology.RESIDUES)]}


@_arithmetic
def l52_frozen_communication(claim: Claim) -> Finding:
    return not tokens_mix("fpt"), f"without the frozen attention no token depends on another; {FROZEN}"


def tokens_mix(trainable: str) -> bool:
    """Whether a token's prediction depends on other tokens where every attention tensor that does not train is zero."""
    import torch

    from fpt.models import build
    from fpt.tasks import load

    task, source = load("digits"), torch.Generator().manual_seed(0)
    template = build(task, backbone="tiny-lm", init="random", trainable=trainable)
    for name, parameter in template.module.named_parameters():
        silent = template.groups[name] == "attention" and name not in template.trainable
        torch.nn.init.normal_(parameter, 0.0, 0.0 if silent else 0.1, generator=source)
    tokens = torch.randn(1, task.tokens, task.width or 1, generator=source, requires_grad=True)
    template.module.drop_with([])
    (gradient,) = torch.autograd.grad(template.module(tokens)[..., 0].sum(), tokens)
    return bool(gradient[:, :-1].any())


@_arithmetic
def o01_transposed_digits(_: Claim) -> Finding:
    printed, live = claim("L-30").numbers, counts("gpt2")["trainable"]
    right = {"layer_norm": int(live["layer_norm"]) - 2 * shape("gpt2")[1], "positions": int(live["positions"])}
    pairs = [(printed[group], count) for group, count in right.items()]
    same = all(one != two and sorted(str(one)) == sorted(str(two)) for one, two in pairs)
    return same, ", ".join(f"{one:,} for {two:,}" for one, two in pairs)


@_arithmetic
def o02_input_bias(_: Claim) -> Finding:
    printed, width = claim("L-30").numbers, shape("gpt2")[1]
    note = f"{printed['input']:,} = 17 x {width}, {printed['output']:,} = 10 x {width}"
    return printed["input"] == 17 * width and printed["output"] == 10 * width, note


@_arithmetic
def o03_two_totals(claim_: Claim) -> Finding:
    one, two = claim_.numbers["section_2_2_M"], claim("L-29").numbers["total_M"][0]
    return one != two, f"{one}M and {two}M; {library_total('gpt2') / 1e6:.1f}M counted"


def _tokens(task: str) -> list[int]:
    return [int(n) for n in re.findall(r"\d+", claim("L-51").numbers[task])]


@_arithmetic
def o04_cifar10_width(_: Claim) -> Finding:
    width = _tokens("cifar10")[1]
    return width != 4 * 4 * 3, f"{width} printed; a patch of 4x4 pixels in three colours has {4 * 4 * 3}"


@_arithmetic
def o05_mnist_size(_: Claim) -> Finding:
    tokens, _width, *sides = _tokens("mnist")
    fits = math.prod(side // 4 for side in sides)
    return tokens == fits and tokens != (28 // 4) ** 2, f"{tokens} tokens of {_x(sides)} pixels; 28x28 gives {7 * 7}"


@_arithmetic
def o06_six_strings(_: Claim) -> Finding:
    tokens, width = _tokens("bit_memory")
    return tokens * width == 6 * 1000, f"{tokens} x {width} / 1000 = {tokens * width / 1000:g} strings"


@_arithmetic
def o07_two_sizes(_: Claim) -> Finding:
    first, base, large = (_printed(*place, "cifar10") for place in
                          (("lu-table-1", "FPT"), ("lu-table-2", "FPT"), ("lu-table-8", "FPT, large")))  # fmt: skip
    return (
        first == large != base,
        f"{_n(first)} in Table 1, {_n(base)} in Table 2, {_n(large)} of the large model in Table 8",
    )


@_arithmetic
def o08_literature_rounded(claim: Claim) -> Finding:
    listops, image = _row("lu-table-1", "full", "listops", "cifar10-lra")
    source, right = claim.numbers["tay_listops"], claim.numbers["tay_image"]
    return round(source) != listops and round(right) == image, f"{_n(listops)} for {source}, {_n(image)} for {right}"


@_arithmetic
def o10_equal_lstm_rows(_: Claim) -> Finding:
    places = (("lu-table-3", "frozen LSTM"), ("lu-table-4", "frozen LSTM"), ("lu-table-5", "frozen LSTM + residual"))
    rows = [_row(*place, "listops", *IMAGES) for place in places]
    return rows[0] == rows[1] == rows[2], f"{_listed(rows[0])} in Table 3 and {_listed(rows[2])} in Table 5"


@_arithmetic
def o12_output_only_differs(_: Claim) -> Finding:
    lists = [_printed("lu-table-10", "read-out", "listops"), _printed("lu-table-12", "read-out", "listops")]
    others = [_printed(name, "output only", "listops") for name in ("lu-table-15", "lu-table-18")]
    images = _printed("lu-table-10", "read-out", "cifar10-lra"), _printed("lu-table-15", "output only", "cifar10-lra")
    differ = min(lists) - max(others) > 1 and abs(images[0] - images[1]) > 1
    return differ, f"ListOps {_listed(lists)} and {_listed(others)}; CIFAR-10 LRA {_listed(images)}"


@_arithmetic
def o13_below_majority(_: Claim) -> Finding:
    printed, majority = _printed("lu-table-12", "read-out, 1 layer", "listops"), claim("B-03").numbers["accuracy"]
    return printed < min(majority), f"{_n(printed)} against {_listed(majority)}"


@_arithmetic
def o14_input_output_differs(_: Claim) -> Finding:
    rows = {"output + input": ("lu-table-16", "lu-table-18"), "output + input, random": ("lu-table-16", "lu-table-20")}
    pairs = [[_printed(name, row, "cifar10") for name in names] for row, names in rows.items()]
    return all(abs(one - two) > 1 for one, two in pairs), " and ".join(
        f"{_n(one)} against {_n(two)}" for one, two in pairs
    )


@_arithmetic
def o15_below_random(_: Claim) -> Finding:
    bit, vit, random = (_printed("lu-table-2", row, "homology") for row in ("bit", "ViT", "random"))
    return max(bit, vit) < random, f"{bit} and {vit} below {random}"


@_arithmetic
def o16_training_below_test(_: Claim) -> Finding:
    training, test = _printed("lu-table-7", "FPT", "cifar10-lra")[:2]
    return training < test, f"{training} below {test}"


@_arithmetic
def o17_listops_differs(_: Claim) -> Finding:
    pairs = {
        task: (_printed("lu-table-21", "random", task), _printed("lu-table-2", "random", task)) for task in LU_ROWS
    }
    differ = [task for task, (one, two) in pairs.items() if abs(one - two) > 0.5]
    return differ == ["listops"], "; ".join(f"{task} {_listed(pairs[task])}" for task in differ)


@_arithmetic
def o19_bit_memory_bold(_: Claim) -> Finding:
    inputs, norms = (_row("lu-table-18", row, *LU_ROWS) for row in ("output + input", "output + layer norm"))
    above = {task: (one, two) for task, one, two in zip(LU_ROWS, inputs, norms, strict=True) if one > two}
    return [*above] == ["bit-memory"], "; ".join(f"{task} {_listed(pair)}" for task, pair in above.items())


@_arithmetic
def o31_statistics_below_default(_: Claim) -> Finding:
    pairs = {t: (_printed("lu-table-9", "statistics", t), _printed("lu-table-9", "random default", t)) for t in LU_ROWS}
    below = [task for task, (statistics, default) in pairs.items() if statistics < default]
    return below == ["cifar10", "cifar10-lra"], "; ".join(f"{t} {pairs[t][0]} below {pairs[t][1]}" for t in below)


@_arithmetic
def r21_listops_data(claim: Claim) -> Finding:
    from fpt.tasks.listops import CLOSE, CUT, LONG, generate

    lengths = generate(LONG, 200, "listops").lengths
    cut = float((lengths > CUT).mean())
    symbols, length = [CLOSE, CLOSE + 1], [CUT, LONG.max_length]
    equal = claim.numbers == {"symbols": symbols, "length": length}
    note = f"symbols {_listed(symbols)}, tokens {_listed(length)}; {cut:.0%} of 200 lists are longer than {CUT}"
    return equal and cut > 0.5, note


def _batches() -> tuple[list[list[int]], str]:
    """Images of each class in the five training batches, counted where the data are on this machine."""
    if not any((data_folder() / file).exists() for file in CIFAR10):
        return [list(batch) for batch in CIFAR10_BATCHES], "as counted before: the data are not on this machine"
    from fpt.tasks import load

    data: Any = load("cifar10").data
    labels = data.train.targets[:, 0]
    return [labels[at : at + 10_000].bincount(minlength=10).tolist() for at in range(0, 50_000, 10_000)], "as counted"


@_arithmetic
def r24_batches_balanced(_: Claim) -> Finding:
    batches, how = _batches()
    note = f"images of a class in batch 5: {min(batches[4]):,} to {max(batches[4]):,}, {how}"
    return all(min(batch) == max(batch) for batch in batches), note


@_arithmetic
def o26_batches_not_balanced(_: Claim) -> Finding:
    batches, how = _batches()
    unequal = sum(min(batch) < max(batch) for batch in batches)
    return unequal == len(batches), f"{unequal} of {len(batches)} batches are not balanced, {how}"


@_arithmetic
def r25_mnist_split(claim: Claim) -> Finding:
    import torch

    from fpt.tasks.arrays import hold_out_equally

    labels = torch.repeat_interleave(torch.arange(10), torch.tensor(MNIST_CLASSES))
    train, validation = hold_out_equally(labels, 0, 1000)
    held = labels[validation].bincount()
    equal = claim.numbers == {"train": len(train), "val": len(validation)} and set(held.tolist()) == {1000}
    return equal, f"{len(train):,} and {len(validation):,} images, {int(held.min()):,} a class, by the rule used here"


@_arithmetic
def o20_row_agrees_with_table_4(_: Claim) -> Finding:
    tables = [table(name).rows["UP"].printed for name in ("rothermel-table-1", "rothermel-table-4")]
    first, other = ([(printed[task].value, printed[task].sem) for task in IMAGES] for printed in tables)
    values = _listed(_row("rothermel-table-1", "UP", *IMAGES))
    return first == other, f"{values} with their errors in both; ListOps is not in Table 4"


@_arithmetic
def o21_lead_on_lra(_: Claim) -> Finding:
    up, *others = (_printed("rothermel-table-1", row, "cifar10-lra") for row in ("UP", "FP", "FR", "UR"))
    text, lead = claim("R-09").numbers["text"], round(up - max(others), 1)
    return text != lead, f"{up} - {max(others)} = {lead}, printed {text}"


@_arithmetic
def o22_tie_on_listops(_: Claim) -> Finding:
    up, frozen = (_printed("rothermel-table-2", row, "listops") for row in ("UP", "FP"))
    return up == frozen, f"{_n(up)} and {_n(frozen)} steps"


@_arithmetic
def o23_unfrozen_random_rises_too(_: Claim) -> Finding:
    pairs = zip(*(_row("rothermel-table-4", row, *IMAGES) for row in ("UR", "UR, DistilGPT2")), strict=True)
    rises = [round(large - small, 1) for large, small in pairs]
    return min(rises) > 0, f"{', '.join(f'{rise:+}' for rise in rises)} points"


@_arithmetic
def o24_printed_differences(_: Claim) -> Finding:
    off = {}
    for row, entry in table("rothermel-table-3").rows.items():
        for task in entry.printed:
            training, test, gap = _printed("rothermel-table-3", row, task)
            if error := round(abs(gap - (training - test)), 1):
                off[f"{row} on {task}: {gap} for {training - test:.1f}"] = error
    return list(off.values()) == [0.1, 0.1], "; ".join(off)
