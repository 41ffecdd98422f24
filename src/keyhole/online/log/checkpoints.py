"""Probabilities of the logged policy at other contexts: what its bandit would have chosen there.

The shares of adaptive estimators need e_t(a | x_s), the probability of arm a at time t at the
context of an earlier round s. Units, columns and predictions of that time are in no row: they
follow from the rows before it, which are folded into a bandit, choices taken as they are. At each
checkpoint the bandit is asked.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from keyhole.core import Arm, Floats, Ints
from keyhole.online.log import rows
from keyhole.online.log.log import Log
from keyhole.online.log.replaying import Own, Replay, quietly
from keyhole.online.log.rounds import LoggedRounds

# Shares hardly change with more; see `keyhole.evaluation`.
N_CHECKPOINTS, N_CONTEXTS = 50, 500


def checkpoints(log: Log, own: Own, rounds: LoggedRounds, used: Ints) -> dict[str, Any] | None:
    """Return probabilities at checkpoints; None if the columns alone give the same.

    Parameters
    ----------
    log : Log
        The log.
    own : Own
        What no row can hold.
    rounds : LoggedRounds
        Its rounds.
    used : ndarray of int
        The rounds that are used.
    """
    if rounds.is_plain and len(rounds.dims) == 1 and rounds.is_in_order and _is_new(rounds, own):
        return None
    plan = _planned(rounds, used)
    found = _asked(log, own, rounds, used, plan)
    return {
        "starts": np.array([start for start, _ in plan], dtype=np.int64),
        "contexts": tuple(contexts for _, contexts in plan),
        "probabilities": tuple(found),
    }


def _is_new(rounds: LoggedRounds, own: Own) -> bool:
    """Return whether the bandit had learned nothing when the log began."""
    assert rounds.start is not None
    replay = Replay(rounds.name, own, verify=False)  # no draw is made, and no key of draws needed
    replay.take(rounds.start)
    return not sum(replay.bandit.counts.values())


def _planned(rounds: LoggedRounds, used: Ints) -> list[tuple[int, Ints]]:
    """Return rounds at which a bandit is asked, and the earlier ones at whose contexts it is.

    Both count the rounds that are used. The bandit must still have all candidates of a context.
    """
    n = len(used)
    starts = np.unique(np.geomspace(1, n, N_CHECKPOINTS + 1).astype(np.int64))
    set_of, arms_at = np.array(rounds.set_of)[used], np.array(rounds.arms_at)[used]
    has: dict[tuple[int, int], bool] = {}
    plan = []
    for start in starts[starts < n].tolist():
        now = int(arms_at[start])
        for other in np.unique(set_of[:start]).tolist():
            has[other, now] = set(rounds.sets[other]) <= set(rounds.sets[now])
        eligible = np.flatnonzero([has[other, now] for other in set_of[:start].tolist()])
        if eligible.size:
            spread = np.linspace(0, eligible.size - 1, min(eligible.size, N_CONTEXTS))
            plan.append((start, eligible[spread.astype(np.int64)]))
    return plan


def _asked(
    given: Iterable[rows.AnyRow],
    own: Own,
    rounds: LoggedRounds,
    used: Ints,
    plan: list[tuple[int, Ints]],
) -> list[Floats]:
    """Return the probability of every arm at each context of each checkpoint, (m, K) each."""
    seqs = np.array(rounds.seqs)[used]
    asked = {int(seqs[start]): contexts for start, contexts in plan}
    wanted = {int(seqs[t]): int(t) for _, contexts in plan for t in contexts}
    seen: dict[int, tuple[rows.Decision, list[Arm]]] = {}
    found: list[Floats] = []
    replay = Replay(rounds.name, own, verify=False)
    with quietly():
        for row in given:
            if isinstance(row, rows.Decision):
                if row.seq in asked:
                    contexts = [seen[t] for t in asked[row.seq].tolist()]
                    found.append(_placed(replay.bandit.chances(contexts), contexts, rounds))
                if row.seq in wanted:
                    t = wanted[row.seq]
                    seen[t] = row, rounds.sets[rounds.set_of[int(used[t])]]
            if len(found) == len(plan):
                break
            replay.take(row)
    return found


def _placed(
    chances: list[Floats],
    contexts: list[tuple[rows.Decision, list[Arm]]],
    rounds: LoggedRounds,
) -> Floats:
    """Return probabilities of all arms, 0 for those that were no candidates, (m, K)."""
    table = np.zeros((len(contexts), len(rounds.names)))
    for k, (one, (_, arms)) in enumerate(zip(chances, contexts, strict=True)):
        table[k, [rounds.names[arm] for arm in arms]] = one
    return table
