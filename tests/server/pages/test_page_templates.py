"""How pages are made: nothing that somebody wrote becomes a part of the page."""

import re
from collections import defaultdict
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError

from takifugu.server.access_rules import RULES
from takifugu.server.pages.ask_pages import fields_of, kinds_of
from takifugu.server.pages.dataset_pages import NO_BUDGET, dataset_view
from takifugu.server.pages.page_rendering import (
    ENVIRONMENT,
    MENU,
    Viewer,
    coded,
    page,
    part,
    prose,
    sentence,
)
from takifugu.server.pages.token_pages import local_path

HOSTILE = "</title><script>alert(1)</script>\"'><img src=x onerror=alert(1)>\u202e{{ 7*7 }}`"
OWNER = Viewer("olga", "owner", "forms")
DESCRIPTION: dict[str, Any] = {
    "dataset": HOSTILE,
    "title": HOSTILE,
    "entity": HOSTILE,
    "order": {"column": HOSTILE, "kind": "number", "zone": HOSTILE, "first": 1, "last": 9},
    "rows": 10,
    "rows_of_an_entity": 2,
    "entities": 5,
    "released_from": HOSTILE,
    "about": [HOSTILE],
    "protected": [
        {"column": HOSTILE, "kind": "label", "labels": [HOSTILE, "b"], "outside": "refuse"}
    ],
    "public": [{"column": HOSTILE, "keys": [HOSTILE, "d"]}],
    "linear": [],
    "queries": [
        {
            "kind": "count",
            "several": False,
            "required": ["values"],
            "optional": ["by", "epsilon"],
            "without": {},
        }
    ],
}


def pages() -> dict[str, str]:
    """Pages in which everything that somebody may have written is hostile."""
    dataset = dataset_view(DESCRIPTION)
    words: dict[str, Any] = defaultdict(lambda: HOSTILE)
    words["notes"] = [HOSTILE]
    viewer = Viewer(HOSTILE, "analyst", HOSTILE)
    trouble = {"title": HOSTILE, "detail": HOSTILE}
    ask = {
        "dataset": dataset,
        "columns": [HOSTILE, "two"],
        "kinds": kinds_of(DESCRIPTION),
        "chosen": kinds_of(DESCRIPTION)[0],
        "fields": fields_of(DESCRIPTION),
        "given": defaultdict(lambda: [HOSTILE]),
        "aim": "epsilon",
        "narrowed": True,
        "rows_hint": HOSTILE,
        "bound_type": "text",
        "budget": {**NO_BUDGET, "epsilon": "2", "delta": "1/9", "spent": 1.0, "left": 1.0},
        "trouble": trouble,
        "state": "noise",
        "said": HOSTILE,
        "words": words,
        "approval": HOSTILE,
        "digest": HOSTILE,
        "key": HOSTILE,
        "options": HOSTILE,
        "asked": HOSTILE,
    }
    change = {
        "accept": "policy",
        "title": HOSTILE,
        "lines": [HOSTILE],
        "spent": [(HOSTILE, HOSTILE)],
        "shown": HOSTILE,
    }
    return {
        "ask": page("ask.html", viewer, "/", ask),
        "dataset": page(
            "dataset.html",
            viewer,
            "/",
            {
                "dataset": dataset,
                "guarantee": f"{HOSTILE}\n  - {HOSTILE}\n",
                "budget": ask["budget"],
                "change": [change],
                "trouble": trouble,
                "done": HOSTILE,
                "given": {"epsilon": HOSTILE, "delta": HOSTILE, "analyst": HOSTILE},
            },
        ),
        "trouble": page(
            "trouble.html",
            viewer,
            "",
            {"status": 404, "title": HOSTILE, "detail": HOSTILE, "retry": HOSTILE},
        ),
        "sign in": page(
            "sign_in.html", None, "", {"left": False, "next": HOSTILE, "wrong": trouble}
        ),
    }


@pytest.mark.parametrize("name", ["ask", "dataset", "trouble", "sign in"])
def test_what_somebody_wrote_is_text(name: str) -> None:
    text = pages()[name]
    assert "<img src=x" not in text and "alert(1)</script>" not in text
    assert "\u202e" not in text and "\\u202e" in text
    assert "49" not in text
    tags = re.findall(r"<script[^>]*>", text)
    assert tags and all(
        re.fullmatch(r'<script type="module" src="/static/\w+\.js">', t) for t in tags
    )


def test_a_name_that_a_page_lacks_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        page("trouble.html", None, "", {"status": 404, "title": "a", "retry": None})


def test_the_menu_is_what_the_table_of_routes_allows() -> None:
    by_page = {rule.path: rule.roles for rule in RULES if rule.method == "GET"}
    for path, _ in MENU:
        for role in ("owner", "analyst", "auditor", "witness"):
            assert Viewer("x", role, "").may("GET", path) == (role in by_page[path])


@given(st.text(), st.text())
def test_code_is_escaped_and_keeps_the_text(before: str, code: str) -> None:
    made = str(coded(f"{before.replace('`', '')}`{code.replace('`', '')}`"))
    inner = made.replace("<code>", "").replace("</code>", "")
    assert "<" not in inner and ">" not in inner and made.count("<code>") == 1


@given(st.lists(st.text("abc `", min_size=1).map(str.strip).filter(bool), min_size=1))
def test_no_word_of_a_guarantee_is_lost(lines: list[str]) -> None:
    blocks = prose("\n".join(lines))
    shown = " ".join(str(one) for block in blocks for one in block)
    plain = re.sub("<[^>]+>|`", "", shown)
    assert plain.split() == "\n".join(lines).replace("`", "").split()


@given(st.fractions(min_value=0, max_value=100), st.fractions(min_value=0, max_value=100))
def test_a_gauge_stays_within_its_frame(value: Fraction, whole: Fraction) -> None:
    percent = part(str(value), str(whole))
    assert percent.endswith("%") and 0 <= float(percent[:-1]) <= 100
    if 0 < value <= whole:
        assert abs(float(percent[:-1]) - 100 * value / whole) <= 0.01


def test_a_gauge_of_what_is_infinite_is_full_and_of_the_unknown_empty() -> None:
    assert part(float("inf"), "2") == "100%"
    assert part(None, "2") == part(1.0, None) == part(1.0, "0") == "0%"


@pytest.mark.parametrize(
    "address",
    [
        *(
            "//elsewhere.example",
            "https://elsewhere.example",
            "/\\elsewhere",
            "javascript:alert(1)",
        ),
        *("", "releases", "/\t/elsewhere", "/a\r\nSet-Cookie: b=c", "/sign-out", "/sign-in?next=/"),
        *("/api/v1/me", "\u202e/", "http:/releases", "///elsewhere", "//["),
    ],
)
def test_signing_in_leads_nowhere_else(address: str) -> None:
    assert local_path(address) == "/"


def test_signing_in_leads_to_the_page_that_was_wanted() -> None:
    assert local_path("/datasets/stays/ask?kind=top_k") == "/datasets/stays/ask?kind=top_k"


def test_messages_become_sentences() -> None:
    assert sentence("the budget is 2") == "The budget is 2."
    assert sentence("`epsilon` is 0") == "`epsilon` is 0."
    assert sentence("") == ""


def test_every_template_compiles() -> None:
    for name in ENVIRONMENT.list_templates():
        ENVIRONMENT.get_template(name)
