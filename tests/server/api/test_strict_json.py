"""Bodies as strangers send them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from takifugu.server.api.problems import Problem, json_bytes
from takifugu.server.api.requests import MAX_DEPTH, MAX_DIGITS, read_json
from tests.raising import raises

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**12), 10**12)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(plain)
def test_reads_what_python_writes(value: object) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        with raises(Problem, status=422, reason="surrogate"):
            read_json(json.dumps(value).encode())
    else:
        assert read_json(json.dumps(value).encode()) == value


@pytest.mark.parametrize(
    ("raw", "status", "reason"),
    [
        (b"", 400, "syntax"),
        (b"{", 400, "syntax"),
        (b"\xff\xfe", 400, "syntax"),
        (b"{} {}", 400, "syntax"),
        (b'{"epsilon": NaN}', 422, "number"),
        (b'{"epsilon": Infinity}', 422, "number"),
        (b'{"epsilon": -Infinity}', 422, "number"),
        (b'{"epsilon": 1e999}', 422, "number"),
        (b'{"k": ' + b"9" * (MAX_DIGITS + 1) + b"}", 422, "number"),
        (b'{"k": ' + b"9" * 10_000 + b"}", 422, "number"),
        (b'{"k": 1, "k": 2}', 422, "twice"),
        (b'{"kind": "\\ud800"}', 422, "surrogate"),
        (b'{"\\udfff": 1}', 422, "surrogate"),
        (b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), 422, "depth"),
        (b"[" * 30_000 + b"]" * 30_000, 422, "depth"),
        (b'{"a":' * 10_000 + b"1" + b"}" * 10_000, 422, "depth"),
    ],
)
def test_surprises_are_refused(raw: bytes, status: int, reason: str) -> None:
    with raises(Problem, status=status, reason=reason):
        read_json(raw)


def test_the_deepest_that_is_allowed() -> None:
    assert read_json(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)


def test_infinite_numbers_are_null_and_nan_is_refused() -> None:
    assert json_bytes({"a": [1.5, float("inf"), (-float("inf"),)]}) == b'{"a":[1.5,null,[null]]}'
    with pytest.raises(ValueError, match="JSON"):
        json_bytes([float("nan")])
