"""A CSV file as a declaration says that it is written, for DuckDB to read exactly so.

DuckDB's own guess depends on the first rows. It may also take days for months: a file of 3/4/2012
is read one way, and the other way once it has a row of 4/13/2012. So a declaration can say how a
file is written, and one that does not say it is refused where both would do.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from takifugu.declarations.columns import Amount, Category
from takifugu.declarations.declaration import Declaration
from takifugu.declarations.table_errors import InvalidDeclaration
from takifugu.errors import TakifuguError
from takifugu.tables.backends.backend import declared_kinds, quoted
from takifugu.tables.backends.opened_files import compression
from takifugu.tables.csv_structure import header_of, shown_separator
from takifugu.visible import visible

NUMBERED = r"^\s*(\d{1,2})[-/. ](\d{1,2})[-/. ]\d"  # a time that begins with a day or a month
Run = Callable[[str], list[tuple[Any, ...]]]
STRICT = (
    "quote='\"', escape='\"', header=true, skip=0, comment='', strict_mode=true,"
    " null_padding=false, hive_partitioning=false"
)


def csv_source(
    declaration: Declaration, names: Sequence[str], paths: tuple[Path, ...], run: Run
) -> str:
    """The files as they stand in FROM; ``names`` are what DuckDB calls them."""
    files = ", ".join(map(literal, names))
    packed = f"compression={literal(compression(paths))}"
    if not declaration.source.reading and declaration.order.format is None:
        return _guessed(declaration, files, packed, run)
    options = f"{dialect(declaration.source.reading)}, {packed}, {STRICT}"
    columns = _named(declaration, _header(declaration, paths))
    try:
        return _said(declaration, files, options, columns, run)
    except TakifuguError:
        raise
    except Exception:  # noqa: BLE001, S110 - its message may hold values; it is raised again below
        pass
    refuse_cut_rows(files, options, columns, run)
    return _said(declaration, files, options, columns, run)


def _said(
    declaration: Declaration, files: str, options: str, columns: Sequence[str], run: Run
) -> str:
    """As the declaration says that it is written."""
    kinds = dict.fromkeys(columns, "VARCHAR") | _pinned(declaration)
    exactly = f"read_csv([{files}], {options}, auto_detect=false, columns="
    _refuse_two_readings(declaration, f"{exactly}{_struct(kinds)})", run, said=True)
    free = _free(declaration)
    if free:  # numbers, and times as ISO writes them: what DuckDB takes them for
        listed = ", ".join(map(literal, columns))
        settled = _struct({name: kind for name, kind in kinds.items() if name not in free})
        found = run(
            f"DESCRIBE FROM read_csv([{files}], {options}, names=[{listed}], types={settled})"
        )
        kinds |= {str(name): str(kind) for name, kind, *_ in found if name in free}
    return f"{exactly}{_struct(kinds)})"


def csv_cut_rows(
    declaration: Declaration, names: Sequence[str], paths: tuple[Path, ...], run: Run
) -> None:
    """Raise if rows have too many or too few fields, where it is said how the file is written."""
    reading = declaration.source.reading
    if not reading and declaration.order.format is None:
        return
    options = f"{dialect(reading)}, compression={literal(compression(paths))}, {STRICT}"
    columns = _named(declaration, _header(declaration, paths))
    refuse_cut_rows(", ".join(map(literal, names)), options, columns, run)


def refuse_cut_rows(files: str, options: str, columns: Sequence[str], run: Run) -> None:
    """Raise if rows have too many or too few fields: how many, and the line of the first."""
    texts = _struct(dict.fromkeys(columns, "VARCHAR"))
    read = f"read_csv([{files}], {options}, auto_detect=false, columns={texts}, store_rejects=true)"
    ((rows, line),) = run(
        f"SELECT count(COLUMNS(*)) FROM {read};"  # noqa: S608 - quoted
        " SELECT count(DISTINCT (file_id, line)), min(line) FROM reject_errors"
    )
    if rows:
        many = "1 row" if rows == 1 else f"{rows:,} rows, the first"
        raise InvalidDeclaration(
            "source, path",
            given=f"has {many} on line {line}, with other fields than the first line has",
            needed="have as many in each row, those with a separator or a quote in them in double"
            " quotes; mend those rows, or name the separator",
            reason="fields",
        )


def _struct(kinds: Mapping[str, str]) -> str:
    return f"{{{', '.join(f'{literal(name)}: {literal(kind)}' for name, kind in kinds.items())}}}"


def dialect(reading: Mapping[str, str]) -> str:
    """How a file is written, as options of ``read_csv``."""
    separator, encoding = reading.get("separator", ","), reading.get("encoding", "utf-8")
    decimal = reading.get("decimal", ".")
    return (
        f"delim={literal(separator)}, encoding={literal(encoding)},"
        f" decimal_separator={literal(decimal)}"
    )


def literal(value: str) -> str:
    """A text as SQL takes it."""
    return "'" + value.replace("'", "''") + "'"


def _guessed(declaration: Declaration, files: str, packed: str, run: Run) -> str:
    """As DuckDB finds it, of a declaration that says nothing."""
    texts = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in texts_of(declaration))
    how = f"header=true, hive_partitioning=false, {packed}"
    header = run(f"DESCRIBE FROM read_csv([{files}], {how}, all_varchar=true)")
    declared_kinds(declaration, {str(name): "text" for name, *_ in header})
    text = f"read_csv([{files}], {how}, all_varchar=true)"
    _refuse_two_readings(declaration, text, run, said=False)
    return f"read_csv([{files}], {how}, types={{{texts}}})"


def texts_of(declaration: Declaration) -> list[str]:
    """The columns of a CSV file that are text whatever they look like."""
    described = (*declaration.protected, *declaration.public)
    labels = [column for column in described if isinstance(column, Category)]
    return [declaration.entity] + [
        c.column
        for c in labels
        if c.values is None or any(isinstance(raw, str) for raw in c.codes())
    ]


def _pinned(declaration: Declaration) -> dict[str, str]:
    """The type of every column that a declaration settles."""
    described = (*declaration.protected, *declaration.public)
    found = {c.column: "DOUBLE" if isinstance(c, Amount) else "BIGINT" for c in described}
    return found | dict.fromkeys(texts_of(declaration), "VARCHAR")


def _free(declaration: Declaration) -> list[str]:
    """The columns whose type is found: the order, unless its format is said, and ties."""
    order = declaration.order
    first = [] if order.format is not None else [order.column]
    settled = _pinned(declaration)
    return [name for name in (*first, *order.ties) if name not in settled]


def _header(declaration: Declaration, paths: tuple[Path, ...]) -> tuple[str, ...]:
    """The columns of the files, which must be alike: DuckDB would match them by position."""
    reading = declaration.source.reading
    separator, encoding = reading.get("separator", ","), reading.get("encoding", "utf-8")
    header, *others = (header_of(path, encoding, separator) for path in paths)
    if any(other != header for other in others):
        raise InvalidDeclaration(
            "source, path",
            given="names files with different columns, or in another order",
            needed="name files that begin with the same line",
            reason="header",
        )
    if len(header) < 2:
        raise InvalidDeclaration(
            "source, separator",
            given=f"is {shown_separator(separator)}, which no first line has",
            needed="be what stands between the columns: one of ',', ';', '|' and '\\t'",
            reason="separator",
        )
    declared_kinds(declaration, dict.fromkeys(header, "text"))
    for name in declaration.columns:
        if header.count(name) > 1:
            raise InvalidDeclaration(
                name, given="is the name of several columns", needed="be the name of one"
            )
    return header


def _named(declaration: Declaration, header: tuple[str, ...]) -> list[str]:
    """Names for the columns: the declared ones their own, the others any, since none is read."""
    taken = {name.lower() for name in declaration.columns}
    found = []
    for place, name in enumerate(header):
        other = f"undeclared {place}"
        while other in taken:
            other += " "
        found.append(name if name in declaration.columns else other)
    return found


def _refuse_two_readings(declaration: Declaration, text: str, run: Run, *, said: bool) -> None:
    """Raise if times begin with a day or a month and nothing settles which.

    ``text`` is the file with every column as text. Where the declaration says how the file is
    written (``said``), it has to say this too.
    """
    order = declaration.order
    if order.kind != "time" or order.format is not None:
        return
    name = quoted(order.column)
    numbers = f"regexp_extract({name}, {literal(NUMBERED)}"
    first, second = (f"TRY_CAST({numbers}, {k}) AS int)" for k in (1, 2))
    begins = f"SELECT {first} IS NOT NULL FROM {text} WHERE {name} IS NOT NULL LIMIT 1"  # noqa: S608 - quoted
    if run(begins) != [(True,)]:
        return
    if not said:
        ((settled,),) = run(f"SELECT bool_or({first} > 12 OR {second} > 12) FROM {text}")  # noqa: S608
        if settled:
            return
    raise InvalidDeclaration(
        "order, format",
        given=f"is missing, and the times of `{visible(order.column)}` begin with a day or a month",
        needed="say which, as format = '%d/%m/%Y %H:%M' or '%m/%d/%Y %H:%M'",
        reason="ambiguous",
    )
