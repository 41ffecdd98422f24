"""`endings`: the regret and the precisions with which the runs of a policy end."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from keyhole import checks
from keyhole.core import Floats, Policy, Seed
from keyhole.lab.simulation.plan import Plan
from keyhole.lab.simulation.progress import bar
from keyhole.lab.simulation.replication import Tick, Workspace, replicate
from keyhole.lab.simulation.runs import CompiledRun
from keyhole.lab.worlds import World


class Endings(NamedTuple):
    """Regret and precision at the end of runs.

    Parameters
    ----------
    regret : ndarray of shape (runs,)
        The regret of each run.
    precision : ndarray of shape (runs, n_arms, dim, dim)
        B of each arm.
    """

    regret: Floats
    precision: Floats


def endings(
    world: World,
    policy: Policy,
    *,
    horizon: int,
    replications: int,
    seed: Seed = None,
    progress: bool | Tick | None = None,
) -> Endings:
    """Simulate a policy with a parameter for each arm, and return how each run ends.

    The runs are those of `simulate` with the same seed.

    Parameters
    ----------
    world : World
        The world.
    policy : Policy
        The policy.
    horizon : int
        Number of rounds.
    replications : int
        Number of runs.
    seed : int, numpy.random.SeedSequence or None
        Seed of all random numbers.
    progress : bool or callable, optional
        As in `simulate`.
    """
    plan = Plan.of(world, policy, horizon, seed, [horizon])
    replications = checks.integer("replications", replications, max_value=10**7)
    regret = np.empty(replications)
    precision = np.empty((replications, world.n_arms, world.dim, world.dim))
    left, stop, lock = iter(range(replications)), threading.Event(), threading.Lock()

    def work(advance: Tick) -> None:
        workspace = Workspace()
        while not stop.is_set():
            with lock:
                number = next(left, None)
            if number is None:
                return
            outcome = replicate(plan, number, None, workspace)
            (run,) = workspace.runs
            assert isinstance(run, CompiledRun)
            regret[number] = outcome["regret"][0, -1]
            precision[number] = run.posterior.precision
            advance(plan.horizon)

    workers = min(os.cpu_count() or 1, replications)
    title = f"simulating {replications} x {plan.horizon:,} rounds"
    with (
        bar(title, replications * plan.horizon, show=progress) as advance,
        ThreadPoolExecutor(max_workers=workers) as pool,
    ):
        try:
            for done in [pool.submit(work, advance) for _ in range(workers)]:
                done.result()
        except BaseException:
            stop.set()
            raise
    return Endings(regret, precision)
