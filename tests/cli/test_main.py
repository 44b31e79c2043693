"""A mistake of the user is one line and status 2; help is quick because it imports little."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import call


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
        "import sys\nfrom typer.testing import CliRunner\nfrom takifugu.cli import program\n"
        "for words in (['--help'], ['check', '--help'], ['collapse', '--help'], ['ledger']):\n"
        "    assert 'Usage' in CliRunner().invoke(program(), words).output\n"
        "heavy = {'numpy', 'scipy', 'matplotlib', 'numba', 'opendp', 'ibis', 'duckdb',"
        " 'sqlalchemy', 'pandas', 'pyarrow', 'sqlite3', 'psycopg'}\n"
        "sys.exit(repr(sorted(heavy & set(sys.modules))) if heavy & set(sys.modules) else 0)"
    )
    result = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr


def test_the_version_is_printed() -> None:
    from takifugu import __version__

    assert run("--version").stdout == f"takifugu {__version__}\n"


def test_a_path_that_cannot_be_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    for wrong in ("x" * 300, "/".join(["y" * 200] * 30), "file/below", "\udced\udca0\udc80" * 90):
        ran = call(tmp_path, monkeypatch, "init", wrong)
        assert ran.status == 2 and ran.out == "", wrong
        line = ran.err.encode(errors="backslashreplace").decode()
        assert line.startswith("takifugu: ") and line.count("\n") == 1 and len(line) < 1500


def test_a_name_that_is_no_text_is_escaped_where_it_is_printed(tmp_path: Path) -> None:
    ran = run("curve", str(tmp_path / "a\udced"))
    assert ran.returncode == 2 and r"a\udced" in ran.stderr and ran.stderr.count("\n") == 1
