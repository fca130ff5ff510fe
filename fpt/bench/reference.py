"""The reference that speed is measured against: one run, trained in the style of Lu et al.'s released code.

float32, the transformers library's own modules, torch's DataLoader with one transform an image, Adam over the
trainable parameters (the others with `requires_grad` off), and loss and accuracy fetched to the host
at every step. Where the release leaves a choice it is the quicker one: a position table of the task's length, the
library's present default for attention, no evaluation in between. With dropout 0 it learns what a fleet of one run
learns in float32, from the same weights and batches.
"""

from collections.abc import Iterator
from itertools import count

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, IterableDataset
from transformers import AutoModel

from fpt.models.families import family
from fpt.models.layers import read_out
from fpt.models.template import Template
from fpt.seeds import generator
from fpt.tasks.task import Task
from fpt.training.recipe import Recipe

# The others take no embeddings (ViT), pad them by themselves (Longformer), or come without the layers above (T5).
COMPARABLE = ("gpt2", "bert")


def comparable(template: Template) -> bool:
    """Whether the reference runs this model: it has neither adapters nor a table of symbols of the model's own."""
    return template.backbone.family in COMPARABLE and not template.adapters and not template.task.own_table


class Stream(IterableDataset[tuple[Tensor, Tensor, Tensor]]):
    """(tokens, targets, length) of one example after the other, each encoded by itself, in the order of the split."""

    def __init__(self, task: Task, seed: int, size: int) -> None:
        self.task, self.seed, self.size = task, seed, size

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        split, source = self.task.split(self.seed), generator(self.seed, "augment")
        for step in count():
            batch = split.batch(step, self.size)
            lengths = torch.full((self.size,), self.task.tokens) if batch.lengths is None else batch.lengths
            for image, target, length in zip(batch.inputs, batch.targets, lengths, strict=True):
                yield self.task.encode(image[None], source)[0], target, length


class ReleasedModel(nn.Module):
    """Input layer, library model, output layer, with the parameter names of fpt.models.template.TransferModel.

    tokens (batch, tokens, features) or symbols (batch, tokens), lengths (batch,)
    -> logits (batch, predictions, classes).
    """

    def __init__(self, template: Template) -> None:
        super().__init__()
        task, backbone, width = template.task, template.backbone, template.width
        sizes = {"num_hidden_layers": template.layers, "max_position_embeddings": task.tokens, "vocab_size": 1}
        self.backbone = AutoModel.from_config(family(backbone).configuration(backbone, **sizes))
        self.backbone.pooler = None  # BERT's, which nothing here reads
        self.input_layer = (
            nn.Embedding(task.vocabulary, width) if task.vocabulary else nn.Linear(task.width or 1, width)
        )
        self.input_dropout = nn.Identity() if task.vocabulary else nn.Dropout()
        self.output_layer = nn.Linear(width, task.output_width)
        self.task, self.hides_padding = task, task.mask_padding and backbone.family == "bert"

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        mask = torch.arange(tokens.shape[1], device=tokens.device) < lengths[:, None] if self.hides_padding else None
        embedded = self.input_dropout(self.input_layer(tokens))
        hidden = self.backbone(inputs_embeds=embedded, attention_mask=mask).last_hidden_state
        read = read_out(hidden, self.task.readout, lengths if self.task.mask_padding else None)
        logits: Tensor = self.output_layer(read)
        return logits.reshape(len(logits), -1, self.task.classes)


class Reference:
    """State and step of one run of `template` at `rate` with `seed`; the recipe's compute type is not used."""

    def __init__(self, template: Template, recipe: Recipe, rate: float, seed: int, device: torch.device) -> None:
        with torch.random.fork_rng(devices=[]):  # the library draws from the global generator; values are replaced
            self.model = ReleasedModel(template)
        self.model.load_state_dict(self.model.state_dict() | template.initialise(seed))
        self.model.to(device).train()
        for module in self.model.modules():
            if isinstance(module, nn.Dropout):
                module.p = recipe.dropout
        for name, parameter in self.model.named_parameters():
            parameter.requires_grad_(name in template.trainable)
        self.trainable = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        self.optimizer = torch.optim.Adam(self.trainable, lr=rate)
        self.clip, self.device = recipe.clip, device
        stream = Stream(template.task, seed, recipe.batch_size)
        self.batches = iter(DataLoader(stream, recipe.batch_size, generator=generator(seed, "loader")))

    def step(self) -> tuple[float, float]:
        """The next gradient step; returns the loss in nats and the share of right predictions, both on the host."""
        tokens, targets, lengths = (part.to(self.device) for part in next(self.batches))
        logits = self.model(tokens, lengths)
        loss = cross_entropy(logits.flatten(0, 1), targets.flatten())
        self.optimizer.zero_grad()
        loss.backward()
        if self.clip is not None:
            nn.utils.clip_grad_norm_(self.trainable, self.clip)
        self.optimizer.step()
        accuracy = (logits.detach().cpu().argmax(-1) == targets.cpu()).float().mean()
        return loss.item(), accuracy.item()
