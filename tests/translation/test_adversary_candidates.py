"""The adversaries that a witness is tried against: each is one that the prior allows."""

from itertools import product

import numpy as np
import pytest

from takifugu.numeric import Floats
from takifugu.priors.markov import MarkovChain
from takifugu.priors.secrets import Secrets
from takifugu.translation.bounds import Binding, Bound
from takifugu.translation.chain import adversary_witness as tried
from takifugu.translation.chain.adversary_witness import _Candidate

pytestmark = pytest.mark.nightly

ONE = np.array([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3], [0.25, 0.2, 0.55]])
TWO = np.array([[0.2, 0.2, 0.6], [0.3, 0.1, 0.6], [0.1, 0.8, 0.1]])
HOLES = np.array([[0.0, 1.0, 0.0], [0.5, 0.0, 0.5], [0.0, 0.0, 1.0]])
LAW = np.array([0.2, 0.5, 0.3])
NAMES = ("a", "b", "c")


def changing(*matrices: Floats) -> MarkovChain:
    return MarkovChain(np.stack(matrices), states=NAMES, start=LAW)


def test_losses_are_cut_to_the_entries_of_a_window() -> None:
    charged = np.array([1.0, 2.0, 3.0, 4.0])
    assert tried._cut(charged, 1, 2).tolist() == [2.0, 3.0]
    assert tried._cut(charged, 2, 4).tolist() == [3.0, 4.0, 0.0, 0.0]
    assert tried._cut(charged, 0, 4).tolist() == charged.tolist()
    assert tried._cut(charged, 6, 2).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("length", "entries", "binding", "expected"),
    [
        (9, None, Binding("a", "b", entry=7), 7),
        (9, (1, 2), Binding("a", "b", entry=0), 0),
        (9, (1, 2, 8), Binding("a", "b"), 2),
        (9, (1, 8), None, 8),
        (9, None, None, 4),
        (8, None, Binding("a", "b"), 4),
        (None, None, None, 60),
        (None, (5,), None, 5),
    ],
)
def test_the_middle_is_the_entry_that_binds_or_one_with_secrets(
    length: int | None, entries: tuple[int, ...] | None, binding: Binding | None, expected: int
) -> None:
    chain = MarkovChain(ONE, length=length)
    secrets = Secrets() if entries is None else Secrets(entries=entries)
    assert tried._centre(chain, secrets, Bound(1.0, binding)) == expected


def test_the_pair_is_that_with_the_largest_finite_bound() -> None:
    chain, none, every = MarkovChain(ONE), -np.inf, np.inf
    table = np.array([[none, every, 1.0], [2.0, none, 0.5], [none, 1.5, none]])
    assert tried._pair(chain, Bound(1.0, by_values=table)) == (1, 0)
    assert tried._pair(chain, Bound(1.0, by_values=np.full((3, 3), none))) == (0, 2)
    assert tried._pair(chain, Bound(1.0)) == (0, 2)


def test_a_window_ends_with_the_chain_or_sixty_entries_on() -> None:
    assert tried._end(MarkovChain(ONE), 3) == 63
    assert tried._end(MarkovChain(ONE, length=7), 3) == 6
    assert tried._end(MarkovChain(ONE, length=64), 3) == 63
    assert tried._end(MarkovChain(ONE, length=500), 3) == 63


def test_a_law_in_words() -> None:
    chain = MarkovChain(ONE, states=NAMES)
    assert tried._in_words(chain, 4, np.array([0.0, 1.0, 0.0])) == "entry 4 is b"
    assert (
        tried._in_words(chain, 0, np.array([0.25, 0.0, 0.75]))
        == "entry 0 is a with probability 0.25 or c with probability 0.75"
    )


def test_steps_are_multiplied_in_their_order() -> None:
    chain = changing(ONE, TWO, HOLES)
    assert tried._product(chain, 0, 0) == pytest.approx(np.eye(3))
    assert tried._product(chain, 1, 3) == pytest.approx(TWO @ HOLES)
    assert tried._product(chain, 0, 2) == pytest.approx(ONE @ TWO)
    assert [k.tolist() for k in tried._kernels(chain, 1, 2)] == [TWO.tolist()]


