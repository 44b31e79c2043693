"""Priors as files: what is written is read back, what is not a prior is refused in one line."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from takifugu.errors import InvalidFile, InvalidPrior, TakifuguError
from takifugu.priors import Prior, from_document, read_prior, write_prior
from tests.priors.families import CHAIN, PRIORS
from tests.raising import raises


@pytest.mark.parametrize("prior", PRIORS, ids=lambda p: p.kind)
def test_what_is_written_is_read_back(prior: Prior, tmp_path: Path) -> None:
    path = tmp_path / "prior.json"
    write_prior(prior, path)
    again = read_prior(path)
    assert again == prior and again.fingerprint == prior.fingerprint
    assert [p.name for p in tmp_path.iterdir()] == ["prior.json"]


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("{", "prior.json"),
        ("[]", "document"),
        ('{"kind": "markov-chian", "transition": [[1]]}', "kind"),
        ('{"kind": 3}', "kind"),
        ('{"kind": "markov-chain", "transition": [[NaN]]}', "prior.json"),
        ('{"kind": "product"}', "parts"),
        ('{"kind": "product", "parts": {}, "x": 1}', "x"),
        ("[" * 100_000, "prior.json"),
        ("\x00\x01", "prior.json"),
    ],
)
def test_what_is_no_prior_is_refused(text: str, field: str, tmp_path: Path) -> None:
    path = tmp_path / "prior.json"
    path.write_text(text)
    with pytest.raises((InvalidFile, InvalidPrior)) as caught:
        read_prior(path)
    assert Path(caught.value.field).name == field and "\n" not in str(caught.value)


def test_files_that_cannot_be_read_or_written(tmp_path: Path) -> None:
    with raises(InvalidFile, reason="missing"):
        read_prior(tmp_path / "nothing.json")
    with raises(InvalidFile, reason="unreadable"):
        read_prior(tmp_path)
    (tmp_path / "latin.json").write_bytes(b"\xff\xfe\xfa")
    with raises(InvalidFile, reason="text"):
        read_prior(tmp_path / "latin.json")
    with raises(InvalidFile, reason="unwritable"):
        write_prior(CHAIN, tmp_path / "no" / "folder.json")


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.costly
@given(data=st.data())
def test_damaged_documents_are_priors_or_clear_errors(data: st.DataObject) -> None:
    prior = data.draw(st.sampled_from(PRIORS))
    document = json.loads(json.dumps(prior.to_document()))
    key = data.draw(st.sampled_from(sorted(document)))
    if data.draw(st.booleans()):
        del document[key]
    else:
        document[key] = data.draw(JSON)
    try:
        from_document(document)
    except TakifuguError as error:
        problem = str(error)
    else:
        return
    assert "\n" not in problem
