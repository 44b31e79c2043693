"""The steps of the demonstration: what a user does with a project, one call after the other."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from textwrap import fill
from time import monotonic
from typing import Any

import numpy as np

from takifugu._core.numeric import Floats, Integers
from takifugu.cli.shared_options import Spinner, aligned, echo
from takifugu.costs.cost import Cost
from takifugu.errors import SameRows
from takifugu.fitting import FitOptions
from takifugu.ledger import Ledger
from takifugu.priors import MarkovChain
from takifugu.project import Project, init_project
from takifugu.project.budgets import budget_standings
from takifugu.project.project_cache import keep_table, reach, table_path
from takifugu.reports.html_page import FactList, PageTable, Paragraphs, Part, Section, Verbatim
from takifugu.reports.html_page import shown as cell_text
from takifugu.session import OverBudget, Plan, Result
from takifugu.session.session import Session
from takifugu.synthetic import write_check_ins
from takifugu.tables import Engine, check, open_engine
from takifugu.translation.accounting.tables import TabledTranslation, tabulate_at
from takifugu.translation.protocol import LossTranslation
from takifugu.translation.translation import Translation
from takifugu.visible import four_digits

WIDTH, INDENT = 92, "   "
ROWS_PRINTED = 10


@dataclass
class DemoRecord:
    """The steps so far.

    Attributes:
        silent: Whether to print nothing.
        sections: What is shown of each step.
        facts: What ``--json`` prints.
        seconds: How long each piece of work took.
    """

    silent: bool
    sections: list[Section] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def as_expected(self) -> bool:
        """Whether the third query was refused, the repeated one free and the ledger sound."""
        facts = self.facts
        return facts["refused"] is not None and facts["again_free"] and facts["sound"]

    @contextmanager
    def working(self, doing: str) -> Iterator[Spinner]:
        """A spinner on stderr, and how long the work took."""
        begun = monotonic()
        with Spinner(doing) as spinner:
            yield spinner
        self.seconds[doing] = round(monotonic() - begun, 3)

    def show(self, title: str, *parts: Part) -> None:
        """Print a step, and keep it."""
        self.sections.append(Section(title, parts))
        self.line(f"\n{len(self.sections)}  {title}")
        for part in parts:
            for line in _lines(part):
                self.line(f"{INDENT}{line}".rstrip())

    def line(self, text: str) -> None:
        """Print text, unless silent."""
        if not self.silent:
            echo(text)


def _lines(part: Part) -> Iterator[str]:
    """A part of a step as lines of text."""
    match part:
        case Paragraphs(text):
            yield from fill(
                text, WIDTH - len(INDENT), break_long_words=False, break_on_hyphens=False
            ).splitlines()
        case Verbatim(text):
            yield from text.strip().splitlines()
        case FactList(pairs):
            yield from aligned([[name, cell_text(value)] for name, value in pairs.items()])
        case PageTable(columns, rows):
            cells = [list(map(cell_text, row)) for row in rows[:ROWS_PRINTED]]
            yield from aligned([list(columns), *cells])
            if len(rows) > ROWS_PRINTED:
                yield f"… and {len(rows) - ROWS_PRINTED} more"


DATASET = "check-ins"
BUDGET = 1
FITTED_SHARE = Fraction(1, 5)  # of the users, whose rows are given up to the prior
LARGEST_COUNTRY = "TR"  # the country with most users
FIRST, SECOND, THIRD = "0.5", "0.25", "0.5"  # the Pufferfish ε that each query asks for
POINTS = 4  # per-entry losses whose translation is shown
PROBE = 0.02  # a smaller one, from which their distance is computed
MAX_SHARE_LABELS = 20  # in the table of the shares


def run_steps(folder: Path, *, rows: int, seed: int, record: DemoRecord) -> None:
    """Everything but the page. ``seed`` is that of the data; noise has none."""
    record.facts |= {"seed": seed, "budget": BUDGET, "seconds": record.seconds}
    project = _add_dataset(folder, rows, seed, record)
    project = _fit(project, record)
    with record.working("setting the budget"):
        project.set_budget(DATASET, str(BUDGET))
    view = _translate(project, record)
    with project.session(DATASET) as session, project.engine(DATASET) as engine:
        _count_separately(project, session)
        record.show(
            "What is protected, and what is not",
            Paragraphs(
                f"The owner allows a Pufferfish ε of {BUDGET} for all releases together. The"
                " ledger enforces it charge by charge, also through crashes."
            ),
            Verbatim(session.guarantee()),
        )
        exact = engine.histogram(["country", "place"]).counts
        first = _ask_ranking(session, engine, exact, record)
        _ask_shares(session, exact[engine.keys("country").index(LARGEST_COUNTRY)], record)
        _ask_too_much(session, first, record)
    _verify(project, view, record)
    record.show(
        "Fingerprints",
        Paragraphs(
            "SHA-256 of what the guarantee is about. Every charge in the ledger names its cells"
            " and the prior, secrets and translation that it was made under; and the data, by a"
            " hash that is keyed and not shown."
        ),
        FactList(
            {
                "declaration": engine.declaration.fingerprint,
                "cells": first.charge.cells.fingerprint,
                "prior": first.charge.prior,
                "secrets": first.charge.secrets,
                "translation": first.charge.translation,
            }
        ),
    )


def _add_dataset(folder: Path, rows: int, seed: int, record: DemoRecord) -> Project:
    with record.working("generating check-ins"):
        rng = np.random.default_rng(seed)  # noqa: TID251 - a simulation; it protects nothing
        declaration = write_check_ins(folder, rows=rows, rng=rng)
    with record.working("checking the rows against their declaration"):
        project = init_project(folder)
        with open_engine(declaration) as engine:
            checked = check(engine)
            project = project.add_dataset(DATASET, declaration, engine=engine)
    first, last = str(checked.first), str(checked.last)
    world = {"rows": checked.rows, "users": checked.entities, "longest": checked.longest}
    record.facts["world"] = {**world, "first": first, "last": last}
    record.show(
        "Synthetic data",
        Paragraphs(
            f"Check-ins of 500 days, drawn from a Markov model with seed {seed}. The labels are"
            " those of the paper; nobody is behind these rows. The data is as declared."
        ),
        FactList(
            {
                "rows": checked.rows,
                "users": checked.entities,
                "rows of the busiest user": checked.longest,
                "labels": checked.keys["place"],
                "countries": checked.keys["country"],
                "from": first,
                "to": last,
            }
        ),
    )
    return project


def _fit(project: Project, record: DemoRecord) -> Project:
    with record.working("counting transitions"):
        project, _, chain, fitted = project.fit(DATASET, FitOptions(share=FITTED_SHARE))
    states, moves = len(chain.states), fitted.estimate.counted
    record.facts["prior"] = {"states": states, "moves": moves, "statement": fitted.statement}
    record.show(
        "What an adversary may believe",
        Paragraphs(
            f"A Markov chain of {states} states, fitted to {moves:,} moves of a fifth of the users."
            f" {fitted.statement}"
        ),
    )
    return project


def table_step(translation: Translation) -> float:
    """The distance of the per-entry losses that the demonstration translates."""
    aim = 0.93 * BUDGET / POINTS  # losses rise a little faster than ε
    return float(np.floor(PROBE * aim / translation.bound(PROBE).value * 2**12) / 2**12)


def _cache_table(project: Project, translation: Translation, ledger: Ledger) -> None:
    """Write a small table where the project keeps its own, which takes half a minute to make.

    Even steps of per-entry ε, as far as the budget goes. They have few bits, so that sums of them
    are steps too and composing loses nothing to rounding.
    """
    step = table_step(translation)
    begin = min(PROBE, step / 2)  # below the first step, for what is left in the end
    grid = [begin, *(np.arange(1, POINTS + 1) * step).tolist()]
    most = reach([Fraction(BUDGET)])
    if most is not None:
        path = table_path(project.folder, DATASET, translation, most)
        keep_table(tabulate_at(translation, grid), path, ledger.mark)


def _count_separately(project: Project, session: Session) -> None:
    """Give this demonstration a budget beside those of earlier ones: nobody is behind its rows."""
    while True:
        try:
            session.plan.histogram(epsilon=BUDGET)
        except SameRows as error:
            project.count_separately(DATASET, error.other)
        else:
            return


def _translate(project: Project, record: DemoRecord) -> LossTranslation:
    """The translation at even steps of per-entry ε, as far as the budget goes."""
    with record.working("translating") as working:
        translation = project.load(DATASET).entry_translation
        with project.ledger() as ledger:
            _cache_table(project, translation, ledger)
            table = project.table(DATASET, translation, ledger, progress=working)
        view: LossTranslation = translation
        if table is not None:
            view = TabledTranslation(translation, table, least=0)
        dp: Floats = np.arange(1, POINTS + 1) * float(view.to_dp(BUDGET)) / POINTS
        with project.engine(DATASET) as engine:
            longest = engine.lengths().longest
        (chain,) = translation.priors.values()
        if not isinstance(chain, MarkovChain):
            raise TypeError("the demo fits a Markov chain")
        finite = Translation(replace(chain, length=longest))
        losses = {
            "exact": np.array([float(view.to_pufferfish(epsilon)) for epsilon in dp.tolist()]),
            "curve": translation.curve.to_pufferfish(dp),
            "group": finite.to_pufferfish(dp, "group"),
        }
        leak = translation.explain(float(dp[-1])).lower
    lists = {name: values.tolist() for name, values in losses.items()}
    record.facts["translation"] = {"per_entry": dp.tolist(), **lists, "leak": leak}
    rows = zip(dp.tolist(), *lists.values(), strict=True)
    record.show(
        "What a loss per row comes to",
        Paragraphs(
            "The mechanisms are ordinary differentially private ones. Their losses add up row by"
            " row, and the sum is translated once into what an adversary with that prior learns:"
            " by optimal transport, by the paper's influence curve, and by counting all rows of the"
            " busiest user at once. All three are upper bounds; the least is used."
        ),
        PageTable(
            ["DP ε per row", "by transport", "by the curve", "by the group"],
            [[epsilon, *map(_up, row)] for epsilon, *row in rows],
            caption="Pufferfish ε, rounded up.",
        ),
        FactList(
            {
                "at the last of these, by transport, at most": _up(losses["exact"][-1]),
                "and some mechanism leaks": _down(leak),
            }
        ),
    )
    return view


def _ask_ranking(session: Session, engine: Engine, exact: Integers, record: DemoRecord) -> Plan:
    with record.working("asking the first query"):
        plan = session.plan.top_k(3, by="country", epsilon=FIRST)
        top = session.release(plan, accept_noise=True)  # of small countries it is mostly noise
        right = places_right(exact, engine, top)
    record.facts |= {"releases": [json.loads(top.to_json())], "right": right}
    record.show(
        "First query: the top-3 places of every country",
        _price(top),
        Paragraphs(f"How: {plan.reason}"),
        _ranking(top),
        Paragraphs(
            "All countries are paid for by one charge, since they share no rows. Because the data"
            f" is synthetic, the exact ranking may be shown: of {len(exact)} countries"
            f" {right[0]} first, {right[1]} second and {right[2]} third places are right. Small"
            " countries have few rows, and their ranking is mostly noise."
        ),
    )
    return plan


def places_right(exact: Integers, engine: Engine, top: Result) -> list[int]:
    """``[place]``: for how many countries the named label has the count of that place.

    Only synthetic data may be examined like this. Labels with equal counts share a place.
    """
    countries, labels = engine.keys("country"), engine.keys("place")
    ranked = -np.sort(-exact, axis=1)
    right: dict[int, int] = {}
    for country, place, label, *_ in top.rows:
        row = countries.index(country)
        hit = exact[row, labels.index(label)] == ranked[row, place - 1]
        right[place] = right.get(place, 0) + int(hit)
    return [right[place] for place in sorted(right)]


def _ask_shares(session: Session, counts: Integers, record: DemoRecord) -> None:
    with record.working("asking the second query"):
        plan = session.plan.proportions(where={"country": [LARGEST_COUNTRY]}, epsilon=SECOND)
        shares = session.release(plan, accept_noise=True)
    record.facts["releases"].append(json.loads(shares.to_json()))
    exact = (counts / max(int(counts.sum()), 1)).tolist()
    rows = [[*row, true] for row, true in zip(shares.rows, exact, strict=True)]
    best = sorted(rows, key=lambda row: -row[1])[:MAX_SHARE_LABELS]
    record.show(
        f"Second query: where people of {LARGEST_COUNTRY} go",
        _price(shares),
        Paragraphs(f"How: {plan.reason}"),
        PageTable(
            ["place", "share", "from", "to", "exact"],
            best,
            caption="The same as numbers. A share below 0 is noise; it is released as drawn.",
        ),
    )


def _ask_too_much(session: Session, first: Plan, record: DemoRecord) -> None:
    with record.working("asking the third query"):
        again = session.release(first, accept_noise=True).free
        refused: OverBudget | None = None
        try:
            plan = session.plan.histogram(by="country", epsilon=THIRD)
            session.release(plan, accept_noise=True)
        except OverBudget as error:
            refused = error
    record.facts["again_free"] = again
    record.facts["refused"] = refused and {
        "message": str(refused), "alone": refused.alone, "most": str(refused.most)
    }  # fmt: skip
    repeated = "gave the same result, for free." if again else "was charged again."
    record.show(
        f"Third query: {'answered' if refused is None else 'refused'}",
        Paragraphs(f"The third query is for every count of every country, at ε = {THIRD}."),
        Verbatim("It was answered." if refused is None else str(refused), alarm=True),
        Paragraphs(f"The first query, repeated, {repeated}"),
    )


def _verify(project: Project, view: LossTranslation, record: DemoRecord) -> None:
    with record.working("verifying the ledger"), project.ledger() as ledger:
        report, events = ledger.verify(), tuple(ledger.history())
        (position,) = ledger.positions()
        (standing,) = budget_standings(ledger, DATASET, view, last=len(events))
    head, sound = report.head, report.sound
    record.facts |= {"spent": standing.spent, "head": vars(head), "sound": sound}
    worst = (f"DP ε = {four_digits(total.scalar, 'up')}" for total in position.worst)
    record.show(
        "The budget over time",
        FactList(
            {
                "budget": float(BUDGET),
                "spent": _up(standing.spent),
                "the worst row has lost": ", ".join(worst),
                "ledger": f"{report.events} events, {'sound' if sound else 'NOT sound'}",
                "head": f"{head.seq}:{head.hash}",
            }
        ),
        PageTable(
            ["", "at (UTC)", "event", "DP ε per row", "hash"],
            [(e.seq, f"{e.at:%H:%M:%S}", e.kind, _loss(e.body), f"{e.hash[:24]}…") for e in events],
            caption="The ledger. A hash covers its event and all before it.",
        ),
    )


def _ranking(top: Result) -> PageTable:
    """One row for each country and one column for each place."""
    places: dict[str, list[str]] = {}
    for country, label in zip(top.column("country"), top.column("place"), strict=True):
        places.setdefault(str(country), []).append(str(label))
    columns = ["country", *(f"place {place}" for place in range(1, 4))]
    rows = [[country, *found] for country, found in places.items()]
    return PageTable(columns, rows, "Released, the largest country first.")


def _price(result: Result) -> FactList:
    cost = result.cost
    return FactList(
        {
            "Pufferfish ε alone": _up(cost.alone),
            "on top of what was spent before": _up(cost.marginal),
            "spent after it": _up(cost.after),
            "DP ε per row": _up(cost.per_entry),
        }
    )


def _up(loss: float | Fraction | None) -> float | None:
    return None if loss is None else float(four_digits(loss, "up"))


def _down(loss: float) -> float:
    return float(four_digits(loss, "down"))


def _loss(body: Mapping[str, Any]) -> float | None:
    loss = body.get("loss", {})
    if "cost" in loss:
        return _up(Cost.of_document(loss["cost"]).scalar)
    return _up(Fraction(loss["epsilon"])) if "epsilon" in loss else None
