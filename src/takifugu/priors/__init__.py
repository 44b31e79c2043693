"""What an adversary may believe, and the secrets to keep."""

from takifugu.priors.documents import from_document, read_prior, write_prior
from takifugu.priors.explicit import Between, Explicit, Knowledge
from takifugu.priors.fitting import Transitions, smoothed, with_other
from takifugu.priors.gaussian import Gaussian
from takifugu.priors.independent import IndependentEntries, Product
from takifugu.priors.interval_chain import IntervalMarkovChain
from takifugu.priors.markov import MarkovChain
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
    "Gaussian",
    "Holds",
    "IndependentEntries",
    "IntervalMarkovChain",
    "Knowledge",
    "MarkovChain",
    "Name",
    "OneOf",
    "Product",
    "Secret",
    "SecretPair",
    "Secrets",
    "Tables",
    "Transitions",
    "Universe",
    "both_ways",
    "entry_pairs",
    "from_document",
    "read_prior",
    "smoothed",
    "with_other",
    "write_prior",
]
