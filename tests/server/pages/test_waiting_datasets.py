"""A dataset whose policy waits to be accepted: everybody sees so, and owners can accept it."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.server.api.serving import HISTOGRAM, Served, served

HTML = {"Accept": "text/html"}


def page(server: Served, who: str, path: str, status: int = 200) -> str:
    answer = server.ask(who, "GET", path, headers=HTML, follow_redirects=False)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"].startswith("text/html")
    return str(answer.text)


def changed(project: Path) -> None:
    text = project.read_text(encoding="utf-8")
    project.write_text(text.replace("[dataset.stays]", "[dataset.stays]\nuncertainty = 0.001"))


@pytest.mark.nightly
@pytest.mark.parametrize("asked_before", [False, True])
def test_what_waits_is_told_and_can_be_accepted(study: Path, asked_before: bool) -> None:
    with served(study) as server:
        if asked_before:
            assert server.release("ana", HISTOGRAM).status_code == 201
        assert "It waits" not in page(server, "ana", "/")
        changed(study)
        for who in ("ana", "udo", "olga"):
            for end in ("", "/guarantee", "/budget"):
                problem: Any = server.get(who, f"/datasets/stays{end}")
                assert problem.status_code == 409
                assert problem.json()["type"].endswith(":NotAccepted")
                assert problem.json()["dataset"] == "stays"
            assert "It waits for" in page(server, who, "/")
            text = page(server, who, "/datasets/stays")
            assert "It waits for" in text and "What was released before stays" in text
            assert "takifugu prior accept" not in text and "urn:" not in text
            assert ("Accept the policy" in text) == (who == "olga")
            assert ("Set the budget" in text) == (who == "olga")
        for who in ("ana", "olga"):  # the form leads to the page that says why
            answer = server.ask(
                who, "GET", "/datasets/stays/ask", headers=HTML, follow_redirects=False
            )
            assert (answer.status_code, answer.headers["location"]) == (303, "/datasets/stays")
        refused = server.release("ana", HISTOGRAM | {"epsilon": "0.5"})
        assert refused.status_code == 409 and refused.json()["type"].endswith(":NotAccepted")
        change = server.get("olga", "/datasets/stays/policy-change").json()["policy"]
        assert change["needed"]
        shown = re.search(
            r'name="shown" value="([0-9a-f]{64})"', page(server, "olga", "/datasets/stays")
        )
        assert shown is not None and shown[1] == change["shown"]
        accepted = server.ask(
            "olga",
            "POST",
            "/api/v1/datasets/stays/policy-change",
            json={"accept": "policy", "shown": shown[1]},
        )
        assert accepted.status_code == 200
        for who in ("ana", "udo", "olga"):
            assert "It waits" not in page(server, who, "/datasets/stays")
            assert server.get(who, "/datasets/stays/guarantee").status_code == 200
