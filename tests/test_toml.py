"""What people write is read strictly: one meaning, or one clear line."""

import json
import string
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from takifugu._core.toml import DEEPEST, parse_json, parse_toml
from takifugu.declarations.declaration_files import parse_declaration
from takifugu.errors import InvalidFile, Malformed
from takifugu.finite.files.world_file import parse_world
from takifugu.priors import read_prior
from takifugu.priors.documents import from_document
from takifugu.project.policy import parse_policy


def one_line(call: Callable[[], Any], told: str) -> None:
    with pytest.raises(Malformed, match=told) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"a": 1, "b": {"c": 1, "c": 1}}', "has the key 'c' twice"),
        ("[1e-400]", "not 0 but too small"),
        ("[-0.0000001e-390]", "not 0 but too small"),
        ("[1e400]", "too large for float64"),
        ("[Infinity]", "holds Infinity"),
        ('["\\ud800"]', "half a character"),
        ('{"a": {"\\uDFFF": 1}}', "half a character"),
        ("[" * (DEEPEST + 1) + "]" * (DEEPEST + 1), "inside one another"),
        ("[" * 200_000, "inside one another"),
        ("9" * 5000, "too many digits"),
        ("[1, 2", "is not JSON"),
    ],
)
def test_json_with_no_meaning_is_one_clear_line(text: str, told: str) -> None:
    one_line(lambda: parse_json(text), told)


@pytest.mark.parametrize(
    "text", ['["\\ud83d\\ude00"]', "[0.0e-500, -0, 5e-324]", "[" * 64 + "]" * 64]
)
def test_json_with_a_meaning_is_read(text: str) -> None:
    assert parse_json(text) == json.loads(text)


READERS: dict[str, Callable[[str], Any]] = {
    "toml": parse_toml,
    "world": lambda text: parse_world(text, form="toml"),
    "declaration": parse_declaration,
    "project": parse_policy,
}


@pytest.mark.nightly
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a." * 32_000 + "a = 1", "more than 64 parts"),
        ("[" + "a." * 32_000 + "a]", "more than 64 parts"),
        ("[[" + '"a" . ' * 16_000 + "a]]", "more than 64 parts"),
        ("x = { " + "'a'." * 16_000 + "a = 1 }", "more than 64 parts"),
        (r"""x."a\"b" . """ * 16_000 + "a = 1", "more than 64 parts"),
        ("x = " + "[" * 500 + "]" * 500, "inside one another"),
        ("x = " + "[" * 100_000, "inside one another"),
        ("x = " + "{a = " * 500 + "1" + "}" * 500, "inside one another"),
        ("a = 1\na = 2", "is not TOML"),
    ],
    ids=lambda text: text[:12],
)
def test_toml_that_takes_for_ever_or_ends_the_stack_is_one_clear_line(
    reader: str, text: str, told: str
) -> None:
    one_line(lambda: READERS[reader](text), told)


@given(st.lists(st.floats(0, 1), max_size=200), st.text(string.printable, max_size=300))
def test_ordinary_toml_is_not_refused(numbers: list[float], words: str) -> None:
    text = f"x = {numbers}\ny = {json.dumps(words)}\n[a.b.'c.d']\nz = 1"
    try:
        document = parse_toml(text)
    except InvalidFile:  # what TOML itself does not take, such as a control character
        document = {"x": numbers}
    assert document["x"] == numbers


@pytest.mark.parametrize("depth", [17, 400, 5000])
def test_products_inside_products_are_one_clear_line(depth: int, tmp_path: Path) -> None:
    document: Any = {"kind": "markov-chain", "transition": [[0.5, 0.5], [0.5, 0.5]]}
    for _ in range(depth):
        document = {"kind": "product", "parts": {"a": document}}
    one_line(lambda: from_document(document), "inside one another")
    path = tmp_path / "deep.json"
    text = '{"kind": "product", "parts": {"a": ' * depth + "1" + "}}" * depth
    path.write_text(text, encoding="utf-8")
    one_line(lambda: read_prior(path), "inside one another|not an object")


def test_a_prior_that_says_a_thing_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "twice.json"
    text = '{"kind": "markov-chain", "transition": [[1]], "length": 3, "length": 300}'
    path.write_text(text, encoding="utf-8")
    one_line(lambda: read_prior(path), "has the key 'length' twice")
