"""The verdict on a mechanism against brute force: every order of outputs, in fractions."""

import json
import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from takifugu.errors import TooLarge
from takifugu.finite.files import parse_world
from takifugu.finite.files.world_file import WorldFile
from takifugu.finite.mechanism import FiniteMechanism
from takifugu.finite.verdict import MechanismVerdict, judge
from takifugu.finite.world import World
from tests.raising import raises

RUNS = 3
TWICE = "[0.5, 0.5], [0.5, 0.5]"


@st.composite
def laws(draw: st.DrawFn, size: int) -> list[str]:
    """A distribution in fractions; zeros are likely."""
    parts = draw(st.lists(st.integers(0, 4), min_size=size, max_size=size).filter(any))
    return [f"{part}/{sum(parts)}" for part in parts]


@st.composite
def files(draw: st.DrawFn) -> WorldFile:
    """Four datasets, two secrets, one or two priors, a mechanism with two or three outputs."""
    outputs = draw(st.integers(2, 3))
    given_secret = [draw(laws(2)) + draw(laws(2)) for _ in range(draw(st.integers(1, 2)))]
    document: dict[str, Any] = {
        "entries": {"s": [0, 1], "other": [0, 1]},
        "prior": [{"probability": [halved(p) for p in prior]} for prior in given_secret],
        "pair": [{"entries": ["s"]}],
        "mechanism": [{"rows": [draw(laws(outputs)) for _ in range(4)]}],
    }
    return parse_world(json.dumps(document), form="json")


def world(extra: str) -> WorldFile:
    return parse_world(
        '{"entries": {"s": [0, 1], "o": [0, 1]}, "pair": [{"entries": ["s"]}],' + extra + "}",
        form="json",
    )


SWAP = world(
    '"prior": [{"probability": ["1/6", "1/3", "1/6", "1/3"]}], "mechanism": [{"rows":'
    '[["1/3", "2/3", 0, 0], [0, 0, "1/3", "2/3"], ["1/3", 0, "2/3", 0], [0, "1/3", 0, "2/3"]]}]'
)


def halved(text: str) -> str:
    """Half of a fraction, written as a fraction."""
    value = Fraction(text) / 2
    return f"{value.numerator}/{value.denominator}"


def losses(world: World, mechanism: FiniteMechanism, runs: int) -> Iterator[float]:
    """The loss of every sequence of outputs, for every pair and prior; infinite counts."""
    table = [[Fraction(float(x)) for x in row] for row in mechanism.likelihood]
    for prior in world.weights:
        weight = [Fraction(float(x)) for x in prior]
        for pair in world.pairs:
            for seen in product(range(len(mechanism.outputs)), repeat=runs):
                sides = []
                for secret in (pair.left, pair.right):
                    rows = [d for d, true in enumerate(world.mask(secret)) if true]
                    probability = sum(
                        weight[d] * math.prod(table[d][w] for w in seen) for d in rows
                    )
                    sides.append(probability / sum(weight[d] for d in rows))
                if sides[0]:
                    yield math.log(sides[0] / sides[1]) if sides[1] else math.inf


def brute(file: WorldFile, runs: int) -> float:
    return max(0.0, max(losses(file.world, file.mechanisms[0], runs)))


@settings(max_examples=40)
@example(file=SWAP)
@given(file=files())
def test_the_loss_of_every_number_of_runs_is_what_brute_force_finds(file: WorldFile) -> None:
    (found,) = judge(file, runs=RUNS).mechanisms
    assert [step.runs for step in found.growth] == [1, 2, 3]
    for step in found.growth:
        true = brute(file, step.runs)
        assert step.attained - 1e-12 <= true <= step.epsilon + 1e-15
        assert step.epsilon == pytest.approx(true, abs=1e-9)


