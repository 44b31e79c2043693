"""Positions point at the keys that Python's reader found; the reader decides what is read."""

import tomllib
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from takifugu._core.toml import Position, TomlSection, key_positions, parse_toml
from takifugu.errors import InvalidFile
from tests.raising import raises

KEYS = st.sampled_from(["a", "b-1", "ε", "x y", "", 'q"', "tab\t", "0", "a.b", "#c", "[d]"])
SCALARS = st.one_of(
    st.integers(-9, 9),
    st.booleans(),
    st.floats(-1, 1),
    st.text(alphabet="ab\"'\\\n#[]{}=,.", max_size=6),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
STYLE = st.sampled_from(["inline", "header", "dotted"])


def quoted(text: str) -> str:
    shown = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{shown}"'.replace("\t", "\\t")


def key(text: str) -> str:
    bare = text and all(c.isascii() and (c.isalnum() or c in "-_") for c in text)
    return text if bare else quoted(text)


def written(value: Any, draw: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key(k)} = {written(v, draw)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        between: str = draw(st.sampled_from([", ", ",\n  ", " , # note ]\n"]))
        return "[" + between.join(written(v, draw) for v in value) + "]"
    if isinstance(value, str):
        if draw(st.booleans()) and "'" not in value and "\n" not in value:
            return f"'{value}'"
        if draw(st.booleans()) and '"' not in value and "\\" not in value:
            return f'"""\n{value}"""'
        return quoted(value)
    return str(repr(value))


@st.composite
def documents(draw: Any) -> str:
    lines, later = [], []
    for name, value in draw(st.dictionaries(KEYS, VALUES, max_size=5)).items():
        lines.append("  " * draw(st.integers(0, 2)) + f"{key(name)} = {written(value, draw)} # ok")
    for name in draw(st.lists(st.sampled_from(["t", "u v", "w"]), unique=True, max_size=3)):
        for _ in range(draw(st.integers(1, 2)) if draw(st.booleans()) else 0):
            later.append(f"[[ {key('l' + name)} ]]")
            later += [f"{key(k)} = {written(v, draw)}" for k, v in
                      draw(st.dictionaries(KEYS, VALUES, max_size=2)).items()]  # fmt: skip
            later.append(f"[{key('l' + name)}.inner]\nk.'j' = 1")
        later.append(f"\n[{key(name)} . sub]")
        later += [f"{key(k)} = {written(v, draw)}" for k, v in
                  draw(st.dictionaries(KEYS, VALUES, max_size=2)).items()]  # fmt: skip
    return "\n".join([*lines, *later]) + "\n"


def paths(value: Any, before: tuple[Any, ...] = ()) -> set[tuple[Any, ...]]:
    """Every key of what was read, by its path."""
    found = set()
    if isinstance(value, dict):
        for name, inner in value.items():
            found |= {(*before, name)} | paths(inner, (*before, name))
    if isinstance(value, list):
        for place, inner in enumerate(value):
            found |= paths(inner, (*before, place))
    return found


@given(documents())
@example("a = 1\r\n[b]\r\nc = '''x\r\n[d]'''\r\ne = 2\r\n")
@example('a = """b"""""\nc = {}\nd = []\n')
def test_every_key_is_found_where_it_is_written(text: str) -> None:
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    found, lines = key_positions(text), text.replace("\r\n", "\n").split("\n")
    for path in paths(document):
        assert path in found, (path, text)
        line, column = found[path]
        rest = lines[line - 1][column - 1 :]
        name = path[-1]
        assert rest.startswith((key(name), f"'{name}'")), (path, rest)


@given(st.text(alphabet="ab=[]{}\"'\\\n#., 1", max_size=40))
def test_no_text_is_too_strange(text: str) -> None:
    for position in key_positions(text).values():
        assert position.line >= 1 and position.column >= 1


TEXT = """\
title = "x"

[dataset.visits]
declaration = "visits.toml"
epsilom = 2

[[dataset.visits.prior]]
file = "a.json"

[[dataset.visits.prior]]
fil = "b.json"
"""


def test_errors_say_where() -> None:
    top = TomlSection(parse_toml(TEXT))
    named = top.section("dataset", None)
    with raises(InvalidFile, field="dataset, visits, epsilom") as told:
        named.section("visits", ("declaration", "epsilon", "prior"))
    assert "(line 5, column 1)" in str(told.value) and "'epsilon'" in str(told.value)
    visits = named.section("visits", None)
    with raises(InvalidFile, field="dataset, visits, prior, fil") as told:
        visits.sections("prior", ("file",))
    assert "(line 11, column 1)" in str(told.value)
    with raises(InvalidFile, field="dataset, visits, analysts", reason="missing") as told:
        visits.get("analysts")
    assert "(below line 3, column 10)" in str(told.value)


def test_documents_without_a_text_have_no_positions() -> None:
    with raises(InvalidFile, field="a") as told:
        TomlSection({"a": 1}).only(("b",))
    assert "line" not in str(told.value)


def test_positions_are_pairs() -> None:
    assert key_positions("a = 1") == {("a",): Position(1, 1)}
    with pytest.raises(InvalidFile, match="line 1"):
        parse_toml("a = \n")
