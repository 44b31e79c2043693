"""A file is written whole or not at all."""

import gzip
import os
import stat
from errno import EPERM
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from takifugu._core import atomic as _atomic
from takifugu._core.atomic import read_unpacked, read_whole, real_path, whole_file, write_whole
from takifugu.errors import InvalidFile, TakifuguError
from takifugu.ledger import open_ledger, restore_ledger
from takifugu.priors import MarkovChain, read_prior, write_prior
from takifugu.priors.bif import read_bif
from takifugu.priors.contacts import read_contacts
from takifugu.project.project import init_project
from tests.raising import raises


def test_a_file_is_replaced_and_nothing_lies_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    for content in ("ε = 1\n", b"\x00\xff"):
        write_whole(path, content)
        assert path.read_bytes() == (content if isinstance(content, bytes) else content.encode())
        assert list(tmp_path.iterdir()) == [path]


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.mkdir()
    with raises(InvalidFile, field=str(path), reason="unwritable"):
        write_whole(path, "new")
    assert list(tmp_path.iterdir()) == [path] and path.is_dir()
    with raises(InvalidFile, field="out", reason="unwritable"):
        write_whole(tmp_path / "none" / "a.txt", "new", field="out")
    with raises(InvalidFile, reason="text"):
        write_whole(tmp_path / "half.txt", "\ud800")
    with raises(InvalidFile, field="path"):
        write_whole(tmp_path / "zero\0.txt", "new")
    assert list(tmp_path.iterdir()) == [path]


def test_work_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")

    def interrupted() -> None:
        with whole_file(path) as part:
            part.write_text("new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_is_there_is_left_alone(
    links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not links:

        def none(*_: object) -> None:
            raise OSError(EPERM, "no links here")

        monkeypatch.setattr(os, "link", none)
    path = tmp_path / "a.txt"
    write_whole(path, "old", refuse_existing=True, fsync=True)
    with raises(InvalidFile, reason="exists"):
        write_whole(path, "new", refuse_existing=True)
    late = tmp_path / "b.txt"
    with raises(InvalidFile, reason="exists"), whole_file(late, refuse_existing=True) as part:
        part.write_text("new")
        late.write_text("somebody else's")
    assert path.read_text() == "old" and late.read_text() == "somebody else's"
    assert sorted(tmp_path.iterdir()) == [path, late]


def test_a_file_that_is_replaced_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.touch(0o600)
    write_whole(path, "new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    (tmp_path / "latin.txt").write_bytes("é".encode("latin-1"))
    for name, reason in {
        "none.txt": "missing", "latin.txt": "text", ".": "unreadable", "a\0b": "unreadable"
    }.items():  # fmt: skip
        with raises(InvalidFile, field="--in", reason=reason):
            read_whole(tmp_path / name, field="--in")


def device(folder: Path) -> Path:
    """Something that is no ordinary file: a device of our own, or where that is not allowed a pipe.

    Never one of the machine's: what is tested would as root destroy it.
    """
    path = folder / "device"
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 7))  # as /dev/full: it has no end
    except OSError:
        os.mkfifo(path)
    path.chmod(0o666)
    return path


def test_what_is_no_ordinary_file_is_neither_replaced_nor_changed_nor_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_atomic, "PIPE_TIMEOUT", 0.1)
    path = device(tmp_path)
    before = path.lstat()
    for use in (
        lambda: write_whole(path, "x"),
        lambda: read_whole(path),
        lambda: write_prior(MarkovChain(np.array([[0.5, 0.5], [0.5, 0.5]])), path),
        lambda: read_prior(path),
        lambda: open_ledger(path),
        lambda: open_ledger(tmp_path / "a.ledger", witness=str(path)),
        lambda: init_project(tmp_path / "project", ledger=str(path)),
        lambda: restore_ledger(path, path),
    ):
        with pytest.raises((OSError, TakifuguError)):
            use()
        after = path.lstat()
        assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)
    assert {found.name for found in tmp_path.iterdir()} <= {"device", "a.ledger", "a.key"}


def test_a_pipe_is_read_once_somebody_writes_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    words = "a\r\nö" * 50_000  # more than a pipe holds
    writer = Thread(target=lambda: path.write_bytes(words.encode()))
    writer.start()
    assert read_whole(path) == words.replace("\r\n", "\n")
    writer.join()
    monkeypatch.setattr(_atomic, "PIPE_TIMEOUT", 0.1)
    with raises(InvalidFile, field=str(path), reason="unreadable"):
        read_whole(path)


def test_a_link_to_itself_leads_to_itself(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to("loop")
    assert real_path(loop) == real_path(tmp_path) / "loop"
    (tmp_path / "link").symlink_to(tmp_path)
    assert real_path(tmp_path / "link" / "x") == real_path(tmp_path) / "x"


def test_a_packed_file_is_unpacked_up_to_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"plain")
    assert read_unpacked(path) == b"plain"
    whole = gzip.compress(b"a" * 1000)
    path.write_bytes(whole)
    assert read_unpacked(path) == b"a" * 1000
    for damaged in (whole[:-9], whole[:12] + b"\xff\xff" + whole[14:], whole[:3]):
        path.write_bytes(damaged)
        with raises(InvalidFile, field="list", reason="damaged"):
            read_unpacked(path, field="list")
    path.write_bytes(whole)
    monkeypatch.setattr(_atomic, "MAX_UNPACKED_SIZE", 999)
    with raises(InvalidFile, field="list", reason="too large"):
        read_unpacked(path, field="list")
    with raises(InvalidFile, reason="unreadable"):
        read_unpacked(device(tmp_path))


def test_a_file_that_an_error_calls_by_its_name_is_named_once(tmp_path: Path) -> None:
    path = tmp_path / "d.bif"
    for read in (read_bif, read_contacts):
        with raises(InvalidFile, field="d.bif", reason="missing") as caught:
            read(path)
        assert str(caught.value).startswith("`d.bif` cannot be read (it does not exist); it must")
    with raises(InvalidFile, field="list", reason="missing") as caught:
        read_unpacked(path, field="list")
    assert str(caught.value).startswith(f"`list` {path} cannot be read")
