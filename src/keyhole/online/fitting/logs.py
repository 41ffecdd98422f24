"""Logs among the sources: their arms, the runs that they are of, and what they lack.

A log in Parquet has the columns of a table of single rewards, and a summary of the rest
(`keyhole.online.log.learned`).
"""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any

from keyhole.core import Arm, Learner, kernels
from keyhole.errors import FileError, InvalidValue, KeyholeWarning
from keyhole.online import storage
from keyhole.online.arrow import arrow
from keyhole.online.fitting.columns import Columns
from keyhole.online.fitting.parts import BATCH, footer, schema_of
from keyhole.online.fitting.sources import Source
from keyhole.online.lineage import Past
from keyhole.online.log import parquet, rows
from keyhole.online.log.learned import Summary

COLUMNS = Columns(parquet.ARM, parquet.LEARNED, parquet.OBSERVATION)


def summary_of(source: Source) -> Summary | None:
    """Return the summary of a log, or None if a source is no log."""
    metadata = schema_of(source).metadata or {}
    if source.path is None or parquet.VERSION not in metadata:
        return None
    version = metadata[parquet.VERSION]
    if version != str(rows.SCHEMA).encode():
        raise FileError(
            f"{source.name} is a log of another schema: {version!r}, and this Keyhole reads "
            f"{rows.SCHEMA}"
        )
    try:
        return Summary(**json.loads(metadata[parquet.SUMMARY]))
    except (KeyError, TypeError, ValueError) as reason:
        raise FileError(f"{source.name} is a log without a summary: {reason}") from None


def check_learner(source: Source, summary: Summary, learner: Learner) -> None:
    """Raise unless a learner can make use of the observations of a log.

    Parameters
    ----------
    source : Source
        The log.
    summary : Summary
        Its summary.
    learner : Learner
        The learner.
    """
    if summary.kind != storage.FORMAT:
        raise InvalidValue(
            f"{source.name} is the log of a bandit with sensors or a learner of its own, whose "
            "sums its rows are not: replay it, Log.replay()"
        )
    recipe = None if learner.features is None else learner.features.start().digest
    if recipe != summary.recipe:
        raise InvalidValue(
            f"{source.name} was written "
            + ("without features" if summary.recipe is None else "with other features")
            + f": its observations are not those of {learner!r}"
        )


def arms_of(summaries: Sequence[Summary]) -> tuple[list[Arm], list[Arm]]:
    """Return the arms of some logs, and those that were removed and have rewards, in order."""
    there = dict.fromkeys(arm for one in summaries for arm in one.arms)
    gone = dict.fromkeys(arm for one in summaries for arm in one.gone if arm not in there)
    return list(there), list(gone)


def pasts_of(logs: Sequence[tuple[Source, Summary]]) -> dict[str, Past]:
    """Return the runs that logs are of; raise if two logs are of one run."""
    found: dict[str, Past] = {}
    of: dict[str, str] = {}
    for source, summary in logs:
        for run, past in summary.runs.items():
            if run in found:
                raise InvalidValue(
                    f"{of[run]} and {source.name} are logs of the same run, {run}: one goes on "
                    "from the other, and rewards would count twice. Give the longer one"
                )
            found[run], of[run] = Past(*past), source.name
    return found


def warn_of_others(logs: Sequence[tuple[Source, Summary]], pasts: dict[str, Past]) -> None:
    """Warn of rewards that the bandit of a log had learned, and that are in none of the files.

    Parameters
    ----------
    logs : sequence of (Source, Summary)
        The logs.
    pasts : dict of str to Past
        The runs of all files.
    """
    lacking: dict[str, int] = {}
    for _, summary in logs:
        for run, n in summary.others.items():
            if run not in pasts and n:
                lacking[run] = max(lacking.get(run, 0), n)
    if lacking:
        warnings.warn(
            f"bandits of these logs had learned {sum(lacking.values())} rewards of other runs "
            f"({', '.join(sorted(lacking)[:5])}), by a file or a merge: they are in none of these "
            "files, and are left out",
            KeyholeWarning,
            stacklevel=3,
        )


def warn_of_twice(logs: Sequence[tuple[Source, Summary]]) -> None:
    """Warn of decisions whose reward two logs have learned.

    A reward may be learned by another bandit than the one that decided: both logs have its event.
    """
    if len(logs) < 2 or not any(summary.n_foreign for _, summary in logs):
        return
    foreign = [_events(source, only_foreign=True) for source, one in logs if one.n_foreign]
    pa = arrow()
    wanted = pa.concat_arrays(foreign).unique()
    counts: Counter[str] = Counter()
    for source, _ in logs:
        events = _events(source, only_foreign=False).unique()
        counts.update(events.filter(pa.compute.is_in(events, wanted)).to_pylist())
    twice = sum(n > 1 for n in counts.values())
    if twice:
        warnings.warn(
            f"{twice} decisions were learned by the bandits of two of these logs, and count twice: "
            "a reward was sent to both",
            KeyholeWarning,
            stacklevel=3,
        )


def _events(source: Source, *, only_foreign: bool) -> Any:
    """Return the events of the rows that have a reward; only of decisions made elsewhere."""
    pa = arrow()
    found = [pa.array([], pa.string())]
    for batch in _batches(source, ["kind", "event", parquet.LEARNED]):
        used = batch.column(parquet.LEARNED).is_valid()
        if only_foreign:
            used = pa.compute.and_(used, pa.compute.equal(batch.column("kind"), "given"))
        found.append(batch.column("event").filter(used).drop_null())
    return pa.concat_arrays(found)


def recent_events(logs: Sequence[tuple[Source, Summary]]) -> list[str]:
    """Return the events whose rewards were learned last, as many as a bandit remembers."""
    found: list[str] = []
    for source, _ in reversed(logs):
        for group in reversed(range(footer(source).num_row_groups)):
            if len(found) >= kernels.REMEMBERED:
                return found[-kernels.REMEMBERED :]
            found = [*_rewarded(source, group), *found]
    return found[-kernels.REMEMBERED :]


def _rewarded(source: Source, group: int) -> list[str]:
    """Return the events of the rewards of a row group."""
    found: list[str] = []
    for batch in _batches(source, ["kind", "event"], group):
        rewards = arrow().compute.equal(batch.column("kind"), "reward")
        found += batch.column("event").filter(rewards).drop_null().to_pylist()
    return found


def _batches(source: Source, names: list[str], group: int | None = None) -> Any:
    pa = arrow()
    with pa.OSFile(source.path) as opened:
        file = pa.parquet.ParquetFile(opened, metadata=footer(source))
        groups = range(file.num_row_groups) if group is None else [group]
        yield from file.iter_batches(BATCH, row_groups=list(groups), columns=names)
