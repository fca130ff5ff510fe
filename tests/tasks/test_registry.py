"""Names, variants and options: what `check` refuses, and what every task in the table delivers."""

import json
import re
from pathlib import Path
from typing import Any

import lra_files
import pytest
import torch

import fpt.tasks
from fpt.errors import SpecError
from fpt.tasks import TASKS, check_task, load

SMALL: dict[str, dict[str, Any]] = {"listops": {"train": 40, "heldout": 10}}
EVERY = [(name, variant) for name, entry in TASKS.items() for variant in entry.variants if not entry.path]


@pytest.mark.parametrize(
    ("name", "variant", "options", "message"),
    [
        ("digitz", "paper", {}, "unknown task 'digitz'.*Did you mean 'digits'.*mnist"),
        ("mnist", "relaesed", {}, "unknown variant of mnist 'relaesed'.*Did you mean 'released'.*paper"),
        ("bit-xor", "paper", {"lenght": 5}, "unknown option of bit-xor 'lenght'.*Did you mean 'length'"),
        ("bit-xor", "paper", {"length": "5"}, "option length is '5'.*must be int"),
        ("bit-xor", "paper", {"length": 0}, "option length is 0.*at least 1"),
        ("bit-memory", "paper", {"length": 10**5, "strings": 2}, "200,000 bits an example.*at most 100,000"),
        ("listops", "paper", {"train": 10**8}, "option train is 100000000.*at most 1,000,000"),
        ("banking77", "paper", {"pooling": "first"}, "unknown pooling 'first'.*last, mean"),
        ("bit-memory", "paper", {"patch": 3}, "patch 3 does not divide length 1000"),
        ("npz:nowhere.npz", "paper", {}, "no file nowhere.npz"),
        ("folder:.", "paper", {"size": 1025}, "option size is 1025.*at most 1,024"),
        ("folder:.", "paper", {"size": 30}, "patch 4 does not divide size 30"),
    ],
)
def test_what_does_not_exist_is_refused(name: Any, variant: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message) as caught:
        check_task(name, variant, options, source="study.yaml")
    assert "(study.yaml)" in str(caught.value)


@pytest.mark.parametrize(("name", "variant"), EVERY)
def test_every_task_keeps_its_promises(name: str, variant: str, made_intents: Path, tmp_path: Path) -> None:
    folder = tmp_path if name == "listops" else made_intents
    if variant.startswith("lra"):
        lra_files.write(folder, **SMALL[name])
    task = load(name, folder, variant, **SMALL.get(name, {}))
    assert (task.name, task.variant, task.title) == (name, variant, TASKS[name].title)
    assert TASKS[name].variants[0] == "paper"  # the default
    assert re.fullmatch(r"[A-Za-z0-9_-]+", name)  # it begins the name of a folder
    of_costs = TASKS[name].length(variant, task.options)  # in the mean, where batches are cut to their length
    assert of_costs is not None
    assert of_costs < task.tokens if task.by_length else of_costs == task.tokens
    assert (task.width is None) != (task.vocabulary is None)
    split, again, other = (task.split(seed) for seed in (0, 0, 1))
    assert torch.equal(split.test.inputs, again.test.inputs)
    assert torch.equal(split.test.inputs, other.test.inputs) == (task.card["test set"] == "official")
    assert not torch.equal(split.batch(0, 4).inputs, other.batch(0, 4).inputs)
    assert task.test_drawn_by_seed == task.card["test set"].startswith("drawn by the seed")
    assert task.test_size == task.card["test"] == len(split.test) == len(other.test)
    for batch in (split.batch(0, 4), split.validation[:5], split.test[:3]):
        assert batch.targets.shape == (len(batch), task.predictions)
        assert batch.targets.dtype == torch.int64
        assert 0 <= batch.targets.min() <= batch.targets.max() < task.classes
        assert not batch.inputs.is_floating_point()
        tokens = task.encode(batch.inputs)
        longest = batch.inputs.shape[1] if task.by_length else task.tokens  # batches are cut to their length
        assert tokens.shape == (len(batch), longest, *([task.width] if task.width else []))
        assert longest <= task.tokens
        assert tokens.dtype == (torch.float32 if task.width else torch.int64)
        assert task.width or 0 <= tokens.min() <= tokens.max() < (task.vocabulary or 0)
        assert (batch.lengths is not None) == task.mask_padding
    assert task.output_width == task.per_token * task.classes
    assert task.readout <= task.tokens
    json.dumps(task.card)
    assert "your own" not in (task.source, task.licence)  # the defaults
    assert load(name, folder, variant, **SMALL.get(name, {})).checksum == task.checksum


def test_the_data_folder_is_the_argument_or_fpt_data_or_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FPT_DATA", "/somewhere")
    assert fpt.tasks.data_folder() == Path("/somewhere")
    assert fpt.tasks.data_folder("here") == Path("here")
    monkeypatch.setenv("FPT_DATA", "~nosuchuser/x")  # no home to expand: a folder that is not there
    assert fpt.tasks.data_folder() == Path("~nosuchuser/x")
    monkeypatch.delenv("FPT_DATA")
    assert fpt.tasks.data_folder() == Path.home() / ".cache" / "fpt"
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    assert fpt.tasks.data_folder() == Path("/elsewhere/fpt")
