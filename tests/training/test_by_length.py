"""Texts in a model's own tokens, batches of like length: against the library's own model and optimizer, and run by run
against a plain loop."""

import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import own_tokenizer
import pandas as pd
import pytest
import torch
from plain_loop import plain_run
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import cross_entropy
from transformers import AutoModel, AutoTokenizer

import fpt.models
from fpt import files
from fpt.errors import SpecError, WeightsError
from fpt.models import tokens
from fpt.models.weights import packaged
from fpt.sweeps.checks import check_all
from fpt.sweeps.spec import resolve
from fpt.tasks.task import Task
from fpt.training import Recipe, compute, features, memory, train_fleet
from fpt.training.evaluate import by_example, order_of, passes
from fpt.training.fleet import Fleet, stack

CPU = torch.device("cpu")
HOW = {"steps": 3, "batch_size": 8, "clip": 1.0, "weight_decay": 0.01, "compute_type": "float32"}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    own_tokenizer.texts(120).to_csv("texts.csv", index=False)
    return tmp_path


def task_of(model_type: str, pooling: str = "mean", **sizes: Any) -> Task:
    """Texts of 5 to 20 tokens, read by the model's own tokenizer."""
    own_tokenizer.save(Path("model"), model_type, **sizes)
    task = fpt.models.load_task("csv:texts.csv", "hub:model", tokenizer="own")
    return replace(task, by_length=True, pooling=pooling)


SIZES: dict[str, dict[str, Any]] = {"llama": {"num_key_value_heads": 2}, "bert": {}}


def pooled(hidden: Tensor, lengths: Tensor, pooling: str) -> Tensor:
    """In the library's way: by the mask of attention."""
    mask = (torch.arange(hidden.shape[1]) < lengths[:, None]).float()
    if pooling == "mean":
        return (hidden * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)
    return hidden[torch.arange(len(hidden)), lengths - 1]


@pytest.mark.parametrize("pooling", ["mean", "last"])
@pytest.mark.parametrize("model_type", SIZES)
def test_three_steps_are_those_of_the_librarys_model_and_of_torchs_optimizer(place, model_type, pooling) -> None:
    """Everything trains, the table of embeddings too; matrices and tables decay, norms and biases do not."""
    task = task_of(model_type, pooling, **SIZES[model_type])
    template = fpt.models.build(task, "hub:model", "pretrained", "whole")
    fleet = Fleet(task, template, Recipe(**HOW, dropout=0.0), [1e-2], [3], CPU)
    start = template.initialise(3)
    library, head = AutoModel.from_pretrained("model").eval(), nn.Linear(template.width, task.classes)
    head.load_state_dict({name: start[f"output_layer.{name}"].clone() for name in ("weight", "bias")})
    named = {f"backbone.{name}": value for name, value in library.named_parameters()} | {
        f"output_layer.{name}": value for name, value in head.named_parameters()
    }
    named = {name: value for name, value in named.items() if name in template.shapes}
    kept = [name for name in named if template.groups[name] == "layer_norm" or named[name].dim() < 2]
    optimizer = torch.optim.AdamW(
        [{"params": [named[name] for name in kept], "weight_decay": 0.0},
         {"params": [value for name, value in named.items() if name not in kept], "weight_decay": 0.01}], lr=1e-2,
    )  # fmt: skip
    split = task.split(3)
    for step in range(3):
        batch = split.batch(step, 8)
        mask = (torch.arange(batch.inputs.shape[1]) < batch.lengths[:, None]).long()
        hidden = library(input_ids=batch.inputs, attention_mask=mask).last_hidden_state
        loss = cross_entropy(head(pooled(hidden, batch.lengths, pooling)), batch.targets[:, 0])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(list(named.values()), 1.0)
        optimizer.step()
        assert fleet.step(step + 1).item() == pytest.approx(loss.item(), rel=1e-4, abs=1e-5)
    assert set(fleet.layout.names) == set(named)
    for name, ours in fleet.layout.named(fleet.layout.cut(fleet.parameters[0])).items():
        theirs = named[name].detach()[: len(ours)]  # a table of positions is cut to the task
        if not name.endswith("key.bias"):  # softmax does not see it: its gradient is rounding, which Adam divides by
            torch.testing.assert_close(ours, theirs, rtol=2e-3, atol=2e-4)


