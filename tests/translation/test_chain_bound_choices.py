"""Which of several bounds of a chain is taken, what is asked for each, and what it is asked."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from takifugu.numeric import Floats, Integers
from takifugu.priors.markov import MarkovChain
from takifugu.priors.secrets import Secrets
from takifugu.translation.bounds import Binding, Bound
from takifugu.translation.chain import chain_transport as parts
from takifugu.translation.chain.chain_losses import chain_losses
from takifugu.translation.chain.chain_transport import ChainTransport
from takifugu.translation.chain.cost_levels import CostLevels
from takifugu.translation.chain.entry_laws import law_slack, row_slack
from takifugu.translation.chain.group_step import PairLosses
from takifugu.translation.chain.solved_chains import SolvedLoss
from takifugu.translation.chain.transport_steps import off_diagonal

pytestmark = pytest.mark.nightly

ONE = np.array([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3], [0.25, 0.2, 0.55]])
LAW = np.array([0.2, 0.5, 0.3])
NAMES = ("a", "b", "c")
GROUPS = ((("a",), ("b", "c")), (("b", "c"), ("a",)))
COST = off_diagonal(3, 0.5)


def still(length: int | None = 9, **options: Any) -> ChainTransport:
    return ChainTransport(MarkovChain(ONE, states=NAMES, length=length), Secrets(**options))


def begun(length: int = 9, **options: Any) -> ChainTransport:
    chain = MarkovChain(ONE, states=NAMES, start=LAW, length=length)
    return ChainTransport(chain, Secrets(**options))


def answers(one: ChainTransport, patch: pytest.MonkeyPatch, **given: Any) -> list[str]:
    """Let methods give these answers; returns the list of those that are asked."""
    asked: list[str] = []

    def method(name: str, value: Any) -> Callable[..., Any]:
        def answer(*_: Any, **__: Any) -> Any:
            asked.append(name)
            return value

        return answer

    for name, value in given.items():
        patch.setattr(one, name, method(name, value))
    return asked


def test_an_unbounded_chain_takes_the_lower_of_two_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    one, star, other = still(None), Bound(1.0), Bound(2.0)
    for solved, close, found, expected, count in (
        (Bound(1.0, solved=True), False, other, 1.0, 1),
        (star, True, Bound(0.5), 1.0, 2),
        (star, False, other, 1.0, 4),
        (star, False, Bound(0.5), 0.5, 4),
        (None, True, other, 2.0, 3),
    ):
        asked = answers(
            one, monkeypatch,
            _solved=solved, _close=close, _unbounded=None, _unbounded_bound=found,
        )  # fmt: skip
        assert one.everywhere(COST).value == expected
        assert len(asked) == count


def test_a_chain_that_is_walked_is_capped_by_other_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    walked = Bound(1.0, Binding("a", "b", entry=1), np.array([0.5, 1.0, 0.25] * 3), COST)
    seen: list[bool] = []

    def by_one(charged: Any, *, alike: bool = False) -> Bound:
        assert len(charged) == 9 and (charged.cost(8) == COST).all()
        seen.append(alike)
        return walked

    for one, alike in ((still(), True), (begun(), False)):
        for solved, value, largest in (
            (None, 1.0, 1.0),
            (Bound(1.5), 1.0, 1.0),
            (Bound(0.75), 0.75, 0.75),
        ):
            asked = answers(
                one, monkeypatch, _solved=solved, _unbounded=None, _unbounded_bound=None
            )
            monkeypatch.setattr(one, "_one_by_one", by_one)
            found = one.everywhere(COST)
            assert found.value == value and found.by_entry is not None
            assert found.by_entry.max() == largest and found.by_entry.min() == 0.25
            assert found.binding == walked.binding and found.by_values is COST
            assert seen.pop() is alike and asked == ["_solved"]
    # too long for blocks: as an unbounded chain, in blocks
    monkeypatch.setattr(parts, "LONGEST", 8)
    for one, value in ((still(), 0.6), (begun(), 1.0)):
        asked = answers(
            one, monkeypatch, _solved=Bound(0.8), _unbounded=None, _unbounded_bound=Bound(0.6)
        )
        monkeypatch.setattr(one, "_one_by_one", by_one)
        found = one.everywhere(COST)
        assert found.value == (value if one._stationary else 0.8)
        assert ("_unbounded" in asked) == one._stationary
    monkeypatch.setattr(parts, "LONGEST", 9)
    asked = answers(
        one := still(), monkeypatch, _solved=None, _unbounded=None, _unbounded_bound=None
    )
    monkeypatch.setattr(one, "_one_by_one", by_one)
    assert one.everywhere(COST) is walked and asked == ["_solved"]


@dataclass
class Solver:
    """Solves whatever it is asked, and writes it down."""

    value: float
    asked: list[tuple[Any, ...]] = field(default_factory=list)

    def finite(self, cost: Floats, length: int, entries: Integers | None) -> SolvedLoss:
        """The last pair, at entry 3."""
        assert cost.shape == (3, 3)
        self.asked.append((length, None if entries is None else entries.tolist()))
        return SolvedLoss(self.value, (2, 1), 3, np.full(length, self.value))

    def unbounded(self, cost: Floats) -> SolvedLoss:
        """The last pair, at any entry."""
        self.asked.append(("unbounded", float(cost.max())))
        return SolvedLoss(self.value, (2, 1))

    def product(self, cost: Floats, pair: tuple[int, int]) -> float:
        """What a product leaks."""
        self.asked.append((float(cost.max()), pair))
        return self.value

    def estimate(
        self, cost: Floats, pair: tuple[int, int], entry: int | None, length: int | None
    ) -> float:
        """About the loss."""
        self.asked.append((float(cost.max()), pair, entry, length))
        return self.value


def test_what_a_star_solves_is_a_bound_of_secret_pairs() -> None:
    for one, asked, entry in (
        (still(), (9, None), 3),
        (still(entries=(1, 3)), (9, [1, 3]), 3),
        (still(None), ("unbounded", 0.5), None),
    ):
        one.__dict__["_solver"] = solver = Solver(0.7)
        found = one._solved(COST)
        assert found is not None and found.value == 0.7 and found.solved
        assert found.binding == Binding("c", "b", entry=entry) and solver.asked == [asked]
        assert found.by_values is not None
        assert (found.by_values == np.where(np.eye(3) > 0, -np.inf, 0.7)).all()
        assert (found.by_entry is None) == (entry is None)
        path = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0))) * [[1, 2, 3]]
        loose = one._solved(path)
        assert loose is not None and not loose.solved  # no star: not attained
        one.__dict__["_solver"] = Solver(np.inf)
        assert one._solved(COST) is None
    one.__dict__["_solver"] = None
    assert one._solved(COST) is None


def test_a_star_will_do_if_a_product_leaks_nearly_as_much() -> None:
    one = still(None)
    bound = Bound(1.0, Binding("c", "a"))
    for leak, close in ((1.0, True), (0.991, True), (0.989, False), (0.5, False)):
        one.__dict__["_solver"] = solver = Solver(leak)
        assert one._close(COST, bound) is close and solver.asked == [(0.5, (2, 0))]
    assert one._close(COST, Bound(0.0)) is False
    one.__dict__["_solver"] = None
    assert one._close(COST, bound) is False


def test_estimates_are_for_the_pair_and_the_entry_that_bind() -> None:
    for one, entry, length in ((still(), 4, 9), (still(None), None, None)):
        one.__dict__["_solver"] = solver = Solver(0.3)
        estimate = one._nearby(Bound(1.0, Binding("b", "c", entry=4)))
        assert estimate is not None and estimate(COST) == 0.3
        assert solver.asked == [(0.5, (1, 2), entry, length)]
        assert one._nearby(Bound(1.0)) is None
        assert one._nearby(Bound(1.0, Binding("b", "nobody", entry=4))) is None
        somewhere = one._nearby(Bound(1.0, Binding("b", "c")))
        assert (somewhere is None) == (entry is not None)
        one.__dict__["_solver"] = None
        assert one._nearby(Bound(1.0, Binding("b", "c", entry=4))) is None


def test_which_chains_are_solved() -> None:
    assert still()._solver is not None and still(None)._solver is not None
    assert begun()._solver is None and still(pairs=GROUPS)._solver is None
    solver = still(pairs=((("a",), ("c",)),))._solver
    assert solver is not None and solver.pairs.tolist() == [[0, 2], [2, 0]]
    assert solver.slacks == (row_slack(3), law_slack(3))
    one = still()
    rows, law, back = one._stationary_rows
    one.__dict__["_stationary_rows"] = rows, law, np.where(np.eye(3) > 0, 0.0, back)
    assert one._solver is None  # a probability vanished


def test_entries_are_solved_with_all_that_is_around_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entry i has i entries behind it and the rest ahead, and a pair costs what it costs there."""
    epsilon = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.4, 0.3, 0.2, 0.1])
    for one in (still(), begun()):
        flags = []

        def refined(
            bounds: Floats, at: Callable[[int], Any], *, work: float, every: bool
        ) -> tuple[Floats, int, tuple[int, int]]:
            assert work == 6 * 9
            flags.append(every)  # noqa: B023 - used within the loop
            for i in range(9):
                ahead, behind, own, pairs = at(i)
                assert (0 if ahead is None else len(ahead.row_at)) == 8 - i
                assert (0 if behind is None else len(behind.row_at)) == i
                assert len(pairs) == 6 and own == pytest.approx([epsilon[i]] * 6)
                if ahead is not None:
                    heights = np.log(ahead.high / ahead.low).max(axis=1)[ahead.cost_at]
                    assert heights == pytest.approx(epsilon[i + 1 :])
                if behind is not None:
                    heights = np.log(behind.high / behind.low).max(axis=1)[behind.cost_at]
                    assert heights == pytest.approx(epsilon[:i][::-1])
            lower = bounds.copy()
            lower[5] = 0.01
            return lower, 5, (2, 0)

        monkeypatch.setattr(parts, "refined", refined)
        found = one.profile(epsilon)
        assert found.by_entry is not None and found.by_entry[5] == 0.01
        assert found.binding == Binding("c", "a", entry=5)
        assert found.by_values is not None and found.by_values.max() == 0.01
        assert one.consistent(epsilon)[5] == 0.01
        assert flags == [False, True]


