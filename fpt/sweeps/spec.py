"""What one sweep is: every field resolved, checked and hashed; its identity is known before it runs."""

import hashlib
import json
import math
import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any, get_args

from pydantic import ConfigDict, Field, ValidationError, ValidationInfo, field_validator, model_validator

from fpt import models, tasks
from fpt.errors import SpecError, unknown
from fpt.sweeps.explain import explain
from fpt.sweeps.fields import canonical, distinct, listing, split_arm, with_options
from fpt.training.recipe import MEASURES, WEIGHTS, Recipe

PROTOCOL = 1  # raised when a default or the meaning of results changes: every sweep then has a new hash

OF_THE_STUDY = {"feeds", "threshold"}  # what a sweep serves and how it is read: they change no run
SWEEP = re.compile(r"[A-Za-z0-9-]+\.[A-Za-z0-9_+-]+-[0-9a-f]{8}")

Option = bool | int | float | str
NPZ = "npz:"

PAPERS = {"lu-table": 22, "lu-figure": 6, "rothermel-table": 5, "rothermel-figure": 3}
FEEDS = [f"{kind}-{number}" for kind, last in PAPERS.items() for number in range(1, last + 1)]


class SweepSpec(Recipe):
    """One task x arm: the recipe of its runs, the grid of learning rates, and the seeds of both stages.

    `arm` may be given instead of `init` and `trainable`. Lists are kept sorted, and what cannot matter (how a
    pretrained arm would have been drawn at random) is set to its default: the same request is the same sweep.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    task: str
    variant: str = "paper"
    task_options: dict[str, Option] = Field(default={})
    backbone: str = "tiny-lm"
    backbone_options: dict[str, Option] = Field(default={})
    init: str = "pretrained"
    trainable: str | tuple[str, ...] = "fpt"
    random_init: str = "matched"
    random_gain: float = 1.0
    input_init: str = "orthogonal"
    pretrained_by: str | None = None  # folder name of the sweep, of the same study, that kept the pretrained weights
    measures: tuple[str, ...] = ()
    learning_rates: tuple[float, ...]
    selection_seeds: tuple[int, ...]
    confirmation_seeds: tuple[int, ...] = ()
    reference_rates: tuple[float, ...] = ()
    feeds: tuple[str, ...] = ()
    threshold: float | None = None  # validation accuracy that counts as converged (Lu et al. 2021, Table 6)

    @model_validator(mode="before")
    @classmethod
    def _resolve_arm(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        data = {k: v for k, v in data.items() if v is not None or k not in ("arm", "init", "trainable")}
        if "arm" not in data:
            return data
        if named := sorted({"init", "trainable"} & set(data)):
            raise SpecError(f"give either arm or init and trainable, not arm and {' and '.join(named)}")
        init, trainable = split_arm(data.pop("arm"))
        return {**data, "init": init, "trainable": trainable}

    @field_validator("*", mode="before")
    @classmethod
    def _no_guessing(cls, value: Any, info: ValidationInfo) -> Any:
        # pydantic would read true as 1 and "400" as 400; 1e-3 as text is allowed: YAML 1.1 reads it so
        annotation = cls.model_fields[str(info.field_name)].annotation
        items = value if isinstance(value, list | tuple) else [value]
        if any(isinstance(item, bool) for item in items):
            raise ValueError("true and false are not allowed here")
        whole = int in (annotation, *get_args(annotation))
        if whole and any(isinstance(item, str) for item in items):
            raise ValueError("must be whole numbers" if len(items) > 1 else "must be a whole number")
        return value

    @field_validator("learning_rates", "reference_rates")
    @classmethod
    def _rates(cls, rates: tuple[float, ...], info: ValidationInfo) -> tuple[float, ...]:
        for rate in rates:
            if not (math.isfinite(rate) and rate > 0):
                raise ValueError(f"every rate must be a finite number above 0, {rate:g} is not")
        if not rates and info.field_name == "learning_rates":
            raise ValueError("the grid needs at least one learning rate")
        return distinct(rates)

    @field_validator("selection_seeds", "confirmation_seeds")
    @classmethod
    def _seeds(cls, seeds: tuple[int, ...], info: ValidationInfo) -> tuple[int, ...]:
        if any(not 0 <= seed < 2**63 for seed in seeds):
            raise ValueError("every seed must be a whole number of 0 or more, below 2^63")
        if not seeds and info.field_name == "selection_seeds":
            raise ValueError("at least one selection seed is needed")
        both = set(seeds) & set(info.data.get("selection_seeds", ()))
        if both and info.field_name == "confirmation_seeds":
            raise ValueError(f"{listing(both)} also in selection_seeds; confirmation needs fresh seeds")
        return distinct(seeds)

    @field_validator("trainable")
    @classmethod
    def _trainable(cls, trainable: str | tuple[str, ...]) -> str | tuple[str, ...]:
        if not trainable:
            raise ValueError("name a policy, or at least one parameter group")
        return trainable if isinstance(trainable, str) else distinct(trainable)

    @field_validator("random_init")
    @classmethod
    def _random_init(cls, name: str, info: ValidationInfo) -> str:
        if name not in models.RANDOM_INITS:
            raise ValueError(f"must be one of {', '.join(models.RANDOM_INITS)}")
        return "matched" if info.data.get("init") == "pretrained" else name

    @field_validator("random_gain")
    @classmethod
    def _random_gain(cls, gain: float, info: ValidationInfo) -> float:
        if not (math.isfinite(gain) and gain > 0):
            raise ValueError("must be a finite number above 0")
        return 1.0 if info.data.get("init") == "pretrained" else gain

    @field_validator("input_init")
    @classmethod
    def _input_init(cls, name: str) -> str:
        if name not in models.INPUT_INITS:
            raise ValueError(f"must be one of {', '.join(models.INPUT_INITS)}")
        return name

    @field_validator("pretrained_by")
    @classmethod
    def _pretrained_by(cls, name: str | None, info: ValidationInfo) -> str | None:
        if name is not None and info.data.get("init") == "random":
            raise ValueError("needs init pretrained or statistics")
        if name is not None and not SWEEP.fullmatch(name):
            raise ValueError("must be the folder name of a sweep of the same study")
        return name

    @field_validator("measures")
    @classmethod
    def _measures(cls, measures: tuple[str, ...]) -> tuple[str, ...]:
        for name in measures:
            if name not in MEASURES:
                raise unknown("measure", name, MEASURES)
        return tuple(sorted(set(measures)))

    @field_validator("threshold")
    @classmethod
    def _threshold(cls, share: float | None) -> float | None:
        if share is not None and not 0 < share <= 1:
            raise ValueError("must be a fraction above 0, at most 1")
        return share

    @model_validator(mode="after")
    def _keeps_a_fresh_run(self) -> "SweepSpec":
        if WEIGHTS in self.measures and not self.confirmation_seeds:
            raise SpecError(
                "measures: weights are kept of the first confirmation seed, so confirmation_seeds needs one"
            )
        return self

    @field_validator("feeds")
    @classmethod
    def _feeds(cls, feeds: tuple[str, ...]) -> tuple[str, ...]:
        for feed in feeds:  # a study may serve tables of its own, but a slip in a paper's id must not go unseen
            if feed.startswith(("lu-", "rothermel-")) and feed not in FEEDS:
                raise unknown("feed", feed, FEEDS)
        return tuple(sorted(set(feeds)))

    @property
    def arm(self) -> str:
        """One of the four arms of Rothermel et al., else `<trainable>-<init>` with groups joined by +."""
        for name, resolved in models.ARMS.items():
            if resolved == (self.init, self.trainable):
                return name
        trainable = self.trainable if isinstance(self.trainable, str) else "+".join(self.trainable)
        return f"{trainable}-{self.init}"

    @property
    def recipe(self) -> Recipe:
        return Recipe(**{name: getattr(self, name) for name in Recipe.model_fields})

    @property
    def selection_runs(self) -> int:
        return len(self.learning_rates) * len(self.selection_seeds)

    @property
    def confirmation_runs(self) -> int:
        """An upper bound, known before the selection: the selected rate may be one of the reference rates."""
        return (len(self.reference_rates) + 1) * len(self.confirmation_seeds)

    @cached_property
    def hash(self) -> str:
        """Eight hex digits over the resolved fields that differ from their default, and the protocol."""
        fields = self.model_dump(mode="json", exclude_defaults=True, exclude=OF_THE_STUDY)
        for name, defaults in (
            ("task_options", tasks.entry(self.task).options),
            ("backbone_options", models.BACKBONES[self.backbone].options),
        ):
            options = canonical(fields.pop(name, {}), defaults)
            fields |= {name: options} if options else {}
        if self.task.startswith(NPZ):  # the data, not where they lie, are the task
            fields["task"] = NPZ + tasks.npz_checksum(tasks.npz_path(self.task))
        text = json.dumps({"protocol": PROTOCOL, **fields}, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:8]

    @property
    def folder_name(self) -> str:
        """`digits.frozen-pretrained-1a2b3c4d`, below the study's folder."""
        return f"{self.task.partition(':')[0]}.{self.arm}-{self.hash}"

    @property
    def title(self) -> str:
        """Task and arm, and every field that is not its default and tells sweeps of a study apart."""
        words = [with_options(self.task, self.task_options), self.arm]
        words += [] if self.variant == "paper" else [f"variant {self.variant}"]
        if self.backbone != "tiny-lm" or self.backbone_options:
            words.append(with_options(self.backbone, self.backbone_options))
        words += [] if self.random_init == "matched" else [self.random_init]
        words += [] if self.random_gain == 1 else [f"gain {self.random_gain:g}"]
        words += [] if self.input_init == "orthogonal" else [f"{self.input_init} input"]
        words += [f"pretrained by {self.pretrained_by.partition('.')[0]}"] if self.pretrained_by else []
        words += [] if self.dropout == Recipe().dropout else [f"dropout {self.dropout:g}"]
        words += [] if self.compute_type == "auto" else [self.compute_type]
        return ", ".join(words)

    def resolved(self) -> dict[str, Any]:
        """Every field as plain JSON values, without those that are the study's and change no run."""
        fields = self.model_dump(mode="json", exclude=OF_THE_STUDY)
        recipe = {name: fields.pop(name) for name in Recipe.model_fields}
        return fields | recipe  # what is learned first, then how

    def parameters(self) -> dict[str, Any]:
        """The same as parameters of the notebook, where `arm` stands for init and trainable."""
        fields = {"arm" if name == "init" else name: value for name, value in self.resolved().items()}
        del fields["trainable"]
        return fields | {"arm": self.arm}


