"""Which adversary a witness names: the one to whom it leaks most, as its own chain says."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from takifugu.costs import Cost
from takifugu.numeric import Floats
from takifugu.priors.markov import MarkovChain
from takifugu.priors.secrets import Secrets
from takifugu.translation.bounds import Binding, Bound, TransportBound, Witness
from takifugu.translation.chain import adversary_witness as tried
from takifugu.translation.chain.adversary_witness import _Candidate
from takifugu.translation.chain.binary_transport import BinaryTransport
from takifugu.translation.chain.chain_transport import ChainTransport
from takifugu.translation.entry_costs import EntryCosts

pytestmark = pytest.mark.nightly

UNIT = 2.0**-53
ONE = np.array([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3], [0.25, 0.2, 0.55]])
TWO = np.array([[0.2, 0.2, 0.6], [0.3, 0.1, 0.6], [0.1, 0.8, 0.1]])
LAW = np.array([0.2, 0.5, 0.3])
FLIP = np.array([[0.7, 0.3], [0.4, 0.6]])


@pytest.mark.parametrize(
    ("known", "leaks", "best", "asked"),
    [
        ("any", {"one": 0.5, "two": 0.7, "three": 0.7, "four": 0.6, "five": 0.9}, "five", ["two"]),
        ("any", {"one": 0.5, "two": 0.7, "three": None, "four": None, "five": 0.7}, "two", ["two"]),
        ("any", {"one": 0.8, "two": 0.7, "three": 0.7, "four": 0.9, "five": 0.9}, "four", ["one"]),
        ("none", {"one": 0.5, "two": 0.7, "three": 0.6, "four": 2.0, "five": 2.0}, "two", []),
        ("any", {"one": None, "two": None, "three": 0.0, "four": 2.0, "five": 2.0}, "", []),
    ],
)
def test_the_strongest_is_kept(
    known: str,
    leaks: dict[str, float | None],
    best: str,
    asked: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options = {"known": "any"} if known == "any" else {}
    chain = MarkovChain(ONE, length=5, **options)  # type: ignore[arg-type]
    bound = Bound(1.0, Binding("0", "1", entry=3))
    bases: list[str] = []

    def listed(*words: str) -> Iterator[_Candidate]:
        return (_Candidate(chain, 0, 3, (), word) for word in words)

    def plain(of: MarkovChain, centre: int, given: Bound, start: object) -> Iterator[_Candidate]:
        assert (of, centre, given, start) == (chain, 3, bound, None)
        return listed("one", "two", "three")

    def bridged(of: MarkovChain, base: _Candidate, pair: tuple[int, int]) -> Iterator[_Candidate]:
        assert (of, pair) == (chain, (0, 2))
        bases.append(base.words)
        return listed("four", "five")

    def witness(one: _Candidate, secrets: Secrets, charged: float, given: Bound) -> Witness | None:
        assert (secrets.entries, charged, given) == (None, 0.5, bound)
        leak = leaks[one.words]
        return None if leak is None else Witness(leak, None, against=one.words)

    monkeypatch.setattr(tried, "_plain", plain)
    monkeypatch.setattr(tried, "_bridged", bridged)
    monkeypatch.setattr(tried, "_witness", witness)
    found = tried.strongest_witness(chain, Secrets(), 0.5, bound)
    assert found.against == best and bases == asked
    if not best:
        assert (found.leak, found.binding) == (0.0, bound.binding)


CHAINS = {
    "three states": MarkovChain(np.stack([ONE, TWO, ONE]), start=LAW),
    "two states": MarkovChain(np.stack([FLIP] * 3), start=np.array([0.5, 0.5])),
}


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("charged", ["each", "all", "costs"])
def test_a_witness_is_that_of_the_chain_that_the_adversary_holds(name: str, charged: str) -> None:
    """Entries 3 to 6, the secret about 5; 4 is known, so that its loss reveals nothing."""
    chain = CHAINS[name]
    last = str(len(chain.states) - 1)
    candidate = _Candidate(chain, 3, 5, (4,), "entry 4 is 0")
    bound = Bound(2.0, Binding("0", last, entry=5))
    near = Bound(2.0, Binding("0", last, entry=2))
    inside = Secrets(entries=(2,))
    inner: TransportBound = (
        BinaryTransport(chain, inside) if last == "1" else ChainTransport(chain, inside)
    )
    every = np.arange(10) / 8
    if charged == "each":
        found = tried._witness(candidate, Secrets(), every, bound)
        expected = inner.witness(np.array([3 / 8, 0.0, 5 / 8, 6 / 8]), near)
    elif charged == "all":
        found = tried._witness(candidate, Secrets(), 0.5, bound)
        expected = inner.witness(np.array([0.5, 0.0, 0.5, 0.5]), near)
    else:
        costs = tuple(Cost.any(float(e)) for e in every)
        found = tried._witness(candidate, Secrets(), EntryCosts(by_entry=costs), bound)
        own = (costs[3], Cost(), costs[5], costs[6])
        expected = inner.valued_witness(EntryCosts(by_entry=own), near)
    assert found is not None and found.binding is not None and expected.binding is not None
    assert found.binding == replace(expected.binding, entry=5)
    assert found.entries == (3, 4, 5, 6) and found.against == "entry 4 is 0"
    assert found.factors is not None and expected.factors is not None
    assert (found.factors == expected.factors).all() and (found.factors[1] == 1).all()
    rounding = 16 * 6**2 * (len(chain.states) + 4) * UNIT
    assert 0.75 * rounding < expected.leak - found.leak < 1.3 * rounding


def test_what_cannot_be_tried_has_no_witness() -> None:
    chain, bound = CHAINS["three states"], Bound(2.0)
    open_ = _Candidate(replace(chain, known="any"), 0, 1, (), "")
    assert tried._witness(open_, Secrets(), 0.5, bound) is None
    either = EntryCosts((Cost.any(0.5), Cost.any(0.25)))
    candidate = _Candidate(chain, 0, 1, (), "")
    assert tried._witness(candidate, Secrets(), either, bound) is None
    one = tried._witness(candidate, Secrets(), EntryCosts((Cost.any(0.5),)), bound)
    assert one is not None and one.leak > 0
    alone = MarkovChain(ONE, start=LAW, length=1)
    nothing = tried._witness(_Candidate(alone, 4, 4, (), ""), Secrets(), np.ones(3), bound)
    assert nothing is not None and nothing.leak == 0.0  # what is not listed lost nothing


def same(one: _Candidate, chain: MarkovChain | None, first: int, centre: int, words: str) -> bool:
    assert chain is not None
    start: Floats = np.asarray(chain.start)
    return (
        (one.first, one.centre, one.known, one.words) == (first, centre, (), words)
        and np.array_equal(np.asarray(one.chain.start), start)
        and np.array_equal(one.chain.transition, chain.transition)
    )


@pytest.mark.parametrize("binding", [None, Binding("0", "2", entry=7)])
@pytest.mark.parametrize("at", [5, 60, 61])
def test_a_start_that_is_given_is_tried_first(binding: Binding | None, at: int) -> None:
    chain = MarkovChain(ONE, start="unknown", length=100)
    bound = Bound(1.0, binding)
    first, *others = tried._plain(chain, 7, bound, (at, LAW))
    if at <= 60:
        words = tried._in_words(chain, 0, LAW)
        assert same(first, tried._window(chain, 0, min(at + 60, 99), LAW), 0, at, words)
    else:
        others = [first, *others]
    centre = 50 if binding is None else at
    expected = list(tried._starts(chain, centre, (0, 2)))
    assert len(others) == len(expected)
    for one, (law, begin, words) in zip(others, expected, strict=True):
        window = tried._window(chain, begin, min(centre + 60, 99), law)
        assert same(one, window, begin, centre, words)


def test_starts_too_rare_for_a_float_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = MarkovChain(ONE, start="unknown", length=100)
    laws = [(np.array([1.0, 1e-200, 0.0]), 0, "rare"), (LAW, 0, "fine")]
    monkeypatch.setattr(tried, "_starts", lambda *_: iter(laws))
    found = list(tried._plain(chain, 7, Bound(1.0), (5, laws[0][0])))
    assert [one.words for one in found] == ["fine"]
    assert [one.centre for one in tried._plain(chain, 7, Bound(1.0), None)] == [7]


def test_bridges_too_rare_for_a_float_are_left_out() -> None:
    rare = np.array([[0.5, 0.5, 1e-120], [0.1, 0.6, 0.3], [0.25, 0.2, 0.55]])
    for steps in ([ONE, ONE, rare, ONE], [ONE] * 4):
        chain = MarkovChain(np.stack(steps), start=LAW)
        base = _Candidate(chain, 0, 1, (), "")
        found = list(tried._bridges(chain, base, (0, 1), 0, None))
        assert bool(found) == (steps[2] is ONE)
        assert all("and" not in one.words for one in found)
    late = MarkovChain(np.stack([ONE] * 6), start=np.eye(3)[0])
    part = _Candidate(replace(late, transition=np.stack([ONE] * 4), length=None), 2, 4, (), "")
    assert [one.words for one in tried._bridges(late, part, (0, 1), 2, None)] == ["entry 2 is 0"]
    beside = list(tried._bridges(late, part, (0, 1), None, 5))
    assert beside and all(one.words.startswith("entry 5 is") for one in beside)
