"""The steps of a demonstration: what a curator does, on a made-up world."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from takifugu.cli.demo_story import BELIEF, BUDGET, DATASET, LARGEST, SPLIT, Story, Translated
from takifugu.cli.demo_words import Teller
from takifugu.cli.options import Working
from takifugu.engines import DataCheck, Engine, FirstDays, Fitted, Scope, check, fit, open_engine
from takifugu.ledger import Ledger, open_ledger
from takifugu.numeric import Floats, Integers
from takifugu.priors import MarkovChain
from takifugu.session import OverBudget, Plan, Result, Session
from takifugu.synthetic import write_check_ins
from takifugu.translation.accounting.translation_table import TranslationTable
from takifugu.translation.bounds import Bound
from takifugu.translation.chain.unbounded_losses import UnboundedLosses, unbounded_losses
from takifugu.translation.translation import Translation

LEDGER = "check-ins.ledger"
RUNGS = 4  # per-entry losses that are translated
PROBE = 0.02  # a smaller one, from which their distance is told
FIRST, SECOND, THIRD = "0.5", "0.25", "0.5"  # the Pufferfish ε that the queries ask for
SHOWN = 8  # countries in the terminal


def play(folder: Path, *, rows: int, seed: int, tell: Teller) -> Story:
    """Everything but the page. ``seed`` is that of the world; noise has none."""
    began = datetime.now(UTC)
    with tell.step("A made-up world", "making up check-ins"):
        rng = np.random.default_rng(seed)  # noqa: TID251 - a simulation; it protects nothing
        declared = write_check_ins(folder, rows=rows, rng=rng)
    tell.say(
        f"{rows:,} check-ins of 500 days, drawn from a Markov model with seed {seed}. The labels"
        " are those of the paper; nobody is behind these rows."
    )
    with open_engine(declared) as engine:
        checked = _declare(engine, tell)
        fitted = _fit(engine, tell)
        translation = Translation({BELIEF: fitted.chain})
        translated = _translate(engine, fitted, translation, tell)
        with open_ledger(folder / LEDGER) as ledger:
            return _ask(
                engine, ledger, fitted, translation, translated, tell,
                began=began, seed=seed, declared=declared.name, checked=checked,
            )  # fmt: skip


def _declare(engine: Engine, tell: Teller) -> DataCheck:
    with tell.step("Declared", "checking the rows against their declaration"):
        checked = check(engine)
    found = engine.declaration
    tell.say(
        f"Protected: the value of each cell of `{found.protected[0].column}`, one of"
        f" {checked.keys['place']} labels. Not protected: that a row exists, whose it is"
        f" (`{found.entity}`), its time, its `{found.public[0].column}`.",
        f"The data fits: {checked.rows:,} rows of {checked.entities:,} users, the busiest with"
        f" {checked.longest:,}, in {checked.keys['country']} countries, from {checked.first} to"
        f" {checked.last}.",
    )
    return checked


def _fit(engine: Engine, tell: Teller) -> Fitted:
    with tell.step("What an adversary may believe", "counting transitions"):
        fitted = fit(engine, "place", split=FirstDays(SPLIT), unseen="uniform")
    tell.say(
        f"A Markov chain of {len(fitted.chain.states)} states, from"
        f" {int(fitted.counts.counts.sum()):,} moves. {fitted.statement}"
    )
    return fitted


def _translate(
    engine: Engine, fitted: Fitted, translation: Translation, tell: Teller
) -> Translated:
    with tell.step("What that costs", "translating") as working:
        table, leak = ladder(fitted.chain, translation, working)
        longest = engine.lengths(_kept(fitted)).longest
        ended = Translation(replace(fitted.chain, length=longest))
        translated = Translated(
            table,
            translation.curve.to_pufferfish(table.epsilon),
            ended.to_pufferfish(table.epsilon, "group"),
            longest,
            leak,
        )
    tell.say(
        "Losses of ordinary mechanisms are added up per row, and translated once into what an"
        " adversary with that belief learns: by transport, by the paper's curve, and by counting"
        f" all {longest:,} rows of the busiest user at once."
    )
    lists = (table.epsilon, table.loss, translated.curve, translated.group)
    every = list(zip(*(values.tolist() for values in lists), strict=True))
    tell.table(["DP ε per row", "Pufferfish ε", "by the curve", "by the group"], every[1:])
    tell.say(
        f"How near the truth that is: at the last of these some mechanism really leaks {leak:.4g}."
    )
    return translated


def ladder(
    chain: MarkovChain, translation: Translation, working: Working | None = None
) -> tuple[TranslationTable, float]:
    """A small table, and what some mechanism leaks at the end of it.

    Even steps of per-entry ε, as far as the budget goes, each solved in full. They have few bits,
    so that sums of them are on the ladder too and composing loses nothing to rounding.
    `takifugu.translation.tabulate` makes a fine table, in more time.
    """
    near: UnboundedLosses | None = None

    def solve(epsilon: float) -> UnboundedLosses:
        return unbounded_losses(
            chain.transition, epsilon, tolerance=1e-2, near=near, with_lower=False
        )

    near = solve(PROBE)
    aim = 0.93 * BUDGET / RUNGS  # losses rise a little faster than ε
    step = float(np.floor(PROBE * aim / near.loss * 2**12) / 2**12)
    begin = min(PROBE, step / 2)  # below the first step, for what is left in the end
    grid: Floats = np.concatenate([[begin], np.arange(1, RUNGS + 1) * step])
    losses = translation.curve.to_pufferfish(grid)
    for rung, epsilon in enumerate(grid.tolist()):
        if working is not None:
            working(f"{rung} of {RUNGS}")
        if epsilon != near.epsilon:
            near = solve(epsilon)
        losses[rung] = min(losses[rung], near.loss)
    losses = np.minimum.accumulate(losses[::-1])[::-1]  # more ε never loses less
    leak = 0.0
    if translation.transport is not None:
        last = Bound(near.loss, by_values=near.upper)
        leak = translation.transport.witness(float(grid[-1]), last).leak
    return TranslationTable(translation.fingerprint, grid, losses), leak


def _ask(
    engine: Engine,
    ledger: Ledger,
    fitted: Fitted,
    translation: Translation,
    translated: Translated,
    tell: Teller,
    **facts: Any,
) -> Story:
    table, days = translated.table, _days(fitted)
    with tell.step("A budget", "setting the budget"):
        ledger.set_budget(DATASET, BUDGET)
        session = Session(
            engine, translation, ledger=ledger, dataset=DATASET, translation_table=table
        )
    tell.say(
        f"The owner allows a Pufferfish ε of {BUDGET} in all, for ever: {LEDGER} keeps to it,"
        " charge by charge, through crashes. Releases are from the last 100 days only."
    )
    with tell.step("First query: the top-3 of every country", "asking the first query"):
        first = session.plan.top_k(3, by="country", window=days, epsilon=FIRST)
        top = session.release(first)
        exact = engine.histogram(["country", "place"], _kept(fitted)).counts
        right = places_right(exact, engine, top)
    _tell_top(tell, first, top, right)
    with tell.step("Second query: where people of one country go", "asking the second query"):
        second = session.plan.proportions(where={"country": [LARGEST]}, window=days, epsilon=SECOND)
        shares = session.release(second)
    _tell_shares(tell, second, shares)
    with tell.step("Third query: too much", "asking the third query"):
        again = session.release(first)
        refused = _refusal(session, days)
    tell.say(f"Every count of every country, for ε = {THIRD}:")
    tell.lines(str(refused) if refused else "it was answered", style="red")
    tell.say(
        "The first query again: "
        + ("the same answer, for free." if again.free else "it was charged again.")
    )
    with tell.step("The ledger", "verifying the ledger"):
        report = ledger.verify()
        positions, events = ledger.positions(), tuple(ledger.history())
        readings = tuple(ledger.odometer(DATASET, table))
    tell.lines(*(_event(event.seq, event.kind, event.hash) for event in events))
    tell.say(
        f"{report.events} events, each with the hash of all before it:"
        f" {'sound' if report.sound else 'NOT sound'}. Spent: ε = {session.spent():.6g} of"
        f" {BUDGET}."
    )
    row = exact[engine.keys("country").index(LARGEST)]
    return Story(
        ledger=LEDGER,
        declaration=engine.declaration,
        fitted=fitted,
        curve=translation.curve,
        translated=translated,
        plans=(first, second),
        top=top,
        shares=shares,
        exact_shares=(row / max(int(row.sum()), 1)).tolist(),
        right=right,
        again=again,
        refused=refused,
        readings=readings,
        positions=positions,
        events=events,
        report=report,
        spent=session.spent(),
        guarantee=session.guarantee(),
        seconds=tell.seconds,
        **facts,
    )


def _kept(fitted: Fitted) -> Scope:
    """The rows that were kept apart, for releases."""
    if fitted.test is None:
        raise TypeError("the prior was fitted on a split, and so some rows were kept apart")
    return fitted.test


def _days(fitted: Fitted) -> tuple[datetime, None]:
    """The same, as a window."""
    start = _kept(fitted).start
    if not isinstance(start, datetime):
        raise TypeError("a split in time begins with a time")
    return start, None


def _refusal(session: Session, days: tuple[datetime, None]) -> OverBudget | None:
    """What the session says to a query that the budget does not admit."""
    try:
        session.release(session.plan.histogram(by="country", window=days, epsilon=THIRD))
    except OverBudget as refused:
        return refused
    return None


def places_right(exact: Integers, engine: Engine, top: Result) -> list[int]:
    """``[place]``: for how many countries the named label has the count of that place.

    Only a made-up world may be looked at like this. Labels with equal counts share a place.
    """
    countries, labels = engine.keys("country"), engine.keys("place")
    ranked = -np.sort(-exact, axis=1)
    right: dict[int, int] = {}
    for country, place, label in top.rows:
        row = countries.index(country)
        hit = exact[row, labels.index(label)] == ranked[row, place - 1]
        right[place] = right.get(place, 0) + int(hit)
    return [right[place] for place in sorted(right)]


def _tell_top(tell: Teller, plan: Plan, top: Result, right: Sequence[int]) -> None:
    tell.say(*_price(plan, top))
    places = [top.rows[k : k + 3] for k in range(0, 3 * SHOWN, 3)]
    tell.table(
        ["", "place 1", "place 2", "place 3"], [[p[0][0], *(r[2] for r in p)] for p in places]
    )
    countries = len(top.rows) // 3
    tell.say(
        f"… and {countries - SHOWN} more countries, all for one charge: they share no rows."
        f" Because the world is made up we may look: of {countries} countries"
        f" {right[0]} first, {right[1]} second and {right[2]} third places are right."
    )


def _tell_shares(tell: Teller, plan: Plan, shares: Result) -> None:
    tell.say(*_price(plan, shares))
    best = sorted(shares.rows, key=lambda row: -row[1])[:5]
    tell.table(
        [f"in {LARGEST}", "share", "from", "to"],
        [[label, *(f"{value:.2%}" for value in numbers)] for label, *numbers in best],
    )


def _price(plan: Plan, result: Result) -> tuple[str, str]:
    cost = result.cost
    return (
        f"Charged: ε = {cost.alone:.4g} alone, {cost.marginal:.4g} on top of what was spent before;"
        f" {cost.left:.4g} left.",
        f"How: {plan.reason}",
    )


def _event(seq: int, kind: str, mark: str) -> str:
    return f"{seq}  {kind:<9}  {mark}"
