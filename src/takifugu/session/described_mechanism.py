"""A mechanism as another process described it: it can be priced and printed, and never released.

The plan of a server comes with what its mechanism is, not with the mechanism: noise is drawn where
the rows are, after they were paid for.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

from takifugu.costs.losses import Loss
from takifugu.errors import UnsoundRequest
from takifugu.ledger.charge_values import loss_of
from takifugu.mechanisms import Error

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, eq=False)
class DescribedMechanism:
    """What a mechanism says of itself; equal to every mechanism that says the same.

    Attributes:
        document: What `Mechanism.describe` gave, as JSON.
    """

    document: Mapping[str, Any]

    def __eq__(self, other: object) -> bool:
        described = None if isinstance(other, type) else getattr(other, "describe", None)
        return callable(described) and _text(described()) == self._text

    __hash__ = None  # type: ignore[assignment]  # it equals values that are hashed in other ways

    @cached_property
    def _text(self) -> str:
        return _text(self.document)

    @property
    def kind(self) -> str:
        """What kind of mechanism it is."""
        return str(self.document["kind"])

    @cached_property
    def loss(self) -> Loss:
        """What one release costs every entry that it touches."""
        return loss_of(self.document["loss"])

    def describe(self) -> dict[str, Any]:
        """Kind, parameters and loss, as JSON."""
        return dict(self.document)

    def error(self) -> Error:
        """What to expect of its noise; a selection has none that is known without counts."""
        found = self.document.get("error")
        if not isinstance(found, Mapping):
            raise UnsoundRequest(
                f"the error of {self.kind} depends on what it selects from", field="mechanism"
            )
        return Error(float(found["deviation"]), float(found["interval"]))

    def release(self, values: Any) -> NoReturn:  # noqa: ARG002
        """Refused: it is where the rows are."""
        raise self._elsewhere()

    def simulate(
        self,
        values: Any,  # noqa: ARG002
        repetitions: int,  # noqa: ARG002
        *,
        rng: "np.random.Generator",  # noqa: ARG002
    ) -> NoReturn:
        """Refused: it is where the rows are."""
        raise self._elsewhere()

    def _elsewhere(self) -> UnsoundRequest:
        return UnsoundRequest(
            f"this {self.kind} is a description of one on a server; release the plan there, with"
            " the dataset that made it",
            field="mechanism",
            reason="on-a-server",
        )


def _text(document: Mapping[str, Any]) -> str:
    return json.dumps(document, sort_keys=True)
