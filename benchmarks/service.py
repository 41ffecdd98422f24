"""Measure the decision service, as ratios within one run.

    python -m benchmarks.service                 # all rows, a few minutes, alone
    python -m benchmarks.service --seconds 2 --rounds 1
    python -m benchmarks.service --parts start --events 1_000_000
    python -m benchmarks.service --parts estimate --rows 1_000_000 --log 50_000

The load is that of wrk, from a process of its own, with an id for every event. Servers run with the
settings of `keyhole serve`: one process, uvicorn with httptools and uvloop. Beside a decision of 5
arms in dim 10 stand an echo of the same body by Starlette and msgspec, and a bare loop that commits
the same rows; beside batches, Vowpal Wabbit's daemon. Rows of a table are medians over rounds in
which all take turns. How a loop starts, and what an estimate from its log is worth, is measured in
process: `benchmarks.starting` and `benchmarks.propensities` say how.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import daemon, propensities, starting
from benchmarks.serving import LOOP, load, server
from keyhole.service import DecideRequest, Service
from keyhole.service.store import Store, Unit

CONTEXT: list[float | None] = [0.1 * k for k in range(1, 11)]
BATCH = 100


# -- a bare loop that commits the same rows --------------------------------------------------------


def recorded(n: int) -> list[Unit]:
    """Return what n decisions write."""
    units: list[Unit] = []
    commit = Store.commit

    def kept(store: Store, given: Sequence[Unit]) -> None:
        units.extend(given)
        commit(store, given)

    Store.commit = kept  # type: ignore[assignment, method-assign]
    try:
        with tempfile.TemporaryDirectory() as folder, Service(folder, synchronous="OFF") as made:
            made.create("home", LOOP)
            for k in range(n):
                made.decide("home", DecideRequest(context=CONTEXT, event_id=f"e-{k}"))
    finally:
        Store.commit = commit  # type: ignore[method-assign]
    return units[1 : n + 1]


def bare_commits(units: list[Unit], size: int) -> float:
    """Return how many units a loop commits per second, in transactions of a size.

    Parameters
    ----------
    units : list of Unit
        The units.
    size : int
        Units of a transaction.
    """
    with tempfile.TemporaryDirectory() as folder:
        store = Store(str(Path(folder) / "bare.db"))
        start = time.perf_counter()
        for k in range(0, len(units), size):
            store.commit(units[k : k + size])
        seconds = time.perf_counter() - start
        store.close()
    return len(units) / seconds


def single_commit(units: list[Unit]) -> float:
    """Return the median time of a commit of one unit, in seconds."""
    times = []
    with tempfile.TemporaryDirectory() as folder:
        store = Store(str(Path(folder) / "bare.db"))
        for unit in units:
            start = time.perf_counter()
            store.commit([unit])
            times.append(time.perf_counter() - start)
        store.close()
    return statistics.median(times)


# -- the table ------------------------------------------------------------------------------------


def requests(seconds: float, rounds: int) -> list[dict[str, str]]:
    """Return the rows of single requests.

    Parameters
    ----------
    seconds : float
        Seconds of each load.
    rounds : int
        Rounds in which all take turns.
    """
    units = recorded(4_000)
    found: list[dict[str, float]] = []
    with server("echo") as echo, server("OFF") as off, server("FULL") as full:
        for _ in range(rounds):
            base, single = load(echo, 64, seconds), load(echo, 1, seconds)
            fast, durable = load(off, 64, seconds), load(full, 64, seconds)
            alone = load(full, 1, seconds)
            best = max(bare_commits(units, size) for size in (64, 256, 1_000))
            commit = single_commit(units[:500])
            found.append(
                {
                    "echo": base["rate"],
                    "fast": fast["rate"],
                    "fast ratio": fast["rate"] / base["rate"],
                    "fast p99": fast["p99"] / base["p99"],
                    "durable": durable["rate"],
                    "durable beside": min(best, base["rate"]),
                    "durable ratio": durable["rate"] / min(best, base["rate"]),
                    "alone": alone["p50"],
                    "alone beside": commit + single["p50"],
                    "alone ratio": alone["p50"] / (commit + single["p50"]),
                }
            )
    at = medians(found)
    return [
        _row("decide, 64 connections, not durable", rate(at["fast"]), "echo", rate(at["echo"]),
             at["fast ratio"], ">= 0.7"),
        _row("its p99", "", "that of the echo", "", at["fast p99"], "<= 1.5"),
        _row("decide, 64 connections, durable", rate(at["durable"]), "bare commits, or echo",
             rate(at["durable beside"]), at["durable ratio"], ">= 0.8"),
        _row("decide, one connection, durable, p50", micro(at["alone"]), "a COMMIT and an echo",
             micro(at["alone beside"]), at["alone ratio"], "<= 1.3"),
    ]  # fmt: skip


def batches(seconds: float, rounds: int) -> list[dict[str, str]]:
    """Return the rows of batches, beside Vowpal Wabbit's daemon, which logs nothing.

    Parameters
    ----------
    seconds : float
        Seconds of each load.
    rounds : int
        Rounds in which all take turns.
    """
    name = f"decide:batch of {BATCH}, durable"
    is_there = daemon.command() is not None
    found: list[dict[str, float]] = []
    with server("FULL") as full:
        for _ in range(rounds):
            ours = max(load(full, n, seconds, BATCH)["rate"] * BATCH for n in (1, 4, 8))
            one, many = daemon.best_rates(seconds) if is_there else (ours, ours)
            found.append(
                {"batch": ours, "one": one, "many": many, "1": ours / one, "n": ours / many}
            )
    at = medians(found)
    if not is_there:
        print(daemon.MISSING, file=sys.stderr)
        return [_row(name, rate(at["batch"]), "Vowpal Wabbit", "not found", None, ">= 1")]
    ours_, one_, many_ = rate(at["batch"]), rate(at["one"]), rate(at["many"])
    processes = f"Vowpal Wabbit, {daemon.CHILDREN} processes"
    return [
        _row(name, ours_, "Vowpal Wabbit, one process", one_, at["1"], ">= 1"),
        _row("the same", ours_, processes, many_, at["n"], ""),
    ]


def starts(events: int, rounds: int) -> list[dict[str, str]]:
    """Return the rows of a start.

    Parameters
    ----------
    events : int
        Events of the log.
    rounds : int
        Rounds in which replay and learning take turns.
    """
    at = starting.measure(events, rounds)
    name = f"first decision, {events:,} events and a snapshot"
    return [
        _row(f"replay of {events:,} events", rate(at["replay"]), "Bandit.learn in process",
             rate(at["learn"]), at["ratio"], ">= 0.5"),
        _row(name, f"{at['answer']:.3f} s", "", "", None, "<= 1 s"),
    ]  # fmt: skip


def estimates(total: int, n: int) -> list[dict[str, str]]:
    """Return the rows of estimates from logs.

    Parameters
    ----------
    total : int
        Rounds of all logs.
    n : int
        Rounds of each.
    """
    at = propensities.measure(total, n)
    name = f"RMSE of IPS, {n:,} rounds"
    return [
        _row(name, f"{at.exact:.4f}", "propensities of 8 draws", f"{at.drawn:.4f}", at.ratio,
             "<= 0.1"),
        _row("standard error of the ratio", "", "", "", at.error, ""),
        _row("rounds at which it is 0.1", f"{at.rounds:,.0f}", "bias of 8 draws",
             f"{at.bias:.4f}", None, ""),
    ]  # fmt: skip


def medians(found: list[dict[str, float]]) -> dict[str, float]:
    """Return the median of each measure over rounds."""
    return {name: statistics.median(one[name] for one in found) for name in found[0]}


def rate(value: float) -> str:
    """Return a rate per second as text."""
    return f"{value:,.0f}/s"


def micro(value: float) -> str:
    """Return seconds as microseconds."""
    return f"{1e6 * value:,.0f} us"


def _row(
    name: str, ours: str, beside: str, theirs: str, ratio: float | None, target: str
) -> dict[str, str]:
    return {
        "measure": name,
        "service": ours,
        "beside": beside,
        "theirs": theirs,
        "ratio": "" if ratio is None else f"{ratio:.2f}",
        "target": target,
    }


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts = ["requests", "batches", "start", "estimate"]
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each load")
    parser.add_argument("--rounds", type=int, default=3, help="in which all take turns")
    parser.add_argument("--events", type=int, default=100_000, help="of the log of a start")
    parser.add_argument("--rows", type=int, default=200_000, help="decisions of all logs")
    parser.add_argument("--log", type=int, default=20_000, help="decisions of each log")
    given = parser.parse_args()
    if shutil.which("wrk") is None and {"requests", "batches"} & set(given.parts):
        sys.exit("wrk must be installed, such as by 'apt install wrk'")
    work = {
        "requests": lambda: requests(given.seconds, given.rounds),
        "batches": lambda: batches(given.seconds, given.rounds),
        "start": lambda: starts(given.events, given.rounds),
        "estimate": lambda: estimates(given.rows, given.log),
    }
    table = [row for part in given.parts for row in work[part]()]
    widths = {key: max(len(key), *(len(row[key]) for row in table)) for key in table[0]}
    for row in [dict(zip(widths, widths, strict=True)), *table]:
        print("  ".join(row[key].ljust(width) for key, width in widths.items()).rstrip())


if __name__ == "__main__":
    main()
