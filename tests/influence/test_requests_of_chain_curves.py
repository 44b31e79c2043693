"""What a curve of a sequence is asked for, and how rows of entries are put together."""

from typing import Any

import numpy as np
import pytest

from takifugu.errors import InvalidWorld, TooLarge, UnsoundRequest
from takifugu.influence.chain import curve_request as module
from takifugu.influence.chain.chain_walk import Walk
from takifugu.influence.chain.curve_request import CurveRequest, curve_request, entry_time
from takifugu.influence.chain.interval_curves import interval_chain_curve
from takifugu.influence.chain.splitting import EntryLeaks, PairLeaks, assemble
from takifugu.influence.curve import LEAST_EXACT, SHARE
from takifugu.priors.interval_chain import IntervalMarkovChain
from takifugu.priors.markov import MarkovChain
from takifugu.priors.secrets import Secrets
from tests.raising import raises

pytestmark = pytest.mark.nightly

STATES = ("a", "b", "c")


def request(
    length: int | None = None,
    secrets: Secrets | None = None,
    *,
    most: Any = None,
    states: tuple[str, ...] = STATES,
    symmetric: bool = False,
    by_entry: bool | None = None,
) -> CurveRequest:
    return curve_request(
        states,
        length,
        secrets or Secrets(),
        max_exposed=most,
        symmetric=symmetric,
        by_entry=by_entry,
    )


@pytest.mark.parametrize(
    ("length", "most"),
    [(None, 100), (1, 1), (2, 2), (39, 39), (40, 40), (41, 20), (42, 20), (200, 99), (201, 100)],
)
def test_how_far_a_curve_goes_by_default(length: int | None, most: int) -> None:
    assert request(length).most == most
    assert request(9999).most == 100


