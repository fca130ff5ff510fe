"""One's own data, and a new task, backbone, arm, study and paper, each one entry in one place, as a page promises."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import contract
import numpy as np
import pytest
import synthetic
import torch
from torch import Generator

import fpt
from fpt import papers
from fpt.claims.judge import every_question, judged
from fpt.errors import SpecError
from fpt.models import ARMS, BACKBONES, POLICIES, TRANSFORMER, Backbone, Treatment
from fpt.show import plot
from fpt.show.reference import named_on_pages
from fpt.sweeps.spec import resolve
from fpt.sweeps.study import load_study
from fpt.sweeps.words import labels, legends
from fpt.tasks import TASKS, Entry
from fpt.tasks.arrays import Examples
from fpt.tasks.task import Task


# A task: a function that gives a Task, and its entry.
def parity(data_dir: Path, variant: str, length: int) -> Task:
    def draw(count: int, generator: Generator) -> Examples:
        bits = torch.randint(0, 2, (count, length), generator=generator)
        return Examples(bits, bits.sum(1, keepdim=True) % 2)

    return Task(draw, vocabulary=2, classes=2)


PARITY = Entry(parity, "Parity of a bit string", options={"length": 6})

# A backbone: one row. Its family is a file of fpt/models/families.
NANO = Backbone("gpt2", {"n_embd": 16, "n_layer": 1, "n_head": 2}, layers=1, groups=TRANSFORMER, title="one layer")

STUDY = """
name: mine
defaults: {backbone: nano, steps: 2, learning_rates: [1e-3, 1e-2], extend: 0, seeds: [0], compute_type: float32}
sweeps:
  - {task: parity, task_options: {length: 4}, arm: [readout-random, unfrozen-random]}
  - {task: "npz:mine.npz", arm: frozen-random}
"""

# A paper: one file, with its rows, tables, printed numbers, claims and rules.
PAPER = """
name: toy
title: A toy paper
defaults: {backbone: tiny-lm}
rates: {default: 1e-3}
tasks: {digits: {}}
rows:
  frozen: {arm: frozen-pretrained}
  full: {arm: unfrozen-pretrained}
tables:
  toy-table:
    title: A toy table
    where: Table 1
    rows:
      frozen: {digits: 91.2}
      full: {digits: 80.5}
claims:
  T-01:
    says: Frozen beats full at its own rate.
    where: Table 1
    rule: {beats: [frozen, full], table: toy-table}
  T-02:
    says: Full beats frozen at the paper's rate.
    where: Table 1
    rule: {beats: [full, frozen], table: toy-table, at: paper}
  T-03:
    says: Nobody knows why.
    where: Section 9
    documentary: a sentence without a number
findings:
  toy-frozen: {question: Is it better to freeze?, by: T-01, claims: [T-01, T-02]}
  toy-why: {question: Why?, read: a sentence without a number, claims: [T-03]}
"""
PAPERS_STUDY = """
name: toy
paper: toy
defaults: {steps: 400, learning_rates: [1e-4, 1e-3, 1e-2, 1e-1], seeds: [0, 1, 2, 3, 4, 5, 6, 7],
           compute_type: float32}
"""
GRID = "learning_rates: [1e-3], seeds: [0]"
SHORT = "steps: 2, evaluations: 1, evaluation_examples: 20, budget_examples: 20, test_examples: 20, extend: 0"


@pytest.fixture(autouse=True)
def _extended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TASKS, "parity", PARITY)
    monkeypatch.setitem(BACKBONES, "nano", NANO)
    monkeypatch.setitem(POLICIES, "readout", ("output", "positions"))
    monkeypatch.setitem(
        ARMS, "readout-random", Treatment("random", "readout", "RR", "read-out, random", "#123456", "*")
    )


def test_an_arm_is_one_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says what trains; tables have its letters, and figures its colour."""
    made_up = Treatment("pretrained", ("output", "layer_norm"), "NP", "norms, pretrained", "#123456", "*")
    monkeypatch.setitem(ARMS, "norms-pretrained", made_up)
    (tmp_path / "study.yaml").write_text(
        "defaults: {steps: 2, evaluations: 1, learning_rates: [1e-3], extend: 0, seeds: [0], compute_type: float32}\n"
        "sweeps:\n  - {task: digits, arm: [norms-pretrained, frozen-pretrained]}\n"
    )
    study = load_study(tmp_path)
    assert set(labels(study.sweeps).values()) == {"NP", "FP"}
    assert study.sweeps[0].arm == "norms-pretrained"
    model = fpt.sweeps.prepare(study.sweeps[0]).template
    assert trained_groups(model) == {"output", "layer_norm"}
    fields = [{**spec.resolved(), "arm": spec.arm} for spec in study.sweeps]
    look, _ = plot.looks_of(fields)
    assert (look["color"], look["marker"], legends(fields)[0]) == ("#123456", "*", "norms, pretrained")


