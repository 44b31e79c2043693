"""Fits of priors that owners ask for over HTTP: the options of ``takifugu prior fit`` as JSON."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from takifugu.engines import FitOptions
from takifugu.errors import TakifuguError
from takifugu.priors.ranges import exact_cuts
from takifugu.project import Project
from takifugu.project.policy import InvalidProject, share_of
from takifugu.project.policy_facts import fit_facts

SPLITS = ("first_days", "first_steps", "share", "all_rows")
HOW = (
    "replace",
    "add",
    "goodness",
    "advice",
    "publish_rows",
)  # what becomes of the fit, not what is fitted
Progress = Callable[[str], None]


def fit_options(document: Mapping[str, Any]) -> FitOptions:
    """The options of a fit; exactly one of them says which rows it is made on."""
    known = {option.name for option in fields(FitOptions)} | {*SPLITS, *HOW}
    for name in document:
        if name not in known:
            raise InvalidProject(
                name, given="is unknown", needed="be an option of a fit", reason="unknown"
            )
    given = [name for name in SPLITS if document.get(name) not in (None, False)]
    if len(given) != 1:
        raise InvalidProject(
            "first_days",
            given=f"comes with {', '.join(given[1:])}" if given else "is missing, with the others",
            needed=f"name the rows to fit on; give one of {', '.join(SPLITS)}",
            reason="split",
        )
    options = {
        name: value
        for name, value in document.items()
        if value is not None and name not in (*SPLITS, *HOW)
    }
    if given[0] in ("first_days", "first_steps"):
        options["first_days"] = document[given[0]]
    elif given[0] == "share":
        options["share"] = share_of(str(document["share"]), "share")
    if "columns" in options:
        options["columns"] = tuple(options["columns"])
    if "cuts" in options:
        options["cuts"] = exact_cuts([str(cut) for cut in options["cuts"]])
    return FitOptions(**options)


def refuse_other_order(project: Project, name: str, document: Mapping[str, Any]) -> None:
    """Raise if days are counted where the order is a number, or steps where it is a time."""
    order = project.load(name).declaration.order
    if order.absent:
        return  # refused by the fit, which says that there is no order
    numbers = order.kind == "number"
    wrong = "first_days" if numbers else "first_steps"
    if document.get(wrong) is not None:
        right = "first_steps" if numbers else "first_days"
        raise InvalidProject(
            wrong,
            given=f"is given, and the order, `{order.column}`, is a"
            f" {'number' if numbers else 'time'}",
            needed=f"be {right} instead",
            reason=f"order-is-a-{'number' if numbers else 'time'}",
        )


def fit_prior_of(
    project: Project, name: str, document: Mapping[str, Any], progress: Progress | None = None
) -> dict[str, Any]:
    """Fit a prior to a dataset and enter it; what it rests on, whether it fits and suits.

    Whether it suits is computed after it was entered: if that fails, the fit stands, and
    ``advice_failed`` says why.
    """
    say = progress or (lambda _: None)
    options = fit_options(document)
    refuse_other_order(project, name, document)
    say(f"counting the rows of {name}")
    made, file, prior, found = project.fit(
        name,
        options,
        replace=bool(document.get("replace")),
        keep=bool(document.get("add")),
        tested=document.get("goodness") is not False,
        publish_rows=document.get("publish_rows"),
    )
    advice, failed = None, None
    if document.get("advice") is not False:
        say("what the prior allows")
        try:
            advice = made.advice(name, found, progress=progress).document()
        except TakifuguError as error:
            failed = str(error)
    facts = {"kind": prior.kind, "fingerprint": prior.fingerprint} | prior.facts()
    return {
        "file": file.name,
        **facts,
        **{key: value for key, value in fit_facts(made, name, found).items() if key != "project"},
        "advice": advice,
        "advice_failed": failed,
        "needs_acceptance": made.needs_acceptance(name),
        "has_budget": made.budget(name) is not None,
    }
