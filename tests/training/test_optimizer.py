"""A rate of the head, a schedule and weight decay: against torch's own optimizer and schedulers; and what stays."""

from functools import partial

import pandas as pd
import pytest
import torch
from small_models import short_recipe
from torch.func import functional_call
from torch.nn.functional import cross_entropy
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, LRScheduler, SequentialLR

import fpt.models
import fpt.tasks
from fpt.errors import SpecError
from fpt.models.template import Template
from fpt.tasks.task import Task
from fpt.training import Recipe, features, train_fleet
from fpt.training.checkpoint import Folder
from fpt.training.fleet import LARGE, Fleet
from fpt.training.loop import Training

CPU = torch.device("cpu")
RATES, SEEDS = [1e-3, 3e-3], [0, 5]
STEPS, WARM = 20, 5
ALL = {"head_rate": 1e-2, "schedule": "cosine", "weight_decay": 0.5}
recipe = partial(short_recipe, steps=STEPS)


def schedules(optimizer: torch.optim.Optimizer, recipe: Recipe) -> list[LRScheduler]:
    """torch's schedulers, of an optimizer with one rate: `eta_min` is of all of its groups."""
    if recipe.schedule == "constant":
        return []
    warm = max(1, round(recipe.warmup * recipe.steps))
    rise = LinearLR(optimizer, 1 / warm, total_iters=warm - 1)
    fall = CosineAnnealingLR(optimizer, recipe.steps - warm, eta_min=0.1 * optimizer.param_groups[0]["initial_lr"])
    return [SequentialLR(optimizer, [rise, fall], [warm - 1])] if warm > 1 else [fall]


def by_hand(task: Task, template: Template, recipe: Recipe, rate: float, seed: int) -> dict[str, torch.Tensor]:
    """One run with torch.optim.AdamW, an optimizer for the head and one for the rest, each with two groups."""
    weights = {name: value.clone() for name, value in template.initialise(seed).items()}
    trained = {name: weights[name].requires_grad_() for name in template.trainable}
    optimizers, running = [], []
    for part in (True, False):
        own = {name: value for name, value in trained.items() if part == name.startswith(("input_", "output_"))}
        norms = {name for name in own if template.groups[name] == "layer_norm"}
        plain = [value for name, value in own.items() if name in norms or value.dim() < 2]
        decayed = [value for name, value in own.items() if name not in norms and value.dim() >= 2]
        groups = [{"params": plain, "weight_decay": 0.0}, {"params": decayed, "weight_decay": recipe.weight_decay}]
        optimizers.append(torch.optim.AdamW(groups, lr=(part and recipe.head_rate) or rate))
        running += schedules(optimizers[-1], recipe)
    split = task.split(seed)
    template.module.drop_with([])
    for step in range(recipe.steps):
        batch = split.batch(step, recipe.batch_size)
        logits = functional_call(template.module, weights, (task.encode(batch.inputs), batch.lengths))
        for value in trained.values():
            value.grad = None
        cross_entropy(logits.flatten(0, 1), batch.targets.flatten()).backward()
        torch.nn.utils.clip_grad_norm_(list(trained.values()), recipe.clip)
        for each in [*optimizers, *running]:
            each.step()
    return {name: value.detach() for name, value in trained.items()}


def trained(fleet: Fleet, steps: int = STEPS) -> Fleet:
    for step in range(1, steps + 1):
        fleet.step(step)
    return fleet


def tensors(fleet: Fleet, row: int) -> dict[str, torch.Tensor]:
    pieces = fleet.parameters[row].split([shape.numel() for shape in fleet.shapes])
    return {name: piece.view(shape) for name, piece, shape in zip(fleet.names, pieces, fleet.shapes, strict=True)}


