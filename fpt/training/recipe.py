"""What all runs of a fleet share."""

import math
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from fpt.documents import explained
from fpt.errors import SpecError, unknown

Count = Annotated[int, Field(ge=1, lt=2**31, strict=True)]  # strict: True and 8.0 are no counts
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


@dataclass(frozen=True)
class About:
    """What else a field of a sweep declares, beside its type and its default: how its value is said in words, and what
    it is a part of. Titles, names of arms, hashes and rows of tables follow from it (fpt.sweeps).

    `said` is how a title and a legend say a value that is not the default; without it they say the name and the value.
    `short` is how the name of an arm says it, where that is shorter.
    """

    said: str = ""
    short: str = ""
    # arm: the name of an arm says it already. data: how much of a task's data is read, and in which order. grid: which
    # rates and seeds. budget: how long, and on how many examples. measured: what else than accuracies. reading: how
    # results are read, which changes no run. Without a part it is what else is trained, and how.
    part: Literal["arm", "data", "grid", "budget", "measured", "reading", ""] = ""


def about(model: type[BaseModel]) -> dict[str, About]:
    """What every field of a recipe, or of a sweep, declares of itself."""
    return {
        name: next((each for each in field.metadata if isinstance(each, About)), About())
        for name, field in model.model_fields.items()
    }


# What a sweep can be asked for besides accuracies; fpt/training/measures.py says what each is.
# The last is measured no more: a training accuracy with dropout, which nothing read. 31 published sweeps of
# laptop-lu2021 asked for it, and the hash in their names holds it, so that a study may still name it.
MEASURES = ("weights", "attention", "adapter", "windows", "answers", "train-mode")
KEEP_WEIGHTS, ATTENTION, KEEP_ADAPTER, WINDOWS, ANSWERS, _ = MEASURES
KEPT = (KEEP_WEIGHTS, KEEP_ADAPTER)  # files that the best run of the first seed leaves

BUDGETS = 6  # reported budgets: all steps, half of them, and so on
NOT_OF_A_PROBE = ("probe", "head_rate", "weight_decay", "warmup", "schedule")  # with solver logistic
HEAD = ("input", "output")  # the groups that train at the rate of the head
LAST_RATE = 0.1  # of the full rate: where a cosine schedule ends


def weights_file(folder: Path, rate: float) -> Path:
    """The file in `folder` of all weights of a run at this rate."""
    return folder / f"weights-{rate!r}.safetensors"


def head_and_more(groups: Collection[str]) -> bool:
    """Whether some of the groups that train are of the head, and some are not: the head may have a rate of its own."""
    return 0 < len({*groups} & {*HEAD}) < len({*groups})


def as_written(value: Any) -> Any:
    """Numbers, and those in lists, at 12 digits: 0.1 + 0.2 and 0.3 are one number, as a person writes them, and must
    not be two sweeps, or two rates of one."""
    if isinstance(value, float):
        return float(f"{value:.12g}")
    return type(value)(map(as_written, value)) if isinstance(value, list | tuple) else value


