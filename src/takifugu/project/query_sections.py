"""Queries as sections of TOML files: the options of a query beside keys of the file's own."""

from collections.abc import Sequence

from takifugu._core.toml import TomlSection
from takifugu.declarations import InvalidQuery
from takifugu.errors import InvalidFile
from takifugu.session.query_options import QueryOptions


def query_from(section: TomlSection, without: Sequence[str]) -> QueryOptions:
    """The query that a section describes, beside its keys ``without``."""
    given = {key: value for key, value in section.content.items() if key not in without}
    if isinstance(given.get("window"), list):
        given["window"] = [None if end == "" else end for end in given["window"]]
    try:
        return QueryOptions.from_document(given)
    except InvalidQuery as error:
        first = str(error.field).split(",")[0]
        place = section.at(first) if first in section.content else section.at("kind")
        raise InvalidFile(
            place, given=error.given, needed=error.needed, reason=error.reason
        ) from None
