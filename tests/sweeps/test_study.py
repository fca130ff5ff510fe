"""study.yaml: lists, defaults, extension, filters, and what a bad file gets."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from fpt.errors import SpecError
from fpt.sweeps import Study, load_study
from fpt.sweeps.study import study_folder

ROOT = Path(__file__).parents[2]
DEFAULTS = {"learning_rates": [1e-3, 1e-2], "selection_seeds": [0]}
ARMS = ["frozen-pretrained", "frozen-random", "unfrozen-pretrained", "unfrozen-random"]


def write(runs: Path, name: str = "mine", text: str | None = None, **document: Any) -> Path:
    folder = runs / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "study.yaml").write_text(yaml.safe_dump(document) if text is None else text)
    return folder


def study(runs: Path, *sweeps: dict[str, Any], **document: Any) -> Study:
    return load_study(write(runs, defaults=DEFAULTS, sweeps=list(sweeps), **document))


@pytest.mark.parametrize(("name", "sweeps"), [("smoke", 4), ("laptop", 6), ("laptop-more", 24)])
def test_the_studies_of_this_repository(name: str, sweeps: int) -> None:
    found = load_study(ROOT / "runs" / name)
    assert len(found.sweeps) == sweeps
    assert all(spec.feeds for spec in found.sweeps)
    assert len({spec.folder_name for spec in found.sweeps}) == sweeps


def test_every_published_folder_still_resolves() -> None:
    for path in ROOT.glob("runs/*/published"):
        names = {spec.folder_name for spec in load_study(path.parent).sweeps}
        assert {folder.name for folder in path.iterdir()} <= names, path


def test_the_gains_meet_the_laptop_study_at_gain_one() -> None:
    laptop = {s.arm: s for s in load_study(ROOT / "runs" / "laptop").sweeps if s.random_init == "matched"}
    more = [s for s in load_study(ROOT / "runs" / "laptop-more").sweeps if s.task == "digits" and s.random_gain == 1]
    assert {s.arm for s in more} == {"frozen-random", "unfrozen-random"}
    for spec in more:
        assert spec.model_copy(update={"steps": 0, "feeds": ()}) == laptop[spec.arm].model_copy(
            update={"steps": 0, "feeds": ()}
        )


def test_lists_are_crossed(tmp_path: Path) -> None:
    found = study(tmp_path, {"task": ["digits", "bit-xor"], "arm": ARMS[1:2], "random_gain": [0.5, 1, 2]})
    assert [(s.task, s.random_gain) for s in found.sweeps] == [
        (task, gain) for task in ("digits", "bit-xor") for gain in (0.5, 1, 2)
    ]


def test_equal_sweeps_become_one_and_feed_both(tmp_path: Path) -> None:
    found = study(
        tmp_path,
        {"task": "digits", "arm": ARMS, "feeds": ["lu-table-1"]},
        {"task": "digits", "arm": ["frozen-random"], "random_gain": [1, 2], "feeds": ["lu-table-2"]},
    )
    assert len(found.sweeps) == 5
    assert found.sweeps[1].feeds == ("lu-table-1", "lu-table-2")
    assert [spec.title for spec in found.feeding("lu-table-2")] == [
        "digits, frozen-random",
        "digits, frozen-random, gain 2",
    ]


def test_rates_without_a_point_are_numbers(tmp_path: Path) -> None:
    folder = write(tmp_path, text="sweeps: [{task: digits, learning_rates: [1e-3, 3E-5], selection_seeds: [0]}]")
    assert load_study(folder).sweeps[0].learning_rates == (3e-5, 1e-3)


def test_the_folder_is_the_identity_and_the_name_a_title(tmp_path: Path) -> None:
    assert study(tmp_path, {"task": "digits"}).name == "mine"
    assert study(tmp_path, {"task": "digits"}, name="My study").name == "My study"


def test_only_names_a_feed(tmp_path: Path) -> None:
    found = study(tmp_path, {"task": "digits", "feeds": ["lu-table-1"]})
    assert found.feeding(None) == found.feeding("lu-table-1") == found.sweeps
    with pytest.raises(SpecError, match=r"unknown feed 'lu-table-3'.*Known: lu-table-1"):
        found.feeding("lu-table-3")


class TestFieldsOfATask:
    """Between the study's defaults and what a sweep says itself."""

    def test_each_task_has_its_own(self, tmp_path: Path) -> None:
        folder = write(
            tmp_path,
            "mine",
            defaults=DEFAULTS | {"steps": 5, "arm": "frozen-random"},
            tasks={"bit-xor": {"steps": 7, "threshold": 0.9}, "digits-lra": {"steps": 8}},
            sweeps=[{"task": ["digits", "bit-xor"]}, {"task": "digits-lra", "steps": 9}],
        )
        found = [(spec.task, spec.steps, spec.threshold) for spec in load_study(folder).sweeps]
        assert found == [("digits", 5, None), ("bit-xor", 7, 0.9), ("digits-lra", 9, None)]

    def test_a_child_has_the_last_word(self, tmp_path: Path) -> None:
        write(
            tmp_path,
            "parent",
            defaults=DEFAULTS | {"arm": "frozen-random"},
            tasks={"digits": {"steps": 7, "batch_size": 4}},
            sweeps=[{"task": "mnist", "batch_size": 2}],
        )
        changes = {"replace": {"task": {"mnist": "digits"}}, "tasks": {"digits": {"steps": 11}}}
        (spec,) = load_study(write(tmp_path, "child", extends="parent", **changes)).sweeps
        assert (spec.task, spec.steps, spec.batch_size) == ("digits", 11, 2)

    @pytest.mark.parametrize(
        ("tasks", "message"),
        [
            ({"digit": {"steps": 3}}, r"unknown task 'digit'.*tasks of .*mine/study.yaml"),
            ({"digits": {"step": 3}}, r"unknown study field 'step'.*tasks of .*mine/study.yaml, digits"),
            ({"digits": 3}, "must be a mapping of fields"),
            ([{"digits": {"steps": 3}}], "tasks = .*: must be a mapping"),
        ],
    )
    def test_bad_ones(self, tmp_path: Path, tasks: object, message: str) -> None:
        folder = write(tmp_path, "mine", defaults=DEFAULTS, tasks=tasks, sweeps=[{"task": "digits"}])
        with pytest.raises(SpecError, match=message):
            load_study(folder)

    def test_a_threshold_changes_no_run(self, tmp_path: Path) -> None:
        sweeps = [{"task": "digits", "arm": "frozen-random"}]
        plain = load_study(write(tmp_path, "plain", defaults=DEFAULTS, sweeps=sweeps)).sweeps
        with_one = load_study(write(tmp_path, "mine", defaults=DEFAULTS | {"threshold": 0.5}, sweeps=sweeps)).sweeps
        assert plain[0].hash == with_one[0].hash


class TestExtends:
    @pytest.fixture
    def runs(self, tmp_path: Path) -> Path:
        write(
            tmp_path,
            "large",
            defaults=DEFAULTS | {"backbone": "gpt2", "steps": 5000, "arm": ["frozen-pretrained"]},
            sweeps=[
                {"task": "mnist", "feeds": ["lu-table-1"]},
                {"task": "digits", "feeds": ["lu-table-1", "lu-table-2"], "steps": 9000},
                {"task": "bit-xor", "feeds": ["lu-table-3"], "arm": "unfrozen-random"},
            ],
        )
        return tmp_path

    def test_defaults_override_what_was_written_there(self, runs: Path) -> None:
        small = load_study(write(runs, "small", extends="large", defaults={"backbone": "tiny-lm", "steps": 10}))
        assert [spec.task for spec in small.sweeps] == ["mnist", "digits", "bit-xor"]
        assert {(spec.backbone, spec.steps) for spec in small.sweeps} == {("tiny-lm", 10)}
        assert small.sweeps[2].arm == "unfrozen-random"

    def test_an_arm_replaces_init_and_trainable_and_back(self, runs: Path) -> None:
        by_hand = load_study(write(runs, "hand", extends="large", defaults={"init": "random", "trainable": "all"}))
        assert {spec.arm for spec in by_hand.sweeps} == {"unfrozen-random"}
        named = load_study(write(runs, "named", extends="hand", defaults={"arm": "frozen-random"}))
        assert {spec.arm for spec in named.sweeps} == {"frozen-random"}

    def test_only_and_without(self, runs: Path) -> None:
        only = load_study(write(runs, "only", extends="large", only=["lu-table-2", "lu-table-3"]))
        assert [spec.task for spec in only.sweeps] == ["digits", "bit-xor"]
        without = load_study(write(runs, "without", extends="large", without=["lu-table-2"]))
        assert [spec.task for spec in without.sweeps] == ["mnist", "bit-xor"]

    def test_sweeps_of_its_own_come_after(self, runs: Path) -> None:
        more = load_study(write(runs, "more", extends="large", sweeps=[{"task": "digits-lra", **DEFAULTS}]))
        assert [spec.task for spec in more.sweeps][-1] == "digits-lra"
        assert len(more.sweeps) == 4

    def test_substitutes(self, runs: Path) -> None:
        replace = {"backbone": {"gpt2": "tiny-lm"}, "task": {"mnist": "digits-lra", "bit-xor": None}}
        found = load_study(write(runs, "other", extends="large", replace=replace))
        assert [(spec.task, spec.backbone) for spec in found.sweeps] == [
            ("digits-lra", "tiny-lm"),
            ("digits", "tiny-lm"),
        ]

    def test_substitutes_of_options(self, runs: Path) -> None:
        sweeps = [{"task": "bit-xor", "arm": "frozen-random", "task_options": [{"length": 5}, {"length": 64}, {}]}]
        write(runs, "lengths", defaults=DEFAULTS, sweeps=sweeps)
        found = load_study(write(runs, "other", extends="lengths", replace={"length": {64: 8}}))
        assert [spec.task_options for spec in found.sweeps] == [{"length": 5}, {"length": 8}]  # 5 is the default

    def test_substitutes_must_be_a_mapping(self, runs: Path) -> None:
        with pytest.raises(SpecError, match=r"replace, backbone = 'tiny-lm': must map values.*other/study.yaml"):
            load_study(write(runs, "other", extends="large", replace={"backbone": "tiny-lm"}))

    def test_errors_name_both_files(self, runs: Path) -> None:
        folder = write(runs, "small", extends="large", defaults={"steps": 0})
        with pytest.raises(SpecError, match=r"steps = 0.*small/study.yaml, extending .*large/study.yaml, sweep 1"):
            load_study(folder)

    def test_a_circle_is_refused(self, runs: Path) -> None:
        write(runs, "a", extends="b")
        with pytest.raises(SpecError, match="circle"):
            load_study(write(runs, "b", extends="a"))

    @pytest.mark.parametrize("parent", ["larg", "../large", "/etc", ""])
    def test_only_a_folder_beside_it(self, runs: Path, parent: str) -> None:
        with pytest.raises(SpecError, match=r"unknown study .*large"):
            load_study(write(runs, "small", extends=parent))

    def test_an_unknown_feed(self, runs: Path) -> None:
        with pytest.raises(SpecError, match=r"unknown feed 'lu-table-9'.*small/study.yaml"):
            load_study(write(runs, "small", extends="large", only=["lu-table-9"]))


