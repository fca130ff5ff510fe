"""Good files changed at random: each is refused with a clear error, or gives what the changed file says.

What is right is computed a second time: for a config.json by the library's own forward pass, for weights by NumPy, for
a study by multiplying out its lists; a result is the one that was written, or refused.
"""

import copy
import itertools
import json
import math
import os
import shutil
import struct
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import small_models
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML
from synthetic import write
from transformers import AutoModel

from fpt.errors import FptError
from fpt.models import build
from fpt.models.weights import quiet_library
from fpt.results import load_runs
from fpt.sweeps import load_study
from fpt.sweeps.record import SEAL
from fpt.sweeps.spec import SweepSpec
from fpt.tasks import load

CASES = 100 if os.environ.get("FPT_SLOW") else 40  # of each kind of file
STABLE = settings(
    max_examples=CASES,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
FOR_EACH_MODEL = settings(STABLE, max_examples=1 + CASES // 3)
MODELS = {
    "gpt2": small_models.GPT2,
    "llama": small_models.BERT | {"num_key_value_heads": 1},
    "bert": small_models.BERT | {"max_position_embeddings": 64},
}
STUDY = {
    "name": "A study",
    "defaults": {
        "compute_type": "float32", "steps": 40, "evaluations": 3, "evaluation_examples": 20, "budget_examples": 20,
        "test_examples": 20, "learning_rates": [1e-3, 1e-2], "seeds": [0, 1], "extend": 0, "threshold": 0.8,
    },
    "tasks": {"bit-xor": {"length": 4, "batch_size": 4}},
    "sweeps": [
        {"task": "digits", "arm": ["frozen-random", "unfrozen-random"], "random_init": "fixed", "dropout": 0.2},
        {"task": "bit-xor", "init": "random", "trainable": ["input", "output"], "backbone": "tiny-lm", "layers": 2},
        {"task": "digits", "arm": "unfrozen-pretrained", "clip": 0.5, "warmup": 0.1, "keep_as": "kept"},
        {"task": "digits", "arm": "frozen-pretrained", "pretrained_by": "kept", "measures": ["train-mode"]},
    ],
    "asks": ["P-25"],
    "plan": ["Frozen is better."],
}  # fmt: skip
ODD = [
    None, True, False, 0, 1, -1, 2, 3, 7, 64, 2**31, 2**63, 10**30, 0.0, -0.0, 0.5, 1e-300, 1e300, math.nan, math.inf,
    -math.inf, "", " ", "0", "1", "nan", "true", "digits", "ä", "\x00", "x" * 300, [], [[]], [None], [0], {}, {"": 0},
    {"a": {"b": []}},
]  # fmt: skip


def places(document, path=()):
    """The path of every value inside a document, the document's own left out."""
    pairs = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in pairs:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from places(value, (*path, key))


def changed_value(value, data):
    """Another value in the place of one: of another type, another number, in a list, empty, ..."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    near = (
        [value + 1, value - 1, -value, value * 2, value / 2, float(value), str(value), value * 10**6] if number else []
    )
    near += [value.upper(), value[:-1], value + " ", value * 2] if isinstance(value, str) else []
    near += [value[::-1], value * 2, value[:1], dict(enumerate(value))] if isinstance(value, list) else []
    near += [list(value), list(value.values()), str(value)] if isinstance(value, dict) else []
    return data.draw(st.sampled_from([*near, [value], {"value": value}, str(value), *ODD]))


def mutated(document, data):
    """The document with one to three changes: a value dropped, changed, copied to another place, renamed, nested."""
    document = copy.deepcopy(document)
    for _ in range(data.draw(st.integers(1, 3))):
        paths = list(places(document))
        if not paths:
            break
        *above, key = data.draw(st.sampled_from(paths))
        parent = document
        for part in above:
            parent = parent[part]
        how = data.draw(st.sampled_from(["drop", "change", "change", "change", "rename", "copy", "duplicate"]))
        if how == "drop":
            del parent[key]
        elif how == "copy":
            *other, last = data.draw(st.sampled_from(paths))
            source = document
            for part in (*other, last):
                source = source[part]
            parent[key] = copy.deepcopy(source)
        elif how == "rename" and isinstance(parent, dict):
            parent[data.draw(st.sampled_from([key + "s", key.upper(), key[1:], *parent]))] = parent.pop(key)
        elif how == "duplicate" and isinstance(parent, list):
            parent.insert(key, copy.deepcopy(parent[key]))
        else:
            parent[key] = changed_value(parent[key], data)
    return document


def mutated_bytes(content, data):
    """One to three bits flipped, bytes lost, or bytes put in between."""
    changed = bytearray(content)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, max(0, len(changed) - 1)))
        how = data.draw(st.sampled_from(["flip", "flip", "cut", "lose", "insert"]))
        if how == "flip" and changed:
            changed[at] ^= 1 << data.draw(st.integers(0, 7))
        elif how == "cut":
            del changed[at:]
        elif how == "lose":
            del changed[at : at + data.draw(st.integers(1, 9))]
        else:
            changed[at:at] = data.draw(st.binary(min_size=1, max_size=9))
    return bytes(changed)


# --- models


@pytest.fixture(scope="module", params=MODELS)
def good(request, tmp_path_factory):
    """The folder of a small model of the library."""
    folder = tmp_path_factory.mktemp(request.param) / "model"
    small_models.save_model(folder, request.param, **MODELS[request.param])
    return folder


@pytest.fixture
def model(good, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(good, tmp_path / "model"))


def built():
    """The template of hub:model; None where it is refused."""
    try:
        with warnings.catch_warnings(action="ignore"):
            return build(load("digits"), "hub:model")
    except FptError:
        return None


def library_output(folder, x):
    """What the library itself computes from the folder."""
    with warnings.catch_warnings(action="ignore"), quiet_library(), torch.random.fork_rng(devices=[]), torch.no_grad():
        theirs = AutoModel.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()
        return theirs(inputs_embeds=x).last_hidden_state


def computes_what_the_library_computes(template, folder):
    values = {n.removeprefix("backbone."): v for n, v in template.initialise(0).items() if n.startswith("backbone.")}
    x = torch.randn(2, template.task.tokens, template.width, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        ours = torch.func.functional_call(template.module.backbone, values, (), {"inputs_embeds": x}).last_hidden_state
    theirs = library_output(folder, x)
    assert torch.allclose(ours, theirs, 1e-3, 1e-4, equal_nan=True), (ours - theirs).abs().max()


@FOR_EACH_MODEL
@given(data=st.data())
def test_config(model, data):
    """A changed config.json is refused, or gives what the library computes from it."""
    path = model / "config.json"
    original = path.read_bytes()
    try:
        whole = data.draw(st.integers(0, 4))
        document = mutated(json.loads(original), data)
        path.write_bytes(json.dumps(document).encode() if whole else mutated_bytes(original, data))
        if (template := built()) is not None:
            computes_what_the_library_computes(template, model)
    finally:
        path.write_bytes(original)


def parts_of(content):
    """Header and numbers of a safetensors file."""
    (length,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def joined(header, numbers):
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + numbers


def read_by_numpy(content):
    header, numbers = parts_of(content)
    types = {"F64": "<f8", "F32": "<f4", "F16": "<f2"}
    found = {}
    for name, each in header.items():
        if name != "__metadata__" and each["dtype"] in types:
            start, end = each["data_offsets"]
            values = np.frombuffer(numbers[start:end], types[each["dtype"]])
            found[name] = values.reshape(each["shape"]).astype(np.float32)
    return found


@FOR_EACH_MODEL
@given(data=st.data())
def test_weights(model, data):
    """A changed model.safetensors is refused, or its numbers are those that NumPy reads in it."""
    path = model / "model.safetensors"
    original = path.read_bytes()
    header, numbers = parts_of(original)
    try:
        if data.draw(st.integers(0, 2)):
            path.write_bytes(joined(mutated(header, data), numbers))
        else:
            head = len(original) - len(numbers)
            path.write_bytes(mutated_bytes(original[:head], data) + original[head:])
        if (template := built()) is not None:
            numbers_are_those_of_the_file(template, read_by_numpy(path.read_bytes()))
    finally:
        path.write_bytes(original)


def numbers_are_those_of_the_file(template, written):
    for name, tensor in template.initialise(0).items():
        part, _, inside = name.partition(".")
        if part == "backbone":
            expected = written[inside]
            assert np.array_equal(tensor.numpy(), expected[: len(tensor)]), name


# --- studies


def stated_combinations(document):
    """The fields of every sweep that a study without a paper states, its lists multiplied out."""
    found = []
    for entry in document["sweeps"]:
        for task in listed(entry.get("task", (document.get("defaults") or {}).get("task"))):
            of_task = (document.get("tasks") or {}).get(task) or {}
            defaults = document.get("defaults") or {}
            fields = {**defaults, **of_task, **entry, "task": task}
            measures = [name for layer in (defaults, of_task, entry) for name in layer.get("measures") or ()]
            fields |= {"measures": measures} if measures else {}
            crossed = {
                name: value
                for name, value in fields.items()
                if isinstance(value, list) and name not in ("trainable", "measures", "learning_rates", "seeds")
            }
            for chosen in itertools.product(*crossed.values()):
                found.append({**fields, **dict(zip(crossed, chosen, strict=True))})
    return found


def listed(value):
    return value if isinstance(value, list) else [value]


def is_as_stated(spec, fields, folders):
    """Whether the spec has every field as it was written, and of the same type."""
    said = {name: value for name, value in fields.items() if value is not None}
    return all(states(spec, name, value, folders) for name, value in said.items())


def states(spec, name, value, folders):
    if name == "keep_as":
        return "weights" in spec.measures
    if name == "pretrained_by":
        return spec.pretrained_by in folders
    if name == "arm":
        return value in (spec.arm, f"{spec.trainable}-{spec.init}")
    if name == "measures":
        return set(value) <= set(spec.measures)
    if name == "random_init" and spec.init == "pretrained":  # documented: it cannot matter
        return spec.random_init == "matched"
    if name == "extend" and len(spec.learning_rates) == 1:  # documented: nothing to extend
        return spec.extend == 0
    if name in ("task_options", "backbone_options"):
        return all(same(getattr(spec, name).get(key), each) for key, each in value.items())
    if name not in SweepSpec.model_fields:
        options = {**spec.task_options, **spec.backbone_options}
        return name in options and same(options[name], value)
    found = getattr(spec, name)
    if isinstance(value, list):
        named = name == "trainable" and value == [found]  # a policy by the name of its one group
        return named or (isinstance(found, tuple) and same(sorted(found), sorted(value)))
    return same(found, value)


def same(found, stated):
    """Equal, and both numbers, both text or both true or false: true is no 1, and "1" is no number."""
    if isinstance(stated, list):
        return len(found) == len(stated) and all(map(same, found, stated))
    numbers = all(isinstance(each, int | float) and not isinstance(each, bool) for each in (found, stated))
    return bool(found == stated) and (numbers or type(found) is type(stated))


def check_study(folder):
    """The study is refused, or is what an independent reading of its file says."""
    try:
        with warnings.catch_warnings(action="ignore"):
            study = load_study(folder)
    except FptError:
        return
    document = YAML(typ="safe", pure=True).load((folder / "study.yaml").read_text(encoding="utf-8"))
    if document.get("paper"):
        return  # what a paper's tables become is tested with the papers
    stated, folders = stated_combinations(document), {spec.folder_name for spec in study.sweeps}
    for fields in stated:
        assert any(is_as_stated(spec, fields, folders) for spec in study.sweeps), f"no sweep has {fields}"
    for spec in study.sweeps:
        assert any(is_as_stated(spec, fields, folders) for fields in stated), f"nobody asked for {spec}"


def as_yaml(document, path):
    yaml = YAML(typ="safe", pure=True)
    yaml.dump(document, path)


@STABLE
@given(data=st.data())
def test_study(tmp_path, data):
    """A changed study.yaml is refused, or every field that it states is the sweep's."""
    path = tmp_path / "study.yaml"
    if data.draw(st.integers(0, 4)):
        as_yaml(mutated(STUDY, data), path)
    else:
        as_yaml(STUDY, path)
        path.write_bytes(mutated_bytes(path.read_bytes(), data))
    check_study(tmp_path)


# --- results


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A study with one finished sweep."""
    folder = tmp_path_factory.mktemp("runs") / "mine"
    folder.mkdir()
    sweep = {"task": "digits", "arm": "frozen-random"}
    as_yaml({"defaults": STUDY["defaults"], "sweeps": [sweep]}, folder / "study.yaml")
    (spec,) = load_study(folder).sweeps
    write(spec, folder / spec.folder_name)
    return folder


def tables_or_refused(folder, expected):
    """Both tables are as they were written, or the first that is not is refused."""
    for table, frame in expected.items():
        try:
            found = load_runs(folder, table=table)
        except FptError:
            continue
        pd.testing.assert_frame_equal(found, frame)


@STABLE
@given(data=st.data())
def test_result(finished, data):
    """A changed result.json is refused, or the tables and what they say of the choices are the good ones. Its own
    SHA-256 stays: without one it would be a record of an earlier version."""
    path = next(finished.glob("*/result.json"))
    original, expected = path.read_bytes(), {name: load_runs(finished, table=name) for name in ("runs", "curves")}
    try:
        whole = data.draw(st.integers(0, 4))
        record = json.loads(original)
        seal = {SEAL: record.pop(SEAL)}
        document = json.dumps(mutated(record, data) | seal).encode()
        path.write_bytes(document if whole else mutated_bytes(original, data))
        tables_or_refused(finished, expected)
    finally:
        path.write_bytes(original)


@STABLE
@given(data=st.data())
def test_tables(finished, data):
    """A changed table is refused, whether its bytes changed, its footer, or it is another table of the same shape."""
    path = data.draw(st.sampled_from(sorted(finished.glob("*/*.parquet"))))
    original, expected = path.read_bytes(), {name: load_runs(finished, table=name) for name in ("runs", "curves")}
    try:
        (length,) = struct.unpack("<I", original[-8:-4])
        footer = len(original) - 8 - length
        how = data.draw(st.sampled_from(["footer", "footer", "bytes", "values"]))
        if how == "footer":
            path.write_bytes(original[:footer] + mutated_bytes(original[footer:], data))
        elif how == "bytes":
            path.write_bytes(mutated_bytes(original, data))
        else:
            frame = pq.read_table(path).to_pandas()
            row, column = data.draw(st.integers(0, len(frame) - 1)), data.draw(st.sampled_from([*frame]))
            frame = frame.astype(object)
            frame.loc[row, column] = data.draw(st.sampled_from([0.5, 7.0, -1.0, math.nan]))
            frame.infer_objects().assign(sweep=frame["sweep"].astype(str)).to_parquet(path, index=False)
        tables_or_refused(finished, expected)
    finally:
        path.write_bytes(original)
