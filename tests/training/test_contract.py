"""The contract of all models: every backbone that is registered, with every arm, keeps to tests/contract.py."""

from pathlib import Path

import contract
import pytest
from small_models import stand_ins

import fpt.models
import fpt.tasks
from fpt.models import ADAPTER, ARMS, BACKBONES, PARTS, POLICIES, TRAINABLE
from fpt.models.template import Template
from fpt.tasks.task import Task

pytestmark = pytest.mark.usefixtures("small_backbones", "small_lstms")

OF = {**stand_ins(), "small-lstm": "lstm", "small-lstm-released": "lstm-released", "none": "none"}  # -> the real one
OPTIONS = {"small-lstm": {"positions": True, "residual": True}, "small-lstm-released": {"positions": True}}
MATRICES = {"attention", "feed_forward"}
NEW_POSITIONS = {"small-vit"}  # zeros at first, so they must train; refused otherwise (tests/models/test_families.py)


def fits(arm: str, backbone: str) -> bool:
    """Whether the backbone has what the arm starts from, and what it names."""
    entry, named = BACKBONES[OF[backbone]], fpt.models.arm(arm)
    if named.init != "random" and not entry.pretrained:
        return False
    if backbone in NEW_POSITIONS and named.init != "random" and "positions" not in named.groups:
        return False
    if named.adapted:
        return bool(MATRICES & {*entry.groups})
    wanted = {PARTS.get(group, group) for group in named.groups}
    return bool(wanted & {*entry.groups}) if isinstance(named.trainable, str) else wanted <= {*entry.groups}


FPT = ("input", "output", "layer_norm", "positions")
WRITTEN = {  # without the package: what trains under the name of a policy
    "fpt": FPT,
    "all": (*FPT, "embedding", "attention", "feed_forward", "recurrent"),
    "output": ("output",),
    "fpt-attention": (*FPT, "attention"),
    "fpt-feed-forward": (*FPT, "feed_forward"),
    "fpt-feed-forward-last-attention": (*FPT, "feed_forward", "last_attention"),
    "lora": ("input", "output", "adapter"),
    "fpt-lora": (*FPT, "adapter"),
    "matrices": ("input", "output", "attention", "feed_forward"),
}


def groups_of(arm: str) -> tuple[str, ...]:
    """By the policy that the arm names, or by its groups."""
    trainable = fpt.models.arm(arm).trainable
    return WRITTEN[trainable] if isinstance(trainable, str) else trainable


NAMED = [(backbone, arm) for backbone in OF for arm in ARMS if fits(arm, backbone)]
# and every policy and every group by itself
OTHERS = [f"{policy}-random" for policy in POLICIES]
OTHERS += [f"{group}-random" for group in TRAINABLE if group not in (ADAPTER, *POLICIES)]
OTHERS += ["fpt-statistics", "feed_forward+last_attention-random"]
FURTHER = [(backbone, arm) for backbone in OF for arm in OTHERS if fits(arm, backbone)]
CHEAP = [(backbone, arm) for backbone, arm in NAMED if arm in ("frozen-random", "unfrozen-random", "lora-random")]
# of bytes, by its own table
WORDS = [("tiny-lm", f"{arm}-pretrained") for arm in ("frozen", "matrices", "lora")] + [("tiny-lm", "unfrozen-random")]


@pytest.fixture(scope="module")
def text() -> Task:
    return fpt.tasks.load("text")


def built(task: Task, backbone: str, arm: str) -> Template:
    rank = {"rank": 2} if fpt.models.arm(arm).adapted else {}
    return fpt.models.build(task, backbone, arm=arm, **rank, **OPTIONS.get(backbone, {}))


@pytest.mark.parametrize(("backbone", "arm"), NAMED)
def test_exactly_the_named_parameters_change(backbone: str, arm: str, digits: Task) -> None:
    contract.only_the_named_parameters_change(digits, built(digits, backbone, arm), groups_of(arm))


@pytest.mark.parametrize(("backbone", "arm"), FURTHER)
def test_every_policy_and_every_group_trains_what_it_says(backbone: str, arm: str, digits: Task) -> None:
    contract.the_named_parameters_train(built(digits, backbone, arm), groups_of(arm))


@pytest.mark.parametrize(("backbone", "arm"), NAMED)
def test_a_fleet_is_its_runs_one_at_a_time(backbone: str, arm: str, digits: Task) -> None:
    contract.a_fleet_is_its_runs_one_at_a_time(digits, built(digits, backbone, arm))


@pytest.mark.parametrize(("backbone", "arm"), CHEAP)
def test_and_so_it_is_on_lists_of_different_lengths(backbone: str, arm: str, listops: Task) -> None:
    contract.a_fleet_is_its_runs_one_at_a_time(listops, built(listops, backbone, arm), steps=2)


@pytest.mark.parametrize(("backbone", "arm"), CHEAP)
def test_going_on_gives_the_same_bytes(backbone: str, arm: str, digits: Task, tmp_path: Path) -> None:
    contract.going_on_gives_the_same_bytes(digits, built(digits, backbone, arm), tmp_path / "checkpoints")


@pytest.mark.parametrize(("backbone", "arm"), CHEAP)  # which matrices train does not matter to a product
def test_bfloat16_follows_float32(backbone: str, arm: str, digits: Task) -> None:
    contract.bfloat16_follows_float32(digits, built(digits, backbone, arm))


@pytest.mark.parametrize(("backbone", "arm"), WORDS)
def test_text_by_the_models_own_table(backbone: str, arm: str, text: Task) -> None:
    template = fpt.models.build(text, backbone, arm=arm, layers=1)
    groups = tuple(group for group in groups_of(arm) if group not in ("input", "output"))
    contract.only_the_named_parameters_change(text, template, groups)
    contract.a_fleet_is_its_runs_one_at_a_time(text, template, steps=2)
    contract.bfloat16_follows_float32(text, template)
