"""Licences of packages are known, suit what we do with them, and stand on the page."""

import re
from importlib.metadata import PathDistribution
from pathlib import Path

import pytest

from torture.dependencies.licence_page import PAGE, check_licences, read, rows, written
from torture.dependencies.licences import (
    WITHIN,
    Kind,
    kind_of,
    licence_of,
    notices,
    says_its_licence,
    unsuited,
)
from torture.dependencies.requirements import (
    Asked,
    closure,
    installed,
    pinned,
    used_by,
)
from torture.part_report import ROOT, Report

pytestmark = pytest.mark.nightly

ROWS = read(PAGE.read_text(encoding="utf-8"))


def package(folder: Path, about: str, licence: str = "") -> PathDistribution:
    """A package of those fields, with a file of its licence if there is one."""
    place = folder / "thing-1.dist-info"
    place.mkdir(parents=True)
    (place / "METADATA").write_text(f"Metadata-Version: 2.4\nName: thing\nVersion: 1\n{about}\n")
    (place / "RECORD").write_text("thing-1.dist-info/LICENSE,,\n" if licence else "")
    if licence:
        (place / "LICENSE").write_text(licence)
    return PathDistribution(place)


def test_the_page_is_that_of_the_pins() -> None:
    assert {row.name: row.version for row in ROWS.values()} == pinned()
    listed = rows(Asked.read(), pinned(), installed(), ROWS)
    assert written(listed) == PAGE.read_text(encoding="utf-8")
    assert len(listed) > 150


def test_every_licence_suits() -> None:
    uses = {name: row.uses for name, row in ROWS.items()}
    assert unsuited({name: row.licence for name, row in ROWS.items()}, uses) == []
    there = installed()
    ours = used_by(Asked.read(), there)
    assert unsuited({name: licence_of(there[name]) for name in ours}, ours) == []


def test_what_people_need_is_installed_and_pinned() -> None:
    asked, there = Asked.read(), installed()
    for extra in ("always", "postgres", "tables", "reports", "server", "dev"):
        found, missing = closure(extra, asked, there)
        assert missing == set()
        assert found <= set(pinned())


def test_a_pin_that_is_nowhere_is_refused_and_one_of_another_extra_keeps_its_row() -> None:
    asked, there = Asked.read(), installed()
    with pytest.raises(LookupError, match=r"thing 1\.0"):
        rows(asked, {**pinned(), "thing": "1.0"}, there, ROWS)
    without = {name: one for name, one in there.items() if name != "furo"}
    assert ROWS["furo"] in rows(asked, pinned(), without, ROWS)
    with pytest.raises(LookupError, match="furo 0"):
        rows(asked, {**pinned(), "furo": "0"}, without, ROWS)


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("MIT", Kind.PERMISSIVE),
        ("GPL-3.0-only", Kind.STRONG_COPYLEFT),
        ("GPL-3.0-only OR MIT", Kind.PERMISSIVE),
        ("GPL-3.0-only AND MIT", Kind.STRONG_COPYLEFT),
        ("MIT OR GPL-3.0-only AND Apache-2.0", Kind.PERMISSIVE),
        ("(MIT OR GPL-3.0-only) AND MPL-2.0", Kind.WEAK_COPYLEFT),
        ("(MIT AND GPL-3.0-only) OR LGPL-3.0-only", Kind.WEAK_COPYLEFT),
        ("Apache-2.0 WITH LLVM-exception AND AGPL-3.0-only", Kind.STRONG_COPYLEFT),
        ("BUSL-1.1", Kind.UNKNOWN),
        ("BUSL-1.1 OR MIT", Kind.PERMISSIVE),
        ("LicenseRef-Ours", Kind.UNKNOWN),
        ("Proprietary", Kind.UNKNOWN),
        ("MIT OR", Kind.UNKNOWN),
        ("", Kind.UNKNOWN),
        (None, Kind.UNKNOWN),
    ],
)
def test_a_licence_asks_for_the_least_of_a_choice_and_the_most_of_a_sum(
    expression: str | None, kind: Kind
) -> None:
    assert kind_of(expression) is kind


def test_an_unknown_licence_and_a_copyleft_one_of_users_are_found() -> None:
    licences = {"a": None, "b": "GPL-3.0-only", "c": "GPL-3.0-only", "d": "MPL-2.0", "e": "Odd"}
    uses = {"a": ("dev",), "b": ("server",), "c": ("docs",), "d": ("always",), "e": ("always",)}
    assert [one.package for one in unsuited(licences, uses)] == ["a", "b", "e"]
    assert [one.package for one in unsuited({"b": "AGPL-3.0-only"}, {"b": ("always",)})] == ["b"]


BSD = "Redistribution and use in source and binary forms"
MIT = "Permission is hereby granted, free of charge, to any person obtaining a copy"
OSI = "Classifier: License :: OSI Approved :: "


@pytest.mark.parametrize(
    ("about", "text", "licence"),
    [
        ("License-Expression: mit or apache-2.0", "", "MIT OR Apache-2.0"),
        ("License-Expression: whatever you like", "", None),
        ("License: Apache 2.0", "", "Apache-2.0"),
        ("License: BSD", BSD, "BSD-2-Clause"),
        ("License: BSD", BSD + " to endorse or\n  promote products", "BSD-3-Clause"),
        ("License: UNKNOWN\n" + OSI + "ISC License (ISCL)", "", "ISC"),
        (OSI + "MIT License\nClassifier: Topic :: Software", "", "MIT"),
        (OSI + "MIT License\n" + OSI + "GNU General Public License v3 (GPLv3)", "", None),
        (OSI + "GNU Affero General Public License v3", "", "AGPL-3.0-only"),
        (OSI + "Nobody's Licence", "", None),
        ("", MIT, "MIT"),
        ("", "All rights reserved.", None),
        ("", "", None),
    ],
)
def test_the_licence_of_a_package_is_what_its_fields_or_its_text_say(
    tmp_path: Path, about: str, text: str, licence: str | None
) -> None:
    assert licence_of(package(tmp_path, about, text)) == licence


def test_files_within_packages_say_the_licence_that_the_page_gives_them() -> None:
    there = installed()
    for file in WITHIN:
        content = Path(str(there[file.package].locate_file(file.path))).read_bytes()
        assert says_its_licence(file, content)
        assert not says_its_licence(file, b"All rights reserved.")
        assert kind_of(file.licence) < Kind.STRONG_COPYLEFT


def test_takifugu_ships_no_file_of_others(tmp_path: Path) -> None:
    assert list(notices(ROOT / "src" / "takifugu")) == []
    (tmp_path / "ours.js").write_text("// how people ask\n")
    for name, text in (("a.js", "/*! Copyright (c) 2015 Them */"), ("b.css", "/* @license MIT */")):
        (tmp_path / name).write_text(text)
    assert [path.name for path in notices(tmp_path)] == ["a.js", "b.css"]


def test_a_run_judges_the_licences_of_all_pins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = Report("dependencies", tmp_path, minutes=1, seed=0)
    check_licences(report)
    assert report.counts["licences"] == len(pinned()) and report.findings == []
    planted = tmp_path / "licences.md"
    text = re.sub(r"^\| pandas .*\n", "", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    planted.write_text(
        text.replace("| psycopg | 3", "| psycopg | 3.0 | unknown | always |\n| x | 3")
    )
    monkeypatch.setattr("torture.dependencies.licence_page.PAGE", planted)
    check_licences(report)
    assert [one.what.split()[0] for one in report.findings] == ["pandas", "psycopg"]
