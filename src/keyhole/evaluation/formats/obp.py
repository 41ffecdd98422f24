"""`Obp`: the dictionary of Open Bandit Pipeline, in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from keyhole import checks
from keyhole.errors import InvalidValue, shown
from keyhole.evaluation.formats.format import Columns, Format, Head, Progress, require_rewards

NEEDED = ("n_rounds", "n_actions", "action", "reward", "pscore")


@dataclass(frozen=True, kw_only=True)
class Obp(Format):
    """obp's `bandit_feedback`: n_rounds, n_actions, context, action, position, reward, pscore.

    `context` becomes the observation, and `pi_b`, where obp has it, the probability of every arm:
    each round takes that of its position. A row is a round, and its position no part of the arm.
    `expected_reward`, the truth of a simulation, is not read.
    """

    name: ClassVar[str] = "obp"
    instead: ClassVar[str] = "keyhole.evaluation.to_obp(log) returns the dictionary"

    def mismatch(self, head: Head) -> str | None:
        """Return that no file is of this format."""
        del head
        return "obp's dictionary is in memory"

    def _read(self, source: Any, progress: Progress | None) -> dict[str, Any]:
        del progress
        if not isinstance(source, Mapping):
            raise InvalidValue(f"log must be obp's dictionary, got {shown(source)}")
        for name in NEEDED:
            if source.get(name) is None:
                raise InvalidValue(f"log must have {name!r} for obp, got {shown(list(source))}")
        n = checks.integer("n_rounds", source["n_rounds"])
        k = checks.integer("n_actions", source["n_actions"])
        columns = {
            "arms": range(k),
            "chosen": _whole("action", source["action"], n, k),
            "probability": _propensity("pscore", source["pscore"], n),
            "reward": _filled("reward", source["reward"], n),
        }
        context, pi_b = source.get("context"), source.get("pi_b")
        if context is not None:
            columns["observation"] = checks.floats("context", context)
        if pi_b is not None:
            columns["probabilities"] = _by_position(pi_b, source.get("position"), n, k)
        return columns


def to_dict(log: Columns) -> dict[str, Any]:
    """Return a log as obp's dictionary, with `pi_b` if the probability of every arm is known."""
    require_rewards(log, "obp's dictionary")
    y, propensity = log.observation, log.propensity
    return {
        "n_rounds": log.n_rounds,
        "n_actions": log.n_arms,
        "context": None if y is None or y.shape[1] > 1 else y[:, 0].copy(),
        "action_context": None,
        "action": log.chosen.copy(),
        "position": np.zeros(log.n_rounds, np.int64),
        "reward": log.reward.copy(),
        "pscore": log.probability.copy(),
        "pi_b": None if propensity is None else propensity[:, :, None].copy(),
    }


def _filled(name: str, value: Any, n: int) -> Any:
    found = checks.with_missing(name, value)
    if found.shape != (n,):
        raise InvalidValue(f"{name} must have shape ({n},), that of n_rounds, got {found.shape}")
    return found


def _propensity(name: str, value: Any, n: int) -> Any:
    found = _filled(name, value, n)
    wrong = ~(found > 0.0) | ~(found <= 1.0)
    if wrong.any():
        t = int(wrong.argmax())
        raise InvalidValue(f"{name}[{t}] must be above 0 and at most 1, got {found[t]:g}")
    return found


def _whole(name: str, value: Any, n: int, limit: int) -> Any:
    found = np.asarray(value)
    if found.dtype.kind not in "iu" or found.shape != (n,):
        raise InvalidValue(
            f"{name} must be {n} whole numbers, got {found.dtype} of shape {found.shape}"
        )
    wrong = (found < 0) | (found >= limit)
    if wrong.any():
        t = int(wrong.argmax())
        raise InvalidValue(f"{name}[{t}] must be from 0 to {limit - 1}, got {found[t]}")
    return found


def _by_position(pi_b: Any, position: Any, n: int, k: int) -> Any:
    table = checks.floats("pi_b", pi_b)
    if table.ndim != 3 or table.shape[:2] != (n, k):
        raise InvalidValue(f"pi_b must have shape ({n}, {k}, positions), got {table.shape}")
    if position is None:
        position = np.zeros(n, np.int64)
    return table[np.arange(n), :, _whole("position", position, n, table.shape[2])]
