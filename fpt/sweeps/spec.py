"""What one sweep is: every field declared once, resolved, checked and hashed; its identity is known before it runs."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, PrivateAttr, ValidationInfo, field_validator, model_validator

from fpt import models, tasks
from fpt.errors import MisfitError, SpecError, unknown
from fpt.files import known_sha256
from fpt.models import hub, tokens
from fpt.models.arms import Targets, Zero
from fpt.sweeps.fields import (
    Measures,
    Options,
    Rates,
    Seeds,
    SweepFolder,
    Trainable,
    canonical,
)  # fmt: skip
from fpt.sweeps.record import folder_name
from fpt.training.recipe import KEPT, About, Count, Positive, Recipe, about

PROTOCOL = 2  # raised when a default or the meaning of results changes: every sweep then has a new hash


@dataclass(frozen=True)
class Resolved:
    """What the names in a spec mean, looked up once, when it is made."""

    task: tasks.Entry
    backbone: models.Backbone
    own_table: tasks.OwnTable
    groups: tuple[str, ...]  # of parameters, that train
    contents: Mapping[str, str]  # of your own data, your own model, and a tokenizer: what the files are that it names


class SweepSpec(Recipe):
    """One task x arm: the recipe of its runs, the grid of learning rates, and the seeds. `resolve` makes it.

    `arm` may be given instead of `init` and `trainable`. Lists are kept sorted. Two fields that cannot matter are set:
    `random_init` of a pretrained arm, and `extend` of a single rate. Others that change nothing make another sweep of
    the same runs: `random_init` with init `statistics`, and `input_init` on a task of symbols.
    """

    task: str
    variant: str = "paper"
    task_options: Options = Field(default={})
    backbone: Annotated[str, About("{}")] = "tiny-lm"
    backbone_options: Options = Field(default={})
    init: Annotated[str, About(part="arm")] = "pretrained"
    trainable: Annotated[Trainable, About(part="arm")] = "fpt"  # a policy, or parameter groups
    random_init: Annotated[
        Literal[models.RANDOM_INITS],  # type: ignore[valid-type]
        About("{} scale", short="{}", part="arm"),
    ] = "matched"
    random_gain: Annotated[Positive, About("gain {:g}", short="x{:g}", part="arm")] = 1.0
    input_init: Annotated[
        Literal[models.INPUT_INITS],  # type: ignore[valid-type]
        About("{} input", short="{}-input", part="arm"),
    ] = "orthogonal"
    # of adapters: without effect, and refused, where the arm has none
    rank: Count = models.Adapters.rank
    alpha: Positive = models.Adapters.alpha
    targets: Targets = models.Adapters.targets
    zero: Zero = models.Adapters.zero
    # folder of a sweep of the same study: its backbone, of the first seed at the best rate, is where all seeds start;
    # input and output layers are new
    pretrained_by: Annotated[SweepFolder | None, About("pretrained by {}", short="by-{}", part="arm")] = None
    measures: Annotated[Measures, About(part="measured")] = ()
    # of the training examples, drawn by the seed
    data_fraction: Annotated[float, Field(gt=0, le=1), About(part="data")] = 1.0
    # by one permutation, the same for all
    shuffle_tokens: Annotated[bool, Field(strict=True), About("shuffled tokens", part="data")] = False
    learning_rates: Annotated[Rates, Field(min_length=1), About("rates {}", part="grid")]
    seeds: Annotated[Seeds, Field(min_length=1), About("seeds {}", part="grid")]
    # at most so many further rates at each end of the grid
    extend: Annotated[int, Field(ge=0, le=10, strict=True, validate_default=True), About(part="grid")] = 3
    # accuracy that counts as converged
    threshold: Annotated[Annotated[float, Field(gt=0, le=1)] | None, About(part="reading")] = None
    _means: Resolved = PrivateAttr()
    _differing: dict[str, Any] = PrivateAttr()  # the fields that are not their default, as JSON values
    _hash: str = PrivateAttr()

    @model_validator(mode="before")
    @classmethod
    def _resolve_arm(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        data = {k: v for k, v in data.items() if v is not None or k not in ("arm", "init", "trainable")}
        if "arm" not in data:
            return data
        if named := sorted({"init", "trainable"} & set(data)):
            given = ", ".join(f"{name} = {data[name]!r}" for name in ("arm", *named))
            raise SpecError(f"give either arm or init and trainable; given: {given}")
        arm = models.arm(data.pop("arm"))
        return {**data, "init": arm.init, "trainable": arm.trainable}

    @field_validator("random_init")
    @classmethod
    def _only_of_random_arms(cls, value: Any, info: ValidationInfo) -> Any:
        return cls.model_fields["random_init"].default if info.data.get("init") == "pretrained" else value

    @field_validator("extend")
    @classmethod
    def _only_of_grids(cls, value: int, info: ValidationInfo) -> int:
        """A single rate is no grid: nothing is chosen."""
        return 0 if len(info.data.get("learning_rates", ())) == 1 else value

    @model_validator(mode="after")
    def _bind(self, info: ValidationInfo) -> Self:
        """Look up what the names mean, and name the sweep after it: its hash is that of the files as they are now."""
        context = info.context or {}
        self._means = means = _meaning(self, context.get("source", ""), context.get("contents"))
        fields = self.model_dump(mode="json", exclude_defaults=True, exclude=READING)
        for name, defaults in self.option_defaults.items():
            options = canonical(fields.pop(name, {}), defaults)
            fields |= {name: options} if options else {}
        # the data and the model, not where they lie, are what is trained
        fields |= {name: content for name, content in means.contents.items() if name in ("task", "backbone")}
        if "tokenizer" in means.contents:
            fields["task_options"]["tokenizer"] = means.contents["tokenizer"]
        self._differing = fields
        text = json.dumps({"protocol": PROTOCOL, **fields}, sort_keys=True, separators=(",", ":"))
        self._hash = hashlib.sha256(text.encode()).hexdigest()[:8]
        return self

    @property
    def arm(self) -> str:
        """Its name in fpt/models/arms.py, else `<trainable>-<init>` with groups joined by +."""
        return models.name_of(self.init, self.trainable)

    @property
    def means(self) -> Resolved:
        """What its names mean."""
        return self._means

    @property
    def adapters(self) -> dict[str, Any]:
        """`rank`, `alpha`, `targets`, `zero`, for fpt.models.build."""
        return {name: getattr(self, name) for name in models.ADAPTERS}

    @property
    def model_options(self) -> dict[str, Any]:
        """The options of fpt.models.build: those of the backbone, and of adapters."""
        return {**self.backbone_options, **self.adapters}

    @property
    def keeps(self) -> bool:
        """Whether the best run leaves a file of weights."""
        return bool({*KEPT} & {*self.measures})

    @property
    def recipe(self) -> Recipe:
        return Recipe(**{name: getattr(self, name) for name in Recipe.model_fields})

    @property
    def runs(self) -> int:
        """Before the grid is extended."""
        return len(self.learning_rates) * len(self.seeds)

    def changed(self, **fields: Any) -> "SweepSpec":
        """The same sweep with other fields, checked anew, and of the same files. Raises SpecError."""
        anew = {"task", "task_options", "backbone"} & fields.keys()
        return resolve({**dict(self), **fields}, contents=None if anew else self.means.contents)

    @property
    def option_defaults(self) -> dict[str, Mapping[str, Any]]:
        """What the options of the task and of the backbone are where a study does not name them."""
        return {"task_options": self.means.task.options, "backbone_options": self.means.backbone.options}

    @property
    def hash(self) -> str:
        """Eight hex digits over the resolved fields that differ from their default, and the protocol."""
        return self._hash

    def without(self, *fields: str) -> str:
        """Equal for sweeps that differ in nothing but these fields."""
        return json.dumps(
            {name: value for name, value in self._differing.items() if name not in fields}, sort_keys=True
        )

    @property
    def identity(self) -> str:
        """What is trained, whatever the grid, the seeds, the budget and the evaluations: two sweeps with one identity
        are the same row of a table on the same task."""
        return self.without(*NOT_TRAINED)

    @property
    def folder_name(self) -> str:
        """`digits.frozen-pretrained-1a2b3c4d`, below the study's folder."""
        return folder_name(self.task, self.arm, self.hash)

    def resolved(self) -> dict[str, Any]:
        """Every field as plain JSON values, without those that are the study's and change no run."""
        fields = self.model_dump(mode="json", exclude=READING)
        recipe = {name: fields.pop(name) for name in Recipe.model_fields}
        return fields | recipe  # what is learned first, then how

    def parameters(self) -> dict[str, Any]:
        """The same as parameters of the notebook, where `arm` stands for init and trainable."""
        fields = {"arm" if name == "init" else name: value for name, value in self.resolved().items()}
        del fields["trainable"]
        return fields | {"arm": self.arm}


