"""The policy file: read strictly, never half-written, its comments kept."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.errors import InvalidFile, TakifuguError
from takifugu.project import policy_writing as write
from takifugu.project.policy import InvalidProject, parse_policy
from takifugu.project.project import init_project, open_project
from tests.raising import raises


def test_init_makes_a_file_that_can_be_read_and_a_ledger(tmp_path: Path) -> None:
    project = init_project(tmp_path / "new" / "study")
    assert project.policy.datasets == {} and project.policy.ledger == "takifugu.ledger"
    with project.ledger(read_only=True) as ledger:
        assert ledger.head().seq == 1
    assert open_project(project.folder) == open_project(project.file)
    before = project.file.read_bytes()
    with raises(InvalidProject, field=str(project.file), reason="exists"):
        init_project(project.folder)
    assert project.file.read_bytes() == before


@pytest.mark.parametrize(
    "ledger", ["nowhere/x.ledger", "postgresql://u:secret@h/d", "mysql://h/d", "postgresql://u@[/d"]
)
def test_a_ledger_that_cannot_be_used_leaves_nothing_behind(tmp_path: Path, ledger: str) -> None:
    with pytest.raises(TakifuguError) as refused:
        init_project(tmp_path / "study", ledger=ledger)
    assert "secret" not in str(refused.value) and "\n" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []


PRIOR = "[[dataset.a.prior]]\nfile = 'p'\n"
GOOD = """
[ledger]
place = "x.ledger"
id = "ab"
[dataset.a]
declaration = "a.toml"
"""


@pytest.mark.parametrize(
    ("text", "field", "reason"),
    [
        ("", "ledger", "missing"),
        ("[ledger", "file", "syntax"),
        (GOOD + "[other]\n", "other", "unknown key"),
        (GOOD + "budget = 2\n", "dataset, a, budget", "unknown key"),
        (GOOD + "aboot = 'x'\n", "dataset, a, aboot", "unknown key"),
        (GOOD.replace('"ab"', "3"), "ledger, id", "kind"),
        (GOOD.replace("x.ledger", "postgresql://u:pw@h/d"), "ledger, place", "password"),
        (GOOD.replace("x.ledger", "postgresql://h/d?password=pw"), "ledger, place", "password"),
        (GOOD.replace("dataset.a", 'dataset."a b"'), "dataset", "name"),
        (GOOD.replace('"a.toml"', "''"), "dataset, a, declaration", "kind"),
        (GOOD + "uncertainty = 1\n", "dataset, a, uncertainty", "range"),
        (GOOD + "uncertainty = nan\n", "dataset, a, uncertainty", "range"),
        (GOOD + "pairs = 'a/b'\n", "dataset, a, pairs", "kind"),
        (GOOD + "pairs = [['a', 'b', 'c']]\n", "dataset, a, pairs", "kind"),
        (GOOD + "pairs = [['a', []]]\n", "dataset, a, pairs", "kind"),
        (GOOD + "pairs = []\n", "dataset, a, pairs", "kind"),
        (GOOD + "secrets_within = 'far'\n", "dataset, a, secrets_within", "kind"),
        (GOOD + "secrets_within = true\n", "dataset, a, secrets_within", "kind"),
        (GOOD + "secrets_within = nan\n", "dataset, a, secrets_within", "kind"),
        (GOOD + "secrets_within = 0\n", "dataset, a, secrets_within", "range"),
        (GOOD + "entries = 3\n", "dataset, a, entries", "kind"),
        (GOOD + "analysts = [3]\n", "dataset, a, analysts", "kind"),
        (GOOD + "release_fitted_rows = 'yes'\n", "dataset, a, release_fitted_rows", "kind"),
        (GOOD + "table = 1\n", "dataset, a, table", "kind"),
        (GOOD + "prior = 'a.json'\n", "dataset, a, prior", "kind"),
        (GOOD + "[[dataset.a.prior]]\n", "dataset, a, prior, file", "missing"),
        (GOOD + PRIOR + "fitted = 'half'\n", "dataset, a, prior, fitted", "choice"),
        (GOOD + PRIOR + "fitted = 'all-rows'\n", "dataset, a, prior, fingerprint", "missing"),
        (
            GOOD + PRIOR + "fingerprint='f'\nfitted = 'first-days'\n",
            "dataset, a, prior, released_from",
            "missing",
        ),
        (GOOD + PRIOR + "released_from = 3\n", "dataset, a, prior, released_from", "superfluous"),
        (
            GOOD + PRIOR + "fingerprint='f'\nfitted='first-days'\n"
            "released_from = 2012-01-01T00:00:00Z\n",
            "dataset, a, prior, released_from",
            "kind",
        ),
        (
            GOOD + PRIOR + "fingerprint='f'\nfitted='share'\nsalt='s'\nshare = '6/5'\n",
            "dataset, a, prior, share",
            "range",
        ),
    ],
)
def test_a_policy_that_is_not_understood_is_refused_in_one_line(
    text: str, field: str, reason: str
) -> None:
    with raises(InvalidProject, field=field, reason=reason) as refused:
        parse_policy(text)
    assert "\n" not in str(refused.value)


def test_a_misspelt_key_is_answered_with_the_nearest_one() -> None:
    with pytest.raises(InvalidProject) as refused:
        parse_policy(GOOD + "aboot = 'x'\n")
    assert "'about'" in refused.value.needed


def test_a_file_that_is_not_there_says_what_to_do(tmp_path: Path) -> None:
    with raises(InvalidFile, field=str(tmp_path / "takifugu.toml")) as refused:
        open_project(tmp_path)
    assert "takifugu init" in refused.value.needed


NAMES = st.text(
    st.characters(codec="utf-8", categories=("L", "N", "P", "S")), min_size=1, max_size=9
)
SIDES = st.lists(NAMES | st.integers(-9, 9), min_size=1, max_size=3)


@settings(max_examples=20)
@given(
    pairs=st.lists(st.tuples(SIDES, SIDES), min_size=1, max_size=3),
    analysts=st.lists(NAMES, max_size=3, unique=True),
    uncertainty=st.floats(0, 0.999),
    comment=st.sampled_from(["", "# mine\n", "\n\n#x", "[dataset.other]\ndeclaration = 'o.toml'"]),
)
def test_what_is_entered_is_what_is_read_and_the_rest_stays_as_it_was(
    tmp_path_factory: pytest.TempPathFactory,
    pairs: list[tuple[list[Any], list[Any]]],
    analysts: list[str],
    uncertainty: float,
    comment: str,
) -> None:
    file = tmp_path_factory.mktemp("p") / "takifugu.toml"
    text = write.head("takifugu.ledger", "ab") + comment
    file.write_text(text, encoding="utf-8")
    values = {
        "declaration": "stays.toml",
        "pairs": [[left, right] for left, right in pairs],
        "uncertainty": uncertainty,
        "prior": [{"file": "a.json"}, {"file": "b.json"}],
    } | ({"analysts": analysts} if analysts else {})
    write.add_dataset(file, "stays", values)
    now = file.read_text(encoding="utf-8")
    assert now.startswith(text)
    policy = parse_policy(now).datasets["stays"]
    assert policy.pairs == tuple((tuple(left), tuple(right)) for left, right in pairs)
    assert policy.analysts == tuple(analysts) and policy.uncertainty == uncertainty
    assert [prior.file for prior in policy.priors] == ["a.json", "b.json"]
    write.add_prior(file, "stays", {"file": "c.json"}, replace=False)
    write.add_prior(file, "stays", {"file": "d.json"}, replace=True)
    now = file.read_text(encoding="utf-8")
    assert [p.file for p in parse_policy(now).datasets["stays"].priors] == ["d.json"]
    assert now.startswith(text) and list(file.parent.iterdir()) == [file]


def test_replacing_a_prior_keeps_the_comments_around_it(tmp_path: Path) -> None:
    file = tmp_path / "takifugu.toml"
    file.write_text(
        GOOD + "[[dataset.a.prior]]  # first\nfile = 'p.json'\n\n# about b\n[dataset.b] # b\n"
        "declaration = 'b.toml'\n[[ dataset.a.prior ]]\n# gone with it\nfile = 'q.json'\n# end\n"
    )
    write.add_prior(file, "a", {"file": "new.json"}, replace=True)
    text = file.read_text()
    assert "# about b\n[dataset.b] # b" in text and "# end\n" in text and "p.json" not in text
    assert [p.file for p in parse_policy(text).datasets["a"].priors] == ["new.json"]


@pytest.mark.parametrize(
    "text",
    [
        GOOD + "prior = [{file = 'p.json'}]\n",
        GOOD.replace("[dataset.a]\ndeclaration", "[dataset]\na = {declaration").rstrip() + "}\n",
    ],
)
def test_a_file_that_cannot_be_added_to_is_left_as_it_was(tmp_path: Path, text: str) -> None:
    file = tmp_path / "takifugu.toml"
    file.write_text(text)
    with raises(InvalidProject, field=str(file), reason="layout"):
        write.add_prior(file, "a", {"file": "new.json"}, replace=True)
    assert file.read_text() == text and list(tmp_path.iterdir()) == [file]


def test_an_edit_by_somebody_else_meanwhile_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "takifugu.toml"
    file.write_text(GOOD)
    true_loads = tomllib.loads

    def meanwhile(text: str, **how: Any) -> dict[str, Any]:
        file.write_text(GOOD + "# theirs\n")
        return true_loads(text, **how)

    monkeypatch.setattr(tomllib, "loads", meanwhile)
    with raises(InvalidProject, field=str(file), reason="changed-meanwhile"):
        write.add_dataset(file, "b", {"declaration": "b.toml"})
    assert file.read_text() == GOOD + "# theirs\n"


@pytest.mark.parametrize(
    "given", ["'b.json'", "{ file = 'b.json' }", "3", "'it\\'s \\\\ \"b\".json'"]
)
def test_the_advice_for_a_prior_works_when_pasted(given: str) -> None:
    given = given.replace("\\'", "") if given.startswith("'it") else given
    with pytest.raises(InvalidProject) as refused:
        parse_policy(GOOD + f"prior = {given}\nabout = 'x'\n")
    words = str(refused.value)
    header = words[words.index("[[") : words.index("]]") + 2]
    line = words[words.index("file = ") :].removesuffix(" in a project file")
    policy = parse_policy(GOOD + f"about = 'x'\n{header}\n{line}\n").datasets["a"]
    assert len(policy.priors) == 1 and policy.about == "x"
    assert given != "'b.json'" or policy.priors[0].file == "b.json"