@pytest.mark.parametrize("dropout", [0.0, 0.1])
@pytest.mark.parametrize("arm", ["whole-pretrained", "norms-pretrained", "lora-pretrained"])
def test_a_fleet_of_one_seed_is_its_runs_one_at_a_time(place, arm, dropout) -> None:
    """Dropout masks are of the seed, the step and the length, whatever the arm and the rate."""
    task = task_of("bert")
    template = fpt.models.build(task, "hub:model", arm=arm)
    recipe = Recipe(**HOW | {"steps": 6}, dropout=dropout)
    fleet = Fleet(task, template, recipe, [1e-3, 1e-2], [5], CPU)
    losses = torch.stack([fleet.step(step + 1) for step in range(6)])
    assert len({fleet.splits[0].batch(step, 8).inputs.shape[1] for step in range(6)}) > 1
    for row, rate in enumerate([1e-3, 1e-2]):
        _, alone = plain_run(task, template, recipe, rate, 5)
        assert losses[:, row].tolist() == pytest.approx(alone, rel=1e-4)


def test_seeds_whose_batches_differ_in_length_are_fleets_of_their_own(place) -> None:
    task = task_of("bert")
    template, recipe = fpt.models.build(task, "hub:model", arm="norms-pretrained"), Recipe(**HOW, evaluations=1)
    assert memory.split(template, recipe, [1e-3, 1e-2], [0, 1, 2], CPU) == [([1e-3, 1e-2], [seed]) for seed in range(3)]
    found = train_fleet(task, template, recipe, [1e-3, 1e-2], [0, 1])
    assert found.parts == [(2, 1), (2, 1)]
    alone = train_fleet(task, template, recipe, [1e-3, 1e-2], [1])
    of_one = found.runs[found.runs["seed"] == 1].reset_index(drop=True)
    assert of_one.equals(alone.runs)


def test_a_fleet_of_batches_that_are_cut_is_not_compiled_however_long_it_trains(place, monkeypatch) -> None:
    """Every length would be compiled anew."""
    monkeypatch.setattr(compute, "can_compile", lambda: True)
    cut = task_of("bert")
    for task, pays in ((cut, False), (replace(cut, by_length=False), True)):
        template = fpt.models.build(task, "hub:model", arm="norms-pretrained")
        assert compute.compiling_pays(template, Recipe(**HOW | {"steps": 10**9}), 100, CPU) is pays


def test_the_mean_is_over_real_tokens_alone(place) -> None:
    """However long the batch is padded."""
    task = task_of("llama", num_key_value_heads=2)
    template = fpt.models.build(task, "hub:model", arm="norms-pretrained")
    values, train = template.initialise(0), task.data.train
    data = train[train.lengths <= 8]
    whole = functional_call(template.module, values, (data.inputs, data.lengths))
    cut = data.cut()
    assert cut.inputs.shape[1] < data.inputs.shape[1]
    found = functional_call(template.module, values, (cut.inputs, cut.lengths))
    torch.testing.assert_close(found, whole, rtol=1e-4, atol=1e-5)


def test_the_norms_arm_trains_no_positions_and_whole_trains_the_table(place) -> None:
    task = task_of("bert")
    norms, full, whole = (
        fpt.models.build(task, "hub:model", arm=arm).trainable_groups
        for arm in ("norms-pretrained", "full", "whole-pretrained")
    )
    assert norms == ("output", "norm_weights")
    assert set(whole) - set(full) == {"token_table"}


