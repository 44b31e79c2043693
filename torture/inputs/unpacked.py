"""What packed files hold: workbooks, Parquet, PDF, PNG, gzip and pictures within pages."""

import base64
import binascii
import contextlib
import io
import re
import zipfile
import zlib
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq

MOST = 64 << 20  # bytes that one file is unpacked to
DEEPEST = 3  # a gzip in a zip in a page
_STREAM = re.compile(rb"stream\r?\n")
_SHOWN = re.compile(rb"\(((?:[^()\\]|\\.)*)\)|<([0-9A-Fa-f\s]+)>")  # text of a PDF, as it is drawn
_INLINE = re.compile(rb"base64,\s*([A-Za-z0-9+/=]{16,})")
_PICTURE = b"\x89PNG\r\n\x1a\n"


def unpacked(data: bytes, depth: int = DEEPEST) -> Iterator[bytes]:
    """The bytes themselves, and whatever is packed in them."""
    yield data
    if not depth:
        return
    for part in _parts(data):
        yield from unpacked(part, depth - 1)


def _parts(data: bytes) -> Iterator[bytes]:
    if data.startswith(b"PK\x03\x04"):
        yield from _members(data)
    elif data.startswith(b"\x1f\x8b"):
        yield _inflated(data, zlib.MAX_WBITS | 16)
    elif data.startswith(b"PAR1"):
        yield from _columns(data)
    elif data.startswith(b"%PDF"):
        for begin in _STREAM.finditer(data):
            stream = _inflated(data[begin.end() :], zlib.MAX_WBITS)
            yield stream
            yield _drawn(stream)
    elif data.startswith(_PICTURE):
        yield from _texts(data)
    elif b"base64," in data:
        for found in _INLINE.finditer(data):
            with contextlib.suppress(binascii.Error):
                yield base64.b64decode(found[1])


def _members(data: bytes) -> Iterator[bytes]:
    with (
        contextlib.suppress(zipfile.BadZipFile, OSError, zlib.error, NotImplementedError),
        zipfile.ZipFile(io.BytesIO(data)) as packed,
    ):
        for member in packed.infolist():
            yield member.filename.encode("utf-8", "surrogateescape")
            with packed.open(member) as file:
                yield file.read(MOST)


def _inflated(data: bytes, form: int) -> bytes:
    """What zlib can make of it, up to where it is spoiled; members of gzip follow one another."""
    found = b""
    while data and len(found) < MOST:
        packed = zlib.decompressobj(form)
        try:
            more = packed.decompress(data, MOST)
        except zlib.error:
            break
        found += more
        data = packed.unused_data if form > zlib.MAX_WBITS else b""
    return found


def _columns(data: bytes) -> Iterator[bytes]:
    """The names and the cells of a table, as text."""
    with contextlib.suppress(pa.ArrowException, OSError):
        table = pq.read_table(pa.BufferReader(data), use_threads=False)
        for name, column in zip(table.column_names, table.columns, strict=True):
            cells = "\n".join(map(str, column.to_pylist()))
            yield f"{name}\n{cells}".encode("utf-8", "surrogatepass")


def _drawn(stream: bytes) -> bytes:
    """The letters that a stream of a PDF draws, without what moves them closer together."""
    return b"".join(
        bytes.fromhex(hexes.decode()) if hexes and not len(b"".join(hexes.split())) % 2 else plain
        for plain, hexes in _SHOWN.findall(stream)
    )


def _texts(data: bytes) -> Iterator[bytes]:
    """The texts of a picture: tEXt, zTXt and iTXt."""
    at = len(_PICTURE)
    while at + 8 <= len(data):
        size, kind = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8]
        content = data[at + 8 : at + 8 + size]
        at += 12 + size
        if kind == b"tEXt":
            yield content
        elif kind == b"zTXt":
            yield _inflated(content.partition(b"\0")[2][1:], zlib.MAX_WBITS)
        elif kind == b"iTXt":
            after = content.partition(b"\0")[2]  # packed or not, how, language, keyword
            text = after[2:].partition(b"\0")[2].partition(b"\0")[2]
            yield _inflated(text, zlib.MAX_WBITS) if after[:1] == b"\1" else text
