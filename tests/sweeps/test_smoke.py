"""The reduced form of a sweep fits the tiny model that it is tried on."""

import pytest
from stand_in import spec

from fpt.models import build, tiny
from fpt.sweeps.smoke import reduced_form
from fpt.tasks import load


@pytest.mark.parametrize("rank", [2, 32])
def test_adapters_are_no_larger_than_the_tiny_model(rank: int) -> None:
    small = reduced_form(spec(arm="lora-random", rank=rank), {})
    build(load("digits"), "tiny-lm", small.init, small.trainable, entry=tiny("tiny-lm"), **small.model_options)
    assert small.rank <= rank
