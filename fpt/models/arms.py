"""Arms: what a run starts from, and what of it trains. An arm with a name is one entry of ARMS; whatever names,
tabulates or draws it reads it here. No torch.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from fnmatch import translate
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as validated

from fpt.documents import explained
from fpt.errors import SpecError, check_known, unknown
from fpt.papers import arms_of_papers

# Groups of parameters that a model of a task may have, and one that is attached to it: LoRA's A and B. `embedding` is
# the backbone's own table of symbols, which takes the place of `input` and `output` on text, and of `input` alone where
# its own tokenizer reads your texts. Then a policy trains it only by the part `token_table`, and a list of groups that
# names it does.
EMBEDDING = "embedding"
GROUPS = ("input", "output", EMBEDDING, "layer_norm", "positions", "attention", "feed_forward", "recurrent")
ADAPTER = "adapter"
ADAPTER_FILES = ("adapter_config.json", "adapter_model.safetensors")  # of kept adapters, as peft's


@dataclass(frozen=True)
class Part:
    """Parameters that can be trained without the others: those of whole groups, or of these in whose name the regular
    expression `names` is found, in these layers (slice(-1, None): the last), or anywhere."""

    groups: tuple[str, ...]
    names: str = ""
    layers: slice | None = None

    def holds(self, name: str, group: str, layer: int | None, layers: int) -> bool:
        """Whether a parameter belongs to it: its name and group, its layer (from 0; None outside the layers) of all."""
        there = self.layers is None or layer in range(layers)[self.layers]
        return there and group in self.groups and re.search(self.names, name) is not None

    @property
    def deepest(self) -> int:
        """How many layers a model needs to have all that it names."""
        return 0 if self.layers is None else max(abs(end) for end in (self.layers.start, self.layers.stop) if end)


INSIDE = ("layer_norm", "attention", "feed_forward", "recurrent")  # groups of the layers
PARTS: dict[str, Part] = {
    "biases": Part(INSIDE, names="bias$"),  # BitFit's (Ben Zaken et al. 2022)
    "last_attention": Part(("attention",), layers=slice(-1, None)),  # Lu et al. 2021, Table 14
    # Whole groups under a name of their own, so that a policy is not the list of groups that published sweeps name
    "norm_weights": Part(("layer_norm",)),
    "token_table": Part((EMBEDDING,)),
}
NAMES = (*GROUPS, ADAPTER, *PARTS)  # in the order of tables
LAYERS = re.compile(r"layers: (?:(first|last) ([1-9]\d*)|(\d+)(?:-(\d+))?)")  # last 2, 3, 0-2: the first layer is 0
WILD = re.compile(r"[^+]*[*?\[][^+]*")  # a pattern of names, as *.attn.*
FORMS = "or a selection of layers (layers: last 2, layers: first 1, layers: 0-2), or a pattern of names (*.attn.*)"


def part(name: str) -> Part:
    """What a policy, or a list of groups, means by a name: a group, one of PARTS, the layers of `layers: last 2`, or
    the parameters whose whole name, such as backbone.h.0.attn.c_attn.bias, fits a pattern.

    Raises SpecError for any other name.
    """
    if (found := _part(name)) is None:
        raise SpecError(f"{unknown('parameter group', name, NAMES)} {FORMS.capitalize()}.")
    return found


def _part(name: str) -> Part | None:
    if name in PARTS:
        return PARTS[name]
    if name in NAMES:
        return Part((name,))
    if found := LAYERS.fullmatch(name):
        end, count, low, high = found.groups()
        if end:
            return Part(INSIDE, layers=slice(int(count)) if end == "first" else slice(-int(count), None))
        return Part(INSIDE, layers=slice(int(low), int(high or low) + 1))
    return Part(GROUPS, names=rf"\A{translate(name)}") if WILD.fullmatch(name) else None


# Named choices of trainable groups and parts. A policy takes those that the backbone has.
POLICIES: dict[str, tuple[str, ...]] = {
    "fpt": ("input", "output", "layer_norm", "positions"),  # Lu et al. 2021, section 2.2
    "all": GROUPS,
    "whole": (*GROUPS, "token_table"),
    "norms": ("input", "output", "norm_weights"),
    "output": ("output",),  # Lu et al. section 3.9
    "fpt-attention": ("input", "output", "layer_norm", "positions", "attention"),  # Lu et al. section 3.11
    "fpt-feed-forward": ("input", "output", "layer_norm", "positions", "feed_forward"),
    "fpt-feed-forward-last-attention": ("input", "output", "layer_norm", "positions", "feed_forward", "last_attention"),
    "lora": ("input", "output", ADAPTER),  # Hu et al. 2021
    "fpt-lora": ("input", "output", "layer_norm", "positions", ADAPTER),
    "matrices": ("input", "output", "attention", "feed_forward"),  # what LoRA adapts, in full
}

# statistics: every tensor Gaussian, with the mean and standard deviation of the pretrained one (Lu et al. section 3.8).
INITS = ("pretrained", "random", "statistics")

GREY = "#808080"  # of what has no colour of its own; legible on white and on black


@dataclass(frozen=True)
class Treatment:
    """What the runs of an arm have in common: an initialisation, and a policy or groups that train. Figures draw it by
    letters, label, colour and marker."""

    init: str
    trainable: str | tuple[str, ...]
    letters: str
    label: str
    colour: str = GREY
    marker: str = "P"

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups that it asks for; a backbone may not have them all."""
        return POLICIES[self.trainable] if isinstance(self.trainable, str) else self.trainable


