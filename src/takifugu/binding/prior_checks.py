"""Whether a prior is about the data that is to be protected, as far as that is public.

A bound for seven days does not hold for a year, one for two states not for three, and one for a
ward of 75 not for a town. Row counts and declared labels are public, so all of it can be checked
before the first query; `takifugu.binding.entries` checks what the entries are.
"""

from collections.abc import Iterator
from typing import Any

from takifugu._core.fingerprint import fingerprint
from takifugu.binding.entries import Entries, stated_entries
from takifugu.binding.matched_rows import refuse_unmatched
from takifugu.binding.name_lists import TYPES_DIFFER, both_lists, types_alone
from takifugu.binding.number_states import refuse_other_numbers
from takifugu.binding.prior_reading import OverOption, PriorTranslation
from takifugu.declarations import Amount, Category, Declaration
from takifugu.errors import UnsoundRequest
from takifugu.ledger import Terms
from takifugu.priors.gaussian import Gaussian
from takifugu.priors.independent import Product
from takifugu.priors.prior import Prior
from takifugu.priors.truncated_gaussian import TruncatedGaussian
from takifugu.tables import Engine
from takifugu.translation.translation import Translation


def refuse_misfit(
    translation: PriorTranslation,
    engine: Engine,
    columns: tuple[str, ...],
    over: OverOption = None,
    *,
    where: str = "",
) -> dict[str, Entries]:
    """What the entries of every prior are; an error if the data has others, or other values."""
    if engine.declaration.order.absent:  # the file may have more rows than when it was added
        engine.whole.refuse_disorder()
    several = translation.priors if len(translation.priors) > 1 else {}
    sizes = {name: prior.size for name, prior in several.items()}
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{name} {'unbounded' if n is None else n}" for name, n in sizes.items())
        raise UnsoundRequest(
            f"the priors have different numbers of entries ({listed}); give all the same length",
            field="prior",
            reason="sizes-differ",
            given=sizes,
        )
    read = stated_entries(translation.priors, over, entity=engine.declaration.entity, where=where)
    refuse_unmatched(translation.priors, read, engine)
    if isinstance(translation, Translation):
        for name, prior in _priors(translation):
            _refuse_values(name, prior, engine.declaration, columns[0])
    return read


def _refuse_values(name: str, prior: Prior, declaration: Declaration, about: str) -> None:
    column = next(c for c in declaration.protected if c.column == about)
    if isinstance(prior, Gaussian):
        if not isinstance(column, Amount) or column.missing != "refuse":
            raise UnsoundRequest(
                f"{name} is about numbers, each of which is there; `{about}` must be a column of"
                ' numbers with missing = "refuse"',
                field=name,
                reason="numbers",
            )
        return
    if isinstance(prior, TruncatedGaussian):
        inside = (
            isinstance(column, Amount) and max(abs(column.low), abs(column.high)) <= prior.bound
        )
        if not inside:
            raise UnsoundRequest(
                f"{name} is about numbers within ±{prior.bound:g}; `{about}` must be a column of"
                " numbers with bounds inside that",
                field=name,
                reason="bounds",
                given=prior.bound,
            )
        return
    for states in prior.entry_values:
        if isinstance(column, Amount):
            refuse_other_numbers(name, states, column, numbered=True)
        elif not _fits(states, column):
            differ = types_alone(states, column.keys)
            raise UnsoundRequest(
                f"{name} has {len(states)} states and `{about}` has {len(column.keys)} labels, or"
                f" they have other names. {both_lists(states, 'labels', column.keys)}."
                f"{TYPES_DIFFER if differ else ''} The states of a prior must be the labels of its"
                " column",
                field=name,
                reason="types-differ" if differ else "states-differ",
                given=tuple(states),
                needed=column.keys,
            )


def _fits(states: tuple[Any, ...], column: Category) -> bool:
    """Whether states are the labels; one more may stand for what is dropped."""
    spare = (0, 1) if column.outside == "drop" else (0,)
    more = len(states) - len(column.keys)
    unnamed = states == tuple(range(len(states)))
    return more in spare and (unnamed or set(column.keys) <= set(states))


def _priors(translation: Translation) -> Iterator[tuple[str, Prior]]:
    """Every prior that an entity may follow: each part of a product is one."""
    waiting = list(translation.priors.items())
    while waiting:
        name, prior = waiting.pop(0)
        if isinstance(prior, Product):
            waiting += [(f"{name}, {part}", each) for part, each in prior.parts.items()]
        else:
            yield name, prior


def terms_of(translation: PriorTranslation) -> Terms:
    """What a budget holds under, for the ledger: the priors with their uncertainty, the secrets.

    Where a prior relates columns or people, what it is over is one of the terms.
    """
    prior: tuple[Any, ...] = (
        "belief",  # as it is stored
        dict(translation.priors),
        float(translation.uncertainty),
    )
    if isinstance(translation, Translation):
        return Terms(fingerprint(prior), fingerprint(translation.secrets))
    secrets = ("by column", dict(translation.secrets))
    return Terms(fingerprint((*prior, "over", translation.reading)), fingerprint(secrets))
