"""Searches and models propose; only what certifies their proposals rounds."""

from pathlib import Path

import pytest

import takifugu.translation

HOME = Path(takifugu.translation.__file__).parent


@pytest.mark.parametrize("folder", ["search", "models", "rows", "accounting"])
def test_searches_and_models_do_not_round(folder: str) -> None:
    rounding = [
        path.name for path in (HOME / folder).rglob("*.py") if "_core.rounding" in path.read_text()
    ]
    assert not rounding
