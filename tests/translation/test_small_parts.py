"""Small parts of translations, called directly: what the larger results hardly show."""

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from takifugu.costs import ANY, Cost, Membership
from takifugu.numeric import Floats
from takifugu.priors import HigherOrderChain, IndependentEntries, MarkovChain, Secrets
from takifugu.priors.random_field import MarkovRandomField
from takifugu.priors.secrets import EntryIs, OneOf, SecretPair
from takifugu.translation.bounds import Binding, Bound, of_pair
from takifugu.translation.chain import group_bounds, group_window, start_hull, unknown_start
from takifugu.translation.chain.binary_transport import BinaryTransport
from takifugu.translation.chain.chain_witness import Neighbourhood, best_product
from takifugu.translation.chain.coalescing import StarSide, WorstPair
from takifugu.translation.chain.higher_order_transport import HigherOrderTransport
from takifugu.translation.chain.known_entries import KnownSide
from takifugu.translation.chain.solved_chains import RisingLosses
from takifugu.translation.chain.stars import star_of
from takifugu.translation.chain.start_hull import StartHull
from takifugu.translation.entry_costs import EntryCosts
from takifugu.translation.gaussian.linear_queries import LinearQuery
from takifugu.translation.independent_transport import IndependentTransport
from takifugu.translation.network.pinning import pairwise_field
from takifugu.translation.prior_advice import PriorAdvice
from takifugu.translation.remedies import _allowed, _Change
from takifugu.translation.translation import Translation

pytestmark = pytest.mark.nightly

SECOND_ORDER = np.array([[[0.9, 0.1], [0.4, 0.6]], [[0.6, 0.4], [0.1, 0.9]]])


@pytest.mark.parametrize(("length", "middle"), [(10, 5), (7, 3)])
def test_a_witness_of_no_known_entry_is_about_the_middle_one(length: int, middle: int) -> None:
    transport = HigherOrderTransport(HigherOrderChain(SECOND_ORDER, length=length), Secrets())
    found = transport.witness(0.1, Bound(1.0))
    assert found.binding is not None and found.binding.entry == middle
    assert found.entries == tuple(range(length))


@pytest.mark.parametrize("entries", [(0,), (2,), (3,), (4,), (9,), (1, 9)])
def test_a_binary_profile_goes_one_entry_on_and_as_far_as_secrets(entries: tuple[int, ...]) -> None:
    table, spent = np.array([[0.8, 0.2], [0.3, 0.7]]), [0.1, 0.2, 0.3]
    secrets = Secrets(entries=entries)
    found = BinaryTransport(MarkovChain(table), secrets).profile(np.array(spent))
    padded = np.array(spent + [0.0] * 7)
    finite = BinaryTransport(MarkovChain(table, length=10), secrets).profile(padded)
    assert found.binding is not None and found.binding.entry == entries[0]
    assert found.value == pytest.approx(finite.value, rel=1e-9) and found.value > 0
    assert found.by_entry is not None and finite.by_entry is not None
    assert len(found.by_entry) == len(spent) + 1
    assert found.by_entry[-1] == pytest.approx(finite.by_entry[len(spent) :].max(), rel=1e-9)


class _Chain:
    """A chain of three pairs of which the first is the only one that counts."""

    pairs = np.array([[0, 1], [0, 2], [1, 2]])

    def __init__(self, loss: float | None) -> None:
        self.loss, self.asked = loss, list[list[int]]()

    def sides(self, *_: object) -> tuple["_Chain", "_Chain"] | None:
        return None if self.loss is None else (self, self)

    def glance(self, pairs: Any) -> Floats:
        return np.zeros(len(pairs))

    def worst(self, _: Floats, *, among: Any, **__: object) -> WorstPair | None:
        self.asked.append(among.tolist())
        if self.loss is None:
            return None
        return WorstPair(self.loss, 0, (0.0, 0.0), np.array([0]), min(self.loss, 0.5))


def test_nothing_proven_is_an_infinite_loss() -> None:
    chain: Any = _Chain(None)
    assert RisingLosses(chain, np.ones((3, 3)) - np.eye(3)).at(1.0) == np.inf


