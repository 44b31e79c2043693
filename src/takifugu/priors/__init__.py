"""What an adversary may believe, and the secrets to keep."""

from typing import TYPE_CHECKING

from takifugu._core.lazy import lazy_names

if TYPE_CHECKING:
    from takifugu.priors.bayesian_network import BayesianNetwork
    from takifugu.priors.bif import read_bif, to_bif
    from takifugu.priors.contacts import (
        Contacts,
        contagion,
        contagion_over_time,
        field_over_time,
        read_contact_slices,
        read_contacts,
    )
    from takifugu.priors.documents import from_document, read_prior, write_prior
    from takifugu.priors.explicit import Between, Explicit, Knowledge
    from takifugu.priors.fitting import Transitions, smoothed, with_other
    from takifugu.priors.gaussian import Gaussian
    from takifugu.priors.higher_order import HigherOrderChain
    from takifugu.priors.households import household_contagion, is_exchangeable
    from takifugu.priors.independent import IndependentEntries, Product
    from takifugu.priors.interval_chain import IntervalMarkovChain
    from takifugu.priors.kernels import AR1, Covariance, Matern, SquaredExponential
    from takifugu.priors.labels import LabelMap, foursquare_labels
    from takifugu.priors.markov import MarkovChain
    from takifugu.priors.prior import Prior, SequencePrior
    from takifugu.priors.provenance import FittedRows
    from takifugu.priors.random_field import MarkovRandomField
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
    from takifugu.priors.time_of_day import TimeOfDayChain
    from takifugu.priors.truncated_gaussian import TruncatedGaussian
    from takifugu.priors.universe import Name, Tables, Universe
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "bayesian_network": ("BayesianNetwork",),
            "bif": ("read_bif", "to_bif"),
            "contacts": (
                "Contacts",
                "contagion",
                "contagion_over_time",
                "field_over_time",
                "read_contact_slices",
                "read_contacts",
            ),
            "documents": ("from_document", "read_prior", "write_prior"),
            "explicit": ("Between", "Explicit", "Knowledge"),
            "fitting": ("Transitions", "smoothed", "with_other"),
            "gaussian": ("Gaussian",),
            "higher_order": ("HigherOrderChain",),
            "households": ("household_contagion", "is_exchangeable"),
            "independent": ("IndependentEntries", "Product"),
            "interval_chain": ("IntervalMarkovChain",),
            "kernels": ("AR1", "Covariance", "Matern", "SquaredExponential"),
            "labels": ("LabelMap", "foursquare_labels"),
            "markov": ("MarkovChain",),
            "prior": ("Prior", "SequencePrior"),
            "provenance": ("FittedRows",),
            "random_field": ("MarkovRandomField",),
            "secrets": (
                "EntryIs",
                "Holds",
                "OneOf",
                "Secret",
                "SecretPair",
                "Secrets",
                "both_ways",
                "entry_pairs",
            ),
            "time_of_day": ("TimeOfDayChain",),
            "truncated_gaussian": ("TruncatedGaussian",),
            "universe": ("Name", "Tables", "Universe"),
        },
    )

__all__ = [
    "AR1",
    "BayesianNetwork",
    "Between",
    "Contacts",
    "Covariance",
    "EntryIs",
    "Explicit",
    "FittedRows",
    "Gaussian",
    "HigherOrderChain",
    "Holds",
    "IndependentEntries",
    "IntervalMarkovChain",
    "Knowledge",
    "LabelMap",
    "MarkovChain",
    "MarkovRandomField",
    "Matern",
    "Name",
    "OneOf",
    "Prior",
    "Product",
    "Secret",
    "SecretPair",
    "Secrets",
    "SequencePrior",
    "SquaredExponential",
    "Tables",
    "TimeOfDayChain",
    "Transitions",
    "TruncatedGaussian",
    "Universe",
    "both_ways",
    "contagion",
    "contagion_over_time",
    "entry_pairs",
    "field_over_time",
    "foursquare_labels",
    "from_document",
    "household_contagion",
    "is_exchangeable",
    "read_bif",
    "read_contact_slices",
    "read_contacts",
    "read_prior",
    "smoothed",
    "to_bif",
    "with_other",
    "write_prior",
]
