"""World files: what is read, what is refused, and that writing loses nothing."""

import copy
import json
import os
import tomllib
from fractions import Fraction
from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.errors import InvalidFile, TakifuguError
from takifugu.finite.files import Form, WorldFile, parse_world, read_world, write_world
from takifugu.finite.mechanism import FiniteMechanism
from takifugu.finite.world import World
from takifugu.priors import (
    Between,
    EntryIs,
    Explicit,
    Holds,
    Knowledge,
    OneOf,
    SecretPair,
    Tables,
    Universe,
    entry_pairs,
)
from tests.raising import raises

EXAMPLES = sorted((Path(__file__).parents[2] / "docs" / "examples").glob("*.*"))

LISTED: dict[str, Any] = {
    "title": "four datasets",
    "datasets": ["a1", "a2", "b1", "b2"],
    "secret": [
        {"name": "a", "datasets": ["a1", "a2"]},
        {"name": "b", "datasets": ["b1", "b2"]},
    ],
    "pair": [{"left": "a", "right": "b", "one_way": False}],
    "prior": [{"name": "even", "probability": [0.25, 0.25, 0.25, 0.25]}],
    "mechanism": [
        {
            "name": "coin",
            "outputs": ["x", "y"],
            "claim": 1,
            "rows": [[0.5, 0.5], [0.25, 0.75], ["1/3", "2/3"], {"x": 1}],
        }
    ],
}
TABLES: dict[str, Any] = {
    "unsupported": "skip",
    "entries": {"mon": ["home", "ward"], "tue": ["home", "ward"]},
    "records": {"mon": "ann", "tue": "ann"},
    "prior": [
        {"name": "u", "uniform": True},
        {"name": "i", "independent": {"mon": [0.8, 0.2], "tue": {"home": 1}}},
        {"name": "c", "chain": {"start": {"home": 1}, "step": [[0.9, 0.1], {"ward": 1}]}},
        {
            "name": "r",
            "rows": [{"dataset": "home,ward", "p": "1/2"}, {"dataset": ["ward", "home"], "p": 0.5}],
        },
        {"name": "p", "probability": {"home, home": 0.5, "ward,ward": 0.5}},
    ],
    "pair": [
        {"entries": "all"},
        {
            "left": {"where": {"mon": "ward", "tue": ["home"]}},
            "right": {"entry": "tue", "value": "ward"},
        },
    ],
    "mechanism": [
        {"name": "rr", "kind": "randomised response", "entry": "mon", "epsilon": 1},
        {
            "name": "count",
            "kind": "noisy count",
            "value": "ward",
            "epsilon": 0.5,
            "entries": ["tue"],
        },
        {
            "name": "test",
            "entry": "mon",
            "rows": {"home": {"neg": 0.9, "pos": 0.1}, "ward": {"pos": 1}},
        },
    ],
}
BOUNDS: dict[str, Any] = {
    "entries": {"ill": [True, False], "age": [1, 2]},
    "pair": [
        {"left": {"entry": "ill", "value": True}, "right": {"entry": "ill", "values": [False]}}
    ],
    "knowledge": [
        {
            "secret": {"entry": "ill", "value": True},
            "event": {"entry": "age", "value": 1},
            "low": 0.35,
            "high": 0.65,
        },
        {"secret": {"entry": "ill", "value": False}, "event": [[False, 1]], "high": 0.6},
        {
            "secret": {"entry": "ill", "value": False},
            "coefficients": {"false,1": -1, "false,2": 2},
            "low": -5,
            "high": 5,
        },
    ],
    "mechanism": {
        "rows": {"true,1": [1, 0], "true,2": [0, 1], "false,1": [0.5, 0.5], "false,2": [0.5, 0.5]}
    },
}
VALID = [LISTED, TABLES, BOUNDS]


def read(document: Any) -> WorldFile:
    return parse_world(json.dumps(document), form="json")


def changed(document: dict[str, Any], *path: Any, to: Any) -> dict[str, Any]:
    result = copy.deepcopy(document)
    spot: Any = result
    for step in path[:-1]:
        spot = spot[step]
    spot[path[-1]] = to
    return result


