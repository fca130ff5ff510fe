"""A row of a paper's table on one task of a study: what is planned there (`fpt.sweeps.rows.Planned`), and what is
finished (`fpt.results.cells.TableCell`). No paper is imported here, so that results are read without any."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from fpt.papers.schema import PaperTable

Scale = Literal["paper", "reduced"]  # paper: its own model, on its own task, for at least its steps
PAPER_SCALE: Scale = "paper"
REDUCED: Scale = "reduced"


@dataclass(frozen=True)
class RowOnTask(ABC):
    """A row of a table on one task of a study, and the paper's tasks in whose place that stands: itself, if it is the
    paper's."""

    table: "PaperTable"
    row: str
    stands_for: tuple[str, ...]
    scale: Scale

    @property
    @abstractmethod
    def task(self) -> str:
        """Of the study."""

    @property
    @abstractmethod
    def sweep(self) -> str:
        """The name of the folder of the sweep that serves the row."""
