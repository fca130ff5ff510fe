"""`fpt advise` beside what people start with, in the same minutes:

    OMP_WAIT_POLICY=PASSIVE python -m fpt.advise.bench --minutes 10 NAME ...

The variable is what the command sets by itself: here torch is loaded before anything could set it.
Six data sets, two of texts, two of images and two tables. On each, `fpt advise` answers; then logistic regression on
embeddings, and TF-IDF with a linear SVM or boosted trees, each with a setting that cross-validation chooses, answer for
the same test examples of the same seeds. Rows of a data set in runs/bench/published/advise.csv are replaced.
"""

import argparse
import contextlib
import json
import os
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from rich.console import Console
from threadpoolctl import threadpool_limits

from fpt import tasks
from fpt.advise import report, verdict, words
from fpt.advise.baselines import TFIDF, TREES, data_of, models
from fpt.advise.request import PROBE, SAMPLES, Request, request, task_and_model
from fpt.advise.studies import finished_arms, read_baselines, test_answers
from fpt.advise.work import Work
from fpt.files import workspace, write_atomically
from fpt.results.estimate import POINTS

if TYPE_CHECKING:
    from fpt.tasks.task import Task

FILE = Path("runs", "bench", "published", "advise.csv")
EMBEDDINGS = "embeddings with logistic regression"
OURS = "fpt advise"
FOLDS, CHOOSES = 3, 900  # cross-validation, on the training examples of a tuning seed
MNIST_IMAGES = 5_000
# Settings of each, the usual one first: as many are tried as the minutes have room for
STRENGTHS, PLANES, RATES = (1.0, 0.1, 0.01, 10.0, 0.001), (1.0, 0.3, 3.0, 0.1, 10.0), (0.1, 0.03, 0.3)

console = Console(highlight=False)

Fit = Callable[[float], Any]  # a setting -> a classifier of scikit-learn
Read = Callable[[int], tuple[Any, Any, Any, Any]]  # a seed -> training inputs and classes, test inputs and classes


@dataclass(frozen=True)
class Rival:
    """What answers beside us: how a seed's examples are read, its settings, and the classifier of one."""

    name: str
    read: Read
    settings: tuple[float, ...]
    fit: Fit


def banking77(place: Path) -> tuple[str, str, dict[str, Any]]:
    """A CSV of the queries: its name, the backbone, and options of the command."""
    parts = [pd.read_csv(tasks.data_folder() / f"intents/banking77_{part}.csv") for part in ("train", "test")]
    pd.concat(parts).to_csv(place / "banking77.csv", index=False)
    return "banking77.csv", "minilm", {"target": "category"}


def clinc150(place: Path) -> tuple[str, str, dict[str, Any]]:
    """A CSV of the queries that are within its 150 intents."""
    parts = json.loads((tasks.data_folder() / "intents/clinc150_full.json").read_text())
    rows = [row for part in ("train", "val", "test") for row in parts[part]]
    pd.DataFrame(rows, columns=["text", "intent"]).to_csv(place / "clinc150.csv", index=False)
    return "clinc150.csv", "minilm", {"target": "intent"}


def digits(place: Path) -> tuple[str, str, dict[str, Any]]:
    """PNG images of scikit-learn's digits, a folder a class."""
    from sklearn.datasets import load_digits

    data = load_digits()
    _images(place / "digits", (data.images * 255 / 16).round(), data.target)  # 16 is white
    return "digits", "tiny-lm", {"size": 8, "patch": 2}


def mnist(place: Path) -> tuple[str, str, dict[str, Any]]:
    """PNG images of the first of MNIST's training images, a folder a class."""
    data: Any = tasks.load("mnist").data
    _images(place / "mnist", data.train.inputs[:MNIST_IMAGES].numpy(), data.train.targets[:MNIST_IMAGES, 0].numpy())
    return "mnist", "tiny-lm", {"size": 28, "patch": 4}


def breast_cancer(place: Path) -> tuple[str, str, dict[str, Any]]:
    """A CSV of scikit-learn's table."""
    return _table(place, "breast_cancer")


