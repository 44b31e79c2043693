"""From a file to the plan of a first release: all that a project needs, with safe defaults.

What is decided for somebody is said with the reason and how to change it; what only a person can
know is an open point, and nothing is made while there is one. The rows are read for what the
declaration makes public, for the check that they fit it, and, of the part that the prior is fitted
on, for the fit. Nothing is charged and nothing is released.

The project is made in a folder beside its place and moved there when it is whole.
"""

import math
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any
from uuid import uuid4

from takifugu._core.exact import Number, exactly
from takifugu.declarations import Category, Declaration
from takifugu.declarations.columns import FROM_THE_FITTED_ROWS
from takifugu.declarations.declaration import OPEN, OpenPoint
from takifugu.drafting.draft import Decision, Draft
from takifugu.drafting.draft_guesses import guess_protected, likely_public
from takifugu.drafting.draft_text import draft_text
from takifugu.errors import TakifuguError, UnsoundRequest, pasted
from takifugu.fitting import FitOptions, Fitted
from takifugu.project.policy import InvalidProject, Side
from takifugu.project.project import Project, init_project, open_project
from takifugu.session import QueryOptions
from takifugu.session.release_plan import Plan
from takifugu.tables import DataCheck, check, open_engine
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


FIT_SHARE = Fraction(1, 5)  # of the entities, or of the time, that the prior is fitted on
MIN_SHARED_ENTITIES = 25  # so many are shared out; of fewer the first part of their time is taken
LABEL_ENTITIES = 5  # entities that a label needs to be listed
MIN_STEPS = 1_000  # at least so many between the bounds of a column of numbers
WITHIN_KEY = "secrets_within"  # an open point of its own
VERDICTS = ("useful", "rough", "mostly noise")
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Quickstart:
    """A project that is ready for its first release.

    Attributes:
        project: The project.
        dataset: The name of its dataset.
        choices: What was decided.
        facts: The public facts of the table.
        fitted: The prior, and how it was fitted.
        fit: What to fit and on which rows.
        plan: The plan of a first release. Nothing is charged.
        guarantee: What is protected and what is not.
        query: The query as arguments of a command.
        advice: Why the answer will not be useful, and what would help; empty if it will be.
    """

    project: Project
    dataset: str
    choices: tuple[Choice, ...]
    facts: DataCheck
    fitted: Fitted
    fit: FitOptions
    plan: Plan
    guarantee: str
    query: tuple[str, ...]
    advice: str = ""

    def command(self, verb: str) -> str:
        """The command that plans or releases the query, ready to be pasted."""
        folder = str(self.project.folder)
        return " ".join(map(pasted, ("takifugu", verb, *self.query, "--project", folder)))

    def refit(self) -> str:
        """The command that fits the same prior again, once the declaration was edited."""
        fit, number = self.fit, not isinstance(self.facts.first, datetime)
        said = {
            "--kind": fit.kind if fit.kind != "markov" else None,
            "--share": fit.share,
            "--first-steps" if number else "--first-days": fit.first_days,
            "--columns": ",".join(fit.columns) if fit.columns else None,
            "--profile": fit.profile,
            "--at-least": fit.at_least,
        }
        words = [word for key, value in said.items() if value is not None
                 for word in (key, str(value))]  # fmt: skip
        place = ("--replace", "--project", str(self.project.folder))
        return " ".join(map(pasted, ("takifugu", "prior", "fit", self.dataset, *words, *place)))


def prepared(draft: Draft, options: QuickstartOptions) -> Draft:
    """The draft with what a first release needs; open points that it has of its own are added.

    Labels that nobody has listed are those of the rows that the prior is fitted on. Numbers are to
    be there in every row, as the prior of numbers needs it.
    """
    draft = replace(draft, open=tuple(p for p in draft.open if p.key != WITHIN_KEY))
    fitted_labels = {
        point.key.split(".", 1)[1].removesuffix(".values"): FROM_THE_FITTED_ROWS
        for point in draft.open
        if point.key.startswith("protected.") and point.key.endswith(".values")
    }
    several = len(draft.document["protected"]) > 1 and draft.answers.protected is None
    if several and "order" in draft.document:
        names = list(draft.document["protected"])
        return _asking(
            draft,
            OpenPoint(
                "protected",
                f"what is to be protected: perhaps {' or '.join(map(visible, names))}",
                "one column, or several that are protected together, by commas; a column that is"
                " not named is not read, and nothing is guaranteed about it",
                f"--protected {pasted(names[0])}",
            ),
            fitted_labels,
        )
    if fitted_labels:
        protected_names = draft.answers.protected or tuple(draft.document["protected"])
        draft = draft.answered(values=fitted_labels, protected=protected_names)
    numbers = _numbers(draft)
    if not numbers:
        return draft
    protected = dict(draft.document["protected"])
    for column in numbers:
        protected[column] = _in_steps(protected[column], draft, column)
    draft = replace(draft, document=dict(draft.document) | {"protected": protected})
    if options.within is None:
        (column, *_) = numbers
        point = OpenPoint(
            WITHIN_KEY,
            f"how far apart two values of `{visible(column)}` may be that nobody shall tell apart",
            "a distance in the units of the column: a larger one protects more and costs more",
            "--secrets-within 1",
        )
        return replace(draft, open=(*draft.open, point))
    return draft


