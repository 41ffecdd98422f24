"""`simulate`: many replications, on every core or a cluster, into one labelled data set."""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, as_completed
from queue import SimpleQueue

import xarray as xr

from keyhole import checks
from keyhole.core import Seed
from keyhole.errors import InvalidValue, shown
from keyhole.lab.simulation.interrupts import Interrupts
from keyhole.lab.simulation.plan import Learners, Plan, WorldRecipe
from keyhole.lab.simulation.progress import bar
from keyhole.lab.simulation.replication import Outcome, Tick, Workspace, replicate
from keyhole.lab.simulation.results import as_dataset
from keyhole.lab.simulation.store import Store
from keyhole.lab.worlds import World

# So many replications are with an executor at a time: enough for a large cluster, and few enough
# that the plans that wait there do not fill its memory.
IN_FLIGHT = 512

Finish = Callable[[int, Outcome], None]


class SimulationInterrupted(KeyboardInterrupt):
    """Ctrl-C during a simulation. `runs` holds what was finished: a data set, or None."""

    def __init__(self, runs: xr.Dataset | None) -> None:
        done = 0 if runs is None else runs.sizes["replication"]
        super().__init__(f"interrupted with {done} replications finished")
        self.runs = runs


def simulate(
    world: World | WorldRecipe,
    learners: Learners,
    *,
    horizon: int,
    replications: int,
    seed: Seed = None,
    checkpoints: int | Sequence[int] | None = None,
    executor: Executor | None = None,
    workers: int | None = None,
    resume: str | os.PathLike[str] | None = None,
    progress: bool | Tick | None = None,
) -> xr.Dataset:
    """Let learners play the same rounds of a world, and label what comes of it.

    The result depends on the seed alone, not on how the work is done, nor on threads or processes;
    on another machine NumPy's BLAS may round the last digits of drawn worlds otherwise. The rounds
    of replication k are those of `world.sample(horizon, seed=SeedSequence(seed, spawn_key=(k,)))`,
    and a `Bandit` with that seed chooses the same arms.

    Parameters
    ----------
    world : World or recipe
        A `World`, or a recipe such as `RandomLinearWorld`, from which each replication draws its
        own.
    learners : Learner, Policy, AnyLearner, or a sequence or dict of them
        One, several, or several by name. A policy stands for the plain learner of it. Objects of
        your own with the three functions of `AnyLearner` play by a plain Python loop.
    horizon : int
        The number of rounds.
    replications : int
        How often all of it is repeated, with other random numbers.
    seed : int, numpy.random.SeedSequence or None
        None: another result each time.
    checkpoints : int or sequence of int, optional
        After how many rounds to look: times, or how many times.
    executor : concurrent.futures.Executor, optional
        Any, such as that of a Dask client; by default threads of our own.
    workers : int, optional
        The number of those threads, by default one for each core.
    resume : str or os.PathLike, optional
        A folder that keeps finished replications, from which the same call goes on, with the same
        sources of Keyhole.
    progress : bool or callable, optional
        Show a bar (by default if there is a terminal), or a function that is called with the
        number of rounds that were just done.

    Returns
    -------
    xarray.Dataset
        `regret`, `latent_regret` and `optimal` over (policy, replication, time), `pulls` and
        `error` over (policy, replication, time, arm).

    Raises
    ------
    InvalidValue
        If a setting cannot be used, a world gives what cannot be played, or the rule of a policy
        changes in the course of the simulation.
    FileError
        If a file in `resume` is damaged, or cannot be read or written.
    SimulationInterrupted
        On Ctrl-C. It carries what is finished; pressing it again within a second changes nothing.

    Examples
    --------
    >>> import keyhole as kh
    >>> world = kh.LinearWorld.random(n_arms=3, context_dim=4, dim=2, seed=1)
    >>> policies = [kh.ThompsonSampling(v=world.noise_scale), kh.Uniform()]
    >>> runs = kh.simulate(world, policies, horizon=500, replications=4, seed=2)
    >>> dict(runs.sizes)
    {'policy': 2, 'replication': 4, 'time': 130, 'arm': 3}
    >>> last = runs.regret.isel(time=-1).mean("replication")
    >>> bool(last[0] < last[1])
    True

    """
    plan = Plan.of(world, learners, horizon, seed, checkpoints)
    replications = checks.integer("replications", replications, max_value=10**7)
    workers = _workers(executor, workers)
    if progress is not None and not isinstance(progress, bool) and not callable(progress):
        raise InvalidValue(
            f"progress must be True, False, None or a function, got {shown(progress)}"
        )
    if resume is not None and seed is None:
        raise InvalidValue("give a seed to resume: without one, no two simulations are the same")
    store = None if resume is None else Store(resume, plan)
    outcomes = {} if store is None else store.finished(replications)
    missing = [number for number in range(replications) if number not in outcomes]

    finishing = threading.Lock()  # two threads may finish at a time

    def finish(number: int, outcome: Outcome) -> None:
        with finishing:
            for known in itertools.islice(outcomes.values(), 1):
                if known.keys() != outcome.keys():
                    raise InvalidValue(
                        "a world must give labels in all replications or in none: if it does, "
                        f"delete the files in {resume}"
                    )
            outcomes[number] = outcome
        if store is not None:
            store.write(number, outcome)

    title = f"simulating {replications} x {plan.horizon:,} rounds"
    with Interrupts() as interrupts:
        try:
            with bar(title, replications * plan.horizon, show=progress) as tick:
                tick(len(outcomes) * plan.horizon)
                if executor is None:
                    _on_threads(plan, missing, workers, finish, tick)
                else:
                    _on_executor(plan, missing, executor, finish, tick)
            return as_dataset(plan, outcomes)
        except KeyboardInterrupt:
            interrupts.ignore()
            # A copy: after a second press, threads may still be at work on their last block.
            done = dict(outcomes)
            raise SimulationInterrupted(as_dataset(plan, done) if done else None) from None


