"""The files that an engine reads are the files that it fingerprints, whatever they are called."""

import gzip
import os
import shutil
import unicodedata
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path

import duckdb
import pytest

from takifugu.declarations import (
    Category,
    DatabaseFailed,
    Declaration,
    InvalidDeclaration,
    Order,
    Source,
)
from takifugu.tables import Engine, open_engine
from takifugu.tables.backends.duckdb_backend import FileBackend
from takifugu.tables.backends.opened_files import source_files
from tests.raising import raises

ODD = (
    "study[1]", "a*b", "a?b", "{x,y}", "[!a]", "[", "**", "[]]", "it's two", 'say "so"',
    "new\nline", "-dash", "~", "$HOME", "100%20#", "zone=north", "s3:", "http:", "back\\slash",
    "é", "e\u0301", "\u202e",
)  # fmt: skip
HEADER = "person,step,zone,state\n"


def declared(folder: Path, source: Source) -> Declaration:
    return Declaration(
        source=source,
        entity="person",
        order=Order("step", "number"),
        protected=(Category("state", ("home", "ward", "here", "there"), "refuse"),),
        public=(Category("zone", ("north", "south"), "refuse"),),
        folder=folder,
    )


def text(state: str, count: int) -> str:
    return HEADER + "".join(f"p{i},{i},south,{state}\n" for i in range(count))


def counts(engine: Engine) -> dict[str, int]:
    found = engine.histogram(["state"])
    return {str(key): found.at(key) for key in found.keys[0] if found.at(key)}


