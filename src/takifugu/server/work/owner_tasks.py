"""Tasks of owners and auditors that a worker does: what opens tables, fits, verifies or renders."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from takifugu.errors import Malformed
from takifugu.ledger.ledger_documents import verification_document
from takifugu.project import Project
from takifugu.server.api.problems import Problem, problem_of
from takifugu.server.work import owner_decisions
from takifugu.server.work.prior_fits import fit_prior_of
from takifugu.server.work.report_files import report_file
from takifugu.server.work.tasks import Task, task
from takifugu.server.work.worker_host import WorkerHost

TAKEN = ("taken", "exists", "same-rows", "changed-meanwhile")  # reasons: true at another time


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
        found = problem_of(error, asked.actor.role)
        raise Problem.of_document(found | {"status": status}) from error


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
    from takifugu.session.plan_documents import plan_to_document
    from takifugu.session.query_options import QueryOptions

    session = host.session(_dataset(asked), asked.options["analyst"], asked.actor.name)
    options = QueryOptions.from_document(asked.options["query"])
    with host.planning():
        made = session.plan(session.resolved(options))
    return {
        "plan": plan_to_document(made),
        "same": made.charge.body()["question"] == asked.options["question"],
        "guarantee": session.guarantee(),
    }
