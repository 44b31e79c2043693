"""A user's own OpenDP measurement is priced by its own map, in each currency."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from opendp.combinators import make_approximate, make_fix_delta, make_zCDP_to_approxDP
from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_gaussian, make_laplace, make_noisy_max
from opendp.measures import max_divergence
from opendp.metrics import (
    absolute_distance,
    change_one_distance,
    hamming_distance,
    insert_delete_distance,
    l2_distance,
    linf_distance,
    symmetric_distance,
)
from opendp.mod import enable_features
from opendp.transformations import make_metric_unbounded, make_sum, make_unordered

from takifugu._core.fingerprint import fingerprint
from takifugu.costs.cost import Cost, Membership
from takifugu.costs.losses import Approximate, Concentrated, Metric, Pure
from takifugu.errors import InvalidMechanism, UnsoundRequest
from takifugu.mechanisms import ExternalMeasurement
from tests.raising import raises

enable_features("contrib")
LAPLACE = make_laplace(atom_domain(T="i64"), absolute_distance(T="i64"), scale=2.0)
GAUSSIAN = make_gaussian(vector_domain(atom_domain(T="i64")), l2_distance(T="f64"), scale=2.0)


def test_each_currency_is_read_from_its_own_map() -> None:
    assert ExternalMeasurement(LAPLACE, 3, "count").loss == Pure("1.5")
    assert ExternalMeasurement(GAUSSIAN, 1.0, "sum").loss == Concentrated("0.125")
    read = ExternalMeasurement(GAUSSIAN, 1.0, "sum", delta=1e-6).loss
    assert isinstance(read, Approximate)
    assert read.delta == Fraction(1e-6)
    profile = make_zCDP_to_approxDP(GAUSSIAN)
    assert ExternalMeasurement(profile, 1.0, "profile", delta=1e-6).loss == read
    assert ExternalMeasurement(make_fix_delta(profile, 1e-6), 1.0, "fixed").loss == read


def test_a_profile_without_delta_is_refused() -> None:
    with raises(UnsoundRequest, field="delta"):
        ExternalMeasurement(make_zCDP_to_approxDP(GAUSSIAN), 1.0, "profile")


def test_a_currency_that_cannot_be_added_is_refused() -> None:
    with raises(UnsoundRequest, reason="measure"):
        ExternalMeasurement(make_approximate(GAUSSIAN), 1.0, "approximately concentrated")


@pytest.mark.parametrize("d_in", ["far", None, -1, 1.5])
def test_a_distance_that_makes_no_sense_is_refused(d_in: Any) -> None:
    with raises(UnsoundRequest, reason="opendp"):
        ExternalMeasurement(LAPLACE, d_in, "count")


@pytest.mark.parametrize(
    ("metric", "distance", "epsilon"),
    [
        (symmetric_distance(), 2, "1"),  # one row out and one in: 1/scale for each
        (insert_delete_distance(), 2, "1"),
        (change_one_distance(), 1, "0.5"),
        (hamming_distance(), 1, "0.5"),
    ],
    ids=str,
)
def test_a_replaced_entry_is_as_far_as_the_metric_between_tables_says(
    metric: Any, distance: int, epsilon: str
) -> None:
    total = _noisy_total(metric)
    assert ExternalMeasurement(total, distance, "total").loss == Pure(epsilon)
    for less in range(distance):
        with raises(UnsoundRequest, field="d_in", given=less):
            ExternalMeasurement(total, less, "total")


def _noisy_total(metric: Any) -> Any:
    """A sum of bits with Laplace noise of scale 2; rows are replaced only if there are ten."""
    size = 10 if str(metric) in ("ChangeOneDistance()", "HammingDistance()") else None
    bits = vector_domain(atom_domain(T="i64", bounds=(0, 1)), size=size)
    total = make_sum(bits, symmetric_distance()) >> LAPLACE
    if size is not None:
        total = make_metric_unbounded(bits, change_one_distance()) >> total
    ordered = str(metric) in ("InsertDeleteDistance()", "HammingDistance()")
    return make_unordered(bits, metric) >> total if ordered else total


def test_a_metric_that_does_not_say_how_far_a_replaced_entry_is_is_refused() -> None:
    """A replaced entry lowers one count and raises another, which is not monotonic."""
    scores = vector_domain(atom_domain(T="i64"))
    monotonic = linf_distance(T="i64", monotonic=True)
    best = make_noisy_max(scores, monotonic, max_divergence(), scale=2.0)
    with raises(UnsoundRequest, field="measurement", reason="metric"):
        ExternalMeasurement(best, 1, "best")


def test_a_distance_of_zero_is_refused() -> None:
    with raises(UnsoundRequest, field="d_in", given=0):
        ExternalMeasurement(LAPLACE, 0, "count")


def test_what_is_not_a_measurement_or_has_no_name_is_refused() -> None:
    with raises(InvalidMechanism, field="measurement"):
        ExternalMeasurement(len, 1, "len")
    with raises(InvalidMechanism, field="name"):
        ExternalMeasurement(LAPLACE, 1, "")


def test_it_releases_and_simulates_only_with_a_law() -> None:
    mine = ExternalMeasurement(LAPLACE, 1, "count")
    assert isinstance(mine.release(10**6), int)
    assert abs(mine.release(10**6) - 10**6) < 10**4  # probability of failure e^-5000
    with raises(UnsoundRequest, field="law"):
        mine.simulate(3, 5, rng=np.random.default_rng(1))
    with raises(UnsoundRequest, field="deviation"):
        mine.error()
    known = ExternalMeasurement(
        LAPLACE,
        1,
        "count",
        law=lambda values, times, rng: values + rng.laplace(0, 2.0, times),
        deviation=2.8,
    )
    assert known.simulate(3, 5, rng=np.random.default_rng(1)).shape == (5,)
    assert known.error() == 2.8
    plain = ExternalMeasurement(LAPLACE, 1, "count", deviation=2.8)
    assert known == plain
    assert fingerprint(known) == fingerprint(plain)  # what is charged is the measurement
    other = make_laplace(atom_domain(T="i64"), absolute_distance(T="i64"), scale=2.0)
    assert fingerprint(ExternalMeasurement(other, 1, "count", deviation=2.8)) == fingerprint(plain)
    assert fingerprint(ExternalMeasurement(LAPLACE, 2, "count")) != fingerprint(plain)
    assert known.describe()["loss"]["epsilon"] == "1/2"
    with raises(UnsoundRequest, field="values", reason="opendp") as caught:
        mine.release("a secret")
    assert "a secret" not in str(caught.value)
    assert caught.value.__cause__ is None is caught.value.__context__


def test_a_stated_cost_stands_for_a_pure_loss_and_for_no_other() -> None:
    cost = Cost.of({Membership(["ill"]): "0.25"})
    assert ExternalMeasurement(LAPLACE, 1, "count", cost=cost).loss == Metric(cost)
    for measurement, d_in, delta in ((GAUSSIAN, 1.0, None), (GAUSSIAN, 1.0, 1e-6)):
        with raises(InvalidMechanism, field="cost"):
            ExternalMeasurement(measurement, d_in, "sum", delta=delta, cost=cost)
    nothing: Any = {"ill": 0.25}
    with raises(InvalidMechanism, field="cost"):
        ExternalMeasurement(LAPLACE, 1, "count", cost=nothing)
