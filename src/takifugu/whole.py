"""Files that are seen whole or not at all."""

import os
from contextlib import suppress
from pathlib import Path
from uuid import uuid4


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file under another name beside it and rename it; an OSError leaves nothing behind."""
    part = path.with_name(f".takifugu-{os.getpid()}-{uuid4().hex[:8]}.part")
    try:
        part.write_bytes(content.encode() if isinstance(content, str) else content)
        part.replace(path)
    except OSError:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise
