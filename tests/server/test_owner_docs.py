"""The page for owners and auditors names every address that they have, and no other."""

import re
from pathlib import Path

from takifugu.server.access_rules import API, CHECKING, OWNER, RULES, WITNESS

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "owners-and-auditors.md"
NAMED = re.compile(r"`(GET|PUT|POST|DELETE) (/api/v1/[^`]*)`")


def test_the_page_names_what_owners_and_auditors_can_do() -> None:
    named = set(NAMED.findall(PAGE.read_text(encoding="utf-8")))
    theirs = {
        (rule.method, rule.path)
        for rule in RULES
        if rule.roles in (OWNER, CHECKING, WITNESS) and rule.path.startswith(API)
    }
    tokens = {(method, path) for method, path in theirs if path.startswith(f"{API}/tokens")}
    followed = {("GET", f"{API}/approvals/{{request}}")}
    assert named == theirs - tokens | followed
