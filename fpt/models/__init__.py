"""What learns: backbones and where their weights come from, parameter groups, freezing policies, arms.

`arms.py` is the table that a new policy or arm is added to, `catalogue.py` that of backbones, and `choices.py` refuses
what does not go together; none of them imports torch.
"""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fpt.models import arms, hub
from fpt.models.arms import ADAPTER as ADAPTER
from fpt.models.arms import ADAPTERS as ADAPTERS
from fpt.models.arms import ARMS as ARMS
from fpt.models.arms import EMBEDDING as EMBEDDING
from fpt.models.arms import FOUR as FOUR
from fpt.models.arms import GROUPS as GROUPS
from fpt.models.arms import INITS as INITS
from fpt.models.arms import PARTS as PARTS
from fpt.models.arms import POLICIES as POLICIES
from fpt.models.arms import PROBE as PROBE
from fpt.models.arms import SHORT as SHORT
from fpt.models.arms import Adapters as Adapters
from fpt.models.arms import Targets, Zero
from fpt.models.arms import Treatment as Treatment
from fpt.models.arms import adapted as adapted
from fpt.models.arms import arm as arm
from fpt.models.arms import name_of as name_of
from fpt.models.arms import part as part
from fpt.models.catalogue import AS_PRINTED as AS_PRINTED
from fpt.models.catalogue import BACKBONES as BACKBONES
from fpt.models.catalogue import TRANSFORMER as TRANSFORMER
from fpt.models.catalogue import Backbone as Backbone
from fpt.models.choices import INPUT_INITS as INPUT_INITS
from fpt.models.choices import RANDOM_INITS as RANDOM_INITS
from fpt.models.choices import check_model as check_model
from fpt.models.choices import groups_of as groups_of
from fpt.models.choices import trainable_groups as trainable_groups
from fpt.models.hub import backbone as backbone
from fpt.models.hub import tiny as tiny
from fpt.models.tokens import load_task as load_task

if TYPE_CHECKING:
    from fpt.models.template import Template
    from fpt.tasks.task import Task

with warnings.catch_warnings(action="ignore"):
    import tqdm.auto  # noqa: F401 - the hub's client imports it, and it asks for widgets, which a book cannot use


def build(  # noqa: PLR0913 - every choice of a model, by its name
    task: "Task | str",
    backbone: Backbone | str = "gpt2",
    init: str = "pretrained",
    trainable: str | Sequence[str] = "fpt",
    random_init: str = "matched",
    random_gain: float = 1.0,
    input_init: str = "orthogonal",
    weights: Path | str | None = None,
    *,
    arm: str | None = None,
    rank: int = Adapters.rank,
    alpha: float = Adapters.alpha,
    targets: Targets = Adapters.targets,
    zero: Zero = Adapters.zero,
    **backbone_options: Any,
) -> "Template":
    """A template: `.initialise(seed)` gives weights, `.report()` the parameter counts by group.

    Task and backbone are such objects, or their names. `arm` names both `init` and `trainable`, in their place.
    `random_gain` multiplies the matrices of attention, feed-forward and recurrent layers, pretrained ones too.
    `weights`: a safetensors file that a sweep kept, in the place of the backbone's own pretrained weights. `rank`,
    `alpha`, `targets`, `zero` are of adapters (fpt.models.Adapters), where the arm has them.

    Raises SpecError (unknown names, a sequence longer than frozen positions allow, adapters that do not fit) and
    WeightsError.
    """
    from fpt.models.template import Template

    if isinstance(backbone, str):
        backbone = hub.backbone(backbone)
    if isinstance(task, str):
        task = load_task(task, backbone)
    if arm is not None:
        named = arms.arm(arm)
        init, trainable = named.init, named.trainable
    check_model(backbone, backbone_options, init, trainable, targets, task.own_table)
    assert random_init in RANDOM_INITS
    assert input_init in INPUT_INITS
    return Template(
        task,
        backbone,
        init,
        policy=trainable,
        random_init=random_init,
        random_gain=random_gain,
        input_init=input_init,
        weights=Path(weights) if weights else None,
        options=backbone_options,
        adapters=Adapters(rank=rank, alpha=alpha, targets=targets, zero=zero) if adapted(trainable) else None,
    )
