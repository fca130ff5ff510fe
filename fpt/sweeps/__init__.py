"""Which runs, and where: specs, studies, the ledger of results, and the engines that execute sweeps."""

from fpt.sweeps.ledger import results_folder, workspace
from fpt.sweeps.run import Result, prepare, run_sweep
from fpt.sweeps.selection import Selection, select
from fpt.sweeps.spec import PROTOCOL, SweepSpec, parameters_to_spec
from fpt.sweeps.study import Study, load_study

__all__ = [
    "PROTOCOL",
    "Result",
    "Selection",
    "Study",
    "SweepSpec",
    "load_study",
    "parameters_to_spec",
    "prepare",
    "results_folder",
    "run_sweep",
    "select",
    "workspace",
]