FIELDS = ["arm", *SweepSpec.model_fields]


def resolve(fields: Mapping[str, Any], source: str = "") -> SweepSpec:
    """The spec that `fields` describe, checked against the tasks and backbones that exist.

    Raises SpecError naming the field as given, the value, the rule, and `source` (the study file, ...).
    """
    for name in fields:
        if name not in FIELDS:
            raise unknown("study field", name, FIELDS, source)
    try:
        spec = SweepSpec(**fields)
    except ValidationError as error:
        raise SpecError(explain(error, source)) from None
    except SpecError as error:
        raise SpecError(f"{error} ({source})" if source else str(error)) from None
    if spec.task.startswith(NPZ) and tasks.npz_path(spec.task).is_absolute():
        where = f" ({source})" if source else ""
        raise SpecError(f"task {spec.task!r}{where}: results record it, so the path must be relative to the workspace")
    tasks.check(spec.task, spec.variant, spec.task_options, source)
    models.check(spec.backbone, spec.backbone_options, spec.init, spec.trainable, source)
    return spec


def parameters_to_spec(names: Mapping[str, Any], source: str = "notebook parameters") -> SweepSpec:
    """The spec in a notebook's parameters, `names` being its globals() right after the parameters cell.

    Reading the globals is what catches a misspelt parameter: papermill only warns of one, then defines it.
    """
    plain = (bool, int, float, str, list, tuple, dict)
    fields = {
        name: value
        for name, value in names.items()
        if not name.startswith("_") and name not in ("In", "Out", "folder")
        if value is None or isinstance(value, plain)
    }
    return resolve(fields, source)
