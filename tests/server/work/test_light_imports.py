"""The process that answers requests stays light: what is heavy is imported by workers."""

import subprocess
import sys

HEAVY = ("duckdb", "opendp", "scipy", "numba", "llvmlite", "pandas", "pyarrow", "matplotlib")
WORK = "import takifugu.server.work.pool, takifugu.server.work.jobs, takifugu.server.work.tasks"


def test_the_pool_needs_no_more_than_the_standard_library() -> None:
    done = subprocess.run(  # noqa: S603 - our own interpreter and code
        [sys.executable, "-c", f"{WORK}\nimport sys\nprint(*sys.modules, sep='\\n')"],
        check=True,
        capture_output=True,
        text=True,
    )
    imported = {name.partition(".")[0] for name in done.stdout.split()}
    assert not {"numpy", "fastapi", *HEAVY} & imported
