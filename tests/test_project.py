"""The house rules that no linter knows: sizes, the direction of imports, agreement, no trace of a machine."""

import ast
import functools
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from graphlib import TopologicalSorter
from importlib.machinery import PathFinder
from importlib.metadata import packages_distributions
from itertools import chain, pairwise
from pathlib import Path

import pytest
from committed import tracked
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from processes import python

import fpt
from fpt.documents import read_document

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "fpt").rglob("*.py"))
# imports point only left
ROOMS = ("papers", "tasks", "models", "training", "sweeps", "results", "claims", "show", "bench", "advise", "cli")
TIDY = {".py", ".md", ".toml", ".yml", ".yaml", ".cff", ".txt", ".bib", ".css", ""}  # written by hand
TEXT = TIDY | {".json", ".ipynb", ".svg"}
MODULE_NAMES = {source: str(source.relative_to(ROOT)) for source in SOURCES}


@functools.cache
def tree(source):
    return ast.parse(source.read_text(encoding="utf-8"))


def imports(root):
    """Everything that the statements below a node import, at any depth, by its full name."""
    for node in ast.walk(root):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@functools.cache
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


# --- the package


def test_functions_fit_a_screen():
    for source in SOURCES:
        for node in ast.walk(tree(source)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or 0) - node.lineno + 1
                assert lines <= 60, f"{source}: {node.name} has {lines} lines"


def test_no_two_classes_share_a_name():
    """Private ones count: a reader who searches for a name finds one thing."""
    names = [node.name for source in SOURCES for node in ast.walk(tree(source)) if isinstance(node, ast.ClassDef)]
    counted = Counter(name.lstrip("_") for name in names)
    assert not [name for name, homes in counted.items() if homes > 1]


