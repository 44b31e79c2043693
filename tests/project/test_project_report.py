"""Reports on a project: what the ledger has, without a table, and readable in a browser."""

import re
import shutil
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from takifugu.binding.entries import Entries
from takifugu.costs.losses import Total
from takifugu.errors import LedgerConflict
from takifugu.ledger.charge_values import loss_of
from takifugu.ledger.limits import spent_epsilon
from takifugu.priors.prior import FittedRows
from takifugu.project.project import Project, open_project
from takifugu.project.project_report import project_report
from takifugu.project.report_sentences import (
    AS_DRAWN,
    FOREIGN_ANSWER,
    NO_NAMES,
    NOT_PROTECTED,
    ORDER_ONLY,
    WITH_COUNTS,
    fitted_sentence,
    method_of,
    related_words,
    stored_table,
)
from takifugu.reports.pdf_file import pdf_of
from takifugu.reports.report_page import figure_of, report_page, table_of
from takifugu.reports.report_values import PrivacyReport, ReportedDataset
from takifugu.session.guarantee import odds_words
from takifugu.session.held_out import releasable_rows
from takifugu.visible import four_digits
from tests.pdf_needs import weasyprint_or_skip
from tests.project.reported import PLACES, WARD, many
from tests.project.studies import with_prior
from tests.raising import raises
from tests.reports.reading import Outline

pytestmark = pytest.mark.nightly

