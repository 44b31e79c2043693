r"""``over = "sequence"`` of several columns: the rows of an entity are a chain on joint states.

An entry of the prior is a row, whose state is the tuple of its columns' values, so that a cost on
rows is a cost on entries as it is. A secret about one column at one place is a pair of groups of
joint states: x there, against y there, whatever the other columns are.
"""

from collections.abc import Mapping
from functools import cached_property

from takifugu.costs import Cost
from takifugu.errors import UnsoundRequest
from takifugu.priors.markov import MarkovChain
from takifugu.priors.secrets import Secrets
from takifugu.translation.entry_costs import EntryCosts
from takifugu.translation.rows.row_translation import RowTranslation
from takifugu.translation.translation import Translation


class JointColumns(RowTranslation):
    """Chains on joint states, with secrets about every column."""

    over = "sequence"

    def by_column(self, costs: tuple[Cost, ...], /) -> Mapping[str, float]:
        """The translation of joint costs, for the secrets of each column."""
        charged = EntryCosts(costs)
        found = {c: t.cost_bound(charged).value for c, t in self._translations.items()}
        return found

    @cached_property
    def _translations(self) -> Mapping[str, Translation]:
        """By column: all priors, with the secrets of that column."""
        chains = {}
        for name, prior in self.priors.items():
            if not isinstance(prior, MarkovChain) or prior.columns is None:
                raise UnsoundRequest(
                    f"{name} has no joint states; several columns of a sequence need a Markov chain"
                    " with `columns`",
                    field=name,
                )
            chains[name] = prior
        first = next(iter(chains.values()))
        for name, chain in chains.items():
            if (chain.columns, chain.states) != (first.columns, first.states):
                raise UnsoundRequest(
                    f"{name} has other joint states than the first prior, or lists them in another"
                    " order; give all the same",
                    field=name,
                )
        return {
            column: Translation(
                chains,
                Secrets.of_column(
                    column,
                    first.columns or (),
                    first.states,
                    pairs=kept.pairs,  # type: ignore[arg-type]
                    entries=kept.entries,
                ),
                uncertainty=self.uncertainty,
            )
            for column, kept in self.secrets.items()
        }
