"""Exact inference by pgmpy, which shares no code with ours: the extra ``nightly`` installs it.

`make test` installs pgmpy for its files alone, without what it needs to be imported: then tests
that ask it are skipped.
"""

import warnings
from collections.abc import Mapping, Sequence
from math import inf, log
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from takifugu._core.numeric import Floats
from takifugu.priors import Name
from takifugu.priors.networks import BayesianNetwork

REASON = "pgmpy cannot be imported: install takifugu[nightly]"


def imported(module: str) -> Any:
    """A module of pgmpy, without its own warnings; skips the test if it cannot be imported."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(module, reason=REASON, exc_type=ImportError)


class Inference:
    """Variable elimination on one network."""

    def __init__(self, model: Any) -> None:
        self._model = model
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._queries = imported("pgmpy.inference").VariableElimination(model)

    @classmethod
    def of(cls, network: BayesianNetwork) -> "Inference":
        """On a network of ours, told to pgmpy table by table."""
        table = imported("pgmpy.factors.discrete").TabularCPD
        model = imported("pgmpy.models").DiscreteBayesianNetwork()
        model.add_nodes_from(network.entries)
        states = dict(zip(network.entries, network.states, strict=True))
        for entry, above, given in zip(
            network.entries, network.parents, network.tables, strict=True
        ):
            model.add_edges_from((parent, entry) for parent in above)
            size = len(states[entry])
            model.add_cpds(
                table(
                    entry,
                    size,
                    given.reshape(-1, size).T,  # a column for each state of the parents
                    evidence=list(above) or None,
                    evidence_card=[len(states[p]) for p in above] or None,
                    state_names={name: list(states[name]) for name in (entry, *above)},
                )
            )
        assert model.check_model()
        return cls(model)

    @classmethod
    def of_file(cls, path: Path) -> "Inference":
        """On a BIF file, as pgmpy reads it."""
        import gzip

        text = gzip.decompress(path.read_bytes()).decode("utf-8")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reader = imported("pgmpy.readwrite").BIFReader(string=text)
            return cls(reader.get_model())

    def law(
        self,
        names: Sequence[Name],
        states: Mapping[Name, Sequence[Name]],
        given: Mapping[Name, Name] | None = None,
    ) -> Floats:
        """``[value of the first, …]``: P(names | given), axes and values in the order asked for."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = self._queries.query(
                list(names), evidence=dict(given or {}) or None, show_progress=False
            )
        order = [found.variables.index(name) for name in names]
        values = np.transpose(np.asarray(found.values, dtype=np.float64), order)
        for axis, name in enumerate(names):
            values = np.take(
                values, [found.state_names[name].index(s) for s in states[name]], axis=axis
            )
        result: Floats = values
        return result

    def leak(
        self,
        network: BayesianNetwork,
        exposed: Sequence[Name],
        entry: Name,
        left: Name,
        right: Name,
    ) -> float:
        """Largest log P(x | entry = left) / P(x | entry = right) of what is not exposed."""
        states = dict(zip(network.entries, network.states, strict=True))
        known = [name for name in network.entries if name not in exposed]
        if not known:
            return 0.0
        a, b = (self.law(known, states, {entry: value}) for value in (left, right))
        possible = a > 0
        if (b[possible] == 0).any():
            return inf
        return log(np.max(a[possible] / b[possible]))
