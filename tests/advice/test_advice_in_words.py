"""The parts of advice on a prior: what is said and written, what is tried, and for how long."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from takifugu.advice import PriorAdvice, advise
from takifugu.advice.prior_advice import FitEvidence, best_of_each_kind
from takifugu.advice.remedies import Remedy
from takifugu.priors import MarkovChain
from takifugu.translation import Translation
from takifugu.translation.bounds import Binding

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
    assert best_of_each_kind(found) == [found[0], found[2]]


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


def test_several_priors_are_priced_without_a_change() -> None:
    stubborn = Translation(MarkovChain(np.array([[0.9, 0.1], [0.2, 0.8]]), known="any"))
    advice = advise(stubborn, 1.0, seconds=0.0)
    assert advice.without.startswith(", against somebody who knows no entry")
    assert advise(CHAIN, 1.0, seconds=0.0).without == ""
