"""Messages between server and worker: plain values, and nothing that could be run."""

import asyncio
import io
import os
import pickle
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from takifugu.server.work.tasks import HEAD, NotPlain, packed, receive, unpacked

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(),
    lambda part: st.lists(part) | st.tuples(part, part) | st.dictionaries(st.text(), part),
)


@pytest.mark.costly
@given(message=PLAIN)
def test_a_plain_message_arrives_as_it_was(message: Any) -> None:
    assert receive(io.BytesIO(packed(message))) == message


@given(message=PLAIN, cut=st.integers(1, 100))
def test_a_message_that_is_cut_off_is_the_end(message: Any, cut: int) -> None:
    content = packed(message)
    with pytest.raises(EOFError):
        receive(io.BytesIO(content[: max(len(content) - cut, 0)]))


@pytest.mark.parametrize("value", [Fraction(1, 2), Decimal(1), Path(), ValueError(), print, object])
def test_nothing_but_plain_values_is_sent(value: Any) -> None:
    with pytest.raises(NotPlain):
        packed({"deep": [value]})


class _Runs:
    def __reduce__(self) -> Any:
        return os.mkdir, ("made-by-a-message",)


@pytest.mark.parametrize("value", [_Runs(), Fraction(1, 2), print, os.system])
def test_nothing_is_run_or_looked_up_that_a_message_names(
    value: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotPlain):
        unpacked(pickle.dumps(value))
    assert not list(tmp_path.iterdir())


def test_a_length_that_cannot_be_is_refused() -> None:
    with pytest.raises(NotPlain):
        receive(io.BytesIO(HEAD.pack(2**62)))


def test_both_sides_read_the_same() -> None:
    from takifugu.server.work.tasks import receive_async

    async def read() -> Any:
        stream = asyncio.StreamReader()
        stream.feed_data(packed(("result", {"rows": [(1, 0.5)]})))
        stream.feed_eof()
        first = await receive_async(stream)
        with pytest.raises(EOFError):
            await receive_async(stream)
        return first

    assert asyncio.run(read()) == ("result", {"rows": [(1, 0.5)]})
