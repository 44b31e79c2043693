"""How pages are made: templates, what every page has, and how values look in them.

Whatever a template prints is text of somebody until it is escaped: every value goes through
`visible`, which shows marks that do not show, and through Jinja's escaping. A name that a page does
not have is an error and not an empty place.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from takifugu.server.access_rules import BY_ROUTE, allowed
from takifugu.visible import Rounded, four_digits, visible

if TYPE_CHECKING:
    from takifugu.server.roles import Actor

FOLDER = Path(__file__).parent
MENU = (
    ("/", "Datasets"),
    ("/releases", "Releases"),
    ("/approvals", "Approvals"),
    ("/ledger", "Ledger"),
    ("/reports", "Reports"),
    ("/tokens", "Tokens"),
)
FILLED = 100  # letters that a line of a guarantee has at most
SHORT = 12  # digits of a hash that people read


@dataclass(frozen=True)
class Viewer:
    """Who sees a page.

    Attributes:
        name: The name of their token.
        role: What they may do.
        csrf: What forms of theirs send along, so that no other site can send them.
    """

    name: str
    role: str
    csrf: str

    @classmethod
    def of(cls, actor: "Actor", csrf: str) -> "Viewer":
        """The viewer of an actor who signed in."""
        return cls(actor.name, actor.role, csrf)

    def may(self, method: Literal["GET", "POST", "PUT", "DELETE"], path: str) -> bool:
        """Whether the table of routes lets them call a route."""
        return allowed(BY_ROUTE.get((method, path)), self.role)  # type: ignore[arg-type]


def _shown(value: Any) -> Any:
    """What a template prints: marks that do not show are written out."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return visible(value, keep="\n")


def number(value: Any, rounded: Rounded = "nearest") -> str:
    """A number with four digits; exact ones come as text, and null is unknown."""
    if value is None:
        return "unknown"
    exact = Fraction(value) if isinstance(value, str) else value
    return four_digits(exact, rounded)


def up(value: Any) -> str:
    """A loss, rounded up."""
    return number(value, "up")


def down(value: Any) -> str:
    """An allowance, rounded down."""
    return number(value, "down")


def cell(value: Any) -> str:
    """A cell of a table of results."""
    if value is None:
        return "–"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.0f}" if abs(value) >= 1000 and isfinite(value) else four_digits(value)


def when(value: Any) -> Markup:
    """An instant as a time element, in UTC."""
    if value is None:
        return Markup("never")
    at = datetime.fromisoformat(value) if isinstance(value, str) else value
    at = at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    words = f"{at:%Y-%m-%d %H:%M}"
    return Markup('<time datetime="{}">{} UTC</time>').format(at.isoformat(), words)


def part(value: Any, whole: Any) -> str:
    """A share of a whole in percent, as an attribute of a drawing; from 0 to 100."""
    if value is None or whole is None or not Fraction(whole) > 0:
        return "0%"
    if isinstance(value, float) and not isfinite(value):
        return "100%"
    share = min(max(Fraction(value) / Fraction(whole), Fraction(0)), Fraction(1))
    return f"{float(100 * share):.2f}%"


def prose(text: str) -> list[list[Markup]]:
    r"""A guarantee as blocks: a paragraph is one text, a list several, of which the first leads.

    Lines are joined where the next word had no room, at `FILLED` letters; a line that ends before
    that ends its paragraph. Names in backticks become code.

    >>> [list(map(str, one)) for one in prose("Known:\n  - that a row\n    is;\n  - `it`.\nNo.")]
    [['Known:', 'that a row is;', '<code>it</code>.'], ['No.']]
    """
    blocks: list[list[str]] = []
    last, listed = "", False
    for line in text.splitlines():
        words = line.strip()
        if words.startswith("- ") and blocks:
            blocks[-1].append(words.removeprefix("- "))
            listed = True
        elif words and last and (line[:1] == " " if listed else _goes_on(last, words)):
            blocks[-1][-1] += f" {words}"
        elif words:
            blocks.append([words])
            listed = False
        last = line.rstrip()
    return [[coded(one) for one in block] for block in blocks]


def _goes_on(line: str, following: str) -> bool:
    """Whether a line was broken for want of room, and not because something ends there."""
    return len(line) + 1 + len(following.split()[0]) > FILLED


def coded(text: str) -> Markup:
    """Text in which names in backticks are code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return escape(_shown(text))
    return Markup("").join(
        Markup("<code>{}</code>").format(_shown(one)) if place % 2 else _shown(one)
        for place, one in enumerate(parts)
    )


def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    made.filters |= {
        "number": number,
        "up": up,
        "down": down,
        "cell": cell,
        "when": when,
        "part": part,
        "prose": prose,
        "coded": coded,
        "short": lambda text: str(text)[:SHORT],
        "kind": lambda name: str(name).replace("_", " "),
    }
    return made


ENVIRONMENT = _environment()


def page(name: str, viewer: Viewer | None, here: str, values: Mapping[str, Any]) -> str:
    """A page as HTML.

    Args:
        name: The template.
        viewer: Who sees it; None before signing in.
        here: The entry of the menu that it belongs to.
        values: What the template prints.
    """
    menu = [(path, title) for path, title in MENU if viewer and viewer.may("GET", path)]
    return ENVIRONMENT.get_template(name).render(**values, viewer=viewer, here=here, menu=menu)
