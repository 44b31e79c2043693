"""Which entries of a chain have secrets."""

import numpy as np

from takifugu._core.numeric import Integers
from takifugu.errors import InvalidWorld
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
