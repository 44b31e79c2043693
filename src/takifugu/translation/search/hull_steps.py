"""Flows for a step over a hull of laws: branch and bound over the laws on its edges.

`takifugu.translation.certify.hulls` computes what they prove.
"""

from dataclasses import dataclass

import numpy as np

from takifugu._core.numeric import Floats
from takifugu.translation.certify.flow import Couplings, Edge, HullProof
from takifugu.translation.certify.hulls import HullStep, LawOnEdge
from takifugu.translation.search.couplings import improve

CLOSE = 1e-3  # relative distance between the two bounds of a step at which its search ends
MAX_POINTS = 400  # laws that are tried in one step
MAX_WORK = 12_000  # and as many of them as this allows, times states²: beyond it boxes must do
LEAST_SHARE = 1e-3  # of a cell that is split off


@dataclass(frozen=True, eq=False)
class _Point:
    """A law of an edge: its share of the second vertex, its flows, and what they prove."""

    share: float
    law: LawOnEdge
    couplings: Couplings
    value: Floats


@dataclass(frozen=True, eq=False)
class _Cell:
    """A piece of an edge between two points, and what it proves."""

    edge: Edge
    ends: tuple[_Point, _Point]
    upper: Floats


def solve_hull(step: HullStep, *, guess: Floats) -> HullProof | None:
    """Flows for all laws of the hull; None where a closed form, or the dearest move, must do."""
    if not step.needs_flows:
        return None
    return _Search(step, guess).proof()


class _Search:
    def __init__(self, step: HullStep, guess: Floats) -> None:
        self._step, self._guess = step, guess
        self._couplings: Couplings | None = None

    def proof(self) -> HullProof:
        """The flows of boxes, and of as many laws as it takes."""
        step, count = self._step, len(self._step.weights)
        robust = step.robust
        _, boxes = improve(
            *(robust.numerator, robust.denominator, step.cost), guess=self._guess, known=None
        )
        affordable = min(MAX_POINTS, MAX_WORK // max(len(step.cost), count) ** 2)
        narrow = step.hull.width <= CLOSE / 10  # then boxes come as close
        if narrow or count == 1 or affordable <= len(step.hull.laws):
            return HullProof(boxes)
        return HullProof(boxes, self._edges(robust.upper(boxes), affordable))

    def _edges(self, enough: Floats, affordable: int) -> dict[Edge, list[tuple[float, Couplings]]]:
        """Cells, split until the largest bound is near a loss that occurs.

        No bound below ``enough`` is of use where that is larger than what a law attains.
        """
        step, spent = self._step, 0
        best = np.zeros_like(enough)
        vertices: dict[int, _Point] = {}
        cells = []
        for edge in step.edges:
            laws = step.ends(edge)
            shared = all(law.inner for law in laws)
            ends = []
            for share, vertex, law in zip((0.0, 1.0), edge, laws, strict=True):
                known = vertices.get(vertex) if shared else None
                if known is None:
                    known = self._at(share, law)
                    spent += 1
                    if shared:
                        vertices[vertex] = known
                ends.append(_Point(share, law, known.couplings, known.value))
                best = np.maximum(best, known.value)
            cells.append(self._cell(edge, ends[0], ends[1]))
        while spent < affordable:
            over = [float((np.minimum(cell.upper, enough) - best).max()) for cell in cells]
            k = int(np.argmax(over))
            if over[k] <= CLOSE * float(best.max()) + 1e-12:
                break
            cell = cells.pop(k)
            middle = self._middle(cell, best)
            if middle is None:
                cells.append(cell)
                break
            best = np.maximum(best, middle.value)
            spent += 1
            first, second = cell.ends
            cells += [self._cell(cell.edge, first, middle), self._cell(cell.edge, middle, second)]
        points: dict[Edge, dict[float, Couplings]] = {}
        for cell in cells:
            for point in cell.ends:
                points.setdefault(cell.edge, {})[point.share] = point.couplings
        return {edge: sorted(flows.items(), key=lambda p: p[0]) for edge, flows in points.items()}

    def _at(self, share: float, law: LawOnEdge) -> _Point:
        """The flows of one law."""
        step = self._step
        _, self._couplings = improve(
            *(law.rows, law.rows, step.cost), guess=self._guess, known=self._couplings
        )
        return _Point(share, law, self._couplings, step.at(law).upper(self._couplings))

    def _cell(self, edge: Edge, first: _Point, second: _Point) -> _Cell:
        ends = np.maximum(first.value, second.value)
        return _Cell(edge, (first, second), self._step.between(first.law, second.law, ends))

    def _middle(self, cell: _Cell, best: Floats) -> _Point | None:
        """For the pair that is worst, λ changes by as much to both sides of it."""
        x, y = np.unravel_index(int(np.argmax(cell.upper - best)), best.shape)
        first, second = cell.ends
        logs = np.array([first.law.logs, second.law.logs])[:, [x, y]]  # [end, x or y]
        part = 0.5  # where one end is a limit
        if np.isfinite(logs).all():
            (a, c), (b, d) = np.exp(logs - logs.max(axis=0)).tolist()
            if min(a, b, c, d) > 0:
                middle = np.sqrt(c / a) * np.sqrt(d / b)
                slope = (d - c) - middle * (b - a)
                part = (middle * a - c) / slope if slope else 0.5
        part = min(max(part, LEAST_SHARE), 1 - LEAST_SHARE)
        share = first.share + part * (second.share - first.share)
        law = self._step.inside(cell.edge, share)
        return None if law is None else self._at(share, law)
