"""Names of tasks and models in tables and figures."""

from fpt import tasks
from fpt.models import AS_PRINTED

TITLES = {  # where there is little room
    "homology": "Homology", "digits": "Digits", "digits-lra": "Digits, by pixel", "listops-short": "ListOps, short",
}  # fmt: skip


def title(task: str) -> str:
    """The task's name in tables and figures."""
    known = tasks.known()
    return TITLES.get(task) or (known[task].title if task in known else task)


def model(backbone: str) -> str:
    """A backbone's name in tables and figures."""
    return AS_PRINTED.get(backbone, backbone)