ARGUMENTS = [
    *("--no-sandbox", "--headless", "--disable-gpu", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--no-first-run"),
]
SECRET = ("p0", "m3", "h7a", *WARD)  # entities of the tables; the report names none of them


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return many(tmp_path_factory.mktemp("many"))


@pytest.fixture(scope="module")
def report(project: Project) -> PrivacyReport:
    return project_report(project)


@pytest.fixture(scope="module")
def html(report: PrivacyReport) -> str:
    return report_page(report).html()


def named(report: PrivacyReport, name: str) -> ReportedDataset:
    return next(one for one in report.datasets if one.name == name)


def test_every_dataset_is_there_with_what_the_ledger_holds(
    project: Project, report: PrivacyReport
) -> None:
    assert [one.name for one in report.datasets] == list(project.policy.datasets)
    assert report.whole and report.ledger.sound
    with project.ledger(read_only=True) as ledger:
        head, charges = ledger.head(), list(ledger.history(kind="charge"))
        assert (report.ledger.seq, report.ledger.hash) == (head.seq, head.hash)
        for dataset in report.datasets:
            mine = [e for e in charges if e.body["dataset"] == dataset.name]
            assert [r.seq for r in dataset.releases] == [e.seq for e in mine]
            assert [r.hash for r in dataset.releases] == [e.hash for e in mine]
            view = project.load(dataset.name).translation
            for release, event in zip(dataset.releases, mine, strict=True):
                total = Total().plus(loss_of(event.body["loss"]))
                assert release.alone == spent_epsilon(view, (total,), None, Fraction(0))
            if dataset.budget is not None:
                assert dataset.budget.spent == ledger.spent(dataset.name, view)
                assert dataset.budget.spent == dataset.spending[-1].spent


def test_the_budget_over_time_has_every_release_and_change(report: PrivacyReport) -> None:
    stays = named(report, "stays")
    assert [event.released for event in stays.spending] == [False, True, True, True, False, True]
    assert [event.budget for event in stays.spending] == [2.0] * 4 + [2.5] * 2
    spent = [event.spent for event in stays.spending]
    assert spent == sorted(spent) and spent[0] == 0 and spent[-1] <= 2.5
    on_top = [release.on_top for release in stays.releases]
    assert sum(x for x in on_top if x is not None) == pytest.approx(spent[-1], rel=1e-9)
    assert [(b.analyst, b.epsilon) for b in stays.budgets] == [
        (None, Fraction(5, 2)), ("ann", Fraction(3, 2)), ("ben", Fraction(1)),
    ]  # fmt: skip


def test_free_repeats_are_not_listed_twice_and_reuses_are_notes(report: PrivacyReport) -> None:
    stays = named(report, "stays")
    titles = [release.title for release in stays.releases]
    assert len(titles) == len(set(titles)) == 4
    first = stays.releases[0]
    assert first.analyst == "ann" and any("ben" in note for note in first.notes)
    assert any("earlier prior" in note for note in first.notes)  # the owner accepted another since
    assert not any("earlier prior" in note for note in stays.releases[-1].notes)


def test_tables_are_those_that_were_published(project: Project, report: PrivacyReport) -> None:
    """The same queries, asked again for free, give the same rows."""
    with project.session("survey") as session:
        again = session.release(
            session.plan.histogram(("smokes", "cough"), epsilon="0.4"), accept_noise=True
        )
        assert again.free
    release = named(report, "survey").releases[0]
    assert tuple(release.columns) == again.columns
    assert tuple(map(tuple, release.table)) == again.rows
    with project.session("meters") as session:
        median = session.release(session.plan.quantile("1/2", epsilon="0.3"), accept_noise=True)
        means = session.release(session.plan.mean(by="hour", epsilon="0.3"), accept_noise=True)
    found = named(report, "meters").releases
    assert [tuple(map(tuple, one.table)) for one in found] == [median.rows, means.rows]
    assert "960" in found[0].rows


def test_the_summary_is_five_sentences_with_the_odds(report: PrivacyReport, html: str) -> None:
    outline = Outline(html)
    for dataset in report.datasets:
        lines = outline.lists[dataset.name]
        assert len(lines) == 5
        budget = dataset.budget
        if budget is None or budget.spent is None or budget.epsilon is None:
            continue
        said = " ".join(" ".join(lines).split())
        assert odds_words(budget.spent).replace("\xa0", " ") in said.replace("\xa0", " ")
        assert f"ε = {four_digits(budget.epsilon)}" in said
        assert f"{four_digits(budget.spent, 'up')} is spent" in said
        assert budget.left is not None and f"{four_digits(budget.left, 'down')} is left" in said


def test_the_summary_says_how_many_the_rows_are_of_where_the_ledger_knows(
    report: PrivacyReport, html: str
) -> None:
    assert named(report, "stays").size == (1200, 200)
    assert named(report, "homes").size == (300, 60)
    assert named(report, "ward").size is None  # nothing was released
    lines = Outline(html).lists
    assert "200 in all, with 1,200 rows" in " ".join(" ".join(lines["stays"]).split())
    assert "in all" not in " ".join(lines["ward"])


FITTED: dict[str, Any] = {"source": "csv stays.csv", "entity": "person", "order": "step"}


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ([], ()),
        ([FittedRows(**FITTED, share=Fraction(1, 5), salt="0")], ("about 20 %", "other people")),
        ([FittedRows(**FITTED, before=3)], ("before 3", "later rows only")),
        (
            [FittedRows(**FITTED, before=3, share=Fraction(1, 5), salt="0")],
            ("about 20 %", "before 3", "the other people and later rows only"),
        ),
    ],
)
def test_whom_a_fitted_prior_leaves_out_is_said(
    project: Project, rules: list[FittedRows], said: tuple[str, ...]
) -> None:
    declaration = project.load("stays").declaration
    words = fitted_sentence(releasable_rows(rules, declaration, dataset="stays"))
    assert all(part in words for part in said)
    assert words.startswith(NOT_PROTECTED) if rules else words == ""
    all_rows = releasable_rows([FittedRows(**FITTED)], declaration, dataset="stays", release=True)
    assert "these rows too" in fitted_sentence(all_rows)


def test_the_example_of_the_guarantee_suits_the_entries(report: PrivacyReport) -> None:
    noon = {name: "noon" in named(report, name).related for name in ("stays", "survey", "ward")}
    assert noon == {"stays": True, "survey": False, "ward": False}
    read = {"a": Entries("sequence"), "b": Entries("entities")}
    assert related_words(read) == "" and "noon" in related_words({"a": Entries("sequence")})


