"""The translation of priors as they are read: what a loss on the rows of a table means.

Where an entry of every prior is a row of one column, a loss per entry is one per row, and the
translation is a `Translation`. Where a prior relates the columns of a row, or the members of a
household, it is a `RowTranslation`, which knows what a row is to the prior.

Whether a prior over several columns is about the protected columns of a table, by name.

Every protected column must be in the prior, and nothing else: the guarantee keeps the secrets of
each, so that none may be left out. The values of a column in the prior must be the labels that the
table declares for it. Where the prior has joint states, every combination must be one: a row whose
values make none would be outside of the prior, and nothing would be guaranteed for it.

Whether a prior is about the data that is to be protected, as far as that is public.

A bound for seven days does not hold for a year, one for two states not for three, and one for a
ward of 75 not for a town. Row counts and declared labels are public, so all of it can be checked
before the first query; `takifugu.binding.entries` checks what the entries are.

The labels of columns that have those of the rows which a prior was fitted on.

They are the states of the prior, which is published: no other list is kept anywhere. With several
priors the first one says them, and the others must have the same, as they must for any column.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product
from math import prod
from typing import Any

from takifugu._core.fingerprint import fingerprint
from takifugu.binding.entries import (
    TYPES_DIFFER,
    Entries,
    EntriesOption,
    both_lists,
    listed,
    of_several_columns,
    only_here,
    stated_entries,
    typed,
    types_alone,
)
from takifugu.binding.matched_rows import refuse_unmatched
from takifugu.binding.protected_values import are_labels, refuse_other_numbers, values_by_column
from takifugu.declarations import Amount, Category, Declaration
from takifugu.errors import UnsoundRequest, one_of
from takifugu.ledger import Terms
from takifugu.priors import Name, Secrets
from takifugu.priors.gaussian import Gaussian
from takifugu.priors.independent import Product, people_of
from takifugu.priors.markov import MarkovChain
from takifugu.priors.prior import Prior
from takifugu.priors.truncated_gaussian import TruncatedGaussian
from takifugu.tables import Engine
from takifugu.translation.rows.row_translation import RowTranslation
from takifugu.translation.translation import Translation

MAX_SHOWN_STATES = 3  # combinations of labels that a message lists


def refuse_other_columns(name: str, prior: Prior, declaration: Declaration) -> None:
    """Raise unless a prior is over all protected columns, each with the declared values."""
    values = values_by_column(prior)
    names, protected = tuple(values), tuple(c.column for c in declaration.protected)
    if typed(names) != typed(protected):
        public = [c.column for c in declaration.public if c.column in only_here(names, protected)]
        hint = (
            f" {listed(public)} is public: it is known to everybody, and belongs in no prior of"
            " what is protected."
            if public
            else ""
        )
        raise UnsoundRequest(
            f"{name} and the table differ in columns."
            f" {both_lists(names, 'protected columns', protected)}.{hint} Every protected column"
            " must be in the prior, by its name, and no other",
            field=name,
            reason="columns-differ",
            given=only_here(names, protected),
            needed=only_here(protected, names),
        )
    for column in declaration.protected:
        refuse_values(name, column, values[column.column])
    if isinstance(prior, MarkovChain):
        refuse_missing_states(name, prior)


def refuse_values(name: str, column: Category | Amount, values: tuple[Name, ...]) -> None:
    """Raise unless ``values`` are those that the table declares for a column, by name."""
    if isinstance(column, Amount):
        refuse_other_numbers(name, values, column)
        return
    if are_labels(values, column) and len(values) == len(column.keys) + (column.outside == "drop"):
        return
    differ = types_alone(values, column.keys)
    dropped = (
        " One more value must stand for what is left out, which is protected too."
        if column.outside == "drop"
        else ""
    )
    raise UnsoundRequest(
        f"{name} and the table differ in the labels of `{column.column}`."
        f" {both_lists(values, 'declared labels', column.keys)}."
        f"{TYPES_DIFFER if differ else ''}{dropped} The values of a column in a prior must be its"
        " labels, by the same names",
        field=name,
        reason="types-differ" if differ else "states-differ",
        given=values,
        needed=column.keys,
    )


def refuse_missing_states(name: str, prior: MarkovChain) -> None:
    """Raise unless every combination of the values of a joint state is a state."""
    values = values_by_column(prior)
    every = prod(len(labels) for labels in values.values())
    if len(prior.states) == every:  # each once, and none of others: by its own checks
        return
    known = frozenset(prior.states)
    missing = tuple(
        islice(
            (state for state in product(*values.values()) if state not in known), MAX_SHOWN_STATES
        )
    )
    shown = ", ".join(map(repr, missing))
    more = ", …" if every - len(known) > MAX_SHOWN_STATES else ""
    raise UnsoundRequest(
        f"{name} has {len(prior.states)} joint states of {listed(tuple(values))}, and their labels"
        f" make {every}: {shown}{more} is left out. A row"
        " with such values would be outside of the prior; list every combination, with"
        " probabilities of 0 where it never happens",
        field=name,
        reason="joint-states",
        given=len(prior.states),
        needed=every,
    )


OverOption = EntriesOption | Mapping[str, EntriesOption]
SecretsOption = Secrets | Mapping[str, Secrets]
PriorTranslation = Translation | RowTranslation


def named_priors(prior: Prior | Sequence[Prior] | Mapping[str, Prior]) -> dict[str, Prior]:
    """Priors by name, as `Translation` names them."""
    if isinstance(prior, Mapping):
        return {str(name): one for name, one in prior.items()}
    if isinstance(prior, Sequence) and not isinstance(prior, str):
        return {f"prior {k}": one for k, one in enumerate(prior)}
    return {"prior": prior}


def protected_column(declaration: Declaration, about: str | None) -> str:
    """The column that the prior is about: the one named, or the only one there is."""
    names = [column.column for column in declaration.protected]
    if about is None:
        if len(names) > 1:
            raise UnsoundRequest(
                f"{', '.join(names)} are protected and a prior is about one of them; name it with"
                ' `about`, or give a prior over all of them (over = "row", or a chain with'
                " `columns`)",
                field="about",
                needed=tuple(names),
            )
        return names[0]
    if about not in names:
        raise UnsoundRequest(
            f"about is {about!r}; it must {one_of(names)}",
            field="about",
            given=about,
            needed=tuple(names),
        )
    return about


def translates_rows(priors: Mapping[str, Prior], over: OverOption) -> bool:
    """Whether some prior is stated to relate columns or members, or can be about nothing else."""
    for name, prior in priors.items():
        given = over.get(name) if isinstance(over, Mapping) else over
        stated = given.over if isinstance(given, Entries) else given
        if stated in ("row", "household"):
            return True
        if isinstance(prior, MarkovChain) and prior.columns is not None:
            return True
    return False


def translation_of(
    priors: Mapping[str, Prior],
    secrets: SecretsOption,
    uncertainty: float,
    *,
    over: OverOption,
    declaration: Declaration,
    about: str | None,
    where: str = "",
) -> PriorTranslation:
    """What a loss on rows means under ``priors``; an error if names do not match the table's."""
    if not translates_rows(priors, over):
        return Translation(priors, _of_one(secrets, declaration, about), uncertainty=uncertainty)
    read = stated_entries(priors, over, entity=declaration.entity, where=where)
    first = next(iter(priors))
    if of_several_columns(priors[first], read[first]):
        refuse_about(about, declaration)
        for name, prior in priors.items():
            refuse_other_columns(name, prior, declaration)
        places = read[first].over == "sequence"
        kept = _by_column(secrets, priors[first], declaration, places=places)
    else:
        column = protected_column(declaration, about)
        kept = {column: _of_one(secrets, declaration, about)}
        for name, prior in priors.items():
            _refuse_members(name, prior, declaration, column)
    stated = read[first]
    grouping = stated.household, stated.member
    return row_translation(stated.over, priors, kept, uncertainty, grouping=grouping)