@pytest.mark.parametrize(
    ("listed", "pattern"),
    [
        ("biases", r"\.bias$"),
        ("layers: last 1", r"\.h\.3\."),
        ("layers: 1-2", r"\.h\.[12]\."),
        ("'*.h.[01].attn.c_attn.weight'", r"\.h\.[01]\.attn\.c_attn\.weight$"),
    ],
)
def test_what_trains_is_one_line_of_a_study_and_keeps_the_contract(
    listed: str, pattern: str, digits: Task, tmp_path: Path
) -> None:
    """Which names train is written here without the package; then the checks that every arm passes."""
    (tmp_path / "study.yaml").write_text(
        f"defaults: {{{SHORT}, learning_rates: [1e-3], seeds: [0], compute_type: float32}}\n"
        f"sweeps: [{{task: digits, init: pretrained, trainable: [output, {listed}, input]}}]\n"
    )
    (spec,) = load_study(tmp_path).sweeps
    assert resolve({**dict(spec), "init": None, "trainable": None, "arm": spec.arm}).hash == spec.hash
    template = fpt.models.build(digits, "tiny-lm", arm=spec.arm)
    inside = {name for name in template.shapes if re.search(pattern, name) and name.startswith("backbone.")}
    heads = {name for name in template.shapes if not name.startswith("backbone.")}
    assert set(template.trainable) == inside | heads
    assert inside
    contract.only_the_named_parameters_change(digits, template, spec.means.groups)
    contract.a_fleet_is_its_runs_one_at_a_time(digits, template, steps=2)
    assert len(fpt.sweeps.run_sweep(spec, tmp_path / spec.folder_name).runs) == 1
    assert (tmp_path / spec.folder_name / "result.json").is_file()


@pytest.mark.parametrize(
    ("trainable", "named"),
    [
        (["output", "atention"], ("atention", "attention", "layers: last 2")),
        (["output", "layers: lats 2"], ("lats 2", "layers: last 2")),
        (["output", "layers: 7"], ("layers: 7", "tiny-lm")),
        (["output", "*.key.*"], (r"*.key.*", "tiny-lm")),
        (["output", {"layer": 2}], ("trainable", "layers")),
    ],
)
def test_what_a_model_does_not_have_is_refused_by_name(trainable: Any, named: tuple[str, ...], digits: Task) -> None:
    fields = {"task": "digits", "trainable": trainable, "learning_rates": [1e-3], "seeds": [0]}
    with pytest.raises(SpecError) as refusal:
        fpt.models.build(digits, "tiny-lm", "pretrained", resolve(fields).trainable)
    assert all(each in str(refusal.value) for each in named)


