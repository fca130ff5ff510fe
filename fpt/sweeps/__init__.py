"""Which runs, and where: specs, studies, the ledger of results, and the engines that execute sweeps.

What is named here loads on first use: whoever reads records needs none of what makes studies and trains sweeps.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fpt.sweeps.ledger import results_folder
    from fpt.sweeps.run import prepare, run_sweep
    from fpt.sweeps.spec import SweepSpec, check_parameters, parameters_to_spec
    from fpt.sweeps.study import Study, load_study

HOMES = {
    "Study": "study",
    "SweepSpec": "spec",
    "check_parameters": "spec",
    "load_study": "study",
    "parameters_to_spec": "spec",
    "prepare": "run",
    "results_folder": "ledger",
    "run_sweep": "run",
}
__all__ = [
    "Study",
    "SweepSpec",
    "check_parameters",
    "load_study",
    "parameters_to_spec",
    "prepare",
    "results_folder",
    "run_sweep",
]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{HOMES[name]}"), name)