def test_minilm_reads_texts_by_its_own_tokenizer_as_the_library_does(place) -> None:
    task = replace(fpt.models.load_task("csv:texts.csv", "minilm", tokenizer="own", tokens=64), pooling="mean")
    template = fpt.models.build(task, "minilm", arm="norms-pretrained")
    data, values = task.data.train[:12], template.initialise(0)
    library = AutoModel.from_pretrained(packaged(fpt.models.backbone("minilm"))).eval()
    mask = (torch.arange(task.tokens) < data.lengths[:, None]).long()
    with torch.no_grad():
        hidden = library(input_ids=data.inputs, attention_mask=mask).last_hidden_state
        expected = pooled(hidden, data.lengths, "mean") @ values["output_layer.weight"].T + values["output_layer.bias"]
        found = functional_call(template.module, values, (task.encode(data.inputs), data.lengths))[:, 0]
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_another_tokenizer_under_the_name_of_a_backbone_is_refused(place, monkeypatch) -> None:
    monkeypatch.setattr(files, "known_sha256", lambda *_: "0" * 64)
    with pytest.raises(WeightsError, match="SHA-256"):
        fpt.models.load_task("csv:texts.csv", "minilm", tokenizer="own")


def test_a_backbone_without_a_tokenizer_is_refused_and_those_that_have_one_are_named(place) -> None:
    with pytest.raises(SpecError, match="minilm"):
        fpt.models.load_task("csv:texts.csv", "tiny-lm", tokenizer="own")


PROBE = {"solver": "logistic", "steps": 1, "evaluations": 1, "compute_type": "float32", "batch_size": 8}


def test_a_probe_is_scikit_learns_logistic_regression_on_the_librarys_features(place) -> None:
    """Accuracies by strength and seed; strengths lie where other arms have their rates."""
    task = task_of("llama", num_key_value_heads=2)
    template = fpt.models.build(task, "hub:model", arm="output-pretrained")
    strengths = [1e-2, 1.0]
    found = train_fleet(task, template, Recipe(**PROBE), strengths, [0, 1]).runs.set_index(["learning_rate", "seed"])
    library, data = AutoModel.from_pretrained("model").eval(), task.data.train
    mask = (torch.arange(data.inputs.shape[1]) < data.lengths[:, None]).long()
    with torch.no_grad():
        hidden = library(input_ids=data.inputs, attention_mask=mask).last_hidden_state
    x = pooled(hidden, data.lengths, "mean").double().numpy()
    for seed in (0, 1):
        split = task.split(seed)
        numbers = {row.tobytes(): number for number, row in enumerate(data.inputs.numpy())}
        test = [numbers[row.tobytes()] for row in split.test.inputs.numpy()]
        for strength in strengths:
            fitted = make_pipeline(StandardScaler(), LogisticRegression(C=strength, max_iter=2000))
            fitted.fit(x[split.rows], data.targets[split.rows, 0])
            right = fitted.predict(x[test]) == split.test.targets[:, 0].numpy()
            assert found.loc[(strength, seed), "test_accuracy"] == pytest.approx(right.mean(), abs=1 / len(right))


@pytest.mark.parametrize("arm", ["lora-pretrained", "whole-pretrained"])
def test_an_arm_that_starts_from_a_probe_predicts_what_the_probe_does(place, arm) -> None:
    """At a rate of nearly 0 it stays there, so that what differs later is the body's."""
    task = task_of("bert")
    head = fpt.models.build(task, "hub:model", arm="output-pretrained")
    probes = features.fleet(task, head, Recipe(**PROBE), [0.5], [0, 4], CPU)
    recipe = Recipe(**HOW | {"weight_decay": 0.0}, probe=0.5, dropout=0.0)
    template = fpt.models.build(task, "hub:model", arm=arm)
    fleets = {seed: features.fleet(task, template, recipe, [1e-12, 1e-2], [seed], CPU) for seed in (0, 4)}
    for number, (seed, fleet) in enumerate(fleets.items()):
        test = stack([fleet.splits[0].test])
        both = stack([split.test for split in probes.splits])
        ((_, wanted),) = passes(probes, probes.parameters, both, probes.subset(torch.tensor([[number]])))
        wanted = wanted[0, 0, order_of(fleet, test)]  # texts pass by length
        for step in (0, 1):
            if step:
                fleet.step(1)
            ((_, logits),) = passes(fleet, fleet.parameters, test, fleet.all_runs)
            torch.testing.assert_close(logits[0, 0], wanted, rtol=1e-3, atol=1e-4)
        assert not torch.allclose(logits[0, 1], wanted, rtol=1e-3, atol=1e-4), seed