def test_rankings_say_what_was_published_a_line_for_each_place(report: PrivacyReport) -> None:
    (ranking,) = (one for one in named(report, "stays").releases if one.ranked)
    assert "estimate" in ranking.columns and ranking.method.endswith(WITH_COUNTS)
    without = method_of({"kind": "permute-and-flip"}, ranked=("rank", "place", "probability"))
    assert without.endswith(ORDER_ONLY)
    table = table_of(ranking)
    assert list(table.columns) == list(ranking.columns) and len(table.rows) == 4
    for row, published in zip(table.rows, ranking.table, strict=True):
        assert list(row[-4:]) == list(published[-4:])
        assert row[:3] == [str(key) for key in published[:3]]


def test_figures_of_many_panels_are_no_higher_than_a_page(report: PrivacyReport) -> None:
    first = named(report, "stays").releases[0]
    rows = [(f"z{z}", f"place {p}", 5, 1, 9) for z in range(9) for p in range(30)]
    made = figure_of(replace(first, table=rows), "many")
    assert made is not None
    high, wide = (
        float(re.findall(rf'<svg [^>]*\b{side}="([0-9.]+)pt"', made.svg)[0])
        for side in ("height", "width")
    )
    assert high / wide < 215 / 178  # millimetres of a page, without its margins
    assert "more groups are not shown" in made.svg


def test_headings_go_down_one_level_at_a_time_and_names_are_unique(html: str) -> None:
    outline = Outline(html)
    assert not outline.open
    assert outline.levels[0] == 1 and outline.levels.count(1) == 1
    for before, after in zip(outline.levels, outline.levels[1:], strict=False):
        assert after <= before + 1
    assert len(outline.ids) == len(set(outline.ids))
    assert {link for link in outline.links if link.startswith("#")} <= {
        f"#{i}" for i in outline.ids
    }
    assert outline.links and all(link.startswith("#") for link in outline.links)


def test_figures_have_names_that_tell_their_gist(html: str) -> None:
    names = Outline(html).figures
    assert len(names) >= 12 and len(names) == len(set(names))
    assert all(re.search(r"\d", name) and len(name) > 20 for name in names)


def test_it_fetches_nothing_and_runs_nothing(html: str) -> None:
    outline = Outline(html)
    assert not {"script", "link", "img", "iframe", "object", "image"} & set(outline.tags)
    assert "http:" not in re.sub(r'xmlns[^"]*"[^"]*"', "", html) and "https:" not in html
    assert "default-src 'none'" in html


def test_nothing_of_the_machine_or_of_people_is_in_it(project: Project, html: str) -> None:
    folder = str(project.folder.resolve())
    assert folder not in html and project.folder.name not in html and "/tmp" not in html  # noqa: S108
    with project.ledger(read_only=True) as ledger:
        marks = {str(e.body["data"]) for e in ledger.history(kind="charge")}
        marks |= {str(e.body["question"]) for e in ledger.history(kind="charge")}
    assert marks and not any(mark in html for mark in marks)
    said = Outline(html).said
    assert not any(re.search(rf"\b{name}\b", said) for name in SECRET)
    assert "A survey of &lt;smokers&gt; &amp; others" in html


def test_the_same_project_gives_the_same_bytes(project: Project, html: str) -> None:
    again = report_page(project_report(open_project(project.file)))
    assert again.html() == html


def test_the_same_project_gives_the_same_pdf(project: Project) -> None:
    weasyprint_or_skip()
    page = report_page(project_report(project, ["meters"]))
    first = pdf_of(page)
    assert first.startswith(b"%PDF-") and pdf_of(page) == first
    assert str(project.folder).encode() not in first


def test_it_reads_no_table_and_writes_nothing(project: Project, html: str, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(project.folder, copy)
    for data in copy.glob("*.csv"):
        data.unlink()
    before = {
        p: p.read_bytes() for p in copy.rglob("*") if p.is_file() and ".takifugu" not in p.parts
    }
    assert report_page(project_report(open_project(copy))).html() == html
    after = {
        p: p.read_bytes() for p in copy.rglob("*") if p.is_file() and ".takifugu" not in p.parts
    }
    assert after == before


def test_one_dataset_alone(project: Project, report: PrivacyReport) -> None:
    one = project_report(project, ["homes"])
    (found,) = one.datasets
    whole = named(report, "homes")
    assert not one.whole and found.releases == whole.releases and found.budgets == whole.budgets
    said = Outline(report_page(one).html()).said
    assert "The project has others" in said and "kwh" not in said


def test_a_ledger_that_was_edited_is_reported_as_such(project: Project, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(project.folder, copy)
    with sqlite3.connect(copy / "takifugu.ledger") as connection:
        connection.execute(
            'UPDATE takifugu_events SET body = replace(body, \'"analyst":"ben"\','
            " '\"analyst\":\"bob\"') WHERE kind = 'charge' AND analyst = 'ben'"
        )
    connection.close()
    found = project_report(open_project(copy), ["meters"])
    assert not found.ledger.sound and found.ledger.problems
    said = Outline(report_page(found).html()).said
    assert "NOT sound" in said and "did not verify" in said
    assert str(copy) not in said


def charge_and_answer(project: Project, name: str, kind: str) -> tuple[Any, Any]:
    with project.ledger(read_only=True) as ledger:
        events = list(ledger.history(name))
    for event in events:
        if event.kind == "charge" and event.body["query"]["name"] == kind:
            (answer,) = (
                e.body["answer"]
                for e in events
                if e.kind == "answer" and e.body["charge"] == event.seq
            )
            return event.body, answer
    raise AssertionError(kind)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("stays", "histogram"), ("stays", "transitions"), ("stays", "top_k"), ("homes", "count")],
)
def test_an_answer_without_its_table_is_laid_out_by_the_declaration(
    project: Project, name: str, kind: str
) -> None:
    """As ledgers of before have it: keys and numbers are those of the published table."""
    body, answer = charge_and_answer(project, name, kind)
    declaration = project.load(name).declaration
    published = stored_table(body, answer, declaration)
    drawn = answer["drawn"]
    if kind == "top_k":  # places in the list of labels, as they were stored
        drawn = [PLACES.index(row[2]) for row in published.rows]
    found = stored_table(body, {"drawn": drawn}, declaration)
    assert len(found.rows) == len(published.rows)
    if kind == "top_k":
        assert found.rows == tuple(row[: len(found.columns)] for row in published.rows)
        return
    assert found.note == AS_DRAWN
    assert [row[:-3] for row in found.rows] == [row[:-3] for row in published.rows]
    assert [row[-3] for row in found.rows] == answer["drawn"]


def test_an_answer_whose_names_are_not_known_is_a_list_of_numbers(project: Project) -> None:
    body, answer = charge_and_answer(project, "stays", "histogram")
    declaration = project.load("stays").declaration
    drawn = {"drawn": answer["drawn"]}
    changed = stored_table({**body, "declared": "another"}, drawn, declaration)
    assert changed.columns == ("number",) and changed.note == NO_NAMES
    assert [row[0] for row in changed.rows] == answer["drawn"]
    top, ranked = charge_and_answer(project, "stays", "top_k")
    beyond = stored_table(top, {"drawn": [99] * 4}, declaration)
    counts = stored_table(top, {"drawn": ranked["drawn"]}, declaration)  # a list for each group
    assert beyond.note == counts.note == NO_NAMES
    assert [row[0] for row in counts.rows] == [n for group in ranked["drawn"] for n in group]


FOREIGN_ANSWERS = [
    {"values": [1, 2]},
    [1],
    "seen",
    {"drawn": [1, 2], "shown": {"rows": 5}},
    {"shown": {"columns": ["a"], "rows": [[1]]}},
    {"shown": [1]},
]


