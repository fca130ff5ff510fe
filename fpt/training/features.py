"""What is computed on features of a model whose layers do not train: the output layer alone, and probes.

Where nothing below the output layer trains, nothing is dropped out and nothing augmented, an example has the same
features at every step (Lu et al. 2021, section 3.9). The rest is the same fleet, on another task and with another
template. A probe is the output layer at its optimum: multinomial logistic regression on standardised features, an arm
of its own, and the start of arms that train more.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, fields
from itertools import product
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits
from torch import Tensor, nn

from fpt.errors import SpecError
from fpt.models.arms import ADAPTER
from fpt.models.template import Template
from fpt.tasks.arrays import Examples, Finite
from fpt.tasks.task import FiniteSplit, Task
from fpt.training.compute import FLOAT
from fpt.training.evaluate import TOKENS_AT_ONCE, observed
from fpt.training.fleet import Fleet
from fpt.training.recipe import Recipe

NEVER = -100.0  # the bias of a class without a training example
MOST_ITERATIONS = 2_000  # of logistic regression: some hundreds are enough


def constant(task: Task, template: Template, recipe: Recipe) -> bool:
    """Whether the features of an example are the same at every step of every learning rate."""
    augmented = getattr(task.encode, "augmented", False)
    return (
        template.trainable_groups == ("output",)
        and (recipe.solver == "logistic" or (recipe.dropout == 0 and not task.by_length))
        and isinstance(task.data, Finite)
        and not augmented
        and template.module.noise is None
    )


def kept_bytes(template: Template, recipe: Recipe) -> int:
    """Bytes of the features that a fleet keeps of each seed: of every example, in float32. 0 where it keeps none."""
    task = template.task
    if not constant(task, template, recipe):
        return 0
    data: Any = task.data
    examples = len(data.train) + (0 if isinstance(data.test, int) else len(data.test))  # a number: a part of `train`
    return int(FLOAT * examples * task.readout * template.width)


@dataclass(frozen=True, eq=False, kw_only=True)
class FeatureTask(Task):
    """A task whose inputs are features (n, read-out positions, width), other ones for every seed."""

    of_seeds: dict[int, Finite]

    def split(self, seed: int) -> FiniteSplit:
        return FiniteSplit(self.of_seeds[seed], seed)


class OutputLayer(nn.Module):
    """The output layer of a transfer model by itself: features (batch, read-out positions, width) -> logits."""

    noise = None

    def __init__(self, template: Template) -> None:
        super().__init__()
        self.output_layer = nn.Linear(template.width, template.task.output_width)
        self.classes = template.task.classes

    def forward(self, features: Tensor, lengths: Tensor | None = None) -> Tensor:
        logits: Tensor = self.output_layer(features)
        return logits.reshape(len(logits), -1, self.classes)

    def drop_with(self, masks: Sequence[Tensor], noise: Tensor | None = None) -> None:
        """Nothing is dropped out here."""

    def set_compute_type(self, compute_type: torch.dtype) -> None:
        """The output layer is float32 in every arm."""


def fleet(
    task: Task,
    template: Template,
    recipe: Recipe,
    rates: Sequence[float],
    seeds: Sequence[int],
    device: torch.device,
    compiled: bool = False,
) -> Fleet:
    """The fleet that trains on cached features where `constant` holds, else the ordinary one: equal up to rounding."""
    if not constant(task, template, recipe):
        made = Fleet(task, template, recipe, rates, seeds, device, compiled)
        if recipe.probe is not None:
            start_from_probe(made, recipe.probe)
        return made
    of_seeds = features_of(Fleet(task, template, recipe, [1.0], seeds[:1], device), seeds)
    changed = {
        "encode": lambda features, generator=None: features,
        "width": template.width,
        "vocabulary": None,
        "by_length": False,
    }
    kept = {each.name: getattr(task, each.name) for each in fields(task) if each.init}
    features = FeatureTask(**{**kept, **changed, "tokens": task.readout}, of_seeds=of_seeds)
    head: Any = copy(template)
    head.task, head.module, head.initialise = features, OutputLayer(template), template.initialise
    head.shapes = {name: template.shapes[name] for name in template.trainable}
    kind = Probes if recipe.solver == "logistic" else Fleet
    return kind(features, head, recipe, rates, seeds, device)


def features_of(fleet: Fleet, seeds: Sequence[int]) -> dict[int, Finite]:
    """By seed, the data of a fleet with features of its model as it starts in the place of inputs: computed once where
    no seed draws what makes them, and then kept with the task, since every arm starts from the same ones."""
    task, template = fleet.task, fleet.template
    drawn = [template.initialise(seed) for seed in (seeds[0], seeds[0] + 1)]
    below = [name for name, group in template.groups.items() if group not in ("output", ADAPTER)]  # adapters add 0
    zeros = template.adapters is None or template.adapters.zero == "B"
    key = (template.backbone, repr(template.options), template.init, template.weights, fleet.compute_type, fleet.device)
    alike = zeros and all(drawn[0][name] is drawn[1][name] for name in below)  # pretrained tensors are one object
    if alike and key not in task.features:
        task.features[key] = cached(fleet, drawn[0])
    return {seed: task.features[key] if alike else cached(fleet, template.initialise(seed)) for seed in seeds}


def cached(fleet: Fleet, weights: dict[str, Tensor]) -> Finite:
    """The data of a fleet, features of a model with these weights in the place of inputs."""
    data: Any = fleet.task.data
    weights = {name: value.to(fleet.device, fleet._kind(name)) for name, value in weights.items()}
    size, layer = max(1, TOKENS_AT_ONCE // fleet.task.tokens), fleet.module.output_layer

    def of(examples: Examples) -> Examples:
        order = torch.arange(len(examples))
        if fleet.task.by_length and examples.lengths is not None:  # like lengths pass together, and are cut
            order = examples.lengths.argsort(stable=True)
        # The output layer keeps the module's own values: what it computes is not looked at.
        features = observed(fleet, weights, examples[order], size, layer, lambda _, inputs, output: inputs[0])
        return Examples(features[order.argsort()], examples.targets.to(fleet.device))

    return Finite.each(data, of)


class Probes(Fleet):
    """A fleet whose runs are probes: their rates are strengths, and their parameters the optimum from the start."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        splits: Any = self.splits
        for row, head in enumerate(probes_of(splits, self.task.classes, self.rates)):
            self.parameters[row] = self._row(head).to(self.device)

    def step(self, step: int) -> Tensor:
        """Nothing is left to train."""
        return self.parameters.new_zeros(len(self.active.row_numbers))


