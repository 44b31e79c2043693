"""Who decides: every event that changes what may be released names its actor."""

import os


def current_actor() -> str:
    """The user that this process runs as: its name, or its number where it has none."""
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return f"uid {os.geteuid()}"
