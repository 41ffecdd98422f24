"""`keyhole audit`: tests of the paper's claims by simulation."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from keyhole.cli.console import as_json, clean, err, out, writable
from keyhole.cli.data import Json
from keyhole.cli.worlds import Arms, Config, ContextDim, Delta, Dim, Seed, linear_world

if TYPE_CHECKING:
    from keyhole.lab.audit import Finding

EXAMPLES = """
Examples:

[bold]keyhole audit[/]   a small world, in which every claim can be tested, in 40 s

[bold]keyhole audit --arms 5 --dim 2 --horizon 20000 --replications 100[/]   a larger test

[bold]keyhole audit --config study.toml --json[/]   the world of a file, as JSON
"""


@clean
def audit(
    arms: Arms = None,
    context_dim: ContextDim = None,
    dim: Dim = None,
    config: Config = None,
    horizon: Annotated[int, typer.Option(min=100, help="Number of rounds.")] = 4000,
    replications: Annotated[int, typer.Option(min=4, help="Number of replications.")] = 40,
    delta: Delta = 0.1,
    controls: Annotated[
        bool, typer.Option(help="Include negative controls, which must be contradicted.")
    ] = True,
    seed: Seed = 1,
    out_dir: Annotated[Path, typer.Option("--out", help="Folder for the page.")] = Path(
        "keyhole-report"
    ),
    json: Json = False,
) -> None:
    """Test the paper's claims by simulation, and write a page with the results.

    Verdicts: "holds" if an exact test shows that the claim fails less than twice as often as it
    may; "contradicted" if a test rejects it; "not contradicted" if no test decides; "cannot tell"
    if there are too few pulls or too much noise.

    Negative controls are claims outside their assumptions; they must be contradicted.

    It is an error if the theory promises nothing in the world.

    The exit code is 1 if a claim is contradicted, or a control is not.
    """
    from keyhole.lab.audit import Scope
    from keyhole.lab.audit import audit as run
    from keyhole.lab.studies import REPORT_PAGE, STUDIES, write_audit, write_report

    writable(out_dir)
    world = linear_world(arms, context_dim, dim, config, seed)
    scope = Scope(world=world, horizon=horizon, replications=replications, delta=delta, seed=seed)
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
        as_json(
            [
                {**asdict(one), "verdict": one.verdict, "as_expected": one.as_expected}
                for one in findings
            ]
        )
    else:
        _show(findings)
        out().print(f"\n{page}", soft_wrap=True, markup=False)
    if not all(one.as_expected for one in findings):
        raise typer.Exit(1)


def _show(findings: list[Finding]) -> None:
    table = Table("", "claim", "label", "evidence", show_lines=True)
    for one in findings:
        failed = not one.expected and one.as_expected
        good = failed or one.verdict == "holds"
        colour = "bold red" if not one.as_expected else "green" if good else "yellow"
        said = f"[{colour}]{one.verdict}[/]" + ("\n[dim]as it must be[/]" if failed else "")
        begins = f"\n[dim]{one.begins}[/]" if one.begins else ""
        table.add_row(
            said,
            f"[bold]{one.name}[/]\n{escape(one.claim)}{begins}",
            f"{one.label}\n[dim]{one.status}[/]",
            escape(one.evidence),
        )
    out().print(table)