def test_an_entry_that_was_not_solved_keeps_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    one = still()
    plain: list[Floats] = []

    def refined(bounds: Floats, *_: Any, **__: Any) -> tuple[Floats, int, None]:
        plain.append(bounds)
        return bounds, 7, None

    monkeypatch.setattr(parts, "refined", refined)
    found = one.profile(np.array([0.1, 0.9, 0.3, 0.4, 0.5, 0.4, 0.3, 0.2, 0.1]))
    assert found.by_entry is not None and (found.by_entry == plain[0]).all()
    assert found.binding is not None and found.binding.entry == 7
    assert found.by_values is not None and found.by_values.max() == pytest.approx(plain[0][7])


def test_nothing_is_charged_after_the_profile_of_an_unbounded_chain() -> None:
    """As a long chain with zeros: its entries one by one, and one number for all later ones."""
    epsilon = np.array([0.3, 0.8, 0.5])
    found = still(None).profile(epsilon)
    long = still(60).profile(np.append(epsilon, np.zeros(57)))
    assert found.by_entry is not None and long.by_entry is not None and len(found.by_entry) == 4
    assert found.by_entry[:3] == pytest.approx(long.by_entry[:3], rel=1e-6)
    assert long.by_entry[3:].max() * (1 - 1e-9) <= found.by_entry[3]
    assert found.by_entry[3] <= long.by_entry[3:].max() * 1.5
    assert found.value == found.by_entry.max()
    # secrets that are further away than was walked, alone
    far = still(None, entries=(40,)).profile(epsilon)
    assert far.by_entry is not None and far.by_entry[:3].tolist() == [0.0] * 3
    truth = float(long.by_entry[40])
    assert truth * (1 - 1e-9) <= far.value <= found.by_entry[3] + 1e-12
    assert far.binding is not None and far.binding.entry == 40
    near = still(None, entries=(1,)).profile(epsilon)
    assert near.by_entry is not None and near.by_entry[3] == 0.0
    assert near.binding is not None and near.binding.entry == 1


