"""The page that tells what the pages offer lists the pages that each role may open."""

import re
from pathlib import Path

from takifugu.server.access_rules import API, RULES

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "pages.md"
ROW = re.compile(r"^\| .* \| `(/[^`]*)` \| (yes|no) \| (yes|no) \| (yes|no) \|$", re.MULTILINE)
NO_PAGES = (API, "/metrics", "/datasets/{dataset}/budget.svg")


def test_the_table_is_that_of_the_rules() -> None:
    told = {
        path: {
            role
            for role, may in zip(("owner", "analyst", "auditor"), found, strict=True)
            if may == "yes"
        }
        for path, *found in ROW.findall(PAGE.read_text(encoding="utf-8"))
    }
    assert told == {
        rule.path: set(rule.roles)
        for rule in RULES
        if rule.method == "GET" and not rule.anybody and not rule.path.startswith(NO_PAGES)
    }
