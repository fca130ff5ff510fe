"""YAML files that people write (papers, studies), read strictly: errors name file, line, field, value and rule."""

from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.constructor import DuplicateKeyError
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, Node, SequenceNode

from fpt.errors import SpecError

Model = TypeVar("Model", bound=BaseModel)

RULES = {  # pydantic's types of errors, in the words of a study
    "missing": "is missing",
    "extra_forbidden": "there is no such field",
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "dict_type": "must be a mapping",
    "model_type": "must be a mapping",
    "string_type": "must be text",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "int_parsing": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
}


def read_document(path: Path, label: str) -> tuple[Any, Node]:
    """The content of a YAML 1.2 file as plain Python values, and its nodes, which know their lines.

    Raises SpecError, naming `label` and the line where it is known, for a file that is missing, not YAML, empty,
    nested too deeply, or that carries tags or repeats a key.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError:
        raise SpecError(f"{label} does not exist or cannot be read") from None
    except UnicodeDecodeError:
        raise SpecError(f"{label} is not YAML: it is not UTF-8 text") from None
    try:
        for event in YAML(typ="safe", pure=True).parse(text):
            if tag := getattr(event, "tag", None):  # they make objects of any kind; these files are plain data
                raise SpecError(f"{label}, line {event.start_mark.line + 1}: the YAML tag {str(tag)!r} is not allowed")
        node = YAML(typ="safe", pure=True).compose(text)
        content = YAML(typ="safe", pure=True).load(text)
    except RecursionError:
        raise SpecError(f"{label} cannot be read: it is nested too deeply") from None
    except DuplicateKeyError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else "?"
        raise SpecError(f"{label}, line {line}: {str(error.problem).partition(' with value')[0]}") from None
    except (YAMLError, ValueError) as error:  # ValueError: an impossible date, a number of thousands of digits
        raise SpecError(f"{label} is not YAML: {' '.join(str(error).split())}") from None
    if content is None:
        raise SpecError(f"{label} is empty")
    return content, node


def validated(model: type[Model], content: Any, node: Node, label: str) -> Model:
    """`content` as `model`; SpecError with file, line, field, value and rule for everything that is not allowed."""
    try:
        return model.model_validate(content)
    except ValidationError as error:
        lines = [
            f"{label}, line {line_of(node, found['loc'])}: {explained(found)}"
            for found in error.errors(include_url=False)
        ]
        raise SpecError("\n".join(dict.fromkeys(lines))) from None


def explained(found: Any) -> str:
    """One finding of pydantic as `field = value: rule`."""
    rule = RULES.get(found["type"], found["msg"].removeprefix("Value error, ").replace("Input should", "must"))
    name, *inside = [str(part) for part in found["loc"]] or [""]
    name += "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in inside)
    whole = found["type"] == "value_error" and isinstance(found["input"], dict)  # the line shows it
    given = "" if found["type"] == "missing" else ":" if whole else f" = {found['input']!r}:"
    return f"{name}{given} {rule}".strip()


def line_of(node: Any, path: tuple[Any, ...] | list[Any]) -> int:
    """The line (from 1) of the innermost part of `path` that the document has."""
    line: int = node.start_mark.line + 1
    for part in path:
        if isinstance(node, MappingNode):
            pair = next(((key, value) for key, value in node.value if key.value == str(part)), None)
            if pair is None:
                break
            line, node = pair[0].start_mark.line + 1, pair[1]
        elif isinstance(node, SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = node.start_mark.line + 1
        else:
            break
    return int(line)
