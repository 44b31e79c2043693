"""Loops that numba compiles, kept on disk where possible. Imported by need: numba loads slowly."""

from collections.abc import Callable
from typing import Any, TypeVar

import numba

Loop = TypeVar("Loop", bound=Callable[..., Any])
REORDER: set[str] = {"nnan", "nsz", "reassoc"}  # lets a minimum be taken four at a time


def compiled(loop: Loop, *, fast: bool = False) -> Loop:
    """Compile ``loop`` so that it releases the interpreter's lock; cached on disk if possible.

    Division by 0 gives what numpy gives, and no error. numba caches compiled loops beside the
    source, or in the user's cache when that is read-only, or where NUMBA_CACHE_DIR says. Where none
    can be written they are compiled in every process.
    """
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    options["fastmath"] = REORDER if fast else False
    try:
        cached: Loop = numba.njit(cache=True, **options)(loop)
    except RuntimeError:  # numba: no locator available
        cached = numba.njit(**options)(loop)
    return cached
