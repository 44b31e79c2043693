"""A mistake of the user is one line and status 2; help is quick because it imports little."""

import subprocess
import sys

import pytest


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "takifugu", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603


@pytest.mark.parametrize(
    "arguments",
    [("colapse",), ("collapse",), ("collapse", "two"), ("collapse", "2", "--bogus")],
)
def test_a_mistake_is_one_line(arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert result.returncode == 2 and result.stdout == ""
    assert result.stderr.startswith("takifugu: ") and result.stderr.count("\n") == 1


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys, takifugu.cli\n"
        "heavy = {'numpy', 'scipy', 'matplotlib', 'numba', 'opendp', 'ibis', 'duckdb',"
        " 'sqlalchemy', 'pandas', 'pyarrow'}\n"
        "sys.exit(repr(sorted(heavy & set(sys.modules))) if heavy & set(sys.modules) else 0)"
    )
    result = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr


def test_the_version_is_printed() -> None:
    from takifugu import __version__

    assert run("--version").stdout == f"takifugu {__version__}\n"
