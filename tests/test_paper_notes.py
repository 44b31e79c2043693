"""Every name and test that the notes on the paper mention exists."""

import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NOTES = (ROOT / "docs" / "explanation" / "paper-notes.md").read_text(encoding="utf-8")
NAMES = sorted(set(re.findall(r"`(takifugu\.[\w.]+)`", NOTES)))
TESTS = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", NOTES)))


def resolve(name: str) -> object:
    """The object that a dotted name stands for: the longest module, then attributes."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: object = import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[cut:]:
            found = getattr(found, attribute)
        return found
    raise ModuleNotFoundError(name)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_in_the_notes_exists(name: str) -> None:
    assert resolve(name) is not None


@pytest.mark.parametrize(("path", "test"), TESTS)
def test_a_test_in_the_notes_exists(path: str, test: str) -> None:
    assert re.search(rf"^def {test}\(", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)


def test_there_is_something_to_check() -> None:
    assert len(NAMES) > 25 and len(TESTS) > 15
    with pytest.raises((AttributeError, ModuleNotFoundError)):
        resolve("takifugu.finite.nothing")
