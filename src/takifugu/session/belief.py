"""Whether a prior speaks of the data that is to be protected, as far as that is public.

A bound for seven days says nothing of a year, and one for two states nothing of three. Row counts
and declared labels are public, so both can be checked before anything is asked.
"""

from collections.abc import Iterator
from typing import Any

from takifugu.engines import Category, Declaration, Engine
from takifugu.errors import UnsoundRequest
from takifugu.fingerprint import fingerprint
from takifugu.ledger import Ledger
from takifugu.priors.independent import Product
from takifugu.translation.translation import Translation, person_size


def protected_column(declaration: Declaration, about: str | None) -> str:
    """The column that the prior is about: the one named, or the only one there is."""
    names = [column.column for column in declaration.protected]
    if about is None:
        if len(names) > 1:
            raise UnsoundRequest(
                f"{', '.join(names)} are protected and a prior is about one of them; say which,"
                " with `about`"
            )
        return names[0]
    if about not in names:
        raise UnsoundRequest(f"about is {about!r}; it must be one of {', '.join(names)}")
    return about


def refuse_misfit(translation: Translation, engine: Engine, about: str) -> None:
    """Raise if the data has longer sequences or other labels than the priors know of."""
    longest = engine.lengths().longest
    labels = _labels(engine.declaration, about)
    for name, prior in _sequences(translation):
        size = person_size(prior)
        if size is not None and longest > size:
            raise UnsoundRequest(
                f"{name} speaks of {size} entries but some {engine.declaration.entity} has"
                f" {longest} rows; use a prior that is as long, or one without end"
            )
        states = getattr(prior, "states", None)
        if labels is None or states is None:
            continue
        unnamed = tuple(states) == tuple(range(len(states)))
        if len(states) != len(labels) if unnamed else set(states) != set(labels):
            raise UnsoundRequest(
                f"{name} has {len(states)} states and `{about}` has {len(labels)} labels, or they"
                " are called differently; the states of a prior are the labels of its column"
            )


def _sequences(translation: Translation) -> Iterator[tuple[str, Any]]:
    """Every prior that an entity may follow: each part of a product is one."""
    waiting = list(translation.priors.items())
    while waiting:
        name, prior = waiting.pop(0)
        if isinstance(prior, Product):
            waiting += [(f"{name}, {part}", each) for part, each in prior.parts.items()]
        else:
            yield name, prior


def _labels(declaration: Declaration, about: str) -> tuple[Any, ...] | None:
    for column in declaration.protected:
        if column.column == about and isinstance(column, Category):
            return column.keys
    return None


def belief_of(translation: Translation) -> str:
    """The fingerprint of the priors and of how uncertain they are."""
    return fingerprint(("belief", dict(translation.priors), float(translation.uncertainty)))


def secrets_of(translation: Translation) -> str:
    """The fingerprint of the secrets."""
    return fingerprint(translation.secrets)


def refuse_change(ledger: Ledger, dataset: str, translation: Translation) -> None:
    """Raise if the budget of ``dataset`` was last spent under another prior or other secrets.

    The ledger keeps to a budget under the translation it is given. Under two by turns it would
    keep to neither of two promises for sure.
    """
    for event in ledger.history(dataset, kind="charge", last=1):
        mine = (belief_of(translation), secrets_of(translation))
        if (event.body["prior"], event.body["secrets"]) != mine:
            raise UnsoundRequest(
                f"dataset {dataset!r} was charged under another prior or other secrets; use the"
                " same ones, or have the owner allow the change (new_belief=True)"
            )
