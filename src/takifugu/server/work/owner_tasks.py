"""Tasks of owners and auditors that a worker does: what opens tables, fits, verifies or renders.

The functions of a project below act as its `actor`, the owner: what they write in the ledger names
them.
"""

import base64
import hashlib
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from takifugu._core.atomic import write_whole
from takifugu._core.keys import state_folder
from takifugu.errors import InvalidFile, LedgerConflict, Malformed, TakifuguError
from takifugu.fitting.fit_options import FitRequest, refuse_other_unit
from takifugu.ledger.event_documents import verification_document
from takifugu.ledger.events.decisions import decimal_up
from takifugu.project import Project
from takifugu.project.owner_changes import (
    CellChange,
    PolicyChange,
    change_facts,
    change_lines,
    declaration_facts,
    fit_facts,
    policy_facts,
)
from takifugu.project.policy import InvalidProject
from takifugu.reports.html_page import Page
from takifugu.reports.report_signature import SUFFIX
from takifugu.server.api.problems import Problem, problem_of
from takifugu.server.work.dataset_tasks import planned_query, session_of
from takifugu.server.work.tasks import Task, task
from takifugu.server.work.worker_host import WorkerHost
from takifugu.session.plan_documents import plan_to_document
from takifugu.visible import visible

Progress = Callable[[str], None]
KINDS = {"report.html": "text/html; charset=utf-8", "report.pdf": "application/pdf"}
SIGNATURE = "text/plain; charset=utf-8"
MAX_KEPT_PDFS = 32
_STYLE = re.compile(r"<style[^>]*>(.*?)</style>", re.DOTALL)
TAKEN = ("taken", "exists", "same-rows", "changed-meanwhile")  # reasons: true at another time


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


# --- priors and reports ---


def fit_prior_of(
    project: Project, name: str, document: Mapping[str, Any], progress: Progress | None = None
) -> dict[str, Any]:
    """Fit a prior to a dataset and enter it; what it rests on, whether it fits and suits.

    Whether it suits is computed after it was entered: if that fails, the fit stands, and
    ``advice_failed`` says why.
    """
    say = progress or (lambda _: None)
    asked = FitRequest.from_document(document, error=InvalidProject)
    order = project.load(name).declaration.order
    if not order.absent:
        refuse_other_unit(document, (order.column, order.kind), error=InvalidProject)
    say(f"counting the rows of {name}")
    changed, file, prior, fit = project.fit(
        name,
        asked.fit,
        replace=asked.replace,
        keep=asked.add,
        tested=asked.goodness,
        publish_rows=asked.publish_rows,
    )
    advice, failed = None, None
    if asked.advice:
        say("what the prior allows")
        try:
            advice = changed.advice(name, fit, progress=progress).document()
        except TakifuguError as error:
            failed = str(error)
    facts = {"kind": prior.kind, "fingerprint": prior.fingerprint} | prior.facts()
    return {
        "file": file.name,
        **facts,
        **{key: value for key, value in fit_facts(changed, name, fit).items() if key != "project"},
        "advice": advice,
        "advice_failed": failed,
        "needs_acceptance": changed.needs_acceptance(name),
        "has_budget": changed.budget(name) is not None,
    }


