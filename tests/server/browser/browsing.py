"""A real browser in front of the real server: seats that fail when the console complains."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any

import pytest

from takifugu.project.project import open_project
from tests.server.running import RunningServer, new_token

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ARGUMENTS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
PEOPLE = {"owner": "olga", "analyst": "ana", "auditor": "aude"}
LOADING = "Failed to load resource: the server responded with a status of "
PATIENCE = 60_000  # milliseconds: a machine may be busy


def chromium() -> str:
    """The program; the test is skipped where it is missing."""
    program = which("chromium") or which("chromium-browser") or which("google-chrome")
    if program is None:
        pytest.skip("needs Chromium")
    return program


@contextmanager
def opened_browser() -> Iterator["Browser"]:
    """Chromium; the test is skipped where it, or playwright, is missing."""
    program = chromium()
    sync = pytest.importorskip("playwright.sync_api")
    with sync.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield opened
        opened.close()


@contextmanager
def another_browser(browser: "Browser", *arguments: str) -> Iterator["Browser"]:
    """A second browser with more arguments; two playwrights in one thread do not go together."""
    opened = browser.browser_type.launch(executable_path=chromium(), args=[*ARGUMENTS, *arguments])
    yield opened
    opened.close()


def charges(server: RunningServer) -> int:
    """How many charges the ledger has."""
    with open_project(server.project).ledger(read_only=True) as ledger:
        return len(ledger.events(kind="charge", limit=1000))


def make_tokens(project: Path) -> dict[str, str]:
    """A token for each role, by role."""
    return {role: new_token(project, role, name) for role, name in PEOPLE.items()}  # type: ignore[arg-type]


@dataclass
class Seat:
    """Somebody in front of a page.

    Attributes:
        page: The page.
        server: What it talks to.
        complaints: What the console said that nobody expected, and policies that were violated.
        expected: Statuses of responses that a test provokes; the console mentions them.
    """

    page: "Page"
    server: RunningServer
    complaints: list[str] = field(default_factory=list)
    expected: set[int] = field(default_factory=set)

    def open(self, path: str) -> None:
        """Go to a page."""
        self.page.goto(self.server.url.rstrip("/") + path)

    def sign_in(self, token: str) -> None:
        """Sign in with a token."""
        self.open("/sign-in")
        self.page.get_by_label("Token").fill(token)
        self.page.get_by_role("button", name="Sign in").click()

    def text(self) -> str:
        """What the page says."""
        return self.page.locator("body").inner_text()

    def width(self) -> int:
        """How wide the page is."""
        found: int = self.page.evaluate("document.documentElement.scrollWidth")
        return found

    def heard(self, message: Any) -> None:
        """Note what the console says."""
        text = message.text
        told = any(text.startswith(f"{LOADING}{status}") for status in self.expected)
        if message.type in ("error", "warning") and not told:
            self.complaints.append(f"{self.page.url}: {text}")


@contextmanager
def seated(
    browser: "Browser",
    server: RunningServer,
    token: str | None = None,
    *,
    width: int = 1280,
    scheme: Any = "light",
    scripts: bool = True,
) -> Iterator[Seat]:
    """A seat of its own: cookies are shared with no other. Complaints fail the test at its end."""
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme=scheme,
        java_script_enabled=scripts,
        reduced_motion="reduce",
        accept_downloads=True,
    )
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    seat = Seat(page, server)
    page.on("console", seat.heard)
    page.on("pageerror", lambda error: seat.complaints.append(str(error)))
    page.add_init_script(
        "addEventListener('securitypolicyviolation',"
        " (event) => console.error('policy', event.violatedDirective, event.blockedURI))"
    )
    if token is not None:
        seat.sign_in(token)
    yield seat
    context.close()
    assert seat.complaints == []