def start_from_probe(fleet: Fleet, strength: float) -> None:
    """The output layer of every run starts from its seed's probe: on features of the model as it starts, so that only
    what lies below differs from the probe."""
    splits = [FiniteSplit(data, seed) for seed, data in features_of(fleet, fleet.seeds).items()]
    heads = probes_of(splits, fleet.task.classes, [strength])
    for number, (seed, head) in enumerate(zip(fleet.seeds, heads, strict=True)):
        weights = {name: value.to(fleet.device) for name, value in fleet.template.initialise(seed).items()}
        of_seed = slice(number * len(fleet.rates), (number + 1) * len(fleet.rates))
        fleet.parameters[of_seed] = fleet._row(weights | head).to(fleet.device)


def probes_of(splits: Sequence[FiniteSplit], classes: int, strengths: Sequence[float]) -> list[dict[str, Tensor]]:
    """The output layers of probes, of every seed at each strength: as many at a time as torch has threads.

    A fit has one thread, so that its rounding does not depend on their number; and two threads of one fit wait for each
    other by spinning, which on a busy machine took 22 processor seconds in the place of 2.
    """

    def fitted(each: tuple[FiniteSplit, float]) -> dict[str, Tensor]:
        split, strength = each
        return probe_of(split.source[split.rows], classes, strength)

    with threadpool_limits(1, "blas"), ThreadPoolExecutor(torch.get_num_threads()) as pool:
        return list(pool.map(fitted, product(splits, strengths)))


def probe_of(train: Examples, classes: int, strength: float) -> dict[str, Tensor]:
    """The output layer of a probe on features (n, 1, width): multinomial logistic regression on standardised features
    with scikit-learn's C = `strength`, the standardisation folded into its weights.

    A feature that varies by less than float32 can tell beside the widest one is left as it is, and so has next to no
    weight. MiniLM has three, of 1e-9 and below: standardised, their weights are 1e30, and the first gradient of
    whatever trains below the head overflows."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler()
    features = train.inputs[:, 0].double().cpu().numpy()
    spread = scaler.fit(features).scale_
    spread[spread < np.finfo(np.float32).eps * spread.max()] = 1.0
    x = scaler.transform(features)
    y = train.targets[:, 0].cpu().numpy()
    weight, bias = torch.zeros(classes, x.shape[1], dtype=torch.float64), torch.full((classes,), NEVER).double()
    seen = np.unique(y)  # a seed may hold out all examples of a rare class: the probe never names it
    bias[seen] = 0.0
    if len(seen) > 1:
        fitted = LogisticRegression(C=strength, max_iter=MOST_ITERATIONS).fit(x, y)
        found, start = torch.from_numpy(fitted.coef_), torch.from_numpy(fitted.intercept_)
        if len(seen) == 2:  # one row, of the second class against the first
            found, start = torch.cat([-found, found]) / 2, torch.cat([-start, start]) / 2
        weight[seen], bias[seen] = found, start
    weight = weight / torch.from_numpy(scaler.scale_)
    bias = bias - weight @ torch.from_numpy(scaler.mean_)
    return {"output_layer.weight": weight.float(), "output_layer.bias": bias.float()}


def check_probe(task: Task) -> None:
    """SpecError for a task whose examples a probe cannot have: a stream, several predictions, a class that no training
    example has."""
    if not isinstance(task.data, Finite) or task.predictions != 1:
        what = "draws new examples at every step" if not isinstance(task.data, Finite) else "has several predictions"
        raise SpecError(f"a probe needs examples that stay, each of one class; task {task.name!r} {what}")
    lacking = {*range(task.classes)} - {*task.data.train.targets[:, 0].tolist()}
    if lacking:
        raise SpecError(
            f"a probe needs training examples of every class; task {task.name!r} has none of {min(lacking)}"
        )
