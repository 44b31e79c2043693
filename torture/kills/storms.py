"""Eight processes on one ledger, killed one after another; then the accounts are compared."""

import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from tests.ledger.folders import in_memory
from tests.oracles.ledger_sums import PlainEvent, events_of
from torture.kills import accounts
from torture.kills.accounts import OTHER, STALE, Acknowledged, Fault
from torture.kills.jobs import DATASET, JOBS, TABLE, Kind, Place, asked, make, release, request
from torture.kills.strikes import Child, Job, Notes, Strike, alone, random_strike, storm

AT_ONCE = 8
BUDGETS = (2, 16, 1000)
LONGEST = 30.0  # seconds that a charge may take when everybody else is dead


@dataclass
class Outcome:
    """What a trial came to.

    Attributes:
        kills: Processes that were killed, or whatever else a scenario counts.
        moments: What they were doing, and how often.
        points: Where those were struck that were killed at a call.
        acknowledged: Charges that were acknowledged.
        faults: What must not be.
        details: Other counts.
    """

    kills: int = 0
    moments: Counter[str] = field(default_factory=Counter)
    points: Counter[str] = field(default_factory=Counter)
    acknowledged: int = 0
    faults: list[Fault] = field(default_factory=list)
    details: Counter[str] = field(default_factory=Counter)

    def add(self, other: "Outcome") -> None:
        """Count another trial as well."""
        self.kills += other.kills
        self.acknowledged += other.acknowledged
        self.moments += other.moments
        self.points += other.points
        self.details += other.details
        self.faults += other.faults


@contextmanager
def folder_for(rng: np.random.Generator) -> Iterator[Path]:
    """A folder, mostly in memory, with a state folder of its own for witnesses."""
    with ExitStack() as stack:
        if rng.random() < 0.8:
            made = stack.enter_context(in_memory())
        else:
            made = Path(stack.enter_context(TemporaryDirectory()))
        before = os.environ.get("XDG_STATE_HOME")
        os.environ["XDG_STATE_HOME"] = str(made / "state")
        try:
            yield made
        finally:
            if before is None:
                del os.environ["XDG_STATE_HOME"]
            else:
                os.environ["XDG_STATE_HOME"] = before


def sqlite_place(folder: Path, rng: np.random.Generator) -> Place:
    """A ledger in a file, with one of the witnesses that there are."""
    kinds: list[str | bool] = [True, f"{folder}/heads", f"sqlite:///{folder}/heads.db", False]
    kind = kinds[int(rng.choice(4, p=[0.5, 0.2, 0.2, 0.1]))]
    return Place(str(folder / "ward.ledger"), folder, kind)


def run_storm(
    place: Place,
    rng: np.random.Generator,
    kills: int,
    *,
    budget: int | Fraction | None = None,
    jobs: Mapping[str, Kind] = JOBS,
) -> Outcome:
    """Kill so many processes on one new ledger and compare the accounts."""
    limit = int(rng.choice(BUDGETS)) if budget is None else budget
    made = alone(lambda _: make(place, limit))
    known = Acknowledged()
    known.take(made)
    done = Outcome()
    names, shares = list(jobs), np.array([kind.share for kind in jobs.values()])

    def planned() -> Iterator[tuple[str, Job, Strike]]:
        while done.kills < kills and not (known.trouble and len(known.trouble) > 20):
            name = str(rng.choice(names, p=shares / shares.sum()))
            kind = jobs[name]
            strike = random_strike(rng, calls=kind.calls, kernel=kind.kernel)
            if name == "session" and strike.kind == "delay":
                strike = replace(strike, amount=strike.amount * 5)
            yield name, kind.job(place, np.random.default_rng(rng.integers(2**63))), strike

    for child in storm(planned(), AT_ONCE):
        known.take(child)
        if child.killed:
            done.kills += 1
            done.moments[child.moment] += 1
            for _, kind, point in child.said("struck"):
                done.points[f"{kind}: {point}" if kind == "syscall" else kind] += 1
        elif not child.said("trouble"):
            done.faults.append(Fault(OTHER, f"{child.name} ended by itself"))
    done.faults += settle(place, known, limit)
    done.acknowledged = known.charges
    done.details.update(
        {
            "shown answers": len(known.shown) + len(known.answered),
            "refused": known.refused,
            "copies": len(known.copied),
            "unfinished copies left": len(list(place.folder.glob(".takifugu-*.part"))),
        }
    )
    return done