@pytest.mark.parametrize(
    "changes",
    [{name: value} for name, value in ALL.items()] + [ALL, ALL | {"warmup": WARM / STEPS}],
    ids=lambda changes: "+".join(changes),
)
@pytest.mark.parametrize("arm", ["frozen-random", "unfrozen-pretrained"])
def test_every_run_is_that_of_torchs_own_optimizer_and_schedulers(arm, changes, digits, small_backbones):
    template = fpt.models.build(digits, "small-gpt2", arm=arm)
    fleet = trained(Fleet(digits, template, recipe(**changes), RATES, SEEDS, CPU))
    for row, (seed, rate) in enumerate((seed, rate) for seed in SEEDS for rate in RATES):
        expected = by_hand(digits, template, recipe(**changes), rate, seed)
        for name, value in tensors(fleet, row).items():
            if not name.endswith("c_attn.bias"):  # the key's has no gradient but rounding's
                assert (value - expected[name]).norm() <= 1e-5 * expected[name].norm(), (name, rate, seed)


def test_the_head_trains_at_its_own_rate_and_the_rest_at_that_of_the_grid(digits, small_backbones):
    """The first step of Adam is the rate itself, whatever the gradient."""
    template = fpt.models.build(digits, "small-gpt2", "random", "all")
    fleet = Fleet(digits, template, recipe(head_rate=1e-2), RATES, SEEDS, CPU)
    before = fleet.parameters.clone()
    fleet.step(1)
    moved = (fleet.parameters - before).abs().split([shape.numel() for shape in fleet.shapes], dim=1)
    for name, piece in zip(fleet.names, moved, strict=True):
        head = template.groups[name] in ("input", "output")
        for row, rate in enumerate(RATES * len(SEEDS)):
            assert piece[row].max().item() == pytest.approx(1e-2 if head else rate, rel=2e-2), name


def test_what_decays(digits, small_backbones):
    """Matrices and tables, and neither norms nor biases: seen where the gradients are zero."""
    template = fpt.models.build(digits, "small-gpt2", "random", "all")
    fleet = Fleet(digits, template, recipe(weight_decay=0.1), [1.0], [0], CPU)
    fleet.parameters.fill_(1.0)
    fleet._update([torch.zeros(1, size) for size in fleet.pieces], torch.zeros(1), 1)
    for name, value in tensors(fleet, 0).items():
        decays = value.dim() > 1 and template.groups[name] != "layer_norm"
        torch.testing.assert_close(value, torch.full_like(value, 0.9 if decays else 1.0), msg=name)
    assert template.groups["backbone.wpe.weight"] == "positions"


@pytest.mark.parametrize("policy", ["fpt", "all"])
def test_with_the_defaults_it_is_adam_with_one_group_bit_for_bit(policy, digits):
    """The layout and the numbers are those of the recipe before it had these fields."""
    template = fpt.models.build(digits, "tiny-lm", "random", policy, layers=1)
    fleet = Fleet(digits, template, recipe(dropout=0.1, warmup=0.25), [*RATES, 1e30], SEEDS, CPU)
    sizes = {name: template.shapes[name].numel() for name in template.trainable}
    assert fleet.names == sorted(template.trainable, key=lambda name: sizes[name] >= LARGE)
    large = [size for size in sizes.values() if size >= LARGE]
    assert fleet.pieces == [sum(sizes.values()) - sum(large), *large]
    assert all(len(optimizer.param_groups) == 1 for optimizer in fleet.optimizers)
    other = Fleet(digits, template, fleet.recipe, fleet.rates, SEEDS, CPU)
    for run, optimizer in enumerate(other.optimizers):
        (group,) = optimizer.param_groups
        adam = torch.optim.Adam(group["params"], lr=1.0, fused=True)
        adam.state.update(optimizer.state)
        adam.param_groups[0]["initial_lr"] = fleet.rates[run % 3]
        other.optimizers[run] = adam
    for each in (fleet, other):
        trained(each, 6)
    assert fleet.alive.tolist() == [True, True, False] * 2
    for name, tensor in fleet.state().items():
        assert torch.equal(tensor, other.state()[name]), name


