"""Which of many rays span the cone of them all; a ray is left out only with a proof."""

import numpy as np

from takifugu._rounding import UNIT
from takifugu.numeric import Floats, Integers

SLACK = 2.0**-40  # how far, in every coordinate, a ray left out may be from the cone it lies in
COST = round(SLACK / UNIT)  # the same in units of rounding
FEW = 8  # rows that are not worth thinning
MANY = 3_000  # rows that are too many to thin
WIDE = 4  # columns beyond which the proof is slow


def extremes(rays: Floats) -> tuple[Integers, int]:
    """Which rows of ``rays`` span the cone of all of them, and the roundings this may cost.

    Exact for two columns. For more, a row p is left out if numbers λ ≥ 0 were found with
    Σ λ_j r_j = p up to ``SLACK`` relative in every coordinate, over rows r_j that stay. Rows of
    zeros (impossible) are always left out.
    """
    every = np.arange(len(rays))
    if rays.min() > 0:
        possible, rows = every, rays
    else:
        possible = np.flatnonzero(rays.any(axis=1))
        rows = rays[possible]
        used = rows.any(axis=0)
        rows = rows if used.all() else np.ascontiguousarray(rows[:, used])
    if len(possible) <= 1 or rows.shape[1] <= 1:
        return possible[:1], 0
    if len(rows) == 2:
        return possible, 0
    if rows.shape[1] == 2:
        with np.errstate(divide="ignore"):
            ratio = rows[:, 0] / rows[:, 1]
        ends = sorted({int(ratio.argmin()), int(ratio.argmax())})
        return possible[ends], 2
    if not FEW < len(rows) <= MANY or rows.shape[1] > WIDE:
        return possible, 0
    keep = _first_of_each(rows)
    if len(keep) > FEW:
        keep = keep[_thinned(rows[keep])]
    return possible[keep], COST


def _first_of_each(rows: Floats) -> Integers:
    """The first of every group of equal rows, in order."""
    raw = np.ascontiguousarray(rows)
    whole = raw.view(np.dtype((np.void, raw.itemsize * raw.shape[1]))).ravel()
    first: Integers = np.sort(np.unique(whole, return_index=True)[1])
    return first


def _thinned(rows: Floats) -> Integers:
    """Rows that are not proved to lie in the cone of the corners of their convex hull.

    The hull is cut into simplices that share its first corner. Whatever Qhull finds does no harm:
    a row is left out only if its coordinates λ in one of the simplices pass the check.
    """
    from scipy.spatial import ConvexHull, QhullError

    level = rows / rows.max(axis=0)
    level /= level.sum(axis=1, keepdims=True)
    try:
        hull = ConvexHull(level[:, :-1])
    except QhullError:  # the rows lie in a plane, or nearly
        return np.arange(len(rows))
    stay = np.zeros(len(rows), dtype=np.bool_)
    stay[hull.vertices] = True
    first = int(hull.vertices[0])
    facets = hull.simplices[~(hull.simplices == first).any(axis=1)]
    rest = np.flatnonzero(~stay)
    for facet in facets:
        if not rest.size:
            break
        corners = level[[first, *facet.tolist()]]
        try:
            share = level[rest] @ np.linalg.inv(corners)
        except np.linalg.LinAlgError:
            continue
        near = np.flatnonzero((share > -1e-13).all(axis=1))
        target = level[rest[near]]
        gap = np.abs(np.maximum(share[near], 0.0) @ corners - target)
        # the check itself rounds: a third of the slack leaves it room
        rest = np.delete(rest, near[np.all(gap <= 0.66 * SLACK * target, axis=1)])
    stay[rest] = True
    return np.flatnonzero(stay)
