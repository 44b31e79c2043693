"""A world fits together or is refused, in one line that says what to do."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings

from takifugu.errors import InvalidWorld
from takifugu.finite import World
from takifugu.priors import (
    EntryIs,
    Explicit,
    Holds,
    Knowledge,
    OneOf,
    SecretPair,
    Tables,
    Universe,
    entry_pairs,
)
from tests.raising import raises
from tests.strategies import worlds

TWO = Universe(("rain", "shine"))
RAIN, SHINE = OneOf("rain", ("rain",)), OneOf("shine", ("shine",))
FAIR = Explicit.uniform(TWO)
PAIR = SecretPair(RAIN, SHINE)


@settings(max_examples=40)
@given(worlds())
def test_probabilities_and_conditionals_are_sums_over_the_secret(world: World) -> None:
    for t, prior in enumerate(world.weights.tolist()):
        for s, secret in enumerate(world.secrets):
            mask = secret.mask(world.universe).tolist()
            inside = [
                Fraction(p) if true else Fraction(0) for p, true in zip(prior, mask, strict=True)
            ]
            total = sum(inside, Fraction(0))
            assert world.secret_probabilities[t, s] == pytest.approx(float(total), rel=1e-14)
            assert world.masks[s].tolist() == [float(true) for true in mask]
            expected = [float(p / total) for p in inside]
            assert world.conditional(t, secret) == pytest.approx(expected, rel=1e-13, abs=0)


def test_secrets_are_listed_once_and_sides_point_at_them() -> None:
    bits = Tables.bits(2)
    world = World(bits, (Explicit.uniform(bits),), entry_pairs(bits))
    assert len(world.secrets) == len(world.pairs) == 4
    for pair, (left, right) in zip(world.pairs, world.sides, strict=True):
        assert (world.secrets[left], world.secrets[right]) == (pair.left, pair.right)


def test_lists_are_taken_as_tuples() -> None:
    world = World(TWO, [FAIR], [PAIR])  # type: ignore[arg-type]
    assert world == World(TWO, (FAIR,), (PAIR,))


@pytest.mark.parametrize(
    ("priors", "pairs", "field", "facts"),
    [
        ((FAIR,), (), "pairs", ()),
        ((), (PAIR,), "priors", ()),
        (
            (FAIR,),
            (SecretPair(RAIN, Holds("hail", lambda d: d == "hail")),),
            "secret",
            ("'hail'",),
        ),
        (
            (FAIR,),
            (SecretPair(RAIN, OneOf("any", ("rain", "shine"))),),
            "pairs",
            ("'rain / any'", "0"),
        ),
        ((FAIR,), (SecretPair(RAIN, OneOf("snow", ("snow",))),), "dataset", ("'snow'",)),
        ((FAIR,), (SecretPair(EntryIs("x", (0,)), RAIN),), "secret", ("0",)),
        (
            (Explicit.uniform(Universe(("a", "b"))),),
            (PAIR,),
            "priors",
            (),
        ),
        (Knowledge(Universe(("a", "b"))), (PAIR,), "priors", ()),
        (
            (FAIR, Explicit(TWO, np.array([1.0, 0.0]), "sure")),
            (PAIR,),
            "priors",
            ("'sure'", "'shine'", "0"),
        ),
    ],
)
def test_what_does_not_fit_together_is_refused_in_one_line(
    priors: tuple[Explicit, ...],
    pairs: tuple[SecretPair, ...],
    field: str,
    facts: tuple[str, ...],
) -> None:
    with raises(InvalidWorld, field=field) as caught:
        World(TWO, priors, pairs)
    message = str(caught.value)
    assert "\n" not in message and all(fact in message for fact in facts)


def test_an_impossible_secret_has_no_conditional() -> None:
    sure = Explicit(TWO, np.array([1.0, 0.0]), "sure")
    world = World(TWO, (sure,), (PAIR,), unsupported="skip")
    assert world.secret_probabilities.tolist() == [[1.0, 0.0]]
    with raises(InvalidWorld, field="secret") as caught:
        world.conditional(0, SHINE)
    assert "'shine'" in caught.value.given and "'sure'" in caught.value.given


def test_priors_given_by_inequalities_are_no_list() -> None:
    world = World(TWO, Knowledge(TWO), (PAIR,))
    with raises(InvalidWorld, field="priors"):
        world.weights  # noqa: B018
