"""Tests on other Pythons and versions: ``nox -s "tests-3.12(oldest)" -- tests/tables``."""

import shutil

import nox

nox.options.default_venv_backend = "uv|venv"  # uv installs in seconds; without it pip does
nox.options.download_python = "never"
CONSTRAINTS = {
    "oldest": ["-c", "torture/dependencies/oldest.txt"],
    "pinned": ["-c", "constraints.txt"],
    "newest": [],
}


@nox.session(python=["3.11", "3.12", "3.13"])
@nox.parametrize("level", list(CONSTRAINTS), ids=list(CONSTRAINTS))
def tests(session: nox.Session, level: str) -> None:
    """Install what tests need, Spark too where there is Java, and run pytest."""
    extras = "dev,tables,spark" if shutil.which("java") else "dev,tables"
    session.install(*CONSTRAINTS[level], "-e", f".[{extras}]")
    # Only the files of pgmpy are read: without what it needs to be imported, as `make test` has it.
    session.install(*CONSTRAINTS[level], "--no-deps", "pgmpy")
    session.run("python", "-m", "pytest", *session.posargs)