FIELDS = ["arm", *SweepSpec.model_fields]
ABOUT = about(SweepSpec)


def fields_of(*parts: str) -> set[str]:
    """The fields that declare to be of these parts."""
    return {name for name, about in ABOUT.items() if about.part in parts}


READING, HOW_LONG = fields_of("reading"), fields_of("grid", "budget")
NOT_TRAINED = HOW_LONG | fields_of("measured")  # sweeps that differ in these alone train the same


def resolve(
    fields: Mapping[str, Any],
    source: str = "",
    hints: Mapping[str, str] = {},
    contents: Mapping[str, str] | None = None,
) -> SweepSpec:
    """The spec that `fields` describe, checked against the tasks and backbones that exist, and named after the files
    that it names as they are now, or as `contents` has them.

    Raises SpecError naming the field as given, the value, the rule, and `source` (the study file, ...); `hints` are
    added to pydantic's types of errors.
    """
    context = {"source": source, "hints": hints, "contents": contents}
    return SweepSpec.model_validate(_options_placed(fields, source), context=context)


def _meaning(spec: SweepSpec, source: str, contents: Mapping[str, str] | None) -> Resolved:
    """What the names in a spec mean; SpecError for names of nothing, MisfitError for what does not go together."""
    where = f" ({source})" if source else ""
    if tasks.own_kind(spec.task) and tasks.own_path(spec.task).is_absolute():
        raise SpecError(f"task {spec.task!r}{where}: results record it, so the path must be relative to the workspace")
    if hub.path_of(spec.backbone) and Path(spec.backbone.removeprefix(hub.HUB)).is_absolute():
        raise SpecError(
            f"backbone {spec.backbone!r}{where}: results record it, so the path must be relative to the workspace, or "
            "start with ~"
        )
    entry, backbone = tasks.entry(spec.task, source), models.backbone(spec.backbone, source)
    own_table = tasks.own_table(spec.task, spec.task_options)
    try:
        _check_arm(spec)
        tasks.check_task(spec.task, spec.variant, spec.task_options)
        if own_table == tasks.READS:
            tokens.check_tokenizer(backbone)
        groups = models.check_model(backbone, spec.backbone_options, spec.init, spec.trainable, spec.targets, own_table)
        spec.check_head(groups)
    except SpecError as error:
        raise MisfitError(f"{error}{where}") from None
    if contents is None:
        contents = contents_of(spec.task, backbone, own_table)
    return Resolved(entry, backbone, own_table, groups, contents)


