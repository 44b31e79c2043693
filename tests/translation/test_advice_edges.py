"""Advice on a prior at its edges: what is priced, against whom, and which changes are possible."""

import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from takifugu.priors import MarkovChain, Secrets
from takifugu.priors.chain_changes import ChainSteps
from takifugu.priors.random_field import MarkovRandomField
from takifugu.translation import Translation, remedies
from takifugu.translation.bounds import Binding
from takifugu.translation.prior_advice import FitEvidence, PriorAdvice, _priced, advise
from takifugu.translation.remedies import (
    Remedy,
    _Change,
    _changed,
    _changes,
    _lengths,
    _pairs,
    found_remedies,
)
from takifugu.translation.rows.row_translation import RowTranslation

pytestmark = pytest.mark.nightly

STICKY = np.array([[0.9, 0.1, 0.0], [0.1, 0.8, 0.1], [0.0, 0.001, 0.999]])
MIXED = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4]])
CHAIN = MarkovChain(STICKY, states=("a", "b", "c"))
TWO = MarkovChain(np.array([[0.9, 0.1], [0.001, 0.999]]), states=("in", "out"))
AT = Binding("a", "c")


def even(states: int) -> MarkovChain:
    return MarkovChain(np.full((states, states), 1 / states))


class Row(RowTranslation):
    """A row of which hardly anything is asked."""

    priors = {"prior": CHAIN}  # noqa: RUF012

    def __init__(self, allowed: float = 0.0) -> None:
        """It allows so much."""
        self.allowed = allowed

    def to_dp(self, pufferfish: float) -> float:  # noqa: ARG002
        """What was said."""
        return self.allowed

    def by_column(self, *_: Any, **__: Any) -> Any:
        """Not asked for."""


@pytest.mark.parametrize(("given", "allowed"), [(0.25, 0.25), (np.inf, 0.0), (0.0, 0.0)])
def test_a_row_is_priced_without_a_change(given: float, allowed: float) -> None:
    evidence, said = FitEvidence(9, "rows"), list[str]()
    row: Any = Row(given)
    found = advise(row, 2.0, evidence=evidence, progress=said.append)
    slow = (("c", 0.001),)
    assert found == PriorAdvice(2.0, allowed, None, slow, evidence=evidence)
    assert said == ["pricing the prior"]


def test_a_price_by_the_curve_is_told_without_a_warning() -> None:
    """That an answer is looser is said where a release is planned."""
    begins = MarkovChain(np.array([[0.9, 0.1], [0.1, 0.9]]), start=np.array([1.0, 0.0]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (advise(begins, seconds=0.0).allowed or 0) > 0


def test_which_rows_are_priced() -> None:
    row = Row()
    assert _priced(row, CHAIN) and _priced(row, even(29)) and not _priced(row, even(30))
    assert not _priced(row, None)
    assert not _priced(row, MarkovRandomField.ising({0: 0.0, 1: 0.0}, {(0, 1): 0.5}))


def test_an_adversary_who_knows_less_keeps_secrets_and_uncertainty() -> None:
    known = MarkovChain(MIXED, start="unknown", known="any", length=4)
    secrets = Secrets(entries=(1,), pairs=(((0,), (2,)),))
    advice = advise(Translation(known, secrets, 0.05), 2.0, seconds=0.0)
    plain = Translation(MarkovChain(MIXED, length=4), secrets, 0.05)
    assert advice.allowed == float(plain.to_dp(2.0)) > 0.5 and advice.epsilon == 2.0
    assert advice.allowed < float(Translation(MarkovChain(MIXED, length=4), secrets).to_dp(2.0))
    assert advice.pair == plain.bound(advice.allowed).binding is not None


@pytest.mark.parametrize("epsilon", [0.01, 2.0])
def test_the_pair_is_told_also_where_nothing_is_allowed(epsilon: float) -> None:
    """With an uncertainty that is more than the budget, at the budget itself."""
    unsure = Translation(MarkovChain(MIXED), Secrets(entries=(1,)), 0.05)
    advice = advise(unsure, epsilon, seconds=0.0)
    assert (advice.allowed == 0) == (epsilon == 0.01)
    assert advice.pair == unsure.bound(advice.allowed or epsilon).binding is not None


def tried(chain: MarkovChain, sticky: list[str]) -> list[Any]:
    return list(_changes(Translation(chain), ChainSteps.of(chain), sticky, AT, ()))


def test_what_changes_are_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Any, ...]] = []
    allowed = iter([1.1, 1.0999, 0.0])

    def made(*given: Any) -> Any:
        asked.append(given)
        answer: Any = SimpleNamespace(to_dp=lambda *_: next(allowed))
        return iter([_Change("merge", "a change", ("a",), lambda: answer, 7)])

    monkeypatch.setattr(remedies, "_changes", made)

    def found(least: float) -> Any:
        given: dict[str, Any] = {"steps": "steps", "sticky": ["s"], "pair": AT}
        whatever: Any = "translation"
        return found_remedies(
            whatever, 2.0, least, lengths=(5,), seconds=9.0, progress=lambda _: None, **given
        )

    assert found(1.0) == ((Remedy("merge", "a change", ("a",), 1.1, 1.1, 7),), 1, 0)
    assert found(1.0) == ((), 1, 0)  # less than a tenth more
    assert found(0.0) == ((), 1, 0)  # nothing, as before
    assert asked == [("translation", "steps", ["s"], AT, (5,))] * 3


