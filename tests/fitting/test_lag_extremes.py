"""Moments of numbers at the limits of what can be declared, against plain loops."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import takifugu as tf
from takifugu.declarations.columns import MAX_STEPS, Amount
from takifugu.fitting.lag_moments import Grid, lag_moments
from tests.oracles import lag_covariances

pa = pytest.importorskip("pyarrow", reason="tables in memory need PyArrow")

AMOUNTS = [  # low, high, step
    ("0", "1", "1"),
    ("-3", "5", "0.25"),
    ("0", str(MAX_STEPS), "1"),  # the widest in steps
    (str(-MAX_STEPS), str(MAX_STEPS), "1"),
    ("-4503599627370496", "4503599627370496", "2097152"),  # the largest numbers
    ("1000000", "1000001", "0.0009765625"),  # far from 0
    ("-0.000001", "0.000001", "0.000000001"),
]


def declared(values: Sequence[float], people: int, amount: tuple[str, str, str]) -> Any:
    low, high, step = (float(part) for part in amount)
    size = len(values)
    return tf.table(
        pa.table(
            {
                "who": [f"p{i % people}" for i in range(size)],
                "at": list(range(size)),
                "kind": [("a", "b")[(i // 2) % 2] for i in range(size)],
                "x": list(values),
            }
        ),
        name="numbers",
        entity="who",
        order="at",
        order_kind="number",
        protected={"x": {"bounds": [low, high], "step": step, "missing": "refuse"}},
        public=["kind"],
    )


@pytest.mark.nightly
@pytest.mark.parametrize("amount", AMOUNTS)
@pytest.mark.parametrize("profile", [None, "kind"])
@pytest.mark.parametrize("own", [False, True])
def test_moments_are_exact_to_a_grid_at_every_scale(
    amount: tuple[str, str, str], profile: str | None, own: bool
) -> None:
    """Covariances are off by at most what the grid rounds a value and its mean by."""
    low, high, step = (Fraction(part) for part in amount)
    rng, people, size = np.random.default_rng(len(str(amount))), 2, 80
    shares = np.where(rng.random(size) < 0.4, 0.0, 1.4 * rng.random(size) - 0.2)  # some beyond
    values = [float(low) + float(share) * float(high - low) for share in shares]
    rows = [
        {"who": f"p{i % people}", "at": i, "kind": ("a", "b")[(i // 2) % 2], "x": value}
        for i, value in enumerate(values)
    ]
    paths = lag_covariances.left_over(
        rows, value="x", entity="who", order=("at",), bounds=(low, high), step=step,
        profile=profile, own=own,
    )  # fmt: skip
    grid = Grid.of(Amount("x", low, high, step, "refuse"), len(rows))
    unit = float(grid.unit(step))
    with declared(values, people, amount).open() as engine:
        found = lag_moments(engine, "x", lags=3, profile=profile, own=own)
    spread = max(abs(float(value)) for path in paths for value in path)
    near = 2 * unit * (spread + unit)
    assert near < 0.02 * found.variance  # so that it is a test
    for lag in range(found.longest + 1):
        count, covariance = lag_covariances.covariance(paths, lag)
        assert found.products[lag] == count
        rounding = (unit * grid.fine) ** 2 / 12 if lag == 0 else 0.0
        assert found.covariances[lag] == pytest.approx(covariance - rounding, abs=near)
    skewness, kurtosis = lag_covariances.moments(paths)
    assert found.skewness == pytest.approx(skewness, abs=0.02)
    assert found.kurtosis == pytest.approx(kurtosis, abs=0.05)


def test_the_widest_columns_need_a_coarser_grid_and_narrow_ones_a_finer() -> None:
    wide = Grid.of(
        Amount("x", -MAX_STEPS * Fraction(1), Fraction(MAX_STEPS), Fraction(1), "refuse"), 1000
    )
    narrow = Grid.of(Amount("x", Fraction(0), Fraction(1), Fraction(1), "refuse"), 1000)
    assert wide.coarse > 1 == wide.fine and narrow.fine > 1 == narrow.coarse
