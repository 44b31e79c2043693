"""What owners decide over HTTP: budgets, datasets, priors and declarations that changed.

Plain functions of a project whose `actor` is the owner: what they write in the ledger names them.
"""

import hashlib
import stat
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from takifugu._core.exact import exactly
from takifugu.errors import LedgerConflict
from takifugu.ledger.events.decisions import decimal_up
from takifugu.project import Project
from takifugu.project.owner_changes import (
    CellChange,
    PolicyChange,
    change_facts,
    change_lines,
    declaration_facts,
    policy_facts,
)
from takifugu.project.policy import InvalidProject
from takifugu.visible import visible


def inside(folder: Path, given: str, field: str, *, suffixes: tuple[str, ...]) -> Path:
    """The file that ``given`` names from ``folder``; it lies in it, links resolved.

    Args:
        folder: The folder of the project.
        given: A relative path with ``/``.
        field: What it was given as, for the error.
        suffixes: How its name may end.
    """
    refusal = InvalidProject(
        field,
        given=f"is {visible(given):.120}",
        needed="be a file inside the folder of the project, by its path from there, whose name"
        f" ends in {' or '.join(suffixes)}",
        reason="outside",
    )
    path = PurePosixPath(given)
    odd = not given or "\\" in given or any(not char.isprintable() for char in given)
    if odd or path.is_absolute() or ".." in path.parts or path.suffix.lower() not in suffixes:
        raise refusal
    try:
        home = folder.resolve(strict=True)
        file = (home / path).resolve(strict=True)
        regular = stat.S_ISREG(file.stat().st_mode)
    except (OSError, RuntimeError, ValueError):  # missing, a loop of links, a name too long
        raise refusal from None
    if not regular or not file.is_relative_to(home) or file.suffix.lower() not in suffixes:
        raise refusal
    return file


def set_budget(
    project: Project, dataset: str, epsilon: str, *, delta: str = "0", analyst: str | None = None
) -> dict[str, Any]:
    """Set the budget of a dataset, or of one analyst on it: an event of the ledger."""
    new, beside = exactly(epsilon, "epsilon"), exactly(delta, "delta")
    before = project.budget(dataset, analyst)
    event = project.set_budget(dataset, epsilon, analyst=analyst, delta=delta)
    return {
        "dataset": dataset,
        "analyst": analyst,
        "epsilon": str(new),
        "delta": str(beside),
        "before": None if before is None else str(before),
        "event": event.seq,
        "actor": event.body["actor"],
    }


def policy_document(project: Project, dataset: str) -> dict[str, Any]:
    """The policy of a dataset with the files that it names: for its owner."""
    policy = project.dataset(dataset)
    facts = declaration_facts(project.load(dataset).declaration)
    document = facts | {
        "dataset": dataset,
        "project": str(project.file),
        "declaration": policy.declaration,
        "release_fitted_rows": policy.release_fitted_rows,
        "priors": [],
    }
    if not policy.priors:
        return document | {"needs_acceptance": False}
    return (
        document
        | policy_facts(project, dataset)
        | {"needs_acceptance": project.needs_acceptance(dataset)}
    )