def _refuse_members(name: str, prior: Prior, declaration: Declaration, about: str) -> None:
    """Raise unless every member of a household has the labels of the protected column."""
    column = next(c for c in declaration.protected if c.column == about)
    from takifugu.translation.rows.household import household_chain

    chain = household_chain(name, prior)
    for member, values in values_by_column(chain).items():
        refuse_values(f"{name}, {member}", column, values)
    refuse_missing_states(name, chain)


def row_translation(
    over: str,
    priors: Mapping[str, Prior],
    secrets: Mapping[str, Secrets],
    uncertainty: float,
    *,
    grouping: tuple[str | None, str | None] = (None, None),
) -> RowTranslation:
    """The translation of rows for one reading of the priors; households have a ``grouping``."""
    from takifugu.translation.rows.columns_of_row import ColumnsOfRow, JointColumns
    from takifugu.translation.rows.household import Household

    if over == Household.over:
        return Household(priors, secrets, uncertainty, grouping=grouping)
    for kind in (ColumnsOfRow, JointColumns):
        if kind.over == over:
            return kind(priors, secrets, uncertainty)
    raise UnsoundRequest(
        f"over is {over!r:.80}, which is no reading of rows", field="over", given=over
    )


def columns_of(
    translation: PriorTranslation, declaration: Declaration, about: str | None
) -> tuple[str, ...]:
    """The protected columns that a session is about, in the order of the declaration."""
    if isinstance(translation, RowTranslation):
        return tuple(c.column for c in declaration.protected if c.column in translation.secrets)
    return (protected_column(declaration, about),)


