"""Tables of the reference pages: tasks, models, studies, misprints, and the results to download."""

import json
import re
from collections.abc import Iterable, Sequence
from datetime import date
from functools import partial
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

from fpt import models, tasks
from fpt.claims.arithmetic import ODDITY
from fpt.files import workspace
from fpt.models import ARMS, BACKBONES
from fpt.papers import claims
from fpt.results import StudyCells, find_study, known_scores, load_runs, sweeps_table
from fpt.results.estimate import PERCENT, number_text
from fpt.results.runs import arms_in, loaded_studies, study_names
from fpt.show.findings import verdict_rows, verdicts_by_id
from fpt.show.html import Folded, Page, Searchable, Table
from fpt.show.tables import record_table
from fpt.sweeps import load_study
from fpt.sweeps.record import PUBLISHED, RESULT
from fpt.sweeps.spec import SweepSpec
from fpt.sweeps.study import Study

STAND_INS = ("laptop-rothermel2021", "laptop-lu2021")  # whose options the cards of tasks show
WHITE = {"mnist": (60_000, 10_000, (28, 28)), "cifar10": (50_000, 10_000, (32, 32, 3))}  # train, test, image
MILLION = 1e6
SMOKE = "smoke"  # the study that tests an installation: nobody publishes it
GPU = "NVIDIA"  # in the name of every GPU that published sweeps were trained on
COUNTED = "counted"  # a claim that arithmetic decides
IN_MINUTES = 100  # from so many on a time is told in hours


# --- tasks


def task_card(name: str) -> Table:
    """What a task consists of, from the data that sweeps train on, with its baselines.

    MNIST and CIFAR-10 need a download: their cards come from as many white images, with the checksum that the published
    sweeps recorded.
    """
    options = _options_of(name)
    if name not in WHITE:
        return _card(tasks.load(name, **options), options)
    train, test, shape = WHITE[name]
    with TemporaryDirectory() as folder:
        arrays: dict[str, Any] = {}
        for part, count in (("train", train), ("test", test)):
            arrays[f"x_{part}"] = np.full((count, *shape), 255, np.uint8)
            arrays[f"y_{part}"] = np.arange(count) % 10
        np.savez(Path(folder, f"{name}.npz"), **arrays)
        return _card(tasks.load(name, folder), options, checksum=_recorded_checksum(name))


def tasks_table(names: Sequence[str], caption: str) -> Table:
    """The tasks, a row each: the sizes of their parts, and what can be had without learning much."""
    cards = [dict(task_card(name).frame.itertuples(index=False, name=None)) for name in names]
    kept = ["title", "train", "validation", "test", "tokens", "classes", "baselines", "licence"]
    return Table(pd.DataFrame(cards)[kept].rename(columns={"title": "task"}), caption)


def _options_of(task: str) -> dict[str, Any]:
    for study in STAND_INS:
        for spec in load_study(find_study(study)).sweeps:
            if spec.task == task:
                return spec.task_options
    return {}


def _recorded_checksum(task: str) -> str:
    for study in study_names():
        for arm in arms_in(find_study(study), PUBLISHED).values():
            if arm.task == task:
                return str(arm.result["data_checksum"])
    return "not recorded yet"


def _card(task: Any, options: dict[str, Any], **changes: str) -> Table:
    rows = {key: f"{value:,}" if isinstance(value, int) else value for key, value in (task.card | changes).items()}
    rows["train"] = rows["train"] or "a stream, drawn anew at every step"
    rows["options"] = ", ".join(f"{key} {value}" for key, value in options.items())
    rows["checksum"] = f"{rows['checksum'][:16]}..."
    scores = known_scores(task.name, task.variant)
    rows["baselines"] = ", ".join(
        f"{name} {number_text(100 * score.share, PERCENT)}%" for name, score in scores.items()
    )
    title = rows.pop("task")
    filled = [(key, value) for key, value in rows.items() if value]
    return Table(pd.DataFrame(filled, columns=["property", title]))


# --- models


def arms_table() -> Table:
    """Every arm: how its weights start, and which groups of parameters train."""
    rows = [
        {"arm": name, "letters": arm.letters, "weights start": arm.init, "groups that train": ", ".join(arm.groups)}
        for name, arm in ARMS.items()
    ]
    return Table(pd.DataFrame(rows))


def parameters(backbone: str, trainable: str) -> pd.DataFrame:
    """Parameters of a backbone on digits by group: trainable, frozen, unused; counted on a model without values."""
    import torch

    task = tasks.load("digits")
    with torch.device("meta"):
        return models.build(task, backbone=backbone, init="random", trainable=trainable).report()


def parameters_table(backbone: str, caption: str) -> Table:
    """The groups of a frozen backbone on digits, and what trains when it is unfrozen."""
    rows = parameters(backbone, "fpt")
    rows["trainable when unfrozen"] = parameters(backbone, "all")["trainable"]
    rows.loc["all"] = rows.sum()
    return Table(rows.map(lambda count: f"{count:,}").reset_index(names="group"), caption)


