"""What an adversary knows beyond a prior: any law of the first entry, or other entries exactly."""

from collections.abc import Iterator
from dataclasses import replace
from typing import get_args

from takifugu.errors import InvalidPrior, UnsoundRequest
from takifugu.priors.gaussian import Gaussian
from takifugu.priors.higher_order import HigherOrderChain
from takifugu.priors.independent import IndependentEntries, Product
from takifugu.priors.interval_chain import IntervalMarkovChain
from takifugu.priors.kernels import AR1, Matern
from takifugu.priors.markov import Known, MarkovChain
from takifugu.priors.prior import Prior
from takifugu.priors.time_of_day import TimeOfDayChain

STARTS = ("stationary", "unknown")
KNOWN: tuple[Known, ...] = get_args(Known)


def against(prior: Prior, *, start: str | None = None, known: str | None = None) -> Prior:
    """The same prior against an adversary with another ``start``, or with ``known`` entries.

    For Markov chains, and for people who have one each. None leaves a key as it is.
    """
    if start is None and known is None:
        return prior
    if isinstance(prior, Product):
        parts = {
            name: against(part, start=start, known=known) for name, part in prior.parts.items()
        }
        return replace(prior, parts=parts)
    if not isinstance(prior, MarkovChain):
        raise InvalidPrior(
            "known" if start is None else "start",
            given=f"is chosen for a {prior.kind}",
            needed="be chosen for a Markov chain; other priors state what they assume themselves",
            reason="kind",
        )
    if start not in (None, *STARTS):
        raise InvalidPrior("start", given=f"is {start!r}", needed=f"be one of {', '.join(STARTS)}")
    if known not in (None, *KNOWN):
        raise InvalidPrior("known", given=f"is {known!r}", needed=f"be one of {', '.join(KNOWN)}")
    return prior.against(start=start, known=known)  # type: ignore[arg-type]


def given_earlier_rows(prior: Prior) -> Prior:
    r"""The same prior against somebody who knows rows of the same entity before the first entry.

    Given such rows, or any report about them, a chain goes on by its own steps from some law of
    its first entry (of its first window, if it depends on several): an unknown start covers it.

    **A Gaussian process with the correlations ρ^k** keeps its loss. Let K say that the earlier
    entries lie in intervals, as clamped and rounded numbers do. P(K | X_t = z) is log-concave in z
    (Prékopa), so given X_{t+1} = x and K the density of X_t has a logarithm with a second
    derivative of at most −1/(1−ρ²), tilted by ρxz/(1−ρ²). Two such laws, with x and x′, are coupled
    with |X_t − X′_t| ≤ |ρ||x − x′|, by Langevin diffusions with one noise. Backwards from the
    secret entry, every entry moves by no more than it does without K, and those after it as they
    did: the coupling of `takifugu.translation.certify.gaussian` has the same costs. ∎
    Smoother kernels do not have this: given X_0, the regression of X_2 on X_1 is ρ₁(1−ρ₂)/(1−ρ₁²),
    up to 3 ρ₁ and more. They are refused, and so is every prior for which nothing is proven.
    """
    match prior:
        case Product():
            parts = {name: given_earlier_rows(part) for name, part in prior.parts.items()}
            return replace(prior, parts=parts)
        case MarkovChain() if prior.homogeneous:
            return prior.against(start="unknown")
        case HigherOrderChain() | TimeOfDayChain():
            return replace(prior, start="unknown")
        case IntervalMarkovChain():
            return replace(prior, start="any")
        case IndependentEntries():
            return prior
        case Gaussian() if keeps_its_loss(prior):
            return prior
        case _:
            kernel = f" with the kernel {prior.kernel.word}" if isinstance(prior, Gaussian) else ""
            raise UnsoundRequest(
                f"earlier rows of the same people are given up, and what later ones lose to"
                f" somebody who knows those is not known for a {prior.kind}{kernel}; fit on a share"
                " of the entities, or take a chain, or a Gaussian process with the kernel ar1 or"
                " matern-1/2",
                field="prior",
                reason="earlier-rows",
                given=prior.kind,
            )


def keeps_its_loss(prior: Gaussian) -> bool:
    """Whether what is proven for `given_earlier_rows` holds for the kernel of a process."""
    kernel = prior.kernel
    return isinstance(kernel, AR1) or (isinstance(kernel, Matern) and kernel.nu.numerator == 1)


def adversaries(prior: Prior) -> dict[str, Prior]:
    """The prior against each adversary by name: plain, with an unknown start, known entries, both.

    Empty if the prior is no Markov chain. ``plain`` has the start that is given, or a stationary
    one; it is left out if there is none.
    """
    if not isinstance(prior, MarkovChain):
        return {}
    variants: dict[str, Prior] = {}
    for name, known in (("plain", "none"), ("known_entries", "any")):
        try:
            start = "stationary" if prior.unknown_start else None
            variants[name] = against(prior, start=start, known=known)
        except InvalidPrior:  # it has no single stationary law
            continue
    variants["unknown_start"] = against(prior, start="unknown", known="none")
    variants["both"] = against(prior, start="unknown", known="any")
    order = ("plain", "unknown_start", "known_entries", "both")
    return {name: variants[name] for name in order if name in variants}


def chains_of(prior: Prior) -> Iterator[MarkovChain]:
    """The Markov chains that a prior consists of."""
    if isinstance(prior, Product):
        for part in prior.parts.values():
            yield from chains_of(part)
    elif isinstance(prior, MarkovChain):
        yield prior
