"""In which format a result is sent: by ``?format=``, or by the header ``Accept``."""

import hashlib
from dataclasses import dataclass

from fastapi import Request

from takifugu.server.api.problems import Problem


@dataclass(frozen=True)
class ResultFormat:
    """A format that a result can be had in.

    Attributes:
        name: What ``?format=`` calls it.
        media_type: What ``Accept`` calls it.
        ending: How the name of its file ends.
    """

    name: str
    media_type: str
    ending: str


FORMATS = {
    found.name: found
    for found in (
        ResultFormat("json", "application/json", ".json"),
        ResultFormat("csv", "text/csv", ".csv"),
        ResultFormat("csv-metadata", "application/csvm+json", ".csv-metadata.json"),
        ResultFormat("parquet", "application/vnd.apache.parquet", ".parquet"),
        ResultFormat("arrow", "application/vnd.apache.arrow.stream", ".arrows"),
        ResultFormat(
            "xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", ".xlsx"
        ),
    )
}
FIGURES = {
    "svg": ResultFormat("svg", "image/svg+xml", ".svg"),
    "png": ResultFormat("png", "image/png", ".png"),
}


def chosen(request: Request, asked: str | None, formats: dict[str, ResultFormat]) -> ResultFormat:
    """The format that a request asks for; the first one if it does not care.

    Raises:
        Problem: None of those that it accepts can be had (406).
    """
    if asked is not None:
        return formats[asked]
    header = ",".join(request.headers.getlist("accept")) or "*/*"
    best, found = 0.0, None
    for name in formats.values():
        quality = accepted(header, name.media_type)
        if quality > best:
            best, found = quality, name
    if found is None:
        media = ", ".join(one.media_type for one in formats.values())
        raise Problem(
            406,
            "not-acceptable",
            f"`Accept` names no format that there is: {media}",
            field="Accept",
        )
    return found


def accepted(header: str, media_type: str) -> float:
    """How much a header ``Accept`` wants a media type: 0 for not at all (RFC 9110, 12.5.1).

    >>> accepted("text/*;q=0.5, text/csv", "text/csv"), accepted("text/*;q=0.5", "text/csv")
    (1.0, 0.5)
    """
    found: tuple[int, float] = (-1, 0.0)
    kind = media_type.partition("/")[0]
    for part in header.split(","):
        wanted, *parameters = (piece.strip().lower() for piece in part.split(";"))
        specific = {"*/*": 0, f"{kind}/*": 1, media_type: 2}.get(wanted)
        if specific is not None and specific > found[0]:
            found = specific, _quality(parameters)
    return found[1]


def _quality(parameters: list[str]) -> float:
    for one in parameters:
        name, _, value = one.partition("=")
        if name.strip() == "q":
            try:
                quality = float(value)
            except ValueError:
                return 0.0
            return quality if 0 <= quality <= 1 else 0.0
    return 1.0


def entity_tag(answer: str, *parts: str) -> str:
    """The ETag of a file that is made of an answer: its event, and whatever else decides it."""
    text = "\n".join((answer, *parts))
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'


def unchanged(request: Request, tag: str) -> bool:
    """Whether the caller has the file with this tag already."""
    header = ",".join(request.headers.getlist("if-none-match"))
    tags = {one.strip().removeprefix("W/") for one in header.split(",")}
    return tag.removeprefix("W/") in tags or "*" in tags


def disposition(dataset: str, charge: int, ending: str, *, inline: bool = False) -> str:
    r"""The header ``Content-Disposition``: a name of letters, digits, ``-`` and ``_`` alone.

    >>> disposition('a"\r\nSet-Cookie: b', 12, ".csv")
    'attachment; filename="aSet-Cookieb-12.csv"'
    """
    kept = "".join(c for c in dataset if c.isascii() and (c.isalnum() or c in "-_"))[:80]
    how = "inline" if inline else "attachment"
    return f'{how}; filename="{kept or "result"}-{charge}{ending}"'
