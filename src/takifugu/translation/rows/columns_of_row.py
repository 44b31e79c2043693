r"""``over = "row"``: the columns of a row depend on each other, and rows are independent.

An entry of the prior is a column, called by its name: a row is one draw. Let a release have the
cost c on a row. Two bounds hold for a secret about one cell of row r, and the lesser one counts.

*By the network.* Fix all other rows: they are independent of the secret. What is left is a function
of row r whose logarithm moves by at most :math:`c_j` if column j alone changes, with :math:`c_j`
what c makes of such a change. The translation of the network bounds the ratio of its expectations
given either side, and the expectation over the other rows keeps the bound.

*By the row.* Any two values of row r differ by at most C, the scalar of c, whatever they are. So
the ratio of two expectations over row r is at most e^C. That is group DP for a row: all its columns
at once. A single column asked at ε costs ε by either.
"""

from collections.abc import Mapping
from functools import cached_property, reduce

import numpy as np

from takifugu._rounding import float_up, up
from takifugu.costs import Cost
from takifugu.errors import UnsoundRequest
from takifugu.priors.secrets import Secrets
from takifugu.translation.entry_costs import EntryCosts
from takifugu.translation.rows.row_translation import RowTranslation
from takifugu.translation.translation import Translation


class ColumnsOfRow(RowTranslation):
    """Independent rows, each a draw from a network whose nodes are the protected columns."""

    over = "row"

    def by_column(self, costs: tuple[Cost, ...], /) -> Mapping[str, float]:
        """The lesser bound of each column: by the network, or all of a row at once."""
        r = self.uncertainty
        shift = float(np.log1p(r) - np.log1p(-r)) if r else 0.0
        row = float_up(max(cost.scalar for cost in costs))
        row = float(up(row + shift)) if shift else row
        found = dict.fromkeys(self.secrets, 0.0)
        for name in self.priors:
            for column in self.secrets:
                loss = min(row, self._by_network(name, column, costs))
                found[column] = max(found[column], loss)
        return found

    def _by_network(self, name: str, column: str, costs: tuple[Cost, ...]) -> float:
        translation = self._translations[name, self._asked(column)]
        entries = translation.entries or ()
        charged = [reduce(Cost.joined, (cost.on_column(str(e)) for cost in costs)) for e in entries]
        bound = translation.cost_bound(EntryCosts(by_entry=tuple(charged)))
        if self._asked(column) is None and bound.by_entry is not None:
            return float(bound.by_entry[entries.index(column)])
        return bound.value

    def _asked(self, column: str) -> str | None:
        """The column whose secrets are translated by themselves; None if all are at once."""
        return None if self.secrets[column] == Secrets() else column

    @cached_property
    def _translations(self) -> Mapping[tuple[str, str | None], Translation]:
        found = {}
        for name, prior in self.priors.items():
            unknown = [c for c in self.secrets if c not in (prior.entry_names or ())]
            if unknown:
                raise UnsoundRequest(
                    f"{name} has no column {unknown[0]!r}, whose secrets are to be kept",
                    field=name,
                    given=unknown[0],
                    needed=prior.entry_names,
                )
            for column, kept in self.secrets.items():
                asked = self._asked(column)
                secrets = Secrets() if asked is None else Secrets((column,), kept.pairs)
                if (name, asked) not in found:
                    found[name, asked] = Translation(prior, secrets, uncertainty=self.uncertainty)
        return found
