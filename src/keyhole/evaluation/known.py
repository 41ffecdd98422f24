"""`KnownCheckpoints`: probabilities of the logged policy at other contexts, as a log has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from keyhole import checks
from keyhole.core import Floats, Ints
from keyhole.errors import InvalidValue

# Rows of probabilities add up to 1 within this much: files keep six digits.
SUM_TOLERANCE = 1e-5


class KnownCheckpoints(NamedTuple):
    """Rounds before which the logged policy was asked at the contexts of earlier rounds."""

    starts: Ints  # (C,), increasing
    contexts: tuple[Ints, ...]  # C arrays (m,) of rounds before each start
    probabilities: tuple[Floats, ...]  # C arrays (m, K)

    @classmethod
    def of(cls, given: Any, n: int, k: int) -> KnownCheckpoints | None:
        """Return checkpoints, checked.

        Parameters
        ----------
        given : KnownCheckpoints, mapping or None
            The checkpoints, or a mapping with the three keys.
        n, k : int
            Number of rounds and of arms.
        """
        if given is None or isinstance(given, KnownCheckpoints):
            return given
        if not isinstance(given, Mapping) or set(given) != set(cls._fields):
            raise InvalidValue(
                f"checkpoints must be a mapping with the keys {', '.join(cls._fields)}, "
                f"got {type(given).__name__}"
            )
        starts = checks.floats("checkpoints['starts']", given["starts"]).astype(np.int64)
        contexts = tuple(np.array(one, dtype=np.int64) for one in given["contexts"])
        tables = tuple(checks.floats("a checkpoint", one) for one in given["probabilities"])
        if not len(starts) == len(contexts) == len(tables):
            raise InvalidValue("checkpoints must have as many contexts and tables as starts")
        if (np.diff(starts) <= 0).any() or (starts < 1).any() or (starts >= n).any():
            raise InvalidValue(f"checkpoints must start at increasing rounds from 1 to {n - 1}")
        for c, (start, rounds, table) in enumerate(zip(starts, contexts, tables, strict=True)):
            _check(c, int(start), rounds, table, k)
        return cls(starts, contexts, tables)

    def head(self, n: int) -> KnownCheckpoints:
        """Return the checkpoints before round n."""
        m = int((self.starts < n).sum())
        return KnownCheckpoints(self.starts[:m], self.contexts[:m], self.probabilities[:m])


def _check(c: int, start: int, rounds: Ints, table: Floats, k: int) -> None:
    """Raise unless a checkpoint has contexts of earlier rounds, and probabilities at each.

    Parameters
    ----------
    c : int
        The number of the checkpoint.
    start : int
        Its round.
    rounds : ndarray of int of shape (m,)
        The rounds of its contexts.
    table : ndarray of shape (m, k)
        The probabilities.
    k : int
        The number of arms.
    """
    if rounds.ndim != 1 or not rounds.size or (rounds < 0).any() or (rounds >= start).any():
        raise InvalidValue(f"checkpoints: contexts[{c}] must be rounds from 0 to {start - 1}")
    if table.shape != (len(rounds), k):
        raise InvalidValue(
            f"checkpoints: probabilities[{c}] must have shape ({len(rounds)}, {k}), "
            f"got {table.shape}"
        )
    total = table.sum(axis=1)
    if (table < 0.0).any() or (np.abs(total - 1.0) > SUM_TOLERANCE).any():
        raise InvalidValue(f"checkpoints: probabilities[{c}] must be at least 0 and add up to 1")
