"""A server against sums that are added by hand: requests, keys, decisions, workers that die.

After every step: no cell has lost more than the ledger counts for it; every answer has the charge
that it names, at the price that a plan said; a key that is asked for twice is charged once; what
was acknowledged is there; the ledger is sound.
"""

import itertools
import os
import signal
import threading
from fractions import Fraction
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from takifugu.ledger import open_ledger
from tests.oracles.ledger_sums import PlainEvent, events_of
from tests.session.zone_namings import ZONE_NAMINGS
from torture.models.counted_machine import CRASHED, CountedMachine, must
from torture.models.served_site import SITE
from torture.models.session_releases import queries
from torture.models.session_state import TableSums
from torture.models.table_model import CLOCKS, HEALTH, PLACES, Asked, Held, TableModel

BUDGETS = ("0", "1", "2", "4", "8")
ANALYSTS = ("ana", "bo")
analysts, keys = st.sampled_from(ANALYSTS), st.sampled_from(("first", "second", "third"))
DELAYS = (0.0, 0.002, 0.01, 0.03, 0.1)  # seconds until a worker is killed
LOST = (500, 502, 503)  # statuses of a request whose worker was lost


class ServerMachine(CountedMachine, TableSums):
    """The whole machine of servers."""

    machine: ClassVar[str] = "server"

    def __init__(self) -> None:
        super().__init__()
        self.before = os.environ.get("XDG_STATE_HOME")
        self.begun = False
        self.asked = self.restarted_at = 0  # releases that were asked for, now and then
        self.there = dict[int, Any]()  # the rows that were shown, by the charge that paid
        self.requests = dict[tuple[str, str], Asked]()
        self.paid = dict[tuple[str, str], int]()
        self.numbers = itertools.count(1)

    def teardown(self) -> None:
        """Leave the server to the next example."""
        super().teardown()
        if self.before is None:
            os.environ.pop("XDG_STATE_HOME", None)
        else:
            os.environ["XDG_STATE_HOME"] = self.before

    @classmethod
    def finish(cls) -> None:
        """Stop the server."""
        SITE.close()

    @initialize()
    def begin(self) -> None:
        """A dataset with a budget."""
        self.dataset = SITE.begin()
        self.begin_sums(TableModel(("place",), prefix=f"{self.dataset} "))
        self.prior = 0
        SITE.write(self.dataset, self.table)
        SITE.write_prior(self.dataset, 0)
        SITE.enter(self.dataset)
        self.enter_budget(None, BUDGETS[3])
        self.begun = True

    # --- requests ---

    def events(self) -> list[PlainEvent]:
        """The events of the dataset, by plain SQL."""
        every = events_of(str(SITE.ledger))
        return [event for event in every if event.body.get("dataset") == self.dataset]

    def call(self, who: str, method: str, path: str, **how: Any) -> Any:
        """One request about the dataset.

        It may be given to a worker that was killed a moment ago: it then has done nothing, and is
        asked again. Whoever is told of a lost worker when none was killed has found something.
        """
        while True:
            dead = SITE.killed.intersection(SITE.workers())
            before = len(self.events()) if dead else 0
            answer = self.send(who, method, path, **how)
            if not _lost(answer) or dead.issubset(SITE.workers()):
                return answer
            must(len(self.events()) == before, "a worker that was killed before has left a trace")
            self.took("request to a killed worker", CRASHED)

    def send(self, who: str, method: str, path: str, **how: Any) -> Any:
        """The same, once."""
        return SITE.server.ask(who, method, f"/api/v1/datasets/{self.dataset}{path}", **how)

    def enter_budget(self, analyst: str | None, most: str) -> None:
        """The owner sets a budget."""
        answer = self.call("olga", "PUT", "/budget", json={"epsilon": most, "analyst": analyst})
        must(answer.status_code == 200, f"a budget was refused: {answer.text}")
        self.budgets[analyst] = Fraction(most)

    def query(self, asked: Asked) -> dict[str, Any]:
        """A query as it is sent."""
        options = {key: value for key, value in self.table.options(asked).items() if value}
        if asked.kind == "count":
            return {"kind": "count", "values": PLACES[0], "column": "place", **options}
        return {"kind": "histogram", "column": "place", **options}

    def release(self, step: str, who: str, asked: Asked, key: str, kill: float | None) -> None:
        """Plan, release, and hold both against the ledger."""
        self.asked += 1
        plan = self.call(who, "POST", "/plans", json={"query": self.query(asked)})
        before = self.events()[-1].seq
        timer = None
        if kill is not None:
            timer = threading.Timer(kill, _kill, SITE.workers())
            timer.start()
        answer = (self.call if timer is None else self.send)(
            *(who, "POST", "/releases"),
            json={"query": self.query(asked), "accept_noise": True},
            headers={"Idempotency-Key": key},
        )
        if timer is not None:
            timer.join()
        new = [event for event in self.events() if event.seq > before]
        charged = [event.seq for event in new if event.kind == "charge"]
        must(len(charged) <= 1, "a release was charged twice")
        if charged:
            must(plan.status_code == 200, "what could not be planned was charged")
            document = plan.json()["plan"]
            must(document["cost"]["fits"], "a plan that does not fit was charged")
            self.note(asked, float(document["mechanism"]["scale"]), who)
            self.there.setdefault(charged[0], None)
            must(self.paid.setdefault((who, key), charged[0]) == charged[0], "a key was paid twice")
        if answer.status_code == 201:
            self.look(step, who, answer.json(), plan, charged, new, asked)
        elif kill is not None and answer.status_code in LOST:
            self.took(step, CRASHED)
        else:
            edited = self.named != (self.table.naming, self.table.clock)
            kind = answer.json()["type"].rpartition(":")[2]  # what was edited, owners alone learn
            must(answer.status_code < 500 or (edited and kind == "server"), answer.text)
            must(not new, f"a refused release left {[event.kind for event in new]}")
            self.took(step, "CellsChanged" if answer.status_code == 503 else kind)

    def look(
        self, step: str, who: str, shown: Any, plan: Any, charged: list[int],
        new: list[PlainEvent], asked: Asked,
    ) -> None:  # fmt: skip
        """What was shown: paid for, once, at the price that was planned, and always the same."""
        result, number = shown["result"], shown["charge"]
        rows = result["raw"]
        must(number in self.there, "an answer that nobody paid for")
        known = self.there[number]
        must(known in (None, rows), "two answers of one charge")
        self.there[number] = rows
        if charged:
            must(
                number == charged[0] and not result["free"], "a charge is not the one that is named"
            )
            planned = plan.json()["plan"]["cost"]
            for part in ("per_entry", "alone", "before", "after"):
                must(result["cost"][part] == planned[part], f"the price was another one: {part}")
            self.took(step)
        else:
            old = self.events()
            if self.reused(old[: len(old) - len(new)], new):
                self.add(who, asked, float(plan.json()["plan"]["mechanism"]["scale"]))
            self.took(f"{step}, free or paid before")

    @rule(asked=queries, who=analysts)
    def ask(self, asked: Asked, who: str) -> None:
        """Somebody releases something."""
        self.release(
            "release", who, _one_column(asked), f"{self.dataset}-key-{next(self.numbers)}", None
        )

    @rule(asked=queries, who=analysts, key=keys, kill=st.sampled_from((None, None, *DELAYS)))
    def request(self, asked: Asked, who: str, key: str, kill: float | None) -> None:
        """A request under a key, sent again and again; a worker may be killed meanwhile."""
        one = self.requests.setdefault((who, key), _one_column(asked))
        self.release("request", who, one, f"{self.dataset}-{key}", kill)

    @precondition(lambda self: self.requests)
    @rule(which=st.integers(0, 9), asked=queries)
    def another_under_its_key(self, which: int, asked: Asked) -> None:
        """Another query under a key that was paid for: refused."""
        (who, key), first = sorted(self.requests.items(), key=str)[which % len(self.requests)]
        one = _one_column(asked)
        if one == first or (who, f"{self.dataset}-{key}") not in self.paid:
            return
        before = len(self.events())
        answer = self.call(
            *(who, "POST", "/releases"),
            json={"query": self.query(one), "accept_noise": True},
            headers={"Idempotency-Key": f"{self.dataset}-{key}"},
        )
        free = answer.status_code == 201 and answer.json()["result"]["free"]
        must(free or answer.status_code >= 400, f"{answer.status_code} for a used key")
        must(len(self.events()) == before, "another query under a used key left a trace")
        self.took("another query under its key", "stored" if free else str(answer.status_code))

    @rule(asked=queries, who=st.sampled_from(("udo", None)))
    def ask_without_right(self, asked: Asked, who: str | None) -> None:
        """An auditor, or nobody, asks: refused, and nothing is written."""
        before = len(self.events())
        answer = SITE.server.ask(
            *(who, "POST", f"/api/v1/datasets/{self.dataset}/releases"),
            json={"query": self.query(_one_column(asked))},
            headers={"Idempotency-Key": f"{self.dataset}-key-{next(self.numbers)}"},
        )
        must(answer.status_code in (401, 403), f"{answer.status_code} without a right")
        must(len(self.events()) == before, "a request without a right left a trace")
        self.took("release without a right", str(answer.status_code))

    # --- decisions and changes ---

    @rule(most=st.sampled_from(BUDGETS), who=st.sampled_from((None, None, *ANALYSTS)))
    def budget(self, most: str, who: str | None) -> None:
        """The owner raises or lowers a budget."""
        self.enter_budget(who, most)
        self.took("budget set")

    @rule(naming=st.integers(0, len(ZONE_NAMINGS) - 1), clock=st.integers(0, len(CLOCKS) - 1))
    def edit(self, naming: int, clock: int) -> None:
        """The declaration is edited."""
        self.table.naming, self.table.clock = naming, clock
        SITE.write(self.dataset, self.table)
        self.took("declaration edited")

    @rule(which=st.integers(0, 99))
    def edit_row(self, which: int) -> None:
        """A value of a row is edited, or a row comes back."""
        row = sorted(self.table.rows)[which % len(self.table.rows)]
        zone = self.table.rows[row].zone
        self.table.rows[row] = Held(zone, PLACES[which % 2], HEALTH[0])
        SITE.write(self.dataset, self.table)
        self.took("row edited")

    @rule(prior=st.integers(0, 1))
    def replace_prior(self, prior: int) -> None:
        """The prior is overwritten; nothing is released until the owner accepts it."""
        self.prior = prior
        SITE.write_prior(self.dataset, prior)
        self.took("prior replaced")

    @rule(what=st.sampled_from(("policy", "declaration")))
    def accept(self, what: str) -> None:
        """The owner accepts what changed, as it was shown."""
        seen = self.call("olga", "GET", "/policy-change")
        must(seen.status_code == 200, f"{seen.status_code}: {seen.text}")
        body = {"accept": what, "shown": seen.json()[what]["shown"]}
        done = self.call("olga", "POST", "/policy-change", json=body)
        if done.status_code == 200:
            if what == "declaration":
                self.named = (self.table.naming, self.table.clock)
            self.took(f"{what} accepted")
        else:
            must(400 <= done.status_code < 500, f"{done.status_code}: {done.text}")
            self.took(f"{what} accepted", str(done.status_code))

    @rule()
    def lose_workers(self) -> None:
        """Workers are killed while they have nothing to do."""
        _kill(*SITE.workers())
        self.took("idle workers killed", CRASHED)

    @precondition(lambda self: self.restarted_at < self.asked)  # not by events: kills race
    @rule()
    def restart(self) -> None:
        """The server is stopped and started; it takes seconds, so not without need."""
        self.restarted_at = self.asked
        SITE.restart()
        self.took("server started again")

    # --- what must be true ---

    @invariant()
    def no_cell_has_lost_more_than_is_counted(self) -> None:
        """The sums by hand against the ledger, cell by cell; charges and budgets."""
        if not self.begun:
            return
        charges = {event.seq for event in self.events() if event.kind == "charge"}
        must(set(self.there) <= charges, "a charge that was acknowledged is not there")
        with open_ledger(SITE.ledger, read_only=True, wait=60) as ledger:
            report = ledger.verify()
            must(report.sound, f"{report.problems}")
            found = {p.analyst: p.epsilon for p in ledger.positions() if p.dataset == self.dataset}
            for who, budget in self.budgets.items():
                must(found.get(who) == budget, f"the budget of {who} is {found.get(who)}")
            for who in self.sums:
                self.compare(ledger, who)


def _one_column(asked: Asked) -> Asked:
    kind = "count" if asked.kind == "count" else "histogram"
    return Asked(kind, "place", asked.window, asked.keys, asked.epsilon)


def _lost(answer: Any) -> bool:
    """Whether a request was told that its worker was lost."""
    return bool(answer.status_code == 503 and answer.json()["reason"] == "worker-lost")


def _kill(*processes: int) -> None:
    """Kill workers of the server; one that has ended by itself is no matter."""
    SITE.killed.update(processes)
    for process in processes:
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            continue
