"""The parts of a chain's bound: which entries, pairs and rows a search looks at."""

import numpy as np
import pytest

from takifugu.numeric import Floats
from takifugu.priors.markov import MarkovChain
from takifugu.priors.secrets import Secrets
from takifugu.translation.bounds import Binding, Bound, Witness
from takifugu.translation.chain import chain_transport as parts
from takifugu.translation.chain.chain_transport import ChainTransport, around_entry, within_reach
from takifugu.translation.chain.cost_levels import CostLevels
from takifugu.translation.chain.entry_laws import Law, law_slack, row_slack
from takifugu.translation.chain.transport_steps import off_diagonal

pytestmark = pytest.mark.nightly

ONE = np.array([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3], [0.25, 0.2, 0.55]])
TWO = np.array([[0.2, 0.2, 0.6], [0.3, 0.1, 0.6], [0.1, 0.8, 0.1]])
LAW = np.array([0.2, 0.5, 0.3])
NAMES = ("a", "b", "c")
GROUPS = ((("a",), ("b", "c")), (("b", "c"), ("a",)))


def still(length: int | None = 9, **options: object) -> ChainTransport:
    return ChainTransport(MarkovChain(ONE, states=NAMES, length=length), Secrets(**options))  # type: ignore[arg-type]


def begun(length: int = 9, **options: object) -> ChainTransport:
    chain = MarkovChain(ONE, states=NAMES, start=LAW, length=length)
    return ChainTransport(chain, Secrets(**options))  # type: ignore[arg-type]


def changing() -> ChainTransport:
    return ChainTransport(
        MarkovChain(np.stack([ONE, TWO, ONE, TWO]), states=NAMES, start=LAW), Secrets()
    )


def test_short_chains_and_those_that_begin_somewhere_are_walked() -> None:
    assert not still(None).walked
    assert still(27_777).walked and not still(27_778).walked
    assert begun(30_000).walked
    assert still(7).size == 7 and still(None).size is None


def test_the_middle_of_a_chain_or_of_its_secrets() -> None:
    assert [still(n)._middle for n in (1, 8, 9)] == [0, 4, 4]
    assert still(None)._middle == still(None)._reach == 400
    assert still(9, entries=(1, 2, 7))._middle == 2 and still(9, entries=(1, 7))._middle == 7
    reaches = {3: 400, 50: 400, 60: 277, 150: 44, 200: 32}
    for states, reach in reaches.items():
        uniform = MarkovChain(np.full((states, states), 1 / states))
        one = ChainTransport.__new__(ChainTransport)
        one._chain, one._size = uniform, states
        assert one._reach == reach


def test_an_entry_far_from_the_start_is_replaced_by_a_nearer_one() -> None:
    assert still(20_000)._near(15_000) == 15_000
    assert begun(20_000)._near(5_000) == 5_000 and begun(20_000)._near(5_001) == 5_000
    assert begun(20_000, entries=(3, 90, 5_000, 6_000))._near(6_000) == 5_000
    assert begun(20_000, entries=(3, 90, 5_001, 6_000))._near(6_000) == 90
    assert begun(20_000, entries=(5_500, 6_000))._near(6_000) == 5_500


def test_a_witness_is_searched_around_the_entry_that_binds() -> None:
    bound = Bound(1.0, Binding("a", "b", entry=3))
    anywhere = Bound(1.0, Binding("a", "b"))
    assert still()._centre(bound, 20) == 3 and still(None)._centre(bound, 20) == 3
    assert still()._centre(anywhere, 20) == 4 and still()._centre(Bound(1.0), 20) == 4
    assert still(None)._centre(anywhere, 20) == 20
    assert still(None, entries=(6,))._centre(anywhere, 20) == 6


def test_the_first_entry_with_secrets_beyond_those_that_are_listed() -> None:
    assert still(None)._further(5) == 5
    secret = still(None, entries=(2, 5, 8))
    assert [secret._further(n) for n in (2, 3, 5, 6, 8, 9)] == [2, 5, 5, 8, 8, None]


def test_the_values_of_the_pair_that_binds() -> None:
    assert still()._pair_of(Bound(1.0, Binding("a", "c"))) == (0, 2)
    assert still()._pair_of(Bound(1.0, Binding("c", "b"))) == (2, 1)
    assert still()._pair_of(Bound(1.0)) is None
    assert still()._pair_of(Bound(1.0, Binding("a", "nobody"))) is None
    grouped = still(pairs=GROUPS)
    assert grouped._pair_of(Bound(1.0, Binding("a", "b|c"))) is None
    assert grouped._pair_of(Bound(1.0, Binding("b|c", "a"))) is None


