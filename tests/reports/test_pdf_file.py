"""A PDF is the same file whenever it is made."""

import time

import pytest

from takifugu.reports.html_page import Page
from takifugu.reports.pdf_file import pdf_of
from tests.pdf_needs import weasyprint_or_skip


@pytest.mark.nightly
@pytest.mark.parametrize("has_subset_library", [True, False])
def test_no_clock_is_read_with_and_without_the_library_that_subsets_fonts(
    has_subset_library: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without it WeasyPrint subsets fonts by fontTools, which stamps the time into them."""
    fonts = weasyprint_or_skip().pdf.fonts
    if not has_subset_library:
        monkeypatch.setattr(fonts, "harfbuzz_subset", None)
    page = Page("A report", "Its first paragraph.", [])
    made = []
    for clock in (1e9, 2e9):
        with monkeypatch.context() as patch:
            patch.setattr(time, "time", lambda clock=clock: clock)
            made.append(pdf_of(page))
    assert made[0] == made[1] and made[0].startswith(b"%PDF-")
