"""Chains of higher order: windows, documents, fitting, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from takifugu.errors import InvalidPrior, TooLarge
from takifugu.priors import HigherOrderChain, MarkovChain, from_document
from tests.priors.strategies import higher_order_chains

WEATHER = np.array([[[0.9, 0.1], [0.4, 0.6]], [[0.7, 0.3], [0.2, 0.8]]])


@given(chain=higher_order_chains(), length=st.integers(1, 5))
def test_the_law_is_stationary_and_follows_the_transitions(
    chain: HigherOrderChain, length: int
) -> None:
    n, k = len(chain.states), chain.order
    law = chain.explicit(length + k).probability.reshape((n,) * (length + k))
    first = law.sum(axis=tuple(range(k, length + k)))
    last = law.sum(axis=tuple(range(length)))
    assert first == pytest.approx(last, abs=1e-9)
    following = law.sum(axis=tuple(range(k + 1, length + k)))
    assert following == pytest.approx(first[..., None] * chain.transition, abs=1e-9)
    assert chain.explicit(1).probability == pytest.approx(
        law.sum(axis=tuple(range(1, length + k))), abs=1e-9
    )


@given(chain=higher_order_chains())
def test_windows_follow_one_another(chain: HigherOrderChain) -> None:
    windows, rows = chain.windows, chain.window_chain.transition
    for u, v in np.argwhere(rows > 0):
        assert (windows[u, 1:] == windows[v, :-1]).all()
        assert rows[u, v] == chain.transition[(*windows[u], windows[v, -1])]
    assert (chain.window_chain.stationary > 0).all()


@given(chain=higher_order_chains())
def test_a_document_is_read_back(chain: HigherOrderChain) -> None:
    again = from_document(chain.to_document())
    assert again == chain and again.fingerprint == chain.fingerprint


def test_a_chain_of_order_one_is_one_of_order_two() -> None:
    table = np.array([[0.8, 0.2], [0.3, 0.7]])
    lifted = HigherOrderChain(np.broadcast_to(table, (2, 2, 2)))
    plain = MarkovChain(table)
    assert lifted.explicit(4).probability == pytest.approx(plain.explicit(4).probability)


def test_windows_that_never_happen_are_left_out() -> None:
    table = np.zeros((2, 2, 2))
    table[0, 0] = table[1, 0] = [0.5, 0.5]
    table[0, 1] = table[1, 1] = [1.0, 0.0]  # never two ones in a row
    assert HigherOrderChain(table).windows.tolist() == [[0, 0], [0, 1], [1, 0]]


def test_fitting_counts_what_followed_each_window() -> None:
    chain = HigherOrderChain.fit(["aabab", "ba"], order=2, states=("a", "b"), tau=None, length=9)
    assert chain.transition.tolist() == [[[0, 1], [1, 0]], [[0, 1], [0.5, 0.5]]]
    assert chain.states == ("a", "b") and chain.length == 9
    smooth = HigherOrderChain.fit(["aabab", "ba"], order=2)
    assert (smooth.transition > 0).all() and smooth.transition[0, 0, 0] == 1e-5


def test_fitting_recovers_a_chain_from_its_draws() -> None:
    rng = np.random.default_rng(7)
    path = [0, 0]
    for _ in range(20_000):
        path.append(int(rng.random() < WEATHER[path[-2], path[-1], 1]))
    fitted = HigherOrderChain.fit([path], order=2)
    assert fitted.transition == pytest.approx(WEATHER, abs=0.05)


@pytest.mark.parametrize(
    ("table", "field"),
    [
        ([[0.5, 0.5], [0.5, 0.5]], "transition"),
        (np.full((2, 3, 3), 1 / 3), "transition"),
        (np.full((2, 2, 2), 0.4), "transition"),
        ([[[1, 0], [0, 1]], [[1, 0], [0, 1]]], "transition"),  # two constant sequences
    ],
)
def test_what_is_not_a_higher_order_chain_is_refused(table: object, field: str) -> None:
    with pytest.raises(InvalidPrior) as caught:
        HigherOrderChain(table)  # type: ignore[arg-type]
    assert caught.value.field == field


def test_too_many_windows_and_low_orders_are_refused() -> None:
    with pytest.raises(TooLarge):
        HigherOrderChain(np.full((2,) * 12, 0.5))
    with pytest.raises(TooLarge):
        HigherOrderChain.fit([range(40)], order=2)
    with pytest.raises(InvalidPrior) as caught:
        HigherOrderChain.fit(["ab"], order=1)
    assert caught.value.field == "order"
    with pytest.raises(InvalidPrior) as caught:
        HigherOrderChain(WEATHER, length=3).explicit(4)
    assert caught.value.field == "length"
