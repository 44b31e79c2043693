"""Hostile values for every argument and option: one line, a documented status, nothing left behind.

By default each option is given a few of the values, in turn; ``DEEP=1`` gives every one of them.
"""

import os
import shutil
import signal
import stat
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from takifugu._core import atomic as _atomic
from takifugu.cli import exit_status
from takifugu.cli.command_reference import commands
from takifugu.visible import visible
from tests.cli.running import Ran, call
from tests.session.study import write_data

MOST_SECONDS = 10
PATIENCE = 0.1  # for a pipe that nobody writes to
EACH = 1  # values for each option in the default profile
VALID = {  # arguments by place, options by name: what the other values are while one is hostile
    "init": (["fresh"], {}),
    "plan": (["stays", "histogram"], {"--epsilon": "1"}),
    "release": (["stays", "histogram"], {"--epsilon": "1"}),
    "approve": (["plan.json"], {}),
    "schedule show": ([], {}),
    "schedule run": ([], {}),
    "serve": ([], {"--port": "no number"}),
    "report write": (["stays"], {"--out": "new.html"}),
    "report sign": (["report.html"], {"--out": "new.sig"}),
    "report verify": (["report.html"], {"--key": "own.key.pub"}),
    "report key": (["new.key"], {}),
    "curve": (["a.json"], {}),
    "translate": (["a.json"], {"--dp": "0.1"}),
    "reassess": (["a.json"], {"--released": "0.1"}),
    "check": (["world.toml"], {}),
    "collapse": (["2"], {"--repetitions": "100"}),
    "demo": ([], {"--rows": "no number"}),
    "reproduce": (["no such thing"], {}),
    "quickstart": (["stays.csv"], {"--bounds": "state=0..1"}),
    "dataset new": (["stays.csv"], {"--out": "draft.toml"}),
    "dataset add": (["more", "stays.toml"], {}),
    "dataset show": (["stays"], {}),
    "dataset check": (["stays"], {}),
    "dataset accept": (["stays"], {"--separate-from": "other"}),
    "prior show": (["a.json"], {}),
    "prior new": (["0.9,0.1;0.2,0.8"], {"--out": "new.json"}),
    "prior fit": (["stays.csv"], {"--state": "state", "--entity": "person", "--out": "new.json"}),
    "prior smooth": (["a.json"], {"--out": "new.json"}),
    "prior compare": (["stays", "a.json"], {}),
    "prior household": (
        [],
        {
            "--members": "2",
            "--background": "0.1",
            "--infection": "0.2",
            "--recovery": "0.4",
            "--out": "new.json",
        },
    ),
    "prior contacts": (
        ["met.txt"],
        {"--background": "0.02", "--per-hour": "1.5", "--out": "new.json"},
    ),
    "prior accept": (["stays"], {}),
    "budget set": (["stays", "3"], {}),
    "budget show": (["stays"], {}),
    "token create": ([], {"--role": "analyst", "--name": "ana"}),
    "token list": ([], {}),
    "token revoke": (["beef"], {}),
    "witness list": ([], {}),
    "witness forget": (["0" * 32], {}),
    "ledger show": (["takifugu.ledger"], {}),
    "ledger verify": (["takifugu.ledger"], {}),
    "ledger export": (["takifugu.ledger", "events.jsonl"], {}),
    "ledger backup": (["takifugu.ledger", "new.ledger"], {}),
    "ledger restore": (["takifugu.ledger", "copy.ledger"], {}),
    "ledger accept-loss": (["takifugu.ledger"], {}),
    "ledger begin-witness": (["takifugu.ledger"], {}),
}
VALUES = [
    ".",
    "..",
    "",
    "-",
    "x" * 300,
    "y" * 5000,
    "folder",
    "null",
    "full",
    "fifo",
    "loop",
    "locked",
    "locked/inside.json",
    "half \udcff.json",
    "a\x1b[2J\n\u202eb.json",
    "no/such/folder.csv",
    "a.json/below.json",
    "=1+1",
    "../a.json",
    "\U0001f421.csv",
]
SLOTS = [
    (name, option)
    for name, command in commands()
    for option in [
        *range(len(VALID[name][0])),
        *(
            option.opts[0]
            for option in command.params
            if option.param_type_name == "option"
            and not option.is_flag
            and "--help" not in option.opts
        ),
    ]
]
CASES = [
    (name, option, VALUES[(place * EACH + k) % len(VALUES)])
    for place, (name, option) in enumerate(SLOTS)
    for k in range(len(VALUES) if os.environ.get("DEEP") else EACH)
]


class Hung(BaseException):
    """It took too long."""


