"""Sentences of a privacy report: its summary, what a prior means, and its glossary."""

from collections.abc import Sequence
from datetime import datetime

from takifugu.priors.explicit import Explicit
from takifugu.priors.gaussian import Gaussian
from takifugu.priors.higher_order import HigherOrderChain
from takifugu.priors.independent import IndependentEntries, Product
from takifugu.priors.interval_chain import IntervalMarkovChain
from takifugu.priors.markov import MarkovChain
from takifugu.priors.networks import BayesianNetwork, MarkovRandomField
from takifugu.priors.prior import Prior
from takifugu.priors.time_of_day import TimeOfDayChain
from takifugu.reports.report_values import ReportedDataset, ReportedLedger
from takifugu.visible import four_digits

MAX_LISTED = 3  # releases that a sentence names


def moment(at: datetime) -> str:
    """A time as people read it."""
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def counted(many: int, word: str) -> str:
    """A number of things: "1 release", "2 releases"."""
    return f"{many:,} {word}{'' if many == 1 else 's'}"


def summary(dataset: ReportedDataset, ledger: ReportedLedger) -> list[str]:
    """What is published, about whom (and whom not), what it tells, the budget, the ledger."""
    return [
        _published(dataset),
        _about(dataset),
        *([dataset.fitted] if dataset.fitted else []),
        _learned(dataset),
        _spent(dataset),
        _verified(ledger),
    ]


def _published(dataset: ReportedDataset) -> str:
    tabulated = [release for release in dataset.releases if release.table]
    if not dataset.releases:
        return f"Nothing was published from the dataset {dataset.name} yet."
    named = [release.title for release in tabulated[:MAX_LISTED]]
    more = len(tabulated) - len(named)
    listed = "; ".join(named) + (f"; and {more} more" if more > 0 else "")
    many = counted(len(dataset.releases), "result")
    was = "was" if len(dataset.releases) == 1 else "were"
    return f"{many} of the dataset {dataset.name} {was} published" + (
        f": {listed}." if listed else "."
    )


def _about(dataset: ReportedDataset) -> str:
    columns = _and([f"“{name}”" for name in dataset.protected])
    many = ""
    if dataset.size is not None:
        rows, entities = dataset.size
        many = f" ({entities:,} in all, with {counted(rows, 'row')})"
    return (
        f"The rows belong to whoever the column “{dataset.entity}” names{many}, and what is"
        " protected is"
        f" the value of {columns} in each row; that a row exists, whose it is and its place in the"
        " order are taken as known."
    )


def _learned(dataset: ReportedDataset) -> str:
    budget = dataset.budget
    if budget is None or not budget.spent_odds:
        return "What an adversary could learn at most is not known: there is no prior or no budget."
    full = f"; with the whole budget, {_last(budget.full_odds)}" if budget.full_odds else ""
    return (
        "From everything published so far, about which of two values a protected cell holds,"
        f" {unbroken(budget.spent_odds)}{unbroken(full)}."
    )


def unbroken(words: str) -> str:
    """Odds that stay on one line."""
    return words.replace(" : ", "\u00a0:\u00a0")


def _last(words: str) -> str:
    """The end of a clause about odds, where another one began in the same way."""
    _, separator, rest = words.partition(" can come to ")
    return rest if separator else words


def _spent(dataset: ReportedDataset) -> str:
    budget = dataset.budget
    if budget is None or budget.epsilon is None:
        return "No lifetime budget is set, so that nothing can be released."
    delta = f", δ = {four_digits(budget.delta, 'down')}" if budget.delta else ""
    whole = f"Of a lifetime budget of ε = {four_digits(budget.epsilon, 'down')}{delta}"
    if budget.spent is None or budget.left is None:
        return f"{whole} it is not known what is spent."
    spent, left = four_digits(budget.spent, "up"), four_digits(budget.left, "down")
    return f"{whole}, {spent} is spent and {left} is left."


def _verified(ledger: ReportedLedger) -> str:
    if ledger.sound:
        return (
            f"The ledger, which records every release before it happens, was verified: its"
            f" {counted(ledger.events, 'event')} are unchanged and add up."
        )
    return (
        f"The ledger, which records every release before it happens, was verified and is NOT"
        f" sound: {counted(len(ledger.problems), 'problem')} {_was(len(ledger.problems))} found."
    )


