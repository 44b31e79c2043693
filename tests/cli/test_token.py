"""Tokens on the command line: made, listed, revoked, and written down in the ledger."""

import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from takifugu.project.project import open_project
from takifugu.server.access.tokens import expiry_of
from takifugu.server.state.server_state import open_state
from takifugu.server.state.state_store import InvalidToken
from tests.cli.running import Call, call, run
from tests.raising import raises

NOW = datetime(2026, 11, 16, 10, 30, tzinfo=UTC)


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("token") / "study"
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        assert call(folder, patch, "init").status == 0
    return folder


def access_events(study: Path) -> list[tuple[str, str, str, str]]:
    with open_project(study).ledger(read_only=True) as ledger:
        found = [event.body for event in ledger.history(kind="access")]
        assert ledger.verify().sound
    return [(body["how"], body["name"], body["role"], body["token"]) for body in found]


def test_a_token_is_shown_once_and_can_be_caught_by_a_shell(study: Path, do: Call) -> None:
    made = do("token create --role analyst --name ana --expires 12h")
    secret = made.out.strip()
    assert made.status == 0 and secret.startswith("tf_") and len(secret) == 46
    assert secret not in made.err and "ana" in made.err
    with open_state(open_project(study), create=False) as state:
        record = state.token_of(secret)
    assert record is not None and record.expires is not None
    assert (record.name, record.role) == ("ana", "analyst")
    left = record.expires - datetime.now(UTC)
    assert timedelta(hours=11) < left <= timedelta(hours=12)
    for path in study.iterdir():
        assert path.is_dir() or secret.encode() not in path.read_bytes()
    assert stat.S_IMODE((study / "takifugu.server").stat().st_mode) == 0o600
    assert access_events(study) == [("made", "ana", "analyst", record.id)]


def test_the_default_is_ninety_days_and_never_must_be_said(do: Call) -> None:
    made = do("token create --role owner --name olga --json").json()
    ends = datetime.fromisoformat(made["expires"])
    lasts = ends - datetime.fromisoformat(made["made"])
    assert timedelta(days=89, hours=23) < lasts <= timedelta(days=90)
    assert made["secret"].startswith("tf_") and made["role"] == "owner"
    assert (
        do("token create --role auditor --name a --expires never --json").json()["expires"] is None
    )


def test_tokens_are_listed_with_their_state_and_last_use(study: Path, do: Call) -> None:
    assert do("token list --json").json() == {"tokens": []}
    assert not (study / "takifugu.server").exists()  # a list makes nothing
    one = do("token create --role analyst --name ana --json").json()
    two = do("token create --role witness --name elsewhere --expires never --json").json()
    listed = do("token list --json").json()["tokens"]
    assert [(row["id"], row["state"], row["used"]) for row in listed] == [
        (one["id"], "live", None),
        (two["id"], "live", None),
    ]
    with open_state(open_project(study)) as state:
        record = state.token_of(one["secret"])
        assert record is not None
        state.note_use(record)
    assert do("token list --json").json()["tokens"][0]["used"] is not None
    assert do(f"token revoke {one['id']} --json").json()["revoked"][0]["state"] == "revoked"
    assert [row["id"] for row in do("token list --json").json()["tokens"]] == [two["id"]]
    every = do("token list --all --json").json()["tokens"]
    assert [row["state"] for row in every] == ["revoked", "live"]
    text = do("token list --all").out
    assert "ana" in text and "elsewhere" in text and "revoked" in text
    secrets = (one["secret"], two["secret"])
    assert not any(secret in text + str(every) for secret in secrets)


def test_a_token_is_revoked_by_its_identity_by_name_or_by_itself(study: Path, do: Call) -> None:
    made = [do("token create --role analyst --name ana --json").json() for _ in range(4)]
    do(f"token revoke {made[0]['id']}")
    do(f"token revoke {made[1]['secret']}")
    revoked = do("token revoke --name ana --json").json()["revoked"]
    assert [row["id"] for row in revoked] == [made[2]["id"], made[3]["id"]]
    with open_state(open_project(study)) as state:
        assert not any(state.token_of(one["secret"]) for one in made)
    assert do(f"token revoke {made[0]['id']}").status == 0  # again: nothing more to write down
    assert [how for how, *_ in access_events(study)] == ["made"] * 4 + ["revoked"] * 4


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ("token revoke", "ID"),
        ("token revoke beef --name ana", "ID"),
        ("token revoke beef", "token"),
        ("token revoke --name ana", "name"),
        ("token revoke tf_unknown", "token"),
        ("token create --role owner --name ana", "role"),
        ("token create --role analyst --name Ana", "name"),
        ("token create --role analyst --name bo --expires 0d", "expires"),
        ("token create --role analyst --name bo --expires 2020-01-01", "expires"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_changes_nothing(
    study: Path, do: Call, line: str, field: str
) -> None:
    do("token create --role analyst --name ana")
    if line == "token revoke --name ana":
        line = "token revoke --name nobody"
    before = access_events(study)
    ran = do(line)
    assert ran.status == 2 and ran.err.count("\n") == 1 and ran.out == ""
    assert getattr(ran.error, "field", None) == field
    assert "tf_unknown" not in ran.err
    assert access_events(study) == before


@pytest.mark.parametrize("name", ["ana\r\nSet-Cookie: x=y", "a\x1b[2Jb", " ana", ""])
def test_a_name_with_marks_that_do_not_show_is_refused(
    study: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    ran = call(study, monkeypatch, "token", "create", "--role", "analyst", "--name", name)
    assert ran.status == 2 and ran.err.count("\n") == 1
    assert access_events(study) == []


def test_without_its_ledger_no_token_is_made(study: Path, do: Call) -> None:
    (study / "takifugu.ledger").rename(study / "elsewhere.ledger")
    ran = do("token create --role analyst --name ana")
    assert ran.status != 0 and ran.out == ""
    with open_state(open_project(study)) as state:
        assert state.tokens() == []


def test_a_token_is_revoked_even_if_the_ledger_cannot_be_written(study: Path, do: Call) -> None:
    made = do("token create --role analyst --name ana --json").json()
    (study / "takifugu.ledger").rename(study / "elsewhere.ledger")
    assert do(f"token revoke {made['id']}").status != 0
    with open_state(open_project(study)) as state:
        assert state.token_of(made["secret"]) is None


@pytest.mark.nightly
def test_as_a_process(study: Path) -> None:
    made = run(study, "token", "create", "--role", "analyst", "--name", "ana")
    assert made.status == 0, made.err
    listed = run(study, "token", "list", "--json").json()["tokens"]
    assert [row["name"] for row in listed] == ["ana"]


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("90d", NOW + timedelta(days=90)),
        ("1h", NOW + timedelta(hours=1)),
        ("2026-11-17", datetime(2026, 11, 17, tzinfo=UTC)),
        ("2026-11-16T12:00:00+01:00", datetime(2026, 11, 16, 11, tzinfo=UTC)),
        ("never", None),
    ],
)
def test_when_a_token_ends(text: str, ends: datetime | None) -> None:
    assert expiry_of(text, NOW) == ends


@pytest.mark.parametrize(
    "text",
    [
        *("", "0d", "-1d", "1.5d", "90", "3w", "d", "Never", "１d", "99999999d", "9999999d"),
        *("2026-11-16", "2026-13-01", "2026-11-16T12:00:00", "2026-11-16T11:00:00+01:00"),
        *("20261117", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "tomorrow", "∞"),
    ],
)
def test_what_is_no_end_is_refused(text: str) -> None:
    with raises(InvalidToken, field="expires", reason="expires"):
        expiry_of(text, NOW)
