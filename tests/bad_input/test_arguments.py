"""Arguments of the Python interface that are not allowed, and settings of the caller that must not change a result."""

import numpy as np
import pytest
import torch

import fpt
from fpt.errors import SpecError
from fpt.results import load_runs
from fpt.sweeps import check_parameters, parameters_to_spec

MODES = [lambda: torch.autocast("cpu", torch.bfloat16), torch.no_grad, torch.inference_mode]


@pytest.fixture(scope="module")
def parts():
    task = fpt.tasks.load("digits")
    settings = {"steps": 2, "evaluations": 1, "evaluation_examples": 8, "budget_examples": 8, "test_examples": 8}
    return task, fpt.models.build(task, "tiny-lm", "random"), fpt.training.Recipe(**settings, compute_type="float32")


def test_a_path_that_no_system_has_is_refused():
    with pytest.raises(SpecError, match="study"):
        load_runs("\0")


def test_arrays_and_a_path_as_text(parts, tmp_path):
    plain = fpt.training.train_fleet(*parts, [1e-3, 1e-2], [0, 1], device="cpu")
    arrays = np.array([1e-3, 1e-2]), np.arange(2)
    assert fpt.training.train_fleet(*parts, *arrays, checkpoints=str(tmp_path), device="cpu").runs.equals(plain.runs)


def test_modes_of_the_caller_change_nothing(parts):
    outside = fpt.training.train_fleet(*parts, [1e-2], [0], device="cpu")
    for mode in MODES:
        with mode():
            inside = fpt.training.train_fleet(*parts, [1e-2], [0], device="cpu")
        assert inside.runs.equals(outside.runs), mode
        assert inside.curves.equals(outside.curves), mode


def test_what_a_start_up_file_defines_is_no_parameter():
    cell = 'task, backbone, arm = "digits", "tiny-lm", "frozen-random"\nlearning_rates, seeds = [1e-3], [0]'
    names = {"DATA_DIR": "/data", "threshold": 0.5, "steps": 7, "In": ["", cell]}
    exec(cell, names)
    spec = parameters_to_spec(names)
    assert spec.threshold is None
    assert spec.steps != 7


def test_a_notebook_whose_cells_are_run_again_has_the_same_parameters():
    cell = 'task, backbone, arm = "digits", "tiny-lm", "frozen-random"\nlearning_rates, seeds = [1e-3], [0]'
    call, work = "spec = fpt.sweeps.parameters_to_spec(globals())", "keys, best = ['seed'], 0.5"
    names = {"In": ["", "from fpt.sweeps import parameters_to_spec", cell, call, work, cell, call]}
    exec(f"{cell}\n{work}", names)
    assert parameters_to_spec(names).learning_rates == (1e-3,)


def test_a_notebook_as_a_plain_program_has_its_own_values():
    """Outside IPython there is no history of cells: what the program assigned is what is checked."""
    check_parameters({"steps": 3, "other": "something else"}, steps=int)
    with pytest.raises(SpecError, match="steps"):
        check_parameters({"steps": "many"}, steps=int)


def test_rates_that_papermill_took_for_text_are_numbers_in_every_notebook() -> None:
    names = {"rates": ["1e-3", 3e-4, "3E-4", "+1e2"], "minutes": "1e1", "title": "1e-3", "steps": 3}
    check_parameters(names, rates=list[float], minutes=float | None, title=str, steps=int)
    assert names == {"rates": [1e-3, 3e-4, 3e-4, 100.0], "minutes": 10.0, "title": "1e-3", "steps": 3}
    for wrong in ({"rates": ["many"]}, {"rates": ["1e-3x"]}, {"steps": "1e3"}, {"rates": [True]}):
        with pytest.raises(SpecError, match=next(iter(wrong))):
            check_parameters({**names, **wrong}, rates=list[float], minutes=float | None, title=str, steps=int)
