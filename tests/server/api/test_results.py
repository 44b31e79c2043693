"""Results over HTTP: the content of the local files, cached by their answer, for their analyst."""

import io
import json
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from takifugu.server.api.release_routes import accepted, disposition, entity_tag
from takifugu.session.release_result import Result, result_from_document
from takifugu.session.result_files import ResultFile
from tests.server.api.serving import HISTOGRAM, Served, served
from tests.server.api.test_app import problem
from tests.server.projects import small_project

FORMATS = ("json", "csv", "csv-metadata", "parquet", "arrow", "xlsx")


@pytest.fixture(scope="module")
def released(server: Served) -> dict[str, Any]:
    found = server.release("ana", HISTOGRAM)
    assert found.status_code == 201, found.text
    document: dict[str, Any] = found.json()
    return document


@pytest.fixture(scope="module")
def local(released: dict[str, Any]) -> Result:
    return result_from_document(released["result"])


def fetched(server: Served, charge: int, format: str, who: str = "ana") -> Any:
    response = server.get(who, f"/releases/{charge}/result", params={"format": format})
    assert response.status_code == 200, response.text
    return response


@pytest.mark.nightly
def test_json_is_the_document(server: Served, released: dict[str, Any]) -> None:
    response = fetched(server, released["charge"], "json")
    assert response.json() == released["result"]
    assert response.headers["content-type"] == "application/json"


@pytest.mark.nightly
def test_csv_and_its_metadata_are_the_local_files(
    server: Served, released: dict[str, Any], local: Result, tmp_path: Path
) -> None:
    charge = released["charge"]
    place = tmp_path / f"stays-{charge}.csv"
    local.to_csv(place)
    response = fetched(server, charge, "csv")
    assert response.content == place.read_bytes()
    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    assert response.headers["content-disposition"] == f'attachment; filename="{place.name}"'
    link, relation, kind = response.headers["link"].split("; ")
    assert (relation, kind) == ('rel="describedby"', 'type="application/csvm+json"')
    beside = server.ask("ana", "GET", link.strip("<>"))
    written = place.with_name(f"{place.name}-metadata.json").read_text(encoding="utf-8")
    assert beside.json() == json.loads(written)
    assert beside.headers["content-disposition"].endswith(f'"{place.name}-metadata.json"')


@pytest.mark.nightly
def test_parquet_is_the_local_file(
    server: Served, released: dict[str, Any], local: Result, tmp_path: Path
) -> None:
    place = tmp_path / "stays.parquet"
    with ResultFile(place) as file:
        file.write(local)
    content = fetched(server, released["charge"], "parquet").content
    found = pyarrow.parquet.read_table(io.BytesIO(content))
    assert found.equals(pyarrow.parquet.read_table(place), check_metadata=True)


def test_arrow_has_the_table_and_its_metadata(
    server: Served, released: dict[str, Any], local: Result
) -> None:
    content = fetched(server, released["charge"], "arrow").content
    found = pyarrow.ipc.open_stream(content).read_all()
    assert found.to_pydict() == local.to_arrow().to_pydict()
    assert json.loads(found.schema.metadata[b"takifugu"]) == local.about()


def test_a_workbook(server: Served, released: dict[str, Any], local: Result) -> None:
    import openpyxl

    content = fetched(server, released["charge"], "xlsx").content
    book = openpyxl.load_workbook(io.BytesIO(content))
    cells = [tuple(row) for row in book["result"].iter_rows(values_only=True)]
    assert cells == [local.columns, *local.rows]


@pytest.mark.nightly
@pytest.mark.parametrize(("format", "begins"), [("svg", b"<svg "), ("png", b"\x89PNG")])
def test_figures(server: Served, released: dict[str, Any], format: str, begins: bytes) -> None:
    path = f"/releases/{released['charge']}/figure"
    response = server.get("ana", path, params={"format": format})
    assert response.status_code == 200 and begins in response.content[:400]
    assert response.headers["content-disposition"].startswith("inline; ")
    policy = response.headers["content-security-policy"]  # opened by itself it can do nothing
    assert "sandbox" in policy and "script-src" not in policy


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("text/csv", "text/csv; charset=utf-8"),
        ("application/json;q=0.5, text/csv", "text/csv; charset=utf-8"),
        ("*/*", "application/json"),
        ("text/*", "text/csv; charset=utf-8"),
        ("application/vnd.apache.arrow.stream", "application/vnd.apache.arrow.stream"),
    ],
)
def test_accept_decides(server: Served, released: dict[str, Any], accept: str, kind: str) -> None:
    path = f"/releases/{released['charge']}/result"
    response = server.get("ana", path, headers={"Accept": accept})
    assert response.headers["content-type"] == kind
    assert "Accept" in response.headers["vary"]


def test_nothing_acceptable(server: Served, released: dict[str, Any]) -> None:
    path = f"/releases/{released['charge']}/result"
    for accept in ("text/html", "text/csv;q=0", "nonsense"):
        response = server.get("ana", path, headers={"Accept": accept})
        problem(response, 406, "not-acceptable")
    assert problem(server.get("ana", f"{path}?format=html"), 422, "invalid-parameter")


@pytest.mark.parametrize("format", FORMATS)
def test_what_the_caller_has_is_not_sent_again(
    server: Served, released: dict[str, Any], format: str
) -> None:
    charge = released["charge"]
    first = fetched(server, charge, format)
    tag = first.headers["etag"]
    path = f"/releases/{charge}/result?format={format}"
    for header in (tag, f"W/{tag.removeprefix('W/')}", f'"x", {tag}', "*"):
        again = server.get("ana", path, headers={"If-None-Match": header})
        assert again.status_code == 304 and not again.content and again.headers["etag"] == tag
    other = server.get("ana", path, headers={"If-None-Match": '"x"'})
    if format == "xlsx":  # a workbook holds the time at which its file was made
        assert other.status_code == 200 and tag.startswith('W/"')
    else:
        assert other.content == first.content
    assert first.headers["cache-control"] == "no-store"


