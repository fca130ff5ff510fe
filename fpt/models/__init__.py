"""What learns: backbones and where their weights come from, parameter groups, freezing policies, arms.

`arms.py` is the table that a new policy or arm is added to, `catalogue.py` that of backbones; neither imports torch.
"""

import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fpt.errors import SpecError, check_known, check_options
from fpt.models import arms, hub, tokens
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
from fpt.models.arms import Treatment as Treatment
from fpt.models.arms import adapted as adapted
from fpt.models.arms import arm as arm
from fpt.models.arms import check_adapters
from fpt.models.arms import lies_in as lies_in
from fpt.models.arms import name_of as name_of
from fpt.models.arms import part as part
from fpt.models.catalogue import AS_PRINTED as AS_PRINTED
from fpt.models.catalogue import BACKBONES as BACKBONES
from fpt.models.catalogue import TRANSFORMER as TRANSFORMER
from fpt.models.catalogue import Backbone as Backbone
from fpt.models.hub import backbone as backbone
from fpt.models.hub import tiny as tiny
from fpt.models.tokens import load_task as load_task
from fpt.tasks import READS, OwnTable

if TYPE_CHECKING:
    from fpt.models.template import Template
    from fpt.tasks.task import Task

with warnings.catch_warnings(action="ignore"):
    import tqdm.auto  # noqa: F401 - the hub's client imports it, and it asks for widgets, which a book cannot use

# The linear input layer. `default`: PyTorch's weights (Lu et al. 2021, section 3.12). Both have a bias of 0. `biased`:
# orthogonal, with a random bias, so that a token of zeros is no vector of zeros (fpt/models/initialise.py).
INPUT_INITS = ("orthogonal", "default", "biased")
DEEPEST = 48  # layers: GPT-2 XL's
WIDEST = 4096  # of options that set a width
RANDOM_INITS = ("matched", "fixed", "scaled")


def groups_of(
    name: str, backbone_options: Mapping[str, Any] | None = None, own_table: OwnTable = "", source: str = ""
) -> tuple[str, ...]:
    """The groups that the backbone has; an option with the name of a group switches it on.

    own_table: on a task whose symbols its own table reads (fpt.tasks.own_table): the table is a group then. Raises
    SpecError where it must predict them, too, and the backbone is no causal language model of bytes; and where it reads
    those of its own tokenizer, and has none.
    """
    entry = hub.backbone(name)
    options = {**entry.options, **(backbone_options or {})}
    groups = tuple(group for group in entry.groups if options.get(group, True))
    if not own_table:
        return groups
    if own_table == READS:
        tokens.check(name, source)
        return (EMBEDDING, *(group for group in groups if group != "input"))
    if not entry.predicts_bytes:
        where = f" ({source})" if source else ""
        able = ", ".join(each for each, row in BACKBONES.items() if row.predicts_bytes)
        raise SpecError(
            f"backbone {name!r}{where}: the task predicts the next byte by the model's own table, so it must be a "
            f"causal language model of bytes; these are: {able}"
        )
    return (EMBEDDING, *(group for group in groups if group not in ("input", "output")))


def trainable_groups(
    trainable: str | Sequence[str],
    backbone: str,
    backbone_options: Mapping[str, Any] | None = None,
    own_table: OwnTable = "",
    source: str = "",
) -> tuple[str, ...]:
    """The groups that a policy name, or a list of groups, trains in `backbone`.

    A policy takes those of its groups that the backbone has: of `none`, whose groups are `input` and `output`, `fpt`
    and `all` train these two. A list means every group it names. own_table: as of `groups_of`; a table that reads alone
    stays frozen, unless a list names it, or a policy the part `token_table`.
    Raises SpecError for an unknown policy or group, for a group or layers named by hand that the backbone does not
    have, for a policy that leaves nothing to train, and for adapters of a backbone that has no matrices for them.
    """
    has = groups_of(backbone, backbone_options, own_table, source)
    if adapted(trainable):
        if not {"attention", "feed_forward"} & {*has}:
            where = f" ({source})" if source else ""
            raise SpecError(
                f"backbone {backbone!r}{where} takes no adapters: they are for matrices of attention and feed_forward, "
                f"and it has {', '.join(has)}"
            )
        has += (ADAPTER,)
    if isinstance(trainable, str):
        check_known("trainable policy", trainable, POLICIES, source)
        assert all(map(arms.is_nameable, POLICIES[trainable])), f"policy {trainable}"
        existing = tuple(group for group in POLICIES[trainable] if {*arms.lies_in(group)} & {*has})
        existing = tuple(group for group in existing if own_table != READS or group != EMBEDDING)
        if not existing:
            groups = ", ".join(POLICIES[trainable])
            raise SpecError(f"policy {trainable!r} trains {groups}, but backbone {backbone!r} has {', '.join(has)}")
        return existing
    where = f" ({source})" if source else ""
    if not trainable:
        raise SpecError(f"trainable is an empty list{where}; name at least one of {has}")
    for group in trainable:
        arms.check_group(group, source)
        if not {*arms.lies_in(group)} & {*has}:
            switch = f" (option {group})" if group in hub.backbone(backbone).groups else ""
            listed = ", ".join(has)
            raise SpecError(f"backbone {backbone!r} has no parameter group {group!r}{switch}{where}; it has {listed}")
        layers = (backbone_options or {}).get("layers") or hub.backbone(backbone).layers
        if (piece := arms.part(group)) and piece.deepest > layers:
            raise SpecError(f"backbone {backbone!r} has {layers} layers, too few for {group!r}{where}")
    return tuple(dict.fromkeys([*(group for group in arms.nameable() if group in trainable), *sorted(trainable)]))


