"""`make torture`: the fault tests at full length; each prints one line.

python -m tests.service.torture [kills power errors machine soak http fuzz] [--minutes 60]
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.service.http.fuzzing import fuzz as fuzzed
from tests.service.http.serving import threaded
from tests.service.http.test_fuzzing import prepare
from tests.service.injecting import KINDS, calls, inject_all
from tests.service.killing import survive
from tests.service.killing_http import survive as survive_http
from tests.service.losing import losses
from tests.service.soaking import soak

# Kills of one folder: the whole log is verified after each, so that it must not grow too long.
PER_FOLDER = 25


def kills(given: argparse.Namespace) -> str:
    """Kill a process under load."""
    acknowledged = unanswered = 0
    for first in range(0, given.kills, PER_FOLDER):
        with tempfile.TemporaryDirectory() as folder:
            n = min(PER_FOLDER, given.kills - first)
            history = survive(folder, n, seed=given.seed + first, longest=0.3)
            acknowledged += sum("refused" not in (answer or {}) for _, answer in history)
            unanswered += sum(answer is None for _, answer in history)
    assert not unanswered
    return f"{given.kills} kills -9, {acknowledged} acknowledged requests, none lost or changed"


def power(given: argparse.Namespace) -> str:
    """Lose power."""
    lost, acknowledged = losses(given.losses, "FULL", given.seed)
    runs = max(20, given.losses // 20)
    control, _ = losses(runs, "OFF", given.seed)
    assert lost == 0
    assert control >= runs / 2, "nine in ten lose something"
    return (
        f"{given.losses} power losses, {acknowledged} acknowledged requests, none lost; without "
        f"syncs {control} of {runs} lost something"
    )


def errors(given: argparse.Namespace) -> str:
    """Have every call of the file system fail."""
    failed = inject_all(given.step)
    listed = ", ".join(f"{name} {n}" for name, n in sorted(failed.items()))
    return f"{calls()} calls x {len(KINDS)} kinds of error, none lost anything: {listed}"


def machine(given: argparse.Namespace) -> str:
    """Try clients in any order."""
    # In a process of its own: pytest warns of what was imported before it, which is an error.
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    subprocess.run(
        [*command, "tests/service/test_machine.py"],
        env={**os.environ, "KEYHOLE_EXAMPLES": str(given.examples)},
        check=True,
    )
    return f"{given.examples} histories of up to 48 steps agree with the contract"


def soaked(given: argparse.Namespace) -> str:
    """Load a service at full rate."""
    with tempfile.TemporaryDirectory() as folder:
        found = soak(folder, 60.0 * given.minutes)
    grown = found.end - found.start
    # What a heap may wander by, and not a leak: 1 MB is 10 bytes for each of 100,000 requests.
    assert grown < max(4.0, 0.02 * found.start), f"memory has grown by {grown:.1f} MB: {found}"
    assert found.wal < 64.0, f"the write-ahead log has grown: {found}"
    return (
        f"{given.minutes:g} minutes at {found.rate:.0f} requests/s: memory {found.start:.1f} to "
        f"{found.end:.1f} MB, log {found.wal:.1f} MB at most, {found.bytes_per_request:.0f} bytes "
        "per request"
    )


def http(given: argparse.Namespace) -> str:
    """Kill a server that answers over HTTP."""
    with tempfile.TemporaryDirectory() as folder:
        n = survive_http(folder, max(3, given.kills // 20), given.seed)
    return f"{max(3, given.kills // 20)} kills -9 over HTTP, {n} acknowledged requests, none lost"


def fuzz(given: argparse.Namespace) -> str:
    """Send what schemathesis makes up to every route."""
    with tempfile.TemporaryDirectory() as folder, threaded(Path(folder) / "data") as url:
        prepare(url)
        found: dict[int, int] = {}
        first = given.seed
        while sum(found.values()) < given.requests:
            for (_, status), n in fuzzed(url, examples=40, first=first).items():
                found[status] = found.get(status, 0) + n
            first += 1
    assert not [status for status in found if status >= 500]
    counts = dict(sorted(found.items()))
    return f"{sum(found.values())} requests by schemathesis, none failed: {counts}"


PARTS: dict[str, Callable[[argparse.Namespace], str]] = {
    "kills": kills,
    "power": power,
    "errors": errors,
    "machine": machine,
    "http": http,
    "fuzz": fuzz,
    "soak": soaked,
}


def main(arguments: list[str]) -> int:
    """Run the parts that were asked for; return 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    for name, default in (("kills", 1000), ("losses", 2000), ("step", 1), ("examples", 2000)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    failed = 0
    for name in given.parts or PARTS:
        started = time.monotonic()
        try:
            result = PARTS[name](given)
        except (AssertionError, OSError, ValueError, subprocess.CalledProcessError) as reason:
            result, failed = f"FAILED: {type(reason).__name__}: {reason}", 1
        print(f"{name:8} {result} ({time.monotonic() - started:.0f} s)", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