GOOD = "learning_rates: [1e-3], selection_seeds: [0]"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("# nothing\n", "empty"),
        ("a: [", "not YAML"),
        ("\t- x", "not YAML"),
        ("just words", "must be a mapping"),
        ("[1, 2]", "must be a mapping"),
        ("name: x", "no sweeps"),
        ("sweeps: []", "no sweeps"),
        ("sweeps:", "no sweeps"),
        ("sweeps: {task: digits}", "sweeps = .*must be a list"),
        ("sweeps: [digits]", "each sweep must be a mapping.*sweep 1"),
        ("defaults: [1]", "defaults = .*must be a mapping"),
        ("sweps: []", "unknown study field 'sweps'.*Did you mean 'sweeps'"),
        ("sweeps: [{taks: digits}]", "unknown study field 'taks'.*sweep 1.*'task'"),
        ("defaults: {step: 3}\nsweeps: [{task: digits}]", "'step'.*defaults of.*'steps'"),
        ("sweeps: [!!python/object/apply:os.system [ls]]", "YAML tag"),
        ("name: !!str x\nsweeps: []", "YAML tag"),
        ("sweeps: !mine []", "YAML tag"),
        ("sweeps: [{task: digits, task: mnist}]", "task given more than once"),
        ("name: a\nname: b", "name given more than once"),
        (f"sweeps: [{{task: [], {GOOD}}}]", r"task = \[\].*empty"),
        (f"sweeps: [{{task: digits, feeds: x, {GOOD}}}]", "feeds = 'x'.*must be a list"),
        (f"sweeps: [{{task: [digits, digitz], {GOOD}}}]", "unknown task 'digitz'.*sweep 1"),
        (f"sweeps: [{{task: digits, dropout: 1.5, {GOOD}}}]", "dropout = 1.5.*sweep 1"),
        (f"sweeps: [{{task: digits, steps: 1e3, {GOOD}}}]", "steps = '1e3'.*whole number"),
        ("a: &x [1]\nb: 1", "unknown study field"),
        ("--- 1\n--- 2", "not YAML"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, words: str) -> None:
    folder = write(tmp_path, text=text)
    with pytest.raises(SpecError, match=words) as caught:
        load_study(folder)
    assert f"{tmp_path.name}/mine/study.yaml" in str(caught.value)
    assert not list(folder.glob("*/"))


