"""A page as a PDF, for paper and archives. It needs WeasyPrint, which needs Pango."""

import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from takifugu.errors import TakifuguError
from takifugu.reports.html_page import Page


class PdfUnavailable(TakifuguError):
    """A PDF cannot be made here: WeasyPrint, or the library Pango that it needs, is missing.

    Attributes:
        package: What is missing.
        extra: The extra of takifugu that installs it; empty if it is not a Python package.
    """

    def __init__(self, package: str, extra: str = "") -> None:
        self.package, self.extra = package, extra
        install = (
            f"pip install 'takifugu[{extra}]' installs it; it also needs Pango, a library of the"
            " system (libpango-1.0-0 and libpangoft2-1.0-0 on Debian)"
            if extra
            else "install it from your system (libpango-1.0-0 and libpangoft2-1.0-0 on Debian)"
        )
        super().__init__(
            f"a PDF needs {package}, which is missing; {install}. Or write .html, and print that"
        )


def check_pdf() -> Any:
    """WeasyPrint; `PdfUnavailable` if a PDF cannot be made here."""
    try:
        with warnings.catch_warnings():
            # WeasyPrint warns of its own future where HarfBuzz's subsetting library is missing
            warnings.simplefilter("ignore", DeprecationWarning)
            import weasyprint
    except ModuleNotFoundError:
        raise PdfUnavailable("WeasyPrint", "reports") from None
    except OSError:  # a library of the system
        raise PdfUnavailable("Pango") from None
    return weasyprint


def pdf_of(page: Page) -> bytes:
    """The page as a PDF: the same page gives the same bytes. Nothing is fetched.

    No clock is read: times in the page are those of the ledger's events. The marks of the page are
    comments after its end, which readers of a PDF skip.
    """
    weasyprint = check_pdf()
    with _quiet(), _without_clock():
        document = weasyprint.HTML(string=page.html(paper=True), url_fetcher=_refuse)
        content: bytes = document.write_pdf(pdf_identifier=b"takifugu", full_fonts=False)
    return content + b"".join(f"%{mark}\n".encode("ascii") for mark in page.marks.values())


def _refuse(url: str, *_: Any, **__: Any) -> Any:
    raise ValueError(f"a page fetches nothing, and this one names {url[:40]}")


@contextmanager
def _without_clock() -> Iterator[None]:
    """With a fixed time of change in the fonts of a PDF.

    Where HarfBuzz's subsetting library is missing, WeasyPrint subsets fonts by fontTools, which
    writes the time of day into each of them unless this variable names another.
    """
    before = os.environ.get("SOURCE_DATE_EPOCH")
    os.environ["SOURCE_DATE_EPOCH"] = "0"
    try:
        yield
    finally:
        if before is None:
            del os.environ["SOURCE_DATE_EPOCH"]
        else:
            os.environ["SOURCE_DATE_EPOCH"] = before


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the remarks of WeasyPrint on styles that only browsers know."""
    loggers = [logging.getLogger("weasyprint"), logging.getLogger("fontTools")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
