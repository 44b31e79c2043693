"""The proof that a ratio is the largest: which cases it searches, and what each answer is worth."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from takifugu.influence.network import ratios
from tests.influence.test_ratio_search_loops import Parts

pytestmark = pytest.mark.nightly

loops: Any = ratios  # what is compiled has lost its types


@pytest.fixture(autouse=True)
def _as_compiled() -> Iterator[None]:
    """Compiled loops do not warn of what they test for; nor shall they as plain Python."""
    with np.errstate(all="ignore"):
        yield


# ---- the proof


class Proof:
    """Four cases of four parts; what is searched, in which order, with which answers."""

    def __init__(self, patch: pytest.MonkeyPatch, rows: list[int]) -> None:
        width = [2, 3, 4, 2, 3, 2, 2, 4, 3, 3, 2, 4, 4, 2, 3, 3]
        self.of = Parts(rows, width, states=9, seed=11)
        self.cases = np.array([[3, 8, 0, 5], [1, 6, 10, 2], [15, 4, 7, 9], [11, 12, 13, 14]])
        self.place = np.random.default_rng(1).integers(0, 2, (4, 9))
        self.holds = np.array([True, False, False, True])
        self.turn = [2, 0, 3, 1]
        self.given: list[dict[str, Any]] = []
        self.ordered: list[list[int]] = []
        self.answers: list[tuple[float, float, float]] = []
        patch.setattr(ratios, "turns", self._turns)
        patch.setattr(ratios, "descend", self._descend)

    def _turns(self, *given: Any) -> np.ndarray:
        of = self.of
        for one, true in zip(given, (of.rows, of.width, of.limit, of.edge), strict=False):
            assert one is true
        self.ordered.append(given[4].tolist())
        return np.array(self.turn)

    def _descend(self, *given: Any) -> tuple[float, float, float]:
        of = self.of
        for one, true in zip(given, (of.cells, of.start, of.rows, of.width), strict=False):
            assert one is true
        names = "parts place half rest first work joint alone sums at top base threshold budget"
        kept = dict(zip(names.split(), given[4:], strict=True))
        self.given.append({k: v.copy() if hasattr(v, "copy") else v for k, v in kept.items()})
        return self.answers.pop(0)

    def run(
        self, outer: list[float], top: float, base: float, threshold: float = np.inf
    ) -> tuple[float, float, int]:
        """The highest sums, and what they are worth."""
        of = self.of
        found = loops._prove(
            *(of.cells, of.start, of.rows, of.width, of.limit, of.edge, self.cases, self.place),
            *(self.holds, of.lead, 3, 3, threshold, 100.0, np.full((5, 9), np.nan)),
            *(np.full((2, 4), 0.5), np.array(outer), top, base),
        )
        return float(found[0]), float(found[1]), int(found[2])


@pytest.mark.parametrize("single", [0, 1, 2, 3, 4])
def test_a_case_is_searched_with_its_parts_in_turn(
    single: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts of one row are multiplied beforehand, but for the last: it is always evaluated."""
    rows = [2, 3, 2, 4, 2, 3, 2, 2, 3, 2, 4, 2, 3, 2, 2, 3]
    case = [15, 4, 7, 9]
    turned = [case[q] for q in (2, 0, 3, 1)]
    for number in turned[:single]:
        rows[number] = 1
    proof = Proof(monkeypatch, rows)
    of = proof.of
    proof.answers = [(2.5, 1.0, 90.0)]
    assert proof.run([0.5, 1.5, 5.0, -1.0], 2.0, 1.0) == (2.5, 1.0, ratios.PROVED)
    assert proof.ordered == [case] and len(proof.given) == 1
    given = proof.given[0]
    first = min(single, 3)
    moved, kept = proof.place[proof.turn], proof.holds[proof.turn]
    assert given["parts"].tolist() == turned and given["place"].tolist() == moved.tolist()
    assert (given["half"], given["rest"], given["first"]) == (3, 3, first)
    weight = of.lead.copy()
    for q in range(first):
        weight *= of.felt(turned[q], 0, moved[q])
    assert given["work"][first] == pytest.approx(weight, rel=1e-14)
    joint, alone = np.empty((5, 2, 9)), np.empty((5, 2, 3))
    loops.limits(of.limit, of.edge, given["parts"], moved, kept, 3, joint, alone)
    assert (given["joint"] == joint).all() and (given["alone"] == alone).all()
    assert given["sums"].tolist() == [[0.5] * 4] * 2 and len(given["at"]) >= 4
    assert [given[k] for k in ("top", "base", "threshold", "budget")] == [2.0, 1.0, np.inf, 100.0]


ROWS = [2, 3, 2, 4, 2, 3, 2, 2, 3, 2, 4, 2, 3, 2, 2, 3]


def test_cases_are_searched_by_falling_bound_with_what_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    proof = Proof(monkeypatch, ROWS)
    proof.answers = [(2.5, 1.0, 90.0), (5.2, 2.0, 70.0), (5.4, 2.0, 0.0)]
    assert proof.run([3.0, 5.0, 2.0, 4.0], 4.0, 2.0) == (5.4, 2.0, ratios.PROVED)
    assert proof.ordered == [proof.cases[k].tolist() for k in (1, 3, 0)]
    told = [(one["top"], one["base"], one["budget"]) for one in proof.given]
    assert told == [(4.0, 2.0, 100.0), (2.5, 1.0, 90.0), (5.2, 2.0, 70.0)]


