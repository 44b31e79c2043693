"""Which entries of a Gaussian process are secret, and how a pair of its numbers is named."""

from fractions import Fraction

from takifugu.errors import UnsoundRequest
from takifugu.priors.gaussian import Gaussian
from takifugu.priors.prior import LONGEST
from takifugu.priors.secrets import Secrets
from takifugu.translation.bounds import Binding
from takifugu.visible import four_digits


def secret_entries(prior: Gaussian, secrets: Secrets) -> tuple[int, ...] | None:
    """The entries that are secret, by number; None for all."""
    if secrets.entries is None:
        return None
    known = []
    for entry in secrets.entries:
        inside = isinstance(entry, int) and entry >= 0
        if not inside or int(entry) >= (prior.length or LONGEST):
            raise UnsoundRequest(
                f"the secrets name the entry {entry!r:.60}, which the prior does not have; its"
                f" entries are 0, 1, … to {'no end' if prior.length is None else prior.length - 1}",
                field="secrets",
                given=entry,
            )
        known.append(int(entry))
    return tuple(dict.fromkeys(known))


def distance_binding(within: Fraction, entry: int | None) -> Binding:
    """Two numbers of an entry that are this far apart."""
    return Binding("x", f"x ± {four_digits(within)}", entry=entry)
