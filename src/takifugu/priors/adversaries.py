"""What an adversary knows beyond a prior: any law of the first entry, or other entries exactly."""

from collections.abc import Iterator
from dataclasses import replace
from typing import get_args

from takifugu.errors import InvalidPrior
from takifugu.priors.independent import Product
from takifugu.priors.markov import Known, MarkovChain
from takifugu.priors.prior import Prior

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


def adversaries(prior: Prior) -> dict[str, Prior]:
    """The prior against each adversary by name: plain, with an unknown start, known entries, both.

    Empty if the prior is no Markov chain. ``plain`` has the start that is given, or a stationary
    one; it is left out if there is none.
    """
    if not isinstance(prior, MarkovChain):
        return {}
    found: dict[str, Prior] = {}
    for name, known in (("plain", "none"), ("known_entries", "any")):
        try:
            start = "stationary" if prior.unknown_start else None
            found[name] = against(prior, start=start, known=known)
        except InvalidPrior:  # it has no single stationary law
            continue
    found["unknown_start"] = against(prior, start="unknown", known="none")
    found["both"] = against(prior, start="unknown", known="any")
    order = ("plain", "unknown_start", "known_entries", "both")
    return {name: found[name] for name in order if name in found}


def chains_of(prior: Prior) -> Iterator[MarkovChain]:
    """The Markov chains that a prior consists of."""
    if isinstance(prior, Product):
        for part in prior.parts.values():
            yield from chains_of(part)
    elif isinstance(prior, MarkovChain):
        yield prior
