"""Which family's curve a prior gets, cut where asked; and explicit curves, every field."""

import math

import numpy as np
import pytest

from takifugu.errors import InvalidWorld, TooLarge, UnsoundRequest
from takifugu.finite.world import World
from takifugu.influence import explicit_curves, families
from takifugu.influence.curve import InfluenceCurve
from takifugu.influence.explicit_curves import Uncertainty, explicit_curve
from takifugu.influence.gaussian_curves import gaussian_curve, split_leak
from takifugu.priors import EntryIs, Explicit, MarkovChain, Product, SecretPair, Tables
from takifugu.priors.truncated_gaussian import TruncatedGaussian
from tests.raising import raises

pytestmark = pytest.mark.nightly

STEP = np.array([[0.8, 0.2], [0.3, 0.7]])


class _Told:
    def describe(self, pair: int, point: int) -> dict[str, int]:
        return {"pair": pair, "point": point}


def curve(splits: bool) -> InfluenceCurve:
    return InfluenceCurve(
        np.array([1, 2, 4, 6]),
        np.array([[4.0, 3.0, 2.0, 0.0], [3.5, 2.5, 1.5, 0.0]]),
        6,
        ("p", "q"),
        np.array([[True, False, True, True], [False, False, True, True]]),
        _Told() if splits else None,
    )


@pytest.mark.parametrize(
    ("most", "kept"), [(1, [0, 3]), (2, [0, 1, 3]), (3, [0, 1, 3]), (4, [0, 1, 2, 3])]
)
def test_a_cut_keeps_the_points_up_to_a_size_and_the_last(most: int, kept: list[int]) -> None:
    whole = curve(True)
    found = families._cut(whole, most)
    assert found.exposed.tolist() == whole.exposed[kept].tolist()
    assert found.leak.tolist() == whole.leak[:, kept].tolist()
    assert found.exact.tolist() == whole.exact[:, kept].tolist()
    assert found.pairs == whole.pairs and found.entries == 6
    assert found.splits is not None
    for place, point in enumerate(kept):
        assert found.splits.describe(1, place) == {"pair": 1, "point": point}
    bare = families._cut(curve(False), most)
    assert bare.splits is not None and bare.splits.describe(0, 0) == {}


def test_a_cut_of_nothing() -> None:
    whole = curve(True)
    assert families._cut(whole, None) is whole
    with raises(UnsoundRequest, field="max_exposed", given=0, needed=1):
        families._cut(whole, 0)


def test_which_priors_have_a_curve() -> None:
    chain = MarkovChain(STEP, length=4)
    unknown = MarkovChain(STEP, start="unknown", length=4)
    assert families.has_curve(chain) and not families.has_curve(unknown)
    assert families.has_curve(Product({"a": chain, "b": chain}))
    assert not families.has_curve(Product({"a": chain, "b": unknown}))


def test_the_best_split_of_a_written_out_prior_in_full() -> None:
    tables = Tables.bits(3)
    weight = np.array([0.3, 0.05, 0.1, 0.05, 0.02, 0.08, 0.1, 0.3])
    pair = SecretPair(EntryIs(0, (0,)), EntryIs(0, (1,)))
    world = World(tables, (Explicit(tables, weight),), (pair,))
    law = weight.reshape(2, 2, 2)
    p, q = law[0] / law[0].sum(), law[1] / law[1].sum()
    leaks = {
        (0,): math.log((p / q).max()),
        (0, 1): math.log((p.sum(axis=0) / q.sum(axis=0)).max()),
        (0, 2): math.log((p.sum(axis=1) / q.sum(axis=1)).max()),
    }
    second = min(((0, 1), (0, 2)), key=lambda exposed: leaks[exposed])
    found = explicit_curve(world)
    assert found.exposed.tolist() == [1, 2, 3] and found.entries == 3
    assert found.leak[0] == pytest.approx([leaks[(0,)], leaks[second], 0.0], abs=1e-12)
    assert found.leak[0, 2] == 0.0 and found.exact.all() and found.pairs == (str(pair),)
    shown = [point.split["exposed"] for point in found.points()]
    assert [sorted(one) for one in shown] == [[0], sorted(second), [0, 1, 2]]
    unsure = explicit_curve(world, uncertainty=Uncertainty.relative(0.5))
    assert not unsure.exact.any()
    assert unsure.leak[0, 0] == pytest.approx(leaks[(0,)] + math.log(3))
    both = explicit_curve(world, symmetric=True)
    assert both.leak[0, 0] == pytest.approx(math.log(max((p / q).max(), (q / p).max())))


def test_how_sure_and_how_many(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = Uncertainty.relative(0.0)
    assert exact.lower(np.array([0.5])).tolist() == [0.5] == exact.upper(np.array([0.5])).tolist()
    for bad in (-0.1, 1.0):
        with raises(InvalidWorld, field="uncertainty"):
            Uncertainty.relative(bad)
    tables = Tables.bits(3)
    pair = SecretPair(EntryIs(0, (0,)), EntryIs(0, (1,)))
    world = World(tables, (Explicit.uniform(tables),), (pair,))
    monkeypatch.setattr(explicit_curves, "MOST_ENTRIES", 3)
    assert not explicit_curve(world).leak.round(9).any()
    monkeypatch.setattr(explicit_curves, "MOST_ENTRIES", 2)
    with raises(TooLarge, field="world", size=3, limit=2):
        explicit_curve(world)


def test_a_gaussian_curve_is_the_least_leak_of_its_sets() -> None:
    prior = TruncatedGaussian.process(4, length=1, bound=3, width=0.2)
    for law in ("truncated", "printed"):
        found = gaussian_curve(prior, law=law)
        assert found.exposed.tolist() == [1, 2, 3, 4] and found.entries == 4
        assert found.pairs == tuple(f"x{i}: any two regions" for i in range(4))
        assert found.exact.tolist() == (found.leak == 0).tolist() and not found.leak[:, 3].any()
        assert found.splits is not None
        for i in range(4):
            assert (np.diff(found.leak[i]) <= 0).all()
            for point in range(4):
                exposed = found.splits.describe(i, point)["exposed"]
                leak = split_leak(prior, i, exposed, law=law)
                assert i in exposed and len(exposed) <= point + 1
                assert found.leak[i, point] == leak
