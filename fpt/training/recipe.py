"""What all runs of a fleet share."""

import math
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Count = Annotated[int, Field(ge=1, lt=2**31, strict=True)]  # strict: True and 8.0 are no counts


# What a sweep can be asked for besides accuracies; fpt/training/measures.py says what each is.
WEIGHTS, ATTENTION, TRAIN_MODE, ADAPTER = MEASURES = ("weights", "attention", "train-mode", "adapter")
KEPT = (WEIGHTS, ADAPTER)  # files that the best run of the first seed leaves


BUDGETS = 6  # reported budgets: all steps, half of them, and so on


class Recipe(BaseModel):
    """The training recipe: Adam with PyTorch's defaults, a constant learning rate (Lu et al. 2021, appendix C)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    steps: Count = 1000  # gradient steps
    batch_size: Count = 8  # Rothermel et al. 2021, section 3
    clip: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = 1.0  # global gradient norm of one run; None: off
    warmup: Annotated[float, Field(ge=0, lt=1)] = 0.0  # share of the steps over which the rate rises linearly
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.1
    evaluations: Count = 20  # even in the logarithm of the step; the budgets come on top
    # Sizes of the samples that the seed draws; None: all examples.
    evaluation_examples: Count | None = None  # of the validation set, at every evaluation
    budget_examples: Count | None = None  # of the test set at every budget but the last, of the training set at all
    test_examples: Count | None = None  # of the test set at the last budget
    # of products with attention and feed-forward matrices
    compute_type: Literal["auto", "float32", "bfloat16"] = "auto"

    def budgets(self) -> list[int]:
        """Steps at which runs are tested: N/32, N/16, ..., N, distinct, at least 1.

        A run is there what a run of so many steps would be, since its rate is constant. With `warmup` it is not, and
        the last step is the only budget.
        """
        shares = [1] if self.warmup else [2**k for k in range(BUDGETS)]
        return sorted({max(1, round(self.steps / share)) for share in shares})

    def evaluation_steps(self) -> list[int]:
        """Steps after which every run is evaluated: even in the logarithm from a hundredth of the steps to the last
        one, distinct, the budgets among them."""
        first, last = math.log(max(1.0, self.steps / 100)), math.log(self.steps)
        gaps = max(1, self.evaluations - 1)
        even = {round(math.exp(last - (last - first) * k / gaps)) for k in range(self.evaluations)}
        return sorted(even | set(self.budgets()))
