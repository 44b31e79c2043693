"""``takifugu collapse``: mechanisms that leak nothing in one run and everything in a few.

Only the standard library and typer are imported at the top, so that ``--help`` stays quick.
"""

import math
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from takifugu.cli.shared_options import AsJson, Spinner, echo, print_json, refuse_outside
from takifugu.visible import four_digits

if TYPE_CHECKING:
    from rich.console import Console

    from takifugu.papers.composition.collapse import (
        AttackStep,
        AttackTrace,
        Collapse,
        SimulatedAttacks,
        WaitingTime,
    )

SEED = 2025
LEVELS = {"median": Fraction(1, 2), "p90": Fraction(9, 10), "p99": Fraction(99, 100)}


def run_collapse(
    example: Annotated[
        int, typer.Argument(help="1 (one secret), 2 (many secrets), 3 (many priors).")
    ],
    n: Annotated[
        int,
        typer.Option(
            help="Size, 3 to 16: datasets of each secret (1), bits (2), datasets of each case (3)."
        ),
    ] = 5,
    runs: Annotated[int, typer.Option(help="Runs of the attack that is shown, 1 to 1000.")] = 6,
    seed: Annotated[
        int, typer.Option(help="Seed of the simulation; exact numbers need none.")
    ] = SEED,
    repetitions: Annotated[int, typer.Option(help="Simulated attacks, 2 to 10000000.")] = 10_000,
    as_json: AsJson = False,
    plot: Annotated[
        Path | None, typer.Option(help="Also draw a figure: a .png, .svg or .pdf file.")
    ] = None,
) -> None:
    """Show how a mechanism that leaks nothing in one run reveals the secret in a few.

    EXAMPLE is one of the three in "Composition for Pufferfish Privacy", Section 4.

    JSON: example, title, n, seed; one_run and two_runs (epsilon, odds = e to the epsilon; two_runs
    also chance_revealed and telling, outputs that together reveal a secret); runs (expected,
    median, p90, p99, simulated_mean, standard_error, repetitions, wrong, law: run, exact,
    simulated); truth (statement to true or false); revealed_at (a run, or null); posterior (run,
    output, datasets_left, revealed, chances: statement to exact, value, low, high over all priors);
    paper (what, printed, exact). Exact numbers are strings like "5/2"; an infinite number is the
    string "infinity".
    """
    refuse_outside("--runs", runs, 1, 1000)
    refuse_outside("--repetitions", repetitions, 2, 10_000_000)
    refuse_outside("--seed", seed, 0, 2**64 - 1)

    import numpy as np

    from takifugu import reports
    from takifugu.papers.composition import collapse
    from takifugu.papers.composition.collapse.collapse_figure import collapse_figure

    chosen = collapse.example(example, n)
    if plot is not None:
        reports.check_target(plot)
    rng = np.random.default_rng(seed)  # noqa: TID251 - a simulation; nothing is protected by it
    for_trace, for_crowd = rng.spawn(2)  # so that neither --runs nor --repetitions moves the other
    trace = collapse.trace_attack(chosen, runs, rng=for_trace)
    batches = collapse.simulate_in_batches(chosen, repetitions, rng=for_crowd)
    done: list[SimulatedAttacks] = []
    with Spinner("simulated attacks") as spinner:
        for batch in batches:
            done.append(batch)
            spinner(f"{sum(len(each.runs) for each in done):,} of {repetitions:,}")
    simulated = collapse.join_batches(done)
    waiting = chosen.waiting()
    if plot is not None:
        title = f"Example {example}, {chosen.title}"
        reports.save(collapse_figure(title, trace, waiting, simulated), plot)
    if as_json:
        head = {"example": example, "title": chosen.title, "n": n, "seed": seed}
        print_json(head | _facts(chosen, trace, waiting, simulated))
    else:
        _show(example, seed, chosen, trace, waiting, simulated)
    if plot is not None:
        echo(f"figure written to {plot}", err=True)


# --- JSON ---


def _facts(
    chosen: "Collapse", trace: "AttackTrace", waiting: "WaitingTime", simulated: "SimulatedAttacks"
) -> dict[str, Any]:
    """Everything that is shown, as JSON values."""
    from takifugu.papers.composition.collapse.collapse_figure import shown_runs

    one, two = chosen.loss(1), chosen.loss(2)
    return {
        "one_run": {"epsilon": one.epsilon, "odds": _exact(one.ratio)},
        "two_runs": {
            "epsilon": two.epsilon,
            "odds": _exact(two.ratio),
            "chance_revealed": _exact(waiting.within(2)),
            "telling": [chosen.show(output) for output in chosen.revealing_outputs()],
        },
        "runs": {
            "expected": _exact(waiting.expectation),
            **{name: waiting.quantile(level) for name, level in LEVELS.items()},
            "simulated_mean": simulated.mean,
            "standard_error": simulated.standard_error,
            "repetitions": len(simulated.runs),
            "wrong": simulated.wrong,
            "law": [
                {
                    "run": run,
                    "exact": _exact(waiting.probability(run)),
                    "simulated": simulated.share(run),
                }
                for run in range(1, shown_runs(waiting) + 1)
            ],
        },
        "truth": dict(zip(trace.statements, trace.truth, strict=True)),
        "revealed_at": trace.revealed_at,
        "posterior": [_step(chosen, trace, step) for step in trace.steps],
        "paper": [
            {"what": p.what, "printed": _exact(p.printed), "exact": _exact(p.exact)}
            for p in chosen.printed
        ],
    }


