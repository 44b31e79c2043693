"""What a project adds to a session: keys given as text, and prices confirmed."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from takifugu._rounding import float_up
from takifugu.ledger import Quote
from takifugu.losses import Total
from takifugu.priors import Name
from takifugu.session.cost import Cost
from takifugu.session.query_options import QueryOptions
from takifugu.session.release_plan import UnpricedPlan
from takifugu.session.rows import Bound
from takifugu.session.session import Session


def _bound(word: Any, number: bool) -> Bound:
    if word is None or isinstance(word, int):
        return word
    if number and str(word).strip().removeprefix("-").isdecimal():
        return int(word)
    return str(word)


class PolicySession(Session):
    """A session that understands the words of commands; made by `Project.session`.

    Its prices hold by the translation itself, whatever a table that was kept in a file says.
    """

    def _cost(self, made: UnpricedPlan, quote: Quote) -> Cost:
        """As `Session` has it, its price confirmed."""
        return self._confirmed(super()._cost(made, quote))

    def _confirmed(self, cost: Cost) -> Cost:
        """The cost, its price not below what the translation itself finds."""
        if self._translation is self._prior:
            return cost
        lost = Total(**{cost.currency: cost.per_entry})
        if (lost, cost.delta) not in self._alone:
            self._alone[lost, cost.delta] = (
                float(self._prior.to_pufferfish(float_up(lost.epsilon)))
                if cost.currency == "epsilon"
                else self._prior.total_to_pufferfish(lost, cost.delta)
            )
        return replace(cost, alone=max(cost.alone, self._alone[lost, cost.delta]))

    @cached_property
    def _alone(self) -> dict[tuple[Total, Fraction], float]:
        """Prices that were confirmed."""
        return {}

    def resolved(self, options: QueryOptions) -> QueryOptions:
        """Options whose keys and bounds may be given as text, as the columns have them."""
        column = options.column or self.about
        window = options.window
        if window is not None:
            number = self._engine.declaration.order.kind == "number"
            window = (_bound(window[0], number), _bound(window[1], number))
        return replace(
            options,
            window=window,
            where={name: self._keys(name, keys) for name, keys in options.where.items()},
            values=self._keys(column, options.values) if options.values else (),
        )

    def _keys(self, column: str, texts: Sequence[Name]) -> tuple[Name, ...]:
        """The keys of a column that the texts name; a text that names none is passed on."""
        keys = {str(key): key for key in self._engine.keys(column)}
        return tuple(keys.get(str(text), text) for text in texts)
