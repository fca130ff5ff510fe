"""Which runs, and where: specs, studies, the ledger of results, and the engines that execute sweeps.

What is named here loads on first use: whoever reads records needs none of what makes studies and trains sweeps.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fpt.sweeps.parameters import check_parameters as check_parameters
    from fpt.sweeps.parameters import parameters_to_spec as parameters_to_spec
    from fpt.sweeps.parameters import results_folder as results_folder
    from fpt.sweeps.run import prepare as prepare
    from fpt.sweeps.run import run_sweep as run_sweep
    from fpt.sweeps.spec import SweepSpec as SweepSpec
    from fpt.sweeps.study import Study as Study
    from fpt.sweeps.study import load_study as load_study

HOMES = {  # the file of each name
    "Study": "study",
    "SweepSpec": "spec",
    "check_parameters": "parameters",
    "load_study": "study",
    "parameters_to_spec": "parameters",
    "prepare": "run",
    "results_folder": "parameters",
    "run_sweep": "run",
}


def __dir__() -> list[str]:
    return sorted(HOMES)


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{HOMES[name]}"), name)
