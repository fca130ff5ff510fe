"""Which runs, and where: specs, studies, the ledger of results, and the engines that execute sweeps."""

from fpt.sweeps.ledger import results_folder
from fpt.sweeps.run import prepare, run_sweep
from fpt.sweeps.spec import SweepSpec, check_parameters, parameters_to_spec
from fpt.sweeps.study import Study, load_study

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