def test_a_file_that_is_no_text_or_not_there(tmp_path: Path) -> None:
    folder = write(tmp_path)
    (folder / "study.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SpecError, match="not YAML"):
        load_study(folder)
    with pytest.raises(SpecError, match="does not exist"):
        load_study(tmp_path / "other")


@pytest.mark.parametrize("name", ["../mine", "mine/", "/etc", ".", "..", "", "lapto", ".hidden"])
def test_a_study_is_a_folder_of_runs(tmp_path: Path, name: str) -> None:
    write(tmp_path, "mine", sweeps=[])
    write(tmp_path, "laptop", sweeps=[])
    with pytest.raises(SpecError, match=r"unknown study .*Known: laptop, mine"):
        study_folder(tmp_path, name)
    assert study_folder(tmp_path, "laptop") == tmp_path / "laptop"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sweeps: [{task: digits, feeds: [[a]]}]", "feeds = .*list of names"),
        ("sweeps: [{task: digits, feeds: [{a: b}]}]", "feeds = .*list of names"),
        ("sweeps: [{task: digits}]\nonly: [[1]]", "only = .*list of names"),
        ("sweeps: [{task: digits}]\nwithout: [{a: 1}]", "without = .*list of names"),
        ("sweeps: " + "[" * 3000 + "]" * 3000, "nested too deeply"),
        ("sweeps: [{task: digits, arm: [frozen-random, null]}]", "arm = .*empty"),
        (
            "sweeps: [{task: digits, learning_rates: [1e-3], selection_seeds: [99999999999999999999]}]",
            "selection_seeds",
        ),
    ],
)
def test_odd_shapes(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        load_study(write(tmp_path, text=text))


def test_replace_knows_the_fields_and_options(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    for name, text in (("base", "name: base\nsweeps: [{task: digits, learning_rates: [1e-3], selection_seeds: [0]}]"),
                       ("wrong", "name: wrong\nextends: base\nreplace: {backbne: {tiny-lm: lstm}}")):  # fmt: skip
        (runs / name).mkdir(parents=True)
        (runs / name / "study.yaml").write_text(text)
    with pytest.raises(SpecError, match=r"unknown field to replace 'backbne'.*Did you mean 'backbone'"):
        load_study(runs / "wrong")


@pytest.mark.parametrize("value", ["2021-13-45", "9" * 5000])
def test_what_yaml_cannot_turn_into_a_value_is_no_traceback(tmp_path: Path, value: str) -> None:
    folder = tmp_path / "runs" / "odd"
    folder.mkdir(parents=True)
    (folder / "study.yaml").write_text(f"name: {value}\nsweeps: []")
    with pytest.raises(SpecError, match="is not YAML"):
        load_study(folder)
