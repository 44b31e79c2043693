"""Roles, and who is calling."""

from dataclasses import dataclass
from typing import Literal, get_args

Role = Literal["owner", "analyst", "auditor", "witness"]
ROLES: tuple[Role, ...] = get_args(Role)


@dataclass(frozen=True)
class Actor:
    """Who is calling, as a token says.

    Attributes:
        name: The name of the token's holder: events of the ledger carry it, and the budget of an
            analyst has it.
        role: What they may do.
        token: The public identity of the token, which is not the token.
        by_page: Whether a browser session calls, and not the token itself.
    """

    name: str
    role: Role
    token: str
    by_page: bool = False
