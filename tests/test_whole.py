"""A file is written whole or not at all."""

from pathlib import Path

import pytest

from takifugu.whole import write_whole


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
