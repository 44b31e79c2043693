"""What an adversary may believe, and the secrets to keep."""

from takifugu.priors.explicit import Between, Explicit, Knowledge
from takifugu.priors.secrets import (
    EntryIs,
    Holds,
    OneOf,
    Secret,
    SecretPair,
    Secrets,
    both_ways,
    entry_pairs,
)
from takifugu.priors.universe import Name, Tables, Universe

__all__ = [
    "Between",
    "EntryIs",
    "Explicit",
    "Holds",
    "Knowledge",
    "Name",
    "OneOf",
    "Secret",
    "SecretPair",
    "Secrets",
    "Tables",
    "Universe",
    "both_ways",
    "entry_pairs",
]
