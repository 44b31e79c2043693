"""The rule that makes releases wait for a second person, in every way to release."""

import json
from fractions import Fraction
from math import inf
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from takifugu.errors import ApprovalRefused
from takifugu.ledger import Event
from takifugu.project.batches import Batch, BatchItem
from takifugu.project.policy import InvalidProject, parse_policy
from takifugu.project.project import Project, open_project
from takifugu.project.project_report import project_report
from takifugu.session.query_options import QueryOptions
from takifugu.session.release_errors import ApprovalNeeded, ApprovalRule, OverBudget
from takifugu.session.release_plan import Plan
from tests.project.studies import with_prior
from tests.raising import raises


def ruled(folder: Path, rule: str) -> Project:
    project = with_prior(folder)
    text = project.file.read_text()
    project.file.write_text(f"{text}\n[dataset.stays.approval]\n{rule}\n")
    return open_project(project.file).acting("ana")


def approve(project: Project, plan: Plan, *, by: str = "olga", analyst: str | None = None) -> Event:
    with project.acting(by).ledger() as ledger:
        return ledger.approve(
            dataset="stays",
            analyst=analyst,
            question=plan.charge.body()["question"],
            words="a histogram",
            epsilon=plan.cost.alone,
        )


def charges(project: Project) -> list[Event]:
    with project.ledger() as ledger:
        return list(ledger.history(kind="charge"))


# --- the file ---


def policy_with(rule: str) -> str:
    head = '[ledger]\nplace = "a.ledger"\nid = "x"\n[dataset.stays]\ndeclaration = "stays.toml"\n'
    return f"{head}[dataset.stays.approval]\n{rule}\n"


@pytest.mark.parametrize(
    ("text", "above", "first"),
    [
        ('above = "0.5"', Fraction(1, 2), False),
        ('above = "1/3"\nfirst = false', Fraction(1, 3), False),
        ("above = 0.5\nfirst = true", Fraction(1, 2), True),
        ("above = 0", Fraction(0), False),
        ("first = true", None, True),
    ],
)
def test_the_rule_is_read_exactly(text: str, above: Fraction | None, first: bool) -> None:
    rule = parse_policy(policy_with(text)).datasets["stays"].approval
    assert rule == ApprovalRule(above, first)
    assert rule is not None and json.dumps(rule.document())


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("", "above"),
        ("first = false", "above"),
        ('above = "-1"', "above"),
        ("above = nan", "above"),
        ("above = inf", "above"),
        ("above = true", "above"),
        ('above = "much"', "above"),
        ('first = "yes"', "first"),
        ('abov = "1"', "abov"),
    ],
)
def test_a_rule_that_cannot_be_meant_is_refused(text: str, field: str) -> None:
    with pytest.raises(InvalidProject) as refused:
        parse_policy(policy_with(text))
    assert field in f"{refused.value.field} {refused.value.given}"


# --- the rule ---


@given(
    above=st.none() | st.fractions(0, 4),
    first=st.booleans(),
    alone=st.floats(0, 8) | st.just(inf),
    nothing_yet=st.booleans(),
)
def test_what_waits_is_what_the_rule_says(
    above: Fraction | None, first: bool, alone: float, nothing_yet: bool
) -> None:
    found = ApprovalRule(above, first).why(alone, first=nothing_yet)
    dear = above is not None and alone > above  # of floats and fractions Python compares exactly
    assert (found is not None) == (dear or (first and nothing_yet))
    if found is not None:
        assert found[0] == ("above" if dear else "first")


# --- sessions ---


@pytest.mark.nightly
def test_a_release_above_the_limit_waits_for_another_person(tmp_path: Path) -> None:
    project = ruled(tmp_path, 'above = "0.5"')
    with project.session("stays") as session:
        cheap, dear = (session.plan.histogram(epsilon=e) for e in ("0.4", "0.8"))
        assert session.approval_needed(cheap) is None
        why = session.approval_needed(dear)
        assert why is not None and "above 0.5" in why
        session.release(cheap, accept_noise=True)
        with raises(ApprovalNeeded, reason="above", dataset="stays", field="approval"):
            session.release(dear, accept_noise=True)
        with raises(ApprovalNeeded, reason="above"):
            session.release(dear, accept_noise=True, key="k")
        own = approve(project, dear, by="ana")
        with raises(ApprovalRefused, reason="person"):
            session.release(dear, accept_noise=True, approval=own.seq)
        with raises(ApprovalRefused, reason="missing"):
            session.release(dear, accept_noise=True, approval=1)
        assert len(charges(project)) == 1
        event = approve(project, dear)
        result = session.release(dear, accept_noise=True, key="k", approval=event.seq)
        assert charges(project)[-1].body["approval"] == event.seq
        again = session.plan.histogram(epsilon="0.8")
        assert again.stored and session.approval_needed(again) is None
        assert session.release(again).raw == result.raw  # stored: nobody has to allow it
    with project.ledger() as ledger:
        assert ledger.verify().sound


def test_what_no_budget_admits_waits_for_nobody(tmp_path: Path) -> None:
    project = ruled(tmp_path, 'above = "0.5"\nfirst = true')
    with project.session("stays") as session:
        plan = session.plan.histogram(epsilon=3)
        with raises(OverBudget, dataset="stays", analyst=None) as refused:
            session.release(plan, accept_noise=True, key="k")
        most = session.plan.histogram(epsilon=str(refused.value.most))
        with raises(ApprovalNeeded, reason="above"):  # the advice fits, and waits
            session.release(most, accept_noise=True, key="k")
    project.set_budget("stays", "2", analyst="ana")
    project.set_budget("stays", "1", analyst="bob")
    with project.session("stays", "bob") as session:
        plan = session.plan.histogram(epsilon="1.5")
        with raises(OverBudget, dataset="stays", analyst="bob"):
            session.release(plan, accept_noise=True)
    assert not charges(project)


def test_the_first_release_waits_and_the_second_does_not(tmp_path: Path) -> None:
    project = ruled(tmp_path, "first = true")
    with project.session("stays") as session:
        one, two = (session.plan.histogram(epsilon=e) for e in ("0.2", "0.3"))
        assert session.approval_needed(one) == "it is the first release on the dataset"
        assert session.approval_needed(one, after=True) is None
        with raises(ApprovalNeeded, reason="first"):
            session.release(one, accept_noise=True)
        session.release(one, accept_noise=True, approval=approve(project, one).seq)
        assert session.approval_needed(two) is None
        session.release(two, accept_noise=True)


@pytest.mark.nightly
def test_another_analysts_answer_waits_as_a_release_does(tmp_path: Path) -> None:
    project = ruled(tmp_path, 'above = "0.5"')
    for who in ("ana", "bob"):
        project.set_budget("stays", "2", analyst=who)
    plans = {}
    for who in ("ana", "bob"):
        with project.acting(who).session("stays", who) as session:
            plan = plans[who] = session.plan.histogram(epsilon="0.8")
            with raises(ApprovalNeeded, reason="above"):
                session.release(plan, accept_noise=True)
            event = approve(project, plan, analyst=who)
            session.release(plan, accept_noise=True, approval=event.seq)
    assert plans["bob"].cost.reuse and len(charges(project)) == 1
    with project.ledger() as ledger:
        assert ledger.verify().sound


def test_a_rule_that_is_removed_or_added_counts_at_once(tmp_path: Path) -> None:
    project = ruled(tmp_path, 'above = "0.5"')
    text = project.file.read_text()
    project.file.write_text(text.replace('above = "0.5"', 'above = "0.9"'))
    with open_project(project.file).session("stays") as session:
        plan = session.plan.histogram(epsilon="0.8")
        assert session.approval_needed(plan) is None
        session.release(plan, accept_noise=True)


def test_the_report_says_what_was_approved_and_by_whom(tmp_path: Path) -> None:
    project = ruled(tmp_path, 'above = "0.5"')
    with project.session("stays") as session:
        plan = session.plan.histogram(epsilon="0.8")
        event = approve(project, plan)
        session.release(plan, accept_noise=True, approval=event.seq)
    (part,) = project_report(project).datasets
    (decision,) = [one for one in part.decisions if one.seq == event.seq]
    assert decision.words.startswith("release from stays approved: a histogram; epsilon = 0.")
    assert decision.words.endswith(", by olga")


# --- batches ---


def item(name: str, epsilon: str, approval: int | None = None) -> BatchItem:
    options = QueryOptions("histogram", epsilon=epsilon)
    return BatchItem(name, "stays", options, accept_noise=True, approval=approval)


@pytest.mark.nightly
def test_a_batch_waits_as_a_whole(tmp_path: Path) -> None:
    project = ruled(tmp_path, 'above = "0.5"\nfirst = true')
    with Batch(project, [item("a", "0.2"), item("b", "0.6")]) as batch:
        with raises(ApprovalNeeded, reason="first", name="a"):
            batch.refuse()
        first, second = (approve(project, part.plan).seq for part in batch.plans())
    with (
        Batch(project, [item("a", "0.2", first), item("b", "0.6")]) as batch,
        raises(ApprovalNeeded, reason="above", name="b"),
    ):
        list(batch.release())
    assert not charges(project)
    with Batch(project, [item("a", "0.2", first), item("b", "0.6", second)]) as batch:
        assert len(list(batch.release())) == 2
    assert [event.body["approval"] for event in charges(project)] == [first, second]
    with Batch(project, [item("a", "0.2"), item("b", "0.6")]) as batch:  # free by now
        assert all(result.free for _, result, _ in batch.release())