def backbones_table() -> Table:
    """Every backbone and where its weights come from."""
    here = {True: "in the package", False: "still to be trained"}
    rows = []
    for name, entry in BACKBONES.items():
        own = here[entry.sha256 is not None] if entry.pretrained else "random alone"
        rows.append({"backbone": name, "what it is": entry.title, "weights": entry.hub or own})
    return Table(pd.DataFrame(rows))


def sizes_table(caption: str) -> Table:
    """Parameters of the backbones on digits, in millions: in use, trained by frozen arms, and by group."""
    rows = []
    for name in BACKBONES:
        if name.startswith("tiny-lm-"):  # further checkpoints of tiny-lm
            continue
        counts = parameters(name, "fpt")
        used = counts["trainable"] + counts["frozen"]
        sizes = {"in use": used.sum(), "trains frozen": counts["trainable"].sum()}
        for group in ("attention", "feed_forward", "recurrent", "layer_norm", "positions"):
            sizes[group.replace("_", " ")] = used.get(group, 0)
        sizes["unused"] = counts["unused"].sum()
        rows.append({"backbone": name} | {key: f"{size / MILLION:,.2f}" for key, size in sizes.items()})
    return Table(pd.DataFrame(rows), caption)


def model_cards() -> Page:
    """What the model cards of our own checkpoints have in common, and what differs."""
    cards = {}
    for name, entry in BACKBONES.items():
        folder = (entry.package or "").partition("fpt:")[2]
        if folder and (card := files("fpt").joinpath(folder, "model_card.json")).is_file():
            cards[name] = {"markov_order": None, **json.loads(card.read_text(encoding="utf-8"))}
    table = pd.DataFrame(cards, dtype=object)
    words = table.apply(lambda row: row.map(partial(_in_words, str(row.name))), axis=1)
    words.index = words.index.str.replace("_", " ")
    same = words.nunique(axis=1) == 1
    common = words.loc[same].iloc[:, 0].rename("value").rename_axis("property").reset_index()
    parts = [Table(common, "What all checkpoints share. Bits per character: on held-out text, from the named byte on.")]
    if not same.all():
        parts.append(Table(words[~same].T.reset_index(names="checkpoint"), "What differs between the checkpoints."))
    return Page(parts)


def _in_words(name: str, value: Any) -> str:
    if name.endswith("sha256"):
        return f"{value[:12]}..."
    if value is None:
        return "the novels themselves"
    return f"{value:,}" if isinstance(value, int) else str(value)


def architectures_table() -> Folded:
    """What became of every causal and masked language model of the library in `notebooks/architectures`."""
    order = ["works", "failed", "refused", "not built", "no answer"]
    content = json.loads((workspace() / "runs/architectures/table.json").read_text(encoding="utf-8"))
    tried = pd.DataFrame(content["architectures"])[["architecture", "kind", "state", "groups", "dropout", "why"]]
    tried = tried.replace({"groups": "_", "dropout": "_"}, " ", regex=True)
    tried = tried.rename(columns={"dropout": "drops out in", "why": "why not"})
    tried = tried.sort_values("state", key=lambda states: states.map(order.index), kind="stable")
    counts = ", ".join(f"{count} {state}" for state, count in tried["state"].value_counts().items())
    caption = f"Architectures of transformers {content['transformers']} and torch {content['torch']}: {counts}."
    return Folded(caption, Table(tried, caption))


# --- studies


def named_on_pages(studies: Iterable[StudyCells]) -> list[StudyCells]:
    """Those that a page of the book names: its sentences on how studies were run speak of these. What a reader adds to
    runs/ is shown beside them, and may be run otherwise."""
    text = "".join(page.read_text(encoding="utf-8") for page in (workspace() / "book").glob("*.md"))
    return [study for study in studies if re.search(f'[`"]{re.escape(study.name)}[`"]', text)]


def studies_table(caption: str) -> Table:
    """Every study of this workspace: what it is, what it needs, and what its published sweeps took."""
    rows = []
    for study in loaded_studies():
        rows.append(
            {
                "study": study.folder.name,
                "what it is": study.file.about,
                "sweeps": len(study.sweeps),
                "needs": _needs(study.sweeps),
                "time": _time(study) or f"see fpt plan {study.folder.name}",
            }
        )
    return Table(pd.DataFrame(rows), caption)


def unpublished_table(caption: str) -> Table:
    """The studies that name sweeps without published results, and how many."""
    rows = []
    for study in loaded_studies():
        states = sweeps_table(study, PUBLISHED)["status"]
        missing = int((states != "done").sum())
        if missing and study.folder.name != SMOKE:
            named = {"study": study.folder.name, "what it is": study.file.about}
            rows.append(named | {"sweeps planned": len(states), "not run": missing})
    return Table(pd.DataFrame(rows), caption)


