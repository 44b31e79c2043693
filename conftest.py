"""Test profiles: few examples by default, EXAMPLES=usual or EXAMPLES=many for more."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

pytest.register_assert_rewrite("tests.contracts")

FEW_EXAMPLES = 15  # of each property in `make test`; `make nightly` tries as many as it asks for
COSTLY_EXAMPLES = 3  # of those that are marked as costly
TESTS = Path(__file__).with_name("tests")
settings.register_profile("few", max_examples=FEW_EXAMPLES, deadline=None, derandomize=True)
settings.register_profile("usual", deadline=None, derandomize=True)
settings.register_profile("many", max_examples=3000, deadline=None)
PROFILE = "many" if os.environ.get("DEEP") else os.environ.get("EXAMPLES", "few")
settings.load_profile(PROFILE)


def pytest_configure() -> None:
    """SIGINT interrupts, also where a shell that runs the tests in the background ignores it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import modules of which no test, or in `make test` no test, is run."""
    if collection_path.suffix != ".py":
        return None
    if TESTS in collection_path.parents and not collection_path.name.startswith("test_"):
        return True  # what tests share: it has no doctests
    if "not nightly" not in config.option.markexpr:
        return None
    whole = "\npytestmark = pytest.mark.nightly\n"
    return whole in collection_path.read_text(encoding="utf-8") or None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Cap the examples of the properties that name a number of their own."""
    if PROFILE != "few":
        return
    for item in items:
        if item.get_closest_marker("hypothesis"):
            test = getattr(item.obj, "__func__", item.obj)  # type: ignore[attr-defined]
            few = COSTLY_EXAMPLES if item.get_closest_marker("costly") else FEW_EXAMPLES
            usual = test._hypothesis_internal_use_settings
            if usual.max_examples > few:
                test._hypothesis_internal_use_settings = settings(usual, max_examples=few)


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
    "tests/tables/test_postgres.py",
    "tests/tables/test_spark.py",
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