def add_dataset(project: Project, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Enter a dataset whose declaration, and priors if any, lie in the folder of the project.

    What does not fit its data is refused, and nothing that is there is replaced.
    """
    project.refuse_taken_name(name)
    folder = project.folder
    declaration = inside(folder, given["declaration"], "declaration", suffixes=(".toml",))
    priors = [
        inside(folder, prior, "priors", suffixes=(".json", ".bif"))
        for prior in given.get("priors") or ()
    ]
    from takifugu.tables import check, open_engine

    with open_engine(declaration) as engine:
        facts = check(engine)
        project.add_dataset(
            name,
            declaration,
            about=given.get("about"),
            priors=priors,
            over=given.get("over"),
            household=given.get("household"),
            member=given.get("member"),
            pairs=_pairs(given.get("pairs")),
            entries=given.get("entries"),
            within=given.get("secrets_within"),
            uncertainty=given.get("uncertainty") or 0.0,
            analysts=tuple(given.get("analysts") or ()),
            engine=engine,
        )
    return {
        "dataset": name,
        "rows": facts.rows,
        "entities": facts.entities,
        "longest": facts.longest,
        "first": _place(facts.first),
        "last": _place(facts.last),
        "keys": dict(facts.keys),
    }


def _place(bound: object) -> Any:
    return bound if bound is None or isinstance(bound, str | int | float) else str(bound)


def _pairs(pairs: Any) -> Any:
    """Secret pairs, or these by column: a side is a value or several."""
    if isinstance(pairs, Mapping):
        return {column: _pairs(changed) for column, changed in pairs.items()}
    return None if pairs is None else tuple((_side(left), _side(right)) for left, right in pairs)


def _side(side: Any) -> tuple[Any, ...]:
    return tuple(side) if isinstance(side, list | tuple) else (side,)


# --- a policy or a declaration that changed ---


def review_change(project: Project, dataset: str) -> dict[str, Any]:
    """What waits for the owner: another policy, or cells that are not what they were.

    Keys: ``policy`` and ``declaration``, each with ``needed``, what is spent before and after, the
    same in words, and ``shown``: what an acceptance must name, so that what was read is what is
    accepted.
    """
    policy, _ = _policy_change(project, dataset)
    declaration, _ = _declaration_change(project, dataset)
    return {"dataset": dataset, "policy": policy, "declaration": declaration}


def _policy_change(project: Project, dataset: str) -> tuple[dict[str, Any], PolicyChange]:
    change = project.change(dataset)
    facts = change_facts(dataset, project.dataset(dataset).uncertainty, change)
    names = ("prior", "secrets", "uncertainty", "budget", "delta")
    amounts = ("spent_before", "spent_after", "analysts")
    shown = {
        "needed": change.needed,
        **{name: facts[name] for name in (*names, *amounts)},
        "words": [line.strip() for line in change_lines(dataset, change, facts)],
    }
    return shown | {"shown": _mark(dataset, shown, change.rules, str(change.seen))}, change


def _declaration_change(project: Project, dataset: str) -> tuple[dict[str, Any], CellChange]:
    cells = project.pending(dataset)
    shown = {
        "needed": cells.charged and (bool(cells.changes) or not cells.recorded),
        "changes": list(cells.changes),
        "spent_before": decimal_up(cells.before),
        "spent_after": decimal_up(cells.after),
    }
    return shown | {"shown": _mark(dataset, shown, cells.cells.text)}, cells


def _mark(*shown: Any) -> str:
    return hashlib.sha256(repr(shown).encode()).hexdigest()


def accept_change(
    project: Project,
    dataset: str,
    accept: Literal["policy", "declaration"],
    shown: str,
    *,
    unchanged: bool = False,
) -> dict[str, Any]:
    """Accept what `review_change` showed, if it still is that: an event of the ledger.

    Args:
        project: The project, acting as its owner.
        dataset: Whose change.
        accept: "policy" for priors, secrets and rules; "declaration" for cells.
        shown: The mark of what was shown.
        unchanged: For a declaration: the owner states that it is the one used before.
    """
    if accept == "policy":
        if unchanged:
            raise InvalidProject(
                "unchanged",
                given="comes with a policy",
                needed="go with a declaration only",
                reason="superfluous",
            )
        document, change = _policy_change(project, dataset)
        _refuse_unseen(dataset, accept, document, shown)
        event = project.accept_prior(dataset, change)
    else:
        document, cells = _declaration_change(project, dataset)
        _refuse_unseen(dataset, accept, document, shown)
        event = project.accept(cells, unchanged=unchanged)
    return {
        "dataset": dataset,
        "accepted": accept,
        "event": event.seq,
        "actor": event.body["actor"],
        "spent_before": document["spent_before"],
        "spent_after": document["spent_after"],
    }


def _refuse_unseen(dataset: str, accept: str, document: Mapping[str, Any], shown: str) -> None:
    if document["shown"] != shown:
        raise LedgerConflict(
            f"the {accept} of dataset {dataset!r} is not what was shown: something changed"
            " meanwhile. Nothing was accepted; look again",
            reason="review",
            dataset=dataset,
        )
    if not document["needed"]:
        raise LedgerConflict(
            f"the {accept} of dataset {dataset!r} is in force; there is nothing to accept",
            reason="nothing",
            dataset=dataset,
        )
