"""The collapse examples by enumeration: every dataset, every sequence of outputs.

A world here is a list of ``(prior probability, label, row)``: the label is all that is secret about
the dataset, the row its law of outputs. Nothing of the package is used.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction
from itertools import permutations, product
from typing import Any

import numpy as np
from scipy.optimize import linprog

from takifugu.priors import Knowledge, Secret

World = list[tuple[Fraction, Any, Mapping[Hashable, Fraction]]]
HALF = Fraction(1, 2)


def single(first: Sequence[int], second: Sequence[int], probability: Fraction) -> World:
    """Example 1, from weights; datasets a1, a2, … and b1, b2, …."""
    p = {f"a{i}": Fraction(w, sum(first)) for i, w in enumerate(first, 1)}
    q = {f"b{i}": Fraction(w, sum(second)) for i, w in enumerate(second, 1)}
    world: World = []
    for d in p:
        world.append((probability * p[d], "s1", {(d, other): q[other] for other in q}))
    for d in q:
        world.append(((1 - probability) * q[d], "s2", {(other, d): p[other] for other in p}))
    return world


def bits(n: int) -> World:
    """Example 2, as the paper words it."""
    world: World = []
    for x in product((0, 1), repeat=n):
        type_a = ("A", tuple(x[k] ^ x[0] for k in range(1, n)))
        type_b = ("B", (sum(x if n % 2 == 1 else x[1:]) % 2,))
        world.append((Fraction(1, 2**n), x, {type_a: HALF, type_b: HALF}))
    return world


def four_cases(probability: Fraction, true_inside: Fraction, false_inside: Fraction) -> World:
    """Example 3 under one prior, with one dataset in each case."""
    return [
        (probability * true_inside, "s1", {("1a", "2a"): HALF, ("1a", "2b"): HALF}),
        (probability * (1 - true_inside), "s1", {("1b", "2a"): HALF, ("1b", "2b"): HALF}),
        ((1 - probability) * false_inside, "not", {("1a", "2a"): HALF, ("1b", "2a"): HALF}),
        ((1 - probability) * (1 - false_inside), "not", {("1a", "2b"): HALF, ("1b", "2b"): HALF}),
    ]


def law(world: World, runs: int) -> list[Fraction]:
    """P(T = 1), …, P(T = runs): when the datasets still possible first share one label."""
    outputs = {output for _, _, row in world for output in row}
    found = [Fraction(0)] * runs
    open_ = [[p for p, _, _ in world]]  # for every sequence so far, the joint probabilities
    for k in range(runs):
        still: list[list[Fraction]] = []
        for joint in open_:
            for output in outputs:
                after = [
                    p * row.get(output, 0) for p, (_, _, row) in zip(joint, world, strict=True)
                ]
                labels = {label for p, (_, label, _) in zip(after, world, strict=True) if p > 0}
                if len(labels) == 1:
                    found[k] += sum(after)
                elif labels:
                    still.append(after)
        open_ = still
    return found


def worst_odds(
    world: World, runs: int, part: Callable[[Any], Hashable] = lambda label: label
) -> Fraction | float:
    """Max of P(outputs | one value of the secret) / P(outputs | another), at least 1.

    The secret is the given part of the label; the maximum is over all sequences of outputs.
    """
    outputs = sorted({output for _, _, row in world for output in row}, key=repr)
    values = {part(label) for _, label, _ in world}
    worst: Fraction | float = Fraction(1)
    for sequence in product(outputs, repeat=runs):
        joint, total = dict.fromkeys(values, Fraction(0)), dict.fromkeys(values, Fraction(0))
        for p, label, row in world:
            total[part(label)] += p
            for output in sequence:
                p *= row.get(output, 0)
            joint[part(label)] += p
        for left, right in permutations(values, 2):
            if joint[left] > 0 and joint[right] == 0:
                worst = float("inf")
            elif joint[left] > 0:
                worst = max(worst, joint[left] / total[left] / (joint[right] / total[right]))
    return worst


def extremes(
    knowledge: Knowledge, secret: Secret, likelihood: Sequence[float]
) -> tuple[float, float]:
    """Least and largest Σ P(D|s)·likelihood(D) over all conditionals that the knowledge allows."""
    inside = secret.mask(knowledge.universe)
    lines = knowledge.lines(secret)
    upper = [c for line in lines for c in (line.coefficients, -line.coefficients)]
    limits = [limit for line in lines for limit in (line.high, -line.low)]
    ends = []
    for sign in (1.0, -1.0):
        answer = linprog(
            sign * np.asarray(likelihood),
            A_ub=np.array(upper) if upper else None,
            b_ub=limits or None,
            A_eq=np.ones((1, len(inside))),
            b_eq=[1.0],
            bounds=[(0, 1 if here else 0) for here in inside],
        )
        assert answer.status == 0
        ends.append(sign * float(answer.fun))
    return ends[0], ends[1]