def _check_arm(spec: SweepSpec) -> None:
    """SpecError for kept weights of an arm that would not start from them, and for settings of adapters without any."""
    if spec.pretrained_by is not None and spec.init == "random":
        raise SpecError(f"pretrained_by = {spec.pretrained_by!r}: needs init pretrained or statistics")
    for name in () if models.adapted(spec.trainable) else models.ADAPTERS:
        if (value := getattr(spec, name)) != SweepSpec.model_fields[name].default:
            raise SpecError(f"{name} = {value!r}: arm {spec.arm} has no adapters, so that it would change nothing")


def contents_of(task: str, backbone: models.Backbone, own_table: tasks.OwnTable) -> dict[str, str]:
    """What your own data, your own model and a tokenizer are now: kinds and checksums of the files of a sweep."""
    found: dict[str, str] = {}
    if kind := tasks.own_kind(task):
        found["task"] = f"{kind}:{tasks.own_checksum(task)}"
    elif code := tasks.own_code(task):
        found["task"] = f"{task}:{known_sha256(code)}"
    if backbone.folder:
        found["backbone"] = hub.HUB + hub.checksum(backbone.folder)
    if own_table == tasks.READS:
        found["tokenizer"] = tokens.identity(backbone)
    return found


def every_option() -> set[str]:
    """The options that some task or some backbone has."""
    tables = tasks.known(), models.BACKBONES
    return {option for table in tables for entry in table.values() for option in entry.options}


def _options_placed(fields: Mapping[str, Any], source: str) -> dict[str, Any]:
    """The fields, with options of the task and of the backbone that are named like fields where they belong.

    Raises SpecError for a name that is neither, MisfitError where it is an option of others.
    """
    found = {name: value for name, value in fields.items() if name in FIELDS}
    if len(found) == len(fields):
        return found
    default = SweepSpec.model_fields["backbone"].default
    homes = {
        "backbone_options": models.backbone(fields.get("backbone", default), source).options,
        "task_options": tasks.entry(fields.get("task", ""), source).options,
    }
    known = [*FIELDS, *(option for options in homes.values() for option in options)]
    for name in [name for name in fields if name not in FIELDS]:
        if name not in known:
            refusal = unknown("study field", name, known, source)
            raise MisfitError(str(refusal)) if name in every_option() else refusal
        home = next(home for home, options in homes.items() if name in options)
        if not isinstance(given := found.get(home) or {}, Mapping):
            raise SpecError(f"{home} = {given!r}: must be a mapping{f' ({source})' if source else ''}")
        found[home] = {**given, name: fields[name]}
    return found
