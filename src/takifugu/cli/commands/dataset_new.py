"""``takifugu dataset new``: draft a declaration from the columns of a table."""

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from takifugu.cli.declared_flags import Flag, flag, with_flags
from takifugu.cli.shared_options import AsJson, InvalidOption, Spinner, echo, listed, print_json
from takifugu.cli.shell_completion import nearest_project
from takifugu.errors import Malformed, pasted
from takifugu.visible import visible

if TYPE_CHECKING:
    from takifugu.declarations.declaration import OpenPoint
    from takifugu.drafting import Draft

FITTED = "fitted"
SEPARATORS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|"}


DataFile = Annotated[
    str,
    typer.Argument(help="A Parquet, CSV or DuckDB file, or a pattern such as 'part*.csv'."),
]
Texts = list[str] | None

DRAFT_FLAGS: dict[str, Flag] = {  # what a person knows and a schema does not
    "name": flag("What to call the dataset; by default as the file."),
    "table": flag("Of a DuckDB file: the table."),
    "entity": flag("The column that says whose row it is."),
    "order": flag("The column that puts the rows of one in order; 'none' if each has one row."),
    "order_kind": flag(
        "Of the order: times, seconds since 1970, or other numbers.",
        Literal["time", "unix", "number"] | None,
    ),
    "format_": flag("How times are written, as '%d/%m/%Y %H:%M'.", name="--format"),
    "zone": flag("The zone of times that carry none, as Europe/Berlin."),
    "ties": flag("A public column that settles ties; a list by commas, repeatable.", Texts),
    "protected": flag("A column to protect; a list by commas, repeatable.", Texts),
    "public": flag(
        "Columns that everyone may know, as 'country,sex', repeatable. None is guessed.", Texts
    ),
    "labels": flag(
        "COLUMN=home,work; COLUMN=codebook.csv (or codebook.csv:its column); or COLUMN=fitted:"
        " those of the rows that a prior is fitted on. Repeatable.",
        Texts,
    ),
    "outside": flag(
        "What becomes of values that are not in a list, or missing: refuse, other or drop;"
        " COLUMN=drop for one column. Repeatable; by default other.",
        Texts,
    ),
    "bounds": flag("COLUMN=0..100, the least and the largest number; repeatable.", Texts),
    "separator": flag("Of a CSV file: ',', ';', '|' or tab; found if left out."),
    "encoding": flag("Of a CSV file; found if left out.", Literal["utf-8", "latin-1"] | None),
    "decimal": flag("Of a CSV file: '.' or ',', the mark of decimals."),
}


@with_flags(DRAFT_FLAGS, before="title")
def run_dataset_new(
    file: DataFile,
    out: Annotated[
        Path | None, typer.Option(help="The declaration to write; by default NAME.toml, here.")
    ] = None,
    *,
    flags: dict[str, Any],
    title: Annotated[str, typer.Option(help="One line for people.")] = "",
    as_json: AsJson = False,
) -> None:
    """Draft the declaration of FILE from the names and types of its columns.

    No protected value is shown or written; of a CSV file all columns are looked at, but only to see
    how it is written and of which types they are. On a terminal it asks for what it cannot know;
    elsewhere, and where the answer is empty, the point is left open in the file, and `dataset add`
    refuses it until it is filled in. Columns that nobody names are left out. Nothing is
    overwritten.

    JSON: file, dataset, declaration, rows, open (key, question, needed, option, choices), decisions
    (part, column, reason, guessed), left_out, next.
    """
    from takifugu._core.atomic import write_whole
    from takifugu.drafting.draft_text import draft_text

    called = dataset_name(flags.get("name"), file)
    path = out if out is not None else Path(f"{called}.toml")
    _refuse_existing(path)
    draft = read_draft(file, flags, path.parent, title=title)
    if not as_json and sys.stdin.isatty() and sys.stdout.isatty():
        draft = ask_open_points(draft, path.parent)
    text = draft_text(draft, path.parent)
    draft.refuse_wrong(path.parent)
    write_whole(path, text, field="--out", refuse_existing=True)
    following = _next(called, path, draft)
    if as_json:
        print_json({"file": str(path), "dataset": called} | draft.describe() | {"next": following})
        return
    _print(draft, path, text)
    echo(f"next: {following}")


def refuse_data_file(path: str | Path, name: str | None = None) -> None:
    """Raise if a declaration is needed and a file of rows is given."""
    from takifugu.drafting.source_schema import is_data_file

    if not is_data_file(path):
        return
    called = name or dataset_name(None, str(path))
    raise InvalidOption(
        "DECLARATION",
        given=f"{visible(str(path))} holds rows",
        needed="be a declaration, which says what in them is protected: `takifugu dataset new"
        f" {pasted(str(path))}` drafts one, then `takifugu dataset add {pasted(called)}"
        f" {pasted(called)}.toml`",
        reason="data file",
    )


