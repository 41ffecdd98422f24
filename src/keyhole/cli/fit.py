"""`keyhole fit`: a bandit from Parquet files of past decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import Progress
from rich.table import Table

from keyhole.cli.cluster import Scheduler, Workers, executor_of
from keyhole.cli.console import as_json, clean, err, out
from keyhole.cli.data import Json
from keyhole.errors import InvalidValue

EXAMPLES = """
Examples:

[bold]keyhole fit decisions.parquet[/]   the log of a bandit, by Log.to_parquet

[bold]keyhole fit 'history/*.parquet' --arm A --arm B --observation age --observation dose[/]

[bold]keyhole fit history --arm A --arm B --scheduler tcp://10.0.0.1:8786[/]   on a Dask cluster

Then, in a program: bandit = kh.Bandit.load("bandit.npz")
"""


@clean
def fit(
    files: Annotated[list[str], typer.Argument(help="Parquet files: paths, folders or patterns.")],
    policy: Annotated[
        str, typer.Option(help="Policy of the bandit, such as thompson:v=2.")
    ] = "thompson",
    arm: Annotated[
        list[str] | None,
        typer.Option(
            help="Name of an arm, one option for each; numbers if all are.  "
            "\\[default: those of a log]"
        ),
    ] = None,
    observation: Annotated[
        list[str] | None,
        typer.Option(
            help="Column of an observation's lists; or of its numbers, one option for each.  "
            "\\[default: observation]"
        ),
    ] = None,
    arm_column: Annotated[str, typer.Option(help="Column of arms.")] = "arm",
    reward_column: Annotated[str, typer.Option(help="Column of rewards.")] = "reward",
    intercept: Annotated[
        bool, typer.Option("--intercept", help="Fit a constant for each arm.")
    ] = False,
    fill: Annotated[
        str | None,
        typer.Option(help="What becomes of missing numbers: zero or drop.  \\[default: an error]"),
    ] = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    out_file: Annotated[Path, typer.Option("--out", help="File of the bandit.")] = Path(
        "bandit.npz"
    ),
    json: Json = False,
) -> None:
    """Fit a bandit from rows of an arm, an observation and a reward, and save it.

    The result is the same, to the bit, on any number of threads or workers. Rows whose reward is
    null are left out.
    """
    import keyhole as kh
    from keyhole.cli import recipes

    if not out_file.resolve().parent.is_dir():
        raise InvalidValue(
            f"{out_file} cannot be written: create the folder {out_file.resolve().parent} first"
        )
    learner = kh.Learner(recipes.policy_of(policy), intercept=intercept, missing=fill)  # type: ignore[arg-type]
    columns: dict[str, Any] = {"arm": arm_column, "reward": reward_column}
    if observation is not None:
        columns["observation"] = observation[0] if len(observation) == 1 else observation
    with executor_of(scheduler, workers) as executor, _bar() as progress:
        bandit = kh.fit(
            files,
            learner,
            arms=None if arm is None else _names(arm),
            columns=columns,
            executor=executor,
            workers=workers,
            progress=progress,
        )
    bandit.save(out_file)
    if json:
        as_json({"dim": bandit.dim, "counts": bandit.counts, "out": str(out_file)})
        return
    out().print(repr(bandit), soft_wrap=True, markup=False)
    table = Table()
    table.add_column("arm")
    table.add_column("rewards", justify="right")
    for name, count in bandit.counts.items():
        table.add_row(str(name), f"{count:,}")
    out().print(table)
    err().print(f"wrote {out_file}", soft_wrap=True)


def _names(texts: list[str]) -> list[str] | list[int]:
    """Return names of arms as whole numbers, if all of them are."""
    are_numbers = all(text.isdecimal() and str(int(text)) == text for text in texts)
    return [int(text) for text in texts] if are_numbers else texts


@contextmanager
def _bar() -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar, on a terminal."""
    from keyhole.lab.simulation import columns

    console = err()
    hidden = not console.is_terminal
    with Progress(*columns(), console=console, transient=True, disable=hidden) as progress:
        task = progress.add_task("adding up rows", total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