def test_tags_differ_by_format_and_analyst() -> None:
    tags = {entity_tag("a", who, form) for who in ("ana", "bo") for form in FORMATS}
    assert len(tags) == 2 * len(FORMATS)


@pytest.mark.nightly
def test_an_answer_that_was_stored_is_the_second_analysts_too(server: Served) -> None:
    query = HISTOGRAM | {"epsilon": "0.75"}
    charge = server.release("ana", query).json()["charge"]
    for path in (f"/releases/{charge}", f"/releases/{charge}/result"):
        problem(server.get("bo", path), 404, "no-release")
    shared = server.release("bo", query)
    assert shared.status_code == 201 and shared.json()["result"]["free"]
    assert shared.json()["charge"] == charge
    own, theirs = (fetched(server, charge, "json", who).json() for who in ("ana", "bo"))
    assert own["rows"] == theirs["rows"] and not own["free"] and theirs["free"]
    assert server.get("bo", f"/releases/{charge}").json()["analyst"] is None  # who paid is not told
    assert server.get("ana", f"/releases/{charge}").json()["analyst"] == "ana"
    assert fetched(server, charge, "json", "olga").json() == own
    (listed,) = [one for one in releases_of(server, "bo") if one["paid_by"] == charge]
    assert (listed["kind"], listed["analyst"], listed["result"]) == ("reuse", "bo", True)
    again = fetched(server, listed["charge"], "json", "bo")  # as the list names it
    assert again.json() == theirs
    for form in ("csv", "parquet"):
        assert fetched(server, listed["charge"], form, "bo").content
    assert server.get("bo", f"/releases/{listed['charge']}/figure").status_code == 200
    problem(server.get("ana", f"/releases/{listed['charge']}/result"), 404, "no-release")
    html = server.ask("bo", "GET", f"/releases/{listed['charge']}", headers={"Accept": "text/html"})
    assert html.status_code == 200 and "not kept" not in html.text and "<table" in html.text


def releases_of(server: Served, who: str) -> list[dict[str, Any]]:
    return server.items(who, "/releases", limit=200)


@pytest.mark.nightly
def test_an_answer_that_was_reused_is_listed_once_and_can_be_fetched(tmp_path: Path) -> None:
    project = small_project(tmp_path / "study", analysts={"ana": "4", "bo": "4"})
    with served(project) as server:
        paid = server.release("ana", HISTOGRAM).json()["charge"]
        assert server.release("bo", HISTOGRAM).status_code == 201
        (listed,) = releases_of(server, "bo")
        assert listed["kind"] == "reuse" and listed["paid_by"] == paid != listed["charge"]
        assert listed["analyst"] == "bo" and listed["result"]
        for number in (listed["charge"], paid):
            assert fetched(server, number, "json", "bo").json()["rows"]
        problem(server.get("ana", f"/releases/{listed['charge']}/result"), 404, "no-release")
        assert fetched(server, listed["charge"], "json", "udo").json()["rows"]


def test_analysts_list_their_own(server: Served, released: dict[str, Any]) -> None:
    server.release("bo", HISTOGRAM | {"epsilon": "0.2"}, accept_noise=True)
    mine = server.get("ana", "/releases").json()["items"]
    theirs = server.get("bo", "/releases").json()["items"]
    everybody = server.get("udo", "/releases").json()["items"]
    assert {one["analyst"] for one in mine} == {"ana"}
    assert {one["analyst"] for one in theirs} == {"bo"}
    assert [one["charge"] for one in everybody] == sorted(
        (one["charge"] for one in mine + theirs), reverse=True
    )
    assert all(one["result"] for one in everybody)
    assert released["charge"] in [one["charge"] for one in mine]
    assert server.get("ana", "/releases?dataset=other").json()["items"] == []


@pytest.mark.nightly
def test_pages_of_releases_hold_each_once(server: Served, released: dict[str, Any]) -> None:
    assert released
    server.release("bo", HISTOGRAM | {"epsilon": "0.2"}, accept_noise=True)
    whole = [one["charge"] for one in server.get("udo", "/releases").json()["items"]]
    by_pages = [one["charge"] for one in server.items("udo", "/releases", limit=1)]
    assert by_pages == whole and len(whole) > 1


@pytest.mark.nightly
@pytest.mark.parametrize("charge", ["0", "-1", "x", "1.5", "99999999999999999999"])
def test_numbers_that_are_none(server: Served, charge: str) -> None:
    for end in ("", "/result", "/figure"):
        problem(server.get("ana", f"/releases/{charge}{end}"), 422, "invalid-parameter")


def test_events_that_are_no_releases(server: Served) -> None:
    for charge in (1, 2, 3, 10**9):  # a ledger begins with decisions of the owner
        problem(server.get("olga", f"/releases/{charge}"), 404, "no-release")


@pytest.mark.nightly
@pytest.mark.parametrize("name", ['a"; filename="b', "a\r\nX: y", "é", "../../x", "", "\u202egnp"])
def test_names_of_files_hold_nothing_else(name: str) -> None:
    found = disposition(name, 3, ".csv")
    assert found.isascii() and found.isprintable() and found.count('"') == 2 and ".." not in found


@pytest.mark.nightly
def test_qualities_that_have_no_meaning() -> None:
    assert accepted("text/csv;q=x", "text/csv") == 0 == accepted("text/csv;q=2", "text/csv")
    assert accepted("text/csv;q=nan", "text/csv") == 0
    assert accepted("text/csv; header=present; q=0.3, */*", "text/csv") == 0.3