@contextmanager
def alarm() -> Iterator[None]:
    def hung(*_: Any) -> None:
        raise Hung

    before = signal.signal(signal.SIGALRM, hung)
    signal.alarm(MOST_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("template") / "study"
    folder.mkdir()
    write_data(folder)
    examples = Path(__file__).parents[2] / "docs" / "examples"
    shutil.copy(min(examples.glob("*.toml")), folder / "world.toml")
    (folder / "met.txt").write_text("0 ann bob\n20 ann cem\n", encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        for line in (
            "init",
            "dataset add stays stays.toml",
            "prior new 0.9,0.1;0.2,0.8 --states home,ward --length 12 -o a.json",
            "prior fit stays --first-steps 8",
            "budget set stays 2",
            "release stays histogram --epsilon 0.5",
            "plan stays histogram --epsilon 0.6 --out plan.json",
            "ledger backup copy.ledger",
        ):
            ran = call(folder, patch, *line.split())
            assert ran.status == 0, (line, ran.err)
    (folder / "folder").mkdir()
    os.mkfifo(folder / "fifo")
    _devices(folder)
    (folder / "loop").symlink_to("loop")
    (folder / "locked").mkdir()
    (folder / "locked" / "inside.json").write_text("{}")
    return folder


def _devices(folder: Path) -> None:
    """Devices of our own: root, whom nothing stops, must not be let at those of the machine."""
    for name, number in (("null", 3), ("full", 7)):
        try:
            os.mknod(folder / name, stat.S_IFCHR | 0o666, os.makedev(1, number))
        except OSError:
            os.mkfifo(folder / name)  # the next best that is no ordinary file


def contents(folder: Path) -> dict[str, bytes | int]:
    """What is there: files by content, anything else by its kind and mode."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        if path.is_file() and not path.is_symlink()
        else path.lstat().st_mode
        for path in folder.rglob("*")
        if "state" not in path.parts and not path.name.endswith(("-wal", "-shm"))
    }


def copy_of(template: Path, place: Path) -> Path:
    def special_too(source: str, target: str) -> None:
        facts = os.lstat(source)
        if stat.S_ISREG(facts.st_mode):
            shutil.copy2(source, target)
        else:
            os.mknod(target, facts.st_mode, facts.st_rdev)

    shutil.copytree(template, place, symlinks=True, copy_function=special_too)
    return place


def words_of(name: str, option: int | str, value: str) -> list[str]:
    places, options = VALID[name]
    places = [value if place == option else word for place, word in enumerate(places)]
    options = {**options, option: value} if isinstance(option, str) else options
    given = [f"{flag}={word}" for flag, word in options.items()]
    return [*name.split(), *given, "--", *places]


def wrong(ran: Ran, before: dict[str, bytes | int], after: dict[str, bytes | int]) -> list[str]:
    found = []
    if ran.status not in exit_status.MEANINGS:
        found.append(f"status {ran.status}")
    if ran.status and (ran.err.count("\n") != 1 or not ran.err.startswith("takifugu: ")):
        found.append(f"not one line: {ran.err!r}")
    if len(ran.err) > 3000:
        found.append(f"a line of {len(ran.err)} letters")
    if any(visible(text, keep="\n") != text for text in (ran.out, ran.err)):
        found.append("marks that act")
    if ran.status and before != after:
        changed = {k for k in before | after if before.get(k, b"-") != after.get(k, b"-")}
        found.append(f"left behind: {sorted(changed)}")
    if any(name.endswith(".part") for name in after):
        found.append("a half-written file")
    return found


def attacked(template: Path, place: Path, case: Any) -> list[str]:
    name, option, value = case
    folder = copy_of(template, place / "study")
    (folder / "locked").chmod(0)
    before = contents(place)
    try:
        with pytest.MonkeyPatch.context() as patch, alarm():
            patch.setenv("XDG_STATE_HOME", str(folder / "state"))
            patch.setattr(_atomic, "PIPE_TIMEOUT", PATIENCE)
            ran = call(folder, patch, *words_of(name, option, value))
    except Hung:
        return ["hangs"]
    except Exception:  # noqa: BLE001 - a traceback is what is looked for
        return [traceback.format_exc().strip()[-400:]]
    else:
        return wrong(ran, before, contents(place))
    finally:
        (folder / "locked").chmod(0o700)
        shutil.rmtree(place)


def test_every_command_is_attacked() -> None:
    assert {name for name, _ in SLOTS} == set(dict(commands()))
    assert {value for _, _, value in CASES} == set(VALUES)


@pytest.mark.nightly
@pytest.mark.parametrize("name", dict(commands()))
def test_a_hostile_value_is_one_line_and_leaves_nothing(
    name: str, template: Path, tmp_path: Path
) -> None:
    problems = {}
    for case in CASES:
        if case[0] == name:
            found = attacked(template, tmp_path / "case", case)
            if found:
                problems[case[1], case[2][:40]] = found
    assert not problems
