"""The tasks of those who ask: plan a query, and release its answer.

A release is charged under a key that stands for its request, so that the same request is one
charge however often it is sent: by a client that heard nothing, after a worker was killed, or after
the server was. The worker answers only when the answer is recorded beside its charge.

Counting and drawing take whole steps of `ServerSettings.time_step`, in the worker: the answer is
recorded, or the failure told, and the worker free for others, at the end of a step.
"""

from typing import Any

from takifugu.engines import InvalidQuery
from takifugu.errors import InvalidMechanism, UnsoundRequest
from takifugu.project.policy_session import PolicySession
from takifugu.server.api.problems import Problem
from takifugu.server.approvals import AskedRelease, release_or_ask
from takifugu.server.work.dataset_tasks import dataset_of
from takifugu.server.work.tasks import Task, task
from takifugu.server.work.worker_host import WorkerHost
from takifugu.session.plan_documents import plan_to_document
from takifugu.session.plan_words import plan_words
from takifugu.session.query_options import QueryOptions
from takifugu.session.release_plan import Plan


def _session(host: WorkerHost, asked: Task) -> PolicySession:
    """The session of the one who asks.

    An owner plans as nobody by name, or as the analyst that ``options`` names: whose budget counts
    is then theirs to see.
    """
    actor = asked.actor
    analyst = actor.name if actor.role == "analyst" else asked.options.get("analyst")
    return dataset_of(host, asked).session(analyst, actor=actor.name)


def _plan(host: WorkerHost, session: PolicySession, asked: Task) -> Plan:
    """The plan of a query. Nothing protected is read, so that what is refused is the query's."""
    options = QueryOptions.from_document(asked.options["query"])
    try:
        with host.planning():
            return session.plan(session.resolved(options))
    except InvalidMechanism as error:  # a reference of another shape, or more places than labels
        raise InvalidQuery(
            error.field, given=error.given, needed=error.needed, reason=error.reason
        ) from None


@task("plan")
def plan(host: WorkerHost, asked: Task) -> dict[str, Any]:
    """What a query would cost and how good its answer would be. Nothing is spent.

    Options: ``query``, a document of `QueryOptions`; of an owner also ``analyst``.
    """
    session = _session(host, asked)
    made = _plan(host, session, asked)
    return {
        "plan": plan_to_document(made),
        "words": plan_words(made),
        "approval": session.approval_needed(made),
    }


@task("release")
def release(host: WorkerHost, asked: Task) -> dict[str, Any]:
    """Pay for a query and answer it; for free if it was answered before.

    Options: ``query``; ``key``, which names the request; ``accept_noise``; ``plan``, the digest of
    the plan that the one who asks has seen. Where the policy wants an owner's approval, the request
    for it is stored, and released once it is approved: see `takifugu.server.approvals`.
    """
    if asked.actor.role != "analyst":
        raise Problem(403, "forbidden", "only analysts release; owners and auditors do not ask")
    if asked.key is None:
        raise UnsoundRequest("a release needs a key that names the request", field="key")
    session = _session(host, asked)
    session.release_in_steps(host.time_step)
    wanted = AskedRelease(
        dataset=str(asked.dataset),
        analyst=asked.actor.name,
        key=asked.key,
        options=dict(asked.options),
    )
    return release_or_ask(
        *(host.state(), session, wanted), lambda: _plan(host, session, asked), plan_to_document
    )
