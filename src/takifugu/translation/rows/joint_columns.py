r"""``over = "sequence"`` of several columns: the rows of an entity are a chain on joint states.

An entry of the prior is a row, whose state is the tuple of its columns' values, so that a cost on
rows is a cost on entries as it is. A secret about one column at one place is a pair of groups of
joint states: x there, against y there, whatever the other columns are.
"""

from collections.abc import Mapping
from functools import cached_property

from takifugu.costs.cost import Cost
from takifugu.errors import UnsoundRequest
from takifugu.priors.markov import MarkovChain
from takifugu.priors.prior import Prior
from takifugu.priors.secrets import Secrets
from takifugu.translation.entry_costs import EntryCosts
from takifugu.translation.rows.row_translation import RowTranslation
from takifugu.translation.translation import Translation


class JointColumns(RowTranslation):
    """Chains on joint states, with secrets about every column."""

    over = "sequence"

    def __init__(
        self,
        priors: Mapping[str, Prior],
        secrets: Mapping[str, Secrets],
        uncertainty: float = 0.0,
    ) -> None:
        super().__init__(priors, secrets, uncertainty)
        for name, prior in self.priors.items():
            if not isinstance(prior, MarkovChain) or prior.columns is None:
                raise UnsoundRequest(
                    f"{name} has no joint states; several columns of a sequence need a Markov chain"
                    " with `columns`",
                    field=name,
                )
            for column, kept in self.secrets.items():
                self._joint[name, column] = Secrets.of_column(
                    column,
                    prior.columns,
                    prior.states,
                    pairs=kept.pairs,  # type: ignore[arg-type]
                    entries=kept.entries,
                )

    @cached_property
    def _joint(self) -> dict[tuple[str, str], Secrets]:
        """By prior and column: what a column is, as pairs of groups of joint states."""
        return {}

    def by_column(self, costs: tuple[Cost, ...], /) -> Mapping[str, float]:
        """The translation of joint costs, for the secrets of each column; of the worst prior."""
        charged = EntryCosts(costs)
        found = dict.fromkeys(self.secrets, 0.0)
        for (_, column), translation in self._translations.items():
            found[column] = max(found[column], translation.cost_bound(charged).value)
        return found

    @cached_property
    def _translations(self) -> Mapping[tuple[str, str], Translation]:
        """By prior and column: of the secrets of that column, whatever the other columns are."""
        return {
            key: Translation(self.priors[key[0]], secrets, uncertainty=self.uncertainty)
            for key, secrets in self._joint.items()
        }
