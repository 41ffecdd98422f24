"""What is measured of every version, by public names alone: old versions must have them too."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers import work

Cell = tuple[int, int]
CELLS: list[Cell] = [(2, 10), *work.CELLS, *work.ALONE]
# Without probabilities; with them, never read; read at each decision.
ONLINE = {"online": "keyhole", "online-logged": "keyhole-logged", "online-read": "keyhole-read"}
# What else is measured, and at which sizes; `benchmarks.before.uses` says what each is.
USES: dict[str, list[Cell]] = {
    "among": [(30, 20)],
    "missing": [(5, 20)],
    "choose_many": [(5, 20), (1000, 20)],
    "learn_many": [(5, 20), (1000, 20)],
    "probabilities_of_many": [(5, 20)],
    "choice_probabilities": [(5, 20), (1000, 20)],
    "save": [(5, 20), (1000, 20)],
    "load": [(5, 20), (1000, 20)],
}


@dataclass(frozen=True)
class Measure:
    """A module of `benchmarks` that is run, and what is kept of its answer."""

    name: str
    module: str
    arguments: tuple[str, ...]
    fields: tuple[str, ...] = ("rate",)
    stream: Cell | None = None  # the size of the rounds that it reads from a file
    cold: bool = False  # with nothing compiled before


def starts() -> list[Measure]:
    """Return the measurements of a fresh process."""
    decision = ("decision", "keyhole-read", "keyhole")
    return [
        Measure(f"{name}/{'cold' if cold else 'warm'}", "peers.start", given, fields, cold=cold)
        for name, given, fields in (
            ("first-decision", decision, ("seconds", "memory", "peak")),
            ("first-simulation", ("simulation",), ("seconds", "call")),
        )
        for cold in (True, False)
    ]


def rates(seconds: float, path: Callable[[Cell], Path]) -> list[Measure]:
    """Return the measurements of rates.

    Parameters
    ----------
    seconds : float
        Duration of each measurement, without its start.
    path : callable
        Function from a size to the file of its rounds.
    """
    online = [
        Measure(
            f"{name}/{sized(cell)}",
            "peers.measure",
            (adapter, "keyhole", "speed", str(path(cell)), str(seconds)),
            stream=cell,
        )
        for cell, (name, adapter) in itertools.product(CELLS, ONLINE.items())
    ]
    simulated = [
        Measure(
            f"simulation-{workers}/{sized(cell)}",
            "peers.simulating",
            (*map(str, cell), workers, str(seconds)),
        )
        for cell, workers in itertools.product(work.CELLS, "12")
    ]
    others = [
        Measure(f"{use}/{sized(cell)}", "before.uses", (use, *map(str, cell), str(seconds)))
        for use, cells in USES.items()
        for cell in cells
    ]
    return online + simulated + others


def sized(cell: Cell) -> str:
    """Return the name of a size in tables."""
    return f"{cell[0]}x{cell[1]}"
