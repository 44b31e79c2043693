"""Reports, and their signatures."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response

from takifugu.server.access_rules import API
from takifugu.server.api.problems import Problem
from takifugu.server.api.running import new_task
from takifugu.server.services import services_of

router = APIRouter(tags=["reports"])
FILES = ("report.html", "report.pdf", "report.html.sig", "report.pdf.sig")


@router.get(
    f"{API}/reports/{{name}}",
    response_class=Response,
    responses={
        200: {
            "content": {
                "text/html": {"schema": {"type": "string"}},
                "application/pdf": {"schema": {"type": "string", "format": "binary"}},
                "text/plain": {"schema": {"type": "string"}},
            },
            "headers": {
                "ETag": {
                    "description": "The report by its ledger's head and its bytes.",
                    "schema": {"type": "string"},
                }
            },
        },
        304: {"description": "The report is the one that `If-None-Match` names."},
        412: {"description": "The report is not the one that `If-Match` names."},
    },
)
async def report(
    request: Request,
    name: Annotated[str, Path(description=f"One of {', '.join(FILES)}.", examples=[FILES[0]])],
    dataset: Annotated[
        list[Annotated[str, Query(max_length=100)]] | None,
        Query(max_length=20, description="Only these datasets; repeatable."),
    ] = None,
    download: Annotated[
        bool, Query(description="Whether browsers save it instead of showing it.")
    ] = False,
) -> Response:
    """What was released under which guarantee, as of the ledger's head: a file to sign and keep.

    The same project gives the same bytes. A signature is over these bytes; `If-Match` with the
    `ETag` of the report makes sure that it is of that very file.
    """
    services = services_of(request)
    if name not in FILES:
        raise Problem(404, "no-report", f"reports are {', '.join(FILES)}", field="name")
    key = services.settings.signing_key
    if name.endswith(".sig") and key is None:
        raise Problem(
            *(404, "no-signature"),
            "this server has no key to sign with (`signing_key`); download the report and sign it"
            " with `takifugu report sign`",
            field="name",
            reason="signing_key",
        )
    datasets = tuple(dict.fromkeys(dataset or ()))
    known = set(services.project().policy.datasets)
    if not known.issuperset(datasets):
        raise Problem(404, "no-dataset", "there is no such dataset here", field="dataset")
    options: dict[str, Any] = {"file": name, "datasets": list(datasets)}
    if name.endswith(".sig"):
        options["signing_key"] = str(key)
    found = await services.pool.run(new_task(request, "report", None, **options))
    head = found["head"]
    tag = f'"{head["seq"]}-{head["hash"][:16]}-{found["sha256"][:32]}"'
    headers = {"ETag": tag}
    wanted = request.headers.get("if-match")
    if wanted is not None and not _names(wanted, tag):
        raise Problem(
            *(412, "report-changed"),
            "the report is not the one that `If-Match` names any more: the ledger or the policy"
            " changed. Download the report again",
            field="If-Match",
            headers=headers,
        )
    seen = request.headers.get("if-none-match")
    if seen is not None and _names(seen, tag) and not name.endswith(".sig"):
        return Response(status_code=304, headers=headers)
    way = "attachment" if download or name.endswith(".sig") else "inline"
    headers["Content-Disposition"] = f'{way}; filename="{name}"'
    headers["X-Ledger-Sound"] = "true" if found["sound"] else "false"
    if found["policy"] is not None:
        headers["Content-Security-Policy"] = found["policy"]
    return Response(found["content"], headers=headers, media_type=found["type"])


def _names(given: str, tag: str) -> bool:
    """Whether a list of tags has this one; a weak one is compared like a strong one."""
    tags = {one.strip().removeprefix("W/") for one in given.split(",")}
    return "*" in tags or tag in tags
