"""How the best sets of a network are searched: what is tried, what is kept, what is claimed."""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from takifugu.errors import InvalidPrior, TooLarge, UnsoundRequest
from takifugu.influence.network import network_curves as curves
from takifugu.influence.network.elimination import Elimination
from takifugu.influence.network.network_curves import (
    Progress,
    nearest_curve,
    network_curve,
    sampled_curve,
)
from takifugu.influence.network.ratios import BEATEN, PROVED, UNKNOWN
from takifugu.priors import Secrets
from takifugu.priors.random_field import MarkovRandomField
from tests.raising import raises

pytestmark = pytest.mark.nightly

SIDES = (((0,), (1, 2)), ((1, 2), (0,)), ((2,), (1,)), ((1,), (2,)))


def path(count: int, values: int = 2, seed: int = 1) -> MarkovRandomField:
    """Entries in a row, all tables different."""
    rng = np.random.default_rng(seed)
    names = tuple("abcdefgh"[:count])
    pairs = tuple(pairwise(names))
    return MarkovRandomField(
        names,
        (tuple(range(values)),) * count,
        tuple(rng.uniform(0.5, 2, values) for _ in names),
        pairs,
        tuple(rng.uniform(0.2, 3, (values, values)) for _ in pairs),
    )


# ---- trying sets


class Asked:
    """A search that notes what it is asked."""

    def __init__(self, entry: int, evaluated: int = 0, stopped: bool = False) -> None:
        self.entry, self.evaluated, self.stopped = entry, evaluated, stopped
        self.name = "xyz"[entry]
        self.settled: list[Any] = []
        self.out: list[int] = []

    def settle(self, around: Any) -> None:
        """A set was tried."""
        self.evaluated += 1
        self.settled.append(around)

    def unknown(self, inside: int) -> None:
        """A set was out of reach."""
        self.evaluated += 1
        self.out.append(inside)


class Around:
    """Surroundings by name; some sets are too large."""

    def __init__(self, *large: int) -> None:
        self.large, self.made = large, [0]

    def surroundings(self, inside: int) -> str:
        """Its name."""
        self.made.append(inside)
        if inside in self.large:
            raise TooLarge("too many")
        return f"around {inside:b}"


def tried(
    full: Around, sets: Iterable[int], active: list[Asked], evaluations: int | None, progress: Any
) -> None:
    curves._try_sets(full, sets, active, 7, evaluations, progress)  # type: ignore[arg-type]


def test_each_set_is_tried_for_the_secrets_it_holds() -> None:
    full, searches = Around(0b110), [Asked(0), Asked(1, 3), Asked(2, 0, True)]
    told: list[Progress] = []
    tried(full, [0b011, 0b110, 0b100, 0b010, 0b001], searches, None, told.append)
    assert [one.settled for one in searches] == [
        ["around 11", "around 1"],
        ["around 11", "around 10"],
        [],
    ]
    assert [one.out for one in searches] == [[], [0b110], [0b110]]
    assert full.made[1:] == [0b011, 0b110, 0b010, 0b001]  # made once, and none for the stopped
    assert told == [
        Progress("x", 7, 0),
        Progress("y", 7, 3),
        Progress("y", 7, 4),
        Progress("y", 7, 5),
        Progress("x", 7, 1),
    ]
    assert [one.stopped for one in searches] == [False, False, True]


def test_a_search_stops_after_so_many_sets() -> None:
    searches = [Asked(0), Asked(1)]
    tried(Around(), [0b01, 0b11, 0b101], searches, 2, None)
    assert [len(one.settled) for one in searches] == [2, 1]
    assert [one.stopped for one in searches] == [True, False]
    none = [Asked(0)]
    tried(Around(), [0b01], none, 0, None)
    assert none[0].stopped and not none[0].settled


@pytest.mark.parametrize("answer", [None, True, False])
def test_only_a_plain_no_ends_the_search(answer: bool | None) -> None:
    searches = [Asked(0), Asked(1), Asked(2)]
    tried(Around(), [0b111], searches, None, lambda p: answer if p.entry == "y" else None)
    ended = answer is False
    assert [len(one.settled) for one in searches] == ([1, 0, 0] if ended else [1, 1, 1])
    assert [one.stopped for one in searches] == [ended] * 3


# ---- one secret


def search_of(values: int = 3, entry: int = 1) -> curves._EntrySearch:
    return curves._EntrySearch(Elimination(path(4, values)), entry, SIDES, "b")


