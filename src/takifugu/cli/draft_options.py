"""Options of the commands that draft a declaration: what a person knows and a schema does not."""

from typing import Annotated, Literal

import typer

DataFile = Annotated[
    str,
    typer.Argument(help="A Parquet, CSV or DuckDB file, or a pattern such as 'part*.csv'."),
]
DatasetCalled = Annotated[
    str | None, typer.Option(help="What to call the dataset; by default as the file.")
]
InDuckDB = Annotated[str | None, typer.Option(help="Of a DuckDB file: the table.")]
EntityColumn = Annotated[str | None, typer.Option(help="The column that says whose row it is.")]
OrderColumn = Annotated[
    str | None,
    typer.Option(help="The column that puts the rows of one in order; 'none' if each has one row."),
]
OrderKind = Annotated[
    Literal["time", "unix", "number"] | None,
    typer.Option(help="Of the order: times, seconds since 1970, or other numbers."),
]
TimeFormat = Annotated[
    str | None, typer.Option("--format", help="How times are written, as '%d/%m/%Y %H:%M'.")
]
TimeZone = Annotated[
    str | None, typer.Option(help="The zone of times that carry none, as Europe/Berlin.")
]
TieColumns = Annotated[
    list[str] | None,
    typer.Option(help="A public column that settles ties; a list by commas, repeatable."),
]
ProtectedColumns = Annotated[
    list[str] | None, typer.Option(help="A column to protect; a list by commas, repeatable.")
]
PublicColumns = Annotated[
    list[str] | None,
    typer.Option(
        help="Columns that everyone may know, as 'country,sex', repeatable. None is guessed."
    ),
]
NumberBounds = Annotated[
    list[str] | None,
    typer.Option(help="COLUMN=0..100, the least and the largest number; repeatable."),
]
Separator = Annotated[
    str | None, typer.Option(help="Of a CSV file: ',', ';', '|' or tab; found if left out.")
]
FileEncoding = Annotated[
    Literal["utf-8", "latin-1"] | None,
    typer.Option(help="Of a CSV file; found if left out."),
]
DecimalMark = Annotated[
    str | None, typer.Option(help="Of a CSV file: '.' or ',', the mark of decimals.")
]
