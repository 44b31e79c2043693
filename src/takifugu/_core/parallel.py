"""Work on a range of numbers, shared between threads."""

import os
from collections.abc import Callable


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
