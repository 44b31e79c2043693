"""Which tests an environment runs: some for each package that people need, then any others."""

from collections.abc import Iterator, Mapping
from itertools import zip_longest
from pathlib import Path

import numpy as np

from torture.part_report import ROOT

_SERVES = "tests/server/test_process.py::test_a_server_starts_answers_and_stops"
# For every package that takifugu asks for at run time, files or tests that call it, quick ones.
CORE: Mapping[str, tuple[str, ...]] = {
    "numpy": ("tests/test_numeric.py", "tests/test_rounding.py", "tests/test_fingerprint.py"),
    "scipy": ("tests/mechanisms/test_calibration.py", "tests/priors/test_gaussian.py"),
    "numba": ("tests/influence/test_chains.py", "tests/translation/test_chain_losses.py"),
    "opendp": ("tests/mechanisms/test_losses.py", "tests/mechanisms/test_noise_law.py"),
    "duckdb": ("tests/tables/test_files.py", "tests/tables/test_duckdb.py"),
    "matplotlib": ("tests/reports/test_plots.py",),
    "rich": ("tests/cli/test_main.py", "tests/cli/test_check.py"),
    "typer": ("tests/test_front_door.py", "tests/cli/test_commands.py"),
    "pandas": ("tests/tables/test_frames.py", "tests/session/test_tables_in_memory.py"),
    "polars": ("tests/tables/test_frames.py",),
    "pyarrow": ("tests/tables/test_frames.py", "tests/session/test_result_files.py"),
    "openpyxl": ("tests/session/test_result_files.py",),
    "psycopg": (
        "tests/ledger/test_contract.py::test_a_budget_can_be_spent_to_the_last_bit_and_no_further",
        "tests/tables/test_postgres.py",
    ),
    "pyspark": (
        "tests/tables/test_spark.py::test_lengths_do_not_depend_on_protected_values",
        "tests/tables/test_spark.py::test_queries_are_answered_as_the_sql_of_ibis_is",
    ),
    "cryptography": ("tests/reports/test_report_signature.py",),
    "weasyprint": ("tests/cli/test_report.py",),
    "fastapi": ("tests/server/api/test_app.py", "tests/server/api/test_openapi_document.py"),
    "jinja2": ("tests/server/pages/test_page_templates.py",),
    "markupsafe": ("tests/server/pages/test_page_templates.py",),
    "prometheus-client": ("tests/server/test_metrics.py",),
    "pydantic": ("tests/server/api/test_app.py", "tests/server/api/test_strict_json.py"),
    "starlette": ("tests/server/api/test_app.py", "tests/server/access/test_headers.py"),
    "uvicorn": (_SERVES, "tests/client/test_real_process.py::test_the_same_script_here_and_there"),
    "httptools": (_SERVES,),
    "uvloop": (_SERVES,),
}
LEFT_OUT = ("tests/torture",)  # a run within a run
AT_ONCE = 24  # files in a process, which takes seconds to begin


def first() -> list[str]:
    """One file or test of every package, about a minute: every environment runs all of them."""
    return list(dict.fromkeys(tests[0] for tests in CORE.values()))


def core() -> list[str]:
    """The tests of packages, once each: one of every package, then the next."""
    turns = zip_longest(*CORE.values())
    return list(dict.fromkeys(test for turn in turns for test in turn if test is not None))


def others(rng: np.random.Generator, root: Path = ROOT) -> list[str]:
    """All other files of tests, in an order that is drawn; those with a test in the core too."""
    known = set(core())
    files = sorted(
        path.relative_to(root).as_posix() for path in (root / "tests").rglob("test_*.py")
    )
    left = [one for one in files if one not in known and not one.startswith(LEFT_OUT)]
    return [left[index] for index in rng.permutation(len(left))]


def batches(rng: np.random.Generator, root: Path = ROOT) -> Iterator[list[str]]:
    """The files of tests, so many at once: the first of every package, then the others of it."""
    yield first()
    yield core()[len(first()) :]
    files = others(rng, root)
    for start in range(0, len(files), AT_ONCE):
        yield files[start : start + AT_ONCE]
