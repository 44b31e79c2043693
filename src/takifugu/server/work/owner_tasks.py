"""Tasks of owners and auditors that a worker does: what opens tables, fits, verifies or renders."""

import base64
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from takifugu._core.atomic import write_whole
from takifugu._core.keys import state_folder
from takifugu.errors import InvalidFile, Malformed, TakifuguError
from takifugu.fitting.fit_options import FitRequest, refuse_other_unit
from takifugu.ledger.event_documents import verification_document
from takifugu.project import Project
from takifugu.project.owner_changes import fit_facts
from takifugu.project.policy import InvalidProject
from takifugu.reports.html_page import Page
from takifugu.reports.report_signature import SUFFIX
from takifugu.server.api.problems import Problem, problem_of
from takifugu.server.work import owner_decisions
from takifugu.server.work.dataset_tasks import planned_query, session_of
from takifugu.server.work.tasks import Task, task
from takifugu.server.work.worker_host import WorkerHost
from takifugu.session.plan_documents import plan_to_document

Progress = Callable[[str], None]
KINDS = {"report.html": "text/html; charset=utf-8", "report.pdf": "application/pdf"}
SIGNATURE = "text/plain; charset=utf-8"
MAX_KEPT_PDFS = 32
_STYLE = re.compile(r"<style[^>]*>(.*?)</style>", re.DOTALL)
TAKEN = ("taken", "exists", "same-rows", "changed-meanwhile")  # reasons: true at another time


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
    return owner_decisions.policy_document(_project(host, asked), _dataset(asked))


@task("policy-change")
def policy_change(host: WorkerHost, asked: Task) -> dict[str, Any]:
    """What waits for the owner to accept it."""
    host.say("translating what was spent")
    return owner_decisions.review_change(_project(host, asked), _dataset(asked))


@task("accept-change")
def accept_change(host: WorkerHost, asked: Task) -> dict[str, Any]:
    """Accept what was shown: options ``accept``, ``shown`` and ``unchanged``."""
    host.say("translating what was spent")
    return owner_decisions.accept_change(
        _project(host, asked), _dataset(asked), **dict(asked.options)
    )


@task("add-dataset")
def add_dataset(host: WorkerHost, asked: Task) -> dict[str, Any]:
    """Enter a dataset: option ``given``, with its ``name``, ``declaration`` and the rest."""
    host.say("checking the data")
    given = asked.options["given"]
    with _as_given(asked):
        return owner_decisions.add_dataset(_project(host, asked), given["name"], given)


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
