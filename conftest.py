"""Test profiles: the default is quick and repeatable; DEEP=1 is the nightly run."""

import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

pytest.register_assert_rewrite("tests.contracts")

settings.register_profile("quick", deadline=None, derandomize=True)
settings.register_profile("deep", max_examples=3000, deadline=None)
settings.load_profile("deep" if os.environ.get("DEEP") else "quick")


@pytest.fixture(autouse=True, scope="session")
def _state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Witnesses of ledgers are kept in a folder of the tests, also by commands that they run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(autouse=True)
def _rows() -> Iterator[None]:
    """Each test may charge the rows of the others: it forgets which ledgers have charged them."""
    from tests.ledger.folders import forget_rows

    yield
    forget_rows()


# Each of these starts a server, a Java or a long run of its own, so that one worker runs all of it.
# (What pytest-xdist 3.8 has for that, `xdist_group`, does nothing under pytest 9.2.)
ONE_WORKER = (
    "tests/engines/test_postgres.py",
    "tests/engines/test_spark.py",
    "tests/cli/test_demo.py",
    "tests/cli/test_reproduce.py",
    "tests/project/test_project_report.py",
)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Share tests out one by one, but for the modules in `ONE_WORKER`, which come first."""
    from xdist.scheduler import LoadScopeScheduling

    class ByTest(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            path = nodeid.partition("::")[0]
            return path if path in ONE_WORKER else nodeid

    return ByTest(config, log)
