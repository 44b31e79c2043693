"""What a quickstart decides, why, and how to decide otherwise."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from takifugu._core.exact import Number
from takifugu.declarations import Category, Declaration
from takifugu.declarations.columns import FROM_THE_FITTED_ROWS
from takifugu.declarations.open_points import OPEN
from takifugu.drafting.draft import Decision, Draft
from takifugu.drafting.draft_guesses import guess_protected, likely_public
from takifugu.errors import pasted
from takifugu.fitting import Fitted
from takifugu.project.policy import Side
from takifugu.visible import visible

BUDGET = "1"  # the Pufferfish ε of the dataset, for ever


@dataclass(frozen=True)
class Choice:
    """Something that was decided.

    Attributes:
        what: What it is about: "person", "prior".
        value: What was decided.
        reason: Why.
        change: How to decide otherwise; empty if somebody has said so.
    """

    what: str
    value: str
    reason: str
    change: str = ""

    def describe(self) -> dict[str, str]:
        """As JSON."""
        return {
            "what": self.what,
            "value": self.value,
            "reason": self.reason,
            "change": self.change,
        }


@dataclass(frozen=True)
class QuickstartOptions:
    """What somebody has said about the project; None where a default is taken.

    Attributes:
        budget: The Pufferfish ε of the dataset.
        first_days: Fit on so many days.
        share: Fit on such a share of the entities.
        at_least: How many entities a label needs that is found on the fitted rows.
        within: Of numbers: which of two values at most this far apart is secret.
        pairs: The secret pairs, by column if there are several; None for all.
        separate_from: Another ledger of this user that has charged the same rows, as the refusal
            names it: the owner means to have a second budget for them.
    """

    budget: str = BUDGET
    first_days: int | None = None
    share: Fraction | None = None
    at_least: int | None = None
    within: Number | None = None
    pairs: Sequence[tuple[Side, Side]] | Mapping[str, Sequence[tuple[Side, Side]]] | None = None
    separate_from: str | None = None


def draft_choices(draft: Draft) -> tuple[Choice, ...]:
    """What the draft has decided, part by part."""
    words = {"entity": "person", "source": "file"}
    taken = [d.column for d in draft.decisions if d.part != "protected"]
    likely = guess_protected(draft.schema.columns, taken)
    decisions = [
        Decision("protected", d.column, likely[d.column], change="--protected COLUMN")
        if d.part == "protected" and _takes_fitted_labels(draft, d.column) and d.column in likely
        else d
        for d in draft.decisions
    ]
    choices = [
        Choice(
            words.get(decision.part, decision.part),
            visible(decision.column) or "-",
            decision.reason,
            decision.change if decision.guessed else "",
        )
        for decision in decisions
    ]
    if draft.left_out:
        names = ", ".join(visible(column.name) for column in draft.left_out)
        open_ = draft.document["entity"]["column"] == OPEN  # it may be among them
        public = () if open_ else likely_public(draft.left_out)
        choices.append(
            Choice(
                "left out",
                names,
                "not read; nothing can be asked or is guaranteed about them",
                f"--public {pasted(public[0])}, if everyone may know it, to count by it"
                if public
                else "",
            )
        )
    return tuple(choices)


def _takes_fitted_labels(draft: Draft, column: str) -> bool:
    """Whether the labels of a column are those of the rows that the prior is fitted on."""
    return bool(draft.document["protected"][column].get("values") == FROM_THE_FITTED_ROWS)


def label_choices(
    declaration: Declaration, fitted: Fitted, options: QuickstartOptions
) -> tuple[Choice, ...]:
    """Where the labels come from, if they were found."""
    label_facts = {one["column"]: one for one in fitted.estimate.facts.get("found_labels", ())}
    return tuple(
        Choice(
            "labels",
            f"{one['labels']:,} of {visible(column)}, everything else is {one['other']!r}",
            "found on the rows that the prior is fitted on, and published with it: each of at"
            f" least {one['at_least']} entities ({one['left_out']:,} rarer ones left out)",
            f"--labels {pasted(column)}=home,work (or a codebook.csv)"
            + ("" if options.at_least is not None else ", or --at-least N"),
        )
        for column, one in label_facts.items()
        if column in declaration.unfitted
    )


def secret_choices(declaration: Declaration, options: QuickstartOptions) -> tuple[Choice, ...]:
    """What is kept secret of a cell."""
    if options.pairs is not None:
        return (Choice("secrets", "the named pairs", "which of the two values a cell holds"),)
    if options.within is not None:
        value = f"two values at most {options.within} apart"
        return (Choice("secrets", value, "which of them a cell holds", "--secrets-within"),)
    why = "which of any two values a cell holds"
    if any(isinstance(c, Category) and c.outside == "other" for c in declaration.protected):
        why += ", whether it is a listed one too"
    return (Choice("secrets", "all pairs", why, "--pairs hospital/home,ward/home"),)
