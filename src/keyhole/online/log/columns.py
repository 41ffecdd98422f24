"""The decisions of a log as columns, for evaluation."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from keyhole.core import Ints
from keyhole.errors import InvalidValue, KeyholeError, KeyholeWarning
from keyhole.online.log.checkpoints import checkpoints
from keyhole.online.log.log import Log
from keyhole.online.log.replaying import Own
from keyhole.online.log.rounds import FORGOTTEN, KEPT, SHADOW, VETOED, LoggedRounds


def columns(log: Log, own: Own) -> dict[str, Any]:
    """Return the decisions of a log, one entry for each, in the order in which they were made.

    `keyhole.evaluation.Logged` says what each column is. A decision whose reward has not come has
    the reward NaN; of several rewards of one decision the sum counts, and of an amended one the
    last. Some decisions are left out, and counted: those in whose place another arm was taken,
    since the reward is not one of the logged choice; those of the decision service that a baseline
    was served for, in the modes shadow and off; those that were forgotten; and those that were made
    elsewhere, whose probability is not known.

    Observations are there where the posterior saw them as they came. Where it did not, or rewards
    came late, the probabilities of the logged policy at the contexts of earlier rounds are those of
    the bandit at that time: the rows are folded once more, up to each of 50 checkpoints.

    Parameters
    ----------
    log : Log
        The log.
    own : Own
        What no row can hold.

    Raises
    ------
    InvalidValue
        If decisions have no probability, more than two arms were chosen from by one sample, or all
        rounds were served by a baseline.
    """
    rounds = LoggedRounds(log, log.name)
    kept = rounds.of(KEPT)
    _require_chance(rounds)
    found = _of_rounds(rounds, kept)
    vetoed = rounds.of(VETOED)
    if vetoed.size:
        found["vetoed"] = _of_rounds(rounds, vetoed, rewarded=False)
    left_out = {
        "served by a baseline in shadow mode": int(rounds.of(SHADOW).size),
        "served by a baseline while off": rounds.n_off,
        "forgotten": int(rounds.of(FORGOTTEN).size),
        "made elsewhere": rounds.n_elsewhere,
    }
    found["left_out"] = {reason: n for reason, n in left_out.items() if n}
    found["observation"] = rounds.observations(kept)
    assert rounds.start is not None
    if rounds.start.sharing is not None:
        found["sharing"] = rounds.start.sharing
        found["prior_precision"] = rounds.start.prior_precision
        found["checkpoints"] = _checkpoints(log, own, rounds, kept)
    return found


def _require_chance(rounds: LoggedRounds) -> None:
    """Raise if all rounds were served by a baseline: chance had no part in any of them."""
    shadow = rounds.of(SHADOW)
    served = shadow.size + rounds.n_off
    if rounds.of(KEPT).size or not served:
        return
    reward = np.array(rounds.reward)[shadow]
    came = reward[~np.isnan(reward)]
    earned = "no reward of theirs was learned"
    if came.size:
        rest = f", and {shadow.size - came.size:,} have none" if came.size < shadow.size else ""
        earned = f"the mean of the baseline's {came.size:,} rewards is {came.mean():.4g}{rest}"
    modes = [mode for mode, n in (("shadow", shadow.size), ("off", rounds.n_off)) if n]
    raise InvalidValue(
        f"all {served:,} rounds of {rounds.name} were served by a baseline, in mode "
        f"{' or '.join(modes)}: no arm was drawn at random, so that no other policy can be "
        f"evaluated from them; {earned}"
    )


def _of_rounds(rounds: LoggedRounds, used: Ints, *, rewarded: bool = True) -> dict[str, Any]:
    """Return the columns of some rounds."""
    reward = np.array(rounds.reward)[used] if rewarded else np.full(len(used), np.nan)
    found: dict[str, Any] = {
        "arms": list(rounds.names),
        "chosen": np.array(rounds.chosen)[used],
        "probability": np.array(rounds.probability)[used],
        "reward": reward,
        "epsilon": np.array(rounds.epsilon)[used],
    }
    if not rounds.has_scores:
        return found
    found["mean"] = rounds.table("mean", used)
    if not _is_joint(rounds):
        more = ("width", "optimism", "dispersion")
        return found | {part: rounds.table(part, used) for part in more}
    return found | {"probabilities": _of_two(rounds, found)}


def _is_joint(rounds: LoggedRounds) -> bool:
    assert rounds.start is not None
    settings = rounds.start.policy.get("settings", {})
    return bool(settings.get("draw") == "joint")


def _of_two(rounds: LoggedRounds, found: dict[str, Any]) -> Any:
    """Return the probabilities of both candidates, whose scores came from one sample."""
    candidates = ~np.isnan(found["mean"])
    if (candidates.sum(axis=1) != 2).any():
        raise InvalidValue(
            f"{rounds.name} is of a policy with draw='joint': with more than two candidates the "
            "probabilities of the arms that were not chosen are not known"
        )
    own = np.arange(len(candidates)), found["chosen"]
    chances = np.where(candidates, 1.0 - found["probability"][:, None], 0.0)
    chances[own] = found["probability"]
    return chances


def _checkpoints(log: Log, own: Own, rounds: LoggedRounds, kept: Ints) -> dict[str, Any] | None:
    """Return probabilities at the contexts of earlier rounds, where a replay of columns has not."""
    missing = np.isnan(np.array(rounds.reward)[kept])
    n = int(missing.argmax()) if missing.any() else len(kept)
    if n < 2 or _is_joint(rounds):
        return None
    try:
        return checkpoints(log, own, rounds, kept[:n])
    except KeyholeError as reason:
        warnings.warn(
            f"the rows of {log.name} cannot be folded ({reason}), so that the shares of MinVar are "
            "approximate: give Log.columns what no row can hold, policy=... or features=...",
            KeyholeWarning,
            stacklevel=3,
        )
        return None