# The colours are those of Okabe and Ito, and light tints of them. Blues are frozen, oranges unfrozen, greens adapted;
# dark is pretrained, light is random.
ARMS: dict[str, Treatment] = {
    # Rothermel et al. 2021, section 3
    "frozen-pretrained": Treatment("pretrained", "fpt", "FP", "frozen", "#0072B2", "o"),
    "frozen-random": Treatment("random", "fpt", "FR", "frozen random weights", "#56B4E9", "s"),
    "unfrozen-pretrained": Treatment("pretrained", "all", "UP", "full training", "#D55E00", "^"),
    "unfrozen-random": Treatment("random", "all", "UR", "from scratch", "#E69F00", "D"),
    # adapters (Hu et al. 2021), and what they are compared with
    "lora-pretrained": Treatment("pretrained", "lora", "LP", "LoRA", "#009E73", "v"),
    "lora-random": Treatment("random", "lora", "LR", "LoRA on random weights", "#66C2A5", "<"),
    "fpt-lora-pretrained": Treatment("pretrained", "fpt-lora", "FLP", "frozen with LoRA", "#5E8C31", ">"),
    "matrices-pretrained": Treatment("pretrained", "matrices", "MP", "matrices only", "#CC79A7", "X"),
    # on texts in the model's own tokens, as people fine-tune: embeddings train too, or norms and head alone
    "whole-pretrained": Treatment("pretrained", "whole", "WP", "full training, embeddings too", "#B22222", "d"),
    "whole-random": Treatment("random", "whole", "WR", "from scratch, embeddings too", "#8C6D1F", "h"),
    "norms-pretrained": Treatment("pretrained", "norms", "NP", "norms and head", "#4B6FD6", "p"),
}
# Features once, then a logistic regression on them: no gradient steps, and so no entry of ARMS.
PROBE = Treatment("pretrained", "output", "probe", "probe", marker="*")
# What else than a frozen arm a policy without an arm of its own trains, as figures say it.
TOO = {
    "fpt-attention": "attention trained too",
    "fpt-feed-forward": "feed-forward trained too",
    "fpt-feed-forward-last-attention": "feed-forward and last attention trained too",
}
SHORT = {  # as practitioners call the arms
    "frozen": "frozen-pretrained",
    "lora": "lora-pretrained",
    "full": "unfrozen-pretrained",
    "scratch": "unfrozen-random",
}
FOUR = ("frozen-pretrained", "frozen-random", "unfrozen-pretrained", "unfrozen-random")  # of Rothermel et al.


Targets = Literal["attention", "feed_forward", "both"]
Zero = Literal["A", "B"]


@validated(frozen=True)
class Adapters:
    """LoRA (Hu et al. 2021): every matrix W that is a target becomes W + (alpha / rank) B A. A is (rank, in),
    B (out, rank); both train in float32, and biases stay frozen. The fused query, key and value of GPT-2 are one
    matrix, with one A and one B. `zero`: the matrix that starts from zeros; the other starts at random."""

    rank: Annotated[int, Field(ge=1, strict=True)] = 8
    alpha: Annotated[float, Field(gt=0, allow_inf_nan=False, strict=True)] = 32.0
    targets: Targets = "both"
    zero: Zero = "B"

    @property
    def groups(self) -> tuple[str, ...]:
        """The parameter groups whose matrices are adapted."""
        return ("attention", "feed_forward") if self.targets == "both" else (self.targets,)


