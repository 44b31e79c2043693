"""Slips that used to end in a traceback, or to go unheard."""

from typing import Any

import numpy as np
import pytest

from takifugu._core.numeric import distribution
from takifugu.errors import Malformed, TakifuguError
from takifugu.finite import FiniteMechanism, World
from takifugu.priors import (
    Between,
    EntryIs,
    Explicit,
    Holds,
    OneOf,
    SecretPair,
    Tables,
    Universe,
    entry_pairs,
)

TWO = Universe(("a", "b"))
BITS = Tables.bits(2)
PAIR = SecretPair(OneOf("a", ("a",)), OneOf("b", ("b",)))
PRIOR = Explicit.uniform(TWO)


def divide(_: object) -> bool:
    return bool(1 / 0)


@pytest.mark.parametrize(
    "slip",
    [
        lambda: distribution([10**400, 0], "p", Malformed),
        lambda: Universe((["a"], ["b"])),  # type: ignore[arg-type]
        lambda: FiniteMechanism(TWO, np.eye(2), (["x"], ["y"])),  # type: ignore[arg-type]
        lambda: FiniteMechanism.from_function(TWO, lambda _: None),
        lambda: FiniteMechanism.from_function(TWO, lambda _: ["x"]),  # type: ignore[arg-type, return-value]
        lambda: FiniteMechanism.from_function(TWO, lambda _: {"x": "much"}),  # type: ignore[arg-type, return-value]
        lambda: Between(["x"], 0, 1),  # type: ignore[arg-type]
        lambda: Explicit.independent(TWO, {}),  # type: ignore[arg-type]
        lambda: World(TWO, PRIOR, (PAIR,)),  # type: ignore[arg-type]
        lambda: World(TWO, ("flat",), (PAIR,)),  # type: ignore[arg-type]
        lambda: World(TWO, (PRIOR,), (("a", "b"),)),  # type: ignore[arg-type]
        lambda: World(TWO, (PRIOR,), (PAIR,), unsupported="what"),  # type: ignore[arg-type]
        lambda: World(TWO, (PRIOR,), (SecretPair(Holds("broken", divide), PAIR.right),)),
        lambda: entry_pairs(BITS, values={"unknown": [(0, 1)]}),
        lambda: EntryIs(7, (0,)).mask(BITS),
    ],
)
def test_a_slip_is_one_clear_line(slip: Any) -> None:
    with pytest.raises(TakifuguError) as caught:
        slip()
    assert "\n" not in str(caught.value)


def test_worlds_with_nameless_predicates_are_told_apart_by_what_they_say() -> None:
    def world(swapped: bool) -> World:
        left = Holds("s", lambda d: (d == "a") != swapped)
        right = Holds("t", lambda d: (d == "b") != swapped)
        return World(TWO, (PRIOR,), (SecretPair(left, right),))

    assert world(False) == world(False) != world(True)