def _asking(draft: Draft, point: OpenPoint, found: Mapping[str, str]) -> Draft:
    """The draft with one more open point, and without those that need no answer."""
    points = [p for p in draft.open if p.key.removesuffix(".values") not in
              {f"protected.{column}" for column in found}]  # fmt: skip
    return replace(draft, open=(*points, point))


def _numbers(draft: Draft) -> list[str]:
    return [column for column, keys in draft.document["protected"].items() if "bounds" in keys]


def _in_steps(keys: Mapping[str, Any], draft: Draft, column: str) -> dict[str, Any]:
    """A column of numbers of which none is missing, in steps that are fine enough."""
    with_step = dict(keys) | {"missing": "refuse"}
    if keys["bounds"] == OPEN or "step" in keys or draft.schema.column(column).kind == "whole":
        return with_step
    low, high = (exactly(str(bound), "bounds") for bound in keys["bounds"])
    digits = math.floor(math.log10(float(high - low) / MIN_STEPS))
    step = min(Decimal(1).scaleb(digits), Decimal(1))
    while any((end / Fraction(step)).denominator != 1 for end in (low, high)):
        step = step.scaleb(-1)
    return with_step | {"step": step}


def quickstart(
    draft: Draft,
    folder: Path,
    name: str,
    *,
    options: QuickstartOptions,
    progress: Progress | None = None,
) -> Quickstart:
    """Make a project in a new folder, up to the plan of a first release.

    Args:
        draft: What the table is, without open points: see `prepared`.
        folder: The folder, which must not exist.
        name: What to call the dataset.
        options: What somebody has said.
        progress: Called with what is being done.
    """
    say = progress or _silent
    refuse_existing(folder)
    declaration = draft.declaration()
    _refuse_mixed(declaration)
    part = folder.parent / f".takifugu-{os.getpid()}-{uuid4().hex[:8]}.quickstart"
    try:
        part.mkdir()
        (part / f"{name}.toml").write_text(draft_text(draft, part.absolute()), encoding="utf-8")
        say("checking the rows")
        project = init_project(part)
        with open_engine(part / f"{name}.toml") as engine:
            facts = check(engine)
            declaration = engine.declaration
            project = project.add_dataset(
                name,
                part / f"{name}.toml",
                within=options.within,
                pairs=options.pairs,
                engine=engine,
            )
        fit, chosen = _fit_options(declaration, facts, options)
        if options.separate_from is not None:
            project.count_separately(name, options.separate_from)
        say("fitting the prior")
        project, _, _, fitted = project.fit(name, fit, tested=True)
        project.set_budget(name, options.budget)
        say("planning")
        query, plan, guarantee = _first_plan(project, name, declaration, options, progress)
        advice = "" if _worth(plan) == 0 else _advice(project, name, fitted, progress)
        part.rename(folder)
    except BaseException:
        with suppress(OSError):
            shutil.rmtree(part)
        raise
    choices = (*draft_choices(draft), *label_choices(declaration, fitted, options), chosen)
    choices += (
        *secret_choices(declaration, options),
        Choice(
            "budget",
            f"ε = {options.budget}",
            "of everything that is ever released about these rows",
            "--budget 2, or later `takifugu budget set`",
        ),
    )
    return Quickstart(
        open_project(folder),
        name,
        choices,
        facts,
        fitted,
        fit,
        plan,
        guarantee,
        (name, *query),
        advice,
    )


def refuse_existing(folder: Path) -> None:
    """Raise unless the folder is new, and beside others that exist."""
    if "\0" in str(folder) or not folder.name or not folder.parent.is_dir():
        raise InvalidProject(
            str(folder),
            given="cannot be made",
            needed="be a new folder in one that exists",
            reason="folder",
        )
    if os.path.lexists(folder):
        raise InvalidProject(
            str(folder),
            given="exists",
            needed="be a new folder: --folder names another; a project that is there goes on with"
            " `takifugu plan`",
            reason="exists",
        )


def _silent(_: str) -> None:
    return


def _refuse_mixed(declaration: Declaration) -> None:
    """Raise for columns that no prior of a quickstart is over."""
    labels = [isinstance(column, Category) for column in declaration.protected]
    if all(labels) or len(labels) == 1:
        return
    raise InvalidProject(
        "protected",
        given="names numbers beside other columns",
        needed="be columns of labels, or one column of numbers; for more of them write the"
        " declaration with `takifugu dataset new` and the prior yourself",
        reason="mixed",
    )


