"""Lists a page at a time: ``{"items": […], "next": "…"}``, with an opaque cursor.

A cursor holds the place after which the next page begins and the name of the list, so that one of
another list is refused. It grants nothing: who may see what is decided again for every page.
"""

import base64
import binascii
from typing import Annotated, Generic, TypeVar

from fastapi import Depends, Query
from pydantic import BaseModel, ConfigDict, Field

from takifugu.server.api.problems import Problem

Item = TypeVar("Item")
MOST = 200
DEFAULT = 50


class Page(BaseModel, Generic[Item]):
    """A part of a list."""

    model_config = ConfigDict(json_schema_extra={"description": "A part of a list."})

    items: list[Item] = Field(description="The items of this page, in order.")
    next: str | None = Field(
        default=None,
        description="The cursor of the next page; null if this is the last one.",
        examples=["cmVsZWFzZXM6MTI"],
    )


class Paging(BaseModel):
    """Which page is asked for."""

    limit: int
    cursor: str | None

    def after(self, kind: str, start: int = 0) -> int:
        """The place that the page begins after; ``start`` if it is the first."""
        return start if self.cursor is None else place_of(kind, self.cursor)


def _paging(
    limit: Annotated[
        int, Query(ge=1, le=MOST, description="The most items of a page.", examples=[DEFAULT])
    ] = DEFAULT,
    cursor: Annotated[
        str | None,
        Query(max_length=200, description="`next` of the page before; leave it out at first."),
    ] = None,
) -> Paging:
    return Paging(limit=limit, cursor=cursor)


PageOption = Annotated[Paging, Depends(_paging)]


def cursor_after(kind: str, place: int) -> str:
    """The cursor of the page that begins after ``place`` in the list ``kind``.

    >>> place_of("releases", cursor_after("releases", 12))
    12
    """
    return base64.urlsafe_b64encode(f"{kind}:{place}".encode()).decode().rstrip("=")


def place_of(kind: str, cursor: str) -> int:
    """The place in a cursor of the list ``kind``."""
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        named, _, place = text.decode("ascii").partition(":")
        if named == kind and place.isdecimal() and len(place) < 20:
            return int(place)
    except (ValueError, binascii.Error):
        pass
    raise Problem(
        422,
        "invalid-parameter",
        "`cursor` is not one of this list; it must be `next` of its page before, or left out",
        field="cursor",
        reason="cursor",
    )
