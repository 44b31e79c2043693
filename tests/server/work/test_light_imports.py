"""The process that answers requests stays light: what is heavy is imported by workers."""

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("duckdb", "opendp", "scipy", "numba", "llvmlite", "pandas", "pyarrow", "matplotlib")
IDLE = """
import asyncio, sys
from pathlib import Path
from takifugu.server.app import create_app
from takifugu.server.services import open_services
from takifugu.project.server_section import ServerSettings

async def start():
    services = open_services(Path(sys.argv[1]), ServerSettings())
    create_app(services)
    await services.close()

asyncio.run(start())
"""
WORK = "import takifugu.server.work.pool, takifugu.server.work.jobs, takifugu.server.work.tasks"


def _imported(program: str, *arguments: str) -> set[str]:
    listed = "print(*sys.modules, sep='\\n')"
    done = subprocess.run(  # noqa: S603 - our own interpreter and arguments
        [sys.executable, "-c", f"{program}\nimport sys\n{listed}", *arguments],
        check=True,
        capture_output=True,
        text=True,
    )
    return {name.partition(".")[0] for name in done.stdout.split()}


@pytest.mark.nightly
def test_a_server_that_is_started_has_imported_nothing_heavy(study: Path) -> None:
    found = _imported(IDLE, str(study))
    assert "fastapi" in found and not found & set(HEAVY)


def test_the_pool_needs_no_more_than_the_standard_library() -> None:
    assert not {"numpy", "fastapi", *HEAVY} & _imported(WORK)