def _fit_options(
    declaration: Declaration, facts: DataCheck, options: QuickstartOptions
) -> tuple[FitOptions, Choice]:
    """What to fit and on which rows, and why."""
    rows: dict[str, Any]
    said = options.share is not None or options.first_days is not None
    survey = declaration.order.absent
    first = "days" if declaration.order.kind != "number" else "steps"
    change = "" if said else "--share 1/4" + ("" if survey else f" or --first-{first} 30")
    if said:
        rows = {"share": options.share, "first_days": options.first_days}
        why = "as given"
    elif survey or facts.entities >= MIN_SHARED_ENTITIES:
        rows = {"share": FIT_SHARE}
        why = f"of {facts.entities:,} entities a fifth is enough; releases use the others only"
    else:
        rows = {"first_days": _fifth(facts)}
        why = (
            f"{facts.entities:,} entities are too few to set some apart, so the first fifth of"
            " their time is; releases use the rest only"
        )
    names = tuple(column.column for column in declaration.protected)
    kind = "a Markov chain: a value depends on the one before it"
    if not isinstance(declaration.protected[0], Category):
        rows |= {"kind": "gaussian"}
        kind = "a Gaussian process: how numbers close in time vary together"
        if declaration.public:
            rows |= {"profile": declaration.public[0].column}
            kind += f", beside a mean for each {visible(declaration.public[0].column)}"
    elif survey or facts.longest <= 1:
        rows |= {"kind": "network"}
        kind = "a network: how the columns of a row depend on each other"
    elif len(names) > 1:
        rows |= {"columns": names}
        kind = "a Markov chain of the columns together: a row depends on the one before it"
    if declaration.unfitted:
        rows["at_least"] = _at_least(facts, options)
    where = (
        f"about {rows['share']} of the entities"
        if rows.get("share") is not None
        else f"the first {rows['first_days']} "
        + ("days" if isinstance(facts.first, datetime) else f"steps of {declaration.order.column}")
    )
    return FitOptions(**rows), Choice("prior", f"{kind}, fitted on {where}", why, change)


def _at_least(facts: DataCheck, options: QuickstartOptions) -> int:
    return min(LABEL_ENTITIES, facts.entities) if options.at_least is None else options.at_least


def _fifth(facts: DataCheck) -> int:
    """The first fifth of the days, or of the steps, that the table spans."""
    if isinstance(facts.first, datetime) and isinstance(facts.last, datetime):
        return max(1, (facts.last.date() - facts.first.date()).days // FIT_SHARE.denominator)
    first, last = facts.first, facts.last
    if isinstance(first, float) and isinstance(last, float):
        return max(1, int(last - first + 1) // FIT_SHARE.denominator)
    return 1


def _first_plan(
    project: Project,
    name: str,
    declaration: Declaration,
    options: QuickstartOptions,
    progress: Progress | None,
) -> tuple[tuple[str, ...], Plan, str]:
    """The first query that is worth its price: half of the budget, or all of it."""
    half = str(exactly(options.budget, "budget") / 2)
    wishes: list[dict[str, Any]] = []
    column = declaration.protected[0].column
    for epsilon in (_decimal(half), options.budget):
        kind = "histogram" if isinstance(declaration.protected[0], Category) else "mean"
        wish: dict[str, Any] = {"kind": kind, "epsilon": epsilon}
        if len(declaration.protected) > 1:
            wish["column"] = column
        if epsilon != options.budget:
            wishes += [wish | {"by": (public.column,)} for public in declaration.public[:1]]
        wishes.append(wish)
    with project.session(name, progress=progress) as session:
        best: tuple[dict[str, Any], Plan] | None = None
        refused: UnsoundRequest | None = None
        for wish in wishes:
            try:
                plan = session.plan(QueryOptions(**wish))
            except UnsoundRequest as error:  # the prior leaves nothing of so small an ε
                refused = error
                continue
            if best is None or _worth(plan) < _worth(best[1]):
                best = wish, plan
            if plan.usefulness.verdict == "useful":
                break
        if best is None:
            raise refused or UnsoundRequest("nothing was planned", field="query")
        wish, plan = best
        return _arguments(wish), plan, session.guarantee()


def _advice(project: Project, name: str, fitted: Fitted, progress: Progress | None) -> str:
    """What makes the prior expensive, and what each remedy would gain; empty if that is unknown."""
    with suppress(TakifuguError):
        return project.advice(name, fitted, progress=progress).words
    return ""


def _worth(plan: Plan) -> int:
    return VERDICTS.index(plan.usefulness.verdict)


def _decimal(number: str) -> str:
    """A fraction as the commands take it, rounded down where it must be."""
    exact = exactly(number, "epsilon")
    decimal = Decimal(exact.numerator) / Decimal(exact.denominator)
    return str(exact) if Fraction(decimal) != exact else f"{decimal.normalize():f}"


def _arguments(wish: Mapping[str, Any]) -> tuple[str, ...]:
    column = ("--column", wish["column"]) if "column" in wish else ()
    by = ("--by", *wish["by"]) if "by" in wish else ()
    return (wish["kind"], *column, *by, "--epsilon", str(wish["epsilon"]))
