"""Chains of changed labels, by walking: rows skipped one by one, labels renamed one by one."""

import itertools
from fractions import Fraction

Table = list[list[float]]


def skipped(matrix: Table, gone: int) -> Table:
    """The matrix of the rows that are not ``gone``, in exact fractions.

    From x the walk goes to y at once, or to ``gone`` and from there, after any number of stays,
    to y. If ``gone`` is never left, the walk is known to go elsewhere.
    """
    rest = [k for k in range(len(matrix)) if k != gone]
    leaving = sum((Fraction(matrix[gone][y]) for y in rest), Fraction(0))
    table = []
    for x in rest:
        row = {y: Fraction(matrix[x][y]) for y in rest}
        if leaving:
            for y in rest:
                row[y] += Fraction(matrix[x][gone]) * Fraction(matrix[gone][y]) / leaving
        total = sum(row.values())
        table.append([float(row[y] / total) for y in rest])
    return table


def relabelled(paths: list[list[int]], old: int, new: int) -> list[list[int]]:
    """The paths with every ``old`` called ``new``."""
    return [[new if state == old else state for state in path] for path in paths]


def without(paths: list[list[int]], gone: int) -> list[list[int]]:
    """The paths without their rows that are ``gone``."""
    return [[state for state in path if state != gone] for path in paths]


def counted(paths: list[list[int]], states: list[int]) -> list[list[int]]:
    """``[x][y]``: how often y comes just after x."""
    counts = [[0 for _ in states] for _ in states]
    for path in paths:
        for before, after in itertools.pairwise(path):
            counts[states.index(before)][states.index(after)] += 1
    return counts


def lumped(matrix: Table, law: list[float], kept: int, gone: int) -> Table:
    """The matrix in which two states count as one, each as often as ``law`` has it."""
    rest = [k for k in range(len(matrix)) if k != gone]
    table = []
    for x in rest:
        parts = [(law[kept], kept), (law[gone], gone)] if x == kept else [(1.0, x)]
        mass = sum(weight for weight, _ in parts)
        row = [
            sum(
                weight / mass * (matrix[z][y] + (matrix[z][gone] if y == kept else 0.0))
                for weight, z in parts
            )
            for y in rest
        ]
        total = sum(row)
        table.append([value / total for value in row])
    return table