def loaded_with(body):
    """Every module that the statements of a module import when it is loaded: not in functions, not for types alone."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or (
            isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        ):
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from imports(node)
        yield from loaded_with(ast.iter_child_nodes(node))


MODULES = {
    ".".join(source.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): source for source in SOURCES
}


def module_of(name):
    """The module that an import names, itself or by something in it; of a library the library."""
    return name if name in MODULES else name.rpartition(".")[0] if name.startswith("fpt") else name.partition(".")[0]


def test_no_module_imports_itself_by_way_of_others():
    edges = {module: map(module_of, loaded_with(tree(source).body)) for module, source in MODULES.items()}
    TopologicalSorter(edges).prepare()  # raises CycleError, which names the circle


HEAVY = {  # a tenth of a second or more, or needed by few: what a function may import
    "PIL", "huggingface_hub", "ipykernel", "myst_nb", "nbclient", "pandas", "papermill", "psutil", "pyarrow", "ray",
    "safetensors", "scipy", "sklearn", "statsmodels", "torch", "torchvision", "transformers",
}  # fmt: skip


@functools.cache
def heavy_with(module):
    """The heavy libraries that are loaded with a module: with the packages that hold it and with what these import."""
    loaded, todo = set(), [module]
    while todo:
        if (name := todo.pop()) not in loaded:
            loaded.add(name)
            todo += [name.rpartition(".")[0]] if name.rpartition(".")[0] in MODULES else []
            todo += map(module_of, loaded_with(tree(MODULES[name]).body)) if name in MODULES else []
    return loaded & HEAVY


@pytest.mark.parametrize("module", MODULES)
def test_a_function_imports_only_what_brings_a_heavy_library(module):
    """All else stands at the top. But `fpt.results` reads records where neither models nor studies can be imported, and
    `fpt.cli` starts at once."""
    functions = [node for node in ast.walk(tree(MODULES[module])) if isinstance(node, ast.FunctionDef)]
    for name in chain.from_iterable(map(imports, functions)):
        if not name.startswith("fpt"):
            assert module_of(name) in HEAVY, f"{module} imports {name} in a function"
        elif not module.startswith(("fpt.results", "fpt.cli")):
            assert heavy_with(module_of(name)) - heavy_with(module), f"{module} imports {name} in a function"


@pytest.mark.parametrize("source", SOURCES, ids=MODULE_NAMES.get)
def test_imports_point_only_left(source):
    room = source.relative_to(ROOT / "fpt").parts[0].removesuffix(".py")
    if room == "__init__":
        return  # names the rooms, and loads none
    allowed = ROOMS[: ROOMS.index(room) + 1] if room in ROOMS else ()
    for name in imports(tree(source)):
        package, _, rest = name.partition(".")
        if package == "fpt" and (target := rest.split(".")[0]) in ROOMS:
            assert target in allowed, f"{room} imports {name}"


def test_every_module_is_in_a_known_room():
    rooms = {source.relative_to(ROOT / "fpt").parts[0].removesuffix(".py") for source in SOURCES}
    assert rooms <= {*ROOMS, "__init__", "documents", "errors", "files", "seeds"}


def test_what_must_be_quick_does_not_import_torch(tmp_path):
    """One program, since each start costs a second. At its end rooms load on first use."""
    rooms = ("results", "claims", "show", "sweeps", "tasks", "models", "training", "bench", "cli")
    report = ["report", "fresh-minilm", "--output", str(tmp_path / "report.html")]
    lines = ["import sys, fpt", "fpt.tasks", *(f"import fpt.{room}" for room in rooms)]
    lines += [
        f"fpt.cli.app({words}, standalone_mode=False)" for words in (["plan", "lu2021"], ["status", "laptop"], report)
    ]
    checked = [f"{line}\nassert 'torch' not in sys.modules, {line!r}" for line in lines]
    python("\n".join([*checked, "fpt.tasks.load", "fpt.results.load_runs"]))
    with pytest.raises(AttributeError, match="no attribute 'task'"):
        fpt.task  # noqa: B018 - the access is the test


# --- what is declared


def test_every_imported_library_is_declared():
    declared = {canonicalize_name(Requirement(line).name) for line in project()["project"]["dependencies"]}
    optional = {"ray"}  # imported only by the engine of that name
    known = packages_distributions()
    for source in [*SOURCES, *(ROOT / "notebooks").glob("*.py")]:
        for name in imports(tree(source)):
            module = name.split(".")[0]
            if module in sys.stdlib_module_names or module == "fpt" or module in optional:
                continue
            owners = {canonicalize_name(owner) for owner in known.get(module, [module])}
            assert owners & declared, f"{source.name} imports {module}, which pyproject.toml does not declare"


RUN_IN = ("notebooks", "tests", "book/_ext")  # folders that are on Python's path while something runs


@pytest.mark.parametrize("folder", RUN_IN)
def test_a_file_beside_which_programs_run_stands_in_the_way_of_no_library(folder):
    """Python looks for modules in the working folder first: `coverage.py` would be run by whatever imports coverage."""
    ours = {ROOT, *(ROOT / each for each in RUN_IN)}
    others = [path for path in sys.path if Path(path).resolve() not in ours]
    for source in (ROOT / folder).glob("*.py"):
        assert source.stem not in sys.stdlib_module_names
        assert PathFinder.find_spec(source.stem, others) is None, source


def test_the_conda_environment_agrees_with_pyproject():
    conda_names = {"torch": "pytorch", "matplotlib": "matplotlib-base", "huggingface-hub": "huggingface_hub"}
    conda_names["jupyter-client"] = "jupyter_client"
    expected = {f"python{project()['project']['requires-python']}", "pip"}
    for line in project()["project"]["dependencies"]:
        name = re.split(r"[<>=]", line)[0]
        expected.add(conda_names.get(name, name) + line.removeprefix(name))
    listed = read_document(ROOT / "environment.yml", "environment.yml")[0]["dependencies"]
    assert sorted(listed) == sorted(expected)


def test_constraints_pin_every_dependency_within_its_bounds():
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    pins = {}
    for line in lines:
        assert re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9._!]+", line), line  # no URL, no path, no local version
        name, version = line.split("==")
        pins[canonicalize_name(name)] = version
    extras = project()["project"]["optional-dependencies"]
    for text in [*project()["project"]["dependencies"], *extras["dev"], *extras["minilm"], *extras["smollm2"]]:
        requirement = Requirement(text)
        assert requirement.specifier.contains(pins[canonicalize_name(requirement.name)]), text


def test_versions_agree():
    citation = read_document(ROOT / "CITATION.cff", "CITATION.cff")[0]
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert citation["version"] == fpt.__version__
    assert newest is not None
    assert newest[1] == fpt.__version__


# --- what is committed


def test_committed_files_are_small():
    for path in tracked():
        assert path.stat().st_size <= 8e6, path
    fixtures = [path for path in tracked() if (ROOT / "tests" / "data") in path.parents]
    assert sum(path.stat().st_size for path in fixtures) < 1e6


def test_committed_text_carries_no_trace_of_a_machine():
    traces = {
        "an absolute path": re.compile(r"(?<![\w.:/}])/(?:home|root|Users|work|tmp|opt|var|private)/[\w.-]"),
        "a package registry": re.compile(r"python[h]osted|pypi\.[o]rg|npm[j]s|anaconda\.[o]rg|deb\.[d]ebian"),
    }
    for path in tracked():
        if path.suffix in TEXT:
            text = path.read_text(encoding="utf-8")
            for what, pattern in traces.items():
                found = pattern.search(text)
                assert found is None, f"{path.relative_to(ROOT)} names {what}: {text[found.start() :][:80]!r}"


def test_files_written_by_hand_are_tidy():
    for path in tracked():
        if path.suffix in TIDY and path.name != "novel.txt" and (ROOT / "runs") not in path.parents:
            text = path.read_bytes().decode("utf-8")
            name = path.relative_to(ROOT)
            assert "\r" not in text, f"{name}: carriage return"
            assert not text or (text.endswith("\n") and not text.endswith("\n\n")), f"{name}: end of file"
            assert not re.search(r"[ \t]+$", text, re.MULTILINE), f"{name}: white space at the end of a line"
            if path.suffix in {".yml", ".yaml", ".cff"}:
                read_document(path, str(name))


def test_the_readme_lists_the_rooms_in_order():
    readme = (ROOT / "README.md").read_text()
    places = [readme.index(f"`fpt/{room}") for room in ROOMS]
    assert all(before < after for before, after in pairwise(places))


# --- what `make` does beside the commands that CI runs


def make(*words: str) -> str:
    """What make prints in the environment as it is: nothing is installed."""
    command = ["make", f"VENV={sys.prefix}", f"--assume-old={sys.prefix}/.fpt-installed", *words]
    alone = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL")}
    done = subprocess.run(command, cwd=ROOT, env=alone, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_make_report_ends_with_the_places_of_the_report_and_the_book() -> None:
    """`make compare` is its last part; where `fpt report` writes, tests/test_cli.py says."""
    report, book = make("--dry-run", "compare").splitlines()
    assert report.endswith("/fpt report laptop")
    assert f"The book: {ROOT}/book/_build/html/index.html" in book


def test_what_is_printed_are_pages_and_the_list_names_the_command() -> None:
    (printed,) = re.findall(r"^PRINTED = (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(printed.split()) == 3
    assert all((ROOT / "book" / f"{page}.md").is_file() for page in printed.split())
    assert "make pdf " in make("help")
