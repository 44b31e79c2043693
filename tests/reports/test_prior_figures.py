"""Figures of priors: the cells, bars and lines are the numbers of the prior."""

import numpy as np
import pytest
from matplotlib.colors import to_rgba

from takifugu.priors import (
    AR1,
    BayesianNetwork,
    Covariance,
    Gaussian,
    HigherOrderChain,
    IndependentEntries,
    IntervalMarkovChain,
    MarkovChain,
    Prior,
    TimeOfDayChain,
)
from takifugu.reports.plot_files import drawing
from takifugu.reports.prior_figures import MAX_STATES, heat_map, prior_figures

P = np.array([[0.9, 0.1], [0.3, 0.7]])
CHAIN = MarkovChain(P, states=("home", "ward"), length=5)
NETWORK = BayesianNetwork(
    entries=("smokes", "cough"),
    states=(("no", "yes"), ("no", "yes")),
    parents=((), ("smokes",)),
    tables=(np.array([0.7, 0.3]), np.array([[0.9, 0.1], [0.4, 0.6]])),
)


def wide(states: int) -> MarkovChain:
    table = np.full((states, states), 0.5 / states)
    return MarkovChain(table + 0.5 * np.eye(states), length=3)


def test_a_chain_has_its_transitions_and_its_law() -> None:
    first, second = prior_figures(CHAIN)
    (axes,) = first.figure.axes
    assert [text.get_text() for text in axes.texts] == ["0.9", "0.1", "0.3", "0.7"]
    assert [t.get_text() for t in axes.get_yticklabels()] == ["home", "ward"]
    strength = [patch.get_alpha() or to_rgba(patch.get_facecolor())[3] for patch in axes.patches]
    assert np.argsort(strength).tolist() == [1, 2, 3, 0]  # the larger, the stronger
    assert "2 by 2" in first.alt and "0.9, from home to home" in first.alt
    (axes,) = second.figure.axes
    bars = [bar.get_width() for bar in axes.patches]  # type: ignore[attr-defined]
    assert bars == pytest.approx(CHAIN.stationary.tolist())
    assert "0.75 for home" in second.alt and "0.25 for ward" in second.alt


def test_a_chain_whose_start_is_unknown_has_no_law() -> None:
    (only,) = prior_figures(MarkovChain(P, start="unknown", length=5))
    assert "transition" in only.alt


def test_of_many_states_the_most_frequent_are_drawn() -> None:
    first, second = prior_figures(wide(MAX_STATES + 6))
    assert len(first.figure.axes[0].get_yticklabels()) == MAX_STATES
    assert f"Of {MAX_STATES + 6} only {MAX_STATES} are shown" in first.caption
    assert len(second.figure.axes[0].patches) == MAX_STATES
    assert not first.figure.axes[0].texts  # too small for numbers


def test_a_process_has_its_correlations() -> None:
    (lags,) = prior_figures(Gaussian(AR1(0.5), length=4))
    (line, _) = lags.figure.axes[0].lines
    assert np.asarray(line.get_ydata()) == pytest.approx([0.5, 0.25, 0.125])
    assert "0.5 at one step" in lags.alt and "0.125 at 3 steps" in lags.alt
    (both,) = prior_figures(Gaussian(Covariance(np.array([[4.0, 1.0], [1.0, 1.0]]))))
    assert "at most 0.5" in both.alt


def test_a_network_has_its_arrows() -> None:
    (found,) = prior_figures(NETWORK)
    assert "1 arrows between 2 columns: cough on smokes." in found.alt
    assert {"smokes", "cough"} <= {text.get_text() for text in found.figure.axes[0].texts}


@pytest.mark.nightly
@pytest.mark.parametrize(
    "prior",
    [
        CHAIN,
        wide(30),
        IntervalMarkovChain(P - 0.05, P + 0.05, length=4),
        HigherOrderChain(np.array([P, P]), length=5),
        TimeOfDayChain(np.array([P, P]), length=6),
        Gaussian(AR1(0.5), length=4),
        NETWORK,
    ],
    ids=lambda prior: f"{prior.kind}-{prior.breadth}",
)
def test_every_family_draws_the_same_every_time(prior: Prior) -> None:
    def drawn() -> list[str]:
        made = enumerate(prior_figures(prior))
        return [drawing(one.figure, name=f"f{k}", alt=one.alt).svg for k, one in made]

    assert drawn() and drawn() == drawn()


def test_a_family_without_figures_has_none() -> None:
    assert not list(prior_figures(IndependentEntries({"a": {"x": 0.5, "y": 0.5}})))


def test_a_heat_map_of_nothing_is_empty() -> None:
    assert not heat_map(np.zeros((2, 2)), "ab", "ab", down="", across="").axes[0].patches
