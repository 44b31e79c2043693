"""Writes ``planner.pyi``, by which type checkers and editors know the methods of `Planner`.

``python -m takifugu.session.planner_stub`` writes it again after a kind of query or an option was
added. A test compares the file with what would be written.
"""

from collections.abc import Mapping
from inspect import Parameter
from pathlib import Path
from textwrap import wrap

from takifugu.session.planner import Planner, parameters_of, words_of
from takifugu.session.query_kinds import KINDS
from takifugu.session.query_options import OPTIONS, OptionType

FILE = Path(__file__).with_name("planner.pyi")
ANNOTATIONS: Mapping[OptionType, str] = {
    "column": "str | Sequence[str] | None",
    "columns": "str | Sequence[str]",
    "window": "tuple[Bound, Bound] | None",
    "keys": "Mapping[str, Sequence[Name]] | None",
    "amount": "Number | None",
    "real": "float | None",
    "whole": "int | None",
    "labels": "Name | Sequence[Name]",
    "counts": "ReferenceCounts | None",
    "text": "str | None",
    "flag": "bool",
}
HEAD = '''"""Written by ``python -m takifugu.session.planner_stub``."""

from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter
from typing import Any

import numpy as np

from takifugu._core.exact import Number
from takifugu.session.query_options import Bound, Name, QueryOptions
from takifugu.session.release_plan import Plan

ReferenceCounts = Sequence[float] | Sequence[Sequence[float]] | np.ndarray[Any, Any]

def parameters_of(kind: str) -> list[Parameter]: ...
def words_of(kind: str) -> str: ...

class Planner:
'''
TAIL = """\
    def __init__(self, plan: Callable[[QueryOptions], Plan]) -> None: ...
    def __call__(self, options: QueryOptions) -> Plan: ...
"""


def stub() -> str:
    """The text of ``planner.pyi``."""
    return HEAD + _docstring(str(Planner.__doc__).strip()) + TAIL + "".join(map(_method, KINDS))


def _method(kind: str) -> str:
    parts, keywords = ["self"], False
    for part in parameters_of(kind):
        if part.kind is Parameter.KEYWORD_ONLY and not keywords:
            parts.append("*")
            keywords = True
        annotation = ANNOTATIONS[OPTIONS[part.name].type]
        required = part.default is Parameter.empty
        needed = annotation.removesuffix(" | None") if required else f"{annotation} = ..."
        parts.append(f"{part.name}: {needed}")
    listed = "".join(f"        {part},\n" for part in parts)
    return f"    def {kind}(\n{listed}    ) -> Plan:\n{_docstring(words_of(kind), 8)}"


def _docstring(text: str, indent: int = 4) -> str:
    margin = " " * indent
    first, *rest = text.splitlines()
    lines = [
        part
        for line in rest
        for part in wrap(
            line.strip(),
            99,
            initial_indent=margin,
            subsequent_indent=f"{margin}  ",
            break_long_words=False,
        )
        or [""]
    ]
    end = [margin] if lines else []
    return "\n".join([f'{margin}"""{first}', *lines, *end]) + '"""\n'


if __name__ == "__main__":
    FILE.write_text(stub(), encoding="utf-8")
