"""What a person can do wrong at each door, and what the refusal names: before anything is trained or written.

One table a door, in this order: own data (as `fpt advise` meets them), the command line, a study file, the weights of
others, the parameters of a notebook, the environment. Damaged results have a table of their own, of which every command
is tried (test_results.py), and so has a machine that fails (test_machine.py). What is wrong in a table, an archive or a
tokenizer by itself is tested beside its reader, in tests/tasks/ and tests/models/.
"""

import json
import os
import shlex
from pathlib import Path

import numpy as np
import own_tokenizer
import pandas as pd
import pytest
import torch
from refusal import refused
from small_models import GPT2, added, configured, edited, filled, save_model, typed, without
from small_studies import PLAIN, workspace
from typer.testing import CliRunner

from fpt.cli import app
from fpt.errors import SpecError
from fpt.sweeps import check_parameters, parameters_to_spec

# --- own data, and what is asked of them

ROWS = 40


def table():
    pd.DataFrame({"x": np.arange(ROWS) % 7, "label": np.arange(ROWS) % 2}).to_csv("data.csv", index=False)


def cyrillic():
    table()
    Path("data.csv").rename("данные.csv")


def texts():
    """Texts, and a model with a tokenizer."""
    own_tokenizer.texts().to_csv("data.csv", index=False)
    own_tokenizer.save(Path("model"))


def numbers_and_tokenizer():
    texts()
    table()


def another_request():
    table()
    Path("runs/advise-data").mkdir()
    Path("runs/advise-data/advise.json").write_text(json.dumps({"task": "csv:other.csv"}))
    Path("runs/advise-data/study.yaml").touch()  # planned


def a_study_of_the_name():
    table()
    Path("runs/advise-data").mkdir()
    Path("runs/advise-data/study.yaml").touch()


def one_class():
    pd.DataFrame({"x": np.arange(ROWS) % 7, "label": 1}).to_csv("data.csv", index=False)


def classes_of_one():
    pd.DataFrame({"x": [2, 1, 2, 1, 2], "label": list("abcde")}).to_csv("data.csv", index=False)


def images(*classes, text=False):
    """A folder of images by class, each of which is a pipe, or a text."""
    for name in classes:
        Path("images", name).mkdir(parents=True)
        if text:
            for number in range(4):
                Path("images", name, f"{number}.png").write_text("no pixels")
        else:
            os.mkfifo(Path("images", name, "pipe.png"))


def circle():
    """A folder with one class, and a link to itself."""
    Path("images/a").mkdir(parents=True)
    Path("images/b").symlink_to(".")


def colours_the_screen():
    """The name of a class that a terminal would obey."""
    pd.DataFrame({"x": np.arange(ROWS) % 7, "label": ["\x1b[31mred", *"ab" * 19, "a"]}).to_csv("data.csv", index=False)