def _was(many: int) -> str:
    return "was" if many == 1 else "were"


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def prior_means(prior: Prior) -> str:
    """What a prior says of the world, for somebody who has never met its family."""
    match prior:
        case MarkovChain(columns=columns) if columns is not None:
            return (
                f"The values of {_and([f'“{name}”' for name in columns])} change together: what"
                " comes next depends on all of them now, and on nothing earlier."
            )
        case MarkovChain():
            return (
                "What comes next depends on the value now, and on nothing earlier: the adversary is"
                " taken to know how likely each value is to follow each other one."
            )
        case IntervalMarkovChain():
            return (
                "What comes next depends on the value now. The adversary may hold any probabilities"
                " within the intervals that the prior states."
            )
        case HigherOrderChain(order=order):
            return f"What comes next depends on the last {order} values, and on nothing earlier."
        case TimeOfDayChain():
            return "What comes next depends on the value now and on the hour of the day."
        case Gaussian():
            return (
                "Numbers vary around their usual values, jointly normal, and are the more alike the"
                " closer they are to each other."
            )
        case BayesianNetwork():
            return (
                "Some columns or entries depend on others, as a network of arrows says; the"
                " adversary is taken to know how."
            )
        case MarkovRandomField():
            return (
                "Neighbours in a network pull each other towards the same value, as people in"
                " contact do who infect each other; the adversary is taken to know how strongly."
            )
        case IndependentEntries():
            return "Entries do not depend on each other; the adversary knows how likely values are."
        case Product():
            return "Every person has a prior of their own, and people do not depend on each other."
        case Explicit():
            return "The probability of every possible table is written down."
        case _:
            return "The adversary is taken to know the distribution that the file of the prior has."


# for readers who have not met these words; `docs/reference/glossary.md` says the same of each word
# that both have, and a test compares them
"""The words of a privacy report, for readers who have not met them.

`docs/reference/glossary.md` says the same of each word that both have; a test compares them.
"""

GLOSSARY = {
    "Row": "one line of a table. That a row exists, whose it is and when it was are public.",
    "Cell": "the value of one protected column in one row. A guarantee is about cells.",
    "Entity": "whom a row belongs to: a person, a household, a device.",
    "Label": "a declared value of a protected column, such as ward.",
    "Key": "a value of a public column, which names a group.",
    "Prior": "what an adversary may believe about the values before anything is released, as a"
    " distribution.",
    "Entry": "one variable of a prior, for example the state at one time. A row of the table holds"
    " the value of one entry.",
    "Secret pair": "two values that one cell may hold, between which an adversary must not be able"
    " to tell. Of numbers: two that are at most a stated distance apart.",
    "Per-entry loss": "the differential privacy loss of a release if one entry changes: an ε, or a"
    " ρ. This is what the ledger adds up.",
    "Pufferfish ε": "by how much a release can change the odds between the two values of a secret"
    " pair, for an adversary who believes the prior: by a factor of at most e^ε. Budgets are in"
    " this unit.",
    "Odds": "how likely one thing is against another. 50 : 50 is no idea at all; 73 : 27 is 73"
    " in 100 for the one and 27 in 100 for the other.",
    "Noise": "random numbers that are added to an answer, or a random choice, so that no single"
    " cell shows in it.",
    "95 % interval": "a range that holds the number without noise with a probability of at least"
    " 0.95.",
    "Alone": "the Pufferfish ε of a release if nothing else were ever released.",
    "On top": "by how much a release raises the Pufferfish ε of all that was released before."
    " Per-entry losses add up, and Pufferfish losses need not: the loss on top is often smaller"
    " than the loss alone, and may be larger.",
    "Charge": "the event in the ledger that pays for a release, written before anything protected"
    " is read.",
    "Ledger": "the file or database that records every charge.",
    "Influence curve": "for each number of entries around a secret one that are counted as exposed,"
    " how much all others can still reveal about it.",
    "Fingerprint": "a SHA-256 hash that identifies a prior, a policy or an event: the smallest"
    " change gives another one.",
}
