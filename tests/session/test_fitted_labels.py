"""Labels that a prior says of the columns that have none yet."""

from dataclasses import replace

import numpy as np

from takifugu.binding.prior_reading import fitted_labels
from takifugu.declarations.columns import FittedLabels
from takifugu.errors import UnsoundRequest
from takifugu.priors import MarkovChain
from tests.raising import raises
from tests.session.plain_engine import DECLARED

ROWS = np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]])
UNFITTED = replace(DECLARED, protected=(FittedLabels("state"), FittedLabels("mood")))


def test_a_prior_says_the_labels_of_its_own_column() -> None:
    """The other column stays without: no prior is about it."""
    other = str(UNFITTED.category("state").other)
    chain = MarkovChain(ROWS, states=("home", "ward", other), length=4)
    said = fitted_labels({"prior": chain}, UNFITTED, over="sequence", about="state")
    assert said == {"state": ("home", "ward", other)}
    assert fitted_labels({"prior": chain}, UNFITTED, over="sequence", about="mood").keys() == {
        "mood"
    }
    assert fitted_labels({}, UNFITTED, over="sequence", about="state") == {}
    assert fitted_labels({"prior": chain}, DECLARED, over="sequence", about="state") == {}
    nameless = MarkovChain(ROWS, states=("home", "ward", "garden"), length=4)
    with raises(UnsoundRequest, field="prior", reason="no-other", needed=other):
        fitted_labels({"prior": nameless}, UNFITTED, over="sequence", about="state")
