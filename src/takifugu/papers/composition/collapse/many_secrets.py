"""Example 2 (the paper, Theorem 2): every bit is a secret, and two runs reveal them all."""

from fractions import Fraction

from takifugu.errors import InvalidWorld
from takifugu.papers.composition.collapse.linear_answers import LinearAnswers
from takifugu.papers.composition.collapse.repeated_runs import PrintedNumber


def many_secrets(n: int) -> LinearAnswers:
    """The mechanism of Example 2 on ``n`` fair bits.

    Type A is (x2⊕x1, …, xn⊕x1): it leaves a dataset and its complement. Type B is the parity of
    all bits if n is odd, of all but the first if n is even: always an odd number of bits, and at
    least three. The rows of type A span the vectors of even weight, type B is one of odd weight:
    neither holds a unit vector, and together they span everything.

    >>> example = many_secrets(5)
    >>> example.loss(1).epsilon, example.loss(2).epsilon, example.waiting().expectation
    (0.0, inf, Fraction(3, 1))
    """
    if not n >= 3:
        raise InvalidWorld("n", given=f"is {n}", needed="be at least 3 bits")
    differences = [[1 if i in (0, k) else 0 for i in range(n)] for k in range(1, n)]
    parity = [[1 if i > 0 or n % 2 else 0 for i in range(n)]]
    example = LinearAnswers.of(
        [differences, parity],
        names=["A", "B"],
        title=f"many secrets: each of {n} fair bits",
    )
    return example.noting(
        PrintedNumber("P(a type-A output | secret)", printed_type_a(n), example.probability(0)),
        PrintedNumber("expected number of runs", Fraction(3), example.waiting().expectation),
    )


def printed_type_a(n: int) -> Fraction:
    """P(a type-A output | a secret) as the proof of Theorem 2 prints it: 2^(1−n).

    The right value is 2^−n: with the printed one the 2^(n−1) outputs of type A would have
    probability 1 in all, and nothing would be left for type B. The theorem needs only that the
    value is the same for both secrets, and it is.
    """
    return Fraction(2, 2**n)