def test_laws_and_rows_back_from_an_entry() -> None:
    law, back = changing()._walk_back(2)
    laws = [LAW, LAW @ ONE, LAW @ ONE @ TWO]
    assert law.given(np.ones(3, dtype=np.bool_)) == pytest.approx(laws[2])
    assert len(back) == 2
    for rows, before, after, kernel in zip(back, laws[1::-1], laws[:0:-1], (TWO, ONE), strict=True):
        assert rows == pytest.approx((before[:, None] * kernel / after).T)
    everything = np.ones(3, dtype=np.bool_)
    assert changing()._law(1).given(everything) == pytest.approx(laws[1])
    steady = still()._chain.stationary
    assert still()._law(5).given(everything) == pytest.approx(steady)


def levels(*epsilon: float) -> CostLevels:
    return CostLevels.of_losses(np.array(epsilon), off_diagonal(3))


def tops(costs: list[Floats]) -> list[float]:
    return [float(cost.max()) for cost in costs]


def test_costs_around_an_entry_are_listed_nearest_first() -> None:
    charged = levels(1, 2, 3, 4, 5)
    after, before, own = around_entry(charged, 0, 2, 4, everywhere=False)
    assert (tops(after), tops(before), float(own.max())) == ([4, 5], [2, 1], 3)
    after, before, own = around_entry(charged, 1, 3, 6, everywhere=False)
    assert (tops(after), tops(before), float(own.max())) == ([5, 0, 0], [3, 2], 4)
    after, before, own = around_entry(charged, 4, 5, 6, everywhere=False)
    assert (tops(after), tops(before), float(own.max())) == ([0], [5], 0)
    after, before, own = around_entry(levels(1), 3, 5, 6, everywhere=True)
    assert (tops(after), tops(before), float(own.max())) == ([1], [1, 1], 1)
    after, before, _ = around_entry(levels(400, 1, 1, 1, 400), 0, 2, 4, everywhere=False)
    assert (tops(after), tops(before)) == ([1], [1])


def test_entries_are_used_as_far_as_floats_reach() -> None:
    def costs(*epsilon: float) -> list[Floats]:
        return [off_diagonal(2, e) for e in epsilon]

    assert within_reach([]) == 0
    assert within_reach(costs(1, 1, 1)) == 3
    assert within_reach(costs(100, 100, 100, 100)) == 3
    assert within_reach(costs(100, 100, 101, 0)) == 2
    assert within_reach(costs(500, 1)) == 1


def test_the_neighbourhood_of_an_entry() -> None:
    charged = levels(0.1, 0.2, 0.3, 0.4, 0.5)
    around, first = changing()._neighbourhood(charged, 2, 1, everywhere=False)
    assert first == 1 and tops(list(around.costs_ahead)) == [0.4]
    assert tops(list(around.costs_behind)) == [0.2] and float(around.cost.max()) == 0.3
    assert [k.tolist() for k in around.ahead] == [ONE.tolist()]
    law, back = changing()._walk_back(2)
    assert len(around.behind) == 1 and (around.behind[0] == back[0]).all()
    expected = 2 * row_slack(3) + 2 * law.slack
    assert around.slack == pytest.approx(expected, rel=1e-12, abs=0.0)
    around, first = changing()._neighbourhood(charged, 3, 9, everywhere=False)
    assert first == 0 and (len(around.ahead), len(around.behind)) == (1, 3)
    expected = 4 * row_slack(3) + 4 * changing()._walk_back(3)[0].slack
    assert around.slack == pytest.approx(expected, rel=1e-12, abs=0.0)
    rows, _, behind = still()._stationary_rows
    for one, centre, sizes, begins in ((still(), 1, (3, 1), 0), (still(None), 5, (3, 3), 2)):
        around, first = one._neighbourhood(levels(0.1), centre, 3, everywhere=True)
        assert first == begins and (len(around.ahead), len(around.behind)) == sizes
        assert all(k is one._stationary_rows[0] for k in around.ahead)
        assert around.behind[0] == pytest.approx(behind) and around.ahead[0] == pytest.approx(rows)
        expected = sum(sizes) * row_slack(3) + (1 + sizes[1]) * law_slack(3)
        assert around.slack == pytest.approx(expected, rel=1e-12, abs=0.0)


