"""Curves of networks and fields against every split of the law written out."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings

from takifugu.errors import InvalidPrior, UnsoundRequest
from takifugu.influence import InfluenceCurve, nearest_curve, network_curve
from takifugu.influence.network.network_curves import Progress
from takifugu.priors import Secrets
from takifugu.priors.bif import read_bif
from takifugu.priors.networks import BayesianNetwork, MarkovRandomField, NetworkPrior
from tests.influence.strategies import fields, network, networks
from tests.oracles import networks as oracle
from tests.priors.files import example
from tests.raising import raises

ROUNDING = 1e-9


def rows(
    curve: InfluenceCurve, model: NetworkPrior
) -> list[tuple[int, tuple[int, ...], tuple[int, ...], int]]:
    """For each row of a curve of single values: entry, left value, right value, number."""
    found: list[tuple[int, tuple[int, ...], tuple[int, ...], int]] = []
    for k, pair in enumerate(curve.pairs):
        left, right = (side.split("=") for side in pair.split(" / "))
        entry = [str(e) for e in model.entries].index(left[0])
        values = [str(s) for s in model.states[entry]]
        found.append((entry, (values.index(left[1]),), (values.index(right[1]),), k))
    return found


def check_exact(model: NetworkPrior, curve: InfluenceCurve) -> None:
    law = model.explicit()
    assert curve.exact.all()
    seen = set()
    for entry, left, right, k in rows(curve, model):
        seen.add((entry, left, right))
        for point, b in enumerate(curve.exposed):
            truth = oracle.best_leak(law, int(b), entry, left, right)
            value = float(curve.leak[k, point])
            if truth == np.inf:
                assert value == np.inf
            else:
                assert truth - 1e-12 <= value <= truth + ROUNDING
    for entry, states in enumerate(model.states):
        for x in range(len(states)):
            for y in range(len(states)):
                possible = min(oracle.probability(law, entry, (v,)) for v in (x, y)) > 0
                assert x == y or possible == ((entry, (x,), (y,)) in seen)


@pytest.mark.nightly
@settings(max_examples=50)
@given(model=networks())
def test_network_curve_is_what_all_splits_give(model: BayesianNetwork) -> None:
    try:
        curve = network_curve(model, largest=len(model.entries))
    except InvalidPrior:  # every entry has one possible value
        law = model.explicit()
        assert all(
            sum(oracle.probability(law, e, (v,)) > 0 for v in range(len(s))) == 1
            for e, s in enumerate(model.states)
        )
        return
    check_exact(model, curve)


@pytest.mark.costly
@settings(max_examples=20)
@given(model=fields())
def test_field_curve_is_what_all_splits_give(model: MarkovRandomField) -> None:
    check_exact(model, network_curve(model, largest=len(model.entries)))


@pytest.mark.nightly
@settings(max_examples=10)
@given(model=fields(zeros=True))
def test_field_curve_with_zeros_is_what_all_splits_give(model: MarkovRandomField) -> None:
    try:
        curve = network_curve(model, largest=len(model.entries))
    except InvalidPrior:  # every entry has one possible value
        law = model.explicit()
        assert all(
            sum(oracle.probability(law, e, (v,)) > 0 for v in range(len(s))) == 1
            for e, s in enumerate(model.states)
        )
        return
    check_exact(model, curve)


@pytest.mark.nightly
@settings(max_examples=10)
@given(model=networks(zeros=False))
def test_shared_entries_of_the_boundary_can_be_taken_case_by_case(model: BayesianNetwork) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("takifugu.influence.network.elimination.MAX_FLAT_CELLS", 0)
        check_exact(model, network_curve(model, largest=len(model.entries)))


@pytest.mark.nightly
@settings(max_examples=10)
@given(model=networks())
def test_cases_that_cannot_happen_are_left_out(model: BayesianNetwork) -> None:
    try:
        whole = network_curve(model, largest=len(model.entries))
    except InvalidPrior:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("takifugu.influence.network.elimination.MAX_FLAT_CELLS", 0)
        cases = network_curve(model, largest=len(model.entries))
    assert cases.exact.all()
    check_exact(model, cases)
    np.testing.assert_allclose(cases.leak, whole.leak, atol=ROUNDING, rtol=0)


def dense(seed: int) -> BayesianNetwork:
    """Six nodes of three values, each with up to three parents before it."""
    rng = np.random.default_rng(seed)
    names = tuple(f"v{k}" for k in range(6))
    parents = tuple(names[max(0, k - 3) : k] for k in range(6))
    tables = tuple(rng.dirichlet([0.3] * 3, size=(3,) * len(above)) for above in parents)
    return BayesianNetwork(names, ((0, 1, 2),) * 6, parents, tables)


def test_a_dense_network_is_exact() -> None:
    model = dense(7)
    curve = network_curve(model, Secrets(entries=("v1", "v4")), largest=3)
    law = model.explicit()
    assert curve.exact.all()
    for entry, left, right, k in rows(curve, model):
        for point, b in enumerate(curve.exposed[:2]):
            truth = oracle.best_leak(law, int(b), entry, left, right)
            assert truth - 1e-12 <= curve.leak[k, point] <= truth + ROUNDING


@pytest.mark.parametrize("limit", ["MAX_SUMMED_STATES", "MAX_BOUNDARY_STATES"])
def test_sets_out_of_reach_leave_upper_bounds_that_are_not_exact(
    limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = dense(7)
    monkeypatch.setattr("takifugu.influence.network.elimination.MAX_FLAT_CELLS", 0)
    whole = network_curve(model, Secrets(entries=("v1",)), largest=4)
    monkeypatch.setattr(f"takifugu.influence.network.elimination.{limit}", 9)
    short = network_curve(model, Secrets(entries=("v1",)), largest=4)
    assert np.all(short.leak >= whole.leak - ROUNDING)
    assert not short.exact[:, 1:4].all() and whole.exact.all()
    assert np.all((np.abs(short.leak - whole.leak) <= ROUNDING) | ~short.exact)


@pytest.mark.costly
@settings(max_examples=30)
@given(model=networks(zeros=False))
def test_nearest_entries_are_never_better_than_the_exact_curve(model: BayesianNetwork) -> None:
    exact = network_curve(model, largest=4)
    nearest = nearest_curve(model, largest=4)
    assert nearest.pairs == exact.pairs
    assert np.all(nearest.leak >= exact.leak - ROUNDING)
    assert np.all(np.diff(nearest.leak, axis=1) <= 0)
    assert np.all(np.diff(exact.leak, axis=1) <= 0)
    law = model.explicit()
    for entry, left, right, k in rows(nearest, model):
        for point in range(len(nearest.exposed)):
            shown = nearest.splits.describe(k, point)["exposed"]  # type: ignore[union-attr]
            exposed = [model.entries.index(name) for name in shown]
            truth = oracle.leak(law, exposed, entry, left, right)
            assert truth - 1e-12 <= nearest.leak[k, point] <= truth + ROUNDING


@settings(max_examples=30)
@given(model=networks(zeros=False))
def test_a_search_that_is_stopped_gives_upper_bounds_and_says_so(model: BayesianNetwork) -> None:
    whole = network_curve(model, largest=3)
    stopped = network_curve(model, largest=3, evaluations=1)
    assert np.all(stopped.leak >= whole.leak - ROUNDING)
    assert np.all((np.abs(stopped.leak - whole.leak) <= ROUNDING) | ~stopped.exact)
    heard: list[Progress] = []
    quiet = network_curve(model, largest=3, progress=lambda p: bool(heard.append(p)))  # type: ignore[func-returns-value]
    apart = not any(model.parents)  # then nothing is searched: each entry stands alone
    assert apart or (heard and not quiet.exact.all())
    assert np.all(quiet.leak >= whole.leak - ROUNDING)


def test_no_larger_sets_are_tried_than_were_asked_for() -> None:
    sizes: set[int] = set()
    network_curve(dense(3), largest=2, progress=lambda p: sizes.add(p.b))
    assert sizes == {1, 2}
    sizes.clear()
    step = np.array([[0.8, 0.2], [0.3, 0.7]])
    two = BayesianNetwork(("a", "b"), ((0, 1),) * 2, ((), ("a",)), (np.array([0.5, 0.5]), step))
    network_curve(two, largest=4, progress=lambda p: sizes.add(p.b))
    assert sizes == {1}  # with both exposed nothing is left to leak


def test_up_to_five_entries_are_exposed_unless_told() -> None:
    names = tuple("abcdefg")
    apart = BayesianNetwork(names, ((0, 1),) * 7, ((),) * 7, (np.array([0.5, 0.5]),) * 7)
    for found in (network_curve(apart), nearest_curve(apart)):
        assert found.exposed.tolist() == [1, 2, 3, 4, 5, 7]


@settings(max_examples=20)
@given(model=networks(zeros=False))
def test_groups_of_values_can_be_secret(model: BayesianNetwork) -> None:
    name = model.entries[0]
    states = model.states[0]
    secrets = Secrets(entries=(name,), pairs=(((states[0],), states[1:]),))
    curve = network_curve(model, secrets, largest=3)
    law = model.explicit()
    rest = tuple(range(1, len(states)))
    for k, (left, right) in enumerate([((0,), rest), (rest, (0,))]):
        for point, b in enumerate(curve.exposed):
            truth = oracle.best_leak(law, int(b), 0, left, right)
            assert curve.leak[k, point] == pytest.approx(truth, abs=ROUNDING)


def test_a_chain_of_two_leaks_its_log_ratio() -> None:
    model = network(
        ("a", "b"), ((0, 1), (0, 1)), ((), ("a",)), [0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]]
    )
    curve = network_curve(model)
    assert curve.leak[0, 0] == pytest.approx(np.log(4.5)) and curve.leak[0, 1] == 0.0
    assert curve.leak[0, 0] >= np.log(0.9 / 0.2) - 1e-15


def test_bad_options_are_refused() -> None:
    model = network(("a",), ((0, 1),), ((),), [0.5, 0.5])
    with raises(UnsoundRequest, field="largest"):
        network_curve(model, largest=0)
    with raises(InvalidPrior, field="secrets"):
        network_curve(model, Secrets(entries=("zz",)))
    sure = network(("a",), ((0, 1),), ((),), [1.0, 0.0])
    with raises(InvalidPrior, field="secrets"):
        network_curve(sure)


@pytest.mark.nightly
def test_asia_is_exact_and_falls_to_nothing() -> None:
    model = read_bif(example("asia"))
    curve = network_curve(model, largest=4)
    law = model.explicit()
    assert curve.exact[:, :4].all()
    for entry, left, right, k in rows(curve, model):
        if entry in (0, 5):
            for point, b in enumerate(curve.exposed[:4]):
                truth = oracle.best_leak(law, int(b), entry, left, right)
                value = curve.leak[k, point]
                assert value == truth or abs(value - truth) <= ROUNDING
    assert all(a >= b for a, b in pairwise(curve.pooled()))
    assert curve.pooled()[-1] == 0


def test_alarm_leaks_everything_at_one_entry_because_of_its_zeros() -> None:
    curve = network_curve(read_bif(example("alarm")), largest=2)
    assert curve.exact.all()
    first, second = curve.pooled()[:2]
    assert first == np.inf
    assert second == pytest.approx(17.8653704560, abs=1e-8)
    infinite = {
        pair.split("=")[0]
        for pair, a in zip(curve.pairs, curve.leak[:, 0], strict=True)
        if a == np.inf
    }
    assert infinite == {"FIO2", "VENTALV", "PVSAT"}
