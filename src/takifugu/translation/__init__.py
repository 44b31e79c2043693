"""Per-entry DP loss to Pufferfish loss and back, tightly: optimal transport with gains."""

from takifugu.translation.allocation import Allocation, allocate
from takifugu.translation.approximate import approximate, concentrated, zcdp_epsilon
from takifugu.translation.attractive import AttractiveLosses, attractive_losses
from takifugu.translation.bounds import LooserTranslation
from takifugu.translation.composition import Composed, Release, compose
from takifugu.translation.endless import (
    EndlessLosses,
    LossTable,
    differential,
    loss_table,
    unbounded_losses,
)
from takifugu.translation.fixedpoint import FixedPoint
from takifugu.translation.junction import NetworkLosses, network_losses
from takifugu.translation.recursion import ChainLosses, chain_losses
from takifugu.translation.robust import interval_losses
from takifugu.translation.scalar import scalar_losses, scalar_step
from takifugu.translation.table import TranslationTable, tabulate
from takifugu.translation.translation import Answer, Translation
from takifugu.translation.transport import Transport, transport, transport_lp
from takifugu.translation.witness import ProductWitness, product_witness

__all__ = [
    "Allocation",
    "Answer",
    "AttractiveLosses",
    "ChainLosses",
    "Composed",
    "EndlessLosses",
    "FixedPoint",
    "LooserTranslation",
    "LossTable",
    "NetworkLosses",
    "ProductWitness",
    "Release",
    "Translation",
    "TranslationTable",
    "Transport",
    "allocate",
    "approximate",
    "attractive_losses",
    "chain_losses",
    "compose",
    "concentrated",
    "differential",
    "interval_losses",
    "loss_table",
    "network_losses",
    "product_witness",
    "scalar_losses",
    "scalar_step",
    "tabulate",
    "transport",
    "transport_lp",
    "unbounded_losses",
    "zcdp_epsilon",
]
