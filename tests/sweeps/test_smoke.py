"""The reduced form of a sweep fits the tiny model that it is tried on; one that fails leaves the others alone."""

from pathlib import Path

import pytest
from stand_in import spec

from fpt.models import build, tiny
from fpt.sweeps import smoke as rehearsal
from fpt.sweeps.smoke import reduced_form, smoke
from fpt.tasks import load


@pytest.mark.parametrize("rank", [2, 32])
def test_adapters_are_no_larger_than_the_tiny_model(rank: int) -> None:
    small = reduced_form(spec(arm="lora-random", rank=rank), {})
    build(load("digits"), tiny(small.means.backbone), small.init, small.trainable, **small.model_options)
    assert small.rank <= rank


@pytest.mark.parametrize("kind", [AttributeError, ZeroDivisionError, OSError, AssertionError])
def test_whatever_a_task_of_yours_raises_the_other_sweeps_are_tried(
    kind: type[Exception], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise kind("of your task")

    monkeypatch.setattr(rehearsal, "FIXTURES", tmp_path)
    monkeypatch.setattr(rehearsal, "run_sweep", fail)
    both = [spec(), spec(arm="unfrozen-random")]
    assert [(failed, type(error)) for failed, error in smoke(both, "mine")] == [(each, kind) for each in both]
