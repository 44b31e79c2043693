"""The reference of the REST interface, made of its OpenAPI document.

python -m takifugu.server.api.rest_reference PAGE.md    rewrites the part of the page below the mark
"""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

MARK = "<!-- Generated from here on: python -m takifugu.server.api.rest_reference PAGE.md -->\n"
REF = "#/components/schemas/"


def reference(document: Mapping[str, Any]) -> str:
    """The operations by tag, then the documents that they take and give."""
    parts = []
    for tag in document["tags"]:
        operations = [
            (method, path, operation)
            for path, methods in document["paths"].items()
            for method, operation in methods.items()
            if operation.get("tags") == [tag["name"]]
        ]
        if operations:
            parts.append(f"## {tag['name'].capitalize()}\n\n{tag['description']}\n")
            parts += [_operation(*operation) for operation in operations]
    parts.append("## Documents\n")
    schemas = document["components"]["schemas"]
    parts += [_model(name, schemas[name]) for name in sorted(schemas)]
    return "\n".join(parts)


def _operation(method: str, path: str, operation: Mapping[str, Any]) -> str:
    """What one operation is for, what it and how it answers."""
    lines = [f"### {method.upper()} {path}", "", operation.get("description", "").strip(), ""]
    if rows := [_parameter(parameter) for parameter in operation.get("parameters", ())]:
        lines += ["| parameter | where | |", "|---|---|---|", *rows, ""]
    if body := operation.get("requestBody"):
        schema = body["content"]["application/json"]["schema"]
        lines += [f"Body: {_type(schema)}.", ""]
    lines += ["| status | | |", "|---|---|---|", *_answers(operation["responses"]), ""]
    return "\n".join(lines)


def _parameter(parameter: Mapping[str, Any]) -> str:
    required = "" if parameter.get("required") else ", optional"
    kind = _type(parameter["schema"])
    words = _cell(parameter.get("description", ""))
    return f"| `{parameter['name']}` | {parameter['in']}{required} | {words} ({kind}) |"


def _answers(responses: Mapping[str, Any]) -> Iterator[str]:
    """A line for each status that is not a problem, and one for all that are."""
    problems = []
    for status, response in sorted(responses.items()):
        content = response.get("content", {})
        if "application/problem+json" in content:
            problems.append(status)
            continue
        kinds = ", ".join(_content(media, part) for media, part in content.items())
        yield f"| {status} | {_cell(response.get('description', ''))} | {kinds} |"
    yield f"| {', '.join(problems)} | A problem. | [ProblemDocument](#problemdocument) |"


def _content(media: str, part: Mapping[str, Any]) -> str:
    schema = part.get("schema", {})
    if media == "application/json" and schema:
        return _type(schema)
    return f"`{media}`"


def _model(name: str, schema: Mapping[str, Any]) -> str:
    """The fields of one document."""
    lines = [f"### {name}", "", schema.get("description", "").strip(), ""]
    required = schema.get("required", ())
    fields = schema.get("properties", {})
    if fields:
        lines += ["| field | type | |", "|---|---|---|"]
    for field, property_schema in fields.items():
        needed = "" if field in required else ", optional"
        example = _example(property_schema)
        words = f"{_cell(property_schema.get('description', ''))}{example}"
        lines.append(f"| `{field}` | {_type(property_schema)}{needed} | {words} |")
    return "\n".join(lines) + "\n"


def _example(schema: Mapping[str, Any]) -> str:
    examples = schema.get("examples")
    return (
        f" For example `{_cell(json.dumps(examples[0], ensure_ascii=False))}`." if examples else ""
    )


def _type(schema: Mapping[str, Any]) -> str:
    """A schema in a few words."""
    if reference := schema.get("$ref"):
        name = reference.removeprefix(REF)
        return f"[{name}](#{name.lower()})"
    if options := schema.get("anyOf"):
        return " or ".join(dict.fromkeys(map(_type, options)))
    if choices := schema.get("enum"):
        return " or ".join(f"`{choice}`" for choice in choices)
    if "const" in schema:
        return f"`{schema['const']}`"
    match schema.get("type"):
        case "array":
            return f"list of {_type(schema.get('items', {}))}"
        case "string":
            return "text"
        case "integer":
            return "whole number"
        case "boolean":
            return "true or false"
        case str(other):
            return other
    return "anything"


def _cell(words: str) -> str:
    """Text in a cell of a table."""
    return " ".join(words.split()).replace("|", "\\|")


def rewritten(page: str) -> str:
    """A page with the generated part as it is now."""
    from takifugu.server.app import documented_app

    head, _, _ = page.partition(MARK)
    return f"{head}{MARK}\n{reference(documented_app().openapi())}"


if __name__ == "__main__":
    file = Path(sys.argv[1])
    file.write_text(rewritten(file.read_text(encoding="utf-8")), encoding="utf-8")