class Recipe(BaseModel):
    """The training recipe: Adam with PyTorch's defaults, a constant learning rate (Lu et al. 2021, appendix C).

    Weight decay is decoupled (AdamW): a step also takes the rate times `weight_decay` off a tensor. It acts on matrices
    and tables, those of tokens and positions included, as in nanoGPT and in the library's Trainer; not on layer norms,
    on biases, or on any other tensor of fewer than two dimensions.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    # how what trains is found: step by step; or, of an output layer alone, at once: a probe, which is multinomial
    # logistic regression on standardised features. Its rates are strengths, scikit-learn's C, and it makes one step
    solver: Annotated[Literal["adamw", "logistic"], About("{} regression", part="arm")] = "adamw"
    # strength of the probe from which the output layer starts; None: it starts from small random numbers
    probe: Annotated[Positive | None, About("strength {:g}")] = None
    steps: Annotated[Count, About("{:,} steps", short="steps {}", part="budget")] = 1000  # gradient steps
    batch_size: Count = 8  # Rothermel et al. 2021, section 3
    clip: Annotated[Positive | None, About("clip {:g}")] = 1.0  # global gradient norm of one run; None: off
    # share of the steps over which the rate rises linearly
    warmup: Annotated[float, Field(ge=0, lt=1), About("warm-up {:g}")] = 0.0
    # constant, or along half a cosine to a tenth of the rate at the last step, from the end of the warm-up on
    schedule: Annotated[Literal["constant", "cosine"], About("{} schedule")] = "constant"
    # of the input and output layers, whatever that of the rest is; warm-up and schedule multiply both. None: the same
    head_rate: Annotated[Positive | None, About("head rate {:g}")] = None
    weight_decay: Annotated[float, Field(ge=0, allow_inf_nan=False), About("weight decay {:g}")] = 0.0
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.1
    # even in the logarithm of the step; budgets come on top
    evaluations: Annotated[Count, Field(le=10_000), About(part="budget")] = 20
    # whose parameters are a run's result: the best on validation so far, or the last that were finite
    report: Annotated[Literal["best", "last"], About("results of the {} step")] = "best"
    # Sizes of the samples that the seed draws; None: all examples.
    # of the validation set, at every evaluation
    evaluation_examples: Annotated[Count | None, About(part="budget")] = None
    # of the test set at every budget but the last, of the training set at all
    budget_examples: Annotated[Count | None, About(part="budget")] = None
    test_examples: Annotated[Count | None, About(part="budget")] = None  # of the test set at the last budget
    # of products with attention and feed-forward matrices
    compute_type: Annotated[Literal["auto", "float32", "bfloat16"], About("{}", part="budget")] = "auto"

    @model_validator(mode="wrap")
    @classmethod
    def _told(cls, given: Any, make: ModelWrapValidatorHandler[Self], info: ValidationInfo) -> Self:
        """Raises SpecError for a field that there is not, and for a value that is not allowed. The context of a
        validation may have `source`, where the fields stand, and `hints`, added to pydantic's types of errors."""
        context = info.context or {}
        source, hints = context.get("source", cls.__name__), context.get("hints", {})
        where = f" ({source})" if source else ""
        try:
            return make(given)
        except SpecError as error:
            raise SpecError(f"{error}{where}") from None
        except ValidationError as error:
            errors = error.errors(include_url=False)
            if extra := [found["loc"][0] for found in errors if found["type"] == "extra_forbidden"]:
                raise unknown("field", extra[0], cls.model_fields, source) from None
            findings = (f"{explained(found)}{hints.get(found['type'], '')}{where}" for found in errors)
            raise SpecError("\n".join(dict.fromkeys(findings))) from None

    @field_validator("*", mode="before")
    @classmethod
    def _no_booleans(cls, value: Any, info: ValidationInfo) -> Any:
        if cls.model_fields[str(info.field_name)].annotation is bool:
            return value
        if any(isinstance(item, bool) for item in (value if isinstance(value, list | tuple) else [value])):
            raise ValueError("true and false are not allowed here")  # pydantic would read true as 1
        return value

    @field_validator("*")
    @classmethod
    def _as_written(cls, value: Any) -> Any:
        return as_written(value)

    def budgets(self) -> list[int]:
        """Steps at which runs are tested: N/32, N/16, ..., N, distinct, at least 1.

        A run is there what a run of so many steps would be, since its rate is constant. With `warmup` or a `schedule`
        it is not, and the last step is the only budget.
        """
        shares = [2**k for k in range(BUDGETS)] if self.schedule == "constant" and not self.warmup else [1]
        return sorted({max(1, round(self.steps / share)) for share in shares})

    def share_of_rate(self, step: int) -> float:
        """The factor on every rate at step 1, 2, ...: it rises to 1 over the warm-up, then stays 1 or follows the
        schedule. Without a warm-up the first step has the full rate."""
        warm = max(1.0, self.warmup * self.steps)
        if step <= warm or self.schedule == "constant":
            return min(1.0, step / warm)
        return LAST_RATE + (1 - LAST_RATE) * (1 + math.cos(math.pi * (step - warm) / (self.steps - warm))) / 2

    def check_head(self, groups: Collection[str]) -> None:
        """Refuse (SpecError) a rate for the head where what trains is all of the head, or none of it; a probe of more
        than the output layer, or with settings that it has not; and a start from a probe where nothing else trains."""
        if self.solver == "logistic":
            self._check_solved(groups)
        if self.probe is not None and not ("output" in groups and head_and_more(groups)):
            raise SpecError(
                f"probe = {self.probe:g}: the output layer starts from it, and something else must train, too; "
                f"here only {', '.join(groups)} would"
            )
        if self.head_rate is not None and not head_and_more(groups):
            raise SpecError(
                f"head_rate = {self.head_rate:g}: it is the rate of input and output, while learning_rates are those "
                f"of the rest, so groups of both kinds must train; here only {', '.join(groups)} would"
            )

    def _check_solved(self, groups: Collection[str]) -> None:
        for name in NOT_OF_A_PROBE:
            if (value := getattr(self, name)) != type(self).model_fields[name].default:
                raise SpecError(f"{name} = {value!r}: solver logistic takes no steps; leave it out")
        if {*groups} != {"output"} or self.steps != 1:
            raise SpecError(
                f"solver = 'logistic': the output layer alone is found, in 1 step; here {', '.join(groups)} "
                f"would train, for {self.steps:,} steps"
            )

    def evaluation_steps(self) -> list[int]:
        """Steps after which every run is evaluated: even in the logarithm from a hundredth of the steps to the last
        one, distinct, the budgets among them."""
        first, last = math.log(max(1.0, self.steps / 100)), math.log(self.steps)
        gaps = max(1, self.evaluations - 1)
        even = {round(math.exp(last - (last - first) * k / gaps)) for k in range(self.evaluations)}
        return sorted(even | set(self.budgets()))