@pytest.mark.parametrize(
    ("loss", "asked"), [(2.0, [[0, 1, 2], [0], [0]]), (np.inf, [[0, 1, 2]] * 3)]
)
def test_pairs_are_out_of_the_question_only_by_a_proven_loss(
    loss: float, asked: list[list[int]]
) -> None:
    chain: Any = _Chain(loss)
    assert RisingLosses(chain, np.ones((3, 3)) - np.eye(3)).at(1.0) == loss
    assert chain.asked == asked


def test_what_holds_for_ever_is_at_least_what_holds_now() -> None:
    kernel = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4]])
    hull = StartHull.whole(3)
    for _ in range(40):
        hull = hull.after(kernel)
    cost = 0.1 * (np.ones((3, 3)) - np.eye(3))
    assert hull.width <= 0.1
    least = unknown_start._for_ever(hull, kernel, cost, np.zeros((3, 3)), 1e-3)
    value = 3 * least
    found = unknown_start._for_ever(hull, kernel, cost, value, 1e-3)
    assert np.isfinite(found).all() and (found >= value).all()


def test_the_entry_of_the_expensive_pair_is_named() -> None:
    named = PriorAdvice(1.0, 0.1, pair=Binding("a", "b", entry=3)).words
    assert named.endswith(" in entry 3.")
    assert "in entry" not in PriorAdvice(1.0, 0.1, pair=Binding("a", "b")).words


def test_a_change_that_cannot_be_made_allows_nothing_known() -> None:
    assert _allowed(_Change("merge", "count them as one", ("a",), lambda: None), 1.0) is None


def test_fields_and_couplings_are_read_from_any_table() -> None:
    table = np.array([[2.0, 3.0], [5.0, 70.0]])
    model = MarkovRandomField(
        ("a", "b"), ((0, 1), (0, 1)), (np.array([1.0, 7.0]), np.array([11.0, 1.0])), (("a", "b"),),
        (table,),
    )  # fmt: skip
    field = pairwise_field(model)
    for low, high, true in [
        (field.low, field.high, np.log([7 * 5 / 2, 3 / 2 / 11])),
        (field.weak[:, 0], field.strong[:, 0], np.log([70 * 2 / (3 * 5)] * 2)),
    ]:
        assert (low <= true).all() and (true <= high).all()
        np.testing.assert_allclose(low, high, atol=1e-11)


def test_boxes_hold_the_exact_rows_of_all_laws_and_little_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = list[tuple[Floats, Floats]]()
    monkeypatch.setattr(start_hull, "robust_rows", lambda low, high: given.append((low, high)))
    rng = np.random.default_rng(3)
    laws, weights = rng.dirichlet(np.ones(4), 3), rng.random((4, 4))
    start_hull.hull_boxes(StartHull(laws, laws > 0, 1), weights)
    ((low, high),) = given
    for x in range(4):
        rows = []
        for law in laws:
            joint = [Fraction(p) * Fraction(w) for p, w in zip(law, weights[x], strict=True)]
            rows.append([p / sum(joint) for p in joint])
        for u, of_laws in enumerate(zip(*rows, strict=True)):
            least, most = min(of_laws), max(of_laws)
            assert Fraction(low[x, u]) <= least <= Fraction(low[x, u]) * (1 + Fraction(1, 10**14))
            assert most <= Fraction(high[x, u]) <= most * (1 + Fraction(1, 10**14))


def test_values_that_never_happen_are_no_part_of_a_secret() -> None:
    prior = IndependentEntries({"a": {"x": 0.5, "never": 0.0, "y": 0.5}})
    costs = EntryCosts.of([Cost.of({Membership(["never"]): 3, ANY: "1/4"})])
    some, alone = (
        IndependentTransport(prior, Secrets(pairs=((left, ("y",)),))).valued(costs).value
        for left in (("x", "never"), ("x",))
    )
    assert some == alone == pytest.approx(0.25)