@pytest.mark.parametrize(("room", "most"), [(4 * 54, 3), (4 * 54 - 1, 1), (4 * 54 + 3, 3)])
def test_short_sequences_have_all_of_their_curve_if_there_is_room(
    room: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ROOM", room)
    assert request(3).most == most  # 3 · 3 · 6 numbers, for six ordered pairs
    monkeypatch.setattr(module, "ROOM", 10)
    for length, half in ((1, 1), (2, 1), (3, 1), (4, 1), (5, 2), (6, 2), (7, 3)):
        assert request(length).most == half


@pytest.mark.parametrize(
    ("length", "asked", "most"),
    [(None, 1, 1), (None, 500, 500), (7, 5, 5), (7, 7, 7), (7, 8, 7), (7, np.int64(3), 3)],
)
def test_how_far_a_curve_is_asked_to_go(length: int | None, asked: Any, most: int) -> None:
    found = request(length, most=asked).most
    assert found == most and type(found) is int


@pytest.mark.parametrize("asked", [True, False, 2.0, "3", 0, -1])
def test_what_is_no_number_of_entries_is_refused(asked: Any) -> None:
    with pytest.raises(UnsoundRequest):
        request(7, most=asked)


def test_pairs_that_need_more_room_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROOM", 15)
    assert request(most=5).most == 5  # six pairs with five entries are twice 15
    with raises(TooLarge, field="max_exposed", size=36, limit=30):
        request(most=6)


def test_values_and_groups_are_told_apart() -> None:
    pairs = ((("a",), ("b",)), (("a",), ("b", "c")), (("b", "c"), ("a",)), (("c",), ("a",)))
    found = request(8, Secrets(pairs=pairs, entries=(2, 5)), most=3, symmetric=False)
    values = (((0,), (1,)), ((2,), (0,)))
    groups = (((0,), (1, 2)), ((1, 2), (0,)))
    assert set(values) <= set(found.single)
    assert set(groups) <= set(found.grouped)
    assert all(len(a) == len(b) == 1 for a, b in found.single)
    assert all(len(a) + len(b) > 2 for a, b in found.grouped)
    assert found.left.tolist() == [a for (a,), _ in found.single]
    assert found.right.tolist() == [b for _, (b,) in found.single]
    assert found.entries == (2, 5) and found.length == 8 and found.states == STATES
    assert found.side_name((1, 2)) == "b|c"
    assert not found.symmetric and found.by_entry is None
    other = request(symmetric=True, by_entry=False)
    assert other.symmetric and other.by_entry is False and other.entries is None


@pytest.mark.parametrize(
    ("entry", "length", "taken"),
    [(0, None, True), (0, 1, True), (4, 5, True), (5, 5, False), (-1, 5, False), ("x", 5, False)],
)
def test_entries_that_a_sequence_has(entry: Any, length: int | None, taken: bool) -> None:
    if taken:
        assert entry_time(entry, length) == entry
    else:
        with pytest.raises(InvalidWorld, match="up to 4"):
            entry_time(entry, length)


def test_entries_of_an_endless_sequence_have_no_last_one() -> None:
    with pytest.raises(InvalidWorld) as caught:
        entry_time(-1, None)
    assert "up to" not in str(caught.value)


def test_a_set_of_chains_by_bounds_has_no_one_law_to_walk() -> None:
    class Bounds(MarkovChain):
        """A chain that says that it is a set of several."""

        def refuse_unless_one_law(self, what: str) -> None:
            raise UnsoundRequest(f"{what} of a set", field="chain")

    chain = Bounds(np.array([[0.75, 0.25], [0.25, 0.75]]))
    with pytest.raises(UnsoundRequest, match="an influence curve of a set"):
        Walk(chain, request(states=chain.states, most=2))  # type: ignore[arg-type]


# ---- rows of entries

TWO = ("a", "b")


def part(
    entry: str,
    leak: tuple[float, float],
    *,
    keep: tuple[bool, bool] = (True, True),
    exact: bool = True,
    error: float = 0.0,
) -> list[EntryLeaks]:
    """An entry that shows so much of each pair one step away, and half of it two steps away."""
    past = [np.array(leak), np.array(leak) / 2]
    nothing = [np.zeros(2)] * 2
    return [
        PairLeaks(
            entry,
            (None, None),
            np.array(keep),
            np.full(2, exact),
            past,
            nothing,
            np.zeros(2),
            error,
        )
    ]


def test_rows_of_entries_are_kept_apart_or_the_largest_is_taken() -> None:
    parts = [part("0", (2.0, 4.0)), part("1", (3.0, 1.0), exact=False)]
    apart = assemble(request(states=TWO, most=2, by_entry=True), parts)
    assert apart.pairs == ("0=a / 0=b", "0=b / 0=a", "1=a / 1=b", "1=b / 1=a")
    assert apart.leak == pytest.approx(np.array([[2, 1], [4, 2], [3, 1.5], [1, 0.5]]), abs=1e-13)
    assert apart.exact.tolist() == [[True] * 2] * 2 + [[False] * 2] * 2
    merged = assemble(request(states=TWO, most=2, by_entry=False), parts)
    assert merged.pairs == ("a / b", "b / a")
    assert merged.leak == pytest.approx(np.array([[3, 1.5], [4, 2]]), abs=1e-13)
    assert not merged.exact.any()
    one = assemble(request(states=TWO, most=2, by_entry=True), parts[:1])
    assert one.pairs == ("a / b", "b / a")
    assert one.exposed.tolist() == [1, 2] and one.entries is None
    said = [merged.splits.describe(k, 1) for k in (0, 1)] if merged.splits else []
    assert said == [{"entry": "1", "left": 1, "right": 0}, {"entry": "0", "left": 1, "right": 0}]


def test_one_split_may_have_to_serve_both_directions() -> None:
    found = assemble(
        request(states=TWO, most=2, symmetric=True, by_entry=False), [part("0", (2.0, 4.0))]
    )
    assert found.leak == pytest.approx(np.array([[4, 2], [4, 2]]), abs=1e-13)


def test_pairs_that_cannot_happen_at_an_entry_are_left_out_there() -> None:
    parts = [
        part("0", (9.0, 4.0), keep=(False, True)),
        part("1", (3.0, 1.0), keep=(True, False), exact=True),
    ]
    apart = assemble(request(states=TWO, most=2, by_entry=True), parts)
    assert apart.pairs == ("0=b / 0=a", "1=a / 1=b")
    merged = assemble(request(states=TWO, most=2, by_entry=False), parts)
    assert merged.leak[:, 0] == pytest.approx([3, 4], abs=1e-13)
    assert merged.exact.all()
    unsure = [part("0", (9.0, 4.0), keep=(False, True), exact=False), parts[1]]
    merged = assemble(request(states=TWO, most=2, by_entry=False), unsure)
    assert merged.exact.tolist() == [[True] * 2, [False] * 2]
    with pytest.raises(InvalidWorld):
        assemble(request(states=TWO, most=2), [part("0", (1.0, 1.0), keep=(False, False))])


def test_what_is_called_exact_is_known_to_a_share_of_the_leak() -> None:
    for error, exact in ((2 * SHARE, [True, True]), (3 * SHARE, [True, False])):
        found = assemble(request(states=TWO, most=2), [part("0", (4.0, 4.0), error=error)])
        assert found.exact.tolist() == [exact] * 2
    small = LEAST_EXACT / 8  # of less than the least, the share is that of the least
    for error, known in ((0.9 * SHARE * LEAST_EXACT, True), (1.1 * SHARE * LEAST_EXACT, False)):
        found = assemble(request(states=TWO, most=2), [part("0", (small, small), error=error)])
        assert found.exact.all() == known and found.exact.any() == known


@pytest.mark.parametrize(("length", "exposed"), [(2, [1, 2]), (3, [1, 2, 3]), (9, [1, 2, 9])])
def test_all_entries_exposed_leak_nothing(length: int, exposed: list[int]) -> None:
    found = assemble(request(length, states=TWO, most=2), [part("0", (2.0, 4.0), exact=False)])
    assert found.exposed.tolist() == exposed and found.entries == length
    assert found.exact.tolist() == [[False] * (len(exposed) - 1) + [True]] * 2
    if length > 2:
        assert found.leak[:, -1].tolist() == [0.0, 0.0]
    assert found.leak[:, 0] == pytest.approx([2, 4], abs=1e-13)


def test_sets_of_chains_refuse_what_they_have_no_rows_for() -> None:
    chain = IntervalMarkovChain(
        np.array([[0.75, 0.15], [0.15, 0.75]]), np.array([[0.85, 0.25], [0.25, 0.85]]), length=8
    )
    with pytest.raises(InvalidWorld):
        interval_chain_curve(chain, Secrets(entries=(8,)), max_exposed=2)
    for entries, names in (((2,), None), ((1,), "1"), ((5,), None), ((6,), "6"), ((1, 6), "1 6")):
        found = interval_chain_curve(chain, Secrets(entries=entries), max_exposed=2)
        assert found.splits is not None
        said = [found.splits.describe(k, 0)["entry"] for k in range(len(found.pairs))]
        assert sorted(set(said)) == (["2+"] if names is None else names.split())
    for most, said_of_all in ((4, {str(i) for i in range(8)}), (3, {"3+"})):
        found = interval_chain_curve(chain, max_exposed=most)
        assert found.splits is not None
        names_of = {found.splits.describe(k, 0)["entry"] for k in range(len(found.pairs))}
        assert names_of == said_of_all
