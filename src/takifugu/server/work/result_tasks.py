"""Tasks that lay results out: files, and figures. They read no data and no ledger."""

import io
from collections.abc import Callable
from typing import TYPE_CHECKING

from takifugu.reports.plot_files import as_written
from takifugu.reports.standalone_svg import standalone_svg
from takifugu.server.api.strict_json import json_bytes
from takifugu.server.work.tasks import Task, task
from takifugu.server.work.worker_host import WorkerHost
from takifugu.session.result_documents import result_from_document
from takifugu.session.result_files import WRITERS, arrow_stream, csv_metadata

if TYPE_CHECKING:
    from takifugu.session.release_result import Result


def _metadata(result: "Result", name: str) -> bytes:
    return json_bytes(csv_metadata(result, name))


FILES: dict[str, Callable[["Result", str], bytes]] = {
    "csv": lambda result, _: WRITERS[".csv"](result),
    "csv-metadata": _metadata,
    "parquet": lambda result, _: WRITERS[".parquet"](result),
    "arrow": lambda result, _: arrow_stream(result),
    "xlsx": lambda result, _: WRITERS[".xlsx"](result),
}


@task("result file")
def result_file(_: WorkerHost, asked: Task) -> bytes:
    """A result as a file: ``format``, ``document`` and the name of the ``file``."""
    options = asked.options
    result = result_from_document(options["document"])
    return FILES[options["format"]](result, options["file"])


@task("figure")
def figure(_: WorkerHost, asked: Task) -> bytes:
    """The figure of a result, as ``svg`` or ``png``."""
    result = result_from_document(asked.options["document"])
    drawn = result.figure()
    if asked.options["format"] == "svg":
        return standalone_svg(drawn, result.title)
    written = io.BytesIO()
    with as_written(drawn):
        drawn.savefig(written, format=asked.options["format"], dpi=150)
    return written.getvalue()
