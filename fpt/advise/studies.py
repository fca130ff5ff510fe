"""The two studies of a request as files: what was asked, study.yaml, and what runs and baselines answered."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from fpt.advise import metrics
from fpt.advise.request import CONTENT, Request
from fpt.errors import DataError, SpecError
from fpt.files import STUDY_FILE, check_writable, read_json, write_atomically, write_json
from fpt.results.arm import Arm
from fpt.results.runs import arms_in
from fpt.sweeps.spec import SweepSpec

ASKED, PLAN, BASELINES = "advise.json", "plan.json", "baselines.parquet"  # beside study.yaml
TUNING = "Tuning seeds: they choose strengths and rates."
FRESH = "Fresh seeds, at what the tuning seeds chose."


def check_same(wanted: Request) -> None:
    """Refuse a name under which something else was asked, and a folder that cannot be written."""
    check_writable(Path("runs"))
    asked, either = wanted.asked, f"give another --name, or remove {wanted.study} and {wanted.pilot}"
    for folder in (wanted.study, wanted.pilot):
        before = read_json(folder / ASKED)
        if before is None and (folder / STUDY_FILE).is_file():
            raise SpecError(f"{folder} is a study that fpt advise did not write: {either}")
        if before is None or before == asked:
            continue
        if not any((each / STUDY_FILE).is_file() for each in (wanted.study, wanted.pilot)):
            continue  # it was stopped before it was planned
        why = [f"{key} was {before.get(key)!r}" for key in asked if key != CONTENT and before.get(key) != asked[key]]
        raise SpecError(f"{folder} is of another request ({'; '.join(why) or 'its files have changed'}): {either}")


def begin(wanted: Request) -> None:
    """Make both folders, with what was asked. Baselines of a request that was stopped before its plan go."""
    for folder in (wanted.pilot, wanted.study):
        folder.mkdir(parents=True, exist_ok=True)
        if read_json(folder / ASKED) != wanted.asked:
            (folder / BASELINES).unlink(missing_ok=True)
        write_json(folder / ASKED, wanted.asked)


def write_study(wanted: Request, folder: Path, specs: Sequence[SweepSpec], read: str) -> None:
    """An ordinary study.yaml: what its sweeps share under defaults, and a line a sweep. `read`: what the data are."""
    rows = [_fields(spec) for spec in specs]
    shared = {name: value for name, value in rows[0].items() if all(row.get(name) == value for row in rows)}
    shared = {name: value for name, value in shared.items() if name not in ("arm", "learning_rates")}
    notes = [
        f"Written by fpt advise. To run it again, or changed: fpt run {folder.name}",
        read,
        FRESH if folder == wanted.study else TUNING,
    ]
    lines = [f"# {note}" for note in notes if note]
    rule = f"The cheapest whose loss against the best is ruled out above {wanted.tolerance:g} points is advised."
    lines += [f"name: {folder.name}", f"plan: [{_yaml(rule)}]"]
    lines += ["defaults:", *(f"  {name}: {_yaml(value)}" for name, value in shared.items()), "sweeps:"]
    for row in rows:
        own = {name: value for name, value in row.items() if name not in shared}
        lines.append("  - {" + ", ".join(f"{name}: {_yaml(value)}" for name, value in own.items()) + "}")
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / STUDY_FILE, ("\n".join(lines) + "\n").encode())


def _fields(spec: SweepSpec) -> Mapping[str, Any]:
    """The fields of a sweep that are not their defaults, as a study names them."""
    known = spec.model_dump(mode="json", exclude_defaults=True, exclude={"init", "trainable"})
    return {"arm": spec.arm, **known, "extend": 0}


def _yaml(value: Any) -> str:
    """JSON is YAML, but for characters that it writes as two escapes."""
    return json.dumps(value, ensure_ascii=False)


def finished_arms(study: Path) -> dict[str, Arm]:
    """The finished sweeps of a study, by arm."""
    return {arm.fields["arm"]: arm for arm in arms_in(study, "own").values()}


def chosen(wanted: Request, arm: str) -> float | None:
    """The strength or rate that the tuning seeds choose for an arm, by the metric that is wanted on validation
    examples; None where every one diverged."""
    return metrics.best_rate(finished_arms(wanted.pilot)[arm].answers, wanted.metric)


def test_answers(arm: Arm) -> pd.DataFrame:
    """What an arm answers on the test examples of each seed."""
    return arm.answers[arm.answers["part"] == "test"]


def read_baselines(study: Path) -> pd.DataFrame:
    """What the baselines answered. Raises DataError where the file is not what `fpt advise` wrote."""
    path = study / BASELINES
    try:
        return pd.read_parquet(path, columns=["baseline", "seed", "example", "target", "predicted"])
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"{path} is missing or damaged ({error}): remove it, and run fpt advise again") from None