def test_what_a_probe_cannot_be_is_refused_before_any_training(place) -> None:
    fields = {"task": "digits", "seeds": [0], "learning_rates": [1.0], "compute_type": "float32"}
    for change, words in (
        ({**PROBE, "arm": "lora-pretrained"}, "output layer alone"),
        ({**PROBE, "arm": "frozen-pretrained"}, "output layer alone"),
        ({**PROBE, "arm": "output-pretrained", "steps": 2}, "1 step"),
        ({**PROBE, "arm": "output-pretrained", "weight_decay": 0.1}, "weight_decay"),
        ({"arm": "output-pretrained", "probe": 1.0}, "something else must train"),
    ):
        with pytest.raises(SpecError, match=words):
            resolve(fields | change)
    bits = resolve(fields | {**PROBE, "task": "bit-xor", "arm": "output-random"})
    with pytest.raises(SpecError, match="'bit-xor' draws new examples"):
        check_all([bits], place)


def test_what_is_kept_of_each_text_is_in_the_order_of_the_texts(place) -> None:
    """Texts pass by length; losses and answers do not."""
    task = task_of("bert")
    template = fpt.models.build(task, "hub:model", arm="norms-pretrained")
    fleet = Fleet(task, template, Recipe(**HOW), [1e-3, 1e-2], [2], CPU)
    fleet.step(1)
    test = stack([fleet.splits[0].test])
    assert not torch.equal(test.lengths[0], test.lengths[0].sort().values)
    pieces = fleet.layout.cast(fleet.parameters)
    logits = fleet.logits(pieces, fleet.encode(test.inputs), test.lengths, fleet.all_runs)[0]
    losses, classes = by_example(fleet, fleet.parameters, test)
    assert torch.equal(classes, logits.argmax(-1))
    expected = torch.stack([cross_entropy(of_run[:, 0], test.targets[0, :, 0], reduction="none") for of_run in logits])
    torch.testing.assert_close(losses, expected, rtol=1e-4, atol=1e-5)


def test_finished_seeds_are_parts_that_another_machine_goes_on_from(place, monkeypatch) -> None:
    """The plan and the tables of finished seeds are enough; what is joined from them equals what is trained at once."""
    task = task_of("bert")
    template, recipe = fpt.models.build(task, "hub:model", arm="norms-pretrained"), Recipe(**HOW, evaluations=1)
    call = partial(train_fleet, task, template, recipe, [1e-3, 1e-2], [0, 1, 2], asked=["answers"])
    whole = call(checkpoints=Path("here"))
    Path("there").mkdir()
    for name in ("plan.json", *(f"{kind}-{part}.*" for part in (0, 1) for kind in ("finished", *whole.tables))):
        for file in Path("here").glob(name):
            shutil.copy(file, "there")
    trained: list[list[int]] = []
    made = features.fleet
    monkeypatch.setattr(features, "fleet", lambda *how: trained.append(how[4]) or made(*how))
    joined = call(checkpoints=Path("there"))
    assert trained == [[2]]
    for name, table in whole.tables.items():
        pd.testing.assert_frame_equal(joined.tables[name], table)


@pytest.mark.smollm2
def test_smollm2_reads_texts_by_the_tokenizer_inside_its_gguf_file(place, monkeypatch) -> None:
    task = replace(fpt.models.load_task("csv:texts.csv", "smollm2", tokenizer="own", tokens=32), by_length=True)
    file = packaged(fpt.models.backbone("smollm2"))
    library = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    texts = pd.read_csv("texts.csv")["text"]
    data = task.data.train
    expected = {tuple(ids) for ids in library(list(texts))["input_ids"]}
    assert {tuple(row[:length].tolist()) for row, length in zip(data.inputs, data.lengths, strict=True)} <= expected
    assert tokens.identity(fpt.models.backbone("smollm2")) == fpt.models.BACKBONES["smollm2"].gguf
    monkeypatch.setattr(files, "known_sha256", lambda *_: "0" * 64)
    with pytest.raises(WeightsError, match="altered"):
        fpt.models.load_task("csv:texts.csv", "smollm2", tokenizer="own")
