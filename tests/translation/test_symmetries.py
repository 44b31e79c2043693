"""What cannot matter does not: the direction of time, the names of states, how a loss is given."""

from itertools import pairwise

import numpy as np
import pytest

from takifugu._core.numeric import Floats
from takifugu.priors import MarkovChain, Product, Secrets
from takifugu.translation import Translation
from takifugu.translation.bounds import Bound

pytestmark = pytest.mark.nightly


def rows_of(seed: int, k: int, sticky: float = 0.3) -> Floats:
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.ones(k), k) * (1 - sticky) + sticky * np.eye(k)
    found: Floats = rows / rows.sum(axis=1, keepdims=True)
    return found


def stationary(rows: Floats) -> Floats:
    law = np.linalg.matrix_power(rows, 2000)[0]
    found: Floats = law / law.sum()
    return found


def reversed_rows(rows: Floats) -> Floats:
    law = stationary(rows)
    back = (law[:, None] * rows).T / law[:, None]
    found: Floats = back / back.sum(axis=1, keepdims=True)
    return found


def transport(prior: MarkovChain, spent: object, secrets: Secrets | None = None) -> Bound:
    return Translation(prior, secrets or Secrets()).bound(spent, "transport")  # type: ignore[arg-type]


@pytest.mark.parametrize(("seed", "k"), [(1, 2), (2, 3), (3, 3), (4, 4)])
@pytest.mark.parametrize("length", [2, 5, 9])
def test_time_may_run_backwards(seed: int, k: int, length: int) -> None:
    """A stationary chain seen from its end, each entry's ε with it."""
    rng = np.random.default_rng(seed)
    rows = rows_of(seed, k)
    one = MarkovChain(rows, length=length)
    other = MarkovChain(reversed_rows(rows), length=length)
    profile = rng.uniform(0.05, 1.0, length)
    for spent, back in ((0.4, 0.4), (profile, profile[::-1].copy())):
        there, here = transport(one, spent), transport(other, back)
        assert there.value == pytest.approx(here.value, rel=1e-3)
        if there.by_entry is not None and here.by_entry is not None and length > 1:
            each, other_way = np.asarray(there.by_entry), np.asarray(here.by_entry)
            if len(each) == length:
                assert each.max() == pytest.approx(there.value, rel=1e-12)
                assert each == pytest.approx(other_way[::-1], rel=0.02 if k < 4 else 0.15)


@pytest.mark.parametrize(("seed", "k"), [(1, 2), (2, 3), (3, 4)])
def test_states_may_have_other_names(seed: int, k: int) -> None:
    rows = rows_of(seed, k)
    order = np.random.default_rng(seed).permutation(k)
    turned = rows[np.ix_(order, order)]
    for length in (1, 4, 30, None):
        for spent in (0.05, 0.7):
            one = transport(MarkovChain(rows, length=length), spent)
            other = transport(MarkovChain(turned, length=length), spent)
            assert one.value == pytest.approx(other.value, rel=1e-6)
    start = np.random.default_rng(seed + 1).dirichlet(np.ones(k))
    one = transport(MarkovChain(rows, start=start, length=6), 0.5)
    other = transport(MarkovChain(turned, start=start[order], length=6), 0.5)
    assert one.value == pytest.approx(other.value, rel=1e-6)


@pytest.mark.parametrize(("seed", "k"), [(1, 2), (2, 3)])
@pytest.mark.parametrize("length", [1, 3, 8])
def test_one_number_is_that_number_for_each(seed: int, k: int, length: int) -> None:
    chain = MarkovChain(rows_of(seed, k), length=length)
    for spent in (1e-9, 0.3, 2.0):
        whole = transport(chain, spent)
        each = transport(chain, np.full(length, spent))
        assert whole.value == pytest.approx(each.value, rel=2e-3)
        assert (
            spent <= whole.value * (1 + 1e-12)
            and whole.value <= length * spent * (1 + 1e-12) + 1e-14
        )


@pytest.mark.parametrize("k", [2, 3])
def test_more_loss_entries_and_secrets_lose_no_less(k: int) -> None:
    rows = rows_of(7, k)
    before = 0.0
    for spent in (0.01, 0.1, 0.5, 1.0, 3.0):
        now = transport(MarkovChain(rows, length=7), spent).value
        assert now >= before
        before = now
    values = [transport(MarkovChain(rows, length=n), 0.4).value for n in (1, 2, 3, 6, 12, 40)]
    values.append(transport(MarkovChain(rows), 0.4).value)
    assert all(b >= a * (1 - 1e-3) for a, b in pairwise(values))
    few = transport(MarkovChain(rows, length=7), 0.4, Secrets(entries=(0,))).value
    assert few <= transport(MarkovChain(rows, length=7), 0.4).value * (1 + 1e-9)
    end = transport(MarkovChain(rows, length=7), 0.4, Secrets(entries=(0, 3))).value
    assert few <= end * (1 + 1e-9)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_secrets_lose_what_the_worst_of_them_loses(k: int) -> None:
    """Also where the worst pair is the first that is listed, and the last."""
    rows = rows_of(11, k)
    for length in (3, 6, 25, None):
        chain = MarkovChain(rows, length=length)
        whole = transport(chain, 0.5)
        each = [
            transport(chain, 0.5, Secrets(pairs=(((x,), (y,)),))).value
            for x in range(k)
            for y in range(x)
        ]
        assert whole.value == pytest.approx(max(each), rel=2e-3)
        if length is not None and length < 10:
            by_entry = [transport(chain, 0.5, Secrets(entries=(i,))).value for i in range(length)]
            assert whole.value == pytest.approx(max(by_entry), rel=2e-3)
            if whole.by_entry is not None and len(whole.by_entry) == length:
                assert np.asarray(whole.by_entry) == pytest.approx(by_entry, rel=2e-2)


def test_people_apart_lose_as_the_worst_of_them_and_count_all_entries_of_one() -> None:
    one, other = MarkovChain(rows_of(1, 2), length=4), MarkovChain(rows_of(2, 3), length=2)
    both = Translation(Product({"a": one, "b": other}))
    each = [Translation(prior).bound(0.3, "transport").value for prior in (one, other)]
    assert both.bound(0.3, "transport").value == pytest.approx(max(each), rel=1e-9)
    assert both.bound(0.3, "group").value == pytest.approx(1.2)
    profile = np.array([0.1, 0.2, 0.3, 0.4, 2.0, 3.0])
    assert both.bound(profile, "group").value == pytest.approx(5.0)
    assert both.bound(profile[::-1].copy(), "group").value == pytest.approx(5.7)
