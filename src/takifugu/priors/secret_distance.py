"""Whether secrets fit a prior: numbers need a distance, labels have none."""

from fractions import Fraction

from takifugu._core.exact import exactly
from takifugu.errors import UnsoundRequest
from takifugu.priors.gaussian import Gaussian
from takifugu.priors.independent import Product
from takifugu.priors.prior import Prior
from takifugu.priors.secrets import Secrets


def check_distance(prior: Prior, secrets: Secrets) -> None:
    """Refuse a distance for labels, numbers without one, and pairs of labels for numbers."""
    if isinstance(prior, Product):
        for part in prior.parts.values():
            check_distance(part, secrets)
        return
    if not isinstance(prior, Gaussian):
        if secrets.within is not None:
            raise UnsoundRequest(
                f"secrets within a distance of {float(secrets.within):.4g} are about numbers, and"
                f" the entries of a {prior.kind} are not numbers without bounds; leave `within` out"
                " (`--secrets-within`), or use a Gaussian",
                field="secrets",
                reason="within",
                given=secrets.within,
            )
        return
    secret_distance(secrets)


def secret_distance(secrets: Secrets) -> Fraction:
    """How far apart two numbers are that must not be told apart, at most; an error if not given."""
    if secrets.pairs is not None:
        raise UnsoundRequest(
            "the entries of a Gaussian are numbers, and the secrets are pairs of labels; give"
            " Secrets(within=r) (`--secrets-within r`) instead: which of two numbers at most r"
            " apart",
            field="secrets",
            reason="pairs",
        )
    if secrets.within is None:
        raise UnsoundRequest(
            "the entries of a Gaussian are numbers: say how far apart two of them may be that must"
            " not be told apart, as Secrets(within=r) (`--secrets-within r`); there is no default,"
            " because no finite loss protects all distances",
            field="secrets",
            reason="no-distance",
        )
    return exactly(secrets.within, "within")
