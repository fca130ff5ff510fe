"""YAML files that people write (papers, studies), read strictly: errors name file, line, field, value and rule."""

import re
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.constructor import ConstructorError, DuplicateKeyError
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from fpt.errors import SpecError, check_known

Model = TypeVar("Model", bound=BaseModel)
MOST_VALUES = 100_000  # of a file
LEADING_ZERO = re.compile(r"[-+]?0[0-9]+")

RULES = {  # pydantic's types of errors, in the words of a study
    "missing": "is missing",
    "extra_forbidden": "there is no such field",
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "dict_type": "must be a mapping",
    "model_type": "must be a mapping",
    "string_type": "must be text",
    "bool_type": "must be true or false",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "int_parsing": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "too_short": "at least one is needed",
}


def read_model(model: type[Model], path: Path, label: str) -> tuple[Model, Node]:
    """The file as `model`, and its nodes; a field without a value is as if it were not there.

    Raises SpecError, with the line where it is known, for all that `read_document` or the model do not allow.
    """
    content, node = read_document(path, label)
    if not isinstance(content, dict):
        raise SpecError(f"{label} must be a mapping with the fields {', '.join(model.model_fields)}")
    for name in content:
        check_known("field", name, model.model_fields, f"{label}, line {line_of(node, [name])}")
    given = {name: value for name, value in content.items() if value is not None}
    try:
        return model.model_validate(given), node
    except ValidationError as error:
        found = [f"{label}, line {line_of(node, each['loc'])}: {explained(each)}" for each in error.errors()]
        raise SpecError("\n".join(dict.fromkeys(found))) from None


def read_document(path: Path, label: str) -> tuple[Any, Node]:
    """The content of a YAML 1.2 file as plain Python values, and its nodes, which know their lines.

    Raises SpecError, naming `label` and the line where it is known, for a file that is missing, not YAML, empty,
    nested too deeply, or that repeats a key or has a tag that is not plain data.
    """
    if not path.is_file():  # the reader of a pipe would wait for ever
        raise SpecError(f"{label} does not exist, or is no file")
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise SpecError(f"{label} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SpecError(f"{label} is not YAML: it is not UTF-8 text") from None
    try:
        yaml = YAML(typ="safe", pure=True)
        node = yaml.compose(text)
        _check_values(node, label)
        content = yaml.constructor.construct_document(node) if node else None
    except RecursionError:
        raise SpecError(f"{label} cannot be read: it is nested too deeply") from None
    except (ConstructorError, DuplicateKeyError) as error:
        line = error.problem_mark.line + 1 if error.problem_mark else "?"
        raise SpecError(f"{label}, line {line}: {str(error.problem).partition(' with value')[0]}") from None
    except (YAMLError, ValueError) as error:  # ValueError: an impossible date, a number of thousands of digits
        raise SpecError(f"{label} is not YAML: {' '.join(str(error).split())}") from None
    if content is None:
        raise SpecError(f"{label} is empty")
    return content, node


def _check_values(node: Node | None, label: str) -> None:
    """SpecError for a whole number such as 010: ten in YAML 1.2, eight in YAML 1.1, which papermill reads; and for more
    values than anybody writes: aliases of aliases make billions of a few lines."""
    rest, values = [node], 0
    while rest:
        each = rest.pop()
        values += 1
        if values > MOST_VALUES:
            raise SpecError(f"{label} has more than {MOST_VALUES:,} values, each alias counted as what it stands for")
        if isinstance(each, ScalarNode) and str(each.tag).endswith(":int") and LEADING_ZERO.fullmatch(each.value):
            raise SpecError(
                f"{label}, line {each.start_mark.line + 1}: {each.value} may be ten or eight: leave out the 0"
            )
        inside = each.value if isinstance(each, MappingNode | SequenceNode) else ()
        rest += [part for one in inside for part in (one if isinstance(one, tuple) else (one,))]


def explained(found: Any) -> str:
    """One finding of pydantic as `field = value: rule`."""
    rule = RULES.get(found["type"], found["msg"].removeprefix("Value error, ").replace("Input should", "must"))
    name, *inside = [str(part) for part in found["loc"]] or [""]
    name += "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in inside)
    given = f" = {found['input']!r}:"
    if found["type"] == "missing":
        given = ""
    elif found["type"] == "value_error" and isinstance(found["input"], dict):
        given = ":"  # the line shows it
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
