r"""When history is lost for good: the owner accepts it, and what it may have cost is counted.

The events that a ledger lacks may have charged anything that its budgets admitted. Let an account
have the budget :math:`(ε_B, δ_B)`, and let T be what an entry had lost in truth when the newest
copy was lost, in each currency.

**Claim.** T is at most, in each currency, the larger of what the copy has counted as the worst and
of the most that the budget admits for a single entry under the translation in use. *Proof.* If
nothing was charged to the account since the copy, T is in the copy, hence at most its worst. Else
look at the last charge since then. It was admitted, so the filter admitted the account's worst
total after it, which dominates T; filters are monotone, so a total that is T in one currency and 0
in the others is admitted as well, and the most that is admitted in that currency is no less. ∎

A cost is not bounded that way: it is admitted by what it means for the prior, and the ε that covers
it may exceed what the budget allows of ε alone. But if every pair of values is secret, an admitted
cost c has :math:`c(u,v) ≤ ε_B` for all of them, since a mechanism with cost c may release a value
by likelihoods that move the odds of u against v by :math:`e^{c(u,v)}`. So :math:`ε_B·[u≠v]` is at
least any admitted cost, and :math:`ε_B` itself is counted; likewise of the sum that the last charge
left behind. Of a row with several protected columns that holds for each column, and :math:`ε_B` is
counted for each (`RowTranslation.covering_cost`); :math:`ε_B·[u≠v]` is not enough, since a change
of two columns may have cost twice that. So the columns of a dataset that is about several must be
known also where no translation is. Where only some pairs are secret there is no such bound, and the
owner must know that no cost was charged. A translation that knows no values admits a cost by the ε
that covers it: for those the claim stands as it is.

So every entry is counted as having lost these maxima, all of them at once, and nothing else: the
new cells start from there. A budget that stays the same admits no loss on top of its
own most. A higher one admits what exceeds it, and what was released, then and later, stays within
it, because the total that is counted is never below the true one.

*Which translation.* One that is given is, as the owner confirms, the one that was in use in all of
the part that is lost; if every charge of the copy names it too, the most is read from it. If it
is not known, or priors have changed, :math:`ε_B` itself
is counted for a budget without δ: no sound translation maps a per-entry ε below ε, because
randomised response on whether one entry has a value of the one side of a secret pair is ε-DP for
every entry and moves the odds of that pair by :math:`e^ε`; so a budget of :math:`ε_B` admits no
per-entry total above :math:`ε_B`, whichever translation judged it. With a δ there is no such bound
for ρ, and the translation must be given.

*What is at hand.* Where a copy takes the place of a ledger that can still be read, that ledger
shows budgets that were set in the part that is lost, and totals: the largest of all is counted.

*What cannot be known.* Elsewhere a budget that was raised in the part that is lost admitted more:
the owner has to name it. So has a dataset whose first budget was set there. Secrets of which only
some pairs of values were left there, without a trace in the copy, must be told by the translation
that is given. Values that a prior excluded were never told apart from its point of view: their
costs were free, and another prior that allows them knows nothing of that.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import Any

from takifugu._core.exact import Number
from takifugu._core.fingerprint import fingerprint
from takifugu._core.rounding import float_up
from takifugu.costs.cost import ANY, Column, Cost
from takifugu.costs.losses import Concentrated, Metric, Total
from takifugu.errors import LedgerConflict, LedgerDamaged, UnsoundRequest
from takifugu.ledger.account import WHOLE, Book, Books
from takifugu.ledger.canonical_text import write_fraction
from takifugu.ledger.events import event_chain as chain
from takifugu.ledger.events import replay
from takifugu.ledger.events.decisions import exact_budget
from takifugu.ledger.events.event_chain import Anchor, Event
from takifugu.ledger.frontier import Frontier, covering, dominates, total_document
from takifugu.ledger.limits import Limit
from takifugu.ledger.storage import account_tables as tables
from takifugu.ledger.storage.database import Connection
from takifugu.ledger.witnesses.head_witness import holds
from takifugu.priors.secrets import Secrets
from takifugu.translation.protocol import LossTranslation

AMOUNT_HALVINGS = 60  # of halving: the most is found up to 2^-60 of itself, from above
MAX_COUNTED_LOSS = 2**20

Budgets = Mapping[str, Number | tuple[Number, Number]]


def counted(
    connection: Connection,
    lost: Anchor | None,
    terms: "LossTerms",
    overwritten: "ShownLosses | None" = None,
) -> tuple[dict[str, Any], Books]:
    """The content of an event of kind "loss", and the accounts after it. Needs the lock.

    ``overwritten`` is what the ledger shows that the copy takes the place of, if there is one.
    """
    if lost is None or holds(connection, lost):
        raise LedgerConflict(
            "the ledger has the event that its witness has seen: nothing was lost",
            reason="nothing lost",
        )
    report = replay.verify(connection, None, sqlite=False)
    if not report.sound:
        raise LedgerDamaged(
            f"the copy is not sound ({report.problems[0]}); restore another one",
            reason="unsound copy",
        )
    accounts, books = _accounts(connection, terms, overwritten or ShownLosses())
    content = {"lost": {"seq": lost.seq, "hash": lost.hash}, "accounts": accounts}
    books.apply({"kind": "loss", **content})
    return content, books


def accept(
    connection: Connection,
    lost: Anchor | None,
    terms: "LossTerms",
    actor: str,
    now: datetime,
    overwritten: "ShownLosses | None" = None,
) -> Event:
    """Count what may have been lost, and write the event."""
    chain.head(connection, lock=True)
    content, books = counted(connection, lost, terms, overwritten)
    tables.rebuild(connection, books)
    return chain.append(connection, "loss", {**content, "actor": actor}, now)


@dataclass(frozen=True)
class LossTerms:
    """What the owner states about a part that is lost.

    Attributes:
        translations: For each dataset the translation that was in use.
        budgets: For each dataset whose budget was raised there, the largest.
        columns: The protected columns of each dataset, as far as they are known.
        costs: Whether queries may have been charged by value; of several columns all are.
    """

    translations: Mapping[str, LossTranslation] = field(default_factory=dict)
    budgets: Budgets = field(default_factory=dict)
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)
    costs: bool = True


@dataclass(frozen=True)
class ShownLosses:
    """What a ledger shows that a copy takes the place of.

    Attributes:
        budgets: For each dataset with a decision on a budget that the copy lacks, those of the
            whole dataset among them.
        totals: For each account, by dataset and analyst, the worst totals.
        used: How each dataset was charged.
    """

    budgets: Mapping[str, list[tuple[Fraction, Fraction]]] = field(default_factory=dict)
    totals: Mapping[tuple[str, str], Frontier] = field(default_factory=dict)
    used: "Mapping[str, Used]" = field(default_factory=dict)

    @classmethod
    def read(cls, connection: Connection, copy: Connection) -> "ShownLosses":
        """As far as events can be read: the ledger may be overwritten because it is damaged."""
        in_copy = {row.hash for row in chain.rows(copy)}
        books, used = Books(), dict[str, Used]()
        budgets: dict[str, list[tuple[Fraction, Fraction]]] = {}
        for row in chain.rows(connection):
            try:
                event = chain.read(row)
                replay.take(books, event)
                _take_use(used, event)
            except (LedgerDamaged, KeyError):
                continue
            if event.kind == "budget" and row.hash not in in_copy:
                limit = Fraction(event.body["epsilon"]), Fraction(event.body["delta"])
                whole = budgets.setdefault(event.body["dataset"], [])
                whole += [] if event.body["analyst"] else [limit]
        totals = {name: book.account.worst for name, book in books.books.items()}
        return cls(budgets, totals, used)


def _accounts(
    connection: Connection, terms: LossTerms, overwritten: ShownLosses
) -> tuple[list[dict[str, Any]], Books]:
    """What is counted for each account, and the accounts without it."""
    books = replay.replayed(connection)
    known: dict[str, Used] = {}
    for event in chain.events(connection):
        _take_use(known, event)
    for dataset, used in overwritten.used.items():
        known.setdefault(dataset, Used()).add(used)
    named = {name: [_budget(given)] for name, given in terms.budgets.items()}
    for dataset, shown in overwritten.budgets.items():
        named[dataset] = named.get(dataset, []) + shown
    for name in (*((dataset, WHOLE) for dataset in named), *overwritten.totals):
        books.book(*name)
    accounts = []
    for book in list(books.books.values()):
        worst = (*book.account.worst, *overwritten.totals.get((book.dataset, book.analyst), ()))
        total = _reached(book, books, named, known.get(book.dataset, Used()), worst, terms)
        if total is not None:
            whose = {"dataset": book.dataset, "analyst": book.analyst or None}
            accounts.append(whose | total_document(total))
    return accounts, books


@dataclass(frozen=True)
class Used:
    """What a copy says about how a dataset was charged: fingerprints that its events name."""

    translations: set[str] = field(default_factory=set)
    secrets: set[str] = field(default_factory=set)

    def add(self, other: "Used") -> None:
        """Take in what another copy says."""
        self.translations.update(other.translations)
        self.secrets.update(other.secrets)

    def every_pair(self, columns: tuple[str, ...]) -> bool:
        """Whether nothing in the copy says that only some pairs of values were secret.

        ``columns`` are those of the dataset, if they are known: all pairs of each may be named.
        """
        by_column = ("by column", dict.fromkeys(sorted(columns), Secrets()))
        return self.secrets <= {fingerprint(Secrets()), fingerprint(by_column)}


def _take_use(by_dataset: dict[str, Used], event: Event) -> None:
    """Take in what an event says about how its dataset was charged."""
    if event.kind in ("charge", "reuse", "accepted"):
        used = by_dataset.setdefault(event.body["dataset"], Used())
        used.secrets.add(event.body["secrets"])
        if event.kind != "accepted":
            used.translations.add(event.body["translation"])


def _budget(given: Number | tuple[Number, Number]) -> tuple[Fraction, Fraction]:
    budget = exact_budget(*given) if isinstance(given, tuple) else exact_budget(given, 0)
    for part in budget:
        write_fraction(part, "budget")  # refuses what could not be stored
    return budget


def _reached(
    book: Book,
    books: Books,
    named: Mapping[str, list[tuple[Fraction, Fraction]]],
    used: Used,
    worst: Frontier,
    terms: LossTerms,
) -> Total | None:
    """What every entry of an account may have lost; None if nothing can have been charged to it.

    Everything in an analyst's account was paid once by the whole, at that time or before, so that
    an analyst without a budget is bounded by the whole. ``worst`` are the totals that are known.
    """
    whole = books.book(book.dataset, WHOLE)
    given = [] if whole.epsilon is None else [(whole.epsilon, whole.delta)]
    given += named.get(book.dataset, [])
    if not given:
        return None
    if book.analyst and book.epsilon is not None and book.dataset not in named:
        given = [(book.epsilon, book.delta)]
    most = [_most(*budget, used, book.dataset, terms) for budget in given]
    beyond = [
        total
        for total in worst
        if not any(dominates(limit, total.without_values) for limit in most)
    ]
    return covering((*most, *beyond))


def _most(epsilon: Fraction, delta: Fraction, used: Used, dataset: str, terms: LossTerms) -> Total:
    """The most that a budget admits for an entry in each currency, rounded up."""
    translation = terms.translations.get(dataset)
    columns = tuple(terms.columns.get(dataset, ()))
    costs = terms.costs or (len(columns) > 1 if translation is None else translation.names_columns)
    mark = None if translation is None else translation.fingerprint
    same = translation is not None and (mark is None or used.translations <= {mark})
    if costs and same and translation is not None:
        costs = translation.knows_values
    if translation is None and delta:
        raise UnsoundRequest(
            f"the budget of dataset {dataset!r} has a delta, so that what it admitted depends on"
            " the prior: give the translation that was in use, or, if the priors of the project"
            " were not replaced in the part that is lost, run the command there with --same-prior",
            field="delta",
            reason="translation unknown",
        )
    if not same and delta:
        raise UnsoundRequest(
            f"dataset {dataset!r} has a delta and was charged under other translations than the"
            " one that is given: put the earlier prior back first",
            field="delta",
            reason="another translation",
        )
    most = Total() if same else Total(epsilon)
    if costs:
        covering_cost = None
        if used.every_pair(columns):  # ε of any change, or of a change of each of several columns
            each = Cost.of({Column(column, ANY): epsilon for column in columns})
            covering_cost = each if len(columns) > 1 else Cost.any(epsilon)
        if translation is not None and translation.knows_values:
            covering_cost = translation.covering_cost(epsilon)
        if covering_cost is None:
            raise UnsoundRequest(
                f"only some pairs of values of dataset {dataset!r} are known to be secret, so that"
                " what its budget admitted of a cost is not bounded: give the translation that was"
                " in use if every pair was secret (--same-prior, in its project); or, if it is"
                " about one column, confirm that no query was charged by value in the part that is"
                " lost (`costs=False`, --no-costs)",
                field="costs",
                reason="some pairs",
            )
        most = Total().plus(Metric(covering_cost))
    if translation is None:
        return most
    limit = Limit(translation, epsilon, delta)
    if not most.costs:  # else it covers the ε that was charged on all of a row as well
        most = Total(max(limit.allowed, most.epsilon))
    if not delta:  # neither a δ nor a ρ is within any ε, so that no sound limit admits them
        return most
    rho = _above(lambda amount: limit.admits((Total().plus(Concentrated(amount)),)))
    return Total(most.epsilon, delta, rho, most.costs)


def _above(admits: Callable[[Fraction], bool]) -> Fraction:
    """An amount that is not admitted: none that is admitted lies above it."""
    low, high = Fraction(0), Fraction(1)
    if not admits(Fraction(1, 2**200)):
        return Fraction(1, 2**200)
    while admits(high):
        low, high = high, 2 * high
        if high > MAX_COUNTED_LOSS:
            raise UnsoundRequest(
                f"the budget admits a loss of more than {MAX_COUNTED_LOSS} per entry, or the"
                f" translation does not grow; what was lost cannot be counted ({float_up(high):g})",
                reason="broken translation",
            )
    for _ in range(AMOUNT_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if admits(middle) else (low, middle)
    return high