@pytest.mark.parametrize(
    ("answer", "threshold", "verdict", "searched"),
    [
        ((6.0, 2.0, 50.0), 3.0, ratios.BEATEN, 1),
        ((6.0, 2.0, 50.0), 3.0000001, ratios.PROVED, 3),
        ((6.0, 2.0, -1.0), 3.0, ratios.BEATEN, 1),
        ((6.0, 2.0, -1.0), 4.0, ratios.UNKNOWN, 1),
        ((9.0, 2.0, 50.0), 9.0, ratios.PROVED, 1),  # the other cases have no higher bound
    ],
)
def test_what_a_search_of_a_case_is_worth(
    answer: tuple[float, float, float],
    threshold: float,
    verdict: int,
    searched: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    proof = Proof(monkeypatch, ROWS)
    proof.answers = [answer] * 3
    assert proof.run([3.5, 5.0, 2.0, 4.0], 2.0, 1.0, threshold) == (*answer[:2], verdict)
    assert len(proof.given) == searched


def test_cases_are_left_out_by_their_bound_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    proof = Proof(monkeypatch, ROWS)
    closer = ratios.CLOSER
    near = [2 * (1 + closer * share) for share in (-9.0, 0.0, 0.4, 0.5)]
    assert proof.run(near, 2.0, 1.0) == (2.0, 1.0, ratios.PROVED) and not proof.given
    proof.answers = [(2.0, 1.0, 9.0)]
    far = 2 * (1 + closer * 0.6)
    assert proof.run([1.0, 1.5, far, -1.0], 2.0, 1.0) == (2.0, 1.0, ratios.PROVED)
    assert proof.ordered == [[15, 4, 7, 9]]
    proof.ordered.clear()
    # nothing was found: cases that can happen are searched, those that cannot are not
    proof.answers = [(0.0, 0.0, 9.0)]
    assert proof.run([-1.0, 0.25, -1.0, -1.0], 0.0, 0.0) == (0.0, 0.0, ratios.PROVED)
    assert proof.ordered == [[1, 6, 10, 2]]


# ---- all pairs


def test_each_pair_is_climbed_then_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries of 2, 3 and 2 values, the second secret; two cases of two parts, two parts fixed."""
    sizes, axis = np.array([2, 3, 2]), 1
    strides = np.array([[1, 0, 2], [0, 1, 3], [4, 0, 9], [1, 2, 0]])
    of = Parts([2, 3, 3, 2, 1, 1], [4, 6, 4, 6, 14, 6], states=1, seed=4)
    cases, fixed = np.array([[0, 1], [2, 3]]), np.array([4, 5])
    pairs = [((0,), (2,)), ((1, 2), (0,)), ((2,), (0, 1))]
    sides = np.zeros((3, 2, 3), np.bool_)
    for k, pair in enumerate(pairs):
        for side in range(2):
            sides[k, side, list(pair[side])] = True
    thresholds = np.array([4.0, 5.0, 6.0])
    climbs: list[Any] = []
    proofs: list[Any] = []
    hints = [1, 0, 1]
    sums = [(8.0, 2.0), (9.0, 3.0), (7.0, 5.0)]
    proved = [(9.5, 3.0, ratios.PROVED), (7.5, 5.0, ratios.UNKNOWN)]

    def climb(*given: Any) -> tuple[float, float, int]:
        climbs.append(given)
        return (*sums[len(climbs) - 1], hints[len(climbs) - 1])

    def prove(*given: Any) -> tuple[float, float, int]:
        proofs.append(given)
        return proved[len(proofs) - 1]

    monkeypatch.setattr(ratios, "climb", climb)
    monkeypatch.setattr(ratios, "prove", prove)
    found, verdict = np.full((3, 2), np.nan), np.full(3, -1)
    tables = (of.cells, of.start, of.rows, of.width, of.limit, of.edge, cases)
    loops._largest(*tables, fixed, strides, sizes, axis, sides, thresholds, 123.0, found, verdict)
    assert found.tolist() == [[8.0, 2.0], [9.5, 3.0], [7.5, 5.0]]
    assert verdict.tolist() == [ratios.BEATEN, ratios.PROVED, ratios.UNKNOWN]
    assert len(climbs) == 3 and len(proofs) == 2
    for k, (pair, given) in enumerate(zip(pairs, climbs, strict=True)):
        assert all(one is true for one, true in zip(given, tables, strict=False))
        place, lead, half, threshold, hint, work, cells, outer = given[7:]
        states = [
            (a, v, c) for side in pair for v in side for c in range(2) for a in range(2)
        ]  # of those that are not secret the first changes fastest
        assert place.tolist() == [[int(np.dot(one, s)) for s in states] for one in strides[:2]]
        true = [
            of.cells[of.start[4] + np.dot(strides[2], s)]
            * of.cells[of.start[5] + np.dot(strides[3], s)]
            for s in states
        ]
        assert lead == pytest.approx(true, rel=1e-14)
        assert (half, threshold) == (4 * len(pair[0]), thresholds[k])
        assert hint == [0, *hints][k]
        assert work.shape == (3, len(states)) and cells.shape == (2, 6) and outer.shape == (2,)
    for k, given in enumerate(proofs, 1):
        assert all(one is true for one, true in zip(given, tables, strict=False))
        climb_given = climbs[k]
        assert given[7] is climb_given[7] and given[8].tolist() == [False, True]
        assert given[9] is climb_given[8] and given[10:12] == (climb_given[9], 4)
        assert given[12:14] == (thresholds[k], 123.0)
        assert all(a is b for a, b in zip(given[14:17], climb_given[12:], strict=True))
        assert given[17:] == sums[k]
