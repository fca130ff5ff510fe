"""What a step of a model has to multiply, by a formula: torch's counter must come to the same."""

from fpt.models.template import Template


def needed_flop(template: Template, batch_size: int, last_rows: int | None = None) -> int:
    """FLOP that one step of one run needs; a multiplication and its addition are two.

    A product of n rows with a matrix of w weights takes 2 n w FLOP forward, as much again for the gradient of its
    inputs, and as much again for the gradient of its weights where they train. Every block passes gradients on, unless
    the output layer alone trains. Attention scores and the sums they weigh are two products of activations, with two
    gradients each. The last block needs keys and values at every token, everything else only at `last_rows` tokens
    (None: the task's read-out where the family's forward pass stops there, else all). Causal masks are not discounted,
    padding neither; layer norms, softmax, GELU and Adam are not counted, as is the custom.
    """
    task, trained = template.task, template.trainable_groups
    forward = trained == ("output",)  # alone: no gradient passes through the backbone
    output_layer = (2 if forward else 3) * 2 * batch_size * task.readout * template.width * task.output_width
    read = task.readout if template.entry.family in ("gpt2", "bert") else task.tokens
    rows, last = batch_size * task.tokens, batch_size * (last_rows or read)
    above = (template.layers - 1) * rows  # rows of all blocks but the last

    def products(group: str) -> int:
        """FLOP a row of one block's matrices of a group; no token of Longformer attends globally."""
        names = [name for name, its in template.groups.items() if its == group and "_global." not in name]
        weights = sum(
            template.shapes[name].numel() // template.layers for name in names if len(template.shapes[name]) == 2
        )
        return 2 * weights * (1 if forward else 3 if group in trained else 2)

    flop = above * products("attention") + (rows + last) * products("attention") // 2  # half makes keys and values
    flop += (above + last) * products("feed_forward")
    flop += (1 if forward else 3) * 2 * 2 * template.module.reach * template.width * (above + last)
    flop += (1 if forward else 2) * 2 * rows * template.width * (task.width or 0)  # a table is no product
    return flop + output_layer