def test_states_that_can_be_reached() -> None:
    chain = MarkovChain(HOLES, start=np.array([1.0, 0.0, 0.0]), length=4)
    expected = [[True, False, False], [False, True, False], [True, False, True]]
    assert [tried._possible(chain, n).tolist() for n in range(3)] == expected


def test_the_values_that_tell_most_and_least() -> None:
    one = np.array([0.1, 0.5, 0.2, 0.0, 0.2])
    other = np.array([0.4, 0.1, 0.2, 0.3, 0.0])
    assert tried._telling(one, other) == [1, 0, 2]
    assert tried._telling(other, one) == [0, 1, 2]
    assert tried._telling(one[:2], other[:2]) == [1, 0]
    assert tried._telling(np.array([0.0, 1.0]), np.array([1.0, 0.0])) == []
    assert tried._telling(np.array([0.0, 0.3]), np.array([1.0, 0.2])) == [1]


def paths(law: Floats, kernels: list[Floats]) -> dict[tuple[int, ...], float]:
    """The probability of every path."""
    found = {}
    for path in product(range(len(law)), repeat=len(kernels) + 1):
        weight = float(law[path[0]])
        for n, kernel in enumerate(kernels):
            weight *= float(kernel[path[n], path[n + 1]])
        found[path] = weight
    return found


def given(weights: dict[tuple[int, ...], float], known: dict[int, int]) -> dict[object, float]:
    kept = {p: w for p, w in weights.items() if all(p[n] == v for n, v in known.items())}
    total = sum(kept.values())
    return {p: w / total for p, w in kept.items() if w}


@pytest.mark.parametrize("value", [0, 1, 2])
@pytest.mark.parametrize("kernels", [[ONE, TWO], [HOLES, ONE, TWO], [TWO, HOLES, HOLES]])
def test_a_chain_that_ends_in_a_value_has_the_law_given_that(
    kernels: list[Floats], value: int
) -> None:
    law, steps = tried._given_end(LAW, kernels, value)
    assert law.sum() == pytest.approx(1)
    assert all(rows.sum(axis=1) == pytest.approx(1) for rows in steps)
    found = {p: w for p, w in paths(law, steps).items() if w}
    assert found == pytest.approx(given(paths(LAW, kernels), {len(kernels): value}))


def test_rows_from_where_a_value_is_out_of_reach_stay_as_they_are() -> None:
    law, (rows,) = tried._given_end(LAW, [HOLES], 0)
    assert rows[0].tolist() == HOLES[0].tolist() and rows[2].tolist() == HOLES[2].tolist()
    assert rows[1].tolist() == [1.0, 0.0, 0.0]
    assert law.tolist() == [0.0, 1.0, 0.0]
    trapped = np.array([[1.0, 0.0], [1.0, 0.0]])
    law, (rows,) = tried._given_end(np.array([0.5, 0.5]), [trapped], 1)
    assert law.tolist() == [0.0, 0.0] and rows.tolist() == trapped.tolist()


def test_small_weights_do_not_vanish_on_a_long_way() -> None:
    kernel = np.array([[1 - 1e-9, 1e-9], [0.5, 0.5]])
    law, steps = tried._given_end(np.array([0.5, 0.5]), [kernel * 1e-9] * 60, 1)
    assert law.sum() == pytest.approx(1) and min(law) > 0
    assert all(rows.sum(axis=1) == pytest.approx(1) for rows in steps)


