"""A project is served by an installed takifugu: ``python -m tests.serve_example FOLDER``.

For the wheel in an environment of its own: the standard library and the command are all it needs.
"""

import json
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

COMMAND = (sys.executable, "-m", "takifugu")
PATIENCE = 120


def fetch(url: str, token: str | None = None) -> bytes:
    """What a server answers to a GET that goes well."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - our own server
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:  # noqa: S310
        body: bytes = answer.read()
    return body


def main(folder: Path) -> None:
    """Make a token, start the server, ask it a few things, and stop it."""
    told = ("--project", str(folder), "--json")
    made = subprocess.run(  # noqa: S603 - our own interpreter and arguments
        [*COMMAND, "token", "create", "--role", "owner", "--name", "olga", *told],
        check=True,
        capture_output=True,
        text=True,
    )
    token = json.loads(made.stdout)["secret"]
    subprocess.run([*COMMAND, "serve", "--check", *told], check=True, capture_output=True)  # noqa: S603
    server = subprocess.Popen(  # noqa: S603
        [*COMMAND, "serve", "--port", "0", *told], stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        url = json.loads(server.stdout.readline())["url"]
        ready = json.loads(fetch(f"{url}/readyz"))
        me = json.loads(fetch(f"{url}/api/v1/me", token))
        datasets = json.loads(fetch(f"{url}/api/v1/datasets", token))
        page = fetch(f"{url}/sign-in").decode()
        if ready["status"] != "ready" or me["name"] != "olga" or not datasets["items"]:
            raise SystemExit("the server does not answer as it should")
        if "<form" not in page:
            raise SystemExit("there is no page to sign in on")
    finally:
        server.send_signal(signal.SIGTERM)
        status = server.wait(timeout=PATIENCE)
    if status:
        raise SystemExit(f"the server stopped with status {status}")
    print("served")  # noqa: T201 - a script


if __name__ == "__main__":
    main(Path(sys.argv[1]))
