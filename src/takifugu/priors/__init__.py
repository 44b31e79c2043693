"""What an adversary may believe, and the secrets to keep."""

from typing import TYPE_CHECKING

from takifugu._core.lazy import lazy_names

if TYPE_CHECKING:
    from takifugu.priors.bif import read_bif as read_bif
    from takifugu.priors.bif import to_bif as to_bif
    from takifugu.priors.contacts import Contacts as Contacts
    from takifugu.priors.contacts import contagion as contagion
    from takifugu.priors.contacts import contagion_over_time as contagion_over_time
    from takifugu.priors.contacts import field_over_time as field_over_time
    from takifugu.priors.contacts import read_contact_slices as read_contact_slices
    from takifugu.priors.contacts import read_contacts as read_contacts
    from takifugu.priors.documents import from_document as from_document
    from takifugu.priors.documents import read_prior as read_prior
    from takifugu.priors.documents import write_prior as write_prior
    from takifugu.priors.explicit import Between as Between
    from takifugu.priors.explicit import Explicit as Explicit
    from takifugu.priors.explicit import Knowledge as Knowledge
    from takifugu.priors.fitting import Transitions as Transitions
    from takifugu.priors.fitting import smoothed as smoothed
    from takifugu.priors.fitting import with_other as with_other
    from takifugu.priors.gaussian import Gaussian as Gaussian
    from takifugu.priors.higher_order import HigherOrderChain as HigherOrderChain
    from takifugu.priors.households import household_contagion as household_contagion
    from takifugu.priors.households import is_exchangeable as is_exchangeable
    from takifugu.priors.independent import IndependentEntries as IndependentEntries
    from takifugu.priors.independent import Product as Product
    from takifugu.priors.interval_chain import IntervalMarkovChain as IntervalMarkovChain
    from takifugu.priors.kernels import AR1 as AR1
    from takifugu.priors.kernels import Covariance as Covariance
    from takifugu.priors.kernels import Matern as Matern
    from takifugu.priors.kernels import SquaredExponential as SquaredExponential
    from takifugu.priors.labels import LabelMap as LabelMap
    from takifugu.priors.labels import foursquare_labels as foursquare_labels
    from takifugu.priors.markov import MarkovChain as MarkovChain
    from takifugu.priors.networks import BayesianNetwork as BayesianNetwork
    from takifugu.priors.networks import MarkovRandomField as MarkovRandomField
    from takifugu.priors.prior import FittedRows as FittedRows
    from takifugu.priors.prior import Prior as Prior
    from takifugu.priors.prior import SequencePrior as SequencePrior
    from takifugu.priors.secrets import EntryIs as EntryIs
    from takifugu.priors.secrets import Holds as Holds
    from takifugu.priors.secrets import OneOf as OneOf
    from takifugu.priors.secrets import Secret as Secret
    from takifugu.priors.secrets import SecretPair as SecretPair
    from takifugu.priors.secrets import Secrets as Secrets
    from takifugu.priors.secrets import both_ways as both_ways
    from takifugu.priors.secrets import entry_pairs as entry_pairs
    from takifugu.priors.time_of_day import TimeOfDayChain as TimeOfDayChain
    from takifugu.priors.truncated_gaussian import TruncatedGaussian as TruncatedGaussian
    from takifugu.priors.universe import Name as Name
    from takifugu.priors.universe import Tables as Tables
    from takifugu.priors.universe import Universe as Universe
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
