"""Which of many rays span the cone of them all; a ray is left out only with a proof."""

import numpy as np

from takifugu.numeric import UNIT, Booleans, Floats, Integers

NOTABLE = 12  # rows that a quick look keeps


def extremes(rays: Floats) -> tuple[Integers, int]:
    """Which rows of ``rays`` span the cone of all of them, and the roundings this may cost.

    Exact for two columns. For three, a row is left out only if it lies in the cone of three
    others by a margin that rounding cannot explain. For more, only repeated rows are left out.
    """
    possible = np.flatnonzero(rays.any(axis=1))
    if len(possible) <= 1:
        return possible, 0
    rows = rays[possible]
    used = rows.any(axis=0)
    if not used.all():
        rows = np.ascontiguousarray(rows[:, used])
    if rows.shape[1] == 1:
        return possible[:1], 0
    if len(rows) == 2:
        return possible, 0
    if rows.shape[1] == 2:
        with np.errstate(divide="ignore"):
            ratio = rows[:, 0] / rows[:, 1]
        ends = sorted({int(ratio.argmin()), int(ratio.argmax())})
        return possible[ends], 2
    keep = _first_of_each(rows)
    if rows.shape[1] == 3 and len(keep) > 3:
        keep = keep[_not_inside(rows[keep])]
    return possible[keep], 0


def _first_of_each(rows: Floats) -> Integers:
    """The first of every group of equal rows, in order."""
    raw = np.ascontiguousarray(rows)
    whole = raw.view(np.dtype((np.void, raw.itemsize * raw.shape[1]))).ravel()
    first: Integers = np.sort(np.unique(whole, return_index=True)[1])
    return first


def _not_inside(rays: Floats) -> Integers:
    """Rows of three numbers that are not proved to lie inside the cone of others.

    Any convex hull will do to find the candidates; the proof is in the signs of determinants,
    each larger than 16 units of rounding of the terms it is made of.
    """
    hull = _hull(rays / rays.sum(axis=1, keepdims=True))
    if len(hull) < 3 or len(hull) == len(rays):
        return np.arange(len(rays))
    inner = np.ones(len(rays), dtype=np.bool_)
    inner[hull] = False
    points, first, corners = rays[inner], rays[hull[0]], rays[hull[1:]]
    a, b = corners[:-1], corners[1:]
    origin = np.broadcast_to(first, a.shape)
    inside: Booleans = np.zeros((len(points), len(a)), dtype=np.bool_)
    for sign in (1.0, -1.0):
        sure = np.ones_like(inside)
        for u, v in ((a, b), (b, origin), (origin, a)):
            value, size = _determinants(points, u, v)
            sure &= sign * value > 16 * UNIT * size
        inside |= sure
    inner[inner] = inside.any(axis=1)
    return np.flatnonzero(~inner)


def _determinants(points: Floats, u: Floats, v: Floats) -> tuple[Floats, Floats]:
    """``[point, triangle]``: det(point, u, v), and the sum of the sizes of its six terms."""
    plus = u[:, [1, 2, 0]] * v[:, [2, 0, 1]]
    minus = u[:, [2, 0, 1]] * v[:, [1, 2, 0]]
    return points @ (plus - minus).T, points @ (plus + minus).T


def _hull(points: Floats) -> list[int]:
    """The corners of the convex hull of the first two columns, in turn (Andrew's chain)."""
    order = np.lexsort((points[:, 1], points[:, 0])).tolist()
    place = points.tolist()
    around: list[int] = []
    for way in (order, order[::-1]):
        chain: list[int] = []
        for new in way:
            x, y = place[new][0], place[new][1]
            while len(chain) >= 2:
                (px, py, _), (qx, qy, _) = place[chain[-2]], place[chain[-1]]
                if (qx - px) * (y - py) - (qy - py) * (x - px) > 0:
                    break
                chain.pop()
            chain.append(new)
        around += chain[:-1]
    return around


def notable(rays: Floats) -> Integers:
    """At most a dozen rows that look furthest in fixed directions: no proof, but quick.

    Good for lower bounds: every row is a real alternative, and the best is mostly among them.
    """
    possible = np.flatnonzero(rays.any(axis=1))
    rows = rays[possible]
    if len(rows) <= NOTABLE:
        return possible
    width = rows.shape[1]
    level = rows / np.maximum(rows.max(axis=0), np.finfo(np.float64).tiny)
    level /= level.sum(axis=1, keepdims=True)
    every = np.sin(np.outer(np.arange(1, width + 1), np.arange(1, NOTABLE + 1)) * 1.6180339887)
    if width <= NOTABLE // 2:
        every[:, :width] = np.eye(width)
        every[:, width : 2 * width] = -np.eye(width)
    return possible[np.unique(np.argmax(level @ every, axis=0))]
