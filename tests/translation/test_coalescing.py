"""Star-shaped costs on chains: solved sides against linear programs over all datasets."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.costs import Cost, Distance, Membership
from takifugu.numeric import Floats
from takifugu.priors import MarkovChain
from takifugu.translation import Translation
from takifugu.translation.chain.coalescing import StarSide, worst_pair
from takifugu.translation.chain.entry_laws import (
    Law,
    backward_rows,
    law_slack,
    recurrent_law,
    row_slack,
    transition_rows,
)
from takifugu.translation.chain.solved_chains import StationaryChain
from takifugu.translation.chain.stars import Star, star_of
from takifugu.translation.chain.transport_steps import closed, off_diagonal
from takifugu.translation.chain.unbounded_losses import unbounded_losses
from tests.oracles import cost_programs as oracle

A = np.array([[0.62, 0.28, 0.10], [0.05, 0.75, 0.20], [0.33, 0.07, 0.60]])


def sides_of(
    rows: list[Floats], start: Floats, stars: list[Star], entry: int
) -> tuple[StarSide | None, StarSide | None, Law]:
    """Both sides of an entry of a chain that begins somewhere."""
    size, law, back = len(start), Law.of(start), []
    for matrix in rows[:entry]:
        before, law = law.back(matrix)
        back.append(before)
    ahead = behind = None
    if entry < len(rows):
        ahead = StarSide.of(rows[entry:], stars[entry + 1 :], slack=row_slack(size))
        assert ahead is not None
    if entry:
        behind = StarSide.of(back[::-1], stars[:entry][::-1], slack=law.slack)
        assert behind is not None
    return ahead, behind, law


def stationary(rows: Floats) -> StationaryChain:
    rows = transition_rows(rows)
    size = len(rows)
    back = backward_rows(rows, recurrent_law(rows))[0]
    pairs = np.argwhere(off_diagonal(size) > 0)
    return StationaryChain(rows, back, (row_slack(size), law_slack(size)), pairs)


def random_star(rng: np.random.Generator, size: int) -> Floats:
    """A closed matrix that is a star: symmetric or not, some rays of no length."""
    up = rng.exponential(0.4, size) * (rng.random(size) < 0.7)
    down = up if rng.random() < 0.5 else rng.exponential(0.4, size) * (rng.random(size) < 0.7)
    return off_diagonal(size) * (up[:, None] + down[None, :])


def random_rows(rng: np.random.Generator, size: int) -> Floats:
    rows = rng.dirichlet(np.full(size, rng.choice([0.3, 1.0])), size=size)
    if rng.random() < 0.4:
        rows = np.where(rng.random(rows.shape) < 0.3, 0.0, rows) + 0.3 * np.eye(size)
    return transition_rows(rows / rows.sum(axis=1, keepdims=True))


@pytest.mark.nightly
@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1))
def test_every_pair_is_what_the_program_over_all_datasets_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 5))
    length = int(rng.integers(2, 5 if size < 4 else 4))
    rows = [random_rows(rng, size) for _ in range(length - 1)]
    start = rng.dirichlet(np.ones(size))
    costs = [random_star(rng, size) for _ in range(length)]
    stars = [star_of(cost) for cost in costs]
    assert all(star.attained for star in stars)
    table = oracle.chain_table(start, rows)
    for (entry, x, y), solved in oracle.all_losses(table, costs).items():
        ahead, behind, _ = sides_of(rows, start, stars, entry)
        own = np.array([costs[entry][x, y]])
        found = worst_pair(ahead, behind, own, np.array([[x, y]]))
        assert found.loss >= solved.lower - 1e-12
        assert found.loss == pytest.approx(solved.upper, rel=1e-8, abs=1e-9)


@pytest.mark.nightly
@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1))
def test_other_costs_are_bounded_by_a_star_above_them(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size, length = 4, 3
    rows = [random_rows(rng, size) for _ in range(length - 1)]
    start = rng.dirichlet(np.ones(size))
    kind = int(rng.integers(3))
    if kind == 0:
        levels = np.array([0.0, 0.0, 1.0, 1.0])[rng.permutation(4)]
        cost = oracle.difference(levels.tolist(), 0.7)
    elif kind == 1:
        cost = oracle.difference(rng.random(4).tolist(), 1.0)
    else:
        cost = closed(off_diagonal(size) * rng.exponential(0.5, (size, size)))
    star = star_of(cost)
    above = star.up[:, None] + star.down[None, :]
    apart = star.classes[:, None] != star.classes[None, :]
    assert (above[apart] >= cost[apart]).all() and (cost[~apart] == 0).all()
    assert (star.up + star.down >= 0).all()
    table = oracle.chain_table(start, rows)
    for (entry, x, y), solved in oracle.all_losses(table, [cost] * length).items():
        ahead, behind, _ = sides_of(rows, start, [star] * length, entry)
        found = worst_pair(ahead, behind, np.array([cost[x, y]]), np.array([[x, y]]))
        assert found.loss >= solved.lower - 1e-12


@pytest.mark.parametrize(
    ("cost", "tight", "attained"),
    [
        (off_diagonal(5, 0.3), True, True),  # per-entry DP
        (oracle.difference([1, 0, 0, 0, 0]), True, True),  # the count of a label
        (oracle.difference([0, 0.2, 1]), True, True),  # three numbers: the middle one is the hub
        (oracle.difference([1, 1, 0, 0, 0]), True, False),  # the count of a set
        (oracle.difference([0, 0.2, 0.5, 1]), False, False),  # four numbers on a line
        (np.zeros((4, 4)), True, True),
        (
            oracle.difference([1, 0, 0, 0]) + 3 * oracle.difference([0, 0, 1, 0]) + 0.2,
            True,
            True,
        ),
    ],
)
def test_which_costs_are_stars(cost: Floats, tight: bool, attained: bool) -> None:
    given = cost * off_diagonal(len(cost))
    star = star_of(given)
    assert (star.tight, star.attained) == (tight, attained)
    if tight and not (given == 0).all():
        apart = star.classes[:, None] != star.classes[None, :]
        above = star.up[:, None] + star.down[None, :]
        assert above[apart] == pytest.approx(given[apart], rel=1e-12)


def test_few_pairs_are_solved_and_all_are_bounded() -> None:
    """The worst of all pairs is the worst of each of them, with and without rivals."""
    rng = np.random.default_rng(7)
    chain = stationary(rng.dirichlet(np.ones(9), size=9))
    cost = random_star(rng, 9) + off_diagonal(9, 0.2)
    whole = chain.worst(cost)
    assert whole is not None
    each = [chain.worst(cost, among=np.array([k])) for k in range(len(chain.pairs))]
    losses = np.array([found.loss for found in each if found is not None])
    assert whole.loss == losses.max() and whole.pair == losses.argmax()
    split = chain.worst(cost, leeway=0.8)
    assert split is not None and split.loss == whole.loss
    assert 0 < len(split.rivals) < len(losses)
    others = np.setdiff1d(np.arange(len(losses)), split.rivals)
    assert losses[others].max() <= split.others * (1 + 1e-6) < whole.loss


def test_a_table_holds_every_pair() -> None:
    side = StarSide.of([A] * 6, [star_of(off_diagonal(3, 0.4))] * 6, slack=row_slack(3))
    assert side is not None
    table = side.table()
    assert (np.diag(table) == 0).all()
    for x, y in permutations(range(3), 2):
        found = worst_pair(side, None, np.zeros(1), np.array([[x, y]]))
        assert found.loss == pytest.approx(table[x, y], rel=1e-12)


def test_an_endless_side_is_the_limit_of_long_ones() -> None:
    chain, cost = stationary(A), off_diagonal(3, 0.5)
    unbounded = chain.unbounded(cost)
    assert unbounded is not None and unbounded.value == pytest.approx(1.8060208, rel=1e-6)
    before = 0.0
    for length in (3, 9, 21, 61):
        found = chain.finite(cost, length, None)
        assert found is not None and found.by_entry is not None
        assert before < found.value <= unbounded.value
        assert found.value == found.by_entry.max()
        before = found.value
    assert before == pytest.approx(unbounded.value, rel=1e-6)
    short = chain.finite(cost, 21, None)
    assert short is not None and short.value == pytest.approx(1.80542593, rel=1e-8)
    assert (short.entry, short.pair) == (10, (0, 1))


def test_a_finite_chain_bounds_every_entry() -> None:
    """Against sides solved one by one, also where secrets are about some entries alone."""
    rng = np.random.default_rng(3)
    rows = transition_rows(0.8 * np.eye(4) + 0.2 * rng.dirichlet(np.ones(4), size=4))
    chain, cost, length = stationary(rows), off_diagonal(4, 0.3), 30
    star, law = star_of(cost), recurrent_law(rows)
    truth = []
    for entry in range(length):
        ahead, behind, _ = sides_of([rows] * (length - 1), law, [star] * length, entry)
        truth.append(worst_pair(ahead, behind, np.full(12, 0.3), chain.pairs).loss)
    whole = chain.finite(cost, length, None)
    assert whole is not None and whole.by_entry is not None
    assert (whole.by_entry >= np.array(truth) * (1 - 1e-9)).all()
    assert whole.value == pytest.approx(max(truth), rel=1e-7)
    some = chain.finite(cost, length, np.array([1, 4, 28]))
    assert some is not None and some.by_entry is not None
    assert some.value == pytest.approx(max(truth[1], truth[4], truth[28]), rel=1e-7)
    assert set(np.flatnonzero(some.by_entry).tolist()) == {1, 4, 28}


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 5.0, 20.0])
def test_the_bound_is_attained_and_below_the_pairwise_one(epsilon: float) -> None:
    rng = np.random.default_rng(11)
    chain = MarkovChain(rng.dirichlet(np.ones(6), size=6), length=40)
    found = Translation(chain).explain(epsilon)
    assert found.lower <= found.pufferfish <= found.lower * (1 + 1e-6)
    above = unbounded_losses(chain.transition, epsilon, with_lower=False).loss
    assert found.pufferfish <= above * (1 + 1e-6)


def test_extremes_are_sound_or_refused() -> None:
    """Tiny probabilities and large losses: at least what two entries reveal."""
    tiny = np.array([[1 - 1e-140, 1e-140, 0.0], [0.5, 0.25, 0.25], [0.2, 0.3, 0.5]])
    star = star_of(off_diagonal(3, 60.0))
    side = StarSide.of([tiny], [star], slack=row_slack(3))
    assert side is not None
    pairs = np.array(list(permutations(range(3), 2)))
    below, above = side.solve(pairs, np.zeros(len(pairs)))
    assert (below <= above).all() and (above <= 60 + 1e-9).all()
    for (x, y), bound in zip(pairs, above, strict=True):
        levels = np.exp(60.0 * np.array(list(np.ndindex(2, 2, 2))))
        attained = np.log((levels @ tiny[x]) / (levels @ tiny[y])).max()
        assert bound >= attained * (1 - 1e-12)
    assert StarSide.of([tiny], [star_of(off_diagonal(3, 400.0))], slack=0.0) is None
    faint = np.array([[1 - 1e-200, 1e-200], [0.5, 0.5]])
    assert StarSide.of([faint], [star_of(off_diagonal(2, 1.0))], slack=0.0) is None


def test_an_endless_cycle_has_no_bound() -> None:
    cycle = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    side = StarSide.of([cycle], [star_of(off_diagonal(3, 0.1))], slack=0.0, unbounded=True)
    assert side is not None
    assert worst_pair(side, side, np.zeros(1), np.array([[0, 1]])).loss == np.inf


def test_what_rows_may_be_off_by_is_paid_for() -> None:
    chain, cost = stationary(A), off_diagonal(3, 0.5)
    star = star_of(cost)
    exact = StarSide.of([A] * 20, [star] * 20, slack=row_slack(3))
    wide = StarSide.of([A] * 20, [star] * 20, slack=1e-6)
    assert exact is not None and wide is not None
    one = worst_pair(exact, None, np.zeros(6), chain.pairs).loss
    other = worst_pair(wide, None, np.zeros(6), chain.pairs).loss
    assert one * (1 + 1e-9) < other < one + 20 * 8e-6
    moved = A * (1 + 1e-6 * np.array([1, -1, 1]))
    off = StarSide.of([moved] * 20, [star] * 20, slack=0.0)
    assert off is not None
    assert worst_pair(off, None, np.zeros(6), chain.pairs).loss < other


@pytest.mark.parametrize(
    ("cost", "loss"),
    [
        (Cost.of({Membership([0]): "1/2"}), 1.22046),
        (Cost.of({Membership([1]): "1/2"}), 1.37373),
        (Cost.of({Distance(0, 2): "1/2"}), 1.08946),
        (Cost.any("1/2"), 1.47058),
        (
            Cost.of({Membership([0]): "3/10", Membership([1]): "3/10"}) + Cost.any("1/10"),
            1.71512,
        ),
    ],
)
def test_the_known_values_of_three_states_are_reached(cost: Cost, loss: float) -> None:
    chain = MarkovChain(A, start=np.array([0.5, 0.2, 0.3]), length=5)
    assert Translation(chain).cost_bound(cost).value == pytest.approx(loss, abs=6e-6)


def test_different_costs_on_different_entries_are_solved() -> None:
    zero, one = (Cost.of({Membership([label]): "1/2"}) for label in (0, 1))
    chain = MarkovChain(A, start=np.array([0.5, 0.2, 0.3]), length=5)
    found = Translation(chain).cost_bound([zero, zero, zero + one, one, one])
    assert found.value == pytest.approx(1.54467, abs=6e-6)
    rows = np.array([[0.5, 0.5, 0.0], [0.0, 0.4, 0.6], [0.7, 0.0, 0.3]])
    begun = MarkovChain(rows, start=np.array([1.0, 0.0, 0.0]), length=4)
    assert Translation(begun).explain(0.5).exact
