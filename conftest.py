"""Test profiles: the default is quick and repeatable; DEEP=1 is the nightly run."""

import os

import pytest
from hypothesis import settings

pytest.register_assert_rewrite("tests.contracts.engines", "tests.contracts.ledger")

settings.register_profile("quick", deadline=None, derandomize=True)
settings.register_profile("deep", max_examples=3000, deadline=None)
settings.load_profile("deep" if os.environ.get("DEEP") else "quick")
