"""What the processes do that are killed: they release, resume, back up, reopen, verify.

Each says "now" before it does something, and what came of it after the call has returned. What it
has shown to somebody it says as "shown": from then on it must be paid for.
"""

import itertools
import os
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb  # noqa: F401 - imported before processes are made, and not in each of them
import numpy as np

from takifugu.declarations import Category, Declaration, Order, Source
from takifugu.errors import BudgetExceeded
from takifugu.ledger import Ledger, open_ledger
from takifugu.mechanisms import COUNT, IntegerLaplace
from takifugu.priors import MarkovChain
from takifugu.session import OverBudget, Session
from takifugu.tables import open_engine
from takifugu.translation.protocol import LossTranslation
from takifugu.translation.translation import Translation
from tests.ledger.charges import DOUBLING, charge
from tests.ledger.folders import in_memory
from tests.session.world import ROWS, STATES, ZONES, declaration
from torture.kills.strikes import Job, Notes

DATASET, TABLE = "ward", "visits"  # budgets: of charges by hand, and of sessions
STEPS, COUNTRIES = 12, ("de", "fr", "it")
NOISE = IntegerLaplace(16.0, COUNT)
WAIT = 120.0  # seconds; on a machine that does much else, eight processes wait for one lock
INDEPENDENT = Translation(MarkovChain(np.array([[0.7, 0.3]] * 2), states=STATES, length=4))
UNIT = Fraction(1, 64)


@dataclass(frozen=True)
class Place:
    """A ledger that is tortured.

    Attributes:
        address: Where it is.
        folder: For what lies beside it: backups, a table.
        witness: As for `open_ledger`.
        opener: Opens it; another one is a planted fault.
        translation: What charges mean; another one is a planted fault.
    """

    address: str
    folder: Path
    witness: str | bool = True
    opener: Callable[..., Ledger] = open_ledger
    translation: LossTranslation = DOUBLING

    @property
    def sqlite(self) -> bool:
        """Whether it is in a file."""
        return "://" not in self.address

    def open(self, **options: Any) -> Ledger:
        """Open it in this process."""
        given = {"wait": WAIT, "create": False, "witness": self.witness} | options
        return self.opener(self.address, **given)


def warm() -> None:
    """Do once what every process would do again; what is opened here is closed before any fork."""
    with suppress(ModuleNotFoundError):  # without it there are no ledgers on a server
        import takifugu.ledger.storage.postgresql  # noqa: F401
    rng = np.random.default_rng(0)
    INDEPENDENT.to_pufferfish(INDEPENDENT.to_dp(1.0))
    with in_memory() as folder:
        place = Place(str(folder / "ward.ledger"), folder, str(folder / "heads"))
        make(place, 1)
        with place.open() as ledger:
            release(ledger, request(rng, "warm", place), place, rng, Notes(None))
            ledger.backup(folder / "backup")


def make(place: Place, budget: int | Fraction) -> None:
    """A new ledger with its budgets, and a table for sessions."""
    with place.open(create=True) as ledger:
        ledger.set_budget(DATASET, budget)
        ledger.set_budget(TABLE, budget)
    declaration(place.folder, ROWS)  # writes the file of the table


def table(place: Place) -> Declaration:
    """The table that sessions ask about."""
    return Declaration(
        source=Source("csv", path=str(place.folder / "visits.csv")),
        entity="person",
        order=Order("step", "number"),
        protected=(Category("state", STATES, "refuse"),),
        public=(Category("zone", ZONES, "refuse"),),
    )


def request(rng: np.random.Generator, name: str, place: Place) -> Any:
    """A charge for a few steps of some countries, under a name that is its key and its query."""
    start = int(rng.integers(0, STEPS))
    window = (start, start + int(rng.integers(1, 5))) if rng.random() < 0.8 else None
    some = sorted(rng.choice(COUNTRIES, size=int(rng.integers(1, 4)), replace=False).tolist())
    groups = some if rng.random() < 0.7 else None
    made = charge(UNIT * int(rng.integers(1, 5)), window, groups)
    return replace(
        made, key=name, query={"name": name}, translation=place.translation.fingerprint or ""
    )


def draw(rng: np.random.Generator) -> int:
    """A count with noise, as of a release: from OpenDP, and never from ``rng``."""
    return int(np.asarray(NOISE.release(np.array([int(rng.integers(0, 50))])))[0])


def asked(wanted: Any) -> list[Any]:
    """What a charge is for, in plain words: its ε, the window and the groups."""
    window, groups = wanted.window, wanted.groups
    return [
        str(wanted.loss.epsilon),
        None if window is None else [window.start, window.end],
        None if groups is None else [list(groups.columns), sorted(map(list, groups.keys))],
    ]


def acknowledge(receipt: Any, wanted: Any, say: Notes) -> None:
    """Say that a charge was made: as which event, and for what."""
    say("charged", wanted.key, receipt.anchor.seq, receipt.anchor.hash, *asked(wanted))


def release(ledger: Ledger, wanted: Any, place: Place, rng: Any, say: Notes) -> None:
    """Charge, draw, show, record: what a session does."""
    say("now", "charge")
    try:
        receipt = ledger.charge(wanted, place.translation)
    except BudgetExceeded:
        say("refused", wanted.key)
        return
    acknowledge(receipt, wanted, say)
    say("now", "draw")
    value = draw(rng)
    say("shown", wanted.key, value)
    say("now", "record")
    ledger.record_answer(receipt, value)
    say("recorded", wanted.key, value)
    say("now", "idle")


