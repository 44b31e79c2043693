"""Cursors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from takifugu.server.api.problems import Problem
from takifugu.server.api.responses import cursor_after, place_of
from tests.raising import raises


@given(st.integers(0, 10**19 - 1))
def test_a_cursor_has_its_place(place: int) -> None:
    assert place_of("releases", cursor_after("releases", place)) == place


@given(st.text(max_size=40))
def test_anything_else_is_refused(text: str) -> None:
    with raises(Problem, status=422, field="cursor"):
        place_of("releases", text + "!")


@pytest.mark.parametrize("text", ["", "=", "é", cursor_after("events", 3), "cmVsZWFzZXM6LTE"])
def test_another_list_is_refused(text: str) -> None:
    with raises(Problem, status=422, field="cursor"):
        place_of("releases", text)
