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

# The number of replications that an executor has at a time: enough for a large cluster, and few
# enough that queued plans do not fill its memory.
IN_FLIGHT = 512

Finish = Callable[[int, Outcome], None]


class SimulationInterrupted(KeyboardInterrupt):
    """Ctrl-C during a simulation; `runs` has the finished replications, or is None."""

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
    """Simulate learners on the same rounds of a world, and return labelled results.

    The result depends on the seed alone, not on the number of threads or processes. On another
    machine NumPy's BLAS may round the last digits of drawn worlds differently. The rounds of
    replication k are those of `world.sample(horizon, seed=SeedSequence(seed, spawn_key=(k,)))`, and
    a `Bandit` with that seed chooses the same arms.

    Parameters
    ----------
    world : World or recipe
        A `World`, or a recipe such as `RandomLinearWorld`, from which each replication draws its
        own.
    learners : Learner, Policy, AnyLearner, or a sequence or dict of them
        One, several, or several by name. A policy stands for the plain learner with it.
        User-defined objects with the three functions of `AnyLearner` run in a Python loop.
    horizon : int
        Number of rounds.
    replications : int
        Number of replications, each with its own random numbers.
    seed : int, numpy.random.SeedSequence or None
        Seed of all random numbers. With None every call gives another result.
    checkpoints : int or sequence of int, optional
        Numbers of rounds after which results are recorded, or how many of them, evenly spread. By
        default about 150, dense at the start.
    executor : concurrent.futures.Executor, optional
        Executor that runs the replications, such as that of a Dask client. By default threads.
    workers : int, optional
        Number of threads if there is no executor; by default one for each core.
    resume : str or os.PathLike, optional
        Folder for finished replications. The same call with the same folder, and the same sources
        of Keyhole, continues there.
    progress : bool or callable, optional
        Whether a progress bar is shown, by default if stderr is a terminal; or a function that is
        called with the number of rounds since its last call.

    Returns
    -------
    xarray.Dataset
        `regret`, `latent_regret` and `optimal` over (policy, replication, time), `pulls` and
        `error` over (policy, replication, time, arm).

    Raises
    ------
    InvalidValue
        If a setting cannot be used, a world returns rounds that cannot be played, or the rule of a
        policy changes during the simulation.
    FileError
        If a file in `resume` is damaged, or cannot be read or written.
    SimulationInterrupted
        On Ctrl-C. It has the finished replications; a second press within a second is ignored.

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
    workers = checks.workers(executor, workers)
    if progress is not None and not isinstance(progress, bool) and not callable(progress):
        raise InvalidValue(
            f"progress must be True, False, None or a function, got {shown(progress)}"
        )
    if resume is not None and seed is None:
        raise InvalidValue("resume needs a seed, got None: give the seed of the first call")
    store = None if resume is None else Store(resume, plan)
    outcomes = {} if store is None else store.finished(replications)
    missing = [number for number in range(replications) if number not in outcomes]

    finishing = threading.Lock()  # two threads may finish at a time

    def finish(number: int, outcome: Outcome) -> None:
        with finishing:
            for known in itertools.islice(outcomes.values(), 1):
                if known.keys() != outcome.keys():
                    raise InvalidValue(
                        "a world must return labels in all replications or in none; if it does, "
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


class _StoppedError(Exception):
    """Stop signal inside a worker thread."""


def _on_threads(
    plan: Plan, numbers: list[int], workers: int, finish: Finish, advance: Tick
) -> None:
    """Run replications on threads, which can be stopped between two blocks.

    Each thread takes the next number when it is ready, so that no thread waits for another.
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
    """Run replications on the user's executor, and hand each over when it is finished.

    If one fails, those that have not started are cancelled, and finished ones are still handed
    over.
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
