"""A draft as people get it: a TOML file to fill in, or a call to paste."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import wrap
from typing import Any

from takifugu.declarations.declaration import OPEN
from takifugu.declarations.declaration_files import toml_value
from takifugu.drafting.draft import Draft
from takifugu.drafting.draft_guesses import likely_public
from takifugu.tables.label_lookup import WORDS
from takifugu.visible import visible

WIDTH = 100


def draft_text(draft: Draft, folder: Path, *, base: Path | None = None) -> str:
    """The draft as a declaration to be kept in ``folder``, with its reasons as comments.

    ``base`` is what the path of the draft starts from; by default the working folder.
    """
    return "\n".join((*_head(draft), *_sections(draft, folder, base or Path.cwd()), *_rest(draft)))


def draft_call(draft: Draft, source: str, *, name: str | None = None) -> str:
    """The call of `takifugu.table` that declares the same, with ``...`` for every open point."""
    document = draft.document
    order, given = document.get("order", {}), draft.schema.reading
    arguments: list[tuple[str, Any]] = [("entity", document["entity"]["column"])]
    arguments += [("order", order["column"])] if order else []
    if order.get("kind", "time") != "time":
        arguments.append(("order_kind", order["kind"]))
    if order.get("zone", "UTC") != "UTC":
        arguments.append(("zone", order["zone"]))
    if "format" in order:
        arguments.append(("format", order["format"]))
    if order.get("ties", "refuse") != "refuse":
        arguments.append(("ties", order["ties"]))
    arguments += [(key, given[key]) for key in given if _said(key, given[key])]
    protected = {column: _value(keys) for column, keys in document["protected"].items()}
    arguments.append(("protected", protected or ...))
    if "public" in document:
        arguments.append(("public", list(document["public"])))
    if name is not None:
        arguments.append(("name", name))
    return f"tf.table({source}, {', '.join(f'{key}={_python(v)}' for key, v in arguments)})"


def _said(key: str, value: str) -> bool:
    return (key, value) not in (("separator", ","), ("encoding", "utf-8"))


def _value(keys: Mapping[str, Any]) -> Any:
    if keys.get("values") == OPEN or (keys.get("outside") == "refuse"):
        return ... if keys["values"] == OPEN else keys["values"]
    return dict(keys)


def _python(value: Any) -> str:
    if value is ... or value == OPEN:
        return "..."
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{k!r}: {_python(v)}' for k, v in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_python, value))}]"
    return repr(value)


def _head(draft: Draft) -> Iterator[str]:
    yield "# A draft, made from the names and types of the columns. It holds no protected value."
    if draft.open:
        many = "1 open point" if len(draft.open) == 1 else f"{len(draft.open)} open points"
        yield f'# {many}, written as "?": fill them in, then add the dataset to a project.'
    yield "# The format is explained in docs/how-to/datasets.md."
    yield ""


def _sections(draft: Draft, folder: Path, base: Path) -> Iterator[str]:
    document = draft.document
    if "title" in document:
        yield from (f"title = {toml_value(document['title'])}", "")
    source = dict(document["source"])
    if "path" in source:
        source["path"] = path_from(source["path"], folder, base)
    yield from _section(draft, "source", source)
    for part in ("entity", "order"):
        if part in document:
            yield from _section(draft, part, document[part])
        elif part == "order":
            yield from ("# No [order]: each entity has one row.", "")
    for part in ("protected", "public"):
        for column, keys in document.get(part, {}).items():
            yield from _section(draft, part, keys, column)
    if not document.get("protected"):
        yield from _points(draft, "protected")
        yield from ("# [protected.COLUMN]", "")


def _section(
    draft: Draft, part: str, keys: Mapping[str, Any], column: str | None = None
) -> Iterator[str]:
    named = keys.get("column", "") if column is None else column
    place = part if column is None else f"{part}.{column}"
    for decision in draft.decisions:
        if decision.part == part and decision.column in (named, "") and decision.explained:
            yield visible(f"# {'guessed: ' if decision.guessed else ''}{decision.reason}")
    yield f"[{part}]" if column is None else f"[{part}.{toml_value(column)}]"
    for key, value in keys.items():
        yield from _points(draft, f"{place}.{key}")
        yield f"{key} = {toml_value(value)}"
    yield ""


def _points(draft: Draft, key: str) -> Iterator[str]:
    for point in draft.open:
        if point.key == key:
            text = f"OPEN: {point.question}. Write {point.needed}"
            yield from wrap(
                visible(text),
                WIDTH,
                initial_indent="# ",
                subsequent_indent="# ",
                break_long_words=False,
                break_on_hyphens=False,
            )


def _rest(draft: Draft) -> Iterator[str]:
    if not draft.left_out:
        return
    yield "# Left out, which is safe: these columns are not read, nothing can be asked about them,"
    yield "# and nothing is guaranteed about them."
    for column in draft.left_out:
        yield f"#   {visible(column.name)} ({WORDS[column.kind]})"
    if draft.document["entity"]["column"] == OPEN:  # it may be among them
        return
    example = next(iter(likely_public(draft.left_out)), None)
    if example is not None:
        yield "# One that everyone may know can be made public, to count by it, for example"
        yield f"# [public.{toml_value(example)}]"
        yield '# values = "from the data"'
    yield ""


def path_from(path: str, folder: Path, base: Path) -> str:
    """A path as it is from another folder: relative where the two may be moved together.

    That is where it lies in the folder, beside it, or in a folder above it. One that a symbolic
    link would lead elsewhere stays absolute.
    """
    whole = Path(os.path.normpath(base.absolute() / path))
    target = Path(os.path.normpath(folder.absolute()))
    near = whole.is_relative_to(target.parent) or target.is_relative_to(whole.parent)
    if not near:
        return str(whole)
    relative = Path(os.path.relpath(whole, target))
    real = Path(os.path.realpath(target))
    back = Path(os.path.normpath(real / relative)).parent
    same = os.path.realpath(back) == os.path.realpath(whole.parent)
    return relative.as_posix() if same else str(whole)
