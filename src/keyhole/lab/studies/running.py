"""Functions that run studies: each cell once, and a figure, data and a manifest for each study."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import matplotlib as mpl
import xarray as xr
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from keyhole.errors import FileError
from keyhole.files import replacing
from keyhole.lab.evidence import Verdict
from keyhole.lab.simulation import SOURCES, versions
from keyhole.lab.studies.study import Cell, Settings, Study
from keyhole.lab.summary import summarize

FILES = ("data.nc", "data.csv", "figure.png", "figure.svg", "figure.pdf")
# No dates and no random names, so that equal figures are equal files. Fonts that journals accept.
STYLE: dict[Any, Any] = {"svg.hashsalt": "keyhole", "pdf.fonttype": 42, "font.size": 9}
DPI = 200
# The format of manifests; 2 has outcomes, rules and choices.
FORMAT = 2


@dataclass(frozen=True)
class Job:
    """A study with its settings and cells.

    Parameters
    ----------
    study : Study
        The study.
    settings : Settings
        The settings of the run.
    cells : list of Cell
        The cells that the study needs.
    """

    study: Study
    settings: Settings
    cells: list[Cell]

    @property
    def rounds(self) -> int:
        """The total number of rounds."""
        return sum(cell.horizon * cell.replications for cell in self.cells)

    @property
    def key(self) -> str:
        """A digest that identifies the result, and the sources that make it."""
        cells = [(cell_key(cell), cell.replications) for cell in self.cells]
        return _digest([SOURCES, self.study.name, self.study.rule, *cells])


def run(
    job: Job,
    out: Path,
    *,
    executor: Executor | None = None,
    workers: int | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> dict[str, Any]:
    """Run a study, unless it is finished in its folder below `out`, and return its manifest.

    A study that is there with the same settings is not run again. Neither is a replication of a
    cell, for whichever study it was run: all of them stay in the folder `cells`. Results of other
    sources of Keyhole are not used; `outdated` reports them.

    Parameters
    ----------
    job : Job
        The study with its settings and cells.
    out : Path
        The folder of all studies.
    executor : Executor, optional
        Passed to `simulate`.
    workers : int, optional
        Passed to `simulate`.
    progress : callable, optional
        Receives the number of finished rounds.

    Returns
    -------
    dict
        The manifest.

    Raises
    ------
    FileError
        If the folder of the study is a file.
    """
    folder = out / job.study.name
    if folder.exists() and not folder.is_dir():
        raise FileError(f"{folder} must be a folder for the study {job.study.name}, got a file")
    known = manifest(folder)
    if known is not None and known["key"] == job.key and _complete(folder):
        progress(job.rounds)
        return known
    start = time.perf_counter()
    runs = [_simulated(cell, out, executor, workers, progress) for cell in job.cells]
    simulated = time.perf_counter()
    table = tabled(job.cells, runs)
    folder.mkdir(parents=True, exist_ok=True)
    # A folder without a manifest is unfinished, whatever files an interruption leaves in it.
    (folder / "manifest.json").unlink(missing_ok=True)
    packed = {name: {"zlib": True, "complevel": 2} for name in table.data_vars}
    table.to_netcdf(folder / "data.nc", engine="h5netcdf", encoding=packed)
    summarized = summarize(job.study.curves(table))
    summary = (
        (summarized if job.study.worst else summarized.drop_vars("worst"))
        .to_dataframe()
        .reset_index()
    )
    summary.to_csv(folder / "data.csv", index=False, float_format="%.6g")
    with mpl.rc_context(STYLE):
        _draw(job.study.figure(table), folder)
    verdicts = job.study.verdicts(table)
    seconds = {"simulating": simulated - start, "finishing": time.perf_counter() - simulated}
    made = described(job, verdicts, seconds)
    with replacing(folder / "manifest.json") as file:
        file.write(json.dumps(made, indent=1).encode())
    return made


def tabled(cells: list[Cell], runs: list[xr.Dataset]) -> xr.Dataset:
    """Return all cells in one table, over `cell`.

    Arms and variables that a cell does not have are missing there.

    Parameters
    ----------
    cells : list of Cell
        The cells.
    runs : list of Dataset
        The result of `simulate` for each cell.

    Returns
    -------
    Dataset
        The table.
    """
    names = [str(cell) for cell in cells]
    table = xr.concat(
        runs,
        "cell",
        join="outer",
        data_vars="all",
        coords="minimal",
        compat="equals",
        combine_attrs="drop_conflicts",
    )
    places = {name: ("cell", [cell.where[name] for cell in cells]) for name in cells[0].where}
    return table.assign_coords({"cell": names, **places})


def described(job: Job, verdicts: list[Verdict], seconds: dict[str, float]) -> dict[str, Any]:
    """Return the manifest of a finished study, in plain types.

    Parameters
    ----------
    job : Job
        The study with its settings and cells.
    verdicts : list of Verdict
        The verdicts of the study.
    seconds : dict of str to float
        The duration of each stage.

    Returns
    -------
    dict
        The manifest.
    """
    first = job.cells[0]
    return {
        "study": job.study.name,
        "title": job.study.title,
        "claim": job.study.claim,
        "setting": job.study.described(job.settings),
        "stand_ins": job.study.stand_ins(job.settings),
        "notes": job.study.notes,
        "rule": job.study.rule,
        "choices": [asdict(choice) for choice in job.study.choices],
        "verdicts": [asdict(verdict) for verdict in verdicts],
        "horizon": first.horizon,
        "replications": first.replications,
        "seed": first.seed,
        "quick": job.settings.quick,
        "cells": [
            {
                **cell.where,
                "world": cell.world.describe(),
                "policies": {name: repr(policy) for name, policy in cell.policies.items()},
            }
            for cell in job.cells
        ],
        "command": command(job),
        "seconds": {name: round(value, 2) for name, value in seconds.items()},
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"system": platform.platform(), "cores": os.cpu_count()},
        "versions": versions(),
        "format": FORMAT,
        "key": job.key,
    }


def command(job: Job) -> str:
    """Return the command line that repeats the study."""
    given = job.settings
    flags = {"--horizon": given.horizon, "--replications": given.replications, "--seed": given.seed}
    words = [f"{name} {value}" for name, value in flags.items() if value is not None]
    if job.study.data and given.data_dir is not None:
        words.append("--data-dir FOLDER")
    return " ".join(
        ["keyhole reproduce", job.study.name, *(["--quick"] if given.quick else []), *words]
    )


def manifest(folder: Path) -> dict[str, Any] | None:
    """Return the manifest in a study's folder, or None if there is no complete one."""
    try:
        known = json.loads((folder / "manifest.json").read_text())
    except (FileNotFoundError, ValueError):
        return None
    # A manifest of another format, such as that of an earlier version, is made again.
    whole = isinstance(known, dict) and known.get("format") == FORMAT and "key" in known
    return known if whole else None


