"""Tells systemd, if it has started this process, that the server is ready or stopping.

The protocol is one datagram to the socket that ``$NOTIFY_SOCKET`` names (sd_notify(3)).
"""

import contextlib
import os
import socket


def tell_manager(state: str) -> None:
    """Send ``state``, such as ``READY=1``; nothing happens where nobody listens."""
    place = os.environ.get("NOTIFY_SOCKET", "")
    if not place.startswith(("/", "@")):
        return
    address = f"\0{place[1:]}" if place.startswith("@") else place
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
        made.sendto(state.encode(), address)
