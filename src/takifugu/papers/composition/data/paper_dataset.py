"""What a source of data is, which ones a folder has, and how one is prepared."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from takifugu.engines import Declaration, Engine
from takifugu.errors import InvalidFile
from takifugu.papers.composition.data.preparation import DatasetInfo, Parts, prepare_table
from takifugu.papers.composition.data.prepared_files import read_prepared, write_prepared
from takifugu.papers.composition.data.raw_tables import EntryTable
from takifugu.papers.composition.data.source_files import FoundFiles, Progress, RequiredFile
from takifugu.papers.composition.experiments.measurements import Prepared


@dataclass(frozen=True)
class PaperDataset:
    """A dataset that someone may have.

    Attributes:
        about: What it is.
        files: What is needed of it, by the name that its recipe has for it.
        published: Where its authors publish it.
        cite: The work to cite.
        table: How its files become a table of entries.
        declare: What that table is.
        split: Which entries are fitted on and which are released from.
        derived: Whether its file was made from what they publish, and is not published itself.
    """

    about: DatasetInfo
    files: Mapping[str, RequiredFile]
    published: str
    cite: str
    table: Callable[[str, FoundFiles, Path, Progress], EntryTable]
    declare: Callable[[Path], Declaration]
    split: Callable[[Engine], Parts]
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
    source: PaperDataset, data_dir: Path | str | None, work_dir: Path | str, progress: Progress
) -> Prepared:
    """Read, check, fit and count; what was made before and is still right is not made again.

    Args:
        source: The dataset.
        data_dir: Where its files are; None for a simulated dataset.
        work_dir: Where tables are put, for this run and the next.
        progress: Called with what is being done, the steps done and the steps in all.
    """
    work = Path(work_dir)
    found = source.within(None if data_dir is None else Path(data_dir))
    try:
        work.mkdir(parents=True, exist_ok=True)
    except OSError:
        raise InvalidFile(
            str(work), given="cannot be made", needed="be a folder that can be written to"
        ) from None
    table = source.table(source.key, found, work, progress)
    if not table.rows:
        names = ", ".join(needed.name for needed in source.files.values())
        raise InvalidFile(names, given="hold no rows", needed="hold some")
    kept = work / f"{source.key}.prepared.json"
    try:
        prepared = read_prepared(kept, of=table.identity)
        same = prepared.notes[: len(source.about.notes)] == source.about.notes
        about = prepared.title, prepared.calibrated
        if same and about == (source.title, source.about.calibrated):
            return prepared
    except InvalidFile:
        pass  # none yet, or one of other data
    progress(f"{source.key}: fitting and counting", 0, 1)
    declaration = source.declare(table.path)
    prepared = prepare_table(source.about, declaration, source.split, identity=table.identity)
    write_prepared(prepared, kept)
    return prepared
