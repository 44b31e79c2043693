"""How the best sets of a network are searched: what is tried, what is kept, what is claimed."""

from itertools import pairwise

import numpy as np
import pytest

from takifugu.errors import InvalidPrior, UnsoundRequest
from takifugu.influence import nearest_curve, network_curve
from takifugu.influence.network.network_curves import Progress
from takifugu.priors import Secrets
from takifugu.priors.networks import MarkovRandomField
from tests.raising import raises

pytestmark = pytest.mark.nightly


def path(count: int, values: int = 2, seed: int = 1) -> MarkovRandomField:
    """Entries in a row, all tables different."""
    rng = np.random.default_rng(seed)
    names = tuple("abcdefgh"[:count])
    pairs = tuple(pairwise(names))
    return MarkovRandomField(
        names,
        (tuple(range(values)),) * count,
        tuple(rng.uniform(0.5, 2, values) for _ in names),
        pairs,
        tuple(rng.uniform(0.2, 3, (values, values)) for _ in pairs),
    )


def test_a_search_that_ends_early_claims_what_it_finished() -> None:
    """After two sets each: entry a has no other set of two, b and the others have."""
    model = path(5)
    whole = network_curve(model, largest=3)
    ended = network_curve(model, largest=3, evaluations=2)
    assert ended.exposed.tolist() == [1, 2, 3, 5] and ended.pairs == whole.pairs
    told = dict(zip(ended.pairs, ended.exact.tolist(), strict=True))
    for name in "abcde":
        at_two = name in "ae"
        assert told[f"{name}=0 / {name}=1"] == [True, at_two, False, True]
        assert told[f"{name}=1 / {name}=0"] == [True, at_two, False, True]
    assert whole.exact.all()
    assert (ended.leak[:, 0] == whole.leak[:, 0]).all() and (ended.leak >= whole.leak).all()
    assert (ended.leak[:, 2] == ended.leak[:, 1]).all()


def test_entries_of_small_parts_are_done_while_others_are_searched() -> None:
    """Two entries apart from five in a row: their curve ends at two."""
    rng = np.random.default_rng(3)
    edges = (("a", "b"), ("c", "d"), ("d", "e"), ("e", "f"), ("f", "g"))
    model = MarkovRandomField(
        tuple("abcdefg"),
        ((0, 1),) * 7,
        (np.ones(2),) * 7,
        edges,
        tuple(rng.uniform(0.2, 3, (2, 2)) for _ in edges),
    )
    heard: list[Progress] = []
    curve = network_curve(model, largest=3, progress=heard.append)
    assert curve.exposed.tolist() == [1, 2, 3, 5, 7]
    assert {(one.entry, one.b) for one in heard} == {
        ("a", 1),
        ("b", 1),
        *((name, b) for name in "cdefg" for b in (1, 2, 3)),
    }
    assert curve.splits is not None
    for k, pair in enumerate(curve.pairs):
        small = pair[0] in "ab"
        assert curve.exact[k].all()
        assert (curve.leak[k] > 0).tolist() == [True, not small, not small, False, False]
        shown = [curve.splits.describe(k, point)["exposed"] for point in range(5)]
        assert shown[-1] == (["a", "b"] if small else list("cdefg"))
        assert shown[0] == [pair[0]] and (shown[1] == ["a", "b"]) == small
    one = network_curve(model, Secrets(entries=("f", "b")), largest=1)
    assert one.exposed.tolist() == [1, 2, 5, 7]
    assert [pair[0] for pair in one.pairs] == ["f", "f", "b", "b"]


def test_nearest_sets_are_never_called_exact() -> None:
    model = path(4)
    for largest in (1, 2, 3):
        curve = nearest_curve(model, largest=largest)
        assert curve.exposed.tolist() == [*range(1, largest + 1), 4]
        assert curve.exact.tolist() == [[False] * largest + [True]] * 8
    full = network_curve(model, largest=3)
    assert (nearest_curve(model, largest=3).leak[:, 0] == full.leak[:, 0]).all()


def test_an_entry_of_one_value_has_no_secret() -> None:
    model = MarkovRandomField(
        ("a", "b"),
        ((0,), (0, 1)),
        (np.ones(1), np.array([1.0, 3.0])),
        (("a", "b"),),
        (np.array([[1.0, 2.0]]),),
    )
    heard: list[Progress] = []
    curve = network_curve(model, largest=1, progress=heard.append)
    assert {one.entry for one in heard} == {"b"} and curve.pairs == ("b=0 / b=1", "b=1 / b=0")


def test_pairs_that_cannot_happen_are_left_out() -> None:
    model = MarkovRandomField(
        ("a", "b"),
        ((0, 1, 2), (0, 1)),
        (np.array([1.0, 0.0, 2.0]), np.array([1.0, 3.0])),
        (("a", "b"),),
        (np.array([[1.0, 2.0], [5.0, 1.0], [4.0, 1.0]]),),
    )
    curve = network_curve(model, largest=1)
    assert curve.pairs == ("a=0 / a=2", "a=2 / a=0", "b=0 / b=1", "b=1 / b=0")
    assert curve.exposed.tolist() == [1, 2] and curve.leak.shape == (4, 2)
    assert curve.leak[0, 0] == pytest.approx(np.log((2 / 3) / (1 / 5 * 1)), rel=1e-1, abs=1)
    secrets = Secrets(entries=("a",), pairs=(((0,), (1,)),))
    with raises(InvalidPrior, field="secrets"):
        network_curve(model, secrets)
    with raises(UnsoundRequest, field="largest", given=0, needed=1):
        network_curve(model, largest=0)