OURS = "advise data.csv --backbone hub:model"
OWN_DATA = {
    "nothing there": (list, "advise data", ("data", "no such file")),
    "the tokenizer of a model of bytes": (texts, "advise data.csv --tokenizer own", ("tiny-lm", "hub:PATH")),
    "a tokenizer for numbers": (numbers_and_tokenizer, f"{OURS} --tokenizer own", ("tokenizer is own", "no table")),
    "tokens of numbers": (table, "advise data.csv --tokens 9", ("tokens is 9", "no table of texts")),
    "another kind of file": (lambda: Path("data.pdf").touch(), "advise data.pdf", ("data.pdf", ".csv")),
    "an option of another kind of data": (table, "advise data.csv --size 8", ("--size", "target")),
    "minutes that are no number": (table, "advise data.csv --minutes nan", ("--minutes",)),
    "a tolerance that is no number": (table, "advise data.csv --tolerance nan", ("--tolerance",)),
    "a name without ASCII letters": (cyrillic, "advise данные.csv", ("данные", "--name")),
    "a pipe for an image": (lambda: images("a", "b"), "advise images", ("images/a/pipe.png", "pipe")),
    "a folder that holds itself": (circle, "advise images", ("images", "'a' alone")),
    "several classes an example": (list, "advise bit-xor", ("bit-xor", "each of one class")),
    "the next byte of a text": (list, "advise text", ("text", "one class an example")),
    "no such model": (table, "advise data.csv --backbone tiny-ml", ("'tiny-ml'", "'tiny-lm'")),
    "a model of another's study": (table, "advise data.csv --backbone hub:nowhere", ("nowhere", "config.json")),
    "a class in every row": (classes_of_one, "advise data.csv", ("column label", "two rows")),
    "a text for an image": (lambda: images("a", "b", text=True), "advise images", ("0.png", "no format of an image")),
    "a path longer than the system has": (
        table,
        f"advise data.csv --backbone hub:{'x' * 5000}",
        ("there is no folder",),
    ),
    "one class alone": (one_class, "advise data.csv", ("data.csv", "the class 1 alone")),
    "a class whose name colours the screen": (colours_the_screen, "advise data.csv", (r"class \x1b[31mred", "1 rows")),
    "no such metric": (table, "advise data.csv --metric f1", ("f1", "macro-f1")),
    "no such arm": (table, "advise data.csv --arms full,frozne", ("frozne",)),
    "a name that is no folder": (table, "advise data.csv --name ../there", ("--name",)),
    "a study of the name": (a_study_of_the_name, "advise data.csv", ("runs/advise-data", "did not write", "--name")),
    "another request of the name": (
        another_request,
        "advise data.csv",
        ("runs/advise-data", "csv:other.csv", "--name"),
    ),
}

# --- the command line: all but those of `fpt models` in a workspace with a study

MODELS = {
    "a backbone without matrices": ("--backbone lstm --arm lora-random", ("'lstm'", "adapters", "recurrent")),
    "targets that do not exist": ("--backbone tiny-lm --arm lora-random --targets all", ("targets", "feed_forward")),
    "no examples": ("--backbone tiny-lm --arm lora-random --batch-size 0", ("batch_size",)),
    "a backbone that cannot read the task": ("--task text --backbone minilm", ("'minilm'",)),
    "no such backbone": ("--backbone gtp2", ("'gtp2'", "'gpt2'")),
    "no such task": ("--task digit", ("'digit'", "'digits'")),
    "no such arm": ("--backbone tiny-lm --arm frozn", ("'frozn'", "frozen")),
    "no layers": ("--backbone tiny-lm --arm FP --layers 0", ("--layers",)),
    "more layers than there are": ("--backbone tiny-lm --arm FP --layers 5", ("layers", "5")),
    "rank without an arm": ("--backbone tiny-lm --rank 4", ("--rank", "--arm")),
    "an arm of every backbone": ("--arm lora-random", ("--backbone",)),
}

