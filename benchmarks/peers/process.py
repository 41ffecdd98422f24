"""One measurement in a process of its own, in some environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
# No measurement takes longer than this, in seconds, unless something hangs.
CAP = 1800.0


def ask(
    python: Path,
    module: str,
    *arguments: str,
    cap: float = CAP,
    env: Mapping[str, str] | None = None,
) -> Any:
    """Run a module of `benchmarks` with BLAS on one thread, and return what it prints.

    Parameters
    ----------
    python : Path
        The interpreter of the environment to measure in.
    module : str
        Its name below `benchmarks`; it prints one line of JSON.
    arguments : str
        Its command line.
    cap : float
        The seconds after which it is ended.
    env : mapping of str to str, optional
        More variables of its environment.

    Returns
    -------
    dict
        The answer, or the reason under "failed".

    """
    # Elsewhere the path is this tree's alone: a Keyhole on it would hide the installed one.
    more = os.environ.get("PYTHONPATH", "") if str(python) == sys.executable else ""
    path = os.pathsep.join(filter(None, (str(ROOT), more)))
    variables = {**os.environ, **ONE_THREAD, "PYTHONPATH": path, **(env or {})}
    command = [str(python), "-m", f"benchmarks.{module}", *arguments]
    try:
        result = subprocess.run(
            command,
            capture_output=True,
            text=True,
            env=variables,
            cwd=ROOT,
            timeout=cap,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"longer than {cap:g} seconds"}
    if result.returncode:
        last = result.stderr.strip().splitlines() or ["no message"]
        return {"failed": last[-1]}
    return json.loads(result.stdout.strip().splitlines()[-1])
