"""The example of the README, run as printed where only the wheel is installed.

python -m tests.readme_example      in an empty folder
"""

import re
from pathlib import Path

import takifugu
from tests.visits import LABELS, write_visits

README = Path(__file__).parents[1] / "README.md"


def example() -> str:
    """The first block of code of the README."""
    first = re.search(
        r"^```(\w+)\n(.*?)^```$", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    assert first is not None and first[1] == "python"
    return first[2]


if __name__ == "__main__":
    assert not Path(takifugu.__file__).is_relative_to(README.parent), "not the repository's own"
    write_visits(Path())
    names = {"labels": LABELS}
    exec(compile(example(), "README.md", "exec"), names)  # noqa: S102 - our own code
    print(names["result"])  # noqa: T201
