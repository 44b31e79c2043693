"""Per-entry DP loss to Pufferfish loss and back, tightly: optimal transport with gains."""

from takifugu.translation.accounting.allocation import Allocation, allocate
from takifugu.translation.accounting.approximate import approximate, concentrated, zcdp_epsilon
from takifugu.translation.accounting.composition import Composed, Release, compose
from takifugu.translation.accounting.table import TranslationTable, tabulate
from takifugu.translation.bounds import LooserTranslation
from takifugu.translation.chain.fixed_point import FixedPoint
from takifugu.translation.chain.interval_steps import interval_losses
from takifugu.translation.chain.recursion import ChainLosses, chain_losses
from takifugu.translation.chain.scalar import scalar_losses, scalar_step
from takifugu.translation.chain.single_transport import Transport, transport, transport_lp
from takifugu.translation.chain.unbounded import (
    EndlessLosses,
    LossTable,
    loss_table,
    to_dp,
    unbounded_losses,
)
from takifugu.translation.network.attractive_losses import AttractiveLosses, attractive_losses
from takifugu.translation.network.junction import NetworkLosses, network_losses
from takifugu.translation.network.network_witness import ProductWitness, product_witness
from takifugu.translation.translation import Answer, Translation

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
    "interval_losses",
    "loss_table",
    "network_losses",
    "product_witness",
    "scalar_losses",
    "scalar_step",
    "tabulate",
    "to_dp",
    "transport",
    "transport_lp",
    "unbounded_losses",
    "zcdp_epsilon",
]