def test_a_release_of_another_program_is_reported_as_external(tmp_path: Path) -> None:
    """`Ledger.charge` and `record_answer` serve any program, and store what they are given."""
    project = with_prior(tmp_path)
    with project.session("stays") as session, project.ledger() as ledger:
        plan = session.plan.histogram(epsilon="0.001")
        base, translation = session.chargeable(plan)
        ledger.record_answer(ledger.charge(base, translation), "of this very query")
        with raises(LedgerConflict, reason="foreign answer"):
            session.release(plan, accept_noise=True)
        for number, answer in enumerate(FOREIGN_ANSWERS):
            query: dict[str, Any] = {"kind": "external", "number": number}
            if isinstance(answer, dict) and "drawn" in answer:
                query = {"name": "histogram", "number": number}
            outside = replace(base, query=query, mechanism={"kind": "outside"}, key=f"k{number}")
            receipt = ledger.charge(outside, translation)
            ledger.record_answer(receipt, answer)
    found = named(project_report(project, ["stays"]), "stays")
    foreign = [release for release in found.releases if FOREIGN_ANSWER in release.notes]
    assert len(foreign) == 1 + len(FOREIGN_ANSWERS) and not any(one.table for one in foreign)
    assert FOREIGN_ANSWER in Outline(report_page(project_report(project, ["stays"])).html()).said


# --- in a browser ---


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("there is no Chromium here")
    sync = pytest.importorskip("playwright.sync_api")
    with sync.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def file(html: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(html, encoding="utf-8")
    return path.as_uri()


@pytest.mark.parametrize("width", [375, 1280])
def test_the_page_itself_never_scrolls_sideways(browser: Any, file: str, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.goto(file)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    wide = page.evaluate(
        "[...document.querySelectorAll('.box')].filter(b => b.scrollWidth > b.clientWidth + 1)"
        ".map(b => [b.tabIndex, getComputedStyle(b).overflowX, !!b.getAttribute('aria-label')])"
    )
    assert width > 375 or wide  # at 375 some scroll: by keys too, and with a name
    assert all(one == [0, "auto", True] for one in wide)
    hints = page.evaluate(  # said in words where a table is clearly wider than its box
        "[...document.querySelectorAll('.sideways')].map(b => [b.scrollWidth / b.clientWidth,"
        " parseFloat(getComputedStyle(b, '::before').height)])"
    )
    assert all(high > 0 for ratio, high in hints if ratio > 1.1)
    assert width == 375 or not any(high for _, high in hints)
    page.close()


CONTRAST = """
() => {
  const lum = c => { const f = c.map(v => { v /= 255;
      return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4 });
    return .2126 * f[0] + .7152 * f[1] + .0722 * f[2] };
  const rgb = t => (t.match(/[0-9.]+/g) || []).map(Number);
  const behind = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e)
      .backgroundColor); if (c.length == 3 || c[3] > 0) return c } return [255, 255, 255] };
  let least = 99, who = '';
  const words = 'p,li,td,th,dt,dd,h1,h2,h3,h4,a,pre,caption,figcaption,svg text';
  for (const e of document.querySelectorAll(words)) {
    const style = getComputedStyle(e);
    const ink = rgb(e.closest('svg') ? style.fill : style.color), back = behind(e);
    const [a, b] = [lum(ink), lum(back)], ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < least) { least = ratio; who = e.tagName + ' ' + e.textContent.slice(0, 40) }
  }
  return [least, who];
}
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_stand_out_in_the_light_and_in_the_dark(browser: Any, file: str, scheme: str) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme=scheme)
    page.goto(file)
    least, who = page.evaluate(CONTRAST)
    assert least >= 4.5, who
    back = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (back == "rgb(255, 255, 255)") == (scheme == "light")
    page.close()


def test_paper_is_white_in_the_dark_too(browser: Any, file: str) -> None:
    page = browser.new_page(color_scheme="dark")
    page.goto(file)
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    boxes = "[...document.querySelectorAll('.box')].map(b => getComputedStyle(b).overflowX)"
    assert set(page.evaluate(boxes)) == {"visible"}  # nothing is cut off
    page.close()
