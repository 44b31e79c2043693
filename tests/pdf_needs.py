"""What a PDF needs, and a reason to skip without it."""

from typing import Any

import pytest

from takifugu.reports.pdf_file import PdfUnavailable, check_pdf


def weasyprint_or_skip() -> Any:
    """WeasyPrint; the test is skipped where it, or its library Pango, is missing."""
    try:
        return check_pdf()
    except PdfUnavailable as error:
        pytest.skip(str(error))
