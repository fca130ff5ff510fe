"""One run, trained in a plain loop: what fleets are compared with."""

import torch
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from fpt.models.template import Template
from fpt.seeds import generator
from fpt.tasks.task import Task

BATCH = 8  # as in the recipe


def plain_losses(task: Task, template: Template, rate: float, seed: int, steps: int) -> list[float]:
    """One run as anybody would write it; what the model draws at every step comes from its documented stream."""
    weights = {name: value.clone() for name, value in template.initialise(seed).items()}
    trainable = [weights[name].requires_grad_() for name in template.trainable]
    optimizer, split, losses = torch.optim.Adam(trainable, lr=rate), task.split(seed), []
    noise = template.module.noise
    for step in range(steps):
        batch = split.batch(step, BATCH)
        drawn = noise and torch.randn(BATCH, *noise.shape, generator=generator(seed, "noise", step + 1))
        template.module.drop_with([], drawn)
        logits = functional_call(template.module, weights, (task.encode(batch.inputs), batch.lengths))
        loss = cross_entropy(logits.flatten(0, 1), batch.targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trainable, 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses
