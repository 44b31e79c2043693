"""``takifugu approve``: a second person allows a release that somebody has planned."""

from pathlib import Path
from typing import Annotated

import typer

from takifugu.cli.shared_options import (
    AsJson,
    Backend,
    InProject,
    NoTable,
    Spinner,
    echo,
    print_json,
    the_project,
)


def run_approve(
    plan: Annotated[
        Path,
        typer.Argument(
            metavar="PLAN", help="What `takifugu plan --out` wrote.", show_default=False
        ),
    ],
    refuse: Annotated[
        bool,
        typer.Option("--refuse", help="Refuse it instead; an unused approval of it is withdrawn."),
    ] = False,
    no_table: NoTable = False,
    folder: InProject = None,
    backend: Backend = None,
    as_json: AsJson = False,
) -> None:
    """Allow the release of a plan, where the policy makes it wait for a second person.

    The plan is made anew and must be the same. The ledger records who approved it; its number goes
    to `takifugu release PLAN --approval NUMBER`, once, by another user than the one who approved.

    JSON: dataset, analyst, decision, epsilon (what the release costs alone), query (in words),
    approval (the number of the event), actor.
    """
    from dataclasses import replace

    from takifugu.cli.shared_options import show_warnings
    from takifugu.ledger.event_documents import asked_words
    from takifugu.session.plan_documents import read_plan
    from takifugu.session.release_plan import query_body
    from takifugu.visible import four_digits, visible

    asked, project = read_plan(plan), the_project(folder)
    with (
        show_warnings(),
        Spinner("planning") as spinner,
        project.session(
            asked.dataset, asked.analyst, progress=spinner, backend=backend, table=not no_table
        ) as session,
        project.ledger() as ledger,
    ):
        asked = replace(asked, options=session.resolved(asked.options))
        plan_again = session.replan(asked)
        words = asked_words(query_body(plan_again.charge))
        decide = ledger.refuse_request if refuse else ledger.approve
        event = decide(
            dataset=asked.dataset,
            analyst=asked.analyst,
            question=plan_again.charge.body()["question"],
            words=words,
            epsilon=plan_again.cost.alone,
        )
    facts = {
        "dataset": asked.dataset,
        "analyst": asked.analyst,
        "decision": event.body["decision"],
        "epsilon": plan_again.cost.alone,
        "query": words,
        "approval": event.seq,
        "actor": event.body["actor"],
    }
    if as_json:
        print_json(facts)
        return
    cost = four_digits(plan_again.cost.alone, "up")
    echo(f"{event.body['decision']}: {visible(words)} of {asked.dataset}, epsilon = {cost} alone")
    if not refuse:
        echo(f"next, as another user: takifugu release {plan} --approval {event.seq}")