def test_a_list_of_datasets_is_read_as_written() -> None:
    found = read(LISTED)
    universe = Universe(("a1", "a2", "b1", "b2"))
    a, b = OneOf("a", ("a1", "a2")), OneOf("b", ("b1", "b2"))
    assert found.world == World(
        universe, (Explicit.uniform(universe, name="even"),), (SecretPair(a, b), SecretPair(b, a))
    )
    expected = [[0.5, 0.5], [0.25, 0.75], [1 / 3, 2 / 3], [1, 0]]
    assert found.mechanisms == (FiniteMechanism(universe, expected, ("x", "y"), "coin"),)  # type: ignore[arg-type]
    assert found.claims == (1.0,) and found.title == "four datasets"


def test_every_way_to_write_a_prior_means_what_it_says() -> None:
    world = read(TABLES).world
    # datasets in order: home,home  home,ward  ward,home  ward,ward
    expected = [
        [0.25, 0.25, 0.25, 0.25],
        [0.8, 0, 0.2, 0],
        [0.9, 0.1, 0, 0],
        [0, 0.5, 0.5, 0],
        [0.5, 0, 0, 0.5],
    ]
    np.testing.assert_allclose(world.weights, expected, rtol=0, atol=1e-15)
    assert [prior.name for prior in world.listed_priors] == ["u", "i", "c", "r", "p"]
    assert world.universe == Tables.of(
        {"mon": ("home", "ward"), "tue": ("home", "ward")}, records={"mon": "ann", "tue": "ann"}
    )


def test_every_way_to_write_a_pair_means_what_it_says() -> None:
    world = read(TABLES).world
    assert isinstance(world.universe, Tables)
    default = entry_pairs(world.universe)
    assert world.pairs[: len(default)] == default
    left = OneOf("ward,home", (("ward", "home"),))
    assert world.pairs[len(default) :] == (
        SecretPair(left, EntryIs("tue", ("ward",))),
        SecretPair(EntryIs("tue", ("ward",)), left),
    )
    one = changed(LISTED, "pair", 0, "one_way", to=True)
    assert [str(pair) for pair in read(one).world.pairs] == ["a / b"]


def test_knowledge_means_what_it_says() -> None:
    world = read(BOUNDS).world
    ill, well = EntryIs("ill", (True,)), EntryIs("ill", (False,))
    young = Between(np.array([1.0, 0, 1, 0]), 0.35, 0.65)
    assert world.priors == Knowledge(
        world.universe,
        (
            (ill, (young,)),
            (
                well,
                (
                    Between(np.array([0.0, 0, 1, 0]), 0.0, 0.6),
                    Between(np.array([0.0, 0, -1, 2]), -5.0, 5.0),
                ),
            ),
        ),
    )


def test_nothing_known_has_to_be_said() -> None:
    world = read(changed(BOUNDS, "knowledge", to=[])).world
    assert world.priors == Knowledge(world.universe)
    silent = {key: value for key, value in BOUNDS.items() if key != "knowledge"}
    with raises(InvalidFile, field="file"):
        read(silent)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 7.5])
def test_built_in_kinds_spend_exactly_their_epsilon(epsilon: float) -> None:
    """Against the defining sums: infinitely many noise values, added up far beyond float64."""
    document = changed(TABLES, "mechanism", 0, "epsilon", to=epsilon)
    document["mechanism"][1] = {
        "name": "count",
        "kind": "noisy count",
        "value": "ward",
        "epsilon": epsilon,
    }
    response, count, _ = read(document).mechanisms
    truth = exp(epsilon) / (exp(epsilon) + 1)
    np.testing.assert_allclose(response.likelihood[0], [truth, 1 - truth], rtol=1e-12)
    assert log(response.likelihood[0, 0] / response.likelihood[2, 0]) == pytest.approx(epsilon)
    alpha = exp(-epsilon)
    weight = (1 - alpha) / (1 + alpha)
    reach = int(60 / epsilon) + 3
    for row, true_count in zip(count.likelihood, (0, 1, 1, 2), strict=True):
        law = np.zeros(3)
        for noise in range(-reach, reach + 1):
            law[min(max(true_count + noise, 0), 2)] += weight * alpha ** abs(noise)
        np.testing.assert_allclose(row, law, rtol=1e-9)


def test_fractions_are_the_nearest_float() -> None:
    found = read(LISTED).mechanisms[0].likelihood
    assert found[2, 0] == float(Fraction(1, 3)) and found[2, 1] == float(Fraction(2, 3))


@pytest.mark.parametrize("document", VALID)
@pytest.mark.parametrize("form", ["toml", "json"])
def test_writing_and_reading_again_changes_nothing(document: Any, form: Form) -> None:
    found = read(document)
    again = parse_world(write_world(found, form=form), form=form)
    assert again.fingerprint == found.fingerprint
    assert write_world(again, form=form) == write_world(found, form=form)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_examples_are_read_and_written_back(path: Path) -> None:
    found = read_world(path)
    for form in ("toml", "json"):
        assert parse_world(write_world(found, form=form), form=form) == found


