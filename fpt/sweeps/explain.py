"""What pydantic found wrong in a request, in the words of a study."""

from pydantic import ValidationError

RULES = {
    "missing": "is missing",
    "tuple_type": "must be a list (papermill takes lists with -y, as in -y '{learning_rates: [1e-3]}')",
    "dict_type": "must be a mapping (papermill takes one with -y, as in -y '{task_options: {length: 5}}')",
    "string_type": "must be text",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "int_parsing": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
}


def explain(error: ValidationError, source: str) -> str:
    """pydantic's findings as one line each: field = value: rule (source)."""
    lines = []
    for found in error.errors(include_url=False):
        name, *inside = [str(part) for part in found["loc"]]
        name += "".join(f"[{part}]" for part in inside if part.isdigit())
        said = found["msg"].removeprefix("Value error, ").replace("Input should", "must")
        rule = RULES.get(found["type"], said)
        given = "" if found["type"] == "missing" else f" = {found['input']!r}:"
        lines.append(f"{name}{given} {rule}" + (f" ({source})" if source else ""))
    return "\n".join(dict.fromkeys(lines))
