"""Rows that do not fit in memory: in a folder of their own, which does not outlive its process."""

import os
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from takifugu.declarations import DatabaseFailed
from takifugu.tables.backends.duckdb_backend import PREFIX, Spill, remove_stale
from tests.raising import raises

SPILLING = """
import sys, time
from pathlib import Path
from takifugu.declarations import Category, Declaration, Order, Source
from takifugu.tables.backends.duckdb_backend import FileBackend

declaration = Declaration(
    source=Source("csv", path="stays.csv"), entity="person", order=Order("step", "number"),
    protected=(Category("state", ("home", "ward"), "refuse"),), folder=Path(sys.argv[1]),
)
backend = FileBackend(declaration, threads=1, memory="80MB")
columns = ", ".join(f"hash(r + {k}) AS h{k}" for k in range(8))  # 128 MB that do not compress
sql = f"CREATE TEMP TABLE held AS SELECT {columns} FROM range(2000000) t(r)"
backend._connection.execute(sql)
print("held", flush=True)
time.sleep(600)
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "it's [temporary]"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder


def test_what_a_killed_process_spilled_is_removed_by_the_next(
    tmp_path: Path, temporary: Path
) -> None:
    (tmp_path / "stays.csv").write_text("person,step,state\nann,1,home\n")
    process = subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-c", SPILLING, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline().strip() == "held"
        (folder,) = temporary.iterdir()
        spilled = [path for path in folder.rglob("*") if path.is_file()]
        assert sum(path.stat().st_size for path in spilled) > 2**20  # else this shows nothing
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        other = Spill()
        assert folder.exists()  # it is in use
        other.remove()
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
    assert folder.exists()
    mine = Spill()
    assert [path.name for path in temporary.iterdir()] == [Path(mine.path).name]
    mine.remove()
    mine.remove()
    assert not list(temporary.iterdir())


def test_what_is_not_ours_is_left_alone(temporary: Path) -> None:
    precious = temporary / "precious"
    precious.mkdir()
    (temporary / f"{PREFIX}link").symlink_to(precious)
    (temporary / f"{PREFIX}file").write_text("kept")
    open_to_all = temporary / f"{PREFIX}open"
    open_to_all.mkdir(mode=0o755)
    open_to_all.chmod(0o755)
    held = [Spill(), Spill()]
    before = sorted(temporary.iterdir())
    assert remove_stale() == 0
    assert sorted(temporary.iterdir()) == before
    for one in held:
        one.remove()
    assert precious.exists()


def test_a_fork_does_not_remove_what_its_parent_uses() -> None:
    mine = Spill()
    mine._process += 1  # as a fork sees it
    mine.remove()
    assert Path(mine.path).exists()


def test_a_folder_that_was_taken_for_a_stale_one_is_made_anew(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tempfile.mkdtemp
    left = [2]

    def swept(**how: str) -> str:
        path = made(**how)
        if left[0]:
            left[0] -= 1
            assert remove_stale() == 1  # another process, between the two steps of this one
        return path

    monkeypatch.setattr(tempfile, "mkdtemp", swept)
    mine = Spill()
    assert [path.name for path in temporary.iterdir()] == [Path(mine.path).name]
    mine.remove()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_no_place_to_spill_is_one_line(temporary: Path) -> None:
    temporary.chmod(0o500)
    try:
        with raises(DatabaseFailed, reason="spill folder"):
            Spill()
    finally:
        temporary.chmod(0o700)
