"""One run, trained in a plain loop with torch's own optimizers and schedulers: what fleets are compared with."""

import torch
from torch import Tensor
from torch.func import functional_call
from torch.nn.functional import cross_entropy
from torch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, LinearLR, LRScheduler, SequentialLR

from fpt.models.layers import Masks
from fpt.models.template import Template
from fpt.seeds import generator
from fpt.tasks.task import Task
from fpt.training import Recipe
from fpt.training.fleet import Fleet

# What a recipe can ask of an optimizer beside the rate of the grid
ALL = {"head_rate": 1e-2, "schedule": "cosine", "weight_decay": 0.5}


def plain_run(
    task: Task, template: Template, recipe: Recipe, rate: float, seed: int, kind: torch.dtype = torch.float32
) -> tuple[dict[str, Tensor], list[float]]:
    """The weights at the end and the loss of every step: AdamW, clip_grad_norm_, one batch after the other. What the
    model draws at a step comes from its documented stream."""
    weights = {name: value.to(kind, copy=True) for name, value in template.initialise(seed).items()}
    trained = {name: weights[name].requires_grad_() for name in template.trainable}
    module, split, losses = template.module, task.split(seed), []
    module.drop_with([])
    module.set_compute_type(kind)
    masks, acting = Masks(recipe.dropout, torch.device("cpu")), _acting(template, recipe, trained, rate)
    shapes: dict[int, list[torch.Size]] = {}  # by tokens of a batch
    for step in range(recipe.steps):
        batch = split.batch(step, recipe.batch_size)
        noise = module.noise and torch.randn(
            recipe.batch_size, *module.noise.shape, generator=generator(seed, "noise", step + 1)
        )
        tokens = task.encode(batch.inputs)
        if recipe.dropout and tokens.shape[1] not in shapes:
            shapes[tokens.shape[1]] = module.dropout_shapes(tokens, batch.lengths)
        drawn = masks.draw(shapes.get(tokens.shape[1], []), [seed], step + 1)
        module.drop_with([mask[0] for mask in drawn], noise)
        if tokens.is_floating_point():
            tokens = tokens.to(kind)
        logits = functional_call(module, weights, (tokens, batch.lengths))
        loss = cross_entropy(logits.flatten(0, 1), batch.targets.flatten())
        for value in trained.values():
            value.grad = None
        loss.backward()
        if recipe.clip:
            torch.nn.utils.clip_grad_norm_(list(trained.values()), recipe.clip)
        for each in acting:
            each.step()
        losses.append(loss.item())
    return {name: value.detach() for name, value in weights.items()}, losses


def _acting(
    template: Template, recipe: Recipe, trained: dict[str, Tensor], rate: float
) -> list[torch.optim.Optimizer | LRScheduler]:
    """An optimizer for the head and one for the rest, each with what decays and what does not; and their schedulers."""
    optimizers: list[torch.optim.Optimizer] = []
    for head in (True, False):
        part = {name: value for name, value in trained.items() if head == name.startswith(("input_", "output_"))}
        kept = {name for name, value in part.items() if template.groups[name] == "layer_norm" or value.dim() < 2}
        groups = [
            {"params": [part[name] for name in sorted(kept)], "weight_decay": 0.0},
            {"params": [part[name] for name in sorted(part.keys() - kept)], "weight_decay": recipe.weight_decay},
        ]
        optimizers.append(torch.optim.AdamW(groups, lr=(head and recipe.head_rate) or rate))
    return [*optimizers, *(_scheduler(optimizer, recipe) for optimizer in optimizers)]


def _scheduler(optimizer: torch.optim.Optimizer, recipe: Recipe) -> LRScheduler:
    """Of an optimizer with one rate: `eta_min` is of all of its groups. A cosine here has two steps of warm-up or
    more."""
    warm = recipe.warmup * recipe.steps
    if recipe.schedule == "constant":
        return LambdaLR(optimizer, lambda done: min(1.0, (done + 1) / warm) if warm else 1.0)
    first, lowest = round(warm), 0.1 * optimizer.param_groups[0]["lr"]
    rise = LinearLR(optimizer, 1 / first, total_iters=first - 1)
    fall = CosineAnnealingLR(optimizer, recipe.steps - first, eta_min=lowest)
    return SequentialLR(optimizer, [rise, fall], [first - 1])


def trained(fleet: Fleet, steps: int) -> Fleet:
    """The fleet after so many steps."""
    for step in range(1, steps + 1):
        fleet.step(step)
    return fleet


def run_of(fleet: Fleet, row: int) -> dict[str, Tensor]:
    """The trained tensors of one run."""
    return fleet.layout.named(fleet.layout.cut(fleet.parameters[row]))


def apart(fleet: Fleet, row: int, expected: dict[str, Tensor]) -> float:
    """The largest distance of a trained tensor of a run from the expected one, relative to its norm."""
    found = []
    for name, value in run_of(fleet, row).items():
        one, other = (_without_key_bias(name, each) for each in (value, expected[name]))
        if other.numel():
            found.append(float((one - other).norm() / other.norm().clamp(min=1e-30)))
    return max(found)


def _without_key_bias(name: str, value: Tensor) -> Tensor:
    """Key biases have no gradient but rounding's (softmax ignores them), which Adam turns into steps of full size."""
    if name.endswith("attention.self.key.bias"):
        return value[:0]
    if name.endswith("c_attn.bias"):  # GPT-2 keeps query, key and value in one bias: its middle third is the key's
        first, _, last = value.chunk(3)
        return torch.cat([first, last])
    return value
