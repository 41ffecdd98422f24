"""`keyhole verify`, `replay`, `compact` and `export`: the folder of a decision service."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from keyhole.cli.console import as_json, clean, err, out, showing_warnings
from keyhole.cli.data import Json

Folder = Annotated[Path, typer.Argument(help="Folder of a service.", show_default=False)]
Loop = Annotated[str | None, typer.Option(help="Name of the loop; not needed if there is one.")]

VERIFY = """
Example:

[bold]keyhole verify keyhole-data[/]   exit code 1 and the first wrong row, if there is one
"""
REPLAY = """
Example:

[bold]keyhole replay keyhole-data --loop home --until 5000 --to bandit.npz[/]
"""
COMPACT = """
Example:

[bold]keyhole compact keyhole-data[/]   while the service is stopped
"""
EXPORT = """
Examples:

[bold]keyhole export keyhole-data decisions.parquet --loop home[/]

[bold]keyhole evaluate decisions.parquet --policy greedy[/]   what other policies would have earned
"""


@clean
def verify(folder: Folder, json: Json = False) -> None:
    """Recompute every draw, probability and sum of a service from its log.

    Every decision is made again from the rows before it: arm, probability and score must be those
    of its row, to the last digit. The tables of events and rewards must be what the rows say, and
    every snapshot the state at its row. Nothing is written, and the service may be running: rows
    that were written before the command began are verified.
    """
    from keyhole.service import verify as run

    with showing_warnings(), err().status("verifying") as status:
        found = run(folder, lambda loop, seq: status.update(f"{loop}: row {seq:,}"))
    if json:
        as_json([asdict(one) for one in found])
        return
    table = Table("loop", "rows", "decisions", "learned", "snapshots", "sha256 of the state")
    for one in found:
        numbers = (one.rows, one.decisions, one.learned, one.snapshots)
        table.add_row(one.loop, *(f"{number:,}" for number in numbers), one.sha256[:16])
    out().print(table)
    out().print("every decision, sum and index follows from the log", markup=False)


@clean
def replay(
    folder: Folder,
    to: Annotated[Path, typer.Option(help="File for the bandit, which Bandit.load reads.")],
    loop: Loop = None,
    until: Annotated[
        int | None, typer.Option(help="Number of the last row.  \\[default: all]", min=1)
    ] = None,
) -> None:
    """Write the bandit that follows from the rows of a loop, each decision made again."""
    from keyhole.service import replay as run

    with showing_warnings(), err().status("replaying"):
        bandit = run(folder, loop=loop, until=until)
        bandit.save(to)
    out().print(f"{bandit}\nwrote {to}", markup=False, soft_wrap=True)


@clean
def compact(
    folder: Folder,
    keep: Annotated[
        float,
        typer.Option(
            help="Days for which open events without a due time stay in the database.", min=0.0
        ),
    ] = 30.0,
    json: Json = False,
) -> None:
    """Write a snapshot of every loop, and move the rows before it into archive/ of the folder.

    The service must be stopped. Archived rows can still be verified and exported.
    """
    from keyhole.service import compact as run

    with showing_warnings(), err().status("compacting"):
        found = run(folder, keep=86_400.0 * keep)
    if json:
        as_json([asdict(one) for one in found])
        return
    for one in found:
        line = f"{one.loop}: {one.rows:,} rows archived, {one.kept:,} stay in the database"
        out().print(line, markup=False)


@clean
def export(
    folder: Folder,
    target: Annotated[Path, typer.Argument(help="File that ends in .parquet or .jsonl.")],
    loop: Loop = None,
) -> None:
    """Write the log of a loop to a file, for `keyhole evaluate`, pandas, polars or DuckDB."""
    from keyhole.service import export as run

    with showing_warnings(), err().status("exporting"):
        n = run(folder, target, loop=loop)
    out().print(f"wrote {n:,} rows to {target}", markup=False, soft_wrap=True)
