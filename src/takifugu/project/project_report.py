"""What a privacy report says of a project: gathered from the policy, the priors and the ledger.

Nothing is charged or written, no table is opened, and nothing protected is read: answers are those
that the ledger has stored. Times are those of the ledger, so that the same project gives the same
report.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from fractions import Fraction
from importlib.metadata import PackageNotFoundError, version
from platform import python_version
from typing import Any

from takifugu import __version__
from takifugu._core.rounding import float_up
from takifugu.binding.entries import Entries, stated_entries
from takifugu.binding.prior_reading import terms_of
from takifugu.costs.losses import Total
from takifugu.errors import LedgerDamaged, TakifuguError, UnsoundRequest
from takifugu.influence.curve import InfluenceCurve
from takifugu.ledger import Event, Ledger, Report
from takifugu.ledger.charge_values import loss_of
from takifugu.ledger.event_documents import event_words, without_folders
from takifugu.ledger.limits import spent_epsilon
from takifugu.project.budgets import BudgetStanding, standing_of
from takifugu.project.loaded_dataset import LoadedDataset
from takifugu.project.project import Project
from takifugu.project.report_sentences import (
    FOREIGN_ANSWER,
    fitted_sentence,
    method_of,
    question_of,
    related_words,
    reported_columns,
    reported_priors,
    rows_of_charge,
    secrets_sentence,
    stored_table,
    title_of,
)
from takifugu.reports.report_values import (
    PrivacyReport,
    ReportedBudget,
    ReportedDataset,
    ReportedDecision,
    ReportedLedger,
    ReportedRelease,
)
from takifugu.reports.spending_figure import BudgetEvent
from takifugu.session.guarantee import guarantee, odds_words
from takifugu.session.held_out import published_statement, published_windows
from takifugu.session.query_kinds import is_ranking
from takifugu.session.release_plan import error_words
from takifugu.translation.accounting.tables import TabledTranslation
from takifugu.translation.protocol import LossTranslation
from takifugu.translation.translation import Translation

DECISIONS = frozenset(
    {"policy", "accepted", "budget", "partition", "cells", "separate", "loss", "approval"}
)
SOFTWARE = ("opendp", "duckdb", "numpy", "scipy")
Progress = Callable[[str], None]


def project_report(
    project: Project,
    names: Sequence[str] = (),
    *,
    progress: Progress | None = None,
    ledger: Ledger | None = None,
) -> PrivacyReport:
    """The report on some datasets of a project, by default on all of them.

    A ledger that is damaged, or an older copy, is reported as such. It is opened read-only unless
    ``ledger`` is given, which stays open.
    """
    every = tuple(project.policy.datasets)
    chosen = tuple(dict.fromkeys(names)) or every
    for name in chosen:
        project.dataset(name)
    say = progress or (lambda _: None)
    with project.ledger(inspect=True) if ledger is None else nullcontext(ledger) as opened:
        say("verifying the ledger")
        checked, events = opened.verify(), tuple(opened.history())
        datasets = []
        for name in chosen:
            say(name)
            datasets.append(_Gathered.of(project, name, opened, events, progress).reported())
        state = _ledger(checked, events, opened)
    return PrivacyReport(
        datasets=datasets,
        ledger=state,
        policy=hashlib.sha256(project.file.read_bytes()).hexdigest(),
        software=_software(),
        whole=set(chosen) == set(every),
    )


def _ledger(checked: Report, events: Sequence[Event], ledger: Ledger) -> ReportedLedger:
    place = str(ledger.name)
    return ReportedLedger(
        events=checked.events,
        seq=checked.head.seq,
        hash=checked.head.hash,
        at=max(event.at for event in events),  # an answer has the time of its charge
        problems=[str(problem).replace(place, "the ledger") for problem in checked.problems],
        witness=None if checked.witness is None else checked.witness.seq,
        origin=ledger.origin.hash,
    )


def _software() -> dict[str, str]:
    versions = {"takifugu": __version__, "Python": python_version()}
    for package in SOFTWARE:
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    return versions


@dataclass(frozen=True)
class _Gathered:
    """A dataset, its events, and what its releases come to under the present policy.

    Attributes:
        found: The dataset with its files.
        ledger: The ledger, open.
        events: Its events that concern the dataset.
        view: What losses mean; None without a prior.
        spent: The Pufferfish ε after each event that counts; empty if it cannot be computed.
        notes: What to know first.
    """

    found: LoadedDataset
    ledger: Ledger
    events: tuple[Event, ...]
    view: LossTranslation | None
    spent: Mapping[int, float]
    notes: tuple[str, ...]

    @classmethod
    def of(
        cls,
        project: Project,
        name: str,
        ledger: Ledger,
        events: Sequence[Event],
        progress: Progress | None,
    ) -> "_Gathered":
        """Read what the policy and the ledger have on a dataset."""
        loaded = project.load(name)
        mine = tuple(event for event in events if _concerns(event, name))
        view, spent, notes = None, dict[int, float](), []
        if not loaded.policy.priors:
            notes.append("The dataset has no prior yet, so that nothing can be released from it.")
        else:
            view = _view(project, loaded, ledger, progress)
            try:
                spent = {one.seq: one.epsilon for one in ledger.odometer(name, view)}
            except LedgerDamaged:
                notes.append("What was spent cannot be computed: the ledger is damaged.")
            notes += _pending(loaded, ledger)
        return cls(loaded, ledger, mine, view, spent, tuple(notes))

    def reported(self) -> ReportedDataset:
        """The dataset as the report has it."""
        found, declaration = self.found, self.found.declaration
        return ReportedDataset(
            name=found.name,
            title=declaration.title,
            entity=declaration.entity,
            columns=reported_columns(declaration, found.columns),
            protected=found.columns,
            secrets=secrets_sentence(found.policy),
            guarantee=self._guarantee(),
            priors=reported_priors(found, self.events) if found.policy.priors else (),
            curve=_curve(found) if found.policy.priors else None,
            budgets=tuple(self._budgets()),
            spending=tuple(self._spending()),
            releases=tuple(self._releases()),
            decisions=tuple(self._decisions()),
            notes=self.notes,
            size=self._size(),
            fitted=fitted_sentence(found.releasable) if found.policy.priors else "",
            related=related_words(self._entries()) if found.policy.priors else "",
        )

    def _entries(self) -> dict[str, Entries]:
        """What the entries of each prior are."""
        found = self.found
        return stated_entries(found.priors, found.over, entity=found.declaration.entity)

    def _size(self) -> tuple[int, int] | None:
        """The rows and the entities of the table, as the last answer that tells them has them."""
        for event in reversed(self.events):
            if event.kind == "answer" and isinstance(event.body["answer"], Mapping):
                shown = event.body["answer"].get("shown")
                shown = shown if isinstance(shown, Mapping) else {}
                rows, entities = shown.get("rows_there"), shown.get("entities_there")
                if isinstance(rows, int) and isinstance(entities, int):
                    return rows, entities
        return None

    def _guarantee(self) -> str:
        if self.view is None:
            return ""
        found = self.found
        epsilon, delta = self.ledger.snapshot(found.name).budget
        return guarantee(
            found.declaration,
            found.translation,
            found.columns,
            self._entries(),
            epsilon=epsilon,
            delta=delta,
            statement=" ".join(
                filter(
                    None,
                    (
                        found.releasable.statement,
                        published_statement(published_windows(self.ledger, found.name)),
                    ),
                )
            ),
        )

    def _budgets(self) -> Iterator[ReportedBudget]:
        """That of the dataset first, then those of analysts who have one or have spent."""
        cells = self.found.protected_cells
        for position in self.ledger.positions(self.found.name):
            budget, delta = position.epsilon, position.delta
            standing = BudgetStanding(position.analyst, budget, delta)
            if self.view is not None:
                with suppress(LedgerDamaged):
                    standing = standing_of(self.ledger, position, self.view, cells=cells)
            yield ReportedBudget(
                position.analyst,
                budget,
                delta,
                standing.spent,
                standing.left,
                "" if standing.spent is None else odds_words(standing.spent, delta),
                "" if budget is None else odds_words(budget, delta),
            )

    def _spending(self) -> Iterator[BudgetEvent]:
        """The budget of the dataset and what was spent of it, event by event."""
        spent, budget = 0.0, None
        if self.view is None or (not self.spent and self._charges()):
            return
        for event in self.events:
            if event.kind == "budget" and event.body.get("analyst") is None:
                budget = float(Fraction(event.body["epsilon"]))
                yield BudgetEvent(event.seq, event.at, spent, budget, released=False)
            elif event.seq in self.spent:
                spent = self.spent[event.seq]
                released = event.kind == "charge"
                yield BudgetEvent(event.seq, event.at, spent, budget, released=released)

    def _charges(self) -> list[Event]:
        return [event for event in self.events if event.kind == "charge"]

    def _releases(self) -> Iterator[ReportedRelease]:
        answers = {e.body["charge"]: e.body["answer"] for e in self.events if e.kind == "answer"}
        reused: dict[int, list[Event]] = {}
        for event in self.events:
            if event.kind == "reuse":
                reused.setdefault(event.body["charge"], []).append(event)
        before = 0.0
        spent_by = sorted(self.spent.items())
        for event in self._charges():
            before = max((spent for seq, spent in spent_by if seq < event.seq), default=0.0)
            yield self._release(event, answers.get(event.seq), reused.get(event.seq, ()), before)

    def _release(
        self, event: Event, answer: Any, reused: Sequence[Event], before: float
    ) -> ReportedRelease:
        body, notes = event.body, []
        columns: tuple[str, ...] = ()
        rows: tuple[tuple[Any, ...], ...] = ()
        shown: Mapping[str, Any] = {}
        if answer is None:
            notes.append(
                "It was paid for, and no answer is stored: the work stopped before the end. It"
                " counts as spent, since somebody may have seen the answer."
            )
        else:
            table = stored_table(body, answer, self.found.declaration)
            if table.note != FOREIGN_ANSWER and isinstance(answer.get("shown"), Mapping):
                shown = answer["shown"]
            columns, rows = table.columns, table.rows
            notes += [table.note] if table.note else []
        for again in reused:
            notes.append(
                f"The same answer was given to {again.body['analyst']} on {again.at:%Y-%m-%d}"
                f" (event {again.seq}), and charged to their budget alone."
            )
        if self.view is not None and body["prior"] != terms_of(self.found.translation).prior:
            notes.append(
                "It was released under an earlier prior. What it costs is stated here under the"
                " prior of today."
            )
        query = body["query"]
        ranked = is_ranking(query.get("name")) and columns != ("number",)
        after = self.spent.get(event.seq)
        added = None if after is None else max(Fraction(after) - Fraction(before), Fraction(0))
        return ReportedRelease(
            seq=event.seq,
            at=event.at,
            hash=event.hash,
            title=title_of(body),
            question=question_of(body),
            rows=rows_of_charge(body, shown),
            analyst=body["analyst"],
            alone=self._alone(body, shown),
            on_top=None if added is None else float_up(added),
            method=method_of(body["mechanism"], ranked=columns if ranked else ()),
            error=_error(body, shown),
            columns=columns,
            table=rows,
            by=tuple(query.get("by") or ()),
            ranked=ranked,
            notes=tuple(notes),
            software=_versions(answer),
        )

    def _alone(self, body: Mapping[str, Any], shown: Mapping[str, Any]) -> float | None:
        """The Pufferfish ε of a charge if nothing else were ever released."""
        if self.view is None:
            return None
        _, delta = self.ledger.snapshot(self.found.name).budget
        if Fraction(shown.get("delta") or 0):
            delta = Fraction(shown["delta"])
        with suppress(UnsoundRequest):
            return spent_epsilon(self.view, (Total().plus(loss_of(body["loss"])),), None, delta)
        return None

    def _decisions(self) -> Iterator[ReportedDecision]:
        for event in self.events:
            if event.kind in DECISIONS:
                words = event_words(without_folders(event.body))
                yield ReportedDecision(event.seq, event.at, words)


def _concerns(event: Event, name: str) -> bool:
    if event.kind == "loss":
        return any(one.get("dataset") == name for one in event.body.get("accounts", ()))
    return event.body.get("dataset") == name


def _view(
    project: Project, found: LoadedDataset, ledger: Ledger, progress: Progress | None
) -> LossTranslation:
    """What losses mean by the present policy, by its cached table where there is one."""
    translation = found.translation
    if isinstance(translation, Translation):
        table = project.table(found.name, translation, ledger, progress=progress)
        if table is not None:
            return TabledTranslation(translation, table, least=0)
    return translation


def _pending(found: LoadedDataset, ledger: Ledger) -> Iterator[str]:
    """What the owner has to accept before anything more is released."""
    changed = ledger.snapshot(found.name).changed(terms_of(found.translation), found.rules)
    if changed:
        yield (
            "The policy was changed since the last release: nothing more is released until the"
            " owner accepts it. What is spent is stated under the policy as it is now."
        )
    if found.releases_fitted_rows:
        yield (
            "Rows that the prior was fitted on are also released from. The guarantee covers what"
            " is released on top of the prior, and not what the prior itself reveals about them."
        )


def _curve(found: LoadedDataset) -> InfluenceCurve | None:
    translation = found.translation
    if not isinstance(translation, Translation) or translation.curve_waits:
        return None
    if not translation.has_curve:
        return None
    with suppress(TakifuguError):
        return translation.curve
    return None


def _versions(answer: Any) -> str:
    """The versions that drew an answer, as they were stored with it."""
    versions = answer.get("software") if isinstance(answer, Mapping) else None
    if not isinstance(versions, Mapping):
        return ""
    return ", ".join(f"{name} {number}" for name, number in versions.items())


def _error(body: Mapping[str, Any], shown: Mapping[str, Any]) -> str:
    """What was predicted of an answer, as plans say it; empty if it was not recorded."""
    error = shown.get("error")
    if error is None and str(body["mechanism"].get("kind")).startswith("integer"):
        error = body["mechanism"].get("error")
    if not isinstance(error, Mapping):
        return ""
    with suppress(KeyError, TypeError, ValueError, ArithmeticError):
        return error_words(error)
    return ""
