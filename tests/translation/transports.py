"""The transport bound that a translation uses for a prior, whichever search stands behind it."""

from takifugu.priors import Prior, Secrets
from takifugu.translation import Translation
from takifugu.translation.bounds import TransportBound


def transport_of(prior: Prior, secrets: Secrets | None = None) -> TransportBound:
    found = Translation(prior, Secrets() if secrets is None else secrets).transport
    assert found is not None
    return found