def test_a_window_is_a_chain_of_its_own() -> None:
    chain = MarkovChain(ONE, states=NAMES, start="unknown", length=9, known="any")
    part = tried._window(chain, 2, 5, np.array([1.0, 3.0, 0.0]))
    assert part is not None
    assert np.asarray(part.start).tolist() == [0.25, 0.75, 0.0]
    assert (part.length, part.known, part.states) == (4, "none", NAMES)
    assert part.transition.tolist() == [ONE.tolist()] * 3
    alone = tried._window(chain, 3, 3, np.array([1.0, 3.0, 0.0]))
    assert alone is not None and (alone.length, alone.known) == (1, "none")
    assert np.asarray(alone.start).tolist() == [0.25, 0.75, 0.0]
    assert tried._window(chain, 2, 5, np.array([1.0, 9e-101, 0.0])) is None
    assert tried._window(chain, 2, 5, np.array([1.0, 1e-100, 0.0])) is not None
    of_steps = tried._window(changing(ONE, TWO, HOLES), 1, 3, LAW)
    assert of_steps is not None and of_steps.transition.tolist() == [TWO.tolist(), HOLES.tolist()]


def test_the_start_of_a_chain_that_has_one_is_its_law_there() -> None:
    still = MarkovChain(ONE, length=200)
    ((law, first, words),) = tried._starts(still, 80, (0, 1))
    assert (first, words) == (20, "") and law == pytest.approx(still.stationary)
    chain = changing(*[ONE, TWO, HOLES] * 30)
    ((law, first, words),) = tried._starts(chain, 63, (0, 1))
    assert (first, words) == (3, "") and law == pytest.approx(LAW @ ONE @ TWO @ HOLES)
    ((law, first, _),) = tried._starts(chain, 5, (0, 1))
    assert first == 0 and law == pytest.approx(LAW)


FOUR = np.array(
    [[0.7, 0.1, 0.1, 0.1], [0.1, 0.5, 0.2, 0.2], [0.2, 0.3, 0.4, 0.1], [0.05, 0.15, 0.1, 0.7]]
)


@pytest.mark.parametrize(("centre", "first"), [(2, 0), (3, 0), (62, 2)])
@pytest.mark.parametrize("pair", [(0, 3), (2, 1)])
def test_starts_on_two_states_leave_the_pair_equally_uncertain(
    centre: int, first: int, pair: tuple[int, int]
) -> None:
    chain = MarkovChain(FOUR, start="unknown", length=100)
    (law, begin, words), *edges = tried._starts(chain, centre, pair)
    assert (begin, words) == (first, "") and law == pytest.approx(law @ FOUR)
    ahead = np.linalg.matrix_power(FOUR, centre - first)
    apart = np.log(ahead[:, pair[0]]) - np.log(ahead[:, pair[1]])
    gaps = {(a, b): abs(apart[a] - apart[b]) for a in range(4) for b in range(a + 1, 4)}
    best = sorted(gaps, key=lambda edge: -gaps[edge])[:4]
    if centre < 60:  # so far away all states are nearly alike
        assert [tuple(np.flatnonzero(law).tolist()) for law, _, _ in edges[::3]] == best
    assert len(edges) <= 12
    for n, (law, begin, words) in enumerate(edges):
        assert begin == first and words == tried._in_words(chain, first, law)
        a, b = np.flatnonzero(law)
        assert law.sum() == pytest.approx(1)
        odds = [np.log(law[a] / law[b]) + np.log(ahead[a, v] / ahead[b, v]) for v in pair]
        assert sum(odds) / 2 == pytest.approx((0.0, 1.0, -1.0)[n % 3], abs=1e-9)


def test_a_start_that_never_leads_to_a_value_is_tried_too() -> None:
    chain = MarkovChain(HOLES, start="unknown", length=3)
    found = list(tried._starts(chain, 1, (0, 2)))
    for law, first, _ in found:
        assert first == 0 and law.sum() == pytest.approx(1) and (law >= 0).all()
    assert {tuple(np.flatnonzero(law).tolist()) for law, _, _ in found} >= {(0, 2), (1, 2)}


def test_each_step_counts_where_they_differ() -> None:
    chain = MarkovChain(np.stack([ONE, TWO]), start="unknown")
    law = next(iter(tried._starts(chain, 2, (0, 1))))[0]
    a, b = np.flatnonzero(law)
    ahead = ONE @ TWO
    odds = [np.log(law[a] / law[b]) + np.log(ahead[a, v] / ahead[b, v]) for v in (0, 1)]
    assert sum(odds) == pytest.approx(0, abs=1e-9)


