"""When a fleet's forward and backward pass are compiled (torch.compile), and whether this machine can.

Compiled, the passes over memory between two matrix products (number types, GELU, masks, sums) become one: 1.2 to 2.3
times as fast on a CPU. Rounding differs from the uncompiled step's, as between two machines.
"""

import functools
import os
import warnings

import torch

from fpt.models.template import Template
from fpt.training import features
from fpt.training.recipe import Recipe

PAYS = 1e13  # multiplications of the forward passes, some ten minutes of one core; compiling takes one to two


def pays(template: Template, recipe: Recipe, runs: int, device: torch.device) -> bool:
    """Whether a fleet of so many runs computes for so long that compiling it first saves time, and can be compiled.

    On a CPU alone: nothing was measured on a GPU. Not on cached features: there, little is left to compute. Not with
    recurrent layers: their loops over time would be unrolled, and compiling take longer than training.
    """
    if "recurrent" in template.groups.values():
        return False
    if device.type != "cpu" or features.constant(template.task, template, recipe):
        return False
    weights = sum(shape.numel() for shape in template.shapes.values())
    products = recipe.steps * runs * recipe.batch_size * template.task.tokens * weights
    return products >= PAYS and possible()


@functools.cache
def possible() -> bool:
    """Whether a small function compiles: it takes a C++ compiler and Python's headers."""
    if os.environ.get("TORCH_COMPILE_DISABLE") == "1":  # torch's own switch
        return False
    try:
        torch.compile(lambda x: x.sin() + 1)(torch.ones(8))
    except (RuntimeError, OSError) as error:
        warnings.warn(f"fleets are not compiled, which would be faster: {str(error).splitlines()[0]}", stacklevel=2)
        return False
    return True