def outdated(job: Job, out: Path) -> str | None:
    """Return the reason that a study is simulated again though its cells were simulated before.

    Parameters
    ----------
    job : Job
        The study with its settings and cells.
    out : Path
        The folder of all studies.

    Returns
    -------
    str or None
        The reason, or None if no cell has results of other sources alone.
    """
    for cell in job.cells:
        if cell_folder(cell, out).exists():
            continue
        for other in sorted((out / "cells").glob(f"{cell_key(cell)}-*")):
            made_by = other.name.removeprefix(f"{cell_key(cell)}-")
            return (
                f"{job.study.name} is simulated again: what is there was made by other sources of "
                f"Keyhole ({made_by}, and these are {SOURCES})"
            )
    return None


def cell_key(cell: Cell) -> str:
    """Return a digest that identifies a cell, for any number of replications and any sources."""
    return _digest([cell.identity()])


def cell_folder(cell: Cell, out: Path) -> Path:
    """Return the folder of a cell's replications by the present sources.

    Parameters
    ----------
    cell : Cell
        The cell.
    out : Path
        The folder of all studies.
    """
    return out / "cells" / f"{cell_key(cell)}-{SOURCES}"


def _simulated(
    cell: Cell,
    out: Path,
    executor: Executor | None,
    workers: int | None,
    progress: Callable[[int], None],
) -> xr.Dataset:
    kept = cell_folder(cell, out)

    def once() -> xr.Dataset:
        return cell.results(kept, executor=executor, workers=workers, progress=progress)

    try:
        return once()
    except FileError as reason:
        if isinstance(reason, OSError):  # such as a full disk: the stored files are not damaged
            raise
        # A damaged file only saves a simulation, so the folder is deleted and simulated again.
        shutil.rmtree(kept)
        return once()


def _draw(figure: Figure, folder: Path) -> None:
    """Write the figure in every format, laid out once: each `savefig` would repeat the layout."""
    layout = figure.get_layout_engine()
    if layout is not None:
        layout.execute(figure)
        figure.set_layout_engine("none")
    FigureCanvasSVG(figure).print_svg(folder / "figure.svg", metadata={"Date": None})
    FigureCanvasPdf(figure).print_pdf(folder / "figure.pdf", metadata={"CreationDate": None})
    figure.dpi = DPI
    FigureCanvasAgg(figure).print_png(folder / "figure.png")


def _complete(folder: Path) -> bool:
    return all((folder / file).exists() and (folder / file).stat().st_size for file in FILES)


def _digest(parts: list[Any]) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:20]
