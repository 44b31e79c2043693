"""Workers that find the tasks of the tests."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.running import SOURCE
from tests.server.work.pools import SharedPools

ROOT = str(Path(__file__).parents[3])


@pytest.fixture(autouse=True, scope="session")
def _path() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{SOURCE}{os.pathsep}{ROOT}")
        yield


@pytest.fixture(scope="module")
def shared() -> Iterator[SharedPools]:
    """Pools whose workers are started once for a module."""
    pools = SharedPools()
    yield pools
    pools.close()