def test_a_world_made_in_python_is_written_with_the_same_losses() -> None:
    universe = Universe((("x", 1), ("y", 2)))
    world = World(
        universe,
        (Explicit.uniform(universe),),
        (SecretPair(Holds("x", lambda d: d[0] == "x"), OneOf("y", (("y", 2),))),),
    )
    made = WorldFile(world, (FiniteMechanism(universe, np.eye(2), ((1, 2), "b")),), (None,))
    again = parse_world(write_world(made), form="toml")
    assert again.world.weights.tolist() == world.weights.tolist()
    assert again.world.masks.tolist() == world.masks.tolist()
    assert again.mechanisms == made.mechanisms


def test_a_label_that_no_file_can_hold_is_refused() -> None:
    universe = Universe((1.5, 2.5))
    pair = SecretPair(OneOf("l", (1.5,)), OneOf("r", (2.5,)))
    world = World(universe, (Explicit.uniform(universe),), (pair,))
    with raises(InvalidFile, field="label"):
        write_world(WorldFile(world, (FiniteMechanism(universe, np.eye(2)),), (None,)))


BAD = [
    ("unknown key, nearest named", changed(LISTED, "priors", to=[]), "priors", ("'prior'",)),
    (
        "unknown key in a prior",
        changed(LISTED, "prior", 0, "probabilty", to=1),
        "prior 1, probabilty",
        ("'probability'",),
    ),
    (
        "unknown key in a mechanism",
        changed(LISTED, "mechanism", 0, "row", to=1),
        "mechanism 1, row",
        ("'rows'",),
    ),
    (
        "unknown key in a pair",
        changed(LISTED, "pair", 0, "rigth", to="b"),
        "pair 1, rigth",
        ("'right'",),
    ),
    (
        "unknown entry",
        changed(TABLES, "mechanism", 0, "entry", to="mom"),
        "mechanism 1, entry, mom",
        ("'mon'",),
    ),
    ("both ways", changed(LISTED, "entries", to={"a": [1]}), "file", ("'datasets'", "'entries'")),
    ("no datasets", {k: v for k, v in LISTED.items() if k != "datasets"}, "file", ()),
    ("empty datasets", changed(LISTED, "datasets", to=[]), "datasets", ()),
    ("dataset twice", changed(LISTED, "datasets", 1, to="a1"), "datasets", ()),
    (
        "too many",
        changed(TABLES, "entries", to={e: [0, 1] for e in "abcdefghijklm"}),
        "entries",
        ("8,192",),
    ),
    (
        "negative",
        changed(LISTED, "prior", 0, "probability", 0, to=-0.25),
        "prior 1, probability, item 1",
        ("1", "-0.25"),
    ),
    (
        "above 1",
        changed(LISTED, "prior", 0, "probability", 0, to=2),
        "prior 1, probability, item 1",
        ("2",),
    ),
    (
        "sum",
        changed(LISTED, "prior", 0, "probability", 0, to=0.2),
        "prior 1, probability",
        ("0.95",),
    ),
    (
        "short",
        changed(LISTED, "prior", 0, "probability", to=[0.5, 0.5]),
        "prior 1, probability",
        ("2",),
    ),
    (
        "text",
        changed(LISTED, "prior", 0, "probability", 0, to="half"),
        "prior 1, probability, item 1",
        ("'half'",),
    ),
    (
        "zero divisor",
        changed(LISTED, "prior", 0, "probability", 0, to="1/0"),
        "prior 1, probability, item 1",
        ("'1/0'",),
    ),
    (
        "slow text",
        changed(LISTED, "prior", 0, "probability", 0, to="1e999999999"),
        "prior 1, probability, item 1",
        ("1e9",),
    ),
    (
        "boolean",
        changed(LISTED, "prior", 0, "probability", 0, to=True),
        "prior 1, probability, item 1",
        (),
    ),
    (
        "tiny",
        changed(LISTED, "prior", 0, "probability", 0, to=1e-200),
        "prior 1, probability, item 1",
        ("0",),
    ),
    (
        "huge integer",
        changed(LISTED, "prior", 0, "probability", 0, to=10**400),
        "prior 1, probability, item 1",
        (),
    ),
    (
        "row sum",
        changed(LISTED, "mechanism", 0, "rows", 1, to=[0.5, 0.6]),
        "mechanism 1, rows, row 2",
        ("2", "1.1"),
    ),
    (
        "row length",
        changed(LISTED, "mechanism", 0, "rows", 1, to=[1]),
        "mechanism 1, rows, row 2",
        ("2", "1"),
    ),
    ("few rows", changed(LISTED, "mechanism", 0, "rows", to=[[1, 0]]), "mechanism 1, rows", ("1",)),
    (
        "missing row",
        changed(BOUNDS, "mechanism", "rows", to={"true,1": [1]}),
        "mechanism, rows",
        ("2",),
    ),
    (
        "unknown output",
        changed(LISTED, "mechanism", 0, "rows", 3, to={"z": 1}),
        "mechanism 1, rows, row 4, z",
        (),
    ),
    ("empty secret", changed(LISTED, "secret", 0, "datasets", to=[]), "secret 1, datasets", ()),
    (
        "unused secret",
        changed(LISTED, "secret", to=[*LISTED["secret"], {"name": "c", "datasets": ["a1"]}]),
        "secret 3",
        (),
    ),
    ("same name", changed(LISTED, "secret", 1, "name", to="a"), "secret 2, name", ()),
    ("unknown secret", changed(LISTED, "pair", 0, "left", to="c"), "pair 1, left", ()),
    (
        "unknown dataset",
        changed(LISTED, "secret", 0, "datasets", to=["a9"]),
        "secret 1, datasets",
        ("'a9'",),
    ),
    ("overlap", changed(LISTED, "secret", 1, "datasets", to=["a1"]), "pairs", ()),
    (
        "probability 0",
        changed(LISTED, "prior", 0, "probability", to=[0.5, 0.5, 0, 0]),
        "priors",
        ("0",),
    ),
    ("no pair", changed(LISTED, "pair", to=[]), "file", ()),
    ("no mechanism", changed(LISTED, "mechanism", to=[]), "file", ()),
    ("claim", changed(LISTED, "mechanism", 0, "claim", to=-1), "mechanism 1, claim", ("1",)),
    (
        "kind",
        changed(TABLES, "mechanism", 0, "kind", to="laplace"),
        "mechanism 1, kind",
        ("'noisy count'",),
    ),
    ("epsilon", changed(TABLES, "mechanism", 0, "epsilon", to=0), "mechanism 1, epsilon", ("0",)),
    (
        "value",
        changed(TABLES, "mechanism", 1, "value", to="inn"),
        "mechanism 2, value",
        ("'home'", "'ward'"),
    ),
    ("entries of a list", changed(LISTED, "pair", 0, to={"entries": "all"}), "pair 1, entries", ()),
    ("low above high", changed(BOUNDS, "knowledge", 0, "low", to=0.9), "knowledge 1, low", ()),
    (
        "low out of range",
        changed(BOUNDS, "knowledge", 0, "low", to=-0.1),
        "knowledge 1, low",
        ("0", "1"),
    ),
    (
        "knowledge of nobody",
        changed(BOUNDS, "knowledge", 0, "secret", to={"entry": "age", "value": 1}),
        "knowledge 1, secret",
        (),
    ),
    ("true is not 1", changed(BOUNDS, "pair", 0, "left", "value", to=1), "pair 1, left, value", ()),
    ("control character", changed(LISTED, "title", to="two\nlines"), "title", ()),
    ("surrogate", changed(LISTED, "title", to="\ud800"), "file", ()),
    ("null", changed(LISTED, "prior", to=None), "prior", ()),
    ("unsupported", changed(LISTED, "unsupported", to="ignore"), "unsupported", ()),
    ("records", changed(TABLES, "records", to={"mon": "ann"}), "records, tue", ()),
]