def dataset_name(given: str | None, file: str) -> str:
    """The name of a dataset: letters, digits, - and _."""
    stem = Path(file).name.partition(".")[0] if given is None else given
    called = re.sub(r"[^A-Za-z0-9_-]+", "_", stem).strip("_-")[:100] if given is None else given
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,99}", called):
        raise InvalidOption(
            "--name",
            given=f"is {given!r:.80}" if given is not None else "is missing",
            needed="be letters a-z, digits, - and _",
        )
    return called


def parse_separator(given: str | None) -> str | None:
    """What stands between fields, by its name or as it is."""
    if given is None:
        return None
    separator = SEPARATORS.get(given, given)
    if separator not in SEPARATORS.values():
        raise InvalidOption(
            "--separator", given=f"is {given!r:.40}", needed="be ',', ';', '|' or tab"
        )
    return separator


def _refuse_existing(path: Path) -> None:
    from os.path import lexists

    if lexists(path):
        raise InvalidOption(
            "--out", given=f"{path} exists", needed="be a new file", reason="exists"
        )


def parse_columns(given: Sequence[str] | None) -> tuple[str, ...] | None:
    """The columns of an option: each a name, names by commas, or a JSON list; None for none."""
    return tuple(str(name) for text in given for name in listed(text)) if given else None


def read_draft(file: str, flags: Mapping[str, Any], folder: Path, **more: Any) -> "Draft":
    """The draft of a file, with what the `DRAFT_FLAGS` say; codebooks are named from ``folder``."""
    from takifugu.drafting.draft import NO_ORDER_ANSWER, draft_of

    lists = {name: parse_columns(flags.get(name)) for name in ("ties", "protected", "public")}
    as_given = ("table", "entity", "order_kind", "zone", "encoding", "decimal")
    order = flags.get("order")
    answers: dict[str, Any] = {
        "order": NO_ORDER_ANSWER if order == "none" else order,
        "format": flags.get("format_"),
        "values": dict(parse_column_labels(word, folder) for word in flags.get("labels", ())),
        "bounds": dict(parse_column_bounds(word) for word in flags.get("bounds", ())),
        "outside": dict(map(parse_outside_rule, flags.get("outside", ()))),
        "separator": parse_separator(flags.get("separator")),
    }
    answers |= {name: flags.get(name) for name in as_given}
    with Spinner(f"reading the columns of {visible(file)}"):
        return draft_of(file, **answers | lists | {"public": lists["public"] or ()} | more)


def parse_outside_rule(text: str) -> tuple[str, str]:
    """A column and what becomes of values outside its list; "" for every column."""
    column, mark, rule = text.rpartition("=")
    if rule not in ("refuse", "other", "drop") or (mark and not column):
        raise InvalidOption(
            "--outside",
            given=f"is {text!r:.80}",
            needed="be refuse, other or drop, for one column as place=drop",
        )
    return column, rule


def _by_column(text: str, option: str, example: str) -> tuple[str, str]:
    """A column and what stands for it, from ``COLUMN=…``."""
    column, mark, rest = text.rpartition("=")
    if not mark or not column or not rest.strip():
        raise InvalidOption(option, given=f"is {text!r:.80}", needed=f"look like {example}")
    return column, rest


def parse_column_labels(text: str, folder: Path) -> tuple[str, Any]:
    """A column and its labels, from ``COLUMN=…``; a codebook by its path from ``folder``."""
    column, labels = _by_column(text, "--labels", "place=home,work or place=codebook.csv")
    return column, parse_labels(labels, folder)


def parse_labels(text: str, folder: Path) -> Any:
    """Labels as a declaration has them: a list, a codebook, or those of the fitted rows."""
    if text.strip() == FITTED:
        return "from the fitted rows"
    from takifugu.declarations.declaration_files import CODEBOOK_SUFFIXES

    file, _, part = text.partition(":")
    if Path(file).suffix.lower() in CODEBOOK_SUFFIXES:
        if not Path(file).is_file():
            raise InvalidOption(
                "--labels", given=f"{visible(file)} is not a file", needed="be one, or a list"
            )
        return {"codebook": _from(Path(file), folder)} | ({"column": part} if part else {})
    return listed(text)


def _from(path: Path, folder: Path) -> str:
    from takifugu.drafting.draft_text import path_from

    return path_from(str(path), folder, Path.cwd())


def parse_column_bounds(text: str) -> tuple[str, list[Any]]:
    """A column and its bounds, from ``COLUMN=0..100``."""
    column, ends = _by_column(text, "--bounds", "pulse=30..220")
    return column, parse_bounds(ends)


