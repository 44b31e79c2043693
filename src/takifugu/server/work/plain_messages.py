"""Messages between the server and a worker: plain values, each with its length before it.

A message is pickled, since that keeps bytes, tuples and every float as they are and is fast; but
only values of Python's own plain types are written, and nothing else is read: a pickle that names a
class or a function is refused before it is looked up. So reading a message runs no code and imports
nothing, whatever it holds. The pipe is a pair of sockets without a name: the server made it, and no
process but its own worker has the other end.
"""

import asyncio
import io
import pickle
import struct
from typing import Any, BinaryIO

HEAD = struct.Struct("!Q")
MAX_MESSAGE_BYTES = 2**30  # bytes of one message: a larger one is a mistake


class NotPlain(TypeError):
    """A message holds something else than plain values."""


class _Writer(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        """Refuse whatever is not one of the plain types, which never come here."""
        raise NotPlain(f"a message has a {type(value).__name__}; it must hold plain values only")


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """Refuse every class and function."""
        raise NotPlain(f"a message names {module}.{name}; it must hold plain values only")


def packed(message: Any) -> bytes:
    """A message as it is sent.

    >>> unpacked(packed({"rows": [(1, 0.1, None)], "file": b"..."})[HEAD.size :])
    {'rows': [(1, 0.1, None)], 'file': b'...'}
    """
    content = io.BytesIO()
    content.write(bytes(HEAD.size))
    _Writer(content, protocol=5).dump(message)
    size = content.tell() - HEAD.size
    if size > MAX_MESSAGE_BYTES:
        raise NotPlain(f"a message has {size} bytes; at most {MAX_MESSAGE_BYTES} are sent")
    content.seek(0)
    content.write(HEAD.pack(size))
    return content.getvalue()


def unpacked(content: bytes) -> Any:
    """The message that was sent; `NotPlain` if it holds anything but plain values."""
    return _Reader(io.BytesIO(content)).load()


def _size(head: bytes) -> int:
    (size,) = HEAD.unpack(head)
    if size > MAX_MESSAGE_BYTES:
        raise NotPlain(f"a message has {size} bytes; at most {MAX_MESSAGE_BYTES} are read")
    return int(size)


def receive(pipe: BinaryIO) -> Any:
    """The next message, in a worker; `EOFError` if the server is gone."""
    head = pipe.read(HEAD.size)
    if len(head) < HEAD.size:
        raise EOFError
    size = _size(head)
    content = pipe.read(size)
    if len(content) < size:
        raise EOFError
    return unpacked(content)


async def receive_async(pipe: asyncio.StreamReader) -> Any:
    """The next message, in the server; `EOFError` if the worker is gone."""
    return unpacked(await pipe.readexactly(_size(await pipe.readexactly(HEAD.size))))
