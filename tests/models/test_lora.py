"""LoRA's adapters: peft's numbers, what trains, what is kept, what is refused."""

import peft
import pytest
import torch
from safetensors.torch import load_file
from small_models import save_model, short_recipe
from torch import nn

import fpt
from fpt.errors import SpecError
from fpt.models import lora
from fpt.sweeps.spec import resolve
from fpt.training.fleet import Fleet

pytestmark = pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing:FutureWarning")  # peft's own call
CPU = torch.device("cpu")
RATES, SEEDS = [1e-3, 1e-2], [0, 1]
TARGETS = {
    "small-gpt2": {"attention": ["c_attn", "attn.c_proj"], "feed_forward": ["c_fc", "mlp.c_proj"]},
    "small-library": {
        "attention": ["q_proj", "k_proj", "v_proj", "o_proj"],
        "feed_forward": ["gate_proj", "up_proj", "down_proj"],
    },
}


def with_peft(library, backbone, rank, alpha, targets):
    """The library's model with adapters of peft on the targets."""
    groups = TARGETS[backbone]
    modules = [*groups["attention"], *groups["feed_forward"]] if targets == "both" else groups[targets]
    config = peft.LoraConfig(
        r=rank, lora_alpha=alpha, lora_dropout=0.0, target_modules=modules, fan_in_fan_out=backbone == "small-gpt2"
    )
    return peft.get_peft_model(library, config)


class Reference(nn.Module):
    """Input layer, peft's model, output layer at the last token: what a reader would write."""

    def __init__(self, backbone, start):
        super().__init__()
        self.backbone = backbone
        self.input_layer = nn.Linear(*start["input_layer.weight"].shape[::-1])
        self.output_layer = nn.Linear(*start["output_layer.weight"].shape[::-1])
        parts = {".lora_A.default.weight": lora.A, ".lora_B.default.weight": lora.B}
        self.ours = {}
        for name, parameter in self.named_parameters():
            ending = next((ending for ending in parts if name.endswith(ending)), None)
            if ending:
                inside = name.removeprefix("backbone.base_model.model.").removesuffix(ending)
                self.ours[f"backbone.{inside}{parts[ending]}"] = parameter
            elif not name.startswith("backbone."):
                self.ours[name] = parameter
        with torch.no_grad():
            for name, parameter in self.ours.items():
                parameter.copy_(start[name])

    def forward(self, tokens):
        hidden = self.backbone(inputs_embeds=self.input_layer(tokens)).last_hidden_state
        return self.output_layer(hidden[:, -1])


@pytest.mark.parametrize("targets", ["attention", "feed_forward", "both"])
@pytest.mark.parametrize("backbone", list(TARGETS))
def test_three_steps_of_adam_are_those_of_peft(backbone, targets, digits, small_backbones):
    template = fpt.models.build(digits, backbone, arm="lora-pretrained", rank=4, alpha=16, targets=targets)
    start = template.initialise(1)
    reference = Reference(with_peft(small_backbones[backbone].eval(), backbone, 4, 16, targets), start)
    assert set(reference.ours) == set(template.trainable)
    fleet = Fleet(digits, template, short_recipe(clip=None), [1e-2], [1], CPU)
    optimizer = torch.optim.Adam(reference.ours.values(), lr=1e-2)
    for step in range(1, 4):
        batch = fleet.batch(step - 1)
        logits = reference(digits.encode(batch.inputs[0]))
        ours = fleet.logits(fleet.layout.cast(fleet.parameters), fleet.encode(batch.inputs), None, fleet.all_runs)
        torch.testing.assert_close(ours[0, 0, :, 0], logits, rtol=1e-4, atol=1e-5)
        loss = nn.functional.cross_entropy(logits, batch.targets[0, :, 0])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        fleet.step(step)
    flat = torch.cat([reference.ours[name].detach().flatten() for name in fleet.layout.names])
    torch.testing.assert_close(fleet.parameters[0], flat, rtol=1e-3, atol=1e-5)


def test_a_starts_within_the_fan_in_and_follows_the_seed(digits, small_backbones):
    template = fpt.models.build(digits, "small-gpt2", arm="lora-pretrained", rank=16)
    one, again, two = (template.initialise(seed) for seed in (0, 0, 1))
    for name in template.trainable:
        if name.endswith(lora.A):
            bound = one[name].shape[1] ** -0.5
            assert 0.8 * bound < one[name].abs().max() <= bound
            assert torch.equal(one[name], again[name])
            assert not torch.equal(one[name], two[name])


def test_a_rank_above_that_of_a_matrix_is_refused(digits, small_backbones):
    with pytest.raises(SpecError, match=r"rank = 17: .*c_attn.*at most 16"):
        fpt.models.build(digits, "small-gpt2", arm="lora-pretrained", rank=17)