def test_a_search_begins_with_nothing_known() -> None:
    search = search_of()
    assert search.whole == 0b1111 and (search.entry, search.name) == (1, "b")
    marks = np.zeros((4, 2, 3), np.bool_)
    for k, pair in enumerate(SIDES):
        for side in range(2):
            for value in pair[side]:
                marks[k, side, value] = True
    assert (search._marks == marks).all()
    assert (search.every, search.relaxed, search.stopped, search.evaluated) == (
        True,
        False,
        False,
        0,
    )
    assert search.best == [] and search.sets == []
    assert search.open(1) == [0b10]
    assert search.best[0].tolist() == [np.inf] * 4 and search.sets == [[0b10] * 4]
    search.best[0][:] = 4.0, 3.0, 2.0, 1.0
    search.sets[0][:] = 0b10, 0b11, 0b10, 0b110
    assert sorted(search.open(2)) == [0b011, 0b110]
    assert search.best[1].tolist() == [4.0, 3.0, 2.0, 1.0]
    assert search.sets[1] == [0b10, 0b11, 0b10, 0b110]
    search.best[1][0], search.sets[1][0] = 0.5, 0b11
    assert search.best[0][0] == 4.0 and search.sets[0][0] == 0b10  # what was found stays
    assert sorted(search.open(3)) == [0b0111, 0b1110]  # of three entries only


