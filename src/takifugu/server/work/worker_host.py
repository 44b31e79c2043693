"""What a worker keeps between tasks: the project, and its datasets that are open."""

import signal
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from takifugu.declarations import DatabaseFailed
from takifugu.errors import LedgerDamaged, LedgerSetBack, NewerLedger, NotALedger, TakifuguError
from takifugu.project.opened_dataset import Identity, OpenedDataset, identity, open_dataset
from takifugu.project.project import Project, open_project
from takifugu.server.state.server_state import ServerState, open_state

OPEN = 8  # datasets that a worker keeps open; the one that was not used for longest is closed
BROKEN = (DatabaseFailed, LedgerDamaged, LedgerSetBack, NewerLedger, NotALedger)


class WorkerHost:
    """The state of one worker. Tasks run one after the other.

    Attributes:
        project_file: The project that is served.
        say: Tells the one who waits what is being done.
        time_step: Seconds; a release works on rows for a whole number of such steps.
        plan_time: Seconds of processor time that a plan may take; 0 for any.
    """

    def __init__(
        self,
        project_file: Path,
        say: Callable[[str], None],
        time_step: float = 0.0,
        plan_time: float = 0.0,
    ) -> None:
        self.project_file, self.say, self.time_step = project_file, say, time_step
        self.plan_time = plan_time
        self._project: Project | None = None
        self._read: Identity = None
        self._opened = OrderedDict[str, OpenedDataset]()
        self._state: ServerState | None = None

    def project(self) -> Project:
        """The project as its file is now; read again if the file changed."""
        now = identity(self.project_file)
        if self._project is None or now != self._read or now is None:
            self._project, self._read = open_project(self.project_file), now
        return self._project

    def opened(self, name: str) -> OpenedDataset:
        """A dataset, open; opened again if anything changed that was read then."""
        known = self._opened.get(name)
        if known is not None:
            if not self._is_stale(known):
                self._opened.move_to_end(name)
                return known
            self.drop(name)
        self.say(f"opening {name}")
        dataset = open_dataset(self.project(), name, progress=self.say)
        self._opened[name] = dataset
        while len(self._opened) > OPEN:
            self.drop(next(iter(self._opened)))
        return dataset

    @staticmethod
    def _is_stale(known: OpenedDataset) -> bool:
        try:
            return known.stale()
        except TakifuguError:  # a ledger that cannot be read, for one: opening it says why
            return True

    @contextmanager
    def planning(self) -> Iterator[None]:
        """End the worker if what is done in here takes more processor time than `plan_time`.

        By a signal of the kernel, which no computation can put off. A plan writes nothing.
        """
        signal.setitimer(signal.ITIMER_PROF, self.plan_time)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)

    def state(self) -> ServerState:
        """The state of the server, which workers share with it."""
        if self._state is None:
            self._state = open_state(self.project())
        return self._state

    def drop(self, name: str) -> None:
        """Close a dataset, if it is open."""
        dataset = self._opened.pop(name, None)
        if dataset is not None:
            with suppress(Exception):  # what is given up may be broken already
                dataset.close()

    def drop_after(self, name: str | None, error: BaseException) -> None:
        """Close a dataset after an error that an open table or ledger may be the cause of."""
        harmless = isinstance(error, TakifuguError) and not isinstance(error, BROKEN)
        if name is not None and not harmless:
            self.drop(name)

    def datasets(self) -> list[str]:
        """The names of the datasets that are open."""
        return list(self._opened)

    def close(self) -> None:
        """Close every dataset."""
        for name in self.datasets():
            self.drop(name)
        if self._state is not None:
            self._state.close()
