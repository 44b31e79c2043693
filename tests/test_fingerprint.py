"""A fingerprint is the content: the same wherever it is computed, different when content is."""

import os
import subprocess
import sys
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from takifugu._core.fingerprint import ByContent, fingerprint
from takifugu.finite import FiniteMechanism, World
from takifugu.priors import Explicit, Tables, Universe, entry_pairs

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(max_size=5),
    st.binary(max_size=5),
    st.fractions(),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=2), inner, max_size=2),
    ),
    max_leaves=6,
)


def _typed(value: Any) -> Any:
    """``value`` with the kind of every part spelt out: equal only if the contents are."""
    if isinstance(value, tuple):
        return ("tuple", *map(_typed, value))
    if isinstance(value, dict):
        return ("dict", *sorted((key, repr(_typed(v))) for key, v in value.items()))
    if isinstance(value, float):
        return ("float", value + 0.0)
    return (type(value).__name__, value)


@given(values, values)
def test_two_contents_share_a_fingerprint_only_if_they_are_the_same(a: Any, b: Any) -> None:
    assert (fingerprint(a) == fingerprint(b)) == (_typed(a) == _typed(b))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (("ab", "c"), ("a", "bc")),
        ((("a",), "b"), ("a", ("b",))),
        ((1, 2), ((1, 2),)),
        ((), ((),)),
        ("1", 1),
        (1, 1.0),
        (True, 1),
        (None, "None"),
        ("a", b"a"),
        (0.1, Fraction(0.1)),
        (np.zeros(6), np.zeros((2, 3))),
        (np.zeros((3, 2)), np.zeros((2, 3))),
        (np.zeros(2), np.zeros(2, dtype=np.int64)),
        (np.array([1.0, 2.0]), np.array([2.0, 1.0])),
        ({"a": 1, "b": 2}, {"a": 2, "b": 1}),
        (frozenset({1, 2}), (1, 2)),
        (1.0, np.nextafter(1.0, 2.0)),
    ],
)
def test_similar_contents_do_not_collide(a: Any, b: Any) -> None:
    assert fingerprint(a) != fingerprint(b)


def test_the_order_of_sets_and_mappings_does_not_count() -> None:
    assert fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})
    assert fingerprint(frozenset("abc")) == fingerprint(frozenset("cba"))
    assert fingerprint(np.int64(3)) == fingerprint(3)
    assert fingerprint(-0.0) == fingerprint(0.0)
    transposed = np.arange(6.0).reshape(2, 3).T
    assert fingerprint(transposed) == fingerprint(transposed.copy(order="C"))


def _universe() -> Universe:
    return Universe(("rain", "shine"))


def _world() -> World:
    bits = Tables.bits(2)
    return World(bits, (Explicit.uniform(bits),), entry_pairs(bits))


@pytest.mark.nightly
def test_fingerprints_are_the_same_in_another_process_with_another_hash_seed() -> None:
    code = (
        "from takifugu.priors import *; from takifugu.finite import World; bits = Tables.bits(2);"
        "print(World(bits, (Explicit.uniform(bits),), entry_pairs(bits)).fingerprint)"
    )
    for seed in ("1", "2"):
        environment = {
            **os.environ,
            "PYTHONHASHSEED": seed,
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        found = subprocess.run(  # noqa: S603
            [sys.executable, "-c", code],
            env=environment,
            capture_output=True,
            check=True,
            text=True,
        )
        assert found.stdout.strip() == _world().fingerprint


def test_fingerprints_are_pinned_so_that_old_records_keep_their_meaning() -> None:
    assert fingerprint(("rain", 1, 0.5, None))[:16] == "30f9c26198ea2428"
    assert _universe().fingerprint[:16] == "e5b4c3ea3880968e"
    assert _world().fingerprint[:16] == "9ac5cd04fdabe8c8"


def test_equality_and_hash_come_from_content() -> None:
    assert _world() == _world() and hash(_world()) == hash(_world())
    assert len({_universe(), _universe(), Universe(("shine", "rain"))}) == 2
    one = FiniteMechanism(_universe(), np.eye(2))
    assert one == FiniteMechanism(_universe(), np.eye(2).tolist())  # type: ignore[arg-type]
    assert one != FiniteMechanism(_universe(), np.eye(2), ("a", "b"))
    assert one != FiniteMechanism(_universe(), np.eye(2)[::-1])
    nudged = np.array([[1.0, 0.0], [np.finfo(float).eps, 1 - np.finfo(float).eps]])
    assert one != FiniteMechanism(_universe(), nudged)


def test_kinds_with_the_same_fields_differ() -> None:
    @dataclass(frozen=True, eq=False)
    class Rain(ByContent):
        amount: float

    @dataclass(frozen=True, eq=False)
    class Snow(ByContent):
        amount: float

    @dataclass(frozen=True, eq=False)
    class Depth(ByContent):
        depth: float

    assert Rain(1.0) == Rain(1.0) and Rain(1.0) != Rain(2.0)
    assert Rain(1.0).fingerprint != Snow(1.0).fingerprint != Depth(1.0).fingerprint
    assert Rain(1.0) != 1.0


def test_what_has_no_stable_content_is_refused() -> None:
    with pytest.raises(TypeError, match="cannot fingerprint a object"):
        fingerprint(object())


def test_a_renamed_class_keeps_the_fingerprint_of_its_first_name() -> None:
    coin = FiniteMechanism(Universe((0, 1)), np.array([[0.75, 0.25], [0.25, 0.75]]))
    assert coin.fingerprint == "b1daece844d8cfbd28a9c3d68ae5b73f83f08b83b5090614f2c444701b1e31ec"
