"""What `fpt models --arm` refuses."""

from pathlib import Path

import pytest
from refusal import refused

ROWS = [
    ("rank above a matrix", "--backbone tiny-lm --arm lora-pretrained --rank 200", ("rank = 200", "128 x 384")),
    ("a backbone without matrices", "--backbone lstm --arm lora-random", ("'lstm'", "adapters", "recurrent")),
    ("rank of an arm without", "--backbone tiny-lm --arm frozen-random --rank 4", ("rank = 4", "frozen-random")),
    ("targets that do not exist", "--backbone tiny-lm --arm lora-random --targets all", ("targets", "feed_forward")),
    ("an arm that does not exist", "--backbone tiny-lm --arm lora", ("unknown arm", "lora-pretrained")),
    ("no examples", "--backbone tiny-lm --arm lora-random --batch-size 0", ("batch_size",)),
    ("rank without an arm", "--backbone tiny-lm --rank 4", ("--rank", "--arm")),
    ("an arm of every backbone", "--arm lora-random", ("--backbone",)),
]


@pytest.mark.parametrize(("command", "named"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_is_refused(command: str, named: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # other tests may train in the repository meanwhile
    refused("models", *command.split(), named=named)