def _step(chosen: "Collapse", trace: "AttackTrace", step: "AttackStep") -> dict[str, Any]:
    rows = zip(trace.statements, step.posterior, step.bounds, strict=True)
    return {
        "run": step.run,
        "output": None if step.run == 0 else chosen.show(step.output),
        "datasets_left": step.candidates,
        "revealed": step.revealed,
        "chances": {
            statement: {
                "exact": str(probability),
                "value": float(probability),
                "low": str(low),
                "high": str(high),
            }
            for statement, probability, (low, high) in rows
        },
    }


def _exact(value: Fraction | float) -> str | float:
    """A fraction as text, exactly; a float as it is."""
    return str(value) if isinstance(value, Fraction) else value


# --- terminal ---


def _show(
    example: int,
    seed: int,
    chosen: "Collapse",
    trace: "AttackTrace",
    waiting: "WaitingTime",
    simulated: "SimulatedAttacks",
) -> None:
    """Print it as text, without trailing spaces."""
    from rich.console import Console
    from rich.table import Table

    console = Console(markup=False, highlight=False, emoji=False)
    facts = Table.grid(padding=(0, 2))
    one, two = chosen.loss(1), chosen.loss(2)
    facts.add_row("one run leaks", _loss(one.epsilon, one.ratio))
    facts.add_row("two runs leak", _loss(two.epsilon, two.ratio))
    telling = " and ".join(chosen.show(output) for output in chosen.revealing_outputs())
    facts.add_row("", f"for instance, {telling} reveal a secret")
    facts.add_row("", f"two runs reveal all with probability {_short(waiting.within(2))}")
    facts.add_row("runs until revealed", f"{_short(waiting.expectation)} expected (exact)")
    facts.add_row(
        "",
        f"{four_digits(simulated.mean)} simulated, standard error"
        f" {four_digits(simulated.standard_error)}",
    )
    facts.add_row(
        "", f"{len(simulated.runs):,} attacks, seed {seed}; {simulated.wrong} declared wrongly"
    )
    at = (f"{float(level):.0%} by run {waiting.quantile(level)}" for level in LEVELS.values())
    facts.add_row("", f"{', '.join(at)} (exact)")
    for i, note in enumerate(chosen.printed):
        label = "the paper prints" if i == 0 else ""
        true = _short(note.exact) if isinstance(note.exact, Fraction) else _up(note.exact)
        facts.add_row(label, f"{note.what}: {_short(note.printed)} (exact: {true})")
    with console.capture() as page:
        console.print(f"Example {example}, {chosen.title}\n", style="bold")
        console.print(facts)
        console.print()
        _show_trace(console, chosen, trace)
    typer.echo(
        "\n".join(line.rstrip() for line in page.get().splitlines())
    )  # styled; all of it is ours


def _show_trace(console: "Console", chosen: "Collapse", trace: "AttackTrace") -> None:
    """The posterior run by run, the true secret marked."""
    from rich import box
    from rich.table import Table

    bits = not trace.exclusive
    ranged = any(low != high for step in trace.steps for low, high in step.bounds)
    table = Table(
        box=box.SIMPLE_HEAD, title="The adversary's posterior, exact", title_justify="left"
    )
    table.add_column("run", justify="right")
    table.add_column("output", no_wrap=True)
    if bits:
        first, last = trace.statements[0], trace.statements[-1]
        table.add_column(f"P({first})..P({last})", no_wrap=True)
    else:
        for statement, true in zip(trace.statements, trace.truth, strict=True):
            table.add_column(f"P({statement}){' *' if true else ''}", justify="right", no_wrap=True)
    if ranged:
        table.add_column(f"P({trace.statements[0]}), all priors", no_wrap=True)
    table.add_column("left", justify="right")
    table.add_column("", no_wrap=True)
    for step in trace.steps:
        posterior = ["".join(map(_bit, step.posterior))] if bits else [*map(_short, step.posterior)]
        span = [" to ".join(_short(end) for end in step.bounds[0])] if ranged else []
        output = chosen.show(step.output) if step.run else "(none yet)"
        last_cell = "revealed" if step.revealed else ""
        table.add_row(
            str(step.run),
            output,
            *posterior,
            *span,
            f"{step.candidates:,}",
            last_cell,
            style="bold" if step.run == trace.revealed_at else "",
        )
    if bits:
        table.add_section()
        table.add_row("", "* the truth", "".join(str(int(true)) for true in trace.truth), "", "")
    console.print(table)
    console.print("?: 1/2, as before the first run" if bits else "*: the true secret")
    console.print("left: datasets that could have given all outputs so far")


def _loss(epsilon: float, ratio: Fraction | float) -> str:
    if epsilon == 0:
        return "epsilon = 0 (exact): no output moves the odds of a secret"
    if epsilon == math.inf:
        return "epsilon = infinity: some outputs reveal a secret"
    return f"epsilon = {_up(epsilon)}: the odds move by a factor of up to {_short(ratio)}"


def _up(epsilon: float) -> str:
    """A loss, rounded up."""
    return four_digits(epsilon, "up")


def _bit(probability: Fraction) -> str:
    return str(probability) if probability in (0, 1) else "?"


def _short(value: Fraction | float) -> str:
    """A number in a few characters; an uncertain statement never reads as 0 or 1."""
    if isinstance(value, Fraction) and len(str(value)) <= 7:
        return str(value)
    text = four_digits(value)
    if text in ("0", "1") and value not in (0, 1):
        return "<0.0001" if text == "0" else ">0.9999" if value < 1 else ">1"
    return text
