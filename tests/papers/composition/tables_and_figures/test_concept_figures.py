"""The conceptual figures show what was computed, at its place."""

from itertools import product

import numpy as np
import pytest

from takifugu.errors import UnsoundRequest
from takifugu.papers.composition.tables_and_figures.concept_figures import (
    LikelihoodVectors,
    best_quilt,
    likelihood_figure,
    likelihood_vectors,
    quilt_figure,
)
from tests.oracles import baselines as oracle
from tests.oracles import finite as finite_oracle
from tests.oracles import nfc as nfc_oracle
from tests.raising import raises


def texts(figure: object) -> list[str]:
    from matplotlib.figure import Figure
    from matplotlib.text import Text

    assert isinstance(figure, Figure)
    return [
        one.get_text()
        for one in figure.findobj(lambda artist: isinstance(artist, Text))
        if isinstance(one, Text)
    ]


@pytest.fixture(scope="module")
def vectors() -> LikelihoodVectors:
    return likelihood_vectors()


def test_the_mechanisms_have_as_many_outputs_as_in_the_paper(vectors: LikelihoodVectors) -> None:
    assert [len(one.outputs) for one in vectors.mechanisms] == [3, 2, 4]
    assert vectors.picked == ((0, 0), (0, 2), (1, 1), (2, 3))
    for one in vectors.mechanisms:
        assert one.likelihood.sum(axis=1) == pytest.approx(1)


def test_the_numbers_that_the_text_quotes_come_out(vectors: LikelihoodVectors) -> None:
    assert vectors.vector(0)[1] == pytest.approx(0.2)  # λ₁[2]
    assert vectors.vector(2)[0] == pytest.approx(0.7)  # λ₃[1]


def test_the_losses_are_those_of_the_definition(vectors: LikelihoodVectors) -> None:
    """By hand: given a = 0 the datasets 00 and 01 have probabilities 3/4 and 1/4."""
    for one, loss in zip(vectors.mechanisms, vectors.losses, strict=True):
        table = one.likelihood
        given = (0.75 * table[0] + 0.25 * table[1], 0.25 * table[2] + 0.75 * table[3])
        assert loss == pytest.approx(float(np.abs(np.log(given[0] / given[1])).max()))


def test_the_condition_is_that_of_vertex_enumeration(vectors: LikelihoodVectors) -> None:
    columns = np.concatenate([one.likelihood for one in vectors.mechanisms], axis=1)
    table = columns.T.tolist()  # [output][dataset]
    sides = ((0, 1), (2, 3))
    worst = max(
        nfc_oracle.least_epsilon(table, dataset, other)
        for side, other in (sides, sides[::-1])
        for dataset in side
    )
    assert vectors.in_the_long_run == pytest.approx(worst, abs=1e-9)


@pytest.mark.nightly
def test_the_three_compose_at_the_largest_loss_and_at_no_less(vectors: LikelihoodVectors) -> None:
    """Any mixture of up to four runs, listed by the oracle; one run of the third loses it all."""
    masks = [[True, True, False, False], [False, False, True, True]]
    pairs = [(masks[0], masks[1]), (masks[1], masks[0])]
    tables = [one.likelihood.tolist() for one in vectors.mechanisms]
    worst = 0.0
    for many in product(range(5), repeat=3):
        if 0 < sum(many) <= 4:
            runs = [(table, n) for table, n in zip(tables, many, strict=True) if n]
            loss = finite_oracle.worst([[3 / 8, 1 / 8, 1 / 8, 3 / 8]], pairs,
                                       finite_oracle.sequence(runs))  # fmt: skip
            worst = max(worst, float(loss) / sum(many))
    assert vectors.composes_at == pytest.approx(worst, abs=1e-9)
    assert vectors.composes_at >= max(worst, *vectors.losses)
    assert vectors.composes_at == pytest.approx(max(vectors.losses), abs=1e-9)
    assert vectors.in_the_long_run <= vectors.composes_at  # no more than a lower bound


def test_the_least_epsilon_is_not_claimed_where_many_runs_lose_more_than_one(
    vectors: LikelihoodVectors,
) -> None:
    counts = LikelihoodVectors(vectors.world, vectors.mechanisms[:1], ((0, 0),))
    assert counts.in_the_long_run > max(counts.losses)
    with raises(UnsoundRequest, reason="slope"):
        _ = counts.composes_at


def test_the_figure_says_which_number_is_which(vectors: LikelihoodVectors) -> None:
    (said,) = [text for text in texts(likelihood_figure(vectors)) if "NfC" in text]
    assert "at most k times\n1.253" in said
    assert "only for 1.098 or more" in said


def test_every_likelihood_stands_in_the_figure(vectors: LikelihoodVectors) -> None:
    shown = texts(likelihood_figure(vectors))
    numbers = [float(text) for text in shown if text.replace(".", "").isdigit()]
    every = [float(v) for one in vectors.mechanisms for v in one.likelihood.T.ravel()]
    every += [float(v) for k in range(4) for v in vectors.vector(k)]
    assert sorted(numbers) == pytest.approx(sorted(every), abs=1e-9)
    assert sum(text.startswith("→ λ") for text in shown) == 4


@pytest.mark.parametrize(
    ("rows", "length", "epsilon"),
    [
        ([[0.8, 0.2], [0.2, 0.8]], 9, 1.0),
        ([[0.6, 0.4], [0.3, 0.7]], 8, 0.7),
        ([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]], 6, 1.5),
        ([[0.95, 0.05], [0.05, 0.95]], 5, 1.0),
    ],
)
def test_the_quilt_is_what_enumeration_finds(
    rows: list[list[float]], length: int, epsilon: float
) -> None:
    found = best_quilt(np.array(rows), length, epsilon)
    start = np.linalg.matrix_power(np.array(rows), 4096)[0].tolist()
    law = oracle.chain_law(rows, start, length)
    node = found.best.node
    assert found.influence == pytest.approx(oracle.influence(law, node, found.quilt), abs=1e-9)
    allowed = (epsilon - found.influence) / len(found.nearby)
    assert found.best.to_dp == pytest.approx(allowed, rel=1e-9)
    assert node in found.nearby
    assert not set(found.nearby) & set(found.quilt)
    for j in range(length):
        alone = oracle.influence(law, node, [j]) if j != node else 0.0
        assert found.single[j] == pytest.approx(alone, abs=1e-9)


def test_a_quilt_on_one_side_and_none_at_all_are_drawn() -> None:
    none = best_quilt(np.array([[0.99, 0.01], [0.01, 0.99]]), 4, 0.5)
    assert none.quilt == ()
    assert none.influence == pytest.approx(0, abs=1e-12)
    assert list(none.nearby) == [0, 1, 2, 3]
    assert quilt_figure(none).axes
