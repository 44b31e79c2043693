"""The site is built without a warning, loads nothing from elsewhere, and leaves nothing out."""

import inspect
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path

import pytest

import takifugu
from takifugu.errors import TakifuguError
from takifugu.priors.documents import KINDS
from takifugu.session.query_kinds import KINDS as QUERY_KINDS
from takifugu.session.query_options import KIND_OPTIONS, SHARED_OPTIONS

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs" / "reference"
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` builds it."""
    out = tmp_path_factory.mktemp("site")
    line = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet"]
    done = subprocess.run(  # noqa: S603 - the project's own documentation
        [*line, "-b", "html", "-d", str(out / "doctrees"), str(ROOT / "docs"), str(out / "html")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return out / "html"


class Loaded(HTMLParser):
    """Collects what a browser fetches for a page by itself: not the links that a reader follows."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the address of a tag that loads something."""
        address = dict(attrs).get(LOADED.get(tag, ""))
        if address:
            self.addresses.append(address)


@pytest.mark.nightly
def test_the_site_is_built_and_can_be_searched(site: Path) -> None:
    assert (site / "index.html").exists() and (site / "search.html").exists()
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    assert "first-release" in index and "InfluenceCurve" in index
    translation = (site / "reference/api/influence.html").read_text(encoding="utf-8")
    assert "<math" in translation and "<mfrac>" in translation


@pytest.mark.nightly
def test_no_page_loads_anything_from_another_host(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        loaded = Loaded()
        loaded.feed(page.read_text(encoding="utf-8"))
        assert loaded.addresses
        assert not [a for a in loaded.addresses if re.match(r"(\w+:)?//", a)], page
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*['\"]?(\w+:)?//", sheet.read_text("utf-8")), sheet


def errors() -> Iterator[type[BaseException]]:
    """Every error and warning that the package defines."""
    for module in pkgutil.walk_packages(takifugu.__path__, "takifugu."):
        if not module.name.endswith("__main__"):
            for _, found in inspect.getmembers(import_module(module.name), inspect.isclass):
                if issubclass(found, TakifuguError | Warning) and found.__module__ == module.name:
                    yield found


def first_cells(page: str) -> set[str]:
    """The names in the first column of the tables of a page."""
    return set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))


def test_the_page_of_errors_has_every_error() -> None:
    page = (REFERENCE / "errors.md").read_text(encoding="utf-8")
    bases = {"TakifuguError", "Malformed", "LedgerError"}
    assert {error.__name__ for error in errors()} == first_cells(page) | bases
    assert all(f"`{base}`" in page for base in bases)


def test_the_page_of_query_kinds_has_every_kind() -> None:
    page = (REFERENCE / "query-kinds.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.*)$", page, re.MULTILINE)
    assert headings[0].startswith("Options") and set(headings[1:]) == set(QUERY_KINDS)


@pytest.mark.parametrize("kind", QUERY_KINDS)
def test_the_page_of_query_kinds_has_every_option(kind: str) -> None:
    page = (REFERENCE / "query-kinds.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## (.*)\n((?:(?!## ).*\n)*)", page, re.MULTILINE))
    options = KIND_OPTIONS[kind]
    for name in (*options.required, *options.optional):
        assert f"`{name}`" in sections[kind]
    for name in SHARED_OPTIONS:
        assert f"| `{name}` |" in sections["Options that every kind has"]


def test_the_page_of_priors_has_every_kind() -> None:
    page = (REFERENCE / "priors.md").read_text(encoding="utf-8")
    assert set(re.findall(r'"kind": "([\w-]+)"', page)) == {*KINDS, "product"}


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "SECURITY.md"])
def test_the_links_of_a_page_beside_the_site_lead_somewhere(name: str) -> None:
    page = (ROOT / name).read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", page)
    assert links and all((ROOT / link).exists() for link in links)
