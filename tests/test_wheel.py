"""The wheel holds the package and nothing else, and works where the repository is not."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import takifugu

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
MADE = ("__pycache__", "*.egg-info", "*.nbi", "*.nbc")


def run(*line: str, cwd: Path, **variables: str) -> str:
    """What a Python process prints, which must end well."""
    done = subprocess.run(  # noqa: S603 - the project's own build and commands
        [sys.executable, *line],
        cwd=cwd,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of a copy of the sources, built as `make wheel` builds it."""
    copy = tmp_path_factory.mktemp("wheel")
    shutil.copytree(SOURCE, copy / "src", ignore=shutil.ignore_patterns(*MADE))
    for name in ("pyproject.toml", "README.md", "LICENSE", "MANIFEST.in"):
        shutil.copy(ROOT / name, copy)
    run("-m", "build", "--no-isolation", "--outdir", "dist", ".", cwd=copy)
    (built,) = (copy / "dist").glob("*.whl")
    return built


@pytest.mark.nightly
def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    about = f"takifugu-{takifugu.__version__}.dist-info"
    assert {name.partition("/")[0] for name in names} == {"takifugu", about}
    assert f"{about}/licenses/LICENSE" in names and f"{about}/entry_points.txt" in names
    wanted = {
        path.relative_to(SOURCE).as_posix()
        for path in (SOURCE / "takifugu").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name for name in names if name.startswith("takifugu/")} == wanted


@pytest.mark.nightly
def test_the_wheel_works_where_the_repository_is_not(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    def there(*line: str) -> str:
        return run(*line, cwd=elsewhere, PYTHONPATH=str(tmp_path / "installed"))

    where = there("-c", "import takifugu; print(takifugu.__file__)")
    assert Path(where.strip()).is_relative_to(tmp_path / "installed")
    command = ("-m", "takifugu")
    assert takifugu.__version__ in there(*command, "--version")
    there(*command, "prior", "new", "0.9,0.1;0.2,0.8", "--length", "5", "-o", "ward.json")
    assert "Pufferfish" in there(*command, "translate", "ward.json", "--dp", "1")