def test_a_chain_without_a_stationary_law_has_other_starts() -> None:
    chain = MarkovChain(np.eye(3), start="unknown", length=3)
    assert all(len(np.flatnonzero(law)) == 2 for law, _, _ in tried._starts(chain, 1, (0, 1)))


def bridged(length: int = 5, first: int = 0, centre: int = 2) -> tuple[MarkovChain, _Candidate]:
    chain = changing(ONE, TWO, HOLES @ ONE, TWO)
    window = tried._window(chain, first, first + length - 1, LAW)
    assert window is not None
    return chain, _Candidate(window, first, centre, (), "so and so")


@pytest.mark.parametrize(("lo", "hi"), [(0, 4), (1, 3), (None, 4), (1, None), (0, None)])
def test_a_bridge_is_the_chain_given_the_known_entries(lo: int | None, hi: int | None) -> None:
    chain, base = bridged()
    every = paths(LAW, [chain.kernel(n) for n in range(4)])
    found = list(tried._bridges(chain, base, (0, 2), lo, hi))
    assert found
    for one in found:
        begin = 0 if lo is None else lo
        end = 4 if hi is None else hi
        assert (one.first, one.centre) == (begin, 2)
        assert one.known == tuple(e for e in (lo, hi) if e is not None)
        assert one.chain.known == "none" and one.chain.length == end - begin + 1
        law = np.asarray(one.chain.start)
        inner = {p: w for p, w in paths(law, list(one.chain.transition)).items() if w > 1e-15}
        known, said = {}, [] if lo is not None else ["so and so"]
        for entry in one.known:
            (value,) = {path[entry - begin] for path in inner}
            known[entry] = value
            said.append(f"entry {entry} is {NAMES[value]}")
        assert one.words == " and ".join(said)
        expected: dict[object, float] = {}
        for path, weight in given(every, known).items():
            part = path[begin : end + 1]  # type: ignore[index]
            expected[part] = expected.get(part, 0.0) + weight
        assert inner == pytest.approx({p: w for p, w in expected.items() if w > 1e-15})
    at = tried._product(chain, 2, 4)
    if (lo, hi) == (None, 4):
        ends = [one.words[-1] for one in found]
        assert ends == [NAMES[v] for v in tried._telling(at[0], at[2])]
    if (lo, hi) == (1, None):
        there = tried._product(chain, 1, 2)
        starts = [one.words[-1] for one in found]
        assert starts == [NAMES[v] for v in tried._telling(there[:, 0], there[:, 2])]


def test_no_bridge_reaches_beyond_the_window() -> None:
    chain, base = bridged(4, 1, 2)
    assert not list(tried._bridges(chain, base, (0, 2), 0, None))
    assert not list(tried._bridges(chain, base, (0, 2), None, 5))
    assert list(tried._bridges(chain, base, (0, 2), 1, 4))
    assert list(tried._bridges(chain, base, (0, 2), None, 4))


def test_nobody_knows_what_never_happens() -> None:
    chain = MarkovChain(np.stack([HOLES, ONE, ONE]), states=NAMES, start=np.eye(3)[0])
    base = _Candidate(chain, 0, 2, (), "")
    found = [one.words for one in tried._bridges(chain, base, (0, 1), 1, None)]
    assert found == ["entry 1 is b"]


def test_known_entries_lie_on_both_sides_or_on_one() -> None:
    chain = MarkovChain(ONE, states=NAMES, length=50)
    window = tried._window(chain, 0, 49, LAW)
    assert window is not None
    known = [one.known for one in tried._bridged(chain, _Candidate(window, 0, 25, (), ""), (0, 1))]
    expected = []
    for d in (2, 3, 4, 6, 8, 12, 20):
        expected += [(25 - d, 25 + d), (25 + d,), (25 - d,)]
    assert list(dict.fromkeys(known)) == expected
