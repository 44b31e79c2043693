"""What the commands of ``takifugu prior`` share: recording and printing a prior."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from takifugu.cli.shared_options import echo, print_json
from takifugu.cli.shell_completion import nearest_project
from takifugu.errors import Malformed

if TYPE_CHECKING:
    from takifugu.priors import Prior


@contextmanager
def recorded(out: Path) -> Iterator[None]:
    """Record it in the ledger if ``out`` is a prior of a dataset of the project around it."""
    from takifugu.project.project import open_project

    file = nearest_project(out.parent)
    project = None
    if file is not None:
        with suppress(Malformed):  # a project that cannot be read releases nothing
            project = open_project(file)
    with nullcontext() if project is None else project.recording_prior(out):
        yield


def print_written(prior: "Prior", out: Path, as_json: bool, details: str = "") -> None:
    """Print where a prior was written."""
    if as_json:
        print_json({"out": str(out)} | prior_facts(prior))
    else:
        echo(f"wrote {out}{details}", err=True)


def prior_facts(prior: "Prior") -> dict[str, Any]:
    """What `prior show` prints."""
    return {"kind": prior.kind, "fingerprint": prior.fingerprint} | prior.facts()
