"""A page of a loop's log: counts and rewards of up to 1,000 rows, by one query.

At a start, most rows are decisions, which change nothing that is learned, and rewards. Rewards of
plain learners have all that their terms follow from. The bodies of other rows need not be read, and
Python sees one long text in place of a thousand rows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from keyhole.core import Arm, Floats
from keyhole.online import rows
from keyhole.service.reader import Reader

# Rows of a page. Those up to the last one that is neither decision nor reward are taken one by one.
SIZE = 1_000
# Pages that are read ahead. With only one, the thread gets Python's lock too late.
AHEAD = 4

_SKIPPED = ", ".join(f"'{kind.__name__.lower()}'" for kind in rows.OF_EVENTS)
_QUERY = f"""
SELECT count(*), max(seq), total(kind = 'decision'),
    max(CASE WHEN kind NOT IN ('decision', 'reward', {_SKIPPED}) THEN seq END),
    CAST(group_concat(CASE WHEN kind = 'reward' THEN body END, '') AS BLOB)
FROM (SELECT seq, kind, body FROM log WHERE loop = ? AND seq > ? ORDER BY seq LIMIT ?)
"""


class Page(NamedTuple):
    """Rows of a log.

    Parameters
    ----------
    n_rows, last, n_decisions : int
        How many rows there are, the number of the last one, and how many are decisions.
    last_other : int or None
        The number of the last row that changes the model and is not a reward.
    bodies : bytes
        The rewards, each on a line.
    """

    n_rows: int
    last: int
    n_decisions: int
    last_other: int | None
    bodies: bytes


class Rewards(NamedTuple):
    """The arguments of `LoggedBandit.learn_in_order`."""

    arms: list[Arm]
    y: Floats
    values: Floats
    events: list[str]


def page(store: Reader, loop: int, after: int) -> Page:
    """Return the rows after one, as many as a page has.

    Parameters
    ----------
    store : Reader
        The database.
    loop : int
        The number of the loop.
    after : int
        The number of the row before the first.
    """
    [(n, last, decisions, other, bodies)] = store.query(_QUERY, (loop, after, SIZE))
    return Page(n, last or after, int(decisions), other, bodies or b"")


def ahead(store: Reader, loop: int, after: int) -> Generator[Page, None, None]:
    """Yield the pages after a row; a thread reads the next ones while one is taken in.

    The connection of the store must not be used before the end, or before this is closed.

    Parameters
    ----------
    store, loop, after
        As in `page`.
    """
    with ThreadPoolExecutor(1) as pool:
        waiting: deque[Future[Page]] = deque()
        while True:
            while len(waiting) < AHEAD:
                waiting.append(pool.submit(page, store, loop, after))
                after += SIZE
            found = waiting.popleft().result()
            if not found.n_rows:
                return
            yield found


def rewards(bodies: bytes, dim: int) -> Rewards | None:
    """Return the rewards of a page; None if one lacks a field that its term needs.

    Parameters
    ----------
    bodies : bytes
        Their rows.
    dim : int
        The length of an observation.
    """
    try:
        listed = rows.decoded_rewards(bodies)
    except rows.DamagedRow:
        return None
    arms = [row.taken for row in listed if row.taken is not None]
    seen = [row.seen for row in listed if row.seen is not None]
    events = [row.event for row in listed if row.event is not None]
    numbers = [row.seq for row in listed]
    if not len(arms) == len(seen) == len(events) == len(listed):
        return None
    # SQLite does not promise the order in which it puts texts together.
    if numbers != sorted(numbers) or any(row.again or row.batch is not None for row in listed):
        return None
    if any(size != 8 * dim for size in set(map(len, seen))):
        return None
    y = np.frombuffer(b"".join(seen), dtype="<f8").reshape(-1, dim).astype(np.float64)
    return Rewards(arms, y, np.array([row.value for row in listed]), events)