def releasing(place: Place, rng: np.random.Generator, how: Callable[..., None] = release) -> Job:
    """Release over and over, each time something new."""

    def job(say: Notes) -> None:
        say("now", "open")
        with place.open() as ledger:
            for turn in itertools.count():
                how(ledger, request(rng, f"{os.getpid()}.{turn}", place), place, rng, say)

    return job


def resuming(place: Place, rng: np.random.Generator, keys: int = 40) -> Job:
    """Try the same few requests again and again, as a server does: one charge, one answer each."""

    def job(say: Notes) -> None:
        say("now", "open")
        with place.open() as ledger:
            while True:
                number = int(rng.integers(0, keys))
                wanted = request(np.random.default_rng(number), f"resumed.{number}", place)
                say("now", "charge")
                try:
                    receipt = ledger.charge(wanted, place.translation, resume=True)
                except BudgetExceeded:
                    say("refused", wanted.key)
                    continue
                acknowledge(receipt, wanted, say)
                say("shown", wanted.key, _answer(ledger, receipt, wanted, rng, say))

    return job


def _answer(ledger: Ledger, receipt: Any, wanted: Any, rng: Any, say: Notes) -> Any:
    if receipt.may_release:
        say("now", "draw")
        value = draw(rng)
        say("now", "record")
        stored = ledger.record_answer(receipt, value)
        say("recorded", wanted.key, stored.value)
    else:
        earlier = ledger.earlier(wanted)
        if earlier is None or earlier.answer is None:
            raise AssertionError("no right to draw, and no answer")
        stored = earlier.answer
    say("now", "idle")
    return stored.value


def asking(place: Place, rng: np.random.Generator) -> Job:
    """Sessions on a real table: plan and release histograms, half of them under keys."""

    def job(say: Notes) -> None:
        say("now", "open")
        with (
            open_engine(table(place), threads=1) as engine,
            place.open() as ledger,
            closing(Session(engine, INDEPENDENT, ledger=ledger, dataset=TABLE)) as session,
        ):
            for turn in itertools.count():
                say("now", "plan")
                epsilon = f"0.0{1 + turn % 3}{os.getpid():07}{turn:03}"
                plan = session.plan.histogram(epsilon=epsilon)
                say("now", "release")
                key = f"asked {os.getpid()}.{turn}" if rng.random() < 0.5 else None
                try:
                    result = session.release(plan, accept_noise=True, key=key)
                except OverBudget:
                    say("refused", epsilon)
                    continue
                came = result.provenance
                assert came is not None
                lost = str(result.cost.per_entry)
                say("answered", came.charge.seq, came.charge.hash, came.answer.seq, lost)

    return job


def backing_up(place: Place, rng: np.random.Generator) -> Job:
    """Charge a little and back up, over and over; of a server, export the events."""

    def job(say: Notes) -> None:
        say("now", "open")
        with place.open() as ledger:
            for turn in itertools.count():
                name = f"{'backup' if place.sqlite else 'export'} {os.getpid()}.{turn}"
                head = ledger.head()
                say("now", "backup")
                say("copying", name, head.seq)
                if place.sqlite:
                    ledger.backup(place.folder / name)
                else:
                    ledger.export(place.folder / name)
                say("copied", name, head.seq)
                release(ledger, request(rng, f"{os.getpid()}.{turn}", place), place, rng, say)

    return job


def reopening(place: Place, rng: np.random.Generator) -> Job:
    """Open, release once, close, over and over."""

    def job(say: Notes) -> None:
        for turn in itertools.count():
            say("now", "open")
            with place.open() as ledger:
                release(ledger, request(rng, f"{os.getpid()}.{turn}", place), place, rng, say)
                say("now", "close")
            say("closed")

    return job


def verifying(place: Place, rng: np.random.Generator) -> Job:
    """Verify while others write, and decide something now and then, as an owner does."""

    def job(say: Notes) -> None:
        say("now", "open")
        with place.open() as ledger:
            for turn in itertools.count():
                say("now", "verify")
                report = ledger.verify()
                if not report.sound:
                    say("trouble", "Unsound", "", str(report.problems[0])[:1000], "")
                say("verified", report.head.seq)
                say("now", "decide")
                ledger.set_budget(f"of {os.getpid()}.{turn}", int(rng.integers(1, 9)))
                say("decided")

    return job


@dataclass(frozen=True)
class Kind:
    """A kind of job.

    Attributes:
        job: Makes one.
        share: How many of all children do it.
        calls: About as many calls of functions as it makes in a while.
        kernel: About as many stops at calls to the kernel.
    """

    job: Callable[[Place, np.random.Generator], Job]
    share: float
    calls: int = 12_000
    kernel: int = 400


JOBS = {
    "release": Kind(releasing, 0.44),
    "resume": Kind(resuming, 0.25),
    "session": Kind(asking, 0.08, calls=60_000, kernel=600),
    "reopen": Kind(reopening, 0.13),
    "backup": Kind(backing_up, 0.06, calls=40_000, kernel=1500),
    "verify": Kind(verifying, 0.04, calls=40_000),
}
