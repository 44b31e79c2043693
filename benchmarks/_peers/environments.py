"""An environment for each peer, made once with the versions that stand in `requirements`.

Packages come from the index that pip is configured for. What cannot be installed is told, with the
last line that pip wrote.
"""

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS = Path(__file__).parent / "requirements"
PIP = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
MARK = ".made-for"  # in an environment: what it was made for


@dataclass(frozen=True)
class Peer:
    """A way to answer.

    Attributes:
        name: What people call it.
        module: The module of this package that answers.
        environment: The name of its environment; None for that of takifugu itself.
        package: The package whose version is told.
        cached: Whether takifugu knows the file from an earlier session.
    """

    name: str
    module: str
    environment: str | None
    package: str
    cached: bool = False

    @property
    def requirements(self) -> list[str]:
        """What pip is given."""
        if self.environment is None:
            return ["-e", str(ROOT), "-c", str(ROOT / "constraints.txt")]
        return ["-r", str(REQUIREMENTS / f"{self.environment}.txt")]

    @property
    def wanted(self) -> str:
        """What decides whether an environment that is there can be used again."""
        pinned = self.requirements[-1]
        return f"{sys.version}\n{' '.join(self.requirements)}\n{Path(pinned).read_text('utf-8')}"


PEERS = (
    Peer("plain DuckDB", "by_duckdb", "duckdb", "duckdb"),
    Peer("OpenDP, one vector Laplace after DuckDB", "by_opendp_vector", "opendp", "opendp"),
    Peer("OpenDP, Polars context", "by_opendp_polars", "opendp-polars", "opendp"),
    Peer("diffprivlib", "by_diffprivlib", "diffprivlib", "diffprivlib"),
    Peer("Tumult Analytics", "by_tumult", "tumult", "tmlt.analytics"),
    Peer("SmartNoise SQL", "by_smartnoise", "smartnoise", "smartnoise-sql"),
    Peer("PipelineDP, local", "by_pipelinedp", "pipelinedp", "pipeline-dp"),
    Peer("takifugu, first session on a file", "by_takifugu", None, "takifugu"),
    Peer("takifugu, later sessions", "by_takifugu", None, "takifugu", cached=True),
)
FLOOR = PEERS[0]


@dataclass(frozen=True)
class NotInstalled(Exception):
    """An environment could not be made.

    Attributes:
        message: The last line of pip's message.
    """

    message: str


def interpreter(peer: Peer, folder: Path) -> Path:
    """The Python of the peer's environment in ``folder``, which is made unless it is there."""
    place = folder / f"environment-{peer.environment or 'takifugu'}"
    python, mark = place / "bin" / "python", place / MARK
    if mark.exists() and mark.read_text("utf-8") == peer.wanted:
        return python
    shutil.rmtree(place, ignore_errors=True)
    print(f"installing {peer.package} …", flush=True)
    for command in (
        [sys.executable, "-m", "venv", str(place)],
        [str(python), *PIP, *peer.requirements],
    ):
        done = subprocess.run(  # noqa: S603 - our own interpreter and requirements
            command, capture_output=True, text=True, check=False
        )
        if done.returncode:
            shutil.rmtree(place, ignore_errors=True)
            raise NotInstalled(last_line(done.stderr or done.stdout))
    mark.write_text(peer.wanted, encoding="utf-8")
    return python


def last_line(text: str) -> str:
    """The last line that says something, without addresses and paths."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return re.sub(r"\w+://\S+|(?<!\w)/[\w.-]+/\S+", "…", lines[-1]) if lines else "no message"


def version(python: Path, package: str) -> str:
    """The version that an environment has of a package."""
    code = f"from importlib.metadata import version; print(version({package!r}))"
    done = subprocess.run(  # noqa: S603 - an environment of ours
        [str(python), "-c", code], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()