def wine(place: Path) -> tuple[str, str, dict[str, Any]]:
    """A CSV of scikit-learn's table."""
    return _table(place, "wine")


DATA = {made.__name__: made for made in (banking77, clinc150, digits, mnist, breast_cancer, wine)}


def _table(place: Path, name: str) -> tuple[str, str, dict[str, Any]]:
    from sklearn import datasets

    getattr(datasets, f"load_{name}")(as_frame=True).frame.to_csv(place / f"{name}.csv", index=False)
    return f"{name}.csv", "tiny-lm", {"target": "target"}


def _images(place: Path, images: Any, labels: Any) -> None:
    """Images (n, side, side) of 0 to 255."""
    from PIL import Image

    for number, (pixels, label) in enumerate(zip(images, labels, strict=True)):
        folder = place / str(label)
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.asarray(pixels).reshape(np.shape(pixels)[-2:]).astype(np.uint8)).save(
            folder / f"{number:05}.png"
        )


def rivals(task: "Task", wanted: Request) -> list[Rival]:
    """What a task is compared with."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    def logistic(strength: float) -> Any:
        return make_pipeline(StandardScaler(), LogisticRegression(C=strength, max_iter=2_000))

    def planes(strength: float) -> Any:
        return models(task)[TFIDF]().set_params(linearsvc__C=strength)

    def trees(rate: float) -> Any:
        return HistGradientBoostingClassifier(learning_rate=rate, random_state=0)

    def plain(seed: int) -> tuple[Any, Any, Any, Any]:
        return data_of(task, seed, SAMPLES["test_examples"])

    embedded = Rival(EMBEDDINGS, embeddings(task, wanted), STRENGTHS, logistic)
    return [embedded, Rival(TFIDF, plain, PLANES, planes) if task.texts else Rival(TREES, plain, RATES, trees)]


def embeddings(task: "Task", wanted: Request) -> Read:
    """What reads features (n, width) of the frozen model, the same that the probe reads."""
    from fpt.training.features import features_of
    from fpt.training.fleet import Fleet
    from fpt.training.loop import find_device
    from fpt.training.measures import numbered

    arm = finished_arms(wanted.study)[PROBE].spec
    template, device = task_and_model(arm, task)[1], find_device()

    def read(seed: int) -> tuple[Any, Any, Any, Any]:
        fleet = Fleet(task, template, arm.recipe, [1.0], [seed], device)
        examples, twin = features_of(fleet, [seed])[seed].train, numbered(task.split(seed))
        parts = [twin.train_sample(len(examples)), twin.test_sample(SAMPLES["test_examples"])]
        found = []
        for part in parts:
            rows = examples[part.inputs.to(device)]
            found += [rows.inputs[:, 0].float().cpu().numpy(), rows.targets[:, 0].cpu().numpy()]
        return found[0], found[1], found[2], found[3]

    return read


def chosen(rival: Rival, deadline: float) -> float:
    """The setting with the best mean accuracy of cross-validation; as many are tried as leave time for the fits of the
    seeds that report."""
    from sklearn.model_selection import cross_val_score

    x, y, *_ = rival.read(CHOOSES)
    scores: dict[float, float] = {}
    for setting in rival.settings:
        began = time.monotonic()
        scores[setting] = float(np.mean(cross_val_score(rival.fit(setting), x, y, cv=FOLDS)))
        took = time.monotonic() - began
        if time.monotonic() + 4 * took > deadline:  # another one, and what reports: five fits of all rows
            break
    return max(scores, key=lambda setting: scores[setting])


def answers(rival: Rival, setting: float, task: "Task", seeds: int) -> pd.DataFrame:
    """What it predicts for the test examples of the seeds that report: columns seed, example, target, predicted."""
    from fpt.training.measures import numbered

    frames = []
    for seed in range(seeds):
        x, y, x_test, y_test = rival.read(seed)
        asked = numbered(task.split(seed)).test_sample(SAMPLES["test_examples"]).inputs.numpy()
        columns = {"example": asked, "target": y_test, "predicted": rival.fit(setting).fit(x, y).predict(x_test)}
        frames.append(pd.DataFrame({"seed": seed} | columns))
    return pd.concat(frames, ignore_index=True)


@dataclass
class Clock:
    """Wall time and processor time of what is done since it was made, and how busy the machine is."""

    def __post_init__(self) -> None:
        self.wall, self.processor = time.monotonic(), time.process_time()
        self.load = os.getloadavg()[0]

    def read(self) -> dict[str, float]:
        """Columns of the file. `load`: processes that wait for a core or have one, the mean of both ends, a core."""
        load = (self.load + os.getloadavg()[0]) / 2 / (os.cpu_count() or 1)
        spent = {"wall_minutes": (time.monotonic() - self.wall) / 60, "load": load}
        return {"processor_seconds": round(time.process_time() - self.processor)} | {
            name: round(value, 1) for name, value in spent.items()
        }


def compared(name: str, minutes: float) -> pd.DataFrame:
    """The rows of a data set, in the working directory: ours first."""
    data, backbone, options = DATA[name](Path())
    wanted, clock = request(data, backbone, None, root=Path(), minutes=minutes, options=options), Clock()
    Path("runs").mkdir(exist_ok=True)
    Work(wanted, partial(console.print, markup=False, soft_wrap=True)).run()
    found = report.finished(wanted)
    spent = clock.read()
    arms = finished_arms(wanted.study)
    advised = found.advised or PROBE
    kept = read_baselines(wanted.study)
    own = test_answers(arms[advised]) if advised in arms else kept[kept["baseline"] == advised]
    task, examples = task_and_model(arms[PROBE].spec)[0], arms[PROBE].sampled_from
    rows = [row(OURS, words.label(advised), own, own, examples, wanted) | spent]
    for rival in rivals(task, wanted):
        console.print(rival.name)
        clock = Clock()
        task.features.clear()
        with warnings.catch_warnings(), threadpool_limits(1):
            warnings.simplefilter("ignore")  # of classes with fewer examples than folds
            setting = chosen(rival, clock.wall + 60 * minutes)
            theirs = answers(rival, setting, task, wanted.seeds)
        rows.append(row(rival.name, f"{setting:g}", theirs, own, examples, wanted) | clock.read())
    about = {"data": name, "backbone": backbone, "date": time.strftime("%Y-%m-%d"), "minutes": minutes}
    return pd.DataFrame([about | each for each in rows])


def row(
    what: str, setting: str, answers: pd.DataFrame, ours: pd.DataFrame, examples: float, wanted: Request
) -> dict[str, Any]:
    """Accuracy in percent with its interval, and the points above what `fpt advise` advised with theirs."""
    value, low, high = verdict.candidate(what, answers, examples, None, wanted).scores[wanted.metric]
    apart = verdict.difference(answers, ours, wanted.metric, examples).scaled(100, POINTS)
    above = {} if what == OURS else {"above": apart.value, "above_low": apart.low, "above_high": apart.high}
    found = {"accuracy": value, "low": low, "high": high, **above}
    return {"what": what, "setting": setting} | {name: round(number, 3) for name, number in found.items()}


def main() -> None:
    """Measure the data sets that are named, or all six."""
    parser = argparse.ArgumentParser(prog="python -m fpt.advise.bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(DATA)}; default: all")
    parser.add_argument("--minutes", type=float, default=10.0, help="of each way, on each data set")
    asked = parser.parse_args()
    if unknown := set(asked.names) - set(DATA):
        parser.error(f"no data set {', '.join(sorted(unknown))}: there are {', '.join(DATA)}")
    path = workspace().absolute() / FILE
    for name in asked.names or DATA:
        with tempfile.TemporaryDirectory(prefix="fpt-bench-") as place, contextlib.chdir(place):
            rows = compared(name, asked.minutes)
        before = pd.read_csv(path) if path.is_file() else pd.DataFrame(columns=rows.columns)
        kept = [rows if each == name else before[before["data"] == each] for each in DATA]
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, pd.concat([each for each in kept if len(each)]).to_csv(index=False).encode())
        console.print(rows.to_string(index=False), markup=False, soft_wrap=True)


if __name__ == "__main__":
    main()
