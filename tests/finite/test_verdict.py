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
from takifugu.finite.joint_runs import joint_mechanism
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
def files(draw: st.DrawFn, mechanisms: int = 1) -> WorldFile:
    """Four datasets, two secrets, one or two priors, mechanisms with two or three outputs."""
    outputs = draw(st.integers(2, 3))
    given_secret = [draw(laws(2)) + draw(laws(2)) for _ in range(draw(st.integers(1, 2)))]
    document: dict[str, Any] = {
        "entries": {"s": [0, 1], "other": [0, 1]},
        "prior": [{"probability": [halved(p) for p in prior]} for prior in given_secret],
        "pair": [{"entries": ["s"]}],
        "mechanism": [{"rows": [draw(laws(outputs)) for _ in range(4)]} for _ in range(mechanisms)],
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


@pytest.mark.costly
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


@pytest.mark.costly
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


@pytest.mark.costly
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


PARITIES = world(
    '"prior": [{"uniform": true}], "mechanism": [{"rows": [[1, 0], [0, 1], [0, 1], [1, 0]]},'
    '{"entry": "o", "rows": [[1, 0], [0, 1]]}]'
)  # s ⊕ o, and o: each tells nothing about s


def seen_together(file: WorldFile, runs: int) -> Iterator[tuple[float, float]]:
    """For every sequence of ``runs`` outputs of any mechanisms: its loss, and what they add up to.

    In fractions, from scratch; a mechanism's own loss is that of its worst output.
    """
    world, tables = file.world, [m.likelihood.tolist() for m in file.mechanisms]
    own = [max(0.0, *losses(world, mechanism, 1)) for mechanism in file.mechanisms]
    outputs = [(m, w) for m, table in enumerate(tables) for w in range(len(table[0]))]
    for prior in world.weights.tolist():
        for pair in world.pairs:
            for seen in product(outputs, repeat=runs):
                left, right = (
                    sum(
                        Fraction(prior[d]) * math.prod(Fraction(tables[m][d][w]) for m, w in seen)
                        for d in range(len(prior))
                        if world.mask(secret)[d]
                    )
                    / sum(Fraction(p) for d, p in enumerate(prior) if world.mask(secret)[d])
                    for secret in (pair.left, pair.right)
                )
                if left:
                    loss = math.log(left / right) if right else math.inf
                    yield loss, sum(own[m] for m, _ in seen)


@pytest.mark.costly
@settings(max_examples=40)
@example(file=PARITIES)
@given(file=files(mechanisms=2))
def test_what_is_said_of_mechanisms_together_is_never_contradicted(file: WorldFile) -> None:
    verdict = judge(file, runs=1)
    assert verdict.together is not None and verdict.together.once is not None
    whole, once = verdict.together.composition, verdict.together.once
    sequences = [(k, *losses_of) for k in (1, 2) for losses_of in seen_together(file, k)]
    beaten = any(loss > linear + 1e-9 for _, loss, linear in sequences)
    assert (whole.linear == "void") == any(math.isinf(m.once.epsilon) for m in verdict.mechanisms)
    assert not (beaten and whole.linear in ("yes", "open"))
    if whole.linear == "yes":
        assert whole.attack is None
    for k, loss, _ in sequences:
        assert whole.proven_at is None or loss <= k * whole.proven_at
        assert whole.line is None or loss <= k * whole.line[0] + whole.line[1]
    if whole.attack is not None and whole.attack.runs == 2:
        assert any(loss >= whole.attack.leakage - 1e-12 for _, loss, _ in sequences)
    together = joint_mechanism(*file.mechanisms)
    assert once.epsilon == pytest.approx(max(0.0, *losses(file.world, together, 1)), abs=1e-9)


def test_mechanisms_that_compose_alone_may_reveal_everything_together() -> None:
    verdict = judge(PARITIES, runs=1)
    assert [found.composition.linear for found in verdict.mechanisms] == ["yes", "yes"]
    assert verdict.together is not None
    whole, once = verdict.together.composition, verdict.together.once
    assert whole.linear == "no" and whole.attack is not None and once is not None
    assert [(seen.name, count) for seen, count in whole.attack.counts] == [
        ("mechanism 1", 1),
        ("mechanism 2", 1),
    ]
    assert whole.attack.leakage == once.epsilon == once.attained == math.inf


def test_mechanisms_of_unlike_losses_that_compose_are_proven_to() -> None:
    """Two randomised responses: any k runs lose what their own losses add up to."""
    file = world(
        '"prior": [{"uniform": true}], "mechanism": ['
        '{"kind": "randomised response", "entry": "s", "epsilon": 0.3},'
        '{"kind": "randomised response", "entry": "s", "epsilon": 1.2, "name": "more"}]'
    )
    together = judge(file, runs=1).together
    assert together is not None and together.once is not None
    assert together.composition.linear == "yes"
    assert together.once.epsilon == pytest.approx(1.5, abs=1e-9)


def test_one_mechanism_has_nothing_to_compose_with() -> None:
    assert judge(SWAP, runs=1).together is None


def test_knowledge_does_not_hide_that_mechanisms_fail_together() -> None:
    """Whatever is known, the parities and the other bit reveal the secret."""
    file = world(
        '"knowledge": [{"secret": {"entry": "s", "value": 0}, "event": {"entry": "o", "value": 0},'
        '"low": 0.5, "high": 0.5}, {"secret": {"entry": "s", "value": 1}, "event":'
        '{"entry": "o", "value": 0}, "low": 0.5, "high": 0.5}], "mechanism":'
        '[{"rows": [[1, 0], [0, 1], [0, 1], [1, 0]]}, {"entry": "o", "rows": [[1, 0], [0, 1]]}]'
    )
    verdict = judge(file, runs=1)
    assert [found.once.epsilon < 1e-6 for found in verdict.mechanisms] == [True, True]
    assert verdict.together is not None
    assert verdict.together.composition.linear == "no"


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
    monkeypatch.setattr("takifugu.finite.verdict.MOST_COUPLED", 1)
    whole = judge(file).mechanisms[0].composition
    assert whole.proven_at is None and whole.linear == "open" and "8 numbers" in whole.note
    monkeypatch.setattr("takifugu.finite.verdict.MOST_NFC", 1)
    whole = judge(file).mechanisms[0].composition
    assert (whole.linear, whole.line) == ("open", None) and "8 numbers" in whole.note
    monkeypatch.setattr("takifugu.finite.verdict.MOST_CELLS", 1)
    with raises(TooLarge, size=2):
        judge(file)
