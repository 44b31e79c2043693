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
from tests.strategies import worlds

TWO = Universe(("rain", "shine"))
RAIN, SHINE = OneOf("rain", ("rain",)), OneOf("shine", ("shine",))
FAIR = Explicit.uniform(TWO)
PAIR = SecretPair(RAIN, SHINE)


@settings(max_examples=40)
@given(worlds())
def test_chances_and_conditionals_are_sums_over_the_secret(world: World) -> None:
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
    ("priors", "pairs", "message"),
    [
        ((FAIR,), (), r"`pairs` is empty; it must hold at least one secret pair"),
        ((), (PAIR,), r"`priors` is empty; it must hold at least one prior"),
        (
            (FAIR,),
            (SecretPair(RAIN, Holds("hail", lambda d: d == "hail")),),
            r"`secret` 'hail' is true of no dataset; it must be true of at least one",
        ),
        (
            (FAIR,),
            (SecretPair(RAIN, OneOf("any", ("rain", "shine"))),),
            r"`pairs` has 'rain / any', both true of dataset number 0; it must hold statements",
        ),
        ((FAIR,), (SecretPair(RAIN, OneOf("snow", ("snow",))),), r"`dataset` 'snow' is not in the"),
        ((FAIR,), (SecretPair(EntryIs("x", (0,)), RAIN),), r"`secret` x=0 speaks of an entry"),
        (
            (Explicit.uniform(Universe(("a", "b"))),),
            (PAIR,),
            r"`priors` speak of other datasets; it must be over the world's datasets",
        ),
        (Knowledge(Universe(("a", "b"))), (PAIR,), r"`priors` speak of other datasets"),
        (
            (FAIR, Explicit(TWO, np.array([1.0, 0.0]), "sure")),
            (PAIR,),
            r"`priors` has 'sure', under which secret 'shine' has chance 0; it must give every",
        ),
    ],
)
def test_what_does_not_fit_together_is_refused_in_one_line(
    priors: tuple[Explicit, ...], pairs: tuple[SecretPair, ...], message: str
) -> None:
    with pytest.raises(InvalidWorld, match=message) as caught:
        World(TWO, priors, pairs)
    assert "\n" not in str(caught.value)


def test_a_secret_without_a_chance_has_no_conditional() -> None:
    sure = Explicit(TWO, np.array([1.0, 0.0]), "sure")
    world = World(TWO, (sure,), (PAIR,), unsupported="skip")
    assert world.secret_probabilities.tolist() == [[1.0, 0.0]]
    with pytest.raises(InvalidWorld, match=r"`secret` 'shine' has chance 0 under 'sure'"):
        world.conditional(0, SHINE)


def test_priors_given_by_inequalities_are_no_list() -> None:
    world = World(TWO, Knowledge(TWO), (PAIR,))
    with pytest.raises(InvalidWorld, match=r"`priors` are given by inequalities"):
        world.weights  # noqa: B018