def settle(
    place: Place, known: Acknowledged, budget: int | Fraction, longest: float = LONGEST
) -> list[Fault]:
    """What must not be, once everybody is dead; a charge that takes longer waits for nobody."""
    after = alone(lambda say: _charge_once(place, say))
    found = [
        Fault(STALE, f"nobody can charge any more: {' · '.join(map(str, what))}")
        for _, *what in after.said("trouble")
    ]
    found += [
        Fault(STALE, f"nobody is left, and a charge took {seconds:.1f} s")
        for _, seconds in after.said("took")
        if seconds > longest
    ]
    known.take(replace(after, notes=[note for note in after.notes if note[0] != "trouble"]))
    events = events_of(place.address)
    if not found:
        found += _ended(place, after, events, budget)
    found += accounts.faults(known, events, budget)
    found += accounts.copies(known, place.folder, events)
    checked = alone(lambda say: _check(place, say))
    found += [
        Fault(OTHER, f"verify: {' · '.join(map(str, what))}")
        for _, *what in checked.said("trouble")
    ]
    told = {dataset: worst for _, dataset, worst in checked.said("worst")}
    for dataset, largest in accounts.sums(events).items():
        counted_as = told.get(dataset, "0")  # where it has no account of it
        if counted_as != str(largest):
            text = f"{dataset}: the ledger counts {counted_as}, its events say {largest}"
            found.append(Fault(accounts.OVERSPENT, text))
    return found


def _ended(
    place: Place, after: Child, events: list[PlainEvent], budget: int | Fraction
) -> list[Fault]:
    """Whether a charge with everybody dead was made, or was refused because it does not fit."""
    if after.said("recorded"):
        return []
    if not after.said("refused"):
        return [Fault(STALE, f"a charge was neither made nor refused: {after.notes[-1:]}")]
    loss, window, groups = asked(request(np.random.default_rng(0), "afterwards", place))
    body = {
        "dataset": DATASET,
        "loss": {"currency": "pure", "epsilon": loss},
        "window": window and dict(zip(("start", "end"), window, strict=True)),
        "groups": groups and dict(zip(("columns", "keys"), groups, strict=True)),
    }
    with_it = [*events, PlainEvent(len(events) + 1, "", "charge", body)]
    if accounts.FACTOR[DATASET] * accounts.sums(with_it)[DATASET] <= budget:
        return [Fault(OTHER, "a charge that fits into the budget was refused")]
    return []


def _charge_once(place: Place, say: Notes) -> None:
    rng, began = np.random.default_rng(0), time.monotonic()
    with place.open() as ledger:
        release(ledger, request(rng, "afterwards", place), place, rng, say)
    say("took", time.monotonic() - began)


def _check(place: Place, say: Notes) -> None:
    """The ledger's own account, and the backups opened as ledgers."""
    with place.open() as ledger:
        report = ledger.verify()
        for problem in report.problems[:3]:
            say("trouble", "Unsound", "", str(problem)[:1000], "")
        for position in ledger.positions():
            if position.dataset in (DATASET, TABLE) and position.analyst is None:
                say("worst", position.dataset, str(max(one.epsilon for one in position.worst)))
    for path in sorted(place.folder.glob("backup *"))[:5]:
        with place.opener(path, inspect=True, witness=False) as copy:
            for problem in copy.verify().problems[:3]:
                say("trouble", "Unsound", path.name, str(problem)[:1000], "")
    if place.sqlite and (log := Path(f"{place.address}-wal")).exists() and log.stat().st_size:
        say("trouble", "Log", "", "the log of a closed ledger is not empty", "")


def counted(outcome: Outcome) -> dict[str, Any]:
    """The faults of each kind, in order."""
    kinds = Counter(fault.kind for fault in outcome.faults)
    return {kind: kinds[kind] for kind in accounts.KINDS}
