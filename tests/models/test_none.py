"""No backbone: the mean over the real tokens, against plain loops; its groups, its fleet, what is refused."""

import torch
from torch.func import functional_call
from torch.nn.functional import linear

import fpt.models
import fpt.tasks
from fpt.training import Recipe
from fpt.training.fleet import Fleet

CPU = torch.device("cpu")


def logits(template, weights, examples) -> torch.Tensor:
    template.module.drop_with([])
    with torch.no_grad():
        return functional_call(template.module, weights, (template.task.encode(examples.inputs), examples.lengths))


def test_the_output_layer_sees_the_mean_token(digits):
    template = fpt.models.build(digits, "none", "random")
    weights, examples = template.initialise(0), digits.split(0).validation[:5]
    assert weights["input_layer.weight"].shape == (128, 4)
    mean = torch.stack([digits.encode(examples.inputs)[:, token] for token in range(16)]).mean(0)
    hidden = linear(mean, weights["input_layer.weight"], weights["input_layer.bias"])
    expected = linear(hidden, weights["output_layer.weight"], weights["output_layer.bias"])
    torch.testing.assert_close(logits(template, weights, examples)[:, 0], expected, rtol=1e-5, atol=1e-5)


def test_padding_has_no_part_in_the_mean(listops):
    template = fpt.models.build(listops, "none", "random", width=32)
    weights, examples = template.initialise(0), listops.split(0).validation[:16]
    actual = logits(template, weights, examples)
    assert len(set(examples.lengths.tolist())) > 3
    for row, length, found in zip(examples.inputs, examples.lengths.tolist(), actual[:, 0], strict=True):
        hidden = sum(weights["input_layer.weight"][symbol] for symbol in row[:length].long()) / length
        expected = linear(hidden, weights["output_layer.weight"], weights["output_layer.bias"])
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    other = examples.inputs.clone()
    other[torch.arange(listops.tokens) >= examples.lengths[:, None]] = 3
    padded = logits(template, weights, type(examples)(other, examples.targets, examples.lengths))
    torch.testing.assert_close(padded, actual, rtol=0, atol=1e-6)


def test_padding_that_is_attended_to_is_in_the_mean(tmp_path):
    task = fpt.tasks.load("listops", tmp_path, "released", train=30, heldout=10)
    template = fpt.models.build(task, "none", "random", width=8)
    weights, examples = template.initialise(0), task.split(0).validation[:2]
    hidden = weights["input_layer.weight"][task.encode(examples.inputs)].mean(1)
    expected = linear(hidden, weights["output_layer.weight"], weights["output_layer.bias"])
    torch.testing.assert_close(logits(template, weights, examples)[:, 0], expected, rtol=1e-4, atol=1e-5)


def test_several_read_out_positions_get_the_same_mean():
    task = fpt.tasks.load("bit-xor")
    template = fpt.models.build(task, "none", "random")
    found = logits(template, template.initialise(0), task.split(0).validation[:4])
    assert found.shape == (4, 5, 2)
    assert all(torch.equal(found[:, place], found[:, 0]) for place in range(5))


def test_the_order_of_the_tokens_does_not_matter(digits):
    template, shuffled = (fpt.models.build(task, "none", "random") for task in (digits, digits.shuffled()))
    weights, examples = template.initialise(0), digits.split(0).validation[:9]
    same = logits(shuffled, weights, examples)
    torch.testing.assert_close(logits(template, weights, examples), same, rtol=0, atol=1e-5)


def test_it_has_an_input_and_an_output_layer_and_nothing_else(digits):
    template = fpt.models.build(digits, "none", "random", "all")
    assert fpt.models.groups_of("none") == template.trainable_groups == ("input", "output")
    report = template.report()
    assert report["trainable"].to_dict() == {"input": 5 * 128, "output": 129 * 10}
    assert report[["frozen", "unused"]].to_numpy().sum() == 0
    arms = [fpt.models.build(digits, "none", "random", policy) for policy in ("fpt", "all")]
    assert arms[0].trainable == arms[1].trainable


def test_dropout_is_that_of_the_input_alone(digits):
    template = fpt.models.build(digits, "none", "random")
    batch = digits.split(0).batch(0, 3)
    shapes = template.module.dropout_shapes(digits.encode(batch.inputs), batch.lengths)
    assert shapes == [torch.Size([3, 16, 128])]
    first = [
        Fleet(digits, template, Recipe(steps=1, dropout=rate, compute_type="float32"), [1e-3], [0], CPU).step(1)
        for rate in (0.0, 0.5)
    ]
    assert first[0].isfinite()
    assert first[0] != first[1]
