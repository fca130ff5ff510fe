"""The contract of all models: every backbone that is registered, with every arm, keeps to tests/contract.py."""

from pathlib import Path

import contract
import pytest
from small_models import STAND_INS

import fpt.models
import fpt.tasks
from fpt.errors import SpecError
from fpt.models import ARMS, BACKBONES, GROUPS, PARTS, POLICIES, adapted, part
from fpt.models.template import Template
from fpt.tasks.task import Task

pytestmark = pytest.mark.usefixtures("small_backbones", "small_lstms")

OF = {**STAND_INS, "small-lstm": "lstm", "small-lstm-released": "lstm-released", "none": "none"}  # -> the real one
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
    if adapted(named.trainable):
        return bool(MATRICES & {*entry.groups})
    there = [bool({*part(group).groups} & {*entry.groups}) for group in named.groups]
    return any(there) if isinstance(named.trainable, str) else all(there)


FPT = ("input", "output", "layer_norm", "positions")
WRITTEN = {  # without the package: what trains under the names of the papers' policies
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
    named = fpt.models.arm(arm)
    return WRITTEN.get(str(named.trainable), named.groups)


NAMED = [(backbone, arm) for backbone in OF for arm in ARMS if fits(arm, backbone)]
# and every policy that no random arm has, and every group by itself
OTHERS = [f"{policy}-random" for policy in POLICIES if fpt.models.name_of("random", policy) not in ARMS]
OTHERS += [f"{group}-random" for group in GROUPS if group not in POLICIES]
OTHERS += ["fpt-statistics", "feed_forward+last_attention-random"]
FURTHER = [(backbone, arm) for backbone in OF for arm in OTHERS if fits(arm, backbone)]
RANDOM = ("frozen-random", "unfrozen-random", "lora-random")
PATHS = ("frozen-pretrained", *RANDOM)  # frozen tensors of all runs, of each seed, and none, and adapters
# of bytes, by its own table
WORDS = [("tiny-lm", f"{arm}-pretrained") for arm in ("frozen", "matrices", "lora")] + [("tiny-lm", "unfrozen-random")]


@pytest.fixture(scope="module")
def text() -> Task:
    return fpt.tasks.load("text")


def built(task: Task, backbone: str, arm: str) -> Template:
    rank = {"rank": 2} if adapted(fpt.models.arm(arm).trainable) else {}
    return fpt.models.build(task, backbone, arm=arm, **rank, **OPTIONS.get(backbone, {}))


@pytest.mark.parametrize(("backbone", "arm"), NAMED)
def test_exactly_the_named_parameters_change_and_a_fleet_is_its_runs(backbone: str, arm: str, digits: Task) -> None:
    template = built(digits, backbone, arm)
    contract.only_the_named_parameters_change(digits, template, groups_of(arm))
    if arm in PATHS:  # others take the same path through a fleet
        contract.a_fleet_is_its_runs_one_at_a_time(digits, template)
    if arm in RANDOM:  # which matrices train does not matter to a product
        contract.bfloat16_follows_float32(digits, template)


@pytest.mark.parametrize(("backbone", "arm"), FURTHER)
def test_every_policy_and_every_group_trains_what_it_says(backbone: str, arm: str, digits: Task) -> None:
    contract.the_named_parameters_train(built(digits, backbone, arm), groups_of(arm))


@pytest.mark.parametrize("backbone", OF)
@pytest.mark.parametrize("part", PARTS)
def test_a_part_trains_by_itself_and_is_refused_where_a_model_has_none_of_it(
    part: str, backbone: str, digits: Task
) -> None:
    if contract.named_in(built(digits, backbone, "unfrozen-random"), (part,)):
        contract.the_named_parameters_train(built(digits, backbone, f"{part}-random"), (part,))
    else:
        with pytest.raises(SpecError, match=part):
            built(digits, backbone, f"{part}-random")


def test_the_last_attention_is_that_of_the_last_layer(digits: Task) -> None:
    template = fpt.models.build(digits, "tiny-lm", "random", ["last_attention"])  # four layers
    assert template.trainable
    assert all(name.startswith("backbone.h.3.attn.") for name in template.trainable)
    assert len(template.trainable) == len([name for name in template.shapes if ".attn." in name]) / 4


@pytest.mark.parametrize(("backbone", "arm"), [pair for pair in NAMED if pair[1] in RANDOM])
def test_a_fleet_is_its_runs_on_lists_of_different_lengths(backbone: str, arm: str, listops: Task) -> None:
    contract.a_fleet_is_its_runs_one_at_a_time(listops, built(listops, backbone, arm), steps=2)


@pytest.mark.parametrize(
    ("task", "backbone", "arm"),
    [
        *(("digits", "small-gpt2", arm) for arm in RANDOM),
        ("digits", "small-lstm-released", "unfrozen-random"),  # which starts from noise
        ("listops", "small-bert", "unfrozen-random"),  # padded
    ],
)
def test_going_on_gives_the_same_bytes(
    task: str, backbone: str, arm: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    loaded = request.getfixturevalue(task)
    contract.going_on_gives_the_same_bytes(loaded, built(loaded, backbone, arm), tmp_path / "checkpoints")


@pytest.mark.parametrize(("backbone", "arm"), WORDS)
def test_text_by_the_models_own_table(backbone: str, arm: str, text: Task) -> None:
    template = fpt.models.build(text, backbone, arm=arm, layers=1)
    groups = tuple(group for group in groups_of(arm) if group not in ("input", "output"))
    contract.only_the_named_parameters_change(text, template, groups)
    contract.a_fleet_is_its_runs_one_at_a_time(text, template, steps=2)
    contract.bfloat16_follows_float32(text, template)