def test_pairs_with_the_largest_bounds_are_tried_first() -> None:
    one, law = still(), Law.of(LAW)
    table = np.array([[-np.inf, 3.0, 5.0], [1.0, -np.inf, 6.0], [2.0, 4.0, -np.inf]])
    order = [(1, 2), (0, 2), (2, 1), (0, 1), (2, 0), (1, 0)]
    expected = [((x,), (y,)) for x, y in order]
    assert one._worst_pairs(law, Bound(7.0, Binding("a", "b"), by_values=table)) == expected
    assert one._worst_pairs(law, Bound(6.0, None, by_values=table)) == expected
    level = np.where(np.isfinite(table), 6.0, -np.inf)
    named = Bound(6.0, Binding("c", "a"), by_values=level)
    assert (
        one._worst_pairs(law, named)[0] == ((2,), (0,)) and len(one._worst_pairs(law, named)) == 6
    )
    solved = Bound(6.0, Binding("c", "a"), by_values=level, solved=True)
    assert one._worst_pairs(law, solved) == [((2,), (0,))]
    assert (
        len(one._worst_pairs(law, Bound(6.0, Binding("x", "y"), by_values=level, solved=True))) == 6
    )
    assert sorted(one._worst_pairs(law, Bound(7.0))) == sorted(expected)
    without = Law.of(np.array([0.5, 0.5, 0.0]))
    assert sorted(one._worst_pairs(without, Bound(7.0))) == [((0,), (1,)), ((1,), (0,))]
    grouped = still(pairs=GROUPS)
    assert len(grouped._worst_pairs(without, Bound(7.0))) == 2
    only = Law.of(np.array([1.0, 0.0, 0.0]))
    assert not grouped._worst_pairs(only, Bound(7.0))


@pytest.mark.parametrize(
    ("solved", "leaks", "expected", "asked"),
    [
        (False, {400: 0.5}, 0.5, [400]),
        (True, {400: 1.0}, 1.0, [400]),
        (True, {400: 0.5, 800: 0.8, 1600: 0.9}, 0.9, [400, 800, 1600]),
        (True, {400: 0.5, 800: 0.5}, 0.5, [400, 800]),
        (True, {400: 0.5, 800: 1 - 1e-9}, 1 - 1e-9, [400, 800]),
        (True, {400: 1 - 1e-6, 800: 0.7}, 1 - 1e-6, [400, 800]),
    ],
)
def test_a_solved_bound_is_attained_by_more_entries(
    solved: bool,
    leaks: dict[int, float],
    expected: float,
    asked: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, seen = still(None), []

    def leak_at(
        centre: int, charged: CostLevels, bound: Bound, reach: int, *, everywhere: bool
    ) -> Witness:
        assert len(charged) == 1 and bound.value == 1.0
        assert centre == reach and everywhere
        seen.append(reach)
        return Witness(leaks[reach], None)

    monkeypatch.setattr(one, "_leak_at", leak_at)
    found = one._leaking(levels(0.5), Bound(1.0, solved=solved), everywhere=True)
    assert (found.leak, seen) == (expected, asked)


@pytest.mark.parametrize(
    ("entries", "asked"), [(None, [4, 0, 1, 3, 5, 7, 8]), ((0, 4, 5, 6), [4, 0, 5])]
)
def test_groups_are_tried_at_other_entries_too(
    entries: tuple[int, ...] | None, asked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, seen = still(pairs=GROUPS, entries=entries), []
    leaks = {5: 0.7, 8: 0.7}

    def leak_at(centre: int, *_: object, everywhere: bool) -> Witness:
        assert not everywhere
        seen.append(centre)
        return Witness(leaks.get(centre, 0.1), Binding("a", "b", entry=centre))

    monkeypatch.setattr(one, "_leak_at", leak_at)
    bound = Bound(1.0, Binding("a", "b|c", entry=4))
    found = one._leaking(levels(*[0.5] * 9), bound, everywhere=False)
    assert seen == asked and found.binding == Binding("a", "b", entry=5)


def test_stars_of_all_entries_unless_they_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    ahead, behind = changing()._stars(levels(0.1, 0.2, 0.3, 0.4, 0.5))
    assert ahead is not None and behind is not None
    assert np.log(ahead.high.max(axis=1) / ahead.low.min(axis=1))[ahead.cost_at] == pytest.approx(
        [0.2, 0.3, 0.4, 0.5]
    )
    assert np.log(behind.high.max(axis=1) / behind.low.min(axis=1))[
        behind.cost_at
    ] == pytest.approx([0.4, 0.3, 0.2, 0.1])
    assert [ahead.rows[k].tolist() for k in ahead.row_at] == [k.tolist() for k in (ONE, TWO) * 2]
    assert changing()._stars(levels(0.1)) == (None, None)
    monkeypatch.setattr(parts, "SIDES", 36)
    assert changing()._stars(levels(*[0.1] * 5))[0] is not None
    monkeypatch.setattr(parts, "SIDES", 35)
    assert changing()._stars(levels(*[0.1] * 5)) == (None, None)
    assert still()._stars(levels(*[0.1] * 9))[0] is not None


def test_values_are_joined_in_words() -> None:
    assert parts.joined(NAMES, (0, 2)) == "a|c" and parts.joined(NAMES, (1,)) == "b"
    assert parts._members((0, 2), 4).tolist() == [True, False, True, False]
    assert still()._named(((0,), (1, 2))) == ("a", "b|c")
