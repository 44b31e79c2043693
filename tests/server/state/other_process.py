"""Another process that uses a state: `python -m tests.server.state.other_process PLACE MODE …`.

revoke ID          revoke a token; print its identity
whose SECRET       print the name and role of a token, or "nobody"
create NAME ROLE   make a token; print the secret
"""

import sys
from typing import Any

from takifugu.server.state.server_state import state_at


def main(place: str, mode: str, *arguments: Any) -> None:
    with state_at(place, create=False) as state:
        if mode == "revoke":
            said = state.revoke_token(arguments[0], "another process").id
        elif mode == "whose":
            found = state.token_of(arguments[0])
            said = "nobody" if found is None else f"{found.name} {found.role}"
        else:
            said = state.create_token(arguments[0], arguments[1], None, "another process").secret
    sys.stdout.write(said)


if __name__ == "__main__":
    main(*sys.argv[1:])
