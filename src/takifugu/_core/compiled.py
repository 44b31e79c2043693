"""Loops that numba compiles, kept on disk where possible; numba, which loads slowly, by need.

Work on a range of numbers, shared between threads.
"""

import os
from collections.abc import Callable
from typing import Any, TypeVar

Loop = TypeVar("Loop", bound=Callable[..., Any])
REORDER: set[str] = {"nnan", "nsz", "reassoc"}  # lets a minimum be taken four at a time


def compiled(loop: Loop, *, fast: bool = False) -> Loop:
    """Compile ``loop`` so that it releases the interpreter's lock; cached on disk if possible.

    Division by 0 gives what numpy gives, and no error. numba caches compiled loops beside the
    source, or in the user's cache when that is read-only, or where NUMBA_CACHE_DIR says. Where none
    can be written they are compiled in every process.
    """
    import numba

    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    options["fastmath"] = REORDER if fast else False
    try:
        cached: Loop = numba.njit(cache=True, **options)(loop)
    except RuntimeError:  # numba: no locator available
        cached = numba.njit(**options)(loop)
    return cached


def share_range(work: Callable[[int, int], None], size: int, *, worthwhile: bool) -> None:
    """Run ``work(begin, end)`` over all of range(size), in threads if that is ``worthwhile``.

    ``work`` must release the interpreter's lock, as compiled loops do, and write only what belongs
    to its own part of the range.
    """
    # asking how many processors there are takes longer than a small piece of work
    workers = min(os.cpu_count() or 1, size) if worthwhile else 1
    if workers <= 1:
        work(0, size)
        return
    parts = min(8 * workers, size)
    cuts = [size * k // parts for k in range(parts + 1)]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(work, cuts[:-1], cuts[1:]))