COMMANDS = {
    "no such command": ("rum mine", ("rum",)),
    "no such option": ("run mine --onyl digits", ("--onyl",)),
    "no threads": ("run mine --threads 0", ("--threads",)),
    "a name that is no folder": ("init --name a/b", ("'a/b'",)),
    "a study that is there": ("init --name another", ("runs/another/study.yaml", "fpt run another")),
    "a screen for programs": ("status mine --watch --json", ("--watch", "--json")),
    "a value of no column": ("compare a.csv --where lr", ("--where lr", "COLUMN=VALUE")),
    "no such cell to measure": ("bench --cell tiny-lm/digits", ("tiny-lm/digits", "RUNS")),
    "no such study": ("run mien", ("'mien'", "mine")),
    "no such engine": ("run mine --engine slurm", ("--engine", "slurm", "ray")),
    "an address without Ray": ("run mine --address head:6379", ("--address head:6379", "--engine ray")),
    "a dry run with threads": ("run mine --smoke --threads 2", ("--smoke", "--threads")),
    "a dry run on Ray": ("run mine --smoke --engine ray", ("--smoke", "--engine")),
    "a dry run with an address": ("run mine --smoke --address here:1", ("--smoke", "--address")),
    "an empty name of a study": ("judge ''", ("judge", "empty")),
    "an empty name of a column": ("compare a.csv --pair ''", ("--pair", "empty")),
    "an empty word after a sign": ("plan mine --only=", ("--only=", "empty")),
    "nothing of a kind that is listed": ("list papers", ("papers", "studies", "claims")),
    "no such name in a list": ("list arms frozn-pretrained", ("'frozn-pretrained'", "'frozen-pretrained'")),
    "no such study to judge": ("judge mien", ("'mien'", "mine")),
    "a folder that is no study": ("judge .", ("'.'", "mine")),
    "nothing to judge": ("judge mine", ("mine", "fpt run mine")),
    "no such table": ("plan mine --only lu-table-8", ("lu-table-8", "digits")),
    "another workspace that is none": ("plan mine --root /usr", ("--root", "/usr", "study.yaml", "fpt init")),
    "a report of nothing": ("report mine", ("mine", "no results", "fpt run mine")),
    "a report into no folder": ("report mine --output nowhere/a.html", ("--output", "nowhere/a.html")),
    "a report onto a folder": ("report mine --output runs", ("--output", "runs")),
    "a report over its study": ("report mine --output runs/mine/study.yaml", ("study.yaml", "lost", ".html")),
    "a page over a study": ("compare a.csv --page runs/mine/study.yaml", ("study.yaml", "lost")),
    "a report that cannot be written": ("report mine --output /proc/a.html", ("/proc", "cannot be written")),
    "nothing to publish": ("publish", ("STUDY", "--mapping")),
    "a study and all of them": ("publish mine --mapping", ("STUDY", "--mapping")),
    "a part of all of them": ("publish --mapping --partial", ("STUDY", "--mapping")),
    "nothing is finished": ("publish mine", ("1 of 1", "fpt run mine", "--partial")),
    "no part is finished": ("publish mine --partial", ("mine", "nothing to publish")),
    "no table of results": ("compare results.csv", ("results.csv", "no such file")),
    "a page into no folder": ("compare results.csv --page nowhere/a.html", ("--page", "nowhere/a.html")),
}

# --- study files: what they are, and where something has no effect, or what is compared cannot be

FILE = "runs/mine/study.yaml"
SWEEPS = PLAIN.partition("sweeps:")[0] + "sweeps:\n"
VERBATIM = PLAIN.partition("sweeps:")[0].replace("backbone: tiny-lm, ", "") + "paper: rothermel2021\n"


def field(text):
    """The plain study with another field in its only sweep."""
    return f"{SWEEPS}  - {{task: digits, arm: frozen-pretrained, {text}}}\n"


STUDIES = {
    "a stand-in for nobody": (PLAIN + "stands_for: {gtp2: tiny-lm}", ("stands_for", "gtp2", "gpt2")),
    "a stand-in that does not exist": (PLAIN + "stands_for: {gpt2: tiny-ml}", ("stands_for", "tiny-ml", "tiny-lm")),
    "a stand-in that is not trained": (PLAIN + "stands_for: {mnist: digits-lra}", ("stands_for", "digits-lra")),
    "a stand-in of another kind": (PLAIN + "stands_for: {gpt2: digits}", ("stands_for", "digits")),
    "a task with options for a task": (PLAIN + "stands_for: {mnist: {task: digits}}", ("stands_for", "mnist")),
    "a model without a name for a model": (
        PLAIN + "stands_for: {gpt2: {layers: 2}}",
        ("stands_for", "gpt2", "backbone"),
    ),
    "another arm for a row": (PLAIN + "stands_for: {FPT: {arm: frozen-random}}", ("stands_for", "FPT", "arm")),
    "a name for a row": (PLAIN + "stands_for: {LSTM: tiny-lm}", ("stands_for", "LSTM", "fields")),
    "a stand-in with another size": (
        PLAIN + "stands_for: {gpt2: {backbone: tiny-lm, layers: 2}}",
        ("stands_for", "gpt2", "'layers': 2"),
    ),
    "a stand-in that is neither name nor fields": (PLAIN + "stands_for: {gpt2: 5}", ("stands_for", "gpt2", "5")),
    "a misspelt field for a row": (PLAIN + "stands_for: {LSTM: {widht: 3}}", ("stands_for", "LSTM", "widht", "width")),
    "no such cell to leave out": (PLAIN + "leaves_out: [lu-table-99/*]", ("leaves_out", "lu-table-99")),
    "a stand-in in a table of a paper": (VERBATIM + "stands_for: {gpt2: tiny-lm}", ("rothermel2021", "sweeps")),
    "another model for a table of a paper": (
        VERBATIM.replace("steps: 3", "steps: 3, backbone: tiny-lm"),
        ("backbone", "tiny-lm", "rothermel2021"),
    ),
    "another task under a task": (PLAIN + "tasks: {digits: {task: bit-xor}}", ("tasks of", "digits", "'bit-xor'")),
    "evaluations without end": (field("evaluations: 2147483647"), ("evaluations", "10000")),
    "what is no longer a field": (PLAIN + "replace: []", ("replace", "stands_for")),
    "unequal budgets by sweeps": (
        "stands_for: {gpt2: tiny-lm}"
        f"{SWEEPS}  - {{task: digits, arm: frozen-pretrained}}\n  - {{task: digits, arm: frozen-random, steps: 6}}\n",
        ("steps", "after 3", "after 6"),
    ),
    "a number with a leading zero": (field("steps: 010"), ("line 4", "010", "eight")),
}
RATES = "learning_rates: [1e-3], seeds: [0]"
GOOD = f"{RATES}, compute_type: float32"
HUNDREDS = [number / 100 for number in range(100)]