def test_of_two_states_none_is_merged() -> None:
    steps = ChainSteps.of(TWO)
    pair = Binding("in", "out")
    found = list(_changes(Translation(TWO), steps, ["out"], pair, ()))
    assert {change.kind for change in found} == {"length"}


def test_chains_without_one_stationary_law_are_not_merged() -> None:
    apart = MarkovChain(
        np.eye(3), start=np.array([0.2, 0.3, 0.5]), states=("a", "b", "c"), length=4
    )
    kinds = [change.kind for change in tried(apart, ["a"])]
    assert "merge" not in kinds and "pairs" in kinds
    assert "merge" in [change.kind for change in tried(CHAIN, ["a"])]


def test_the_best_of_each_kind_comes_first() -> None:
    kinds = [change.kind for change in tried(CHAIN, ["c"])]
    assert kinds[:3] == ["length", "pairs", "merge"]
    steps = ChainSteps.of(CHAIN)
    known = list(_changes(Translation(CHAIN), steps, ["c"], AT, (7,)))
    assert [change.kind for change in known][:3] == ["length", "pairs", "merge"]
    nothing = list(_changes(Translation(CHAIN), None, ["c"], None, ()))
    assert [change.kind for change in nothing] == ["length", "length"]


@pytest.mark.parametrize(("states", "listed"), [(48, 1), (49, 0)])
def test_pairs_of_many_states_are_not_listed(states: int, listed: int) -> None:
    chain = even(states)
    assert len(list(_pairs(Translation(chain), chain, (), Binding("0", "1")))) == listed


def test_a_change_keeps_all_else() -> None:
    before = Translation(CHAIN, uncertainty=0.05, tolerance=0.01, max_exposed=2)
    after = _changed(before, TWO, Secrets(entries=(1,)))
    assert after.prior is TWO and after.secrets == Secrets(entries=(1,))
    assert (after.uncertainty, after.tolerance, after.max_exposed) == (0.05, 0.01, 2)


def test_sequences_whose_steps_differ_and_networks_are_left_as_they_are() -> None:
    varying = MarkovChain(np.stack([STICKY, STICKY[::-1]]), start=np.full(3, 1 / 3))
    assert list(_lengths(Translation(varying), varying, (2, 1))) == []
    field = MarkovRandomField.ising({0: 0.0, 1: 0.0}, {(0, 1): 0.5})
    assert list(_pairs(Translation(field), field, ("0",), Binding("0", "1"))) == []


def test_one_more_state_than_is_shown_is_counted() -> None:
    few = (("a", 1), ("b", 2), ("c", 3), ("d", 4))
    assert "4 states rest on fewer than 5 people: 'a' (1), 'b' (2), 'c' (3), 1 more;" in (
        FitEvidence(9, "steps", few=few).few_words
    )