def parse_bounds(text: str) -> list[Any]:
    """The two ends of ``0..100``, as numbers of a declaration."""
    from decimal import Decimal, InvalidOperation

    low, _, high = text.partition("..")
    try:
        ends = [Decimal(low.strip()), Decimal(high.strip())]
    except InvalidOperation:
        ends = []
    if not ends or not all(end.is_finite() for end in ends) or not ends[0] < ends[1]:
        raise InvalidOption(
            "--bounds", given=f"is {text!r:.80}", needed="look like 0..100, the lower end first"
        )
    return [int(end) if end == end.to_integral_value() else end for end in ends]


# --- questions on a terminal ---


def ask_open_points(draft: "Draft", folder: Path) -> "Draft":
    """The draft with what somebody answers; an empty answer leaves a point open."""
    print_decisions(draft)
    skipped = set[str]()
    while point := next((p for p in draft.open if p.key not in skipped), None):
        echo(f"\nOpen: {point.question}.", err=True)
        for number, choice in enumerate(point.choices, 1):
            echo(f"  {number}  {choice}", err=True)
        answer = prompt(_words(point, draft))
        if answer.isdecimal() and 0 < int(answer) <= len(point.choices):
            answer = point.choices[int(answer) - 1]
        if not answer:
            skipped.add(point.key)
            continue
        try:
            draft = draft.answered(**_answer(point, answer, folder))
        except Malformed as error:
            echo(f"  {error}", err=True)
    return _ask_public_columns(draft)


def _ask_public_columns(draft: "Draft") -> "Draft":
    from takifugu.drafting.draft_guesses import likely_public

    free = likely_public(draft.left_out) if _entity_known(draft) else ()
    while free and not draft.answers.public:
        echo(
            f"\nLeft out, and not read: {', '.join(map(visible, free))}.\n  Name those that"
            " everyone may know, if any, to count by them.",
            err=True,
        )
        answer = prompt("public columns, by commas")
        if not answer:
            break
        try:
            return draft.answered(public=tuple(map(str, listed(answer))))
        except Malformed as error:
            echo(f"  {error}", err=True)
    return draft


def _entity_known(draft: "Draft") -> bool:
    return all(point.key != "entity.column" for point in draft.open)


def prompt(words: str) -> str:
    """What somebody types, or nothing."""
    return str(typer.prompt(words, default="", show_default=False, err=True)).strip()


def _words(point: "OpenPoint", draft: "Draft") -> str:
    """What is to be typed, before the colon."""
    last = point.key.rpartition(".")[2]
    if last in ("column", "protected", "ties"):
        return f"column ({', '.join(visible(c.name) for c in draft.schema.columns)})"
    return {
        "values": "a list, as home,work; a codebook file; or 'fitted': those of the rows that a"
        " prior is fitted on (empty leaves it open)",
        "bounds": "as 0..100 (empty leaves it open)",
        "format": "1 or 2, or a format" if point.choices else "a format, as %d/%m/%Y %H:%M",
        "decimal": "the mark of decimals",
    }.get(last, last)


def _answer(point: "OpenPoint", answer: str, folder: Path) -> dict[str, Any]:
    part, _, rest = point.key.partition(".")
    last = rest.rpartition(".")[2]
    if point.key == "protected" or point.key == "order.ties":
        return {"protected" if part == "protected" else "ties": tuple(map(str, listed(answer)))}
    if part in ("entity", "order") and last == "column":
        return {part: answer}
    if last == "values":
        return {"values": {rest.removesuffix(".values"): parse_labels(answer, folder)}}
    if last == "bounds":
        return {"bounds": {rest.removesuffix(".bounds"): parse_bounds(answer)}}
    return {last: answer}


# --- what is printed ---


def print_decisions(draft: "Draft") -> None:
    """Print what a draft has decided, and why."""
    shown: Callable[[str], str] = visible
    echo(f"{'rows':<9}  {draft.rows:,} in {draft.schema.place}")
    for decision in draft.decisions:
        why = f"{'guessed: ' if decision.guessed else ''}{decision.reason}"
        echo(f"{decision.part:<9}  {shown(decision.column) or '-'}  {why}")


def _print(draft: "Draft", path: Path, text: str) -> None:
    if not sys.stdin.isatty() or not sys.stdout.isatty():
        print_decisions(draft)
    if draft.left_out:
        names = ", ".join(visible(column.name) for column in draft.left_out)
        echo(f"left out   {names}: not read, nothing can be asked about them")
    lines = text.splitlines()
    for point in draft.open:
        echo(f"open       {_line(lines, point)}{point.key}: {point.question} ({point.option})")
    echo(f"{path} was written")


def _line(lines: Sequence[str], point: "OpenPoint") -> str:
    from takifugu.declarations.declaration import line_of

    number = line_of("\n".join(lines), point.key)
    return f"line {number}, " if number else ""


def _next(called: str, path: Path, draft: "Draft") -> str:
    add = f"takifugu dataset add {pasted(called)} {pasted(str(path))}"
    start = "" if nearest_project(Path()) is not None else "takifugu init && "
    if not draft.open:
        return start + add
    return f'fill in each "?" of {path}, then {start}{add}'