def sweeps(*fields):
    """A study of sweeps that have these fields, and no others but what each needs."""
    return f"sweeps: [{', '.join(f'{{{each}, {GOOD}}}' for each in fields)}]"


STUDIES |= {
    # the document
    "nothing": ("", ("empty",)),
    "no YAML": ("a: [", ("not YAML",)),
    "no day of the calendar": ("name: 2021-13-45\nsweeps: []", ("not YAML",)),
    "a number of 5,000 digits": (f"name: {'9' * 5000}\nsweeps: []", ("not YAML",)),
    "aliases of aliases": (
        "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40)),
        ("more than 100,000 values",),
    ),
    "500 lists in each other": ("sweeps: " + "[" * 500 + "]" * 500, ("nested too deeply",)),
    "a word": ("just words", ("must be a mapping",)),
    "a program": ("sweeps: [!!python/object/apply:os.system [ls]]", ("constructor for the tag", "os.system")),
    "a field twice": ("sweeps: [{task: digits, task: mnist}]", ("line 1", 'duplicate key "task"')),
    # its fields
    "a name alone": ("name: x", ("no sweeps",)),
    "a misspelt field": ("sweps: []", ("'sweps'", "line 1", "Did you mean 'sweeps'")),
    "a word for a sweep": ("sweeps: [digits]", ("line 1", "sweeps[0] = 'digits'", "mapping")),
    "tables of nobody": ("tables: [a]\n" + sweeps("task: digits"), ("tables are of a paper",)),
    "fields of no task of the study": ("tasks: {digit: {}}\n" + sweeps("task: digits"), ("'digit'", "tasks of")),
    "a misspelt field of a task": (
        "tasks: {digits: {step: 3}}\nsweeps: [{task: digits}]",
        ("'step'", "tasks of", "digits"),
    ),
    "no such claim": ("asks: [R-01, P-1]\n" + sweeps("task: digits"), ("'P-1'", "asks of", "Did you mean 'P-")),
    "no such paper": ("paper: rothermel", ("'rothermel'", "Did you mean 'rothermel2021'")),
    "no such table of the paper": ("paper: rothermel2021\ntables: [lu-table-1]", ("lu-table-1", "rothermel2021")),
    # a sweep
    "no task": (f"defaults: {{{GOOD}}}\nsweeps: [{{arm: frozen-random}}]", ("without a task", "sweep 1")),
    "no such task": (sweeps("task: digit"), ("'digit'", "digits", "sweep 1")),
    "no such backbone": (sweeps("task: digits, backbone: gtp2"), ("'gtp2'", "gpt2", "sweep 1")),
    "no such arm": (sweeps("task: digits, arm: frozn-random"), ("'frozn-random'", "sweep 1")),
    "two thresholds for one sweep": (
        sweeps("task: digits, threshold: 0.8", "task: digits, threshold: 0.9"),
        ("threshold", "0.8 and 0.9", "sweep 2"),
    ),
    "a list of no task": (sweeps("task: []"), ("task = []", "empty")),
    "a list of lists of tasks": (sweeps("task: [[digits]]"), ("task = ", "must be text")),
    "an arm that is empty": (sweeps("task: digits, arm: [frozen-random, null]"), ("arm = ", "empty")),
    "lists that make a billion sweeps": (
        sweeps(f"task: digits, dropout: {HUNDREDS}, warmup: {HUNDREDS}, weight_decay: {HUNDREDS}, clip: {HUNDREDS}"),
        ("sweep 1", "10,000", "100,000,000 sweeps"),
    ),
    "a number above its range": (sweeps("task: digits, extend: [0, 11]"), ("extend = 11", "10", "sweep 1")),
    "no number type": (f"sweeps: [{{task: digits, {RATES}}}]", ("number type", "defaults")),
    "no number type for a paper": (f"paper: rothermel2021\ndefaults: {{{RATES}}}", ("number type",)),
    "two number types": (
        f"sweeps: [{{task: digits, {GOOD}}}, {{task: mnist, {RATES}, compute_type: bfloat16}}]",
        ("bfloat16 and float32 are mixed",),
    ),
    "a number to measure": (sweeps("task: digits, measures: 5"), ("measures = 5", "list of names", "sweep 1")),
    "a list for an option": (
        sweeps("task: bit-xor, task_options: {length: [5, 10]}"),
        ("task_options.length = [5, 10]", "a number or text"),
    ),
    "a number for options": (sweeps("task: bit-xor, task_options: 5"), ("task_options = 5", "mapping", "sweep 1")),
    "a number for a group": (sweeps("task: digits, trainable: [3]"), ("trainable = [3]", "policy")),
    "a folder for a name of weights": (sweeps("task: digits, keep_as: a.b"), ("keep_as = 'a.b'", "name")),
    "a number for a name of weights": (sweeps("task: digits, pretrained_by: 1"), ("pretrained_by = 1", "sweep 1")),
    "weights from weights": (
        sweeps("task: digits, keep_as: mine, pretrained_by: bits"),
        ("keep_as = 'mine'", "sweep 1"),
    ),
    "an arm and its parts": (
        f"defaults: {{arm: unfrozen-pretrained}}\n{sweeps('task: digits, init: random')}",
        ("'unfrozen-pretrained'", "init = 'random'"),
    ),
}
OF_FILES = PLAIN.replace("task: digits", "task: mnist")
GONE = PLAIN.replace("{task: digits, arm: frozen-pretrained}", "{task: 'npz:mine.npz', arm: frozen-random}")

