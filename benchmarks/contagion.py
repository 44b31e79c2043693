"""Infections among people: bounds from both sides, and a ward's plan and release as commands."""

import csv
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

from benchmarks._data import WARD
from takifugu.priors import MarkovRandomField, Secrets
from takifugu.priors.contacts import (
    Contacts,
    contagion,
    contagion_over_time,
    read_contact_slices,
    read_contacts,
)
from takifugu.synthetic import school
from takifugu.translation.models.networks import NetworkTransport

DECLARATION = """\
[source]
kind = "csv"
path = "ward.csv"
[entity]
column = "person"
[order]
column = "at"
kind = "number"
ties = "refuse"
[protected.infected]
values = [0, 1]
outside = "refuse"
[public.role]
values = "from the data"
"""


def run() -> None:
    """Print times, bounds and how far apart they are."""
    NetworkTransport(MarkovRandomField.ising({0: 0.0, 1: 0.0}, {(0, 1): 1.0}), Secrets())
    if WARD.exists():
        people = read_contacts(WARD)
        for background, odds in ((0.02, 1.2), (0.02, 1.5), (0.05, 1.2), (0.05, 1.5)):
            field = contagion(people, background=background, odds_per_hour=odds)
            both_sides(f"ward of {len(people.people)}, {background} × {odds}", field)
        days = read_contact_slices(WARD)
        for times, slices in ((len(days), days), (30, read_contact_slices(WARD, times=30))):
            field = contagion_over_time(slices, background=0.02, odds_per_hour=1.5, again=8.0)
            both_sides(f"ward of {len(people.people)} at {times} times", field, (0.05, 0.2))
    else:
        print("the ward's contact list is not beside the project; it is left out")
    pupils = school(rng=np.random.default_rng(1))
    for background, odds in ((0.02, 1.5), (0.05, 1.5)):
        field = contagion(pupils, background=background, odds_per_hour=odds)
        both_sides(f"school of {len(pupils.people)}, {background} × {odds}", field)
    if WARD.exists():
        commands(people)


def both_sides(
    what: str, field: MarkovRandomField, epsilons: tuple[float, ...] = (0.01, 0.1, 0.5, 0.65)
) -> None:
    """What counts reveal about one person, at most and at least."""
    transport = NetworkTransport(field, Secrets())
    for epsilon in epsilons:
        start = process_time()
        bound = transport.uniform(epsilon)
        seconds = process_time() - start
        leak = transport.witness(epsilon, bound).leak
        print(
            f"{what}, ε = {epsilon}: between {leak:.4f} and {bound.value:.4f}, ratio"
            f" {bound.value / leak:.3f} ({bound.binding}); group DP"
            f" {epsilon * len(field.entries):.2f}; {seconds:.2f} s",
            flush=True,
        )
    start = process_time()
    allowed = transport.largest(1.0)
    print(f"  ε_puf = 1 allows {allowed:.4f}, found in {process_time() - start:.2f} s", flush=True)


def commands(people: Contacts) -> None:
    """``takifugu plan`` and ``release`` of how many are infected, by role, in a new project."""
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        with (folder / "ward.csv").open("w", newline="", encoding="utf-8") as file:
            write = csv.writer(file)
            write.writerow(["person", "at", "role", "infected"])
            for who, role in zip(people.people, people.roles, strict=True):
                write.writerow([who, 0, role, int(rng.random() < 0.15)])
        (folder / "ward.toml").write_text(DECLARATION, encoding="utf-8")
        query = "ward count --values 1 --by role --epsilon 0.5"
        for command in (
            "init .",
            "dataset add ward ward.toml",
            f"prior contacts {WARD} ward --background .02 --per-hour 1.5",
            "budget set ward 1",
            f"plan {query}",  # the first one compiles
            f"plan {query}",
            f"release {query}",
        ):
            before, start = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
            subprocess.run(  # noqa: S603 - our own interpreter and code
                [sys.executable, "-m", "takifugu", *command.split()],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1] / "src")},
                check=True,
                capture_output=True,
            )
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            computed = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            print(
                f"takifugu {command.split()[0]}: {perf_counter() - start:.1f} s, of which computing"
                f" {computed:.1f} s",
                flush=True,
            )