def time_of(study: str) -> str:
    """What the published sweeps of a study took on one core, and on a GPU; empty where none is published."""
    return _time(load_study(find_study(study)))


def _time(study: Study) -> str:
    table = sweeps_table(study, PUBLISHED)
    done = table[table["status"] == "done"]
    if done.empty:
        return ""
    on_gpu = done["device"].str.contains(GPU)
    cores, gpus = done["wall_seconds"] * done["threads"], done["wall_seconds"]
    spent = [_minutes(cores[~on_gpu])] if not on_gpu.all() else []
    spent += [f"{_minutes(gpus[on_gpu])} of a GPU"] if on_gpu.any() else []
    part = "" if len(done) == len(table) else f" ({len(done)} of {len(table)} sweeps)"
    return " and ".join(spent) + part


def _minutes(seconds: "pd.Series[float]") -> str:
    minutes = seconds.sum() / 60
    return f"{minutes:.0f} minutes" if minutes < IN_MINUTES else f"{minutes / 60:.1f} hours"


def _needs(specs: Sequence[SweepSpec]) -> str:
    """Data and weights that are not in the package."""
    found = []
    for task in dict.fromkeys(spec.task for spec in specs):
        if task not in tasks.TASKS:
            found.append(task)
        elif tasks.entry(task).files:
            found.append(tasks.entry(task).title)
    for name in sorted({spec.backbone for spec in specs if spec.init != "random"}):
        if name not in BACKBONES or BACKBONES[name].hub:
            found.append(f"weights of {name}")
    return ", ".join(found) or "nothing"


def records() -> Page:
    """The record of every sweep, a folded table a study; the names of published sweeps lead to their notebooks."""
    parts = []
    for study in loaded_studies():
        table = sweeps_table(study, PUBLISHED)
        done = int((table["status"] == "done").sum())
        if not done:
            continue
        shown = record_table(study)
        paths = [study.folder / PUBLISHED / spec.folder_name / "notebook.ipynb" for spec in study.sweeps]
        shown.links = [_beside_the_pages(path) if path.is_file() else "" for path in paths]
        parts.append(Folded(f"{study.folder.name}: {done} of {len(table)} sweeps", shown))
    return Page(parts)


def _beside_the_pages(path: Path) -> str:
    return f"../{path.relative_to(workspace()).as_posix()}"


def newest() -> str:
    """The day of the newest published result, as 26 November 2026; empty where nothing is published."""
    records = (workspace() / "runs").glob(f"*/{PUBLISHED}/*/{RESULT}")
    days = [date.fromisoformat(json.loads(each.read_bytes())["finished_utc"][:10]) for each in records]
    return f"{max(days):%-d %B %Y}" if days else ""


def downloads(folder: Path | str) -> str:
    """Write the runs and curves of every published study into a folder; lines of Markdown that link them."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for study in loaded_studies():
        name, runs = study.folder.name, load_runs(study, PUBLISHED)
        if runs.empty:
            continue
        curves = load_runs(study, PUBLISHED, table="curves")
        runs.to_csv(folder / f"{name}-runs.csv", index=False)
        runs.to_parquet(folder / f"{name}-runs.parquet", index=False)
        curves.to_parquet(folder / f"{name}-curves.parquet", index=False)
        links = [
            f"{{download}}`{table} ({kind}) <{folder.as_posix()}/{name}-{table}.{kind}>`"
            for table, kind in (("runs", "csv"), ("runs", "parquet"), ("curves", "parquet"))
        ]
        lines.append(f"- `{name}` ({len(runs):,} runs, {len(curves):,} evaluations): {', '.join(links)}")
    return "\n".join(lines)


# --- what people wrote down, and what no run decides


def kept_table(name: str) -> Searchable:
    """A table that is kept by hand, `book/tables/NAME.csv`, as it stands there."""
    return Searchable(pd.read_csv(workspace() / "book/tables" / f"{name}.csv", keep_default_na=False))


def slips_table() -> Searchable:
    """Claims that no run decides, a row each: misprints and oddities, what is counted, and what was only read."""
    found, rows, links = verdicts_by_id(verdict_rows()), [], []
    for name, claim in claims().items():
        if claim.rule:
            continue
        said, kind = found[name], _kind_of(name, bool(claim.documentary))
        rows.append(
            {
                "id": name,
                "what": kind,
                "as we read it": claim.says,
                "where": claim.where,
                "quotation": claim.quote and f"“{claim.quote}”",
                "verdict": said.word if kind == COUNTED else "",
                "what shows it": f"read: {said.counts}" if claim.documentary else said.counts,
            }
        )
        links.append(f"claims.html#{name.lower()}")
    return Searchable(pd.DataFrame(rows), links)


def _kind_of(name: str, documentary: bool) -> str:
    if name.startswith(ODDITY):
        return "misprint or oddity"
    return "read" if documentary else COUNTED
