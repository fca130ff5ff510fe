"""Speed: fleets against a reference (`measure`, `reference`), how long a sweep takes (`cost`, without torch), what a
step computes (`step`: counted, not timed), and speed as tables and sentences (`report`)."""

from fpt.bench.step import step_cost as step_cost
from fpt.bench.step import sweep_cost as sweep_cost
