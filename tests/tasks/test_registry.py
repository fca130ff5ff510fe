"""Names, variants and options: what `check` refuses, and what every task in the table delivers."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import lra_files
import pytest
import torch

import fpt.tasks
from fpt.errors import SpecError
from fpt.tasks import OWN, TASKS, Entry, check, load
from fpt.tasks.bits import bit_xor
from fpt.tasks.task import Task

SMALL: dict[str, dict[str, Any]] = {"listops": {"train": 40, "heldout": 10}}
EVERY = [(name, variant) for name, entry in TASKS.items() for variant in entry.variants if name not in OWN.values()]


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
        ("bit-memory", "paper", {"patch": 3}, "patch 3 does not divide length 1000"),
        ("npz:nowhere.npz", "paper", {}, "no file nowhere.npz"),
    ],
)
def test_what_does_not_exist_is_refused(name: Any, variant: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        check(name, variant, options)
    with pytest.raises(SpecError, match=r"\(study.yaml\)"):
        check(name, variant, options, source="study.yaml")


@pytest.mark.parametrize(("name", "variant"), EVERY)
def test_every_task_keeps_its_promises(name: str, variant: str, fixtures: Path, tmp_path: Path) -> None:
    folder = tmp_path if name == "listops" else fixtures
    if variant.startswith("lra"):
        lra_files.write(folder, **SMALL[name])
    task = load(name, folder, variant, **SMALL.get(name, {}))
    assert (task.name, task.variant, task.title) == (name, variant, TASKS[name].title)
    assert TASKS[name].length(variant, task.options) == task.tokens
    assert (task.width is None) != (task.vocabulary is None)
    split = task.split(0)
    for batch in (split.batch(0, 4), split.validation[:5], split.test[:3]):
        assert batch.targets.shape == (len(batch), task.predictions)
        assert batch.targets.dtype == torch.int64
        assert 0 <= batch.targets.min() <= batch.targets.max() < task.classes
        assert not batch.inputs.is_floating_point()
        tokens = task.encode(batch.inputs)
        if task.width:
            assert tokens.shape == (len(batch), task.tokens, task.width)
            assert tokens.dtype == torch.float32
        else:
            assert tokens.shape == (len(batch), task.tokens)
            assert tokens.dtype == torch.int64
            assert 0 <= tokens.min() <= tokens.max() < (task.vocabulary or 0)
        assert (batch.lengths is not None) == task.mask_padding
    assert task.output_width == task.per_token * task.classes
    assert task.readout <= task.tokens
    json.dumps(task.card)
    assert task.card["test"] == len(split.test)
    assert load(name, folder, variant, **SMALL.get(name, {})).checksum == task.checksum


def test_the_default_variant_is_the_first_and_the_papers() -> None:
    assert all(entry.variants[0] == "paper" for entry in TASKS.values())


def test_a_new_task_is_one_entry_and_one_function(monkeypatch: pytest.MonkeyPatch) -> None:
    def parity(data_dir: Path, variant: str, length: int) -> Task:
        return bit_xor(data_dir, variant, strings=3, length=length)

    monkeypatch.setitem(TASKS, "parity", Entry(parity, "Parity of three strings", options={"length": 4}))
    task = load("parity", length=6)
    assert (task.tokens, task.readout, task.name, dict(task.options)) == (18, 6, "parity", {"length": 6})
    with pytest.raises(SpecError, match="parity"):
        load("party")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"options": {"length": None}}, "'Mine'.*option length is None"),
        ({"options": {"lengths": [1, 2]}}, r"'Mine'.*option lengths is \[1, 2\]"),
        ({"variants": ()}, "'Mine' has no variants"),
        ({"loader": "bits:parity"}, "'Mine'.*'bits:parity' cannot be imported.*parity"),
        ({"loader": "no_such_package.tasks:parity"}, "cannot be imported.*no_such_package"),
    ],
)
def test_a_bad_entry_is_refused(fields: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def use() -> None:
        monkeypatch.setitem(TASKS, "mine", Entry(**{"loader": bit_xor, "title": "Mine", **fields}))
        load("mine")

    with pytest.raises(SpecError, match=message):
        use()


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


def test_names_can_begin_the_name_of_a_folder() -> None:
    assert all(re.fullmatch(r"[A-Za-z0-9_-]+", name) for name in set(TASKS) - {*OWN.values()})


def test_names_and_checks_need_no_torch() -> None:
    program = "import sys, fpt.tasks; fpt.tasks.check('mnist', 'released'); print('torch' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "False"