def read(declaration: Declaration) -> dict[str, int]:
    """What queries see of a source; the engine is left out, which takes longest."""
    backend = FileBackend(declaration, threads=1)
    try:
        zones = backend.rows("SELECT DISTINCT zone FROM data")
        assert zones == [("south",)]  # whatever the folder says
        return dict(backend.rows("SELECT state, count(*) FROM data GROUP BY state"))
    finally:
        backend.close()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Parquet file and a database with one state each, to be copied to where they are needed."""
    folder = tmp_path_factory.mktemp("made")
    for state in ("home", "ward"):
        with duckdb.connect(str(folder / f"{state}.duckdb")) as connection:
            connection.execute(
                "CREATE TABLE stays AS SELECT 'p'||i AS person, i AS step, 'south' AS zone,"  # noqa: S608
                f" '{state}' AS state FROM range(4) r(i)"
            )
            connection.execute(f"COPY stays TO '{folder}/{state}.parquet' (FORMAT parquet)")
    return folder


def test_a_neighbour_that_a_folders_name_matches_is_not_read(tmp_path: Path) -> None:
    """`study[1]` as a pattern is `study1`."""
    for name, state, many in (("study[1]", "home", 3), ("study1", "ward", 5)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "stays.csv").write_text(text(state, many))
    for path in ("stays.csv", "stays*.csv", "s[t]ays.csv", str(tmp_path / "study[1]/stays.csv")):
        declaration = declared(tmp_path / "study[1]", Source("csv", path=path))
        if os.path.isabs(path):
            with raises(InvalidDeclaration, reason="ambiguous"):
                open_engine(declaration)
        else:
            with open_engine(declaration) as engine:
                assert counts(engine) == {"home": 3}, path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "root"
    path.mkdir()
    return path


@pytest.mark.nightly
@pytest.mark.parametrize("odd", ODD)
def test_what_is_read_is_what_is_fingerprinted(odd: str, root: Path, made: Path) -> None:
    """Odd names of folders and files, beside neighbours that they match as patterns."""
    for neighbour in ("study1", "axb", "x", "a", "b", "aXb"):
        (root / neighbour).mkdir(exist_ok=True)
        (root / neighbour / "stays.csv").write_text(text("ward", 7))
        (root / f"{neighbour}.csv").write_text(text("ward", 7))
        (root / f"{neighbour}.csv.gz").write_bytes(gzip.compress(text("ward", 7).encode()))
    folder = root / odd
    folder.mkdir(exist_ok=True)
    if unicodedata.normalize("NFC", odd) == "é":  # the other spelling is another folder
        other = unicodedata.normalize("NFD" if odd == "é" else "NFC", odd)
        (root / other).mkdir()
        (root / other / "stays.csv").write_text(text("ward", 9))
    (folder / "stays.csv").write_text(text("home", 3))
    (folder / f"{odd}.csv").write_text(text("here", 4))
    (folder / f"{odd}.csv.gz").write_bytes(gzip.compress(text("there", 5).encode()))
    for base, path, found in (
        (folder, f"{odd}.csv", {"here": 4}),
        (folder, f"{odd}.csv.gz", {"there": 5}),
        (folder, "*.csv", {"home": 3, "here": 4}),
    ):
        declaration = declared(base, Source("csv", path=path))
        if path.startswith(odd) and any(mark in odd for mark in "*?["):
            others = [p for p in folder.iterdir() if p.name != path and fnmatch(p.name, path)]
            if (
                others and "**" not in odd
            ):  # the name of one file, and a pattern for others: refused
                with raises(InvalidDeclaration, reason="ambiguous"):
                    open_engine(declaration)
                continue
        assert read(declaration) == found, path
    shutil.copy(made / "ward.parquet", root / "x.parquet")
    shutil.copy(made / "home.parquet", folder / f"{odd}.parquet")
    shutil.copy(made / "ward.duckdb", root / "study1" / "stays.duckdb")
    shutil.copy(made / "home.duckdb", folder / "stays.duckdb")
    parquet = Source("parquet", path="*.parquet")
    database = Source("duckdb", path="stays.duckdb", table="stays")
    for source in (parquet, database):
        assert read(declared(folder, source)) == {"home": 4}


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*.csv", {"a.csv"}),
        ("**/*.csv", {"a.csv", "b.csv", "c.csv"}),
        ("one/**/*.csv", {"b.csv", "c.csv"}),
        ("**", None),
        ("one/**", None),
        ("**.csv", None),
        ("one/**.csv", None),
        ("**one/*.csv", None),
    ],
)
def test_two_stars_are_a_whole_part_of_a_path_and_stand_for_folders(
    root: Path, pattern: str, names: set[str] | None
) -> None:
    """Whatever the version of Python: some read them as one star, or as files of any depth."""
    (root / "one" / "two").mkdir(parents=True)
    for path in ("a.csv", "one/b.csv", "one/two/c.csv"):
        (root / path).write_text(text("home", 3))
    declaration = declared(root, Source("csv", path=pattern))
    rooted = declared(root, Source("csv", path=str(root / pattern)))
    if names is None:
        for one in (declaration, rooted):
            with raises(InvalidDeclaration, reason="name" if pattern[-2:] != "**" else "missing"):
                source_files(one)
    else:
        for one in (declaration, rooted):
            assert {path.name for path in source_files(one)} == names


def test_a_name_that_duckdb_cannot_be_told_is_refused(root: Path) -> None:
    folder = root / "back\\slash[1]"
    folder.mkdir()
    (folder / "stays.csv").write_text(text("home", 3))
    with raises(InvalidDeclaration, reason="backslash"):
        open_engine(declared(folder, Source("csv", path="stays.csv")))


def test_compressed_and_plain_files_are_not_one_source(root: Path) -> None:
    (root / "stays1.csv").write_text(text("home", 3))
    (root / "stays2.csv.gz").write_bytes(gzip.compress(text("ward", 3).encode()))
    with raises(InvalidDeclaration, reason="compression"):
        open_engine(declared(root, Source("csv", path="stays*")))


def a_folder(root: Path) -> str:
    (root / "stays.csv").mkdir()
    return "stays.csv"


def a_pipe(root: Path) -> str:
    os.mkfifo(root / "stays.csv")
    return "stays.csv"


def a_loop(root: Path) -> str:
    (root / "stays.csv").symlink_to(root / "stays.csv")
    return "stays.csv"


def a_surrogate(root: Path) -> str:
    try:
        (root / "stays\udcff.csv").write_text(text("home", 3))
    except OSError:
        pytest.skip("names must be UTF-8 here")
    return "stays\udcff.csv"


def a_surrogate_matched(root: Path) -> str:
    a_surrogate(root)
    return "stays*.csv"


@pytest.mark.parametrize(
    "made",
    [
        "x" * 300 + ".csv", "folder/" * 2000 + "stays.csv", "x" * 300 + "/*.csv",
        "stays\ud800.csv", "stays\0.csv", "a**b/[.csv", a_folder, a_pipe, a_loop, a_surrogate,
        a_surrogate_matched,
    ],
    ids=lambda made: getattr(made, '__name__', ascii(made)[:12]),
)  # fmt: skip
def test_a_path_that_is_no_file_gets_one_printable_line(
    made: Callable[[Path], str] | str, root: Path
) -> None:
    path = made if isinstance(made, str) else made(root)
    with pytest.raises(InvalidDeclaration) as refused:
        open_engine(declared(root, Source("csv", path=path)))
    line = str(refused.value)
    assert line.isprintable() and len(line) < 500
    assert line.encode()


# --- the database is shut ---


OUT_OF_REACH = (
    "FROM read_text('{other}')",
    "FROM read_csv('{other}')",
    "FROM '{other}'",
    "FROM glob('{folder}/*')",
    "FROM read_blob('/etc/hostname')",
    "ATTACH '{folder}/new.duckdb'",
    "COPY (SELECT 1) TO '{folder}/out.csv'",
    "EXPORT DATABASE '{folder}/out'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET enable_external_access = true",
    "SET temp_directory = '{folder}'",
    "SET allowed_directories = ['/']",
    "SET TimeZone = 'Asia/Jakarta'",
    "CREATE PERSISTENT SECRET s (TYPE http, BEARER_TOKEN 'x')",
    "SELECT * FROM person_rows",
)
SETTINGS = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "allow_persistent_secrets": False,
    "enable_external_access": False,
    "lock_configuration": True,
    "python_enable_replacements": False,
}


def test_nothing_but_the_declared_files_can_be_reached(root: Path) -> None:
    (root / "other.csv").write_text(text("ward", 3))
    (root / "stays.csv").write_text(text("home", 3))
    person_rows = [1]  # a variable of Python, which DuckDB may take for a table
    backend = FileBackend(declared(root, Source("csv", path="stays.csv")))
    try:
        for sql in OUT_OF_REACH:
            with pytest.raises(DatabaseFailed):
                backend.rows(sql.format(folder=root, other=root / "other.csv"))
            assert backend.rows("SELECT count(*) FROM data") == [(3,)]
        for setting, value in SETTINGS.items():
            assert backend.rows(f"SELECT current_setting('{setting}')") == [(value,)], setting
    finally:
        backend.close()
    assert sorted(path.name for path in root.iterdir()) == ["other.csv", "stays.csv"]
    assert person_rows


# --- what a database file can hide ---


def database(root: Path, *made: str, table: str = "stays") -> Declaration:
    path = root / "stays.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE plain AS SELECT 'p'||i AS person, i AS step, 'south' AS zone,"
            " 'home' AS state FROM range(4) r(i)"
        )
        for statement in made:
            connection.execute(statement)
    return declared(root, Source("duckdb", path="stays.duckdb", table=table))


def test_a_view_is_refused(root: Path) -> None:
    (root / "other.csv").write_text(text("ward", 3))
    for i, body in enumerate((f"FROM read_csv('{root}/other.csv')", "FROM plain")):
        (root / str(i)).mkdir()
        declaration = database(root / str(i), f"CREATE VIEW stays AS {body}")
        with raises(InvalidDeclaration, reason="view"):
            open_engine(declaration)


@pytest.mark.parametrize(
    ("made", "table"),
    [
        ("CREATE MACRO stays() AS TABLE FROM plain", "stays"),
        ("CREATE SEQUENCE stays", "stays"),
        ("CREATE TABLE other AS FROM plain", "stays"),
        ("CREATE SCHEMA hidden; CREATE TABLE hidden.stays AS FROM plain", "stays"),
        ("CREATE TABLE stays AS FROM plain", "memory.main.stays"),
        ("CREATE TABLE stays AS FROM plain", "system.main.stays"),
        ("CREATE TABLE stays AS FROM plain", "information_schema.tables"),
        ("CREATE TABLE stays AS FROM plain", "/etc/passwd"),
        ("CREATE TABLE stays AS FROM plain", "duckdb_tables"),
    ],
)
def test_only_a_table_of_the_file_is_read(made: str, table: str, root: Path) -> None:
    with raises(InvalidDeclaration, field="source, table", reason="missing"):
        open_engine(database(root, made, table=table))


def test_the_schema_that_is_named_is_the_one_that_is_read(root: Path) -> None:
    made = (
        "CREATE TABLE stays AS FROM plain",
        "CREATE SCHEMA other",
        "CREATE TABLE other.stays AS SELECT * REPLACE ('ward' AS state) FROM plain LIMIT 3",
    )
    declaration = database(root, *made, table="other.stays")
    with open_engine(declaration) as engine:
        assert counts(engine) == {"ward": 3}
    for table in ("main.stays", "stays"):
        source = Source("duckdb", path="stays.duckdb", table=table)
        with open_engine(declared(root, source)) as engine:
            assert counts(engine) == {"home": 4}


def test_a_column_that_is_made_up_as_it_is_read_is_refused(root: Path) -> None:
    made = (
        "CREATE TABLE stays (person VARCHAR, step INT, zone VARCHAR,"
        " state VARCHAR GENERATED ALWAYS AS (if(random() < .5, 'home', 'ward')))",
        "INSERT INTO stays SELECT person, step, zone FROM plain",
    )
    with raises(InvalidDeclaration, reason="generated columns"):
        open_engine(database(root, *made))


def test_labels_are_compared_letter_by_letter_whatever_the_files_collation(root: Path) -> None:
    """Grouped without case, a group has the name of any of its rows: one cell would move all."""
    made = (
        "CREATE TABLE stays (person VARCHAR COLLATE nocase, step INT, zone VARCHAR COLLATE nocase,"
        " state VARCHAR COLLATE noaccent.nocase)",
        "INSERT INTO stays VALUES ('p', 1, 'north', 'Home'), ('p', 2, 'north', 'home'),"
        " ('P', 1, 'south', 'hómE'), ('p', 3, 'south', 'home')",
    )
    declaration = database(root, *made)
    rule = Category("state", ("home", "ward"), "other")
    for label in ("home", "Home"):
        rule = Category("state", (label, "ward"), "other")
        declaration = Declaration(
            source=declaration.source,
            entity="person",
            order=declaration.order,
            protected=(rule,),
            public=declaration.public,
            folder=root,
        )
        with open_engine(declaration) as engine:
            truth = 2 if label == "home" else 1
            assert counts(engine) == {label: truth, "other": 4 - truth}
            assert engine.lengths().entities.sum() == 2


def test_changes_that_lie_beside_a_database_file_are_refused(root: Path) -> None:
    """DuckDB reads them with the file, and the file's hash does not know of them."""
    declaration = database(root, "CREATE TABLE stays AS FROM plain")
    path = root / "stays.duckdb"
    live = duckdb.connect(str(path))
    live.execute("SET checkpoint_threshold = '1GB'")
    live.execute("UPDATE stays SET state = 'ward'")
    copy = root / "copy"
    copy.mkdir()
    for part in root.glob("stays.duckdb*"):
        shutil.copy(part, copy / part.name)
    live.close()
    assert (copy / "stays.duckdb.wal").exists()
    with raises(InvalidDeclaration, reason="write-ahead log"):
        open_engine(declared(copy, declaration.source))
    with open_engine(declaration) as engine:
        assert counts(engine) == {"ward": 4}
        shutil.copy(copy / "stays.duckdb.wal", root / "stays.duckdb.wal")
        with raises(DatabaseFailed, reason="changed"):
            counts(engine)
