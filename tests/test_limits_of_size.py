"""Tables that are made are neither so few that models are refused, nor more than memory holds."""

from importlib import import_module

import pytest

TABLES = 2**24  # numbers of one table: 128 megabytes
LISTS = 2**20  # what is gone through one by one


@pytest.mark.parametrize(
    ("module", "name", "most"),
    [
        ("influence.chain.curve_request", "ROOM", TABLES),
        ("influence.chain.powers", "BLOCK", TABLES),
        ("influence.network.elimination", "ROOM", TABLES),
        ("influence.network.elimination", "SMALL", LISTS),
        ("influence.network.elimination", "CASES", LISTS),
        ("influence.network.elimination", "STATES", LISTS),
        ("translation.gaussian.gaussian_transport", "MOST_LISTED", LISTS),
        ("translation.gaussian.gaussian_transport", "LONGEST_SUM", LISTS),
        ("translation.gaussian.lag_costs", "MOST_LAGS", LISTS),
        ("translation.gaussian.linear_queries", "MOST_ROWS", LISTS),
        ("translation.gaussian.linear_queries", "MOST_WEIGHTS", LISTS),
        ("translation.network.attractive_losses", "LARGEST", TABLES),
        ("translation.network.junction_losses", "LARGEST", TABLES),
        ("translation.network.network_witness", "LARGEST", TABLES),
        ("translation.rows.charged_columns", "LARGEST", TABLES),
    ],
)
def test_limits_of_size_lie_within_memory(module: str, name: str, most: int) -> None:
    assert 2**12 <= getattr(import_module(f"takifugu.{module}"), name) <= most
