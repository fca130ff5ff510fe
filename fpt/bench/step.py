"""What one training step takes, counted and not timed: what trains, memory, and FLOP. Weights are not looked at."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fpt import models
from fpt.sweeps.spec import SweepSpec

if TYPE_CHECKING:
    from fpt.models.template import Template
    from fpt.training.recipe import Recipe


@dataclass(frozen=True)
class StepCost:
    """One step of one run. A multiplication and its addition are two FLOP; only matrix products are counted, and the
    product with every one of the task's tokens. Memory is in bytes, as predicted before a fleet starts."""

    trainable: dict[str, int]  # parameters by group
    frozen: dict[str, int]
    forward: int  # FLOP
    backward: int
    run_bytes: int  # of every run: trainable parameters, their gradients and moments, activations
    seed_bytes: int  # that the runs of one seed share: dropout masks, frozen parameters that it draws, cached features
    once_bytes: int  # that all runs share: frozen parameters that are the same for every seed

    @property
    def flop(self) -> int:
        """Of the whole step."""
        return self.forward + self.backward


def step_cost(template: "Template", recipe: "Recipe") -> StepCost:
    """The cost of a step of `template`, whose own values may lie on any device, or on none ("meta")."""
    from fpt.training import memory

    counts = template.report()
    forward, backward = _flop(template, recipe)
    return StepCost(
        trainable={str(group): int(count) for group, count in counts["trainable"].items() if count},
        frozen={str(group): int(count) for group, count in counts["frozen"].items() if count},
        forward=forward,
        backward=backward,
        run_bytes=memory.run_bytes(template, recipe),
        seed_bytes=memory.seed_bytes(template, recipe),
        once_bytes=memory.once_bytes(template),
    )


def sweep_cost(spec: SweepSpec) -> StepCost:
    """The cost of a step of a sweep's runs, for which no weights are needed.

    Raises SpecError for a rank above a matrix, and DataError where the task's data cannot be had.
    """
    import torch

    task = models.load_task(spec.task, spec.means.backbone, None, spec.variant, **spec.task_options)
    with torch.device("meta"):  # counted without being allocated
        template = models.build(task, spec.means.backbone, "random", spec.trainable, **spec.model_options)
    template.init = spec.init  # only how frozen parameters are held depends on it
    return step_cost(template, spec.recipe)


def _flop(template: "Template", recipe: "Recipe") -> tuple[int, int]:
    """FLOP of the forward and of the backward pass, by torch's own counter on tensors without values.

    Where features are computed once, a step is that of the output layer.
    """
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.func import functional_call
    from torch.utils.flop_counter import FlopCounterMode

    from fpt.training import features

    task, size = template.task, recipe.batch_size
    once = features.constant(task, template, recipe)
    module = features.OutputLayer(template) if once else template.module
    parts = dict(module.named_parameters()) | dict(module.named_buffers())
    module.drop_with([])
    # Not on "meta": libraries look at values there, and know that those of fake tensors cannot be looked at.
    with FakeTensorMode(allow_non_fake_inputs=True), torch.device("cpu"), torch.enable_grad():
        values = {name: torch.empty(part.shape, dtype=part.dtype) for name, part in parts.items()}
        trained = [values[name].requires_grad_() for name in template.trainable]
        if once:
            inputs = torch.empty(size, task.readout, template.width)
        elif task.vocabulary:
            inputs = torch.empty(size, task.tokens, dtype=torch.int64)
        else:
            inputs = torch.empty(size, task.tokens, task.width or 1)
        lengths = torch.empty(size, dtype=torch.int64)
        with FlopCounterMode(display=False) as forward:
            logits = functional_call(module, values, (inputs, lengths))
        with FlopCounterMode(display=False) as backward:
            torch.autograd.grad(logits, trained, torch.empty_like(logits), allow_unused=True)
    return forward.get_total_flops(), backward.get_total_flops()
