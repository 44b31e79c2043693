"""The files of a dataset: what they are called, what they hold, and whether they are whole."""

import codecs
import hashlib
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from takifugu.errors import InvalidFile

Kind = Literal["text", "label", "whole", "number", "check-in time", "time"]
Layout = Literal["comma", "tab"]

CHUNK = 2**20

Progress = Callable[[str, int, int], None]  # what is being done, steps done, steps in all


@dataclass(frozen=True)
class Column:
    """A column that a file must have.

    Attributes:
        name: As its authors name it; where they name none, as we do.
        kind: What its values are, if they are read: ``text`` must be there in every row, a
            ``label`` may be missing; None if only the place of the column matters.
    """

    name: str
    kind: Kind | None = None


@dataclass(frozen=True)
class RequiredFile:
    """A file, or a set of files alike, that a dataset is read from.

    Attributes:
        name: Its name as its authors publish it, or a pattern.
        columns: Its columns; in order where there is no header.
        layout: Commas and a header line, or tabs and no header.
        encodings: What the text may be encoded in; the first that fits is taken.
        identifying: Whether the name alone identifies the dataset.
    """

    name: str
    columns: tuple[Column, ...]
    layout: Layout = "comma"
    encodings: tuple[str, ...] = ("utf-8",)
    identifying: bool = True

    @property
    def shape(self) -> str:
        """The columns in words."""
        how = "comma-separated with a header" if self.layout == "comma" else "tab-separated"
        return f"{', '.join(column.name for column in self.columns)} ({how})"

    def within(self, folder: Path) -> tuple[Path, ...]:
        """The files of this name, in ``folder`` or in the first folder in it that has any."""
        try:
            inner = sorted(path for path in folder.iterdir() if path.is_dir())
            for place in (folder, *inner):
                if found := sorted(path for path in place.glob(self.name) if path.is_file()):
                    return tuple(found)
        except OSError:  # no folder, or not ours to read: its files are not there
            return ()
        return ()


FoundFiles = Mapping[
    str, tuple[RequiredFile, Sequence[Path]]
]  # by the name that a recipe has for them


@dataclass(frozen=True)
class ReadFile:
    """A file as it was read once: its identity, how it is encoded.

    Attributes:
        path: Where it is.
        size: Its bytes.
        changed: When it and its place were last written, in nanoseconds.
        sha256: The hash of every byte.
        encoding: The first of the wanted encodings that fits all of it.
    """

    path: Path
    size: int
    changed: tuple[int, int]
    sha256: str
    encoding: str

    def to_document(self) -> dict[str, object]:
        """What is noted beside a table made of it; the name counts, the folder does not."""
        return {
            "name": self.path.name,
            "size": self.size,
            "changed": list(self.changed),
            "sha256": self.sha256,
            "encoding": self.encoding,
        }


def inspect_file(
    needed: RequiredFile, path: Path, noted: Sequence[Mapping[str, object]] = ()
) -> ReadFile:
    """Read a file through once: refuse one that is empty, cut off or not text.

    A file that was ``noted`` before, with the same size and times, is not read again.
    """
    try:
        facts = path.stat()
        changed = (facts.st_mtime_ns, facts.st_ctime_ns)
        for note in noted:
            same = (note.get("name"), note.get("size"), note.get("changed"))
            if same == (path.name, facts.st_size, list(changed)):
                return ReadFile(
                    path, facts.st_size, changed, str(note["sha256"]), str(note["encoding"])
                )
        sha256, encoding = _read_through(needed, path)
    except OSError as error:
        raise InvalidFile(
            str(path),
            given=f"cannot be read ({(error.strerror or 'input error').lower()})",
            needed=f"hold the columns {needed.shape}",
        ) from None
    return ReadFile(path, facts.st_size, changed, sha256, encoding)


def _read_through(needed: RequiredFile, path: Path) -> tuple[str, str]:
    """The hash of a file and the encoding of its text; an error if it is not what it must be."""
    digest = hashlib.sha256()
    decoders = {name: codecs.getincrementaldecoder(name)() for name in needed.encodings}
    content = False
    for block, last in _blocks(path, digest):
        content = content or bool(block.strip())
        for name, decoder in list(decoders.items()):
            try:
                decoder.decode(block, final=last)
            except UnicodeDecodeError:
                del decoders[name]
        if not decoders:
            raise InvalidFile(
                str(path),
                given=f"is not text in {' or '.join(needed.encodings)}",
                needed=f"hold the columns {needed.shape}",
            )
    if not content:
        raise InvalidFile(str(path), given="is empty", needed=f"hold the columns {needed.shape}")
    return digest.hexdigest(), next(iter(decoders))


def _blocks(path: Path, digest: "hashlib._Hash") -> Iterator[tuple[bytes, bool]]:
    """The text of a file, unpacked if need be, and whether it is the last of it.

    A database may take a cut-off archive for a whole one, so it is unpacked to its end here.
    """
    packed = path.suffix == ".gz"
    unpack = zlib.decompressobj(wbits=31)
    with path.open("rb") as stream:
        while chunk := stream.read(CHUNK):
            digest.update(chunk)
            if not packed:
                yield chunk, False
                continue
            while chunk:
                if unpack.eof:  # an archive may have several parts, one after the other
                    unpack = zlib.decompressobj(wbits=31)
                try:
                    yield unpack.decompress(chunk), False
                except zlib.error:
                    raise InvalidFile(
                        str(path), given="is not a gzip archive", needed="be one, whole"
                    ) from None
                chunk = unpack.unused_data
    if packed and not unpack.eof:
        raise InvalidFile(
            str(path), given="is cut off", needed="be a whole gzip archive: fetch it again"
        )
    yield b"", True
