"""What `fpt plan` and `fpt status` show of a study: a row a sweep, as a table or for programs."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Column, Table

from fpt.bench.cost import Cost
from fpt.cli.tables import numbers_of, table_of, time_text
from fpt.sweeps import ledger
from fpt.sweeps.ledger import SweepState, sweep_state
from fpt.sweeps.record import PUBLISHED
from fpt.sweeps.spec import SweepSpec
from fpt.sweeps.study import Study
from fpt.sweeps.words import labels


def arms_of(specs: Sequence[SweepSpec]) -> dict[str, str]:
    """By folder name what tells the sweeps apart in words, where task and arm of two are the same; else nothing."""
    arms = [spec.folder_name.rpartition("-")[0] for spec in specs]
    return labels(specs) if len(set(arms)) < len(arms) else {}


def plan_table(title: str, plan: Sequence[tuple[SweepState, Sequence[Cost]]]) -> Table:
    """Every sweep with its predicted times; the device is named if there is more than one. A + after its runs says that
    the grid may be extended."""
    arms = arms_of([state.spec for state, _ in plan])
    several = len({cost.device for _, costs in plan for cost in costs}) > 1
    rows = []
    for state, costs in plan:
        times = "; ".join(
            f"{time_text(cost.seconds)} {source_text(cost) if several else cost.source}" for cost in costs
        )
        spec = state.spec
        runs = f"{spec.runs}{'+' * bool(spec.extend)}"
        rows.append([*_names(arms, spec), state.state, runs, f"{spec.steps:,}", times or "unknown"])
    columns: list[str | Column]
    columns = ["sweep", *["arm"] * bool(arms), "state", numbers_of("runs"), numbers_of("steps"), "time"]
    return table_of(title, columns, rows)


def plan_records(plan: Sequence[tuple[SweepState, Sequence[Cost]]]) -> list[dict[str, Any]]:
    """The same for programs; times in seconds."""
    return [
        {
            "sweep": state.spec.folder_name,
            "task": state.spec.task,
            "arm": state.spec.arm,
            "state": state.state,
            "runs": state.spec.runs,
            "extend": state.spec.extend,
            "steps": state.spec.steps,
            "times": [asdict(cost) for cost in costs],
        }
        for state, costs in plan
    ]


def _names(arms: Mapping[str, str], spec: SweepSpec) -> list[str]:
    """The cells of a sweep's name and, if there is such a column, of its arm."""
    return [spec.folder_name, *([arms[spec.folder_name]] if arms else [])]


def source_text(cost: Cost) -> str:
    """How a time is known, and for which device."""
    return f"{cost.source} ({cost.device})" if cost.device else cost.source


def total_text(plan: Sequence[tuple[SweepState, Sequence[Cost]]]) -> str:
    """The sums of all times, by source and device, each with the number of its sweeps where these are not all, and the
    number of sweeps of unknown time."""
    sums: dict[str, list[float]] = {}
    for cost in (cost for _, costs in plan for cost in costs):
        sums.setdefault(source_text(cost), []).append(cost.seconds)
    unknown = sum(not costs for _, costs in plan)
    parts = [
        f"{time_text(sum(seconds))} {how}" + (f" for {len(seconds)} of them" if len(seconds) < len(plan) else "")
        for how, seconds in sums.items()
    ]
    return ", ".join(parts + [f"{unknown} of unknown time (--measure times them here)"] * bool(unknown))


def status_table(study: Study) -> Table:
    arms = arms_of(study.sweeps)
    rows = []
    for spec in study.sweeps:
        state = sweep_state(spec, study.folder)
        rate = ""
        if state.result:
            rate = f"{state.result['selected_rate'] or 'none'}" + (" (edge)" if state.result["at_edge"] else "")
        word, progress = state.state, state.progress
        if progress:
            share = progress["run_steps"] / progress["run_steps_total"]
            step = f"step {progress['step']:,} of {progress['steps']:,}"
            word = f"running {share:.0%} (grid {progress['grid']}, {step})"
        took = time_text(state.result["wall_seconds"]) if state.result else ""
        rows.append([*_names(arms, spec), word, rate, took, "yes" if state.published else ""])
    for inside in ("", PUBLISHED):
        for folder in ledger.stale_folders(study, inside):
            name = folder.relative_to(study.folder).as_posix()
            rows.append([name, *[""] * bool(arms), "stale", "", "", ""])
    columns: list[str | Column]
    columns = ["sweep", *["arm"] * bool(arms), "state", numbers_of("selected rate"), numbers_of("time"), "published"]
    return table_of(study.name, columns, rows)


def status_records(study: Study) -> list[dict[str, Any]]:
    """The same for programs, without what is stale."""
    found = []
    for spec in study.sweeps:
        state = sweep_state(spec, study.folder)
        result = {name: (state.result or {}).get(name) for name in ("selected_rate", "at_edge", "wall_seconds")}
        named = {"sweep": spec.folder_name, "task": spec.task, "arm": spec.arm, "state": state.state}
        found.append(named | result | {"progress": state.progress, "published": state.published is not None})
    return found
