"""A user's own OpenDP measurement is priced by its own map, in each currency."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from opendp.combinators import make_approximate, make_fix_delta, make_zCDP_to_approxDP
from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_gaussian, make_laplace
from opendp.metrics import absolute_distance, l2_distance
from opendp.mod import enable_features

from takifugu.costs import Cost, Membership
from takifugu.errors import InvalidMechanism, UnsoundRequest
from takifugu.fingerprint import fingerprint
from takifugu.losses import Approximate, Concentrated, Metric, Pure
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
