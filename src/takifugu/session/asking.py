"""What a local session and a dataset of a server have in common."""

from typing import Protocol

from takifugu.session.planner import Planner
from takifugu.session.release_plan import Plan
from takifugu.session.release_result import Result


class Asking(Protocol):
    """Where queries are planned and released, here or on a server.

    A function that is typed with it takes either. Implemented by `takifugu.session.Session` and
    `takifugu.client.RemoteDataset`.
    """

    @property
    def plan(self) -> Planner:
        """Plans queries, as ``visits.plan.histogram(by="country", epsilon=0.5)``."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The protected columns that queries may be about, in the order of the declaration."""

    @property
    def about(self) -> str | None:
        """The column that queries are about; None if there are several."""

    def release(self, plan: Plan, *, accept_noise: bool = False) -> Result:
        """Pay for a plan, then answer it; for free if the same was answered before."""

    def spent(self) -> float:
        """The Pufferfish ε of all that was released, rounded up."""

    def guarantee(self) -> str:
        """What is protected and what is not, in plain words."""

    def close(self) -> None:
        """Ask nothing more here."""
