"""Files of pages that are the same for everybody: the style sheet, scripts, the icon.

The colours of the style sheet are those of reports, put in front of it.
"""

import hashlib
from functools import cache

from fastapi import APIRouter, Request, Response

from takifugu.reports.html_style import PALETTE
from takifugu.server.api.problems import Problem
from takifugu.server.pages.page_templates import FOLDER

router = APIRouter(include_in_schema=False)
KINDS = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
ICON = "icon.svg"


@cache
def _files() -> dict[str, tuple[bytes, str, str]]:
    """By name the content, the kind and the mark of every file that is served."""
    found = {}
    for path in sorted((FOLDER / "static").iterdir()):
        content = path.read_bytes()
        if path.suffix == ".css":
            content = PALETTE.encode() + content
        if path.suffix in KINDS:
            mark = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
            found[path.name] = (content, KINDS[path.suffix], mark)
    return found


def _file(request: Request, name: str) -> Response:
    known = _files().get(name)
    if known is None:
        raise Problem(404, "not-found", "there is no such file")
    content, kind, mark = known
    headers = {"Cache-Control": "no-cache", "ETag": mark}  # kept, and asked about each time
    if request.headers.get("if-none-match") == mark:
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type=kind)


@router.get("/static/{name}")
async def static_file(request: Request, name: str) -> Response:
    """A file by its name; there are no folders."""
    return _file(request, name)


@router.get("/favicon.ico")
async def favicon(request: Request) -> Response:
    """The icon, for browsers that ask for it there."""
    return _file(request, ICON)
