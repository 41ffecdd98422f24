"""Keyhole and its peers on the same work, in one run.

    python -m benchmarks.peers [--quick | --again] [--before FILE] [--out docs]

Each library runs in an environment of its own, one process a measurement, nothing else beside it
and every BLAS on one thread. Writes a page and a plot; what cannot be installed is said there.
"""

from __future__ import annotations

import argparse
import datetime as dt
import itertools
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import keyhole as kh
from benchmarks.peers import limits, page, records, simulating, sweep, work
from benchmarks.peers.environments import PEERS
from benchmarks.peers.process import ROOT, ask
from benchmarks.timing import best

OURS = ("keyhole", "keyhole-logged", "keyhole-read")
# The machine has faster and slower quarters of an hour: everybody is measured in more than one.
VISITS = 2
STARTS = 5
console = Console(stderr=True, highlight=False)


def rate(answer: dict[str, float]) -> float:
    """Return the rounds per second, or -1 if they were not measured."""
    return answer.get("rate", -1.0)


def started(python: Path, *task: str) -> dict[str, float]:
    """Return the answer of the fastest of a few fresh processes."""
    answers = [ask(python, "peers.start", *task) for _ in range(STARTS)]
    return min(answers, key=lambda answer: answer.get("seconds", np.inf))


def measure(quick: bool) -> dict[str, Any]:
    """Run all measurements and return their results."""
    budget, start = 0.3 if quick else 1.5, time.monotonic()
    found: dict[str, Any] = {
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "machine": f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "versions": {"keyhole": kh.__version__},
        "visits": VISITS,
        "missing": {},
        "speed": {},
        "regret": {},
        "exact": {},
        "simulation": {},
        "start": {},
    }
    installed = [(name, Path(sys.executable), "keyhole") for name in OURS]
    for peer in PEERS:
        console.print(f"installing {peer.name}")
        try:
            found["versions"][peer.name] = peer.install()
        except subprocess.CalledProcessError as error:
            found["missing"][peer.name] = (error.stderr or str(error)).strip().splitlines()[-1]
            continue
        installed += [(adapter, peer.python, peer.module) for adapter in peer.adapters]
    not_thompson = {a for peer in PEERS if not peer.thompson for a in peer.adapters}

    with tempfile.TemporaryDirectory() as folder:
        given, exact = work.histories()
        history = work.save(Path(folder), "history", given)
        found["exact_probabilities"] = [list(p) for p in exact]
        for adapter, python, module in installed:
            if adapter not in not_thompson:
                console.print(f"exactness: {adapter}")
                found["exact"][adapter] = ask(
                    python, "peers.measure", adapter, module, "exact", str(history)
                )
        for visit, (n_arms, dim) in itertools.product(range(VISITS), work.CELLS + work.ALONE):
            cell, rounds = f"{n_arms}x{dim}", min(50_000, 20_000_000 // n_arms)
            source = work.save(Path(folder), cell, work.stream(n_arms, dim, rounds))
            for adapter, python, module in installed:
                if adapter in OURS or (n_arms, dim) in work.CELLS:
                    console.print(f"{cell}: {adapter}, visit {visit + 1} of {VISITS}")
                    task = (adapter, module, "speed", str(source), str(budget))
                    answer = ask(python, "peers.measure", *task)
                    cells = found["speed"].setdefault(adapter, {})
                    cells[cell] = max(cells.get(cell, answer), answer, key=rate)
            source.unlink()
            if (n_arms, dim) in work.CELLS:
                console.print(f"{cell}: simulation, visit {visit + 1} of {VISITS}")
                for workers in ("1", "2"):
                    sizes = (str(n_arms), str(dim), workers, str(budget))
                    answer = ask(Path(sys.executable), "peers.simulating", *sizes)
                    rates = found["simulation"].setdefault(cell, {})
                    rates[workers] = max(rates.get(workers, -1.0), rate(answer))
        for adapter, python, module in installed:
            console.print(f"the first decision: {adapter}")
            found["start"][adapter] = started(python, "decision", adapter, module)
        found["first_simulation"] = started(Path(sys.executable), "simulation")
        made = work.replications()
        if quick:
            made = {key: value[:4] for key, value in made.items()}
        source = work.save(Path(folder), "replications", made)
        for adapter, python, module in installed:
            console.print(f"regret: {adapter}")
            found["regret"][adapter] = ask(
                python, "peers.measure", adapter, module, "regret", str(source)
            )

    found["records"] = measured_records(10.0 * budget)

    console.print("end to end")
    world = work.world(*work.REGRET_CELL)
    replications = len(made["y"])
    found["end_to_end"] = best(
        lambda: simulating.simulate(world, work.HORIZON, replications, workers=2), 5
    )
    console.print("limits")
    rates = limits.machine()
    found["rates"] = rates._asdict()
    found["limits"] = {}
    for n_arms, dim in work.CELLS:
        world = work.world(n_arms, dim)
        products = limits.products_of(world, work.HORIZON)
        least = limits.floor(world, rates, products)
        found["limits"][f"{n_arms}x{dim}"] = {
            **least._asdict(),
            "least": least.total,
            "products": products,
        }
    console.print("sweeps")
    found["sweeps"] = sweep.exponents()
    found["many"] = limits.many_arms()
    found["minutes"] = (time.monotonic() - start) / 60.0
    return found


def measured_records(seconds: float) -> dict[str, Any]:
    """Return what `benchmarks.peers.records` measures of Keyhole and of Vowpal Wabbit."""
    peer = next(peer for peer in PEERS if peer.name == "vowpalwabbit")
    peer.install()
    answers = {}
    for name in records.ADAPTERS:
        console.print(f"records: {name}")
        python = peer.python if name.startswith(peer.name) else Path(sys.executable)
        answers[name] = ask(python, "peers.records", name, str(seconds))
    return answers


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a short look, and noisy")
    parser.add_argument("--out", type=Path, default=ROOT / "docs")
    only = "measure the records alone, and keep the rest of the benchmarks.json that is in OUT"
    parser.add_argument("--records", action="store_true", help=only)
    again = "write the page anew from the benchmarks.json that is in OUT"
    parser.add_argument("--again", action="store_true", help=again)
    before = "what `benchmarks.before --json` wrote, to be shown on the page"
    parser.add_argument("--before", type=Path, metavar="FILE", help=before)
    options = parser.parse_args()
    data = options.out / "benchmarks.json"
    keeps = options.again or options.records
    if keeps and not data.exists():
        parser.error(f"there is no {data} of an earlier run")
    found = json.loads(data.read_text()) if keeps else measure(options.quick)
    if options.records:
        found["records"] = measured_records(10.0)
    if options.before:
        found["before"] = json.loads(options.before.read_text())
    options.out.mkdir(parents=True, exist_ok=True)
    data.write_text(json.dumps(found, indent=1) + "\n")
    page.write(found, options.out)
    console.print(f"{options.out / 'benchmarks.md'}")


if __name__ == "__main__":
    main()
