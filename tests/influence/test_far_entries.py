"""Entries far from a given start: bounded together, and called exact only where they are."""

from typing import Any

import mpmath
import numpy as np
import pytest

from takifugu.influence import InfluenceCurve, chain_curve
from takifugu.priors import MarkovChain, Secrets
from tests.oracles import extremes as oracle

pytestmark = pytest.mark.nightly

MOST = 3
LEAST = 5e-4  # a smaller leak is not called exact


def curve_and_truth(
    transition: Any, start: Any, length: int, entry: int
) -> tuple[InfluenceCurve, dict[str, list[Any]]]:
    chain = MarkovChain(transition, start=start, length=length)
    found = chain_curve(chain, Secrets(entries=(entry,)), max_exposed=MOST)
    laws = oracle.chain_laws(chain.start, chain.transition, length)
    steps = oracle.powers(chain.transition, MOST + 1)
    truths = {}
    for name in found.pairs:
        left, right = (tuple(map(int, side.split("|"))) for side in name.split(" / "))
        if all(any(laws[entry][x] > 0 for x in side) for side in (left, right)):
            truths[name] = oracle.interval_leaks(steps, laws, entry, (left, right), MOST, length)
    return found, truths


def is_sound(found: InfluenceCurve, truths: dict[str, list[Any]]) -> None:
    for name, leak, exact in zip(found.pairs, found.leak, found.exact, strict=True):
        for bound, told, truth in zip(leak[:MOST], exact[:MOST], truths[name], strict=True):
            assert bound >= truth * (1 - mpmath.mpf(10) ** -40), name
            if told and bound >= LEAST:
                assert bound * (1 - 1e-6) <= truth, name


SETTLES = [[0.7730877891042841, 0.2269122108957159], [1.0, 0.0]]
SLOW = [[1 - 1e-4, 1e-4], [2e-4, 1 - 2e-4]]
TURNS = [[0.0, 1.0], [1.0, 0.0]]


@pytest.mark.parametrize(
    ("transition", "start"),
    [
        (SETTLES, [0.539216816810166, 0.46078318318983397]),
        (SETTLES, [0.0, 1.0]),
        (SLOW, [0.9, 0.1]),
        (TURNS, [0.25, 0.75]),
    ],
)
@pytest.mark.parametrize("entry", [4300, 4648, 4649])
def test_one_entry_far_from_the_start(transition: Any, start: Any, entry: int) -> None:
    found, truths = curve_and_truth(transition, start, 4650, entry)
    is_sound(found, truths)


def test_where_the_law_has_settled_a_far_entry_is_exact() -> None:
    found, truths = curve_and_truth(SETTLES, [0.0, 1.0], 6000, 5000)
    assert found.exact.all()
    is_sound(found, truths)
    near = chain_curve(
        MarkovChain(np.array(SETTLES), start=np.array([0.0, 1.0]), length=6000),
        Secrets(entries=(3000,)),
        max_exposed=MOST,
    )
    assert np.allclose(found.leak, near.leak, rtol=0, atol=1e-9)


def test_far_entries_of_a_chain_with_a_matrix_for_each_step_have_their_own() -> None:
    steps = np.array([[[0.875, 0.125], [0.125, 0.875]]] * 4800)
    steps[4600:] = [[0.9990234375, 0.0009765625], [0.0009765625, 0.9990234375]]
    chain = MarkovChain(steps, start=np.array([0.25, 0.75]), length=4801)
    found = chain_curve(chain, Secrets(entries=(4700,)), max_exposed=1)
    # the past and the next entry say it each with odds of 1023 to 1, and before were even
    assert found.leak[:, 0] == pytest.approx([2 * np.log(1023)] * 2, rel=1e-9)
    assert (found.leak[:, 0] >= 2 * np.log(1023) * (1 - 1e-12)).all()


def test_what_long_products_of_logarithms_add_is_not_called_exact() -> None:
    transition = [
        [0.0, 1.0, 0.0],
        [0.05860451036544596, 0.941395489634554, 0.0],
        [1.0, 0.0, 1e-84],
    ]
    start = [0.2752120368545039, 0.4931118283192943, 0.2316761348262019]
    found, truths = curve_and_truth(transition, start, 172, 171)
    is_sound(found, truths)


def test_groups_far_from_the_start() -> None:
    transition = [[0.5, 0.25, 0.25], [0.125, 0.75, 0.125], [0.25, 0.0, 0.75]]
    chain = MarkovChain(np.array(transition), start=np.eye(3)[0], length=5000)
    pairs = (((0,), (1, 2)), ((1, 2), (0,)))
    far, near = (
        chain_curve(chain, Secrets(entries=(entry,), pairs=pairs), max_exposed=MOST)
        for entry in (4500, 2000)
    )
    assert far.exact.all() and near.exact.all()
    assert np.allclose(far.leak, near.leak, rtol=0, atol=1e-9)


def test_values_that_never_come_again_are_no_secrets_of_later_entries() -> None:
    transition = [[0.0, 0.5, 0.5], [0.0, 0.7, 0.3], [0.0, 0.4, 0.6]]
    chain = MarkovChain(np.array(transition), start=np.eye(3)[0], length=6000)
    for secrets in (Secrets(), Secrets(entries=(5000,))):
        found = chain_curve(chain, secrets, max_exposed=MOST)
        assert np.isfinite(found.leak).all()
        assert not [name for name in found.pairs if name.startswith(("0 ", "4+=0"))]