def test_a_compiled_fleet_computes_the_same(digits, monkeypatch):
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="aot_eager"))  # traced, and interpreted
    template = fpt.models.build(digits, "tiny-lm", "random", "all", layers=1)
    plain, quick = (Fleet(digits, template, recipe(**ALL), RATES, SEEDS, CPU, flag) for flag in (False, True))
    for step in range(1, 4):
        torch.testing.assert_close(quick.step(step), plain.step(step), rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
def test_a_run_is_itself_in_every_fleet(kind, digits):
    template = fpt.models.build(digits, "tiny-lm", "random", "all", layers=1)
    how = recipe(**ALL, dropout=0.1, warmup=0.25, compute_type=kind)
    among, alone = (trained(Fleet(digits, template, how, *runs, CPU), 6) for runs in ((RATES, SEEDS), ([3e-3], [5])))
    rtol, atol = (1e-4, 1e-5) if kind == "float32" else (0.1, 1e-2)
    torch.testing.assert_close(among.parameters[3], alone.parameters[0], rtol=rtol, atol=atol)


def test_a_diverged_run_does_not_decay(digits, small_backbones):
    template = fpt.models.build(digits, "small-gpt2", "pretrained", "all")
    calm, wild = (Fleet(digits, template, recipe(**ALL), [1e-3, rate], [0], CPU) for rate in (1e-2, 1e30))
    trained(calm)
    for step in range(1, STEPS + 1):
        wild.step(step)
        if not wild.alive[1]:
            break
    kept = wild.parameters[1].clone()
    for later in range(step + 1, STEPS + 1):
        wild.step(later)
    assert wild.alive.tolist() == [True, False]
    assert torch.equal(wild.parameters[1], kept)
    assert kept.isfinite().all()
    assert torch.equal(wild.parameters[0], calm.parameters[0])


def test_what_was_killed_goes_on_to_the_same_bytes(digits, small_backbones, tmp_path, monkeypatch):
    template, how = fpt.models.build(digits, "small-gpt2", "random", "all"), recipe(**ALL, warmup=0.25, dropout=0.1)
    whole = train_fleet(digits, template, how, [*RATES, 1e30], SEEDS)
    monkeypatch.setattr(Folder, "due", lambda folder: True)
    real = Training.step

    def killed(training: Training) -> bool:
        if training.done == 13:
            raise KeyboardInterrupt
        return real(training)

    monkeypatch.setattr(Training, "step", killed)
    with pytest.raises(KeyboardInterrupt):
        train_fleet(digits, template, how, [*RATES, 1e30], SEEDS, checkpoints=tmp_path)
    monkeypatch.setattr(Training, "step", real)
    steps, one = [], Fleet.step
    monkeypatch.setattr(Fleet, "step", lambda fleet, step: (steps.append(step), one(fleet, step))[1])
    resumed = train_fleet(digits, template, how, [*RATES, 1e30], SEEDS, checkpoints=tmp_path)
    assert steps == list(range(14, STEPS + 1))
    for name in ("runs", "curves"):
        pd.testing.assert_frame_equal(getattr(resumed, name), getattr(whole, name), check_exact=True)
    assert set(whole.curves.dropna(subset="test_accuracy")["step"]) == {STEPS}, "the only budget"


def test_features_that_are_computed_once_give_the_same(digits):
    """Where the output layer alone trains: the fleet on features, and the ordinary one."""
    template = fpt.models.build(digits, "tiny-lm", "random", "output", layers=1)
    how = recipe(schedule="cosine", weight_decay=0.5)
    assert features.constant(digits, template, how)
    quick, plain = (trained(make(digits, template, how, RATES, SEEDS, CPU)) for make in (features.fleet, Fleet))
    torch.testing.assert_close(quick.parameters, plain.parameters, rtol=1e-4, atol=1e-5)


def test_a_rate_of_the_head_alone_is_refused_before_anything_is_written(digits, small_backbones, tmp_path):
    template = fpt.models.build(digits, "small-gpt2", "random", "output")
    with pytest.raises(SpecError, match=r"head_rate = 0\.01"):
        train_fleet(digits, template, recipe(head_rate=1e-2), RATES, SEEDS, checkpoints=tmp_path / "none")
    assert not (tmp_path / "none").exists()
