"""What several tests of the parts need."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from torture.inputs import scratch_folder
from torture.inputs.canary_study import make_study


@pytest.fixture(scope="module")
def scratch() -> Iterator[Path]:
    before, home = Path.cwd(), os.environ.get("XDG_STATE_HOME")
    argv = sys.argv
    with scratch_folder() as folder:
        make_study(folder / "template", warm=False)
        yield folder
        os.chdir(before)
        sys.argv = argv
        if home is None:
            del os.environ["XDG_STATE_HOME"]
        else:
            os.environ["XDG_STATE_HOME"] = home