def _workers(executor: Executor | None, workers: int | None) -> int:
    """Check who is to do the work, and return the number of threads."""
    if executor is not None and not isinstance(executor, Executor):
        raise InvalidValue(
            "executor must be a concurrent.futures.Executor (of a Dask client: "
            f"client.get_executor()), got {shown(executor)}"
        )
    if executor is not None and workers is not None:
        raise InvalidValue("workers are for our own threads: an executor has its own number")
    return checks.integer("workers", (os.cpu_count() or 1) if workers is None else workers)


class _StoppedError(Exception):
    """Raised in a thread whose work is no longer wanted."""


def _on_threads(
    plan: Plan, numbers: list[int], workers: int, finish: Finish, advance: Tick
) -> None:
    """Replications on threads of our own, which can be stopped between two blocks.

    Each takes the next number for itself, so that none waits for another, nor for this one.
    """
    left, stop = iter(numbers), threading.Event()
    workers = max(1, min(workers, len(numbers)))

    def tick(rounds: int) -> None:
        advance(rounds)
        if stop.is_set():
            raise _StoppedError

    def work() -> None:
        workspace = Workspace()
        with contextlib.suppress(_StoppedError):
            for number in left:
                finish(number, replicate(plan, number, tick, workspace))

    with ThreadPoolExecutor(max_workers=workers) as pool:
        try:
            for ended in as_completed([pool.submit(work) for _ in range(workers)]):
                ended.result()
        except BaseException:
            stop.set()
            raise


def _on_executor(
    plan: Plan, numbers: list[int], executor: Executor, finish: Finish, advance: Tick
) -> None:
    """Replications on somebody else's executor, each handed over as it comes, in whatever order.

    If anything fails, what is not begun is called off and what is finished is still handed over.
    """
    left = iter(numbers)
    pending: dict[Future[Outcome], int] = {}
    done: SimpleQueue[Future[Outcome]] = SimpleQueue()
    try:
        while True:
            for number in itertools.islice(left, IN_FLIGHT - len(pending)):
                future = executor.submit(replicate, plan, number)
                pending[future] = number
                future.add_done_callback(done.put)
            if not pending:
                return
            future = done.get()
            finish(pending[future], future.result())
            del pending[future]
            advance(plan.horizon)
    except BaseException:
        for future in pending:
            future.cancel()
        for future, number in pending.items():
            if future.done() and not future.cancelled() and future.exception() is None:
                finish(number, future.result())
        raise
