"""`keyhole audit`: tests of the paper's claims by simulation."""

from __future__ import annotations

from dataclasses import asdict
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from keyhole.cli.console import as_json, clean, err, out, writable
from keyhole.cli.data import Json
from keyhole.cli.worlds import Arms, Config, ContextDim, Delta, Dim, Seed, linear_world

if TYPE_CHECKING:
    from keyhole.lab.audit import Finding, Scope

EXAMPLES = """
Examples:

[bold]keyhole audit[/]   a small world, in which every claim can be tested, in 20 s

[bold]keyhole audit --arms 5 --dim 2 --horizon 20000 --replications 200[/]   a larger test

[bold]keyhole audit --config study.toml --json[/]   the world of a file, as JSON
"""
COLOURS = {"contradicted": "bold red", "holds": "green"}


@clean
def audit(
    arms: Arms = None,
    context_dim: ContextDim = None,
    dim: Dim = None,
    config: Config = None,
    horizon: Annotated[int, typer.Option(min=100, help="Number of rounds.")] = 4000,
    replications: Annotated[int, typer.Option(min=4, help="Number of replications.")] = 100,
    delta: Delta = 0.1,
    controls: Annotated[
        bool, typer.Option(help="Run each claim's control, which must be contradicted.")
    ] = True,
    outside: Annotated[
        bool, typer.Option("--outside", help="Test claims whose assumptions the world breaks, too.")
    ] = False,
    seed: Seed = 1,
    out_dir: Annotated[Path, typer.Option("--out", help="Folder for the page.")] = Path(
        "keyhole-report"
    ),
    json: Json = False,
) -> None:
    """Test the paper's claims by simulation, and write a page with the results.

    Verdicts: "contradicted" if an exact test rejects the claim; "holds" if an exact test shows that
    it fails less than twice as often as it may; "not contradicted" if no test decides; "not yet" if
    the claim begins beyond the run. The test in its place, of the same statement within the run or
    of its rate, has a column of its own. All tests together reject a true claim with probability at
    most 1%.

    The slack is limit / seen. Each claim has a control, the same test where the claim is broken.

    Claims whose assumptions the world does not meet are refused, but for --outside.

    The exit code is 1 if a test contradicts a claim in a world that meets its assumptions, unless
    the claim is known to be false there.
    """
    from keyhole.lab.audit import Scope
    from keyhole.lab.audit import audit as run
    from keyhole.lab.studies import REPORT_PAGE, STUDIES, write_audit, write_report

    writable(out_dir)
    world = linear_world(arms, context_dim, dim, config, seed)
    scope = Scope(
        world=world,
        horizon=horizon,
        replications=replications,
        delta=delta,
        seed=seed,
        outside=outside,
    )
    findings = []
    with err().status("auditing") as status:
        for found in run(scope, with_controls=controls):
            findings.append(found)
            status.update(f"auditing: {len(findings)} claims done, the last {found.name}")
    out_dir.mkdir(parents=True, exist_ok=True)
    page = write_audit(out_dir, scope, findings)
    if (out_dir / REPORT_PAGE).exists():  # it links to this page
        write_report(out_dir, list(STUDIES.values()))
    if json:
        as_json(_as_dict(scope, findings))
    else:
        _show(scope, findings)
        out().print(f"{page}", soft_wrap=True, markup=False)
    if not all(one.as_expected for one in findings):
        raise typer.Exit(1)


def _as_dict(scope: Scope, findings: list[Finding]) -> dict[str, Any]:
    from keyhole.lab.audit import FAMILY_ERROR, LEMMAS

    return {
        "family_error": FAMILY_ERROR,
        "assumptions": [asdict(one) for one in scope.validity],
        "findings": [
            {
                **asdict(one),
                "control": one.control
                and {**asdict(one.control), "contradicted": one.control.contradicted},
                "verdict": one.verdict,
                "outcome": one.outcome,
                "has_power": one.has_power,
                "as_expected": one.as_expected,
            }
            for one in findings
        ],
        "lemmas": [asdict(one) for one in LEMMAS],
    }


def _show(scope: Scope, findings: list[Finding]) -> None:
    """Print a line for each claim, and details of those that need attention."""
    for met in scope.validity:
        if not met.met:
            out().print(f"[yellow]not met[/] {escape(str(met))}. Without it {met.without}.")
    table = Table("claim", "verdict", "in its place", "slack", "power")
    for found in findings:
        if not found.needs:
            table.add_row(*_row(found))
    out().print(table)
    for one in findings:
        if one.false:
            out().print(f"[yellow]false here[/] {one.name} ({one.label}): {escape(one.false)}")
        if not one.as_expected:
            said = f"{escape(one.claim)}. Seen: {escape(one.evidence)}"
            out().print(f"[bold red]contradicted[/] {one.name} ({one.label}): {said}")
        if not one.has_power and one.control is not None:
            said = f"{escape(one.control.name)}. Seen: {escape(one.control.evidence)}"
            out().print(f"[yellow]without power[/] {one.name} ({one.label}): {said}")
    if refused := [one for one in findings if one.needs]:
        names = ", ".join(f"{one.name} ({one.label})" for one in refused)
        out().print(f"[yellow]refused[/] since an assumption is not met: {names}")
    out().print(
        "\nSlack is limit / seen, and power whether the control is contradicted. The page has each "
        "claim with its evidence and its control, and all fifteen lemmas:"
    )


def _row(one: Finding) -> tuple[str, ...]:
    """Return the cells of a finding."""
    outcome = f"[{COLOURS.get(one.outcome, 'yellow')}]{one.outcome}[/]"
    power = ""
    if one.control is not None:
        power = "yes" if one.control.contradicted else "[yellow]no[/]"
    status = f", {one.status}" if one.status else ""
    return (
        f"{one.name}\n[dim]{one.label}{status}[/]",
        f"[yellow]{one.verdict}[/]" if one.begins else outcome,
        f"{one.kind}: {outcome}" if one.begins else "",
        "" if isnan(one.slack) else f"{one.slack:.2g}",
        power,
    )
