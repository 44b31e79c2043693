"""One server after another for the requests of a run, each from a fresh copy of the study."""

from contextlib import ExitStack
from pathlib import Path

from tests.ledger import postgres
from torture.inputs.canary_study import make_study
from torture.inputs.case import Case, Outcome, is_hang
from torture.inputs.serving import Target, target
from torture.part_report import Report

LIFE = 1_500  # requests until a server ends


class ServerLives:
    """A server for requests, started when the first comes and again after a while.

    Every second one has its ledger, tokens and requests in PostgreSQL, where that is installed.
    """

    def __init__(self, study: Path, scratch: Path, report: Report, life: int = LIFE) -> None:
        self._study, self._scratch, self._report, self._life = study, scratch, report, life
        self._stack, self._whole = ExitStack(), ExitStack()
        self._target: Target | None = None
        self._other: Path | None = None
        self._lives = 0

    def run(self, case: Case) -> Outcome:
        """Send a request; one that takes too long is sent once more."""
        outcome = self._running().run(case)
        if any(map(is_hang, outcome.wrong)):
            return self._running().run(case).after(outcome)
        return outcome

    def _running(self) -> Target:
        if self._target is not None and (self._target.asked >= self._life or self._target.ended):
            self._end()
        if self._target is None:
            study = self._study if self._lives % 2 == 0 else self._on_postgresql()
            self._lives += 1
            self._report.count("servers")
            self._target = self._stack.enter_context(target(study, self._scratch))
        return self._target

    def _end(self) -> None:
        """End the server, and tell what is wrong with what it leaves."""
        self._stack.close()
        if self._target is None:
            return
        for what in self._target.left:
            again = f"a server that was asked {self._target.asked} times; see the seed"
            self._report.finding(f"server: {what}", again)
        self._target = None

    def _on_postgresql(self) -> Path:
        if needed := postgres.missing():
            self._report.remark(f"No server with PostgreSQL was asked: it {needed}")
            return self._study
        if self._other is None:
            cluster = self._whole.enter_context(postgres.cluster())
            self._other = self._scratch / "template-postgresql"
            make_study(self._other, warm=False, ledger=cluster.address())
        self._report.count("of them on PostgreSQL")
        return self._other

    def __enter__(self) -> "ServerLives":
        return self

    def __exit__(self, *_: object) -> None:
        self._end()
        self._whole.close()