def test_a_part_of_which_a_model_has_nothing_is_named_of_a_policy(
    digits: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(POLICIES, "mine", ("output", "*.key.*"))
    assert fpt.models.build(digits, "tiny-lm", "random", "mine").absent == ("*.key.*",)


def trained_groups(template: Any) -> set[str]:
    report = template.report()
    return set(report.index[report["trainable"] > 0])


def test_a_study_of_own_data_and_of_a_new_task_backbone_policy_and_arm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    images, labels = np.arange(100 * 64, dtype=np.uint8).reshape(100, 8, 8), np.arange(100) % 2
    np.savez("mine.npz", x_train=images, y_train=labels, x_test=images, y_test=labels)
    Path("study.yaml").write_text(STUDY)
    sweeps = load_study(tmp_path).sweeps
    assert [spec.arm for spec in sweeps] == ["readout-random", "unfrozen-random", "frozen-random"]
    for spec, trained in zip(sweeps[:2], ({"output", "positions"}, set(TRANSFORMER)), strict=True):
        prepared = fpt.sweeps.prepare(spec)
        task, template = prepared.task, prepared.template
        assert (task.title, task.tokens, template.layers) == ("Parity of a bit string", 4, 1)
        assert trained_groups(template) == trained
    results = [fpt.sweeps.run_sweep(spec) for spec in sweeps]
    for result in results:
        assert set(result.runs["learning_rate"]) == {1e-3, 1e-2}
        assert result.runs["test_accuracy"].between(0, 1).all()
    assert results[-1].info["data_checksum"] == fpt.files.sha256("mine.npz")


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A workspace, the working directory, with a paper and a study of it."""
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "toy.yaml").write_text(PAPER)
    monkeypatch.chdir(tmp_path)
    return synthetic.workspace(tmp_path, "toy", PAPERS_STUDY)


def test_a_paper_in_one_file_is_shown_and_its_claims_are_judged(toy: Path) -> None:
    cells = fpt.results.StudyCells(synthetic.finish(toy))
    assert cells.by_task(fpt.papers.table("toy-table"))["digits"]["frozen"].printed["digits"].value == 91.2
    found = judged([cells], every_question(by_runs=True), alone=True)
    ends = found[found["id"] == ""]
    words = ends[ends["claim"] != ""].set_index("claim")["word"]
    assert words[["T-01", "T-02", "T-03"]].tolist() == ["does not hold here", "holds here", "read, not tested"]
    of_claims = ends[ends["claim"].str.startswith("T-")]
    assert of_claims["finding"].tolist() == ["toy-frozen", "toy-frozen", "toy-why"]
    of_findings = ends[ends["claim"] == ""].set_index("finding")["word"]
    assert of_findings[["toy-frozen", "toy-why"]].tolist() == ["does not hold here", "read, not tested"]


def test_the_paper_and_the_study_of_the_book_are_taken_as_they_stand_there(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (root / "book" / "extend.md").read_text()
    blocks = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    paper, study = (next(block for block in blocks if block.startswith(word)) for word in ("name: ", "paper: "))
    folder = synthetic.workspace(tmp_path, "bitfit", study)
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "bitfit.yaml").write_text(paper)
    monkeypatch.chdir(tmp_path)
    read = load_study(folder)
    assert [spec.arm for spec in read.sweeps] == [
        "bitfit-pretrained", "unfrozen-pretrained", "input+layers: last 1+output-pretrained",
    ]  # fmt: skip
    assert {planned.row for planned in read.planned(papers.table("bitfit-table"))} == {"bitfit", "full", "last"}
    assert read.file.asks == ["Z-01"]
    of_an_arm = next(block for block in blocks if "*.attn.*" in block)
    (folder / "study.yaml").write_text(f"defaults: {{compute_type: float32, {GRID}}}\n{of_an_arm}")
    assert len({spec.hash for spec in load_study(folder).sweeps}) == 3


def test_sentences_of_the_book_on_how_studies_were_run_do_not_speak_of_a_readers_own(
    toy: Path, monkeypatch: pytest.MonkeyPatch, root: Path
) -> None:
    monkeypatch.chdir(root)
    ours = [SimpleNamespace(name=name) for name in ("heads", "plane-mnist", "whole-smollm2", "small-text", "alpha")]
    own: Any = SimpleNamespace(name=toy.name)  # with one fixed grid, say
    assert named_on_pages([*ours, own]) == ours


def test_the_rows_of_a_paper_are_run(toy: Path) -> None:
    text = (toy / "study.yaml").read_text()
    (toy / "study.yaml").write_text(text.replace("steps: 400", SHORT).replace(", 5, 6, 7]", "]"))
    study = load_study(toy)
    for spec in study.serving("toy-table"):
        fpt.sweeps.run_sweep(spec, toy / spec.folder_name)
    cells = fpt.results.StudyCells(toy).by_task(papers.table("toy-table"))["digits"]
    assert {row: len(cell.arm.values("tuned")) for row, cell in cells.items()} == dict.fromkeys(("frozen", "full"), 5)
    rows = judged([fpt.results.StudyCells(toy)], [papers.claims()["T-02"]], alone=True)
    shown = rows[rows["id"] != ""]
    assert set(shown[["seeds", "steps", "scale", "task"]].itertuples(index=False, name=None)) == {
        (5, 2, "paper", "digits")
    }


# What a paper of one's own holds, in a workspace: its arm, with a name, a row and a claim.
BITFIT = """
name: zaken2022
title: BitFit
defaults: {backbone: tiny-lm}
tasks: {digits: {}}
arms:
  bitfit-pretrained:
    {init: pretrained, trainable: [input, output, biases], letters: BF, label: biases, colour: "#123456"}
rows:
  bitfit: {arm: bitfit-pretrained}
  last: {init: pretrained, trainable: [input, output, layers: last 1]}
tables:
  zaken-table: {title: Biases, where: Table 1, rows: {bitfit: {digits: 80.0}, last: {digits: 79.0}}}
claims:
  Z-01: {says: Biases beat the last layer., where: Table 1, rule: {beats: [bitfit, last], table: zaken-table}}
findings:
  zaken: {question: Are biases enough?, by: Z-01, claims: [Z-01]}
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace, the working directory, whose study trains the rows of its own paper; returns the study's folder."""
    folder = synthetic.workspace(
        tmp_path, "bitfit", PAPERS_STUDY.replace("toy", "zaken2022").replace("zaken2022\npaper", "bitfit\npaper")
    )
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "zaken2022.yaml").write_text(BITFIT)
    monkeypatch.chdir(tmp_path)
    return folder