ADAPTERS = tuple(field.name for field in fields(Adapters))  # fields of a sweep too


def as_text(group: Any) -> Any:
    """What is listed of a model, as text: YAML makes a mapping of `layers: last 2`."""
    return f"layers: {group['layers']}" if isinstance(group, Mapping) and group.keys() == {"layers"} else group


def known() -> dict[str, Treatment]:
    """Every arm with a name: ours, and those of papers in the workspace. Raises SpecError for one of these that is no
    arm, or whose name, or letters, is another's."""
    found = dict(ARMS)
    for name, (given, source) in arms_of_papers().items():
        try:
            entry = _of_fields(name, given)
            if {name, entry.letters} & {*found, *SHORT, *(other.letters for other in found.values())}:
                raise SpecError(
                    f"another arm has its name or its letters, {entry.letters}; rename it, and give it `letters` that "
                    "`fpt list arms` does not have"
                )
        except SpecError as error:
            raise SpecError(f"{error} (arm {name} of {source})") from None
        found[name] = entry
    return found


def _of_fields(name: str, given: Mapping[str, Any]) -> Treatment:
    """The arm that a paper of the workspace defines. Raises SpecError."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name):
        raise SpecError(f"{name}: an arm is named by letters, digits, - and _, since folders are called by it")
    listed = given.get("trainable")
    wanted = {"letters": name, "label": name, **given}
    wanted |= {"trainable": [as_text(group) for group in listed]} if isinstance(listed, list) else {}
    for key in wanted:
        check_known("field of an arm", key, [each.name for each in fields(Treatment)])
    try:
        entry = TypeAdapter(Treatment).validate_python(wanted)
    except ValidationError as error:
        raise SpecError("\n".join(explained(found) for found in error.errors())) from None
    check_known("init", entry.init, INITS)
    if not re.fullmatch("#[0-9A-Fa-f]{6}", entry.colour):
        raise SpecError(f"colour = {entry.colour!r}: must be #RRGGBB, as {GREY}")
    if isinstance(entry.trainable, str):
        check_known("trainable policy", entry.trainable, POLICIES)
    for group in entry.groups:
        part(group)
    return entry


def arm(name: str) -> Treatment:
    """The arm `name`: one that is `known`, by its letters or its short name (SHORT) too, or any combination by
    `<policy>-<init>` or `<group>+<group>-<init>`.

    Raises SpecError for any other name.
    """
    every = known()
    names = {each: each for each in every} | {entry.letters: each for each, entry in every.items()} | SHORT
    if name in list(names):  # a list as name is no key
        return every[names[name]]
    trainable, _, init = str(name).rpartition("-")
    groups = tuple(trainable.split("+"))
    if init in INITS and trainable in POLICIES:
        frozen = {"pretrained": "frozen", "random": "frozen random weights"}.get(init, f"frozen {init}")
        return Treatment(init, trainable, name, f"{frozen}, {TOO[trainable]}" if trainable in TOO else name)
    if init in INITS and all(map(_part, groups)):
        return Treatment(init, groups, name, name)
    forms = f"Or by letters ({', '.join(entry.letters for entry in every.values())}), or {', '.join(SHORT)}. "
    forms += f"Or <policy>-<init>, with a policy of {', '.join(POLICIES)}; or <group>+<group>-<init>, {FORMS}."
    raise SpecError(f"{unknown('arm', name, every)} {forms}")


def name_of(init: str, trainable: str | Sequence[str]) -> str:
    """The name of an arm that is `known`, else `<trainable>-<init>` with groups joined by +."""
    wanted = (init, trainable if isinstance(trainable, str) else set(trainable))
    for name, entry in known().items():
        if wanted == (entry.init, entry.trainable if isinstance(entry.trainable, str) else set(entry.trainable)):
            return name
    return f"{trainable if isinstance(trainable, str) else '+'.join(trainable)}-{init}"


def adapted(trainable: str | Sequence[str]) -> bool:
    """Whether a policy, or a list of groups, trains adapters."""
    return ADAPTER in (POLICIES.get(trainable, ()) if isinstance(trainable, str) else trainable)
