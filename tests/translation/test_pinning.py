"""Pinning: intervals for odds and their gains, against sums over all datasets at any scale."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.priors.networks import MarkovRandomField
from takifugu.translation.certify.fields import RisingField, pairwise_field
from tests.oracles import translation as oracle
from tests.translation.rising_fields import attractive_losses, log_odds_rise


def field_of(
    seed: int, n: int, *, pull: float, density: float = 0.7, background: float = -2.0
) -> MarkovRandomField:
    rng = np.random.default_rng(seed)
    pairs = [(i, j) for i in range(n) for j in range(i) if rng.random() < density]
    return MarkovRandomField.ising(
        {i: float(rng.normal(background, 1)) for i in range(n)},
        {pair: float(rng.exponential(pull)) for pair in pairs},
    )


def exactly(model: MarkovRandomField, spent: np.ndarray, entry: int, value: int) -> float:
    """The closed form, from all datasets, to 700 digits: also where ε is 1e-300."""
    with mpmath.workdps(700):
        weights = [mpmath.mpf(1)] * 2 ** len(model.entries)
        unary = [[mpmath.mpf(float(w)) for w in table] for table in model.unary]
        joint = [
            (a, b, [[mpmath.mpf(float(w)) for w in row] for row in table])
            for (a, b), table in zip(model.edges, model.weights, strict=True)
        ]
        total = {True: mpmath.mpf(0), False: mpmath.mpf(0)}
        tilted = dict(total)
        for number in range(len(weights)):
            x = [number >> i & 1 for i in range(len(model.entries))]
            p = mpmath.fprod(unary[i][v] for i, v in enumerate(x))
            p *= mpmath.fprod(table[x[int(a)]][x[int(b)]] for a, b, table in joint)
            tilt = mpmath.fsum(
                mpmath.mpf(float(e)) for j, e in enumerate(spent) if j != entry and x[j] == value
            )
            total[x[entry] == value] += p
            tilted[x[entry] == value] += p * mpmath.exp(tilt)
        ratio = (tilted[True] / total[True]) / (tilted[False] / total[False])
        return float(mpmath.mpf(float(spent[entry])) + mpmath.log(ratio))


@pytest.mark.nightly
@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    pull=st.sampled_from([0.0, 0.01, 0.3, 1.5, 20.0]),
    background=st.sampled_from([-30.0, -4.0, 0.0, 25.0]),
    epsilon=st.sampled_from([1e-300, 1e-12, 0.01, 0.5, 3.0, 50.0]),
    visits=st.sampled_from([1, 40, 3000]),
)
def test_the_loss_lies_between_the_bounds_at_every_scale(
    seed: int, pull: float, background: float, epsilon: float, visits: int
) -> None:
    model = field_of(seed, 5, pull=pull, background=background)
    rng = np.random.default_rng(seed)
    spent = epsilon * rng.choice([0.0, 0.3, 1.0], 5)
    found = attractive_losses(model, spent, largest=1, visits=visits)
    for pair, lower, upper in zip(found.pairs, found.lower, found.upper, strict=True):
        truth = exactly(model, spent, pair.left.entry, pair.left.values[0])  # type: ignore[union-attr,arg-type]
        assert lower <= truth * (1 + 1e-14) + 1e-322
        assert truth * (1 - 1e-14) <= upper


@pytest.mark.parametrize("epsilon", [1e-300, 1e-200, 1e-15, 1e-3])
def test_small_losses_keep_their_digits(epsilon: float) -> None:
    model = field_of(1, 6, pull=0.4)
    spent = np.full(6, epsilon)
    lower, upper = log_odds_rise(pairwise_field(model), spent, [2], visits=10**5, close=0.0)
    truth = exactly(model, spent, 2, 1)
    assert lower[0] == pytest.approx(truth, rel=1e-9) == upper[0]
    assert 1.2 < truth / epsilon < 6


@pytest.mark.parametrize(
    ("background", "pull", "epsilon"),
    [(-200.0, 299.0, 1e-270), (-149.0, 299.0, 1e-290), (-60.0, 150.0, 1e-300)],
)
def test_small_losses_are_not_lost_beside_strong_couplings(
    background: float, pull: float, epsilon: float
) -> None:
    """A contact that is all but certain to follow passes on its whole ε, however small."""
    model = MarkovRandomField.ising({0: 0.0, 1: background}, {(0, 1): pull})
    spent = np.full(2, epsilon)
    for entry in range(2):
        lower, upper = log_odds_rise(pairwise_field(model), spent, [entry], visits=10, close=0.0)
        assert lower[0] <= exactly(model, spent, entry, 1) * (1 + 1e-14)
        assert exactly(model, spent, entry, 1) * (1 - 1e-14) <= upper[0]


def test_without_couplings_everybody_loses_their_own() -> None:
    for pull in (0.0, 1e-300):
        model = MarkovRandomField.ising(dict.fromkeys(range(40), -3.0), {(0, 1): pull, (1, 2): 0.0})
        spent = np.linspace(0, 1, 40)
        lower, upper = log_odds_rise(pairwise_field(model), spent, range(40), visits=0)
        assert lower == pytest.approx(spent, rel=1e-12) == upper
        assert (lower <= spent).all() and (spent <= upper).all()


@pytest.mark.parametrize("pull", [20.0, 300.0])
def test_couplings_as_strong_as_certainty_make_one_person_of_two(pull: float) -> None:
    model = MarkovRandomField.ising({0: -pull / 2, 1: -pull / 2, 2: -1.0}, {(0, 1): pull})
    found = attractive_losses(model, [0.3, 0.2, 0.4], largest=1, visits=1000)
    assert found.by_entry[:2] == pytest.approx([0.5, 0.5], rel=1e-3)
    assert found.by_entry[2] == pytest.approx(0.4, rel=1e-12)


def test_couplings_beyond_exponentials_leave_group_privacy() -> None:
    far = np.array([[1e150, 1e-150], [1e-150, 1e150]])  # a log cross-ratio of 1382
    ones = (np.ones(2), np.ones(2))
    model = MarkovRandomField((0, 1), ((0, 1), (0, 1)), ones, ((0, 1),), (far,))
    rising = RisingField(pairwise_field(model), np.array([0.3, 0.2]), [0, 1])
    assert not rising.computes
    assert np.isinf(rising.upper).all() and (rising.lower <= [0.3, 0.2]).all()
    found = attractive_losses(model, [0.3, 0.2], largest=1)
    assert found.loss == pytest.approx(0.5, rel=1e-12) and found.attained <= 0.5


def test_the_oracle_agrees_with_that_of_the_closed_form() -> None:
    model = field_of(8, 4, pull=0.7)
    spent = np.array([0.2, 0.0, 0.5, 0.1])
    law = model.explicit().probability
    other = oracle.attractive_loss(law, (2,) * 4, 3, 1, tuple(spent.tolist()))
    assert exactly(model, spent, 3, 1) == pytest.approx(float(other), rel=1e-12)


def sparse(seed: int, n: int, degree: float) -> MarkovRandomField:
    """A sparse field with long cycles and a few strong couplings."""
    rng = np.random.default_rng(seed)
    ring: dict[tuple[int, int], float] = {(i, (i + 1) % n): 0.0 for i in range(n - 1)}
    for _ in range(int(degree * n)):
        i, j = sorted(rng.choice(n, 2, replace=False).tolist())
        if (j, i) not in ring:
            ring[i, j] = 0.0
    strong = rng.random(len(ring)) < 0.4
    pulls = np.where(strong, 3.0, rng.exponential(0.4, len(ring)))
    return MarkovRandomField.ising(
        {i: float(rng.normal(-2.5, 1)) for i in range(n)},
        dict(zip(ring, pulls.tolist(), strict=True)),
    )


@pytest.mark.costly
@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(3, 11),
    degree=st.sampled_from([0.0, 0.3, 0.8]),
    epsilon=st.sampled_from([0.05, 0.5, 2.0]),
    visits=st.integers(1, 400),
)
def test_sparse_fields_with_long_cycles_are_bracketed_however_early_the_search_ends(
    seed: int, n: int, degree: float, epsilon: float, visits: int
) -> None:
    model = sparse(seed, n, degree)
    spent = epsilon * np.random.default_rng(seed).random(n)
    exact = attractive_losses(model, spent)
    assert exact.exact
    pinned = attractive_losses(model, spent, largest=1, visits=visits)
    assert (pinned.lower <= exact.upper).all() and (exact.lower <= pinned.upper).all()


@pytest.mark.nightly
def test_bounds_stay_sound_where_products_are_beyond_all_floats() -> None:
    pairs = {(i, j): 140.0 for i in range(7) for j in range(i)}
    for field in (-300.0, -150.0, 0.0, 300.0):
        model = MarkovRandomField.ising(dict.fromkeys(range(7), field), pairs)
        spent = np.array([0.0, 1e-3, 0.2, 0.0, 0.4, 3.0, 0.1])
        for visits in (1, 500):
            found = attractive_losses(model, spent, largest=1, visits=visits)
            for pair, lower, upper in zip(found.pairs, found.lower, found.upper, strict=True):
                truth = exactly(model, spent, pair.left.entry, pair.left.values[0])  # type: ignore[union-attr,arg-type]
                assert lower <= truth * (1 + 1e-12) + 1e-300
                assert truth * (1 - 1e-12) - 1e-300 <= upper
