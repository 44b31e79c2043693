"""Per-entry DP loss to Pufferfish loss and back, exactly: optimal transport with gains."""

from takifugu.translation.endless import (
    EndlessLosses,
    LossTable,
    differential,
    loss_table,
    unbounded_losses,
)
from takifugu.translation.fixedpoint import FixedPoint
from takifugu.translation.recursion import ChainLosses, chain_losses
from takifugu.translation.robust import interval_losses
from takifugu.translation.scalar import scalar_losses, scalar_step
from takifugu.translation.transport import Transport, transport, transport_lp

__all__ = [
    "ChainLosses",
    "EndlessLosses",
    "FixedPoint",
    "LossTable",
    "Transport",
    "chain_losses",
    "differential",
    "interval_losses",
    "loss_table",
    "scalar_losses",
    "scalar_step",
    "transport",
    "transport_lp",
    "unbounded_losses",
]