def check(
    backbone: str,
    backbone_options: Mapping[str, Any] | None = None,
    init: str = "pretrained",
    trainable: str | Sequence[str] = "fpt",
    source: str = "",
    adapters: Mapping[str, Any] | None = None,
    own_table: OwnTable = "",
) -> tuple[Backbone, tuple[str, ...]]:
    """The backbone and the groups that train. Refuses an unknown backbone, option, initialisation, policy or group
    before anything is loaded (SpecError).

    adapters: `rank`, `alpha`, `targets`, `zero`, read where the groups hold adapters. own_table: as of `groups_of`.
    """
    if sys.flags.optimize > 1:
        raise SpecError(
            "Python runs without docstrings (-OO, PYTHONOPTIMIZE=2), and transformers needs them: leave it out"
        )
    where = f" ({source})" if source else ""
    entry, options = hub.backbone(backbone, source), backbone_options or {}
    check_options(f"backbone {backbone!r}", options, entry.options, source)
    layers, width = options.get("layers", 0), options.get("width", 1)
    check_known("init", init, INITS, source)
    if init != "random" and not entry.pretrained:
        raise SpecError(f"backbone {backbone!r} has no pretrained weights{where}; use init 'random'")
    deepest = max(DEEPEST, entry.layers) if init == "random" else entry.layers  # random weights: of any depth
    if not 0 <= layers <= deepest:
        raise SpecError(
            f"layers={layers}{where}: backbone {backbone!r} has {entry.layers} layers; "
            f"with init {init!r} give 1 to {deepest}"
        )
    if not 1 <= width <= WIDEST:
        raise SpecError(f"width={width}{where}: must be 1 to {WIDEST}")
    if options.get("zero_positions") and "positions" not in groups_of(backbone, options):
        raise SpecError(f"zero_positions{where}: backbone {backbone!r} has positions only with option positions")
    groups = trainable_groups(trainable, backbone, backbone_options, own_table, source)
    if adapted(trainable):
        check_adapters(backbone, groups_of(backbone, options), adapters or {}, where)
    return entry, groups


def build(  # noqa: PLR0913 - every choice of a model, by its name
    task: "Task | str",
    backbone: str = "gpt2",
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
    targets: str = Adapters.targets,
    zero: str = Adapters.zero,
    entry: Backbone | None = None,
    **backbone_options: Any,
) -> "Template":
    """A template: `.initialise(seed)` gives weights, `.report()` the parameter counts by group.

    `arm` names both `init` and `trainable`, in their place. `random_gain` multiplies the matrices of attention,
    feed-forward and recurrent layers, pretrained ones too. `weights`: a safetensors file that a sweep kept, in the
    place of the backbone's own pretrained weights. `rank`, `alpha`, `targets`, `zero` are of adapters
    (fpt.models.Adapters), where the arm has them. `entry`: a smaller model of the architecture, in the place of the
    backbone's own row.

    Raises SpecError (what is no task, unknown names, a sequence longer than frozen positions allow, adapters that do
    not fit) and WeightsError.
    """
    from fpt.models.template import Template
    from fpt.tasks.task import Task

    if isinstance(task, str):
        task = load_task(task, backbone)
    if not isinstance(task, Task):
        raise SpecError(f"task = {task!r}: must be a Task (fpt.tasks.load), or the name of one")
    if arm is not None:
        named = arms.arm(arm)
        init, trainable = named.init, named.trainable
    wanted: dict[str, Any] = {"rank": rank, "alpha": alpha, "targets": targets, "zero": zero}
    check(backbone, backbone_options, init, trainable, adapters=wanted, own_table=task.own_table)
    check_known("random_init", random_init, RANDOM_INITS)
    check_known("input_init", input_init, INPUT_INITS)
    if not arms.is_positive(random_gain):
        raise SpecError(f"random_gain={random_gain!r}: must be a finite number above 0")
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
        adapters=Adapters(**wanted) if adapted(trainable) else None,
        entry=entry or hub.backbone(backbone),
    )