# --- folders of models that do not hold what they announce

MATRIX = "h.1.mlp.c_fc.weight"


def brackets(folder):
    (folder / "config.json").write_text("[" * 100_000)


WEIGHTS = {
    "no number": (edited(filled(MATRIX, float("nan"))), (MATRIX, "not finite")),
    "whole numbers": (edited(typed(torch.int8, MATRIX)), ("I8", MATRIX)),
    "a tensor more": (edited(added("h.0.attn.lora_A.weight", torch.zeros(32, 4))), ("h.0.attn.lora_A.weight",)),
    "another shape": (edited(added("wpe.weight", torch.zeros(32, 32))), ("wpe.weight", "(32, 32)", "(64, 32)")),
    "a tensor less": (edited(without(MATRIX)), (MATRIX, "lack")),
    "a layer less": (configured(n_layer=1), ("h.1.", "layers")),
    "a configuration of brackets": (brackets, ("config.json", "no JSON")),
    "no width": (configured(n_embd=0), ("config.json", "width 0", "100,000")),
    "a width without end": (configured(n_embd=10**9), ("config.json", "width 1000000000", "100,000")),
    "a number as text": (configured(n_head="2"), ("n_head", "int")),
    "layers that are no number": (configured(n_layer=True), ("config.json", "True")),
    "an activation that does not exist": (configured(activation_function="nope"), ("no 'nope' is known",)),
    "less than one head": (configured(n_head=-1), ("n_head -1", "1 or more")),
    "a table that fills the memory": (configured(n_positions=10**9), ("gpt2 architecture", "GiB of memory")),
    "heads that do not divide": (configured(n_head=3), ("n_head 3", "n_embd 32")),
    "fewer positions": (configured(n_positions=32), ("wpe.weight", "(64, 32)", "(32, 32)")),
}


