"""The tasks of those who ask: plan a query, and release its answer.

A release is charged under a key that stands for its request, so that the same request is one
charge however often it is sent: by a client that heard nothing, after a worker was killed, or after
the server was. The worker answers only when the answer is recorded beside its charge.
"""

import hashlib
import json
from dataclasses import replace
from typing import Any

from takifugu.errors import UnsoundRequest
from takifugu.project.policy_session import PolicySession
from takifugu.server.api.problems import Problem
from takifugu.server.roles import Actor
from takifugu.server.work.dataset_tasks import dataset_of
from takifugu.server.work.tasks import Task, task
from takifugu.server.work.worker_host import WorkerHost
from takifugu.session.plan_documents import digest, plan_to_document
from takifugu.session.query_options import QueryOptions
from takifugu.session.release_errors import StalePlan
from takifugu.session.release_plan import Plan


def ledger_key(actor: Actor, key: str) -> str:
    """The key of a charge: nobody can choose one that is somebody else's.

    >>> one, two = Actor("ana", "analyst", "1"), Actor("bo", "analyst", "2")
    >>> ledger_key(one, "k") == ledger_key(one, "k"), ledger_key(one, "k") == ledger_key(two, "k")
    (True, False)
    """
    text = json.dumps(["release", actor.name, key])
    return hashlib.sha256(text.encode()).hexdigest()


def _session(host: WorkerHost, asked: Task) -> PolicySession:
    """The session of the one who asks.

    An owner plans as nobody by name, or as the analyst that ``options`` names: whose budget counts
    is then theirs to see.
    """
    actor = asked.actor
    analyst = actor.name if actor.role == "analyst" else asked.options.get("analyst")
    return dataset_of(host, asked).session(analyst, actor=actor.name)


def _plan(session: PolicySession, asked: Task) -> Plan:
    options = QueryOptions.from_document(asked.options["query"])
    return session.plan(session.resolved(options))


@task("plan")
def plan(host: WorkerHost, asked: Task) -> dict[str, Any]:
    """What a query would cost and how good its answer would be. Nothing is spent.

    Options: ``query``, a document of `QueryOptions`; of an owner also ``analyst``.
    """
    session = _session(host, asked)
    return {"plan": plan_to_document(_plan(session, asked))}


@task("release")
def release(host: WorkerHost, asked: Task) -> dict[str, Any]:
    """Pay for a query and answer it; for free if it was answered before.

    Options: ``query``; ``key``, which names the request; ``accept_noise``; ``approval``, the event
    by which an owner approved it; ``plan``, the digest of the plan that the one who asks has seen.
    """
    if asked.actor.role != "analyst":
        raise Problem(403, "forbidden", "only analysts release; owners and auditors do not ask")
    if asked.key is None:
        raise UnsoundRequest("a release needs a key that names the request", field="key")
    session = _session(host, asked)
    made = _plan(session, asked)
    if asked.options.get("plan") not in (None, digest(made)):
        raise StalePlan(("plan",))
    keyed = replace(made, charge=replace(made.charge, key=ledger_key(asked.actor, asked.key)))
    found = session.release(keyed, accept_noise=bool(asked.options.get("accept_noise", False)))
    document = found.document()
    return {"charge": document["provenance"]["charge"], "result": document}