@pytest.mark.parametrize(
    ("document", "field", "facts"), [b[1:] for b in BAD], ids=[b[0] for b in BAD]
)
def test_a_wrong_file_is_refused_in_one_clear_line(
    document: Any, field: str, facts: tuple[str, ...]
) -> None:
    with raises(InvalidFile, field=field) as caught:
        read(document)
    message = str(caught.value)
    assert "\n" not in message and all(fact in message for fact in facts)


@pytest.mark.parametrize(
    ("name", "content", "field", "facts"),
    [
        ("w.toml", b"= 1", "file", ()),
        ("w.json", b"{", "file", ()),
        ("w.json", b"[1]", "file", ()),
        ("w.json", b'{"a": 1, "a": 2}', "file", ()),
        ("w.json", b'{"a": NaN}', "file", ()),
        ("w.json", b'{"a": ' + b"9" * 5000 + b"}", "file", ()),
        ("w.json", b"[" * 100_000, "file", ()),
        ("w.toml", b"a = " + b"[" * 100_000, "file", ()),
        ("w.toml", b"title = nan", "title", ()),
        ("w.toml", b'title = "x"\ndatasets = [nan]', "datasets, item 1", ()),
        ("w.toml", b"datasets = [2020-01-01]", "datasets, item 1", ()),
        ("w.toml", b"\x80\x81\xff", "file", ("8",)),
        ("w.toml", "title = 'ä'".encode("utf-16"), "file", ("8",)),
        ("w.toml", b"\x00\x01\x02", "file", ()),
        ("w.toml", b"#" * (8 * 2**20 + 1), "file", ("8",)),
        ("w.txt", b"", "", ()),
        ("w.toml", b"", "file", ()),
    ],
)
def test_a_file_that_is_no_document_is_refused(
    tmp_path: Path, name: str, content: bytes, field: str, facts: tuple[str, ...]
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    place = f"{path}: {field}" if field else str(path)
    with raises(InvalidFile, field=place) as caught:
        read_world(path)
    message = str(caught.value)
    assert "\n" not in message and all(fact in message for fact in facts)


def test_no_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.toml"
    os.mkfifo(pipe)
    for path in (tmp_path / "none.toml", tmp_path, pipe):
        with raises(InvalidFile, field=str(path)):
            read_world(path)
    for odd in ("a\0b.toml", "a" * 5000 + ".toml"):
        with pytest.raises(InvalidFile):
            read_world(odd)


def test_a_byte_order_mark_is_not_a_fault() -> None:
    text = json.dumps(LISTED).encode("utf-8-sig")
    assert parse_world(text, form="json") == read(LISTED)


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.floats(),
    st.text(max_size=6),
    st.sampled_from(["1/3", "all", "a", "mon", "home,ward", "true,1", "uniform", "kind", "\ud800"]),
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


def spots(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) of a document."""
    found: list[tuple[Any, Any]] = []
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    for key, content in list(inside):
        found.append((value, key))
        if isinstance(content, dict | list):
            found += spots(content)
    return found


def outcome(content: bytes | str, form: Form) -> WorldFile | str:
    """A world, or what a deliberate error says; anything else escapes and fails the test."""
    try:
        return parse_world(content, form=form)
    except TakifuguError as error:
        return str(error)


@pytest.mark.nightly
@settings(max_examples=400)
@given(data=st.data(), document=st.sampled_from(VALID))
def test_a_damaged_file_is_a_world_or_a_clear_error(data: st.DataObject, document: Any) -> None:
    damaged = copy.deepcopy(document)
    for _ in range(data.draw(st.integers(1, 3))):
        places = spots(damaged)
        if not places:
            break
        container, key = data.draw(st.sampled_from(places))
        match data.draw(st.sampled_from(["drop", "replace", "move", "add"])):
            case "drop":
                del container[key]
            case "replace":
                container[key] = data.draw(ANYTHING)
            case "move":
                source, name = data.draw(st.sampled_from(places))
                container[key] = copy.deepcopy(source[name])
            case _ if isinstance(container, dict):
                container[data.draw(st.text(max_size=6))] = data.draw(ANYTHING)
            case _:
                container.append(data.draw(ANYTHING))
    found = outcome(json.dumps(damaged), "json")
    if isinstance(found, WorldFile):
        assert parse_world(write_world(found), form="toml").fingerprint == found.fingerprint
    else:
        assert found and "\n" not in found


@pytest.mark.costly
@settings(max_examples=200)
@given(
    data=st.data(),
    document=st.sampled_from(VALID),
    form=st.sampled_from(["toml", "json"]),
)
def test_random_bytes_are_a_world_or_a_clear_error(
    data: st.DataObject, document: Any, form: Form
) -> None:
    content = bytearray(write_world(read(document), form=form).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        width = data.draw(st.integers(0, 3))
        content[at : at + width] = data.draw(st.binary(max_size=3))
    found = outcome(bytes(content), form)
    assert isinstance(found, WorldFile) or (found and "\n" not in found)


def test_what_is_written_as_toml_is_toml() -> None:
    assert tomllib.loads(write_world(read(TABLES)))["entries"] == TABLES["entries"]
