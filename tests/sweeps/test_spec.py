"""Specs: what is the same sweep, what is refused, and in which words."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import synthetic
from hypothesis import given, settings
from hypothesis import strategies as st

from fpt.errors import SpecError
from fpt.models import POLICIES
from fpt.sweeps import SweepSpec, parameters_to_spec
from fpt.sweeps.ledger import read_result
from fpt.sweeps.spec import PROTOCOL, resolve
from fpt.sweeps.words import title
from fpt.training.recipe import as_written, head_and_more

SPEC = {"task": "digits", "arm": "frozen-random", "learning_rates": [1e-3, 1e-2], "seeds": [0, 1, 10]}

rates = st.lists(st.floats(1e-7, 1.0).map(as_written), min_size=1, max_size=5, unique=True)
seeds = st.lists(st.integers(0, 99), min_size=1, max_size=4, unique=True)
fields = st.fixed_dictionaries(
    {"task": st.sampled_from(["digits", "bit-xor"]), "learning_rates": rates, "seeds": seeds},
    optional={
        "arm": st.sampled_from(["frozen-pretrained", "frozen-random", "unfrozen-random", "output-random"]),
        "backbone": st.sampled_from(["tiny-lm", "minilm", "gpt2"]),
        "backbone_options": st.sampled_from([{}, {"layers": 0}, {"layers": 2}]),
        "input_init": st.sampled_from(["orthogonal", "default", "biased"]),
        "measures": st.lists(st.sampled_from(["attention", "train-mode"]), max_size=2),
        "clip": st.sampled_from([None, 1, 1.0, 0.5]),
        "random_init": st.sampled_from(["matched", "fixed", "scaled"]),
        "random_gain": st.sampled_from([0.5, 1, 1.0, 2]),
        "extend": st.integers(0, 4),
        "data_fraction": st.sampled_from([1, 1.0, 0.1]),
        "shuffle_tokens": st.booleans(),
        "steps": st.integers(1, 10_000),
        "evaluations": st.integers(1, 20),
        "warmup": st.sampled_from([0, 0.0, 0.1]),
        "batch_size": st.sampled_from([8, 4]),
        "compute_type": st.sampled_from(["auto", "float32"]),
        "schedule": st.sampled_from(["constant", "cosine"]),
        "report": st.sampled_from(["best", "last"]),
        "weight_decay": st.sampled_from([0, 0.0, 0.01]),
        "dropout": st.sampled_from([0, 0.1, 0.5]),
        "evaluation_examples": st.sampled_from([None, 100]),
        "budget_examples": st.sampled_from([None, 100]),
        "test_examples": st.sampled_from([None, 100]),
    },
)


def test_hashes_are_frozen():
    """A change here orphans every result that exists: then PROTOCOL must be raised, and people told why."""
    assert PROTOCOL == 2
    assert resolve(SPEC).hash == "5bb8aa9b"
    laptop = {"arm": "unfrozen-pretrained", "steps": 400, "compute_type": "float32", "budget_examples": 100}
    assert resolve(SPEC | laptop | {"learning_rates": ["1e-3", 1e-2]}).hash == "8149fb12"
    memory = SPEC | {"task": "bit-memory", "task_options": {"strings": 3}, "random_init": "fixed"}
    memory |= {"data_fraction": 0.5, "shuffle_tokens": True, "warmup": 0.1}
    assert resolve(memory | {"trainable": ["output", "input"], "init": "random", "arm": None}).hash == "00bd3524"
    assert resolve(SPEC | {"head_rate": 1e-3, "schedule": "cosine", "weight_decay": 0.01}).hash == "05adcc31"
    adapters = {"arm": "lora-random", "rank": 4, "alpha": 16, "targets": "attention", "zero": "A", "extend": 1}
    assert resolve(SPEC | adapters | {"task": "mnist", "variant": "released"}).hash == "4e543e2b"


@given(fields, st.randoms(use_true_random=False))
def test_order_of_fields_and_of_lists_does_not_matter(given_fields, rng):
    shuffled = list(given_fields.items())
    rng.shuffle(shuffled)
    other = {k: rng.sample(v, len(v)) if isinstance(v, list) else v for k, v in shuffled}
    assert resolve(other).hash == resolve(given_fields).hash
    assert resolve(other) == resolve(given_fields)


@given(fields)
def test_fields_at_their_default_do_not_matter(given_fields):
    defaults = {
        name: field.get_default()
        for name, field in SweepSpec.model_fields.items()
        if not field.is_required() and name not in ("init", "trainable")
    }
    assert resolve(defaults | given_fields).hash == resolve(given_fields).hash


def plain(spec):
    """The same sweep without options that are named at their default: `layers: 0` is all layers."""
    options = {name: value for name, value in spec.backbone_options.items() if (name, value) != ("layers", 0)}
    return spec.model_copy(update={"backbone_options": options})


@settings(max_examples=40)
@given(fields, fields)
def test_equal_hashes_only_for_equal_sweeps(one, other):
    """Where any one field differs, and where all may."""
    first = plain(resolve(one))
    for changed in (*(one | {name: value} for name, value in other.items()), other):
        second = plain(resolve(changed))
        assert (first.hash == second.hash) == (first == second)


groups = st.lists(
    st.sampled_from(["input", "output", "layer_norm", "positions", "attention", "feed_forward", "last_attention"]),
    min_size=1, max_size=7, unique=True,
)  # fmt: skip


@given(
    fields,
    st.sampled_from(["pretrained", "random", "statistics"]),
    st.none() | st.sampled_from(sorted(POLICIES)) | groups,
)
def test_a_spec_survives_its_notebook_and_its_result_file(given_fields, init, trainable):
    parts = {} if trainable is None else {"arm": None, "init": init, "trainable": trainable}
    spec = resolve(given_fields | parts)
    assert parameters_to_spec(json.loads(json.dumps(spec.parameters()))) == spec
    assert resolve(json.loads(json.dumps(spec.resolved()))).hash == spec.hash


ALONE, PRETRAINED = {"learning_rates": [1e-3]}, {"arm": "frozen-pretrained"}


@pytest.mark.parametrize(
    ("plain", "change", "same"),
    [
        ({"task": "bit-xor"}, {"task_options": {"length": 5}}, True),  # its default
        ({"task": "bit-xor"}, {"task_options": {"length": 6}}, False),
        (PRETRAINED, {"random_init": "fixed"}, True),  # how it would have been drawn
        (PRETRAINED, {"random_gain": 4}, False),  # a gain is of pretrained matrices too
        (ALONE, {"extend": 0}, True),  # a single rate is no grid that could be extended
        (ALONE, {"extend": 2}, True),
        ({}, {"extend": 2}, False),
    ],
)
def test_what_changes_nothing_is_no_other_sweep(plain, change, same):
    assert (resolve(SPEC | plain | change).hash == resolve(SPEC | plain).hash) is same


@given(fields, fields)
def test_the_identity_is_what_is_trained_and_not_for_how_long(one, other):
    """The other sweep differs in its grid, its seeds, its budget and what is measured, and in nothing else."""
    of_budget = {"learning_rates", "seeds", "extend", "steps", "evaluation_examples", "budget_examples",
                 "test_examples", "measures"}  # fmt: skip
    mixed = {name: value for name, value in one.items() if name not in of_budget}
    mixed |= {name: value for name, value in other.items() if name in of_budget}
    assert resolve(mixed).identity == resolve(one).identity
    recipe = {"warmup": 0.3, "dropout": 0.7, "clip": 3.0, "data_fraction": 0.3, "random_gain": 9, "weight_decay": 0.3}
    if "output" in (groups := resolve(one).means.groups) and head_and_more(groups):
        recipe["probe"] = 0.7
    recipe["report"] = "best" if resolve(one).report == "last" else "last"
    assert all(resolve(one | {name: value}).identity != resolve(one).identity for name, value in recipe.items())


def test_arms_have_names_both_ways():
    assert resolve(SPEC).arm == "frozen-random"
    by_hand = resolve(SPEC | {"arm": None, "init": "random", "trainable": "fpt"})
    assert by_hand == resolve(SPEC)
    groups = resolve(SPEC | {"arm": None, "init": "pretrained", "trainable": ["output", "input"]})
    assert groups.arm == "input+output-pretrained"
    assert resolve(SPEC | {"arm": groups.arm}) == groups


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_a_list_of_groups_that_is_a_policy_is_that_policy(policy):
    by_name, by_groups = (
        resolve(SPEC | {"arm": None, "init": "random", "trainable": trainable})
        for trainable in (policy, list(reversed(POLICIES[policy])))
    )
    assert by_groups == by_name
    assert by_groups.hash == resolve(by_groups.parameters()).hash


def test_titles_and_folder_names():
    spec = resolve(SPEC | {"random_init": "fixed", "random_gain": 0.5})
    assert title(spec) == "digits, frozen-random, fixed scale, gain 0.5"
    assert spec.folder_name == f"digits.frozen-random-{spec.hash}"
    words = {"data_fraction": 0.25, "shuffle_tokens": True, "warmup": 0.1, "clip": None, "compute_type": "bfloat16"}
    assert title(resolve(SPEC | words)) == (
        "digits, frozen-random, 25% of the data, shuffled tokens, no clipping, warm-up 0.1, bfloat16"
    )
    assert title(resolve(SPEC | {"clip": 0.5, "compute_type": "float32"})) == "digits, frozen-random, clip 0.5"
    assert "last step" in title(resolve(SPEC | {"report": "last"}))


def test_own_data_are_their_content_and_what_differs_from_the_defaults(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, content in (("a", b"mine"), ("b", b"mine"), ("c", b"another's")):
        Path(f"{name}.npz").write_bytes(content)
    a, b, c = (resolve(SPEC | {"task": f"npz:{name}.npz"}) for name in "abc")
    assert a.hash == b.hash == "4b884cf5" != c.hash
    assert a.folder_name == f"npz.frozen-random-{a.hash}"
    for options, same in (({"patch": 4, "padded": False, "white": 255}, True), ({"white": 16}, False)):
        assert (a.changed(task_options=options).hash == a.hash) is same
    synthetic.write(a, Path("a"))
    for moved in (b, a.changed(task_options={"patch": 4}), a.changed(backbone_options={"layers": 0})):
        assert read_result(Path("a"), moved), title(moved)  # the same sweep, in other words


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"learning_rates": [1e-3, 0]}, ["learning_rates[1] = 0", "greater than 0"]),
        ({"learning_rates": [math.nan]}, ["learning_rates[0] = nan", "finite number"]),
        ({"learning_rates": [1e-3, "1e-3"]}, ["learning_rates", "0.001", "more than once"]),
        ({"learning_rates": 1e-3}, ["learning_rates = 0.001: must be a list (runs/mine"]),
        ({"learning_rates": ["fast"]}, ["learning_rates[0] = 'fast'", "must be a number"]),
        ({"seeds": [-1]}, ["seeds[0] = -1", "greater than or equal to 0"]),
        ({"seeds": [0.5]}, ["seeds[0] = 0.5", "whole number"]),
        ({"extend": 11}, ["extend = 11", "less than or equal to 10"]),
        ({"shuffle_tokens": 1}, ["shuffle_tokens = 1", "must be true or false"]),
        ({"schedule": "linear"}, ["schedule = 'linear'", "constant", "cosine"]),
        ({"head_rate": 1e-3, "arm": "output-random"}, ["head_rate = 0.001", "only output"]),
        ({"task": "npz:/elsewhere/mine.npz"}, ["mine.npz", "relative to the workspace"]),
        ({"learning_rate": [1e-3]}, ["unknown study field 'learning_rate'", "Did you mean 'learning_rates'"]),
    ],
)
def test_bad_fields_are_refused_in_the_words_of_the_study(change, words):
    with pytest.raises(SpecError) as caught:
        resolve(SPEC | change, "runs/mine/study.yaml, sweep 1")
    message = str(caught.value)
    assert all(word in message for word in [*words, "runs/mine/study.yaml, sweep 1"]), message
    assert "pydantic" not in message
    assert "https" not in message


def test_every_missing_field_is_named():
    with pytest.raises(SpecError, match=r"learning_rates is missing.*\n.*seeds is missing"):
        resolve({"task": "digits"}, "here")


def test_names_in_a_notebook_that_are_no_parameters_do_not_disturb():
    names = SPEC | {"In": [""], "Out": {}, "_": 3, "__name__": "__main__", "np": np, "exit": print, "folder": None}
    assert parameters_to_spec(names) == resolve(SPEC)


def test_a_parameter_of_a_type_that_yaml_does_not_have_is_taken_or_refused_and_not_left_out():
    with pytest.raises(SpecError, match="steps"):
        parameters_to_spec(SPEC | {"steps": np.int64(77)})
    assert parameters_to_spec(SPEC | {"seeds": range(4)}).seeds == (0, 1, 2, 3)
    assert parameters_to_spec(SPEC | {"measures": {"attention"}}).measures == ("attention",)


def test_a_cell_that_never_ran_assigned_nothing():
    cells = ["seeds = = 3", *(f"{name} = ..." for name in SPEC), "parameters_to_spec(globals())"]
    assert parameters_to_spec(SPEC | {"In": cells}) == resolve(SPEC)


def test_a_misspelt_parameter_that_papermill_defined_is_refused():
    cells = ["", *(f"{name} = ..." for name in SPEC), "step = 4", "spec = parameters_to_spec(globals())"]
    with pytest.raises(SpecError, match=r"unknown study field 'step'.*notebook parameters.*Did you mean 'steps'"):
        parameters_to_spec(SPEC | {"step": 4, "In": cells})


def test_a_notebook_says_how_papermill_is_given_a_list():
    with pytest.raises(SpecError, match=r"seeds = 0: must be a list \(papermill takes lists with -y, .*parameters\)"):
        parameters_to_spec(SPEC | {"seeds": 0})


@settings(max_examples=200)
@given(st.dictionaries(st.text(max_size=8) | st.sampled_from(sorted(SPEC)), st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
)))  # fmt: skip
def test_whatever_is_given_the_answer_is_a_spec_or_a_spec_error(change):
    try:
        spec = resolve(SPEC | change)
    except SpecError:
        return
    assert len(spec.hash) == 8


@pytest.mark.parametrize(
    "given", [[1e-3, 1.0000000000000002e-3], ["1e-3", "1.0000000000000002e-3"], [0.3, 0.1 + 0.2], [3e-4, 3 * 1e-4]]
)
def test_rates_that_differ_by_rounding_are_one_rate(given: list[float]) -> None:
    with pytest.raises(SpecError, match=r"learning_rates.*more than once"):
        resolve({**SPEC, "learning_rates": given})
    first, second = (resolve({**SPEC, "learning_rates": [rate]}) for rate in given)
    assert first.hash == second.hash


@pytest.mark.parametrize("name", ["head_rate", "warmup", "weight_decay", "random_gain", "data_fraction", "dropout"])
def test_so_are_other_numbers(name: str) -> None:
    arm = {"arm": "unfrozen-random", name: 0.3}
    assert resolve({**SPEC, **arm}).hash == resolve({**SPEC, **arm, name: 0.1 + 0.2}).hash
