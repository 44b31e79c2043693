"""Privacy collapse (the paper, Section 4): one run leaks nothing, two runs reveal the secret.

Three mechanisms, each with the exact loss of one run and of several, the exact law of the number
of runs until the secret is revealed, and an adversary who finds it from outputs alone.
"""

from collections.abc import Callable, Mapping

from takifugu.errors import Malformed
from takifugu.papers.composition.collapse.many_secrets import (
    BitsPosterior,
    ManySecrets,
    printed_type_a,
)
from takifugu.papers.composition.collapse.rational_world import (
    ExactPosterior,
    RationalWorld,
    repeated,
)
from takifugu.papers.composition.collapse.repeated_runs import (
    AttackStep,
    AttackTrace,
    ExactLoss,
    PrintedNumber,
    SimulatedAttacks,
    WaitingTime,
    join_batches,
    simulate,
    simulate_in_batches,
    trace_attack,
)
from takifugu.papers.composition.collapse.two_secrets import (
    Interval,
    ManyPriors,
    PosteriorRange,
    SingleSecret,
)

__all__ = [
    "EXAMPLES",
    "AttackStep",
    "AttackTrace",
    "BitsPosterior",
    "Collapse",
    "ExactLoss",
    "Interval",
    "ManyPriors",
    "ManySecrets",
    "Posterior",
    "PrintedNumber",
    "RationalWorld",
    "SimulatedAttacks",
    "SingleSecret",
    "Stage",
    "WaitingTime",
    "example",
    "join_batches",
    "printed_type_a",
    "repeated",
    "simulate",
    "simulate_in_batches",
    "trace_attack",
]

Collapse = SingleSecret | ManySecrets | ManyPriors
"""A mechanism that leaks little in one run and everything in two.

It says its exact `loss`, the law of `waiting`, outputs that reveal a secret, and the adversary's
posterior; its `stage` runs it many times.
"""
Stage = RationalWorld | ManySecrets
"""A mechanism with a prior, ready to be run many times; datasets and outputs are codes."""
Posterior = ExactPosterior | BitsPosterior | PosteriorRange
"""The exact posterior after some outputs; `after` gives that of one more, by Bayes' rule."""
EXAMPLES: Mapping[int, Callable[[int], Collapse]] = {
    1: SingleSecret.sized,
    2: ManySecrets,
    3: ManyPriors.sized,
}


def example(number: int, n: int) -> Collapse:
    """Example 1, 2 or 3 of the paper at size ``n``, from 3 to 16.

    ``n`` is the number of datasets of each secret in Example 1, the number of bits in Example 2
    and the number of datasets in each of the four cases in Example 3.
    """
    if number not in EXAMPLES:
        raise Malformed("example", given=f"is {number}", needed="be 1, 2 or 3")
    if not 3 <= n <= 16:
        raise Malformed("n", given=f"is {n}", needed="be from 3 to 16")
    return EXAMPLES[number](n)
