"""A request finds what is there, names what is not, and refuses a folder that has nothing."""

from pathlib import Path

from takifugu.errors import InvalidFile
from takifugu.papers.composition.reproduction import choose_datasets
from tests.raising import raises


def keys(what: str, folder: Path | None) -> list[str]:
    return [source.key for source in choose_datasets(what, folder).sources]  # type: ignore[arg-type]


def test_without_data_the_worlds_are_simulated_and_it_is_said() -> None:
    planned = choose_datasets("all", None)
    assert [s.about.origin for s in planned.sources] == ["simulated", "simulated"]
    assert [s.about.family for s in planned.sources] == ["foursquare", "capture24"]
    assert planned.curves
    said = "\n".join(planned.notices)
    assert said.count("a simulated world is used") == 2
    for name in ("dataset_TIST2015_Checkins.txt", "dataset_TIST2015_POIs.txt", "metadata.csv"):
        assert f"`{name}` is missing" in said
    assert said.count("https://") >= 4 and "columns" in said


def test_figures_need_no_data() -> None:
    planned = choose_datasets("figures", None)
    assert planned.curves and not planned.sources and not planned.notices


def test_all_sources_of_a_family_are_used_at_once(tmp_path: Path) -> None:
    for name in ("checkins_nyc.csv.gz", "checkins_jakarta.csv.gz", "sleep_hypnograms.csv.gz"):
        (tmp_path / name).write_bytes(b"")
    assert keys("foursquare", tmp_path) == ["nyc", "jakarta"]
    assert keys("capture24", tmp_path) == ["sleep"]
    assert keys("all", tmp_path) == ["nyc", "jakarta", "sleep"]
    assert not choose_datasets("foursquare", tmp_path).curves
    assert not any("simulated" in notice for notice in choose_datasets("all", tmp_path).notices)


def test_the_other_family_is_simulated_where_only_one_is_there(tmp_path: Path) -> None:
    (tmp_path / "sleep_hypnograms.csv.gz").write_bytes(b"")
    assert keys("all", tmp_path) == ["simulated-checkins", "sleep"]


def test_a_folder_with_nothing_is_a_mistake(tmp_path: Path) -> None:
    with raises(InvalidFile, field="--data"):
        choose_datasets("foursquare", tmp_path)
    (tmp_path / "sleep_hypnograms.csv.gz").write_bytes(b"")
    with raises(InvalidFile, field="--data"):
        choose_datasets("foursquare", tmp_path)
    with raises(InvalidFile, field=str(tmp_path / "nowhere")):
        choose_datasets("all", tmp_path / "nowhere")


def test_half_a_source_is_a_mistake_before_anything_is_run(tmp_path: Path) -> None:
    (tmp_path / "dataset_TIST2015_Checkins.txt").write_text("1\t2\t3\t4\n")
    with raises(InvalidFile, field="dataset_TIST2015_POIs.txt"):
        choose_datasets("foursquare", tmp_path)