@settings(max_examples=40)
@example(file=SWAP)
@given(file=files())
def test_the_answer_on_composition_is_never_contradicted(file: WorldFile) -> None:
    (found,) = judge(file, runs=1).mechanisms
    whole = found.composition
    true = {k: brute(file, k) for k in (1, 2, 3)}
    beaten = any(true[k] > k * true[1] + 1e-9 for k in (2, 3))
    assert (whole.linear == "void") == math.isinf(true[1])
    assert not (beaten and whole.linear == "yes")
    assert not (beaten and whole.attack is None and whole.linear == "almost")
    for k in (1, 2, 3):
        if whole.proven_at is not None:
            assert true[k] <= k * whole.proven_at
        if whole.line is not None:
            assert true[k] <= k * whole.line[0] + whole.line[1]
    if whole.linear in ("yes", "almost"):
        assert whole.fails_below is not None
        assert whole.fails_below <= found.once.epsilon + 1e-9


@settings(max_examples=40)
@example(file=SWAP)
@given(file=files())
def test_an_attack_is_one(file: WorldFile) -> None:
    (found,) = judge(file, runs=1).mechanisms
    attack = found.composition.attack
    assert attack is None or attack.runs >= 2
    if attack is None or attack.runs > 4:
        return
    assert replay(file, found) >= attack.leakage - 1e-12
    assert replay(file, found) > attack.runs * brute(file, 1)
    if attack.fewest and attack.runs > 2:
        fewer = range(2, attack.runs)
        assert all(brute(file, k) <= k * brute(file, 1) + 1e-9 for k in fewer)


def replay(file: WorldFile, found: MechanismVerdict) -> float:
    """The loss of the attack's outputs, for its pair and prior, from scratch."""
    attack, (mechanism,) = found.composition.attack, file.mechanisms
    assert attack is not None
    names = [prior.name for prior in file.world.listed_priors]
    weight = file.world.weights[names.index(attack.prior)]
    sides = []
    for secret in (attack.pair.left, attack.pair.right):
        rows = [d for d, true in enumerate(file.world.mask(secret)) if true]
        seen = Fraction(0)
        for d in rows:
            term = Fraction(float(weight[d]))
            for seen_output, count in attack.counts:
                column = mechanism.outputs.index(seen_output.output)
                term *= Fraction(float(mechanism.likelihood[d, column])) ** count
            seen += term
        sides.append(seen / sum(Fraction(float(weight[d])) for d in rows))
    return math.log(sides[0] / sides[1]) if sides[1] else math.inf


def test_knowledge_that_is_obeyed_by_a_harmless_mechanism_stays_open() -> None:
    file = world('"knowledge": [], "mechanism": [{"rows": [[0.5], [0.5]]}]'.replace("[0.5]", TWICE))
    whole = judge(file).mechanisms[0].composition
    assert (whole.linear, whole.attack) == ("open", None) and "refuted but not proven" in whole.note


def test_a_claim_between_the_bounds_is_unclear() -> None:
    """Nothing is leaked, but float64 can only show that it is less than 1e-13."""
    file = world(
        '"prior": [{"probability": ["1/6", "1/3", "1/6", "1/3"]}], "mechanism":'
        '[{"claim": 0, "rows": [["1/3", "2/3"], ["2/3", "1/3"], ["1/3", "2/3"], ["2/3", "1/3"]]}]'
    )
    (found,) = judge(file).mechanisms
    assert found.kept == "unclear" and found.once.epsilon < 1e-13


def test_too_much_work_is_refused_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    file = world('"prior": [{"uniform": true}], "mechanism": [{"rows": [[1], [1], [1], [1]]}]')
    monkeypatch.setattr("takifugu.finite.linearity.MOST_COUPLED", 1)
    whole = judge(file).mechanisms[0].composition
    assert whole.proven_at is None and whole.linear == "open" and "8 numbers" in whole.note
    monkeypatch.setattr("takifugu.finite.linearity.MOST_NFC", 1)
    whole = judge(file).mechanisms[0].composition
    assert (whole.linear, whole.line) == ("open", None) and "8 numbers" in whole.note
    monkeypatch.setattr("takifugu.finite.verdict.MOST_CELLS", 1)
    with raises(TooLarge, size=2):
        judge(file)
