"""The working tree beside an earlier commit, in one run.

    python -m benchmarks.before REF [--only PATTERN ...] [--seconds S] [--visits N] [--json FILE]

Both are installed into environments of their own under `.before` and measured in turns: one process
a measurement, nothing beside it, BLAS on one thread, the best of several visits.
"""

from __future__ import annotations

import argparse
import datetime as dt
import itertools
import json
import os
import platform
import subprocess
import tempfile
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.before import installs, table
from benchmarks.before.measures import Measure, rates, sized, starts
from benchmarks.peers import work
from benchmarks.peers.process import ask

console = Console(stderr=True, highlight=False)


@dataclass(frozen=True)
class Version:
    """An installed version."""

    tree: str
    python: Path
    cache: Path  # where versions with Numba keep what was compiled

    @classmethod
    def installed(cls, folder: str, tree: str) -> Version:
        """Install it, or take what is there."""
        console.print(f"installing {tree[:12]} into {installs.HOME.name}/{folder}")
        try:
            python = installs.installed(folder, tree)
        except subprocess.CalledProcessError as error:
            raise SystemExit(f"{tree} could not be installed: {error.stderr}") from None
        return cls(tree, python, installs.HOME / folder / "numba")

    def answer(self, measure: Measure, cap: float) -> table.Answer:
        """Measure once."""
        with tempfile.TemporaryDirectory() as empty:
            env = {"NUMBA_CACHE_DIR": empty if measure.cold else str(self.cache)}
            found = ask(self.python, measure.module, *measure.arguments, cap=cap, env=env)
        return found if "failed" in found else {name: found[name] for name in measure.fields}


def measure_all(versions: dict[str, Version], options: argparse.Namespace) -> dict[str, Any]:
    """Measure in turns; the best of each version's visits."""
    found: dict[str, dict[str, table.Answer]] = {}
    with tempfile.TemporaryDirectory() as folder:
        every = rates(options.seconds, lambda cell: Path(folder, f"{sized(cell)}.npz"))
        wanted = [
            measure
            for measure in starts() + every
            if any(fnmatch(measure.name, pattern) for pattern in options.only)
        ]
        for n, d in {measure.stream for measure in wanted if measure.stream}:
            made = work.stream(n, d, min(50_000, 20_000_000 // n))
            work.save(Path(folder), sized((n, d)), {key: made[key] for key in ("y", "rewards")})
        for measure, version in itertools.product(starts(), versions.values()):
            if not measure.cold:  # once before it counts, for all that only a first time does
                version.answer(measure, options.cap)
        for visit, measure in itertools.product(range(options.visits), wanted):
            console.print(f"visit {visit + 1} of {options.visits}: {measure.name}")
            best = found.setdefault(measure.name, {})
            for side in sorted(versions, reverse=visit % 2 == 1):
                answer = versions[side].answer(measure, options.cap)
                best[side] = table.better(best.get(side, answer), answer)
    return found


def main() -> None:
    """Install, measure, print, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ref", help="the commit to compare with")
    only = "names of measurements, such as 'online-read/*' '*/5x20'"
    parser.add_argument("--only", nargs="+", default=["*"], metavar="PATTERN", help=only)
    parser.add_argument("--seconds", type=float, default=1.5, help="of one measurement of a rate")
    parser.add_argument("--visits", type=int, default=3, help="how often each is measured")
    parser.add_argument("--cap", type=float, default=300.0, help="seconds after which one is ended")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write what was found")
    options = parser.parse_args()
    commit = installs.git("rev-parse", "--verify", f"{options.ref}^{{commit}}")
    versions = {
        "before": Version.installed(commit[:12], commit),
        "now": Version.installed("working", installs.working_tree()),
    }
    measures = measure_all(versions, options)
    table.show(measures)
    if options.json:
        found = {
            "date": dt.datetime.now(dt.UTC).date().isoformat(),
            "machine": f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores",
            "python": platform.python_version(),
            "trees": {side: version.tree for side, version in versions.items()},
            "visits": options.visits,
            "seconds": options.seconds,
            "measures": measures,
        }
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
