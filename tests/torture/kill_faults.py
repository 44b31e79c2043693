"""``python -m tests.torture.kill_faults SEED WHAT …``: trials of ledgers with planted faults.

``WHAT`` is a fault, or ``SCENARIO=SIZE`` for a trial without one.

In a process of its own: what is killed must be made from one without threads.
"""

import fcntl
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np

from takifugu.costs.losses import Pure
from takifugu.errors import (
    BudgetExceeded,
    LedgerDamaged,
    LedgerUnavailable,
    LedgerUnwritable,
    TakifuguError,
    TooLarge,
)
from takifugu.ledger import Anchor, Charge, Ledger, Receipt, open_ledger
from takifugu.ledger.charge_values import loss_body
from takifugu.ledger.storage import migrations
from takifugu.ledger.storage.database import Connection, Statement
from takifugu.ledger.witnesses.state_folder import FileWitness
from tests.ledger.charges import Doubling
from torture.kills import disks, jobs, migrating, stopped, torn
from torture.kills.__main__ import facts
from torture.kills.accounts import Acknowledged
from torture.kills.jobs import Kind, Place, asking, draw, release, releasing, resuming
from torture.kills.scenarios import SCENARIOS, NotHere, Setting
from torture.kills.storms import Outcome, folder_for, run_storm, settle
from torture.kills.strikes import Notes, alone

KILLS = 16


def unwritten(ledger: Ledger, wanted: Any) -> Receipt:
    """A receipt for a charge that is not written."""
    return Receipt(
        anchor=Anchor(0, ""),
        key=wanted.key,
        dataset=wanted.dataset,
        analyst=None,
        at=ledger._time(),
        may_release=True,
        resumable=False,
    )


def hasty(ledger: Ledger) -> None:
    """Acknowledge a charge before it is committed."""
    really = ledger.charge

    def charge(wanted: Any, translation: Any, **options: Any) -> Receipt:
        def later() -> None:
            time.sleep(0.01)
            really(wanted, translation, **options)

        threading.Thread(target=later).start()
        return unwritten(ledger, wanted)

    _set(ledger, "charge", charge)
    _set(ledger, "record_answer", lambda *_: None)


def locked_by_a_file(ledger: Ledger) -> None:
    """Keep others out by a file, which a process that is killed leaves behind."""
    really, lock = ledger.charge, f"{ledger.name}.lock"

    def charge(*given: Any, **options: Any) -> Receipt:
        for _ in range(30):
            try:
                os.close(os.open(lock, os.O_CREAT | os.O_EXCL))
                break
            except FileExistsError:
                time.sleep(0.01)
        else:
            raise LedgerUnavailable("others hold it locked", reason="locked")
        try:
            return really(*given, **options)
        finally:
            os.unlink(lock)

    _set(ledger, "charge", charge)


def forgetful(ledger: Ledger) -> None:
    """Take every attempt under a key for a new one."""
    really = ledger.charge

    def charge(wanted: Any, translation: Any, **_: Any) -> Receipt:
        anew = replace(wanted, key=f"{wanted.key} {os.urandom(4).hex()}")
        return replace(really(anew, translation), key=wanted.key)

    _set(ledger, "charge", charge)


def _set(ledger: Ledger, name: str, method: Any) -> None:
    setattr(ledger, name, method)


def opened_with(fault: Callable[[Ledger], None]) -> Callable[..., Ledger]:
    """Opens ledgers that have the fault."""

    def opener(*given: Any, **options: Any) -> Ledger:
        ledger = open_ledger(*given, **options)
        fault(ledger)
        return ledger

    return opener


def shown_first(ledger: Ledger, wanted: Any, place: Place, rng: Any, say: Notes) -> None:
    """Draw and show an answer, then charge for it."""
    say("shown", wanted.key, draw(rng))
    time.sleep(0.005)
    say("now", "charge")
    receipt = ledger.charge(wanted, place.translation)
    jobs.acknowledge(receipt, wanted, say)


class Cheap(Doubling):
    """Counts half of what it should."""

    def to_pufferfish(self, dp: float, /) -> float:
        """Too little."""
        return dp

    def to_dp(self, pufferfish: float, /) -> float:
        """Too much."""
        return pufferfish


def thousandths() -> Any:
    """Events that say a thousandth of each loss."""
    inner = Charge.body

    def body(self: Charge) -> dict[str, Any]:
        assert isinstance(self.loss, Pure)
        return inner(self) | {"loss": loss_body(Pure(self.loss.epsilon / 1000))}

    return patch.object(Charge, "body", body)


class StepByStep:
    """Notes a step of a migration and commits: a kill leaves what is between two versions."""

    def __init__(self, noted: Statement) -> None:
        self._noted = noted

    def run(self, connection: Connection, values: Any) -> None:
        """Note it, and end the transaction."""
        self._noted.run(connection, values)
        connection.raw.execute("COMMIT")
        time.sleep(0.005)
        connection.raw.execute("BEGIN IMMEDIATE")


def halfway(rng: np.random.Generator) -> Outcome:
    """Migrations that are not one transaction."""
    with folder_for(rng) as folder, patch.object(migrations, "_DONE", StepByStep(migrations._DONE)):
        old = migrating.places(folder, lambda own: str(own / "old.ledger"))
        return migrating.run_migrations(old, rng, 2 * KILLS)


def without_a_witness(rng: np.random.Generator) -> Outcome:
    """Logs that are gone, of ledgers that have nobody to notice."""
    done = Outcome()
    with folder_for(rng) as folder:
        for number in range(8):
            own = folder / str(number)
            own.mkdir()
            place = Place(str(own / "ward.ledger"), own, False)
            done.add(torn.run_torn(place, rng, (torn.drop_log,)))
    return done