def refuse_about(about: str | None, declaration: Declaration) -> None:
    """A prior over all protected columns is not about one of them."""
    names = tuple(column.column for column in declaration.protected)
    if about is not None and names != (about,):
        raise UnsoundRequest(
            f"about is {about!r}, and the prior is over all protected columns"
            f" ({', '.join(names)}); leave `about` out",
            field="about",
            reason="several-columns",
            given=about,
            needed=names,
        )


def _of_one(secrets: SecretsOption, declaration: Declaration, about: str | None) -> Secrets:
    """The secrets of the one column that a prior is about."""
    if isinstance(secrets, Secrets):
        return secrets
    column = protected_column(declaration, about)
    others = [name for name in secrets if name != column]
    if others:
        raise UnsoundRequest(
            f"secrets are given for {listed(others)}, and the prior is about {column!r} alone",
            field="secrets",
            reason="other-column",
            given=tuple(others),
            needed=(column,),
        )
    return secrets.get(column, Secrets())


def _by_column(
    secrets: SecretsOption, prior: Prior, declaration: Declaration, *, places: bool
) -> dict[str, Secrets]:
    """The secrets of each protected column: all pairs of one that is not named.

    ``places``: whether entries are places in a sequence, of which some may be kept alone.
    """
    names = tuple(column.column for column in declaration.protected)
    if isinstance(secrets, Secrets):
        if secrets.pairs is not None and len(names) > 1:
            raise UnsoundRequest(
                f"pairs are given for no column, and {', '.join(names)} are protected; give them"
                " by column: {column: pairs}",
                field="pairs",
                reason="by-column",
                needed=names,
            )
        secrets = dict.fromkeys(names, secrets)
    unknown = [name for name in secrets if name not in names]
    if unknown:
        raise UnsoundRequest(
            f"secrets are given for {listed(unknown)}; the protected columns are {listed(names)}",
            field="secrets",
            reason="other-column",
            given=tuple(unknown),
            needed=names,
        )
    kept = {name: secrets.get(name, Secrets()) for name in names}
    values = values_by_column(prior)
    for name, one in kept.items():
        if one.within is not None:
            raise UnsoundRequest(
                f"secrets within a distance are for a gaussian prior, and `{name}` has values of a"
                " list; give pairs of them",
                field="within",
                given=name,
            )
        if one.entries is not None and not places:
            raise UnsoundRequest(
                'entries are given, and the entries of over = "row" are columns, whose secrets are'
                " all kept; leave them out",
                field="entries",
                given=one.entries,
            )
        one.sides(values[name])  # refuses a value that the column does not have
    return kept


Labels = dict[str, tuple[Name, ...]]  # by column


def fitted_labels(
    priors: Mapping[str, Prior], declaration: Declaration, *, over: OverOption, about: str | None
) -> Labels:
    """The labels that the priors say of the columns of ``declaration`` that have none yet."""
    if not declaration.unfitted or not priors:
        return {}
    name, prior = next(iter(priors.items()))
    read = stated_entries(priors, over, entity=declaration.entity)[name]
    if of_several_columns(prior, read):
        states = {str(column): values for column, values in values_by_column(prior).items()}
    elif read.over == "household":
        from takifugu.translation.rows.household import household_chain

        members = values_by_column(household_chain(name, prior))
        states = {protected_column(declaration, about): next(iter(members.values()))}
    else:
        one = next(iter(people_of((prior,))))
        named = tuple(value for value in one.entry_values[0] if isinstance(value, str | int))
        states = {protected_column(declaration, about): named}
    found = {column: states[column] for column in declaration.unfitted if column in states}
    for column, labels in found.items():
        _refuse_nameless(name, column, labels, declaration)
    return found


def _refuse_nameless(
    name: str, column: str, labels: tuple[Name, ...], declaration: Declaration
) -> None:
    """Raise if states are only numbered, or lack the one that stands for everything else."""
    other = declaration.category(column).other
    if other in labels:
        return
    raise UnsoundRequest(
        f"{name} has no state {other!r}; the labels of `{column}` are its states, and one of them"
        f" must be {other!r}, for values that it does not list. `takifugu prior fit` makes such a"
        " prior",
        field=name,
        reason="no-other",
        needed=other,
    )


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
