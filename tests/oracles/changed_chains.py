"""Chains of changed labels, by walking: labels renamed one by one."""

import itertools

Table = list[list[float]]


def relabelled(paths: list[list[int]], old: int, new: int) -> list[list[int]]:
    """The paths with every ``old`` called ``new``."""
    return [[new if state == old else state for state in path] for path in paths]


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
