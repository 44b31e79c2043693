"""Tables that are made are neither so few that models are refused, nor more than memory holds."""

from importlib import import_module

import pytest

TABLES = 2**24  # numbers of one table: 128 megabytes
LISTS = 2**20  # what is gone through one by one


@pytest.mark.parametrize(
    ("module", "name", "most"),
    [
        ("influence.chain.splitting", "MAX_CURVE_NUMBERS", TABLES),
        ("influence.rounded_ratios", "BLOCK_SIZE", TABLES),
        ("influence.network.elimination", "MAX_TABLE_CELLS", TABLES),
        ("influence.network.elimination", "MAX_CONSTRAINT_CELLS", LISTS),
        ("influence.network.elimination", "MAX_BOUNDARY_STATES", LISTS),
        ("influence.network.elimination", "MAX_SUMMED_STATES", LISTS),
        ("translation.certify.gaussian", "MAX_LISTED_ENTRIES", LISTS),
        ("translation.certify.gaussian", "MAX_PROFILE_LAGS", LISTS),
        ("translation.certify.gaussian", "MAX_LAGS", LISTS),
        ("translation.certify.linear", "MAX_QUERY_ROWS", LISTS),
        ("translation.certify.linear", "MAX_WEIGHTS", LISTS),
        ("translation.search.fields", "MAX_CLIQUE_STATES", TABLES),
        ("translation.models.networks", "MAX_CLIQUE_STATES", TABLES),
        ("translation.search.products", "MAX_CLIQUE_STATES", TABLES),
        ("translation.rows.columns_of_row", "MAX_CLIQUE_STATES", TABLES),
    ],
)
def test_limits_of_size_lie_within_memory(module: str, name: str, most: int) -> None:
    assert 2**12 <= getattr(import_module(f"takifugu.{module}"), name) <= most
