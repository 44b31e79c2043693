"""Which queries a prior cannot serve: no order, or no finite price."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from takifugu.declarations import InvalidQuery
from takifugu.priors import AR1, Gaussian, MarkovChain, Product
from takifugu.session.query_planner import refuse_unserved
from tests.raising import raises
from tests.session.world import CHAIN

pytestmark = pytest.mark.nightly

UNBOUNDED = Gaussian(AR1(0.5))
PEOPLE = Product({"Ann": CHAIN, "Bea": CHAIN})
FOREVER = MarkovChain(np.array([[0.8, 0.2], [0.3, 0.7]]))


@pytest.mark.parametrize(
    ("prior", "over", "order", "distance", "reason"),
    [
        (CHAIN, "row", True, False, "no-order"),
        (CHAIN, "entities", True, True, "no-order"),
        (CHAIN, "sequence", True, False, None),
        (CHAIN, "row", False, False, None),
        (PEOPLE, "entities", True, False, None),
        (FOREVER, "sequence", True, False, None),
        (Gaussian(AR1(0.5), 4), "sequence", False, False, None),
        (UNBOUNDED, "sequence", False, False, "no-finite-price"),
        (UNBOUNDED, "sequence", False, True, None),
        (Product({"Ann": Gaussian(AR1(0.5), 4), "Bea": UNBOUNDED}), "sequence", False, False,
         "no-finite-price"),
    ],
)  # fmt: skip
def test_a_query_is_refused_by_the_prior_that_cannot_serve_it(
    prior: Any, over: str, order: bool, distance: bool, reason: str | None
) -> None:
    query: Any = SimpleNamespace(needs_order=order, by_distance=distance, kind="histogram")
    priors, read = {"other": CHAIN, "it": prior}, {"other": "sequence", "it": over}
    if reason is None:
        refuse_unserved(query, priors, read)
        return
    with raises(InvalidQuery, field="kind", reason=reason):
        refuse_unserved(query, priors, read)