def of_model(task="digits"):
    of_model = PLAIN.replace("tiny-lm", '"hub:model"').replace("task: digits", f"task: {task}")
    return of_model.replace("frozen-pretrained", "unfrozen-pretrained")


def planned(text):
    return lambda: workspace(Path.cwd(), text)


def pipe():
    Path("runs/mine").mkdir()
    os.mkfifo(FILE)


def spoilt(spoil):
    def arrange():
        save_model(Path("model"), "gpt2", **GPT2)
        spoil(Path("model"))
        workspace(Path.cwd(), of_model())

    return arrange


# --- papers of one's own, which no study trains

ROWS_OF = "name: mine\ntitle: Mine\nrates: {default: 1e-3}\ntasks: {digits: {}}\n"
PAPERS = {
    "a row of no arm": (ROWS_OF + "rows: {A: {arm: nope}}", "judge", ("papers/mine.yaml", "row A", "'nope'")),
    "a misspelt field of a row": (
        ROWS_OF + "rows: {A: {arm: FPT-nope, lern: 3}}",
        "list studies",
        ("papers/mine.yaml", "lern"),
    ),
    "a printed number that is none": (
        ROWS_OF + "rows: {A: {arm: FP}}\ntables: {t: {title: T, rows: {A: {digits: .nan}}}}",
        "list claims",
        ("papers/mine.yaml", "finite"),
    ),
    "a colour that is a word": (
        ROWS_OF + "arms: {mine: {init: random, trainable: fpt, colour: red}}",
        "list arms",
        ("mine", "'red'", "#RRGGBB"),
    ),
}


def paper(text):
    def arrange():
        Path("papers").mkdir()
        Path("papers/mine.yaml").write_text(text)

    return arrange


# --- parameters of notebooks, as papermill injects them

PARAMETERS = 'task, backbone, arm = "digits", "tiny-lm", "frozen-random"\nlearning_rates, seeds = [1e-3], [0]'
OF_A_SWEEP = {  # injected into notebooks/sweep
    "a misspelt parameter": ("lerning_rates = [1e-3]", ("'lerning_rates'", "'learning_rates'")),
    "an unknown task": ("task = 'digit'", ("'digit'", "'digits'")),
    "an unknown arm": ("arm = 'frozn-random'", ("'frozn-random'", "'frozen-random'")),
    "text for a number of steps": ("steps = 'many'", ("steps", "many")),
    "a share above 1": ("data_fraction = 2.0", ("data_fraction", "2.0")),
    "no seeds": ("seeds = []", ("seeds",)),
    "a seed twice": ("seeds = [0, 0]", ("seeds", "more than once")),
    "a rate below 0": ("learning_rates = [-1e-3]", ("learning_rates", "-0.001")),
    "an option of another task": ("task_options = {'length': 3}", ("length", "digits")),
}
OF_OTHERS = {  # into a notebook that declares steps: int
    "another name": ("nosuch = 1", ("'nosuch'", "steps")),
    "text": ("steps = 'many'", ("steps", "many")),
    "true": ("steps = True", ("steps", "True")),
    "a fraction": ("steps = 1.5", ("steps", "1.5")),
}

# --- the environment: variables, a workspace with a study, a command

OF_GPT2 = PLAIN.replace("tiny-lm", "gpt2")
OFFLINE = {"HF_HUB_OFFLINE": "1", "XDG_CACHE_HOME": "cache", "HF_HOME": "hub"}
ENVIRONMENT = {
    "no weights in the folder of weights": ({"FPT_WEIGHTS": "."}, OF_GPT2, "run mine", ("gpt2", "FPT_WEIGHTS")),
    "no folder of tasks": ({"FPT_TASKS": "nowhere"}, PLAIN, "plan mine", ("FPT_TASKS", "nowhere", "no folder")),
    "no weights without a network": (OFFLINE, OF_GPT2, "run mine", ("gpt2", "FPT_WEIGHTS")),
}

