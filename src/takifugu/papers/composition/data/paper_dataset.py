"""What a source of data is, which ones a folder has, and how one is prepared."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from takifugu.declarations import Declaration
from takifugu.errors import InvalidFile, UnsoundRequest
from takifugu.papers.composition.data.preparation import DatasetInfo, Parts, prepare_table
from takifugu.papers.composition.data.prepared_files import read_prepared, write_prepared
from takifugu.papers.composition.data.raw_tables import EntryTable
from takifugu.papers.composition.data.source_files import FoundFiles, Progress, RequiredFile
from takifugu.papers.composition.experiments.measurements import Prepared
from takifugu.tables import Engine


@dataclass(frozen=True)
class Entries:
    """How files become entries, in two parts.

    Attributes:
        table: How they become a table of entries.
        declare: What that table is.
        split: Which entries are fitted on and which are released from.
    """

    table: Callable[[str, FoundFiles, Path, Progress], EntryTable]
    declare: Callable[[Path], Declaration]
    split: Callable[[Engine], Parts]


@dataclass(frozen=True)
class DrawnCounts:
    """A simulated world of which only counts are drawn, for any number of rows.

    Attributes:
        rows: How many there are unless others are requested.
        described: What the dataset is with so many rows.
        identity: Of the configuration with so many rows: equal on every machine.
        draw: Draws the prepared data.
    """

    rows: int
    described: Callable[[DatasetInfo, int], DatasetInfo]
    identity: Callable[[int], str]
    draw: Callable[[DatasetInfo, int], Prepared]


@dataclass(frozen=True)
class PaperDataset:
    """A dataset that someone may have.

    Attributes:
        about: What it is.
        files: What is needed of it, by the name that its recipe has for it.
        published: Where its authors publish it.
        cite: The work to cite.
        made_by: How its files become entries, or how its counts are drawn.
        derived: Whether its file was made from what they publish, and is not published itself.
    """

    about: DatasetInfo
    files: Mapping[str, RequiredFile]
    published: str
    cite: str
    made_by: Entries | DrawnCounts
    derived: bool = False

    @property
    def key(self) -> str:
        """Its short name."""
        return self.about.key

    @property
    def title(self) -> str:
        """What it is, for people."""
        return self.about.title

    def missing(self, needed: RequiredFile, folder: Path | None) -> InvalidFile:
        """The error for a file that is not there: its name, its columns, where it is published."""
        where = "it is made from what its authors" if self.derived else "its authors"
        return InvalidFile(
            needed.name,
            given="is missing" if folder is None else f"is missing from {folder}",
            needed=f"be there with the columns {needed.shape}; {where} publish"
            f"{'' if self.derived else ' it'} at {self.published}",
        )

    def within(self, folder: Path | None) -> FoundFiles:
        """Its files in ``folder``; an error that names the first one that is not there."""
        found: dict[str, tuple[RequiredFile, tuple[Path, ...]]] = {}
        for name, needed in self.files.items():
            paths = () if folder is None else needed.within(folder)
            if not paths:
                raise self.missing(needed, folder)
            found[name] = needed, paths
        return found


def prepare(
    source: PaperDataset,
    data_dir: Path | str | None,
    work_dir: Path | str,
    progress: Progress,
    *,
    rows: int | None = None,
) -> Prepared:
    """Read, check, fit and count; what was made before and is still right is not made again.

    Args:
        source: The dataset.
        data_dir: Where its files are; None for a simulated dataset.
        work_dir: Where tables are put, for this run and the next.
        progress: Called with what is being done, the steps done and the steps in all.
        rows: How many rows a world has whose counts are drawn; refused for every other dataset.
    """
    made = source.made_by
    if rows is not None and not isinstance(made, DrawnCounts):
        raise UnsoundRequest(
            f"{source.key} has the rows that it has; only the number of rows of simulated check-ins"
            " can be chosen",
            field="rows",
            given=rows,
        )
    work = Path(work_dir)
    found = source.within(None if data_dir is None else Path(data_dir))
    try:
        work.mkdir(parents=True, exist_ok=True)
    except OSError:
        raise InvalidFile(
            str(work), given="cannot be made", needed="be a folder that can be written to"
        ) from None
    kept = work / f"{source.key}.prepared.json"
    if isinstance(made, DrawnCounts):
        size = made.rows if rows is None else rows
        about = made.described(source.about, size)
        prepared = _kept(kept, about, made.identity(size))
        if prepared is None:
            progress(f"{source.key}: drawing the counts of {size:,} rows", 0, 1)
            prepared = made.draw(about, size)
            write_prepared(prepared, kept)
        return prepared
    table = made.table(source.key, found, work, progress)
    if not table.rows:
        names = ", ".join(needed.name for needed in source.files.values())
        raise InvalidFile(names, given="hold no rows", needed="hold some")
    prepared = _kept(kept, source.about, table.identity)
    if prepared is None:
        progress(f"{source.key}: fitting and counting", 0, 1)
        declaration = made.declare(table.path)
        prepared = prepare_table(source.about, declaration, made.split, identity=table.identity)
        write_prepared(prepared, kept)
    return prepared


def _kept(path: Path, about: DatasetInfo, identity: str) -> Prepared | None:
    """What was prepared before, if it is of this data and says the same of it."""
    try:
        prepared = read_prepared(path, of=identity)
    except InvalidFile:
        return None  # none yet, or one of other data
    about = about.checked(prepared.facts)
    same = prepared.notes[: len(about.notes)] == about.notes
    said = prepared.title, prepared.calibrated
    return prepared if same and said == (about.title, about.calibrated) else None
