"""The entries of a chain: which have secrets, and how many there must be."""

import numpy as np

from takifugu._core.numeric import Integers
from takifugu.errors import InvalidWorld, UnsoundRequest
from takifugu.priors.secrets import Secrets


def secret_entries(secrets: Secrets, length: int | None) -> Integers | None:
    """The numbers of the entries that have secrets, rising; None if all have."""
    if secrets.entries is None:
        return None
    for entry in secrets.entries:
        if not isinstance(entry, int) or entry < 0 or (length is not None and entry >= length):
            raise InvalidWorld(
                "secrets", given=f"name the entry {entry!r}", needed="name entries of the chain"
            )
    return np.array(sorted(set(secrets.entries)), dtype=np.int64)


def refuse_other_length(given: int, length: int | None) -> None:
    """Raise unless a profile of ``given`` numbers is one of a chain with ``length`` entries."""
    if length is not None and given != length:
        raise UnsoundRequest(
            f"the profile has {given} numbers; the chain has {length} entries",
            field="profile",
            given=given,
            needed=length,
        )


def refuse_unbounded(or_else: str = "") -> None:
    """Raise, for an unbounded chain that begins somewhere; ``or_else`` is more advice."""
    raise UnsoundRequest(
        "an unbounded chain that begins somewhere is not stationary; give `length`" + or_else,
        field="length",
    )
