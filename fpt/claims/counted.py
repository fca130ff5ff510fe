"""What arithmetic claims count in models and data as they are: `counted.json`, so that judging builds no model.

`python -m fpt.claims.counted` writes the file anew, and a test compares it with what is counted.
"""

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from fpt.files import write_atomically
from fpt.models import ARMS, BACKBONES, FOUR, build, trainable_groups
from fpt.results import sizes
from fpt.tasks import load

FILE = Path(__file__).with_name("counted.json")
MNIST_CLASSES = (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949)  # of the 60,000 training images
LISTS = 200  # of ListOps, whose lengths are counted


@cache
def counted() -> dict[str, Any]:
    """The file: its parts are those of `count`."""
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def count() -> dict[str, Any]:
    """Everything anew, in plain JSON values. Builds models, downloads nothing and needs no data.

    `trained`: parameters of frozen models on the paper's CIFAR-10. `by_formula`, `library_total` and `shapes`: of the
    sizes of GPT-2, as in fpt.results.sizes. `tokens`: number and width (or symbols) of a task's tokens. `tokens_mix`
    and `new_positions_learn`: by what trains and by arm. `long_lists`: the share of lists that are cut. `mnist`:
    images of the training and the validation part, and of each class in the latter.
    """
    from fpt.tasks.listops import CLOSE, CUT, LONG, generate

    names = sizes.SIZES.values()
    return {
        "trained": {"gpt2": int(sizes.counts("gpt2")["trainable"].sum()), **sizes.lstm_parameters()},
        "by_formula": {name: sizes.by_formula(name) for name in names},
        "library_total": {name: sizes.library_total(name) for name in names},
        "shapes": {name: list(sizes.shape(name)) for name in names},
        "tokens": _token_shapes(),
        "tokens_mix": {trainable: tokens_mix(trainable) for trainable in ("fpt", "all")},
        "new_positions_learn": {name: new_positions_learn(ARMS[name].init, str(ARMS[name].trainable)) for name in FOUR},
        "listops": {"symbols": [CLOSE, CLOSE + 1], "length": [CUT, LONG.max_length]},
        "long_lists": float((generate(LONG, LISTS, "listops").lengths > CUT).mean()),
        "mnist": _mnist_split(),
    }


def _token_shapes() -> dict[str, list[int]]:
    """As the tasks are loaded here; images are blank."""
    import torch

    from fpt.tasks import homology, listops
    from fpt.tasks.pixels import Pixels

    images = {
        "mnist": (Pixels(4, pad=2), (28, 28)),
        "cifar10": (Pixels(4), (32, 32, 3)),
        "cifar10_lra": (Pixels(1, gray=True), (32, 32, 3)),
    }
    found = {
        name: [*pixels(torch.zeros(1, *size, dtype=torch.uint8)).shape[1:]] for name, (pixels, size) in images.items()
    }
    bits = {name: load(name.replace("_", "-")) for name in ("bit_memory", "bit_xor")}
    found |= {name: [task.tokens, task.width or 0] for name, task in bits.items()}
    return found | {"listops": [listops.CUT, listops.CLOSE], "homology": [homology.LONGEST, len(homology.RESIDUES)]}


def tokens_mix(trainable: str) -> bool:
    """Whether a token's prediction depends on other tokens where every attention tensor that does not train is zero."""
    import torch

    task, source = load("digits"), torch.Generator().manual_seed(0)
    template = build(task, backbone="tiny-lm", init="random", trainable=trainable)
    for name, parameter in template.module.named_parameters():
        silent = template.groups[name] == "attention" and name not in template.trainable
        torch.nn.init.normal_(parameter, 0.0, 0.0 if silent else 0.1, generator=source)
    tokens = torch.randn(1, task.tokens, task.width or 1, generator=source, requires_grad=True)
    template.module.drop_with([])
    (gradient,) = torch.autograd.grad(template.module(tokens)[..., 0].sum(), tokens)
    return bool(gradient[:, :-1].any())


def new_positions_learn(init: str, trainable: str | Sequence[str]) -> bool:
    """Whether all positions train where a task has more tokens than tiny-lm was pretrained on."""
    import torch

    if "positions" not in trainable_groups(trainable, BACKBONES["tiny-lm"]):
        return False  # new ones would stay as they were drawn
    task = load("bit-xor", length=BACKBONES["tiny-lm"].config["n_positions"])  # twice as many tokens
    template = build(task, "tiny-lm", init, trainable, layers=1)  # positions come before the first layer
    weights = template.initialise(0)
    (name,) = (name for name, group in template.groups.items() if group == "positions")
    weights[name].requires_grad_()
    logits = torch.func.functional_call(template.module, weights, torch.ones(1, task.tokens, 1))
    (gradient,) = torch.autograd.grad(logits.square().sum(), weights[name])
    return bool(gradient.any(1).all())


def _mnist_split() -> dict[str, Any]:
    """By the rule used here, of the classes that the data have."""
    import torch

    from fpt.tasks.arrays import hold_out_equally

    labels = torch.repeat_interleave(torch.arange(10), torch.tensor(MNIST_CLASSES))
    train, validation = hold_out_equally(labels, 0, 1000)
    return {"train": len(train), "val": len(validation), "a class": labels[validation].bincount().tolist()}


if __name__ == "__main__":
    write_atomically(FILE, (json.dumps(count(), indent=1) + "\n").encode())
