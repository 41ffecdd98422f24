"""`fit`: a bandit from files of rows, by sums that are the same on any number of workers."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import closing
from hashlib import sha256
from itertools import chain, islice
from operator import itemgetter
from typing import Any

import numpy as np

from keyhole import checks
from keyhole.core import (
    REWARDS,
    Arm,
    Learner,
    LearnerState,
    PairwiseSums,
    Policy,
    RowSums,
    Seed,
    add_sums,
)
from keyhole.core.kernels import padded
from keyhole.errors import InvalidValue, shown
from keyhole.files import Path
from keyhole.online.bandit import Bandit
from keyhole.online.fitting import logs
from keyhole.online.fitting.parts import mark_of, parts_of
from keyhole.online.fitting.plan import Plan
from keyhole.online.fitting.reading import n_groups
from keyhole.online.fitting.running import in_order
from keyhole.online.fitting.sources import Source
from keyhole.online.fitting.summing import Job, check_summable, rewards_of, summed
from keyhole.online.lineage import Lineage, Past
from keyhole.online.once import Once

# Parts that are read ahead, at most, and the memory that sums of parts may take.
AHEAD, MEMORY = 512, 2**28

Progress = Callable[[int, int], None]


def fit(
    files: Path | Iterable[Any] | Any,
    learner: Learner | Policy,
    *,
    arms: int | Iterable[Arm] | Mapping[Arm, Any] | None = None,
    columns: Mapping[str, str | Sequence[str]] | None = None,
    dim: int | None = None,
    seed: Seed = None,
    probabilities: bool = True,
    executor: Executor | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Bandit:
    """Return a bandit that has learned the rows of files: an arm, an observation, a reward each.

    Up to rounding, it is the bandit that has learned them one by one. It is the same to the bit on
    any number of threads or processes, and of machines with the same build of the kernels.

    Parameters
    ----------
    files : path-like, table, or list of them
        Parquet files, a folder or a pattern of them, or tables in memory that Arrow can read. Logs
        of `Log.to_parquet` are recognized: what their bandits had learned by rewards is learned.
    learner : Learner or Policy
        How the bandit chooses and learns. Units and predictions follow from the order of rows, and
        are refused.
    arms : int or iterable of str or int, optional
        The names of the arms, as in `Bandit`. By default those of the logs.
    columns : dict, optional
        Names of the columns of "arm", "reward" and "observation"; by default these words. An
        observation is one column of lists, or a list of columns of numbers. With features it is
        not named: their fields are columns. Logs have columns of their own.
    dim : int, optional
        Length of an observation; by default that of the first one.
    seed : int, optional
        For choices that can be repeated.
    probabilities : bool, default True
        As in `Bandit`.
    executor : concurrent.futures.Executor, optional
        Executor that reads the files, such as that of a Dask client, whose workers find them by the
        same paths. By default threads.
    workers : int, optional
        Number of threads if there is no executor; by default one for each core.
    progress : callable, optional
        Function that is called with the number of rows read so far, and of all rows.

    Returns
    -------
    Bandit
        The bandit. Rows whose reward is null, because it has not come, are left out.

    Raises
    ------
    InvalidValue
        If a column is missing or has another type, a number is NaN or infinite, an observation has
        another length, or the learner cannot be fitted by sums.
    UnknownArm
        If a row has another arm.
    FileError
        If there is no such file, or it is damaged.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import keyhole as kh
    >>> table = pa.table({"arm": ["A", "B", "A"], "reward": [1.0, 0.0, 3.0], "age": [1, 2, 1]})
    >>> bandit = kh.fit(table, kh.Greedy(), arms=["A", "B"], columns={"observation": ["age"]})
    >>> bandit.counts
    {'A': 2, 'B': 1}
    >>> bandit.posterior.mean[0].round(12).tolist()     # (1 + 3) / (1 + 1 + 1)
    [1.333333333333]
    """
    learner = Learner.of(learner)
    check_summable(learner)
    workers = checks.workers(executor, workers)
    if progress is not None and not callable(progress):
        raise InvalidValue(f"progress must be a function of two numbers, got {shown(progress)}")
    length = None if dim is None else checks.integer("dim", dim)
    plan = Plan.of(files, learner, arms, columns, length)
    bandit = Bandit(
        learner,
        arms=arms if isinstance(arms, Mapping) else [*plan.arms, *plan.gone],
        dim=plan.dim,
        seed=seed,
        probabilities=probabilities,
    )
    learned = bandit._learned
    jobs = [
        [Job(part, one.columns, learner, learned.arms.names, plan.dim) for part in parts]
        for one in plan.tables
        for parts in [parts_of(one.source, len(learned.arms.names), is_remote=executor is not None)]
    ]
    if learned.observer.zero is None:
        learned.observer.zero = _zero(plan, jobs, learner)
    each, pasts = _sums(jobs, learned, executor, workers, progress), dict(plan.pasts)
    total = PairwiseSums(learned.observer.n_columns, depth=_depth(learned))
    with closing(each):
        for one, own in zip(plan.tables, each, strict=True):
            total.add(own)
            if one.summary is None and own.counts.any():
                pasts[_run_of(one.source, own, learned)] = Past(0, int(own.counts.sum()))
    logs.warn_of_others(plan.logs, pasts)
    logs.warn_of_twice(plan.logs)
    add_sums(learned, total.result())
    if plan.gone:
        learned.remove_arms(plan.gone)
    # So that nothing is learned or merged again.
    bandit._lineage = Lineage(pasts)
    bandit._once = Once(logs.recent_events(plan.logs))
    bandit._columns = plan.names
    return bandit


def _zero(plan: Plan, jobs: list[list[Job]], learner: Learner) -> float:
    """Return the number that rewards are counted from: the median of the first ones.

    Parameters
    ----------
    plan : Plan
        The sources.
    jobs : list of list of Job
        The parts of each source.
    learner : Learner
        It may leave out rows with missing entries.
    """
    first: list[float] = []
    for one, own in zip(plan.tables, jobs, strict=True):
        if one.summary is None:
            found: Iterable[float] = chain.from_iterable(map(rewards_of, own))
        else:
            drops = learner.missing == "drop"
            found = (value for value, is_whole in one.summary.first if is_whole or not drops)
        first += islice(found, REWARDS - len(first))
    if len(first) < REWARDS:
        raise InvalidValue(
            f"a learner with a constant counts rewards from the median of the first {REWARDS}: the "
            f"files must have as many, got {len(first)}"
        )
    return float(np.median(first))


def _sums(
    jobs: list[list[Job]],
    learned: LearnerState,
    executor: Executor | None,
    workers: int,
    progress: Progress | None,
) -> Generator[RowSums]:
    """Yield the sums of each source.

    Parameters
    ----------
    jobs : list of list of Job
        The parts of each source.
    learned : LearnerState
        What is known before.
    executor, workers, progress
        As in `fit`.
    """
    observer, depth = learned.observer, _depth(learned)
    listed = [job._replace(zero=observer.offset) for each in jobs for job in each]
    ahead = min(AHEAD, max(depth, workers))
    results = in_order(summed, listed, executor=executor, workers=workers, ahead=ahead)
    done, n_rows = 0, sum(job.part.n_rows for job in listed)
    with closing(results):
        for each in jobs:
            total = PairwiseSums(observer.n_columns, depth)
            for job in each:
                total.add(next(results))
                done += job.part.n_rows
                if progress is not None:
                    progress(done, n_rows)
            yield total.result()


def _depth(learned: LearnerState) -> int:
    """Return how many sums are kept in memory at a time, at most."""
    width = padded(learned.observer.n_columns + 1)
    return max(MEMORY // (8 * n_groups(learned.arms) * width**2), 1)


def _run_of(source: Source, sums: RowSums, learned: LearnerState) -> str:
    """Return the name of a run for the rows of a table: the same for the same rows.

    Two bandits that were fitted from one file have this run in common, and a merge does not count
    it twice. Rewards are not in it, since they may be counted from another number.

    Parameters
    ----------
    source : Source
        The table.
    sums : RowSums
        Its sums.
    learned : LearnerState
        What is known of the arms.
    """
    n, names, found = learned.observer.n_columns, learned.arms.names, sha256(mark_of(source))
    is_by_arm = n_groups(learned.arms) == len(names)
    parts = zip(sums.groups.tolist(), sums.counts, sums.squares, strict=True)
    named = [(repr(names[k]) if is_by_arm else "", count, own) for k, count, own in parts]
    for name, count, squares in sorted(named, key=itemgetter(0)):
        found.update(f"{name} {count:.0f}".encode())
        found.update(squares[:n, :n].tobytes())
    return found.hexdigest()[:16]
