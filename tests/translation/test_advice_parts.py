"""The parts of advice on a prior: what is said and written, what is tried, and for how long."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from takifugu.errors import InvalidPrior, UnsoundRequest
from takifugu.losses import Total
from takifugu.priors import MarkovChain, Secrets
from takifugu.priors.chain_changes import ChainSteps
from takifugu.priors.interval_chain import IntervalMarkovChain
from takifugu.priors.random_field import MarkovRandomField
from takifugu.translation import Translation, prior_advice, remedies
from takifugu.translation.accounting.tabled_translation import TabledTranslation
from takifugu.translation.accounting.translation_table import tabulate_at
from takifugu.translation.bounds import Binding
from takifugu.translation.nothing_allowed import ANY, SECONDS, why_nothing
from takifugu.translation.prior_advice import (
    FitEvidence,
    PriorAdvice,
    _priced,
    _steps,
    _the_prior,
    advise,
    shown,
    slow_states,
)
from takifugu.translation.remedies import (
    Remedy,
    _allowed,
    _Change,
    _lengths,
    _merges,
    _pairs,
    found_remedies,
    times_words,
)
from tests.raising import raises

pytestmark = pytest.mark.nightly

STICKY = np.array([[0.9, 0.1, 0.0], [0.1, 0.8, 0.1], [0.0, 0.001, 0.999]])
CHAIN = MarkovChain(STICKY, states=("a", "b", "c"))
NAMES = (("a", 1), ("b", 2), ("c", 3), ("d", 4), ("e", 9))


def test_evidence_as_a_document() -> None:
    plain = FitEvidence(12, "steps")
    assert plain.document() == {
        "counted": 12, "unit": "steps", "people": None, "rows": None, "hardly_seen": {},
        "never_left": [], "few_people": None,
    }  # fmt: skip
    full = FitEvidence(12, "steps", 3, 40, NAMES[:2], ("z",), NAMES[:1], 2)
    assert full.document() == {
        "counted": 12, "unit": "steps", "people": 3, "rows": 40, "hardly_seen": {"a": 1, "b": 2},
        "never_left": ["z"], "few_people": {"a": 1},
    }  # fmt: skip
    assert FitEvidence(1, "rows", few=()).document()["few_people"] == {}


@pytest.mark.parametrize(
    ("evidence", "words"),
    [
        (FitEvidence(1200, "steps"), "It rests on 1,200 steps."),
        (FitEvidence(9, "steps", 3, 1040), "It rests on 9 steps of 3 people (1,040 rows)."),
        (FitEvidence(9, "rows", rows=9), "It rests on 9 rows."),
        (
            FitEvidence(9, "steps", rare=NAMES[:3]),
            "It rests on 9 steps. It hardly saw 'a' (1×), 'b' (2×), 'c' (3×).",
        ),
        (
            FitEvidence(9, "steps", rare=NAMES),
            "It rests on 9 steps. It hardly saw 'a' (1×), 'b' (2×), 'c' (3×), 2 more.",
        ),
    ],
)
def test_evidence_in_words(evidence: FitEvidence, words: str) -> None:
    assert evidence.words == words and evidence.few_words == ""


@pytest.mark.parametrize(
    ("few", "at_least", "words"),
    [
        (NAMES[:1], None, "1 state rests on fewer than 5 people: 'a' (1); its row of the matrix"
         " shows what these did, and it is published: count rare labels as one (a map in the"
         " declaration)."),
        (NAMES[:3], 2, "3 states rest on fewer than 5 people: 'a' (1), 'b' (2), 'c' (3); their"
         " rows of the matrix show what these did, and it is published: count rare labels as one"
         " (a map in the declaration) or fit with --at-least 5."),
        (NAMES, 7, "5 states rest on fewer than 5 people: 'a' (1), 'b' (2), 'c' (3), 2 more; their"
         " rows of the matrix show what these did, and it is published: count rare labels as one"
         " (a map in the declaration) or fit with --at-least 8."),
    ],
)  # fmt: skip
def test_states_that_rest_on_few_people(few: Any, at_least: int | None, words: str) -> None:
    evidence = FitEvidence(9, "steps", few=few, at_least=at_least)
    assert evidence.few_words == words
    assert evidence.words == f"It rests on 9 steps. {words}"


def remedy(kind: Any, allowed: float, factor: float = 2.0) -> Remedy:
    return Remedy(kind, f"{kind} it", ("a",), allowed, factor)


def test_what_would_help_in_words() -> None:
    nothing = PriorAdvice(1.0, None)
    assert nothing.words == ""
    assert replace(nothing, evidence=FitEvidence(9, "steps")).words == "It rests on 9 steps."
    assert PriorAdvice(0.5, 0.0).words == "A Pufferfish ε of 0.5 allows nothing."
    assert PriorAdvice(1.0, 0.25, without=", so to say").words == (
        "A Pufferfish ε of 1 allows 0.25 per row, so to say."
    )
    one = PriorAdvice(1.0, 0.25, tried=1)
    assert one.words.endswith(" None of 1 change that were computed would allow much more.")
    several = PriorAdvice(1.0, 0.25, tried=2, untried=3)
    assert several.words.endswith(
        " None of 2 changes that were computed would allow much more, 3 more would take too long."
    )
    found = (remedy("pairs", 0.5), remedy("pairs", 0.4), remedy("merge", 0.3, np.inf))
    helped = PriorAdvice(1.0, 0.25, remedies=found, tried=4)
    assert helped.words.endswith(
        " What would allow more (4 changes computed):"
        " pairs it: 0.5 (2 times as much); merge it: 0.3."
    )
    assert shown(found) == [found[0], found[2]]


def test_states_that_are_hardly_left_are_named_those_of_the_pair_first() -> None:
    slow = (("w", 1e-5), ("x", 1e-4), ("y", 1e-3), ("z", 5e-3))
    unseen = FitEvidence(9, "steps", unseen=("z",))
    advice = PriorAdvice(1.0, 0.5, Binding("z", "q"), slow, evidence=unseen)
    assert advice._slowness == [
        "; 'z' is left with probability 0.005 per step (never in the rows that were counted)",
        "; 'w' is left with probability 1e-5 per step",
        "; 'x' is left with probability 0.0001 per step",
    ]
    assert PriorAdvice(1.0, 0.5, slow=slow[:1])._slowness == [
        "; 'w' is left with probability 1e-5 per step"
    ]
    said = "The expensive pair is 'z' and 'q'" + "".join(advice._slowness) + "."
    assert advice._price.endswith(said)


def test_advice_as_a_document() -> None:
    full = PriorAdvice(
        1.0, 0.5, Binding("a", "b", entry=3), (("a", 0.001),), (remedy("pairs", 0.75, np.inf),),
        4, 2, FitEvidence(9, "steps"),
    )  # fmt: skip
    assert full.document() == {
        "epsilon": 1.0, "allowed": 0.5, "pair": {"entry": 3, "left": "a", "right": "b"},
        "hardly_left": {"a": 0.001}, "tried": 4, "untried": 2, "words": full.words,
        "remedies": [{"kind": "pairs", "change": "pairs it", "states": ["a"], "length": None,
                      "allowed": 0.75, "factor": None}],
        "rests_on": FitEvidence(9, "steps").document(),
    }  # fmt: skip
    least = PriorAdvice(1.0, None).document()
    assert least["pair"] is None and least["rests_on"] is None and least["remedies"] == []
    assert remedy("pairs", 0.75, 1.5).document()["factor"] == 1.5


@pytest.mark.parametrize(
    ("factor", "words"),
    [(9.99, "9.9"), (10.0, "10"), (10.9, "10"), (1.0, "1"), (12345.6, "12,345")],
)
def test_how_many_times_as_much(factor: float, words: str) -> None:
    assert times_words(factor) == f"{words} times as much"


def test_states_that_are_hardly_left_the_stickiest_first() -> None:
    assert slow_states(CHAIN) == (("c", 0.001),)
    table = np.array([[0.995, 0.005, 0.0], [0.0, 0.999, 0.001], [0.02, 0.01, 0.97]])
    assert slow_states(MarkovChain(table)) == (("1", 0.001), ("0", 0.005))
    edge = np.array([[0.99, 0.01], [0.5, 0.5]])
    assert slow_states(MarkovChain(edge)) == ()
    assert slow_states(MarkovChain(np.ones((1, 1)))) == ()
    low = np.array([[0.995, 0.001], [0.05, 0.8]])
    assert slow_states(IntervalMarkovChain(low, low + 0.004 + [[0, 0], [0.15, 0.15]])) == ()


def ising(nodes: int) -> MarkovRandomField:
    return MarkovRandomField.ising(dict.fromkeys(range(nodes), 0.0), {(0, 1): 0.5})


def test_what_is_priced() -> None:
    assert _priced(Translation(CHAIN), CHAIN)
    assert _priced(Translation(ising(12)), ising(12))
    assert not _priced(Translation(ising(13)), ising(13))
    assert not _priced(Translation([CHAIN, CHAIN]), None)
    assert _the_prior(Translation(CHAIN)) is CHAIN
    assert _the_prior(Translation([CHAIN, CHAIN])) is None
    none: Any = object()
    assert _the_prior(none) is None
    unpriced = advise(Translation(ising(13)), evidence=FitEvidence(9, "rows"))
    assert unpriced == PriorAdvice(1.0, None, evidence=FitEvidence(9, "rows"))


def test_steps_are_those_given_if_they_are_of_the_same_states() -> None:
    given = ChainSteps.of(MarkovChain(np.eye(3) * 0.4 + 0.2, states=("a", "b", "c")))
    assert _steps(CHAIN, given) is given
    own = _steps(CHAIN, None)
    assert own is not None and own.chain is CHAIN
    other = _steps(MarkovChain(STICKY), given)
    assert other is not None and other.chain.states == (0, 1, 2)
    assert _steps(ising(3), given) is None
    varying = MarkovChain(np.stack([STICKY, STICKY[::-1]]), start=np.full(3, 1 / 3))
    assert _steps(varying, None) is None
    pairs = tuple((x, y) for x in (0, 1) for y in (0, 1))
    joint = MarkovChain(np.full((4, 4), 0.25), states=pairs, columns=("x", "y"))
    assert _steps(joint, None) is None


@pytest.mark.parametrize(("states", "seconds"), [(3, 20.0), (12, 20.0), (13, 4.0)])
def test_changes_of_few_states_are_given_more_time(
    states: int, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}
    said: list[str] = []

    def found(translation: Any, epsilon: float, allowed: float, **given: Any) -> Any:
        asked.update(given, translation=translation, epsilon=epsilon, allowed=allowed)
        return (remedy("pairs", 0.5),), 3, 4

    monkeypatch.setattr(prior_advice, "found_remedies", found)
    chain = MarkovChain(np.full((states, states), 1 / states))
    evidence = FitEvidence(9, "steps", rare=(("1", 3), ("2", 4)))
    advice = advise(chain, 0.5, evidence=evidence, lengths=(7,), progress=said.append)
    assert asked["seconds"] == seconds and asked["lengths"] == (7,) and asked["sticky"] == []
    assert asked["epsilon"] == 0.5 and said == ["pricing the prior"]
    assert asked["allowed"] == advice.allowed == float(Translation(chain).to_dp(0.5))
    assert (advice.tried, advice.untried, advice.remedies) == (3, 4, (remedy("pairs", 0.5),))
    assert advice.pair == asked["pair"] is not None and advice.evidence is evidence
    advise(CHAIN, 0.5, seconds=0.0)
    assert asked["seconds"] == 0.0 and asked["sticky"] == ["c"]


def test_several_priors_are_priced_without_a_change() -> None:
    stubborn = Translation(MarkovChain(np.array([[0.9, 0.1], [0.2, 0.8]]), known="any"))
    advice = advise(stubborn, 1.0, seconds=0.0)
    assert advice.without.startswith(", against somebody who knows no entry")
    assert advise(CHAIN, 1.0, seconds=0.0).without == ""


def changes(monkeypatch: pytest.MonkeyPatch, allowed: list[float | None]) -> list[Any]:
    """Changes that allow so much, one after the other."""
    kinds: Any = ["pairs", "merge", "length", "pairs"]
    made: list[Any] = []
    for k, more in enumerate(allowed):
        answer: Any = None if more is None else SimpleNamespace(to_dp=lambda *_, m=more: m)
        made.append(_Change(kinds[k % 4], f"change {k}", (str(k),), lambda a=answer: a, k))  # type: ignore[misc]
    monkeypatch.setattr(remedies, "_changes", lambda *_: iter(made))
    return made


def remedied(allowed: float, lengths: tuple[int, ...] = (), seconds: float = 1e9) -> Any:
    said: list[str] = []
    none: Any = None
    found, tried, untried = found_remedies(
        none, 1.0, allowed, steps=None, sticky=(), pair=None, lengths=lengths,
        seconds=seconds, progress=said.append,
    )  # fmt: skip
    return [(one.change, one.allowed, one.factor) for one in found], tried, untried, said


def test_changes_are_told_if_they_allow_a_tenth_more(monkeypatch: pytest.MonkeyPatch) -> None:
    changes(monkeypatch, [1.0, 1.2, None, 1.125, np.inf, 0.5, 4.0])
    found, tried, untried, said = remedied(1.0)
    assert found == [("change 6", 4.0, 4.0), ("change 1", 1.2, 1.2), ("change 3", 1.125, 1.125)]
    assert (tried, untried) == (7, 0)
    assert said[0] == "change 0 (1 of 7)" and said[-1] == "change 6 (7 of 7)"
    found, *_ = remedied(0.0)
    assert ("change 5", 0.5, np.inf) in found and len(found) == 5
    changes(monkeypatch, [1.0, 1.0])
    assert remedied(1.0)[0] == []
    assert remedied(0.0)[0] == [("change 0", 1.0, np.inf), ("change 1", 1.0, np.inf)]


def test_a_bound_that_all_sequences_keep_to_is_told_first(monkeypatch: pytest.MonkeyPatch) -> None:
    changes(monkeypatch, [3.0, 4.0, 2.0])
    assert [name for name, *_ in remedied(1.0, (5,))[0]] == ["change 2", "change 1", "change 0"]
    assert [name for name, *_ in remedied(1.0)[0]] == ["change 1", "change 0", "change 2"]


def test_one_change_is_tried_in_any_case(monkeypatch: pytest.MonkeyPatch) -> None:
    changes(monkeypatch, [2.0, 3.0, 4.0])
    monkeypatch.setattr(remedies, "process_time", iter([0.0, 5.0, 5.5]).__next__)
    found, tried, untried, _ = remedied(1.0, seconds=5.0)
    assert (tried, untried) == (2, 1) and len(found) == 2


def test_a_change_that_takes_long_is_told_by_the_group_alone() -> None:
    asked: list[str] = []

    def to_dp(_: float, method: str) -> float:
        asked.append(method)
        return 0.5

    def made() -> Any:
        return SimpleNamespace(to_dp=to_dp)

    assert _allowed(_Change("length", "", (), made, 5, quick=False), 1.0) == 0.5
    assert _allowed(_Change("length", "", (), made, 5), 1.0) == 0.5
    assert asked == ["group", "best"]

    def refused() -> Any:
        raise InvalidPrior("start", given="is none", needed="be one")

    assert _allowed(_Change("pairs", "", (), refused), 1.0) is None


def pairs_of(sticky: tuple[str, ...], pair: Binding | None, secrets: Secrets) -> list[Any]:
    found = _pairs(Translation(CHAIN, secrets), CHAIN, sticky, pair)
    made: list[Any] = [(change.words, change.states, change.make()) for change in found]
    return [(words, states, translation.secrets.pairs) for words, states, translation in made]


def test_pairs_that_need_not_be_protected() -> None:
    at = Binding("c", "a")
    a_b, a_c, b_c = ((("a",), ("b",)), (("a",), ("c",)), (("b",), ("c",)))
    apart = ("do not protect 'c' against 'a'", ("c", "a"), (a_b, b_c))
    state = ("do not protect whether a row is 'c'", ("c",), (a_b,))
    assert pairs_of((), at, Secrets()) == [apart]
    assert pairs_of(("b", "c"), at, Secrets()) == [state, apart]
    assert pairs_of(("c", "a"), at, Secrets())[0] == state
    assert pairs_of(("c",), None, Secrets()) == []
    assert pairs_of((), at, Secrets(pairs=(a_c,))) == []  # nothing would be left
    assert pairs_of((), Binding("a", "z"), Secrets()) == []  # no such pair is protected
    wide = Secrets(pairs=((("a", "b"), ("c",)), a_b))
    assert pairs_of((), Binding("a|b", "c"), wide)[0][2] == (a_b,)
    assert pairs_of(("c",), Binding("a|b", "c"), wide)[0][2] == (a_b,)


def lengths_of(prior: Any, lengths: tuple[int, ...], **more: Any) -> list[tuple[str, int, bool]]:
    found = _lengths(Translation(prior, **more), prior, lengths)
    return [(change.words, change.length or 0, change.quick) for change in found]


def test_shorter_sequences() -> None:
    said = "sequences of at most {} rows each, {} (--length {})".format
    assert lengths_of(CHAIN, ()) == [
        (said(100, "if none is longer", 100), 100, True),
        (said(10, "if none is longer", 10), 10, True),
    ]
    assert lengths_of(CHAIN, (7, 7, 0, 1)) == [
        (said(7, "the longest here", 7), 7, True),
        ("sequences of one row each, the longest here (--length 1)", 1, True),
    ]
    short = replace(CHAIN, length=7)
    assert [length for _, length, _ in lengths_of(short, (8, 7, 6))] == [6]
    (change,) = _lengths(Translation(short), short, (6,))
    made = change.make()
    assert made is not None and made.size == 6
    assert lengths_of(CHAIN, (7,), secrets=Secrets(entries=(0,))) == []
    assert lengths_of(ising(3), (2,)) == []
    assert [quick for *_, quick in lengths_of(CHAIN, (600, 700))] == [True, False]


def test_of_two_states_the_rarer_counts_as_the_other() -> None:
    steps = ChainSteps.of(CHAIN)
    weight = np.array([[0.0, 1.0, 9.0], [1.0, 0.0, 8.0], [9.0, 8.0, 0.0]])
    law = dict(zip("abc", CHAIN.stationary.tolist(), strict=True))
    found: list[Any] = list(_merges(Translation(CHAIN), steps, weight))
    assert len(found) == 3
    for change in found:
        kept, gone = change.states
        assert law[kept] >= law[gone]
        assert change.words == f"count '{kept}' and '{gone}' as one" and change.kind == "merge"
        (prior,) = change.make().priors.values()
        assert prior.states == tuple(name for name in "abc" if name != gone)
    secrets = Secrets(pairs=((("a",), ("b",)),))
    only: list[Any] = list(_merges(Translation(CHAIN, secrets), steps, weight))
    none = [change.states for change in only if change.make() is None]
    assert [{*states} for states in none] == [{"a", "b"}]


def test_why_nothing_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    import takifugu.translation.nothing_allowed as module

    asked: list[Any] = []
    slow = (("a", 0.0), ("b", 0.001), ("c", 0.002), ("d", 0.003))

    def answered(advice: PriorAdvice) -> Callable[..., PriorAdvice]:
        def answer(translation: Any, epsilon: float, *, seconds: float) -> PriorAdvice:
            asked.append((translation, epsilon, seconds))
            return advice

        return answer

    advice = PriorAdvice(
        1.0, 0.0, slow=slow, remedies=(remedy("pairs", 0.5), remedy("merge", 0.25))
    )
    monkeypatch.setattr(module, "advise", answered(advice))
    plain = Translation(MarkovChain(np.array([[0.9, 0.1], [0.2, 0.8]]), length=3))
    words, needed = why_nothing(plain, 1.0)
    assert needed is advice and asked == [(plain, 1.0, SECONDS)]
    assert words == (
        "state 'a' is never left; state 'b' is left with probability 0.001 per step; state 'c' is"
        " left with probability 0.002 per step; what would leave some, computed:"
        " pairs it: 0.5 (2 times as much); or merge it: 0.25 (2 times as much)"
    )
    tabled = TabledTranslation(plain, tabulate_at(plain, [0.1, 0.2]))
    assert why_nothing(tabled, 1.0)[1] is advice and asked[-1][0] is plain
    monkeypatch.setattr(module, "advise", answered(PriorAdvice(1.0, 0.0)))
    assert why_nothing(plain, 1.0) == (ANY, None)
    for nothing in (0.0, np.inf, np.nan):
        assert why_nothing(plain, nothing) == (ANY, None)

    def refuses(*_: Any, **__: Any) -> Any:
        raise UnsoundRequest("no", field="prior")

    monkeypatch.setattr(module, "advise", refuses)
    assert why_nothing(plain, 1.0) == (ANY, None)
    unsure = replace(plain, uncertainty=0.2)
    least = np.log(1.2 / 0.8)
    words, told = why_nothing(unsure, 0.4)
    assert told == pytest.approx(least) and words.startswith("an uncertainty of 0.2 alone counts")
    assert why_nothing(unsure, float(told or 0)) == (words, told)  # type: ignore[arg-type]
    assert why_nothing(unsure, 0.5) == (ANY, None)


def test_a_table_of_a_translation_answers_what_it_holds() -> None:
    plain = Translation(MarkovChain(np.array([[0.9, 0.1], [0.2, 0.8]]), length=3))
    table = tabulate_at(plain, [0.1, 0.2, 0.4])
    tabled = TabledTranslation(plain, table)
    assert tabled.least == table.loss[0] and tabled.computed is plain
    assert tabled.fingerprint == table.fingerprint and tabled.every_pair
    assert tabled.to_pufferfish(0.4) == table.loss[-1]
    assert tabled.to_pufferfish(0.3) == table.loss[-1] > plain.to_pufferfish(0.3)
    assert tabled.to_pufferfish(0.5) == plain.to_pufferfish(0.5)
    assert tabled.to_dp(float(table.loss[0])) == 0.1
    below = float(table.loss[0]) / 2
    assert tabled.to_dp(below) == 0 and tabled.to_dp(0.0) == 0
    computed = TabledTranslation(plain, table, least=0.0)
    assert computed.least == 0 and computed.to_dp(below) == plain.to_dp(below) > 0
    assert computed.to_dp(0.0) == 0
    for wrong in (-1.0, np.nan):
        with raises(UnsoundRequest, field="table"):
            computed.to_dp(wrong)
    far = Total(Fraction(1))
    assert tabled.total_to_pufferfish(far, Fraction(0)) == plain.to_pufferfish(1.0)
    near = Total(Fraction(3, 10))
    assert tabled.total_to_pufferfish(near, Fraction(0)) == table.loss[-1]
