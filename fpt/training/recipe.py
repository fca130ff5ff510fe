"""What all runs of a fleet share."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Count = Annotated[int, Field(ge=1, lt=2**31, strict=True)]  # strict: True and 8.0 are no counts


# What a sweep can be asked for besides accuracies; fpt/training/measures.py says what each is.
WEIGHTS, ATTENTION, TRAIN_MODE = MEASURES = ("weights", "attention", "train-mode")


class Recipe(BaseModel):
    """The training recipe: Adam with PyTorch's defaults, no schedule (Lu et al. 2021, appendix C)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    steps: Count = 1000  # gradient steps
    batch_size: Count = 8  # Rothermel et al. 2021, section 3
    clip: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = 1.0  # global gradient norm of one run; None: off
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.1
    evaluations: Count = 20  # evenly spaced over the steps
    evaluation_examples: Count | None = None  # at most so many of the validation and training sets; None: all
    # of products with attention and feed-forward matrices
    compute_type: Literal["auto", "float32", "bfloat16"] = "auto"

    def evaluation_steps(self) -> list[int]:
        """Steps after which every run is evaluated; the last step is always one of them."""
        count = min(self.evaluations, self.steps)
        return [round(self.steps * (k + 1) / count) for k in range(count)]