def test_experts_take_no_adapters(digits, tmp_path):
    save_model(
        tmp_path, "mixtral", hidden_size=16, intermediate_size=16, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, num_local_experts=2, vocab_size=11, sliding_window=None,
    )  # fmt: skip
    name = f"hub:{tmp_path}"
    with pytest.raises(SpecError, match="experts"):
        fpt.models.build(digits, name, arm="lora-pretrained")
    alone = fpt.models.build(digits, name, arm="lora-pretrained", targets="attention")
    assert alone.report().loc["adapter", "trainable"] > 0


FIELDS = {"task": "digits", "learning_rates": [1e-3], "seeds": [0]}


def test_a_rank_names_sweeps_with_adapters_and_others_refuse_it():
    plain, default = ({**FIELDS, "arm": "frozen-pretrained", **rank} for rank in ({}, {"rank": 8}))
    assert resolve(plain).hash == resolve(default).hash
    four, eight = (resolve({**FIELDS, "arm": "lora-pretrained", "rank": rank}) for rank in (4, 8))
    assert four.hash != eight.hash
    assert four.arm == "lora-pretrained"


@pytest.mark.parametrize(("fields", "named"), [({"rank": 4}, "rank = 4"), ({"measures": ["adapter"]}, "adapter")])
def test_what_is_of_adapters_is_refused_of_an_arm_without(fields, named):
    with pytest.raises(SpecError, match=named):
        fpt.sweeps.prepare(resolve({**FIELDS, "arm": "frozen-pretrained", **fields}))


def test_a_study_gives_fields_of_adapters_to_arms_that_have_them(tmp_path):
    def sweeps(default, *entries):
        fields = f"{default}steps: 2, learning_rates: [1e-3], seeds: [0], compute_type: float32"
        lines = [f"  - {{task: digits, {entry}}}\n" for entry in entries]
        (tmp_path / "study.yaml").write_text(f"defaults: {{{fields}}}\nsweeps:\n{''.join(lines)}")
        return fpt.sweeps.load_study(tmp_path).sweeps

    for default, entry in (("rank: 2, ", ""), ("", "rank: 2, ")):
        with pytest.raises(SpecError, match="rank = 2: arm frozen-pretrained has no adapters"):
            sweeps(default, f"{entry}arm: [frozen-pretrained, lora-pretrained]")
    found = sweeps("", "arm: frozen-pretrained", "rank: [1, 2], alpha: [8, 32], arm: lora-pretrained")
    assert [(spec.rank, spec.alpha) for spec in found[1:]] == [(1, 8), (1, 32), (2, 8), (2, 32)]
    with pytest.raises(SpecError, match="head_rate"):
        sweeps("head_rate: 1e-3, ", "arm: [output-pretrained, frozen-pretrained]")


def test_peft_loads_the_adapters_that_a_sweep_keeps(tmp_path, small_backbones):
    recipe = {name: value for name, value in short_recipe(steps=4, clip=1.0).model_dump().items() if value is not None}
    kept_of = {"arm": "lora-pretrained", "rank": 2, "measures": ["adapter", "weights"], "learning_rates": [3e-2]}
    spec = resolve({**FIELDS, "backbone": "small-gpt2", **recipe, **kept_of})
    folder = tmp_path / spec.folder_name
    fpt.sweeps.run_sweep(spec, folder)
    loaded = peft.PeftModel.from_pretrained(small_backbones["small-gpt2"], str(folder)).eval()
    plain, merged = (small_backbones["small-gpt2"].eval() for _ in range(2))
    kept = load_file(folder / "weights.safetensors")
    assert not any(lora.is_adapter(name) for name in kept)
    state = merged.state_dict()
    state |= {name: tensor for full, tensor in kept.items() if (name := full.removeprefix("backbone.")) in state
              if tensor.shape == state[name].shape}  # fmt: skip
    merged.load_state_dict(state)
    x = torch.randn(3, 8, merged.config.hidden_size, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        adapted, whole, before = (model(inputs_embeds=x).last_hidden_state for model in (loaded, merged, plain))
    torch.testing.assert_close(adapted, whole, rtol=1e-4, atol=1e-5)
    assert not torch.allclose(adapted, before, rtol=1e-3)


def test_either_matrix_may_start_from_zeros(digits):
    for zero, name in (("A", "adapter_a"), ("B", "adapter_b")):
        template = fpt.models.build(digits, "tiny-lm", arm="lora-pretrained", zero=zero)
        start = {key: value for key, value in template.initialise(0).items() if ".adapter_" in key}
        assert {key.endswith(name) for key, value in start.items() if not value.any()} == {True}
        assert sum(key.endswith(name) for key in start) == sum(not value.any() for value in start.values())
