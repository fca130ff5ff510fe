"""Arguments of the Python interface that are not allowed, and settings of the caller that must not change a result."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from refusal import trained

import fpt
from fpt.errors import SpecError
from fpt.results import load_runs
from fpt.sweeps import check_parameters, parameters_to_spec
from fpt.sweeps.engines.kernel import OwnPython
from fpt.training.loop import check_lists, check_model, find_device

MODES = [lambda: torch.autocast("cpu", torch.bfloat16), torch.no_grad, torch.inference_mode]
LISTS = [
    ([1e-3], [0.5], "0.5"),
    ([1e-3], [True], "True"),
    ([1e-3], 0, "seeds"),
    ([1e-3], [0, 0], "seeds"),
    ([1e-3], np.array([0.5]), "0.5"),
    ([0.0], [0], "0.0"),
    ([float("nan")], [0], "nan"),
    (["1e-3"], [0], "'1e-3'"),
    ([], [0], "learning_rates"),
    (np.array([1e-3, 1e-3]), [0], "learning_rates"),
]


@pytest.fixture(scope="module")
def parts():
    task = fpt.tasks.load("digits")
    settings = {"steps": 2, "evaluations": 1, "evaluation_examples": 8, "budget_examples": 8, "test_examples": 8}
    return task, fpt.models.build(task, "tiny-lm", "random"), fpt.training.Recipe(**settings, compute_type="float32")


@pytest.mark.parametrize(("rates", "seeds", "named"), LISTS)
def test_lists(rates, seeds, named):
    with pytest.raises(SpecError) as refusal:
        check_lists(rates, seeds)
    assert named in str(refusal.value)


@pytest.mark.parametrize("device", ["gpu", "cuda:99", "meta", 1.5])
def test_devices(device):
    with pytest.raises(SpecError, match="cpu"):
        find_device(device)


def test_a_model_of_another_task(parts, tmp_path):
    with pytest.raises(SpecError, match="bit-xor"):
        fpt.training.train_fleet(fpt.tasks.load("bit-xor"), *parts[1:], [1e-3], [0], checkpoints=tmp_path)
    with pytest.raises(SpecError, match="'digits'"):
        check_model("digits", parts[1])
    assert not trained(tmp_path)


def test_arrays_and_a_path_as_text(parts, tmp_path):
    plain = fpt.training.train_fleet(*parts, [1e-3, 1e-2], [0, 1], device="cpu")
    arrays = np.array([1e-3, 1e-2]), np.arange(2)
    assert fpt.training.train_fleet(*parts, *arrays, checkpoints=str(tmp_path), device="cpu").runs.equals(plain.runs)


@pytest.mark.parametrize("mode", MODES)
def test_modes_of_the_caller_change_nothing(parts, mode):
    outside = fpt.training.train_fleet(*parts, [1e-2], [0], device="cpu")
    with mode():
        inside = fpt.training.train_fleet(*parts, [1e-2], [0], device="cpu")
    assert inside.runs.equals(outside.runs)
    assert inside.curves.equals(outside.curves)


def test_what_a_start_up_file_defines_is_no_parameter():
    cell = 'task, backbone, arm = "digits", "tiny-lm", "frozen-random"\nlearning_rates, seeds = [1e-3], [0]'
    names = {"DATA_DIR": "/data", "threshold": 0.5, "steps": 7, "In": ["", cell]}
    exec(cell, names)
    spec = parameters_to_spec(names)
    assert spec.threshold is None
    assert spec.steps != 7


def test_the_kernel_is_this_python(tmp_path, monkeypatch):

    (tmp_path / "kernels/python3").mkdir(parents=True)
    (tmp_path / "kernels/python3/kernel.json").write_text(
        '{"argv": ["/nonexistent/python"], "display_name": "x", "language": "python"}'
    )
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    assert Path(OwnPython(kernel_name="python3").kernel_spec.argv[0]) == Path(sys.executable)


@pytest.mark.parametrize("injected", ["nosuch = 1", "steps = 'many'", "steps = True", "steps = 1.5"])
def test_parameters_of_a_notebook(injected):
    cells = ["", "steps = 3", injected, "check_parameters(globals(), steps=int)"]
    names = {"In": cells, "DATA_DIR": "/data"}
    for cell in cells[:-1]:
        exec(cell, names)
    with pytest.raises(SpecError, match=injected.split()[0]):
        check_parameters(names, steps=int)


def test_a_notebook_as_a_plain_program_has_its_own_values():
    """Outside IPython there is no history of cells: what the program assigned is what is checked."""
    check_parameters({"steps": 3, "other": "something else"}, steps=int)
    with pytest.raises(SpecError, match="steps"):
        check_parameters({"steps": "many"}, steps=int)


@pytest.mark.parametrize("folder", [None, 1, 1.5, [], {}, b"mine", "\0"])
def test_the_folder_of_a_study_is_a_path(folder):
    with pytest.raises(SpecError, match="path"):
        load_runs(folder)


@pytest.mark.parametrize("table", [None, 1, [], "x", "", "spec"])
def test_tables_of_runs(table, root):
    with pytest.raises(SpecError, match="curves"):
        load_runs(root / "runs" / "mine", table=table)


def test_fields_of_a_recipe():
    with pytest.raises(SpecError, match=r"steps = 0.*\n.*nosuch = 3"):
        fpt.training.Recipe(steps=0, nosuch=3)


@pytest.mark.parametrize("folder", [3, ["data"], b"data"])
def test_the_folder_of_data_is_a_path(folder):
    with pytest.raises(SpecError, match="data_dir"):
        fpt.tasks.load("mnist", folder)