def report_file(
    project: Project,
    name: str,
    datasets: Sequence[str],
    *,
    signing_key: str | None = None,
    signer: str = "",
    progress: Progress | None = None,
) -> dict[str, Any]:
    """A report, or its signature.

    Args:
        project: The project that it is about.
        name: "report.html" or "report.pdf"; with ".sig" at its end, the signature of that file.
        datasets: What it is about; empty for everything.
        signing_key: The file of the Ed25519 key, for a signature.
        signer: Who asks for a signature; the key is the server's.
        progress: Called with what is being done.

    Returns:
        ``content``; ``type``; ``policy`` for browsers, of a page; ``head`` (seq and hash) that the
        report states; ``sound``; and ``sha256`` of the report itself.
    """
    from takifugu.project.project_report import project_report
    from takifugu.reports.report_page import report_page

    file = name.removesuffix(SUFFIX)
    if file == "report.pdf":
        from takifugu.reports.pdf_file import check_pdf

        check_pdf()  # before the work
    report = project_report(project, tuple(datasets), progress=progress)
    page = report_page(report)
    if file == "report.pdf":
        if progress is not None:
            progress("making the PDF")
        content = _kept_pdf(page)
    else:
        content = page.html().encode()
    facts = {
        "head": {"seq": report.ledger.seq, "hash": report.ledger.hash},
        "sound": report.ledger.sound,
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    if file != name:
        from takifugu.reports.report_signature import read_private_key, sign_report

        key = read_private_key(Path(signing_key or "").read_bytes())
        signed = sign_report(content, key, signer=f"the server, as {signer} asked")
        return {"content": signed, "type": SIGNATURE, "policy": None} | facts
    policy = page_policy(content) if file == "report.html" else None
    return {"content": content, "type": KINDS[file], "policy": policy} | facts


def _kept_pdf(page: Page) -> bytes:
    """The PDF of a page, made once, so that what was downloaded is what is signed.

    Fonts or WeasyPrint may be renewed in between, and would give other bytes. A page states the
    head of the ledger, so that another head has another PDF. Where nothing can be kept, the PDF is
    made again.
    """
    from takifugu.reports.pdf_file import pdf_of

    text = page.html(paper=True) + "".join(page.marks.values())
    path = state_folder() / "reports" / f"{hashlib.sha256(text.encode()).hexdigest()}.pdf"
    with suppress(OSError):
        return path.read_bytes()
    content = pdf_of(page)
    with suppress(OSError, InvalidFile):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(path, content, private=True, refuse_existing=True)
        newest_last = sorted(path.parent.glob("*.pdf"), key=lambda file: file.stat().st_mtime)
        for old in newest_last[:-MAX_KEPT_PDFS]:
            old.unlink(missing_ok=True)
    with suppress(OSError):  # of two that made it at once, the first was kept
        return path.read_bytes()
    return content


def page_policy(content: bytes) -> str:
    """A content security policy under which a page of ours shows as it does from a file.

    Nothing is fetched, nothing runs, nothing is sent; the only style sheets are those of the page,
    by their hashes. Attributes of elements may set widths, as figures and tables do.
    """
    sheets = dict.fromkeys(_STYLE.findall(content.decode()))
    marks = " ".join(f"'sha256-{_hash(sheet)}'" for sheet in sheets) or "'none'"
    return (
        f"default-src 'none'; style-src 'none'; style-src-elem {marks};"
        " style-src-attr 'unsafe-inline'; base-uri 'none'; form-action 'none';"
        " frame-ancestors 'none'; sandbox"
    )


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _project(host: WorkerHost, asked: Task) -> Project:
    """The project, in which the caller acts: events of the ledger name them."""
    return host.project().acting(asked.actor.name)


def _dataset(asked: Task) -> str:
    if asked.dataset is None:
        raise ValueError(f"task {asked.name!r} is about a dataset")
    return asked.dataset


@contextmanager
def _as_given(asked: Task) -> Iterator[None]:
    """What an owner gave and has no meaning is theirs to mend: 422, or 409 where it is taken."""
    try:
        yield
    except Malformed as error:
        status = 409 if error.reason in TAKEN else 422
        problem = problem_of(error, asked.actor.role)
        raise Problem.from_document(problem | {"status": status}) from error


@task("policy")
def policy(host: WorkerHost, asked: Task) -> dict[str, Any]:
    """The policy of a dataset with its files."""
    return policy_document(_project(host, asked), _dataset(asked))


@task("policy-change")
def policy_change(host: WorkerHost, asked: Task) -> dict[str, Any]:
    """What waits for the owner to accept it."""
    host.say("translating what was spent")
    return review_change(_project(host, asked), _dataset(asked))


@task("accept-change")
def _accept_change(host: WorkerHost, asked: Task) -> dict[str, Any]:
    """Accept what was shown: options ``accept``, ``shown`` and ``unchanged``."""
    host.say("translating what was spent")
    return accept_change(_project(host, asked), _dataset(asked), **dict(asked.options))


@task("add-dataset")
def _add_dataset(host: WorkerHost, asked: Task) -> dict[str, Any]:
    """Enter a dataset: option ``given``, with its ``name``, ``declaration`` and the rest."""
    host.say("checking the data")
    given = asked.options["given"]
    with _as_given(asked):
        return add_dataset(_project(host, asked), given["name"], given)


@task("fit-prior")
def fit_prior(host: WorkerHost, asked: Task) -> dict[str, Any]:
    """Fit a prior and enter it; the options are those of the fit."""
    with _as_given(asked):
        return fit_prior_of(_project(host, asked), _dataset(asked), asked.options, host.say)


@task("verify-ledger")
def verify_ledger(host: WorkerHost, asked: Task) -> dict[str, Any]:
    """Verify the ledger from its beginning; an older copy is inspected, too."""
    host.say("verifying every event and every total")
    with host.project().ledger(inspect=True) as ledger:
        return verification_document(ledger, places=asked.actor.role == "owner")


@task("report")
def report(host: WorkerHost, asked: Task) -> dict[str, Any]:
    """A report: options ``file``, ``datasets`` and, for a signature, ``signing_key``."""
    options = asked.options
    return report_file(
        host.project(),
        options["file"],
        options["datasets"],
        signing_key=options.get("signing_key"),
        signer=asked.actor.name,
        progress=host.say,
    )


@task("review-request")
def review_request(host: WorkerHost, asked: Task) -> dict[str, Any]:
    """A request for approval as it is now: options ``query``, ``analyst`` and ``question``.

    The plan is the one that the analyst would get; ``same`` says whether it still is the query
    that was asked for.
    """
    session = session_of(host, asked)
    planned = planned_query(host, session, asked)
    return {
        "plan": plan_to_document(planned),
        "same": planned.charge.body()["question"] == asked.options["question"],
        "guarantee": session.guarantee(),
    }
