"""All commands together: --json, help, statuses, completion, and a page that names them all."""

from pathlib import Path

import pytest

import takifugu.declarations.table_errors
import takifugu.errors
import takifugu.ledger
import takifugu.project.policy
from takifugu.cli import exit_status
from takifugu.cli.command_reference import commands, rewritten, section
from takifugu.cli.commands import release_command as outputs
from takifugu.project import batches, schedules
from takifugu.reports import pdf_file, report_signature
from takifugu.session import release_errors
from tests.cli.running import call, run
from tests.session.study import write_data

(PAGE,) = (Path(__file__).parents[2] / "docs").rglob("commands.md")
TEXT = PAGE.read_text(encoding="utf-8")
COMMANDS = dict(commands())


def test_there_are_commands() -> None:
    wanted = {"init", "plan", "release", "dataset add", "dataset show", "dataset check"}
    wanted |= {"prior fit", "prior show", "budget show", "budget set"}
    assert wanted | {"ledger show", "ledger verify", "ledger export"} <= set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_json_and_help(name: str) -> None:
    command = COMMANDS[name]
    flags = {flag for parameter in command.params for flag in parameter.opts}
    assert "--json" in flags
    assert command.help and all(
        parameter.help for parameter in command.params if "--help" not in parameter.opts
    )
    assert "JSON:" not in command.help
    keys = "\n\nKeys of the JSON object: " in section(name, command)
    assert keys or name == "check", f"the page does not name the keys of the JSON of {name}"


def test_the_page_says_what_the_help_says() -> None:
    command = f"python -m takifugu.cli.command_reference {PAGE}"
    assert rewritten(TEXT) == TEXT, f"run: {command}"


def test_the_section_of_a_command_names_every_option() -> None:
    text = section("plan", COMMANDS["plan"])
    assert "takifugu plan [NAME] [KIND]" in text and COMMANDS["plan"].help in text
    flags = [flag for parameter in COMMANDS["plan"].params for flag in parameter.opts]
    assert all(f"`{flag}`" in text for flag in flags if flag.startswith("-") and flag != "--help")


def test_the_page_and_the_help_have_the_same_statuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = call(tmp_path, monkeypatch, "--help")
    assert page.status == 0
    for code, told in exit_status.MEANINGS.items():
        assert f"    {code}  {told}" in page.out and f"| {code} | {told} |" in TEXT


def test_statuses_are_those_of_real_errors() -> None:
    engines, policy = takifugu.declarations.table_errors, takifugu.project.policy
    files = (outputs, pdf_file, report_signature)
    modules = (takifugu.errors, engines, policy, *files, batches, schedules, release_errors)
    for name in exit_status.BY_NAME:
        kinds = {getattr(module, name) for module in modules if hasattr(module, name)}
        assert len(kinds) == 1 and issubclass(kinds.pop(), takifugu.errors.TakifuguError)
    error = takifugu.errors.NoBudget("x")
    assert exit_status.status_of(error) == exit_status.REFUSED
    assert exit_status.status_of(takifugu.errors.LedgerConflict("x")) == exit_status.MISTAKE


JSON = [
    "quickstart stays.csv --public zone --folder quick --json",
    "init --json",
    "dataset new stays.csv --out draft.toml --json",
    "dataset add stays stays.toml --json",
    "prior fit stays --first-steps 8 --json",
    "budget set stays 2 --json",
    "budget show stays --json",
    "plan stays histogram --epsilon 1 --json",
    "plan stays count --values ward --epsilon 1 --out ward.json --json",
    "approve ward.json --json",
    "release stays histogram --epsilon 1 --json",
    "schedule show --json",
    "schedule run --json",
    "report write --json",
    "report key own.key --json",
    "report sign report.html --key own.key --json",
    "report verify report.html --key own.key.pub --json",
    "dataset accept stays --yes --json",
    "dataset show stays --json",
    "dataset check stays --json",
    "prior show stays --json",
    "prior accept stays --json",
    "prior new 0.9,0.1;0.2,0.8 --states home,ward --length 4 -o a.json --json",
    "prior new 0.7,0.3;0.2,0.8 --states home,ward -o d.json --json",
    "prior compare stays d.json --json",
    "prior household --members 2 --background .1 --infection .2 --recovery .4 -o h.json --json",
    "prior contacts met.txt --background .02 --per-hour 1.5 -o met.json --json",
    "prior smooth a.json -o b.json --json",
    "prior fit stays.csv --state state --entity person -o c.json --json",
    "curve a.json --json",
    "translate a.json --dp 0.1 --json",
    "reassess a.json --released 0.1 --json",
    "check world.toml --json",
    "collapse 2 --repetitions 100 --json",
    "token create --role analyst --name ana --json",
    "token list --json",
    "token revoke --name ana --json",
    "witness list --json",
    "ledger show --json",
    "ledger verify --json",
    "ledger export events.jsonl --json",
    "ledger backup copy.ledger --json",
    "ledger restore copy.ledger --json",
]


@pytest.mark.nightly
def test_the_json_of_every_command_is_one_object_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_data(tmp_path)
    examples = Path(__file__).parents[2] / "docs" / "examples"
    (tmp_path / "met.txt").write_text("20 1 2\n40 1 2\n60 2 3\n")
    world = min(examples.glob("*.toml"))
    (tmp_path / "world.toml").write_text(world.read_text(encoding="utf-8"), encoding="utf-8")
    done = set()
    for line in JSON:
        ran = call(tmp_path, monkeypatch, *line.split())
        assert ran.status in (0, 1), (line, ran.err)
        assert isinstance(ran.__class__(0, ran.out, ran.err).json(), dict), line
        assert ran.err == "", line
        done |= {name for name in COMMANDS if line.startswith(name)}
    elsewhere = {
        "demo",
        "reproduce",
        "serve",
        "ledger accept-loss",
        "ledger begin-witness",
        "witness forget",
    }  # each has a test of its own
    assert done == set(COMMANDS) - elsewhere


@pytest.mark.nightly
def test_a_shell_can_complete_commands_datasets_and_shells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = run(tmp_path, "--show-completion", "bash")
    assert (
        script.status == 0 and "complete -o default -F _takifugu_completion takifugu" in script.out
    )
    assert "compdef" in run(tmp_path, "--show-completion", "zsh").out
    assert run(tmp_path, "--show-completion", "cmd").status == 2
    write_data(tmp_path)
    for line in ("init", "dataset add stays stays.toml"):
        assert call(tmp_path, monkeypatch, *line.split()).status == 0
    with (tmp_path / "takifugu.toml").open("a") as policy:
        policy.write("[dataset.stains]\ndeclaration = 'stains.toml'\n")

    def completed(words: str) -> list[str]:
        monkeypatch.setenv("_TAKIFUGU_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
        return run(tmp_path).out.split()

    assert completed("takifugu bud") == ["budget"]
    assert completed("takifugu budget s") == ["set", "show"]
    assert completed("takifugu plan sta") == ["stays", "stains"]
    assert completed("takifugu release stays hist") == ["histogram"]
    assert completed("takifugu plan --eps") == ["--epsilon"]
    (tmp_path / "takifugu.toml").write_text("[[[")
    assert completed("takifugu plan sta") == []


def test_completion_can_be_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    done = run(tmp_path, "--install-completion", "bash")
    assert done.status == 0 and "completion installed" in done.out
    assert any("_TAKIFUGU_COMPLETE" in p.read_text() for p in tmp_path.rglob("*") if p.is_file())
