"""The transfer model on real weights, what is read out, and its parameter counts against the papers' arithmetic."""

import pytest
import torch
from torch.func import functional_call
from transformers import AutoModel

import fpt.models
import fpt.tasks
from fpt.models.layers import read_out
from fpt.models.weights import fetch


@pytest.mark.parametrize("backbone", ["tiny-lm", "minilm"])
def test_logits_equal_the_librarys_on_the_real_weights(backbone, digits):
    template = fpt.models.build(digits, backbone, "pretrained", "fpt")
    weights = template.initialise(0)
    library = AutoModel.from_pretrained(fetch(backbone), dtype=torch.float32).eval()
    batch = digits.split(0).batch(0, 4)
    embedded = torch.nn.functional.linear(
        digits.encode(batch.inputs), weights["input_layer.weight"], weights["input_layer.bias"]
    )
    with torch.no_grad():
        hidden = library(inputs_embeds=embedded).last_hidden_state[:, -1]
        actual = functional_call(template.module.eval(), weights, (digits.encode(batch.inputs), None))
    expected = torch.nn.functional.linear(hidden, weights["output_layer.weight"], weights["output_layer.bias"])
    torch.testing.assert_close(actual[:, 0], expected, rtol=1e-4, atol=1e-4)


def test_read_out_counts_from_the_last_real_token():
    hidden = torch.arange(2 * 5).float().view(2, 5, 1)
    assert read_out(hidden, 2, None)[:, :, 0].tolist() == [[3, 4], [8, 9]]
    assert read_out(hidden, 2, torch.tensor([3, 5]))[:, :, 0].tolist() == [[1, 2], [8, 9]]


# GPT-2 base: (input, output, layer norm, positions used, effective total, total with the whole position table).
# The arithmetic of Lu et al. 2021, section 2.2 and appendix B, corrected for biases, ln_f and the released shapes.
COUNTS = {
    ("bit-memory", "paper"): (39_168, 76_900, 38_400, 92_160, 246_628, 940_900),
    ("bit-xor", "paper"): (1_536, 1_538, 38_400, 7_680, 49_154, 827_906),
    ("listops", "released"): (11_520, 7_690, 38_400, 393_216, 450_826, 844_042),
    ("listops", "paper"): (12_288, 7_690, 38_400, 1_536_000, 1_594_378, 1_594_378),
    ("mnist", "released"): (13_056, 7_690, 38_400, 37_632, 96_778, 845_578),
    ("mnist", "paper"): (13_056, 7_690, 38_400, 49_152, 108_298, 845_578),
    ("cifar10", "paper"): (37_632, 7_690, 38_400, 49_152, 132_874, 870_154),
    ("cifar10", "gray16"): (13_056, 7_690, 38_400, 49_152, 108_298, 845_578),
    ("cifar10-lra", "paper"): (1_536, 7_690, 38_400, 786_432, 834_058, 834_058),
    ("homology", "paper"): (19_200, 918_955, 38_400, 786_432, 1_762_987, 1_762_987),
    ("homology", "released"): (23_040, 922_800, 38_400, 786_432, 1_770_672, 1_770_672),
}


@pytest.mark.parametrize(("name", "variant"), list(COUNTS))
def test_parameter_counts_of_gpt2(name, variant, shaped_task):
    task = shaped_task(name, variant)
    with torch.device("meta"):
        report = fpt.models.build(task, "gpt2", "random", "fpt").report()
    trainable = report["trainable"]
    row = [int(trainable[group]) for group in ("input", "output", "layer_norm", "positions")]
    spare = int(report["unused"].get("positions beyond the task's tokens", 0))
    assert (*row, sum(row), sum(row) + spare) == COUNTS[name, variant]
    assert int(report.loc["attention", "frozen"]) == 12 * 2_362_368
    assert int(report.loc["feed_forward", "frozen"]) == 12 * 4_722_432
    if task.tokens <= 1024:  # the printed total, with what the input layer replaces
        library = report.values.sum() - row[0] - row[1]
        assert library == 124_439_808