def after_a_tear(error: TakifuguError) -> Callable[..., Ledger]:
    """Opens ledgers, but none whose files may have been torn."""

    def opener(*given: Any, **options: Any) -> Ledger:
        if options.get("wait") == 5:
            raise error
        return open_ledger(*given, **options)

    return opener


def torn_once(opener: Callable[..., Ledger], rng: np.random.Generator) -> Outcome:
    """Files that are left as they were."""
    with folder_for(rng) as folder:
        place = Place(str(folder / "ward.ledger"), folder, True, opener)
        return torn.run_torn(place, rng, (torn.leave,))


def slow(ledger: Ledger) -> None:
    """Wait for nobody."""
    really = ledger.charge

    def charge(*given: Any, **options: Any) -> Receipt:
        time.sleep(1.5)
        return really(*given, **options)

    _set(ledger, "charge", charge)


def miserly(ledger: Ledger) -> None:
    """Refuse every charge."""

    def charge(*_: Any, **__: Any) -> Receipt:
        none: Any = {"analyst": None, "currency": "epsilon", "left": Fraction(0)}
        raise BudgetExceeded("stays", dataset="ward", needs=Fraction(1), **none)

    _set(ledger, "charge", charge)


def gone(ledger: Ledger) -> None:
    """End without a word at a charge."""
    _set(ledger, "charge", lambda *_, **__: os._exit(0))


def uncounted(ledger: Ledger) -> None:
    """Have no account of anything."""
    _set(ledger, "positions", lambda: ())


SETTLING = {"slow": slow, "miserly": miserly, "gone": gone, "uncounted": uncounted}


def settled(fault: str, rng: np.random.Generator) -> Outcome:
    """A new ledger that is charged when everybody is dead; a second must be enough."""
    with folder_for(rng) as folder:
        place = Place(str(folder / "ward.ledger"), folder)
        alone(lambda _: jobs.make(place, 1000))
        faulty = replace(place, opener=opened_with(SETTLING[fault]))
        return Outcome(faults=settle(faulty, Acknowledged(), 1000, longest=1.0))


def endless(rng: np.random.Generator) -> Outcome:
    """A lock that is waited for without an end."""

    def lock(_: FileWitness, handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX)

    with (
        folder_for(rng) as folder,
        patch.object(stopped, "LONG", 3.0),
        patch.object(FileWitness, "_lock", lock),
    ):
        place = Place(str(folder / "ward.ledger"), folder)
        return stopped.run_stopped(place, rng, "_record")


def careless(ledger: Ledger) -> None:
    """Acknowledge one charge, or one answer, that could not be written."""
    charge, record, done = ledger.charge, ledger.record_answer, list[int]()

    def pretended(really: Callable[[], Any], otherwise: Any) -> Any:
        try:
            return really()
        except LedgerUnwritable:
            if done:
                raise
            done.append(1)
            return otherwise

    def charged(wanted: Any, *given: Any, **options: Any) -> Any:
        return pretended(lambda: charge(wanted, *given, **options), unwritten(ledger, wanted))

    def recorded(receipt: Receipt, answer: Any) -> Any:
        return pretended(lambda: record(receipt, answer), SimpleNamespace(value=answer))

    _set(ledger, "charge", charged)
    _set(ledger, "record_answer", recorded)


def trial(name: str, size: int, rng: np.random.Generator) -> dict[str, Any]:
    """A trial of a scenario as it is."""
    (scenario,) = (one for one in SCENARIOS if one.name == name)
    try:
        return facts(scenario.trial(Setting(rng, size)))
    except NotHere as reason:
        return {"not here": str(reason)}


def planted(fault: str, rng: np.random.Generator) -> Outcome:
    """A trial with the named fault; "none" for none."""
    if fault == "halfway":
        return halfway(rng)
    if fault == "no witness":
        return without_a_witness(rng)
    if fault == "endless":
        return endless(rng)
    if fault == "never opens":
        return torn_once(after_a_tear(LedgerDamaged("damaged", reason="storage")), rng)
    if fault == "another error":
        return torn_once(after_a_tear(TooLarge("too large")), rng)
    if fault in SETTLING:
        return settled(fault, rng)
    if fault == "careless":
        with folder_for(rng) as folder:
            place = Place(str(folder / "ward.ledger"), folder, opener=opened_with(careless))
            return disks.run_limited(place, rng)
    return storm_with(fault, rng)


def storm_with(fault: str, rng: np.random.Generator) -> Outcome:
    """A storm on a ledger with the named fault; "none" for none."""
    openers = {"hasty": hasty, "lock": locked_by_a_file, "forgetful": forgetful}
    how = shown_first if fault == "shown first" else release
    kinds = {"release": Kind(lambda place, own: releasing(place, own, how), 1, 12_000, 400)}
    if fault == "forgetful":
        kinds = {"resume": Kind(resuming, 1)}
    if fault == "thousandths of sessions":
        kinds = {"session": Kind(asking, 1, calls=60_000, kernel=600)}
    few = thousandths() if fault.startswith("thousandths") else nullcontext()
    with folder_for(rng) as folder, few:
        place = Place(str(folder / "ward.ledger"), folder)
        if fault in openers:
            place = replace(place, opener=opened_with(openers[fault]))
        if fault == "cheap":
            place = replace(place, translation=Cheap())
        return run_storm(
            place, rng, KILLS, budget=Fraction(1, 8) if fault == "cheap" else 1000, jobs=kinds
        )


if __name__ == "__main__":
    jobs.warm()
    seed, *names = sys.argv[1:]
    found = {}
    for name in names:
        scenario, _, size = name.partition("=")
        rng = np.random.default_rng(int(seed))
        found[scenario] = trial(scenario, int(size), rng) if size else facts(planted(name, rng))
    sys.stdout.write(json.dumps(found))