def test_rising_losses_of_a_walked_chain_are_its_own() -> None:
    one, grid = still(5), [0.2, 0.6]
    found = list(one.rising(grid))
    assert found == [(one.uniform(epsilon).value, False) for epsilon in grid]
    assert found[0][0] < still(None).uniform(0.2).value  # fewer entries
    endless = list(still(None).rising(grid))
    assert [solved for _, solved in endless] == [True, True]
    for (loss, _), epsilon in zip(endless, grid, strict=True):
        assert loss == pytest.approx(still(None).uniform(epsilon).value, rel=1e-5)
    grouped = list(still(None, pairs=GROUPS).rising(grid))
    assert [solved for _, solved in grouped] == [False, False]
    assert 0.2 <= grouped[0][0] < grouped[1][0] < np.inf


def test_where_stars_find_nothing_the_recursion_is_searched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = iter([0.0, 0.25, 0.75])
    monkeypatch.setattr(parts, "largest_within", lambda *_, **__: next(found))
    assert still(None).largest(1.0) == 0.25
    assert still(None).largest(1.0) == 0.75


def test_blocks_and_groups_lower_the_bound_of_an_unbounded_chain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def settle(rows: Floats, cost: Floats, table: Floats, *, slack: float) -> Floats:
        assert (cost == COST).all() and rows.shape == (3, 3)
        slacks.append(slack)
        return table / 2

    slacks: list[float] = []
    monkeypatch.setattr(parts, "settle", settle)
    one = still(None)
    losses = one._unbounded(COST)
    found = one._unbounded_bound(losses)
    half = COST + (losses.forward.upper + losses.backward.upper) / 2
    assert found.value == pytest.approx(half.max()) and slacks == [
        row_slack(3),
        law_slack(3),
    ]
    assert found.by_entry is None and found.binding is not None and found.binding.entry is None
    monkeypatch.setattr(ChainTransport, "_blocks", 1)
    assert one._unbounded_bound(losses).value == pytest.approx(losses.upper.max())
    assert len(slacks) == 2
    monkeypatch.setattr(ChainTransport, "_blocks", 4)
    nothing = one._unbounded(0.0 * COST)
    assert one._unbounded_bound(nothing).value < 1e-14 and len(slacks) == 2
    grouped = still(None, pairs=GROUPS)
    for value, expected in ((0.1, 0.1), (9.0, None)):
        lower = PairLosses(value, 1, COST)
        monkeypatch.setattr(parts, "unbounded_groups", lambda *_, given=lower, **__: given)
        bound = grouped._unbounded_bound(losses)
        assert (bound.value == expected) if expected else bound.value < 9.0
        assert bound.value == 0.1 or bound.by_values is not COST


def test_tables_join_what_is_ahead_and_behind() -> None:
    one = still(4)
    losses = chain_losses(
        ONE, CostLevels.of_losses(np.array([0.1, 0.4, 0.3, 0.2]), off_diagonal(3)), start=None
    )
    ahead, behind = one._in_blocks(losses)
    assert len(ahead) == len(behind) == 4
    assert (ahead[3] == 0).all() and (behind[0] == 0).all() and behind[3].max() > 0
    tables = one._joined(losses, ahead, behind)
    for i, epsilon in enumerate((0.1, 0.4, 0.3, 0.2)):
        together = off_diagonal(3, epsilon) + ahead[i] + behind[i]
        assert (tables[i] <= losses.at(i)).all() and (tables[i] <= together * (1 + 1e-12)).all()
        assert tables[i] == pytest.approx(np.minimum(losses.at(i), together))