def test_a_linear_query_may_be_without_bounds() -> None:
    assert LinearQuery([1, 2]).bounds is None
    assert LinearQuery([1, 2], bounds=(0, 1)).bounds == (Fraction(0), Fraction(1))


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0])
def test_a_glance_is_near_the_loss_also_where_that_is_small(epsilon: float) -> None:
    rows, star = (
        np.array([[0.6, 0.4], [0.3, 0.7]]),
        star_of(epsilon * (np.ones((2, 2)) - np.eye(2))),
    )
    side = StarSide.of([rows], [star], slack=0.0)
    assert side is not None
    pairs = np.array([[0, 1], [1, 0]])
    glance, proven = side.glance(pairs), side.table()[tuple(pairs.T)]
    assert (glance <= proven).all() and (glance >= 0.9 * proven).all()


@pytest.mark.parametrize("alike", [True, False])
def test_entries_far_away_are_put_together_only_where_all_steps_are_alike(
    alike: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[float]()

    def boxes(_: object, __: object, narrow: float) -> None:
        asked.append(narrow)

    monkeypatch.setattr(KnownSide, "_boxes", boxes)
    kernel = np.array([[0.6, 0.4], [0.3, 0.7]])
    kernels = [kernel] * 5 if alike else [kernel, *([kernel.copy()] * 4)]
    KnownSide.after(kernels, [0.1 * (np.ones((2, 2)) - np.eye(2))] * 6).tables()
    assert bool(asked) == alike


def test_the_window_of_a_piece_ends_where_all_entries_are_near(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pieces, ends = list[Any](), list[tuple[int, int, tuple[bool, bool]]]()
    by_pieces, window_reach = group_bounds._by_pieces, group_window.window_reach

    def kept(length: int, entries: Any, loss: Any) -> Any:
        pieces.append(loss)
        return by_pieces(length, entries, loss)

    def seen(cost: Floats, ahead: Any, behind: Any, all_: tuple[bool, bool]) -> tuple[int, int]:
        ends.append((len(ahead), len(behind), all_))
        return window_reach(cost, ahead, behind, all_)

    monkeypatch.setattr(group_bounds, "_by_pieces", kept)
    monkeypatch.setattr(group_bounds, "window_reach", seen)
    table = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4]])
    secrets = Secrets(pairs=(((0, 1), (2,)),))
    Translation(MarkovChain(table, length=40), secrets).bound(0.1, "transport")
    ends.clear()
    for after, before in [(3, 20), (16, 17), (17, 16), (20, 0)]:
        pieces[0](after, before)
    assert ends == [
        (3, 16, (True, False)),
        (16, 16, (True, False)),
        (16, 16, (False, True)),
        (16, 0, (False, True)),
    ]


@pytest.mark.parametrize("ahead", [True, False])
def test_the_search_for_a_product_goes_on_while_either_side_improves(ahead: bool) -> None:
    rows = np.array([[0.318, 0.681, 0.001], [0.982, 0.018, 0.0], [0.0, 0.0, 1.0]])
    gap, steps, nothing = 2.0, 5, np.zeros((3, 3))
    cost = gap * np.abs(np.subtract.outer(np.arange(3), np.arange(3)))
    sides: tuple[list[Floats], list[Floats]] = ([rows] * steps, [cost] * steps)
    (first, first_costs), (second, second_costs) = (sides, ([], [])) if ahead else (([], []), sides)
    around = Neighbourhood(first, second, nothing, first_costs, second_costs, 0.0)
    found = best_product(around, np.eye(3)[[0]], np.eye(3)[[1]])
    factors = [np.exp([0.0, a, a + b]) for a, b in product((-gap, gap), repeat=2)]
    given = [np.ones(3)]  # what every product of extreme factors expects, given the entry
    for _ in range(steps):
        given = [rows @ (factor * further) for factor in factors for further in given]
    assert found.leak == pytest.approx(max(np.log(e[0] / e[1]) for e in given), rel=1e-6)


def test_a_pair_names_its_entry_only_if_both_statements_are_about_one() -> None:
    one, two = EntryIs("noon", ("home", "work")), EntryIs("noon", ("hospital",))
    assert of_pair(SecretPair(one, two)) == Binding("home|work", "hospital", entry="noon")
    other = OneOf("ill", ((0, 1),))
    assert of_pair(SecretPair(other, OneOf("well", ((1, 0),)))) == Binding("ill", "well")
    assert of_pair(SecretPair(one, other)) == Binding("noon=home|work", "ill")
    assert of_pair(SecretPair(other, two)) == Binding("ill", "noon=hospital")
