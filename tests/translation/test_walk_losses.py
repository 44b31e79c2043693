"""Pairwise fields of any size: the non-backtracking bound and self-avoiding walks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.costs.cost import Cost
from takifugu.errors import TooLarge
from takifugu.priors import Secrets
from takifugu.priors.networks import MarkovRandomField
from takifugu.translation import LooserTranslation, Translation
from takifugu.translation.certify.field_loops import reweighted
from takifugu.translation.entry_costs import EntryCosts
from tests.influence.strategies import networks
from tests.oracles import cost_programs as oracle
from tests.raising import raises
from tests.translation.rising_fields import walk_losses
from tests.translation.transports import transport_of


def grid(rows: int, columns: int, across: float, down: float | None = None) -> MarkovRandomField:
    """Spins of ±1 with couplings J and no field: a cross-ratio of 4J."""
    down = across if down is None else down
    place = {(i, j): i * columns + j for i in range(rows) for j in range(columns)}
    pull = {}
    for (i, j), one in place.items():
        for near, strength in (((i, j + 1), across), ((i + 1, j), down)):
            if near in place:
                pull[one, place[near]] = 4 * strength
    fields = dict.fromkeys(place.values(), 0.0)
    for (i, j), strength in pull.items():
        fields[i] -= strength / 2
        fields[j] -= strength / 2
    return MarkovRandomField.ising(fields, pull)


def test_the_lemma_in_numbers() -> None:
    assert reweighted(2.0, 1.5) == pytest.approx(0.66857, abs=5e-6)
    assert 0 < reweighted(1e-300, 1e-300) <= 1e-300
    assert reweighted(1e6, 3.0) == pytest.approx(3.0, rel=1e-12)
    assert reweighted(3.0, np.inf) == pytest.approx(3.0, rel=1e-12)


@pytest.mark.costly
@settings(max_examples=200)
@given(seed=st.integers(0, 10**6), spread=st.floats(0.01, 6), rise=st.floats(0.01, 6))
def test_no_reweighting_moves_a_mean_further_than_the_lemma_says(
    seed: int, spread: float, rise: float
) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 6))
    law = rng.dirichlet(np.ones(size) * rng.choice([0.2, 1.0]))
    w = np.exp(spread * rng.choice([rng.random(size), rng.integers(0, 2, size)]))
    h = np.exp(rise * rng.choice([rng.random(size), rng.integers(0, 2, size)]))
    moved = np.log((law @ (w * h)) / ((law @ w) * (law @ h)))
    assert moved <= reweighted(spread, rise) + 1e-12


@pytest.mark.parametrize(
    ("field", "node", "plain", "walks"),
    [
        (grid(3, 3, 0.1), 4, 0.74182, 0.74131),
        (grid(3, 3, 0.2), 4, 1.09131, 1.08063),
        (grid(3, 3, 0.6), 4, 4.5, 3.82870),  # 5.39068 without the 4.5 of group privacy
        (grid(2, 3, 0.2), 1, 0.89118, 0.88692),
        (grid(3, 3, 0.05, 0.8), 4, 1.42490, 1.41427),
    ],
)
def test_grids_of_the_literature(
    field: MarkovRandomField, node: int, plain: float, walks: float
) -> None:
    assert walk_losses(field, 0.5, depth=0).by_entry[node] == pytest.approx(plain, abs=1e-5)
    assert walk_losses(field, 0.5).by_entry[node] == pytest.approx(walks, abs=1e-5)


@st.composite
def pairwise(draw: st.DrawFn) -> MarkovRandomField:
    """Tables of any signs on some pairs of up to five entries with two or three values."""
    n = draw(st.integers(2, 4))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    states = tuple(tuple(range(int(rng.integers(2, 4)))) for _ in range(n))
    edges = tuple((i, j) for i in range(n) for j in range(i) if rng.random() < 0.7)
    strength = draw(st.sampled_from([0.1, 0.5, 1.5]))
    weights = tuple(
        np.exp(strength * rng.normal(size=(len(states[i]), len(states[j])))) for i, j in edges
    )
    unary = tuple(np.exp(rng.normal(size=len(own))) for own in states)
    return MarkovRandomField(tuple(range(n)), states, unary, edges, weights)


@pytest.mark.costly
@settings(max_examples=20)
@given(
    field=pairwise(),
    spent=st.lists(st.sampled_from([0.0, 0.05, 0.5, 2.0]), min_size=5, max_size=5),
    depth=st.integers(0, 5),
)
def test_no_mechanism_loses_more_in_any_small_field(
    field: MarkovRandomField, spent: list[float], depth: int
) -> None:
    spent = spent[: len(field.entries)]
    losses = walk_losses(field, spent, depth=depth)
    law = field.explicit().probability.reshape([len(own) for own in field.states])
    costs = [oracle.any_value(n, e) for n, e in zip(law.shape, spent, strict=True)]
    for entry in range(law.ndim):
        for x, y in ((0, 1), (1, 0)):
            solved = oracle.pair_loss(law, costs, entry, x, y)
            pairs = [str(pair) for pair in losses.pairs]
            mine = losses.upper[pairs.index(f"{entry}={x} / {entry}={y}")]
            assert mine >= solved.lower - 1e-9
    deeper = walk_losses(field, spent, depth=depth + 1)
    assert deeper.loss <= losses.loss + 1e-9


@pytest.mark.nightly
def test_ten_thousand_entries_have_a_bound_below_group_privacy() -> None:
    rng = np.random.default_rng(7)
    count = 10_000
    edges = [(i, i + 1) for i in range(count - 1)] + [(i, i + 100) for i in range(count - 100)]
    signs = rng.choice([-0.3, 0.3], len(edges))
    field = MarkovRandomField.ising(
        dict.fromkeys(range(count), 0.0), dict(zip(edges, signs.tolist(), strict=True))
    )
    with pytest.warns(LooserTranslation, match="walks"):
        transport = transport_of(field, Secrets())
    found = transport.uniform(0.1)
    assert 0.1 < found.value < 0.2
    assert found.by_entry is not None and len(found.by_entry) == count
    one = transport.valued(EntryCosts(by_entry=(Cost.any("0.1"), *(Cost(),) * (count - 1))))
    assert one.by_entry is not None
    assert one.by_entry[0] == pytest.approx(0.1) and 0 < one.by_entry[1] < 0.02
    assert one.by_entry[5_000] < 1e-6


@pytest.mark.nightly
def test_a_wide_field_is_no_longer_left_to_the_curve() -> None:
    rng = np.random.default_rng(3)
    wide = grid(12, 12, 0.1)
    mixed = MarkovRandomField(
        wide.entries,
        wide.states,
        wide.unary,
        wide.edges,
        tuple(w ** rng.choice([-1, 1]) for w in wide.weights),
    )
    answer = Translation(mixed, max_exposed=1).explain(0.2)
    assert answer.method == "transport" and answer.pufferfish < 1.0 < 0.2 * 144
    assert 0.2 * (1 - 1e-9) <= answer.lower <= answer.pufferfish


@given(model=networks())
@settings(max_examples=10)
def test_tables_of_three_and_zeros_are_refused(model: object) -> None:
    tables = model.factors()  # type: ignore[attr-defined]
    if all(len(t.scope) < 3 and (len(t.scope) < 2 or (t.table > 0).all()) for t in tables):
        return
    with raises(TooLarge, limit=2):
        walk_losses(model, 0.1)  # type: ignore[arg-type]