def test_a_paper_with_its_arm_and_study_is_two_files_of_ones_own(own: Path) -> None:
    first, second = load_study(own).sweeps
    assert (first.arm, first.folder_name.startswith("digits.bitfit-pretrained-")) == ("bitfit-pretrained", True)
    assert second.folder_name.startswith("digits.input+layers_last_1+output-pretrained-")
    assert fpt.models.arm("BF") == fpt.models.arm("bitfit-pretrained")
    fields = [{**spec.resolved(), "arm": spec.arm} for spec in (first, second)]
    assert (plot.looks_of(fields)[0]["color"], legends(fields)[0]) == ("#123456", "biases")
    peaks = {first.arm: 0.9, second.arm: 0.6}

    def accuracy(spec: Any, rate: float, seed: int) -> float:
        return peaks[spec.arm] - 0.1 * abs(np.log10(rate / 1e-3)) - 0.01 * (seed % (2 if spec == first else 3))

    synthetic.finish(own, accuracy=accuracy)
    cells = fpt.results.StudyCells(own)
    rows = judged([cells], [papers.claims()["Z-01"]], alone=True)
    assert rows.loc[rows["id"] == "", "word"].tolist() == ["holds here"]


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("letters: BF", "lettres: BF", ("lettres", "letters", "papers/zaken2022.yaml")),
        ("[input, output, biases]", "[input, bias]", ("'bias'", "biases", "papers/zaken2022.yaml")),
        (
            "init: pretrained, trainable: [input, output, biases]",
            "init: trained, trainable: all",
            ("trained", "random"),
        ),
        ("letters: BF", "letters: FP", ("FP", "papers/zaken2022.yaml")),
        ("  bitfit-pretrained:", "  frozen-random:", ("frozen-random",)),
        ("arms:", "amrs:", ("amrs", "papers/zaken2022.yaml")),
    ],
)
def test_an_arm_of_ones_own_that_is_none_is_refused_by_name(
    own: Path, old: str, new: str, named: tuple[str, ...]
) -> None:
    path = own.parents[1] / "papers" / "zaken2022.yaml"
    path.write_text(BITFIT.replace(old, new))
    with pytest.raises(SpecError) as refusal:
        load_study(own)
    assert all(each in str(refusal.value) for each in named), refusal.value


OWN_TASK = """
import torch
from fpt.tasks import Entry
from fpt.tasks.arrays import Examples
from fpt.tasks.task import Task


def parity(data_dir, variant, length):
    def draw(count, generator):
        bits = torch.randint(0, 2, (count, length), generator=generator)
        return Examples(bits, bits.sum(1, keepdim=True) % 2)

    return Task(draw, vocabulary=2, classes=2)


TASK = Entry(parity, "Parity of bits", options={"length": 6}, classes=2)
"""


def test_a_task_of_ones_own_is_a_file_that_runs_where_it_is_asked_for(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = own.parents[1]
    (root / "tasks").mkdir()
    file = root / "tasks" / "bits-parity.py"
    file.write_text(OWN_TASK)
    fields = {
        "task": "bits-parity", "task_options": {"length": 4}, "arm": "frozen-random", "learning_rates": [1e-3],
        "seeds": [0], "steps": 2, "evaluations": 1, "evaluation_examples": 20, "budget_examples": 20,
        "test_examples": 20,
    }  # fmt: skip
    with pytest.raises(SpecError, match="FPT_TASKS=tasks"):
        resolve(fields)
    monkeypatch.setenv("FPT_TASKS", "tasks")
    spec = resolve(fields)
    assert fpt.sweeps.run_sweep(spec).info["spec"]["task"] == "bits-parity"
    file.write_text(OWN_TASK + "\n# changed\n")
    assert resolve(fields).hash != spec.hash  # its code is part of what is trained
    file.write_text("TASK = 3")
    with pytest.raises(SpecError, match=r"bits-parity\.py.*TASK"):
        resolve(fields)
