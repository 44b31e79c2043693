"""Idempotency keys: the same request twice is one charge.

The ledger knows a charge by its key. A caller chooses theirs without knowing those of others: the
worker makes the ledger's key of the caller's name and the one they chose, so that two people with
the same key have two charges, and nobody learns which keys others use.
"""

import re
from typing import Annotated

from fastapi import Header

from takifugu.server.api.problems import Problem

KEY_HEADER = "Idempotency-Key"
KEY = re.compile(r"[\x21-\x7e]{1,128}")
KeyHeader = Annotated[
    str | None,
    Header(
        alias=KEY_HEADER,
        description="Names this release, in at most 128 visible ASCII characters: a new"
        " UUID for a new one, the same again to ask for the same one again. It is charged once.",
        examples=["8f14e45f-ceea-467f-a2d7-4a2bb1e6d6d5"],
    ),
]


def checked_key(given: str | None) -> str:
    """The key that a caller gave.

    Raises:
        Problem: There is none, or it is not one.
    """
    if given is None or not KEY.fullmatch(given):
        raise Problem(
            *(422, "idempotency-key"),
            "`Idempotency-Key` "
            + ("is missing" if given is None else "is something else")
            + "; a release needs one: 1 to 128 visible ASCII characters, such as a new UUID, the"
            " same again when you ask for the same release again",
            field="Idempotency-Key",
            reason="missing" if given is None else "form",
        )
    return given
