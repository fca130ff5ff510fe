"""No backbone: the mean over the real tokens, against plain loops, and where it drops out."""

import pytest
import torch
from torch.func import functional_call
from torch.nn.functional import linear

import fpt.models
import fpt.tasks
from fpt.training import Recipe
from fpt.training.fleet import Fleet

TASKS = {  # name, variant, options: of numbers, read at several tokens, with padding masked and attended to
    "numbers": ("digits", "paper", {}),
    "read five times": ("bit-xor", "paper", {}),
    "masked padding": ("listops-short", "paper", {"train": 60, "heldout": 20}),
    "padding attended to": ("listops", "released", {"train": 60, "heldout": 20}),
}


@pytest.mark.parametrize("kind", TASKS)
def test_the_output_layer_sees_the_mean_of_the_real_tokens_at_every_position(kind, tmp_path):
    name, variant, options = TASKS[kind]
    task = fpt.tasks.load(name, tmp_path, variant, **options)
    template = fpt.models.build(task, "none", "random", width=32)
    weights, examples = template.initialise(0), task.split(0).validation[:10]
    lengths = examples.lengths.tolist() if task.mask_padding else [task.tokens] * 10
    assert (len(set(lengths)) > 3) == task.mask_padding
    tokens, inputs = task.encode(examples.inputs), weights["input_layer.weight"]
    template.module.drop_with([])
    with torch.no_grad():
        found = functional_call(template.module, weights, (tokens, examples.lengths))
    for row, length, logits in zip(tokens, lengths, found, strict=True):
        embedded = [inputs[x] if task.vocabulary else inputs @ x + weights["input_layer.bias"] for x in row[:length]]
        expected = linear(sum(embedded) / length, weights["output_layer.weight"], weights["output_layer.bias"])
        torch.testing.assert_close(logits, expected.expand(task.readout, -1), rtol=1e-4, atol=1e-5)


def test_dropout_is_that_of_the_input_alone(digits):
    template = fpt.models.build(digits, "none", "random")
    batch = digits.split(0).batch(0, 3)
    shapes = template.module.dropout_shapes(digits.encode(batch.inputs), batch.lengths)
    assert shapes == [torch.Size([3, 16, 128])]
    recipes = [Recipe(steps=1, dropout=rate, compute_type="float32") for rate in (0.0, 0.5)]
    first, dropped = (Fleet(digits, template, recipe, [1e-3], [0], torch.device("cpu")).step(1) for recipe in recipes)
    assert first.isfinite()
    assert first != dropped