# --- all that is a command: door -> name -> what makes the place, the command, what its refusal names

DOORS = {
    "own data": OWN_DATA,
    "command line": {name: (list, f"models {words}", named) for name, (words, named) in MODELS.items()}
    | {name: (planned(PLAIN), words, named) for name, (words, named) in COMMANDS.items()},
    "study file": {name: (planned(text), "run mine", (FILE, *named)) for name, (text, named) in STUDIES.items()}
    | {
        "a dry run without its data": (planned(OF_FILES), "run mine --smoke", ("--smoke", "tests/data", "mnist")),
        "a pipe": (pipe, "run mine", (FILE, "no file")),
        "a batch above the split": (planned(field("batch_size: 5000")), "run mine", ("batch_size", "5000")),
        "data are gone": (planned(GONE), "status mine", ("mine.npz", FILE)),
    },
    "weights of others": {
        name: (spoilt(spoil), "run mine", ("model", *named)) for name, (spoil, named) in WEIGHTS.items()
    },
}
DOORS["papers of one's own"] = {name: (paper(text), words, named) for name, (text, words, named) in PAPERS.items()}
CASES = {f"{door}: {name}": case for door, cases in DOORS.items() for name, case in cases.items()}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """A workspace as working directory, with a study that no case names."""
    workspace(tmp_path, name="another", notebooks=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("case", CASES)
def test_it_is_refused_by_name_and_nothing_is_written(case, here):
    arrange, command, named = CASES[case]
    arrange()
    before = set(here.rglob("*"))
    refused(*shlex.split(command), named=named)
    assert set(here.rglob("*")) == before


@pytest.mark.parametrize("arrange", [one_class, table])
def test_advice_that_is_refused_leaves_no_workspace(arrange, tmp_path_factory, monkeypatch):
    monkeypatch.chdir(tmp_path_factory.mktemp("without"))
    arrange()
    refused("advise", "data.csv", "--backbone", "hub:model", named=("data.csv" if arrange is one_class else "model",))
    assert [each.name for each in Path.cwd().iterdir()] == ["data.csv"]


@pytest.mark.parametrize("case", OF_A_SWEEP)
def test_parameters_of_a_sweep(case):
    injected, named = OF_A_SWEEP[case]
    names = {"In": ["", PARAMETERS, injected, "spec = parameters_to_spec(globals())"]}
    exec(f"{PARAMETERS}\n{injected}", names)
    with pytest.raises(SpecError) as refusal:
        parameters_to_spec(names)
    assert all(each in str(refusal.value) for each in (*named, "notebook parameters")), str(refusal.value)


@pytest.mark.parametrize("case", OF_OTHERS)
def test_parameters_of_another_notebook(case):
    injected, named = OF_OTHERS[case]
    names = {"In": ["", "steps = 3", injected, "check_parameters(globals(), steps=int)"], "DATA_DIR": "/data"}
    exec(f"steps = 3\n{injected}", names)
    with pytest.raises(SpecError) as refusal:
        check_parameters(names, steps=int)
    assert all(each in str(refusal.value) for each in named), str(refusal.value)


@pytest.mark.parametrize("case", ENVIRONMENT)
def test_the_environment(case, here, monkeypatch):
    variables, study, command, named = ENVIRONMENT[case]
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    workspace(here, study)
    refused(*command.split(), named=named)


def test_a_dry_run_reaches_no_further_than_the_model(here, root):
    sizes = {"d_model": 32, "n_layers": 2, "n_heads": 2, "max_seq_len": 16, "vocab_size": 20}
    save_model(Path("model"), "mpt", **sizes)
    (here / "tests").mkdir()
    (here / "tests" / "data").symlink_to(root / "tests" / "data")
    workspace(here, of_model("digits-lra"))
    done = CliRunner().invoke(app, ["run", "mine", "--smoke"])
    assert done.exit_code != 0
    assert "max_seq_len 16" in " ".join(done.output.split())
