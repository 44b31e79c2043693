"""What noisy outputs of a Markov chain give away, computed by hmmlearn's forward algorithm."""

import os
from itertools import product
from math import exp, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu._core.numeric import Floats
from takifugu.priors import MarkovChain
from takifugu.translation import Translation
from tests.oracles import hmmlearn_likelihoods as oracle

pytestmark = pytest.mark.nightly
EXAMPLES = 300 if os.environ.get("DEEP") else 15
WEIGHTS = st.sampled_from([1.0, 2.0, 3.0, 5.0, 17.0])


@st.composite
def chains(draw: st.DrawFn) -> MarkovChain:
    """Two or three states, two to five entries, with a start of its own; nothing is impossible."""
    size = draw(st.integers(2, 3))
    rows = np.array([[draw(WEIGHTS) for _ in range(size)] for _ in range(size + 1)])
    laws = rows / rows.sum(axis=1, keepdims=True)
    return MarkovChain(laws[1:], start=laws[0], length=draw(st.integers(2, 5)))


def parts(chain: MarkovChain) -> tuple[Floats, Floats]:
    """What hmmlearn is told."""
    return np.asarray(chain.start_law), np.asarray(chain.transition)


@settings(max_examples=EXAMPLES)
@given(chain=chains())
def test_every_sequence_has_the_probability_that_hmmlearn_gives_it(chain: MarkovChain) -> None:
    law = chain.explicit()
    for path, probability in zip(law.universe.codes, law.probability, strict=True):  # type: ignore[attr-defined]
        assert log(probability) == pytest.approx(
            oracle.log_probability(*parts(chain), path), abs=1e-9
        )


@settings(max_examples=EXAMPLES)
@given(chain=chains(), epsilon=st.floats(0.05, 3))
def test_the_witness_of_a_translation_leaks_what_it_says(
    chain: MarkovChain, epsilon: float
) -> None:
    """Its factors are likelihoods of outputs: hmmlearn says what they tell about the secret."""
    found = Translation(chain).explain(epsilon)
    witness = found.witness
    assert witness.factors is not None and witness.binding is not None
    factors = np.ones((chain.length or 0, len(chain.states)))
    for place, line in zip(witness.entries, witness.factors, strict=True):
        factors[int(place)] = line
    assert factors.max() <= factors.min() * exp(epsilon) * (1 + 1e-12)
    entry = witness.binding.entry
    assert isinstance(entry, int)
    states = [str(state) for state in chain.states]
    pair = states.index(witness.binding.left), states.index(witness.binding.right)
    shown = oracle.leak(*parts(chain), factors, entry, *pair)
    assert witness.leak == pytest.approx(shown, abs=1e-8) and witness.leak <= shown + 1e-9
    assert shown <= found.pufferfish + 1e-9


@settings(max_examples=EXAMPLES)
@given(chain=chains(), epsilon=st.floats(0.05, 3), data=st.data())
def test_randomised_response_never_gives_away_more_than_its_translation(
    chain: MarkovChain, epsilon: float, data: st.DataObject
) -> None:
    """Every entry is answered truthfully with odds e^ε: what one sequence of answers tells."""
    size, length = len(chain.states), chain.length or 0
    answers = [data.draw(st.integers(0, size - 1)) for _ in range(length)]
    factors = np.ones((length, size))
    factors[np.arange(length), answers] = exp(epsilon)
    loss = float(Translation(chain).to_pufferfish(epsilon))
    for entry, left, right in product(range(length), range(size), range(size)):
        if left != right:
            assert oracle.leak(*parts(chain), factors, entry, left, right) <= loss + 1e-9
