"""The transport bound of Bayesian networks and random fields."""

import numpy as np

from takifugu.errors import UnsoundRequest
from takifugu.influence.network.attractive_curves import check_attractive
from takifugu.numeric import Floats, frozen
from takifugu.priors.bayesian_network import BayesianNetwork
from takifugu.priors.random_field import MarkovRandomField
from takifugu.priors.secrets import Secrets
from takifugu.translation.accounting.largest_epsilon import largest_within
from takifugu.translation.bounds import Bound, TransportBound, Witness, of_pair
from takifugu.translation.network.attractive_losses import AttractiveLosses, attractive_losses
from takifugu.translation.network.junction_losses import NetworkLosses, network_losses
from takifugu.translation.network.network_witness import product_witness

Model = BayesianNetwork | MarkovRandomField


class NetworkTransport(TransportBound):
    """Attractive fields in closed form, other models along a junction tree.

    A model whose junction tree is too wide is refused with `TooLarge`.
    """

    def __init__(self, model: Model, secrets: Secrets) -> None:
        self._model, self._secrets = model, secrets
        try:
            check_attractive(model)
            self._attractive = True
        except UnsoundRequest:
            self._attractive = False
        self.uniform(0.0)  # an error now rather than later

    @property
    def size(self) -> int | None:
        """How many entries there are."""
        return len(self._model.entries)

    def uniform(self, epsilon: float) -> Bound:
        """The loss when every entry is charged ``epsilon``."""
        return self.profile(np.full(len(self._model.entries), epsilon))

    def profile(self, epsilon: Floats) -> Bound:
        """The loss when entry i is charged ``epsilon[i]``."""
        losses = self._losses(epsilon)
        binding = None if losses.binding is None else of_pair(losses.binding)
        return Bound(losses.loss, binding, frozen(np.maximum(losses.by_entry, 0.0)))

    def largest(self, target: float) -> float:
        """The largest constant ε whose loss is at most ``target``."""
        return largest_within(lambda e: self.uniform(e).value, target)

    def witness(self, epsilon: float | Floats, bound: Bound) -> Witness:  # noqa: ARG002
        """Randomised response on every entry; in attractive fields it counts."""
        spent = np.broadcast_to(np.asarray(epsilon, dtype=np.float64), len(self._model.entries))
        losses = self._losses(spent)
        if losses.binding is None:
            return Witness(0.0, None)
        if isinstance(losses, AttractiveLosses):
            pair = losses.pairs[int(np.argmax(losses.lower))]
            return Witness(losses.attained, of_pair(pair), self._model.entries)
        found = product_witness(self._model, spent, losses.binding)
        factors = None
        if len({len(part) for part in found.factors}) == 1:
            factors = frozen(np.stack(found.factors))
        return Witness(found.lower, of_pair(found.pair), self._model.entries, factors)

    def _losses(self, epsilon: Floats) -> AttractiveLosses | NetworkLosses:
        if self._attractive:
            return attractive_losses(self._model, epsilon, self._secrets)
        return network_losses(self._model, epsilon, self._secrets)
