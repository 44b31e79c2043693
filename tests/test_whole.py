"""A file is written whole or not at all."""

import os
import stat
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from takifugu import whole
from takifugu.errors import TakifuguError
from takifugu.ledger import open_ledger, restore_ledger
from takifugu.priors import MarkovChain, read_prior, write_prior
from takifugu.project.project import init_project
from takifugu.whole import read_whole, real_path, write_whole


def test_a_file_is_replaced_and_nothing_lies_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    for content in ("ε = 1\n", b"\x00\xff"):
        write_whole(path, content)
        assert path.read_bytes() == (content if isinstance(content, bytes) else content.encode())
        assert list(tmp_path.iterdir()) == [path]


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.mkdir()
    with pytest.raises(OSError, match="directory"):
        write_whole(path, "new")
    assert list(tmp_path.iterdir()) == [path] and path.is_dir()
    with pytest.raises(OSError, match="No such file"):
        write_whole(tmp_path / "none" / "a.txt", "new")


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
    monkeypatch.setattr(whole, "PATIENCE", 0.1)
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
    monkeypatch.setattr(whole, "PATIENCE", 0.1)
    with pytest.raises(OSError, match="nobody writes to this pipe"):
        read_whole(path)


def test_a_link_to_itself_leads_to_itself(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to("loop")
    assert real_path(loop) == real_path(tmp_path) / "loop"
    (tmp_path / "link").symlink_to(tmp_path)
    assert real_path(tmp_path / "link" / "x") == real_path(tmp_path) / "x"