def test_a_set_is_kept_where_its_leak_is_proved_to_be_less(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    search = search_of()
    search.open(1)
    search.best[0][:] = 4.0, 3.0, 2.0, 1.0
    around = search.full.surroundings(0b1011)
    given: list[Any] = []

    def evaluate(*args: Any) -> tuple[Any, Any]:
        given.extend(np.copy(one) if isinstance(one, np.ndarray) else one for one in args)
        return np.array([3.5, 3.0, 1.5, 0.5]), np.array([PROVED, PROVED, BEATEN, UNKNOWN])

    monkeypatch.setattr(search.full, "evaluate", evaluate)
    search.settle(around)
    assert given[0] is around and given[1] == 1 and (given[2] == search._marks).all()
    assert given[3].tolist() == [one - curves.TIE for one in (4.0, 3.0, 2.0, 1.0)]
    assert search.best[0].tolist() == [3.5, 3.0, 2.0, 1.0]
    assert search.sets[0] == [0b1011, 0b10, 0b10, 0b10]
    assert search.evaluated == 1 and not search.relaxed
    ((size, least),) = search._doubt
    assert size == 3 and least.tolist() == [np.inf] * 3 + [0.5 - curves.TIE]
    object.__setattr__(around, "exact", False)
    monkeypatch.setattr(
        search.full, "evaluate", lambda *_: (np.full(4, 9.0), np.array([PROVED] * 4))
    )
    search.settle(around)
    assert search.relaxed and search.evaluated == 2 and len(search._doubt) == 1
    assert search.best[0].tolist() == [3.5, 3.0, 2.0, 1.0]
    object.__setattr__(around, "exact", True)
    search.settle(around)
    assert search.relaxed  # once and for all


def test_what_is_proved_to_be_the_least() -> None:
    search = search_of()
    for b in (1, 2, 3):
        search.open(b)
        search.best[-1][:] = 4.0 / b
    assert all(search.exact(at, pair) for at in range(3) for pair in range(4))
    search.stopped = True  # the last b was not finished
    assert [search.exact(at, 0) for at in range(3)] == [True, True, False]
    search.stopped = False
    for field, value in (("every", False), ("relaxed", True)):
        setattr(search, field, value)
        assert not any(search.exact(at, pair) for at in range(3) for pair in range(4))
        setattr(search, field, not value)
    # a set of two that may leak as little as this
    search._doubt = [(2, np.array([2.0, 1.9, np.inf, -np.inf]))]
    assert [[search.exact(at, pair) for at in range(3)] for pair in range(4)] == [
        [True, True, True],
        [True, False, True],
        [True, True, True],
        [True, False, False],
    ]
    search._doubt = []
    search.unknown(0b1110)
    assert search.evaluated == 1
    assert [search.exact(at, 2) for at in range(3)] == [True, True, False]


def test_odds_before_anything_is_known_or_a_bound_on_them(monkeypatch: pytest.MonkeyPatch) -> None:
    search = search_of()
    asked: list[Any] = []

    def odds(*given: Any) -> np.ndarray:
        asked.append(given)
        return np.array([0.5, 1.5, 2.5, 3.5])

    monkeypatch.setattr(search.full, "odds", odds)
    found, sure = search.offset()
    assert found.tolist() == [1.5, 0.5, 3.5, 2.5] and sure
    assert asked == [(0b1111, 1, SIDES)]

    def large(*_: Any) -> np.ndarray:
        raise TooLarge("too many")

    monkeypatch.setattr(search.full, "odds", large)
    found, sure = search.offset()
    assert found.tolist() == [np.inf] * 4 and not sure
    search.best = [np.array([5.0, 6.0, 7.0, 8.0]), np.array([4.0, 6.5, 3.0, 2.0])]
    found, sure = search.offset()
    assert found.tolist() == [6.0, 4.0, 2.0, 3.0] and not sure


# ---- whole curves


def test_a_search_that_ends_early_claims_what_it_finished() -> None:
    """After two sets each: entry a has no other set of two, b and the others have."""
    model = path(5)
    whole = network_curve(model, largest=3)
    ended = network_curve(model, largest=3, evaluations=2)
    assert ended.exposed.tolist() == [1, 2, 3, 5] and ended.pairs == whole.pairs
    told = dict(zip(ended.pairs, ended.exact.tolist(), strict=True))
    for name in "abcde":
        at_two = name in "ae"
        assert told[f"{name}=0 / {name}=1"] == [True, at_two, False, True]
        assert told[f"{name}=1 / {name}=0"] == [True, at_two, False, True]
    assert whole.exact.all()
    assert (ended.leak[:, 0] == whole.leak[:, 0]).all() and (ended.leak >= whole.leak).all()
    assert (ended.leak[:, 2] == ended.leak[:, 1]).all()


def test_entries_of_small_parts_are_done_while_others_are_searched() -> None:
    """Two entries apart from five in a row: their curve ends at two."""
    rng = np.random.default_rng(3)
    edges = (("a", "b"), ("c", "d"), ("d", "e"), ("e", "f"), ("f", "g"))
    model = MarkovRandomField(
        tuple("abcdefg"),
        ((0, 1),) * 7,
        (np.ones(2),) * 7,
        edges,
        tuple(rng.uniform(0.2, 3, (2, 2)) for _ in edges),
    )
    heard: list[Progress] = []
    curve = network_curve(model, largest=3, progress=heard.append)
    assert curve.exposed.tolist() == [1, 2, 3, 5, 7]
    assert {(one.entry, one.b) for one in heard} == {
        ("a", 1),
        ("b", 1),
        *((name, b) for name in "cdefg" for b in (1, 2, 3)),
    }
    assert curve.splits is not None
    for k, pair in enumerate(curve.pairs):
        small = pair[0] in "ab"
        assert curve.exact[k].all()
        assert (curve.leak[k] > 0).tolist() == [True, not small, not small, False, False]
        shown = [curve.splits.describe(k, point)["exposed"] for point in range(5)]
        assert shown[-1] == (["a", "b"] if small else list("cdefg"))
        assert shown[0] == [pair[0]] and (shown[1] == ["a", "b"]) == small
    one = network_curve(model, Secrets(entries=("f", "b")), largest=1)
    assert one.exposed.tolist() == [1, 2, 5, 7]
    assert [pair[0] for pair in one.pairs] == ["f", "f", "b", "b"]


def test_nearest_and_drawn_sets_are_never_called_exact() -> None:
    model = path(4)
    for largest in (1, 2, 3):
        near = nearest_curve(model, largest=largest)
        drawn = sampled_curve(model, largest=largest, rng=np.random.default_rng(1))
        for curve in (near, drawn):
            assert curve.exposed.tolist() == [*range(1, largest + 1), 4]
            assert curve.exact.tolist() == [[False] * largest + [True]] * 8
    full = network_curve(model, largest=3)
    assert (nearest_curve(model, largest=3).leak[:, 0] == full.leak[:, 0]).all()


class Trials:
    """Notes of the sets that are tried, in place of trying them."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.sets: list[tuple[int, int, list[int]]] = []
        patch.setattr(curves, "_try_sets", self._try)

    def _try(self, _: Any, sets: Any, active: Any, b: int, evaluations: Any, progress: Any) -> None:
        assert evaluations is None and progress is None and len(active) == 1
        self.sets.append((active[0].entry, b, list(sets)))


def test_which_sets_are_tried_when_they_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    trials = Trials(monkeypatch)
    drawn: Iterator[int] = iter(())
    monkeypatch.setattr(curves, "_drawn", lambda *_: next(drawn))
    secrets, rng = Secrets(entries=("b",)), np.random.default_rng(1)
    drawn = iter([2, 2, 2, 90, 91, 90, 92, 93, 94])
    sampled_curve(path(4), secrets, largest=9, samples=3, rng=rng)
    assert [one[:2] for one in trials.sets] == [(1, 1), (1, 2), (1, 3)]
    assert trials.sets[0][2] == [0b10]
    first, second = trials.sets[1][2][:2]
    assert {first, second} == {0b011, 0b110} and trials.sets[1][2][2:] == [90, 91]
    trials.sets.clear()
    drawn = iter([2, 90])
    sampled_curve(path(4), secrets, largest=2, samples=1, rng=rng)
    assert [len(sets) for _, _, sets in trials.sets] == [1, 2]
    trials.sets.clear()
    drawn = iter(range(100, 200))
    sampled_curve(path(4), secrets, largest=1, rng=rng)
    assert trials.sets == [(1, 1, [0b10, *range(100, 120)])]  # twenty unless told
    with raises(UnsoundRequest, field="samples", given=0, needed=1):
        sampled_curve(path(4), secrets, samples=0, rng=rng)


def test_which_sets_are_tried_of_the_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    trials = Trials(monkeypatch)
    nearest_curve(path(4), Secrets(entries=("a", "c")), largest=2)
    assert trials.sets == [(0, 1, [1]), (0, 2, [3]), (2, 1, [4]), (2, 2, [6, 12])]


def test_an_entry_of_one_value_has_no_secret() -> None:
    model = MarkovRandomField(
        ("a", "b"),
        ((0,), (0, 1)),
        (np.ones(1), np.array([1.0, 3.0])),
        (("a", "b"),),
        (np.array([[1.0, 2.0]]),),
    )
    heard: list[Progress] = []
    curve = network_curve(model, largest=1, progress=heard.append)
    assert {one.entry for one in heard} == {"b"} and curve.pairs == ("b=0 / b=1", "b=1 / b=0")


def test_pairs_that_cannot_happen_are_left_out() -> None:
    model = MarkovRandomField(
        ("a", "b"),
        ((0, 1, 2), (0, 1)),
        (np.array([1.0, 0.0, 2.0]), np.array([1.0, 3.0])),
        (("a", "b"),),
        (np.array([[1.0, 2.0], [5.0, 1.0], [4.0, 1.0]]),),
    )
    curve = network_curve(model, largest=1)
    assert curve.pairs == ("a=0 / a=2", "a=2 / a=0", "b=0 / b=1", "b=1 / b=0")
    assert curve.exposed.tolist() == [1, 2] and curve.leak.shape == (4, 2)
    assert curve.leak[0, 0] == pytest.approx(np.log((2 / 3) / (1 / 5 * 1)), rel=1e-1, abs=1)
    secrets = Secrets(entries=("a",), pairs=(((0,), (1,)),))
    with raises(InvalidPrior, field="secrets"):
        network_curve(model, secrets)
    with raises(UnsoundRequest, field="largest", given=0, needed=1):
        network_curve(model, largest=0)


def test_where_the_odds_are_out_of_reach_leaks_are_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    model = path(4)
    whole = network_curve(model, largest=3)

    def large(*_: Any) -> np.ndarray:
        raise TooLarge("too many")

    monkeypatch.setattr(Elimination, "odds", large)
    bounded = network_curve(model, largest=3)
    assert bounded.pairs == whole.pairs
    assert bounded.exact.tolist() == [[False] * 3 + [True]] * 8
    assert (bounded.leak[:, :3] >= whole.leak[:, :3]).all() and not bounded.leak[:, 3].any()
    assert np.isfinite(bounded.leak).all()


def test_names_of_entries_pairs_and_sets() -> None:
    model = path(4, 3)
    assert curves.chosen_entries(model, Secrets()) == [0, 1, 2, 3]
    assert curves.chosen_entries(model, Secrets(entries=("d", "b"))) == [3, 1]
    with raises(InvalidPrior, field="secrets"):
        curves.chosen_entries(model, Secrets(entries=("b", "z")))
    assert curves.pair_label(model, 2, ((0, 2), (1,))) == "c=0|2 / c=1"
    named = curves.named_sets(model, [(0b1001, 0b0010), (0b0111, 0b1000)])
    assert named.members == [[["a", "d"], ["b"]], [["a", "b", "c"], ["d"]]]
