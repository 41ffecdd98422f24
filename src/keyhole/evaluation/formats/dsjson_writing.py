"""Writing of dsjson that Vowpal Wabbit reads."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import msgspec
import numpy as np

from keyhole.errors import InvalidValue
from keyhole.evaluation.formats.format import Columns
from keyhole.files import Path, replacing

# Rows that are made at a time.
GROUP = 10_000


def write(log: Columns, path: Path) -> None:
    """Write a log.

    Parameters
    ----------
    log : Logged
        The log, with the probability of every arm.
    path : path-like
        The file, which is replaced in one step.
    """
    propensity = log.propensity
    if propensity is None:
        raise InvalidValue(
            "log must have the probability of every arm for dsjson: give mean, width and "
            "dispersion, or probabilities; or write the format 'cb'"
        )
    names = [None if _are_numbers(log) else str(arm) for arm in log.arms]
    run = _digest(log)
    encode = msgspec.json.Encoder().encode_lines
    with replacing(path) as file:
        for start in range(0, log.n_rounds, GROUP):
            rows = range(start, min(start + GROUP, log.n_rounds))
            file.write(
                encode(
                    [{**_line(log, propensity, names, t), "EventId": f"{run}-{t}"} for t in rows]
                )
            )


def _digest(log: Columns) -> str:
    """Return the beginning of the events' ids: the same for the same rounds, and for no others."""
    content = (log.chosen, log.probability, log.reward)
    return sha256(b"".join(one.tobytes() for one in content)).hexdigest()[:16]


def _are_numbers(log: Columns) -> bool:
    """Return whether arms are named like actions of dsjson, and all of them are candidates."""
    return log.arms == tuple(range(1, log.n_arms + 1)) and bool(log.candidates.all())


def _line(log: Columns, propensity: Any, names: list[str | None], t: int) -> dict[str, Any]:
    candidates = np.flatnonzero(log.candidates[t]).tolist()
    place, chosen = {arm: i for i, arm in enumerate(candidates)}, int(log.chosen[t])
    order = [chosen, *(arm for arm in candidates if arm != chosen)]
    p = propensity[t]
    # The logged probability of the chosen arm is the one that estimates divide by.
    own = float(log.probability[t])
    line: dict[str, Any] = {}
    if not np.isnan(log.reward[t]):
        number = place[chosen] + 1
        line = {
            "_label_cost": 0.0 - float(log.reward[t]),
            "_label_probability": own,
            "_label_Action": number,
            "_labelIndex": number - 1,
        }
    return {
        **line,
        "a": [place[arm] + 1 for arm in order],
        "c": _context(log, names, candidates, t),
        "p": [own, *(float(p[arm]) for arm in order[1:])],
    }


def _context(
    log: Columns, names: list[str | None], candidates: list[int], t: int
) -> dict[str, Any]:
    """Return shared features, and actions with features of their own or their names."""
    y = log.observation
    actions: list[dict[str, Any]] = []
    for arm in candidates:
        name = names[arm]
        one: dict[str, Any] = {} if name is None else {"_tag": name}
        # Vowpal Wabbit tells actions apart by their features alone.
        one["i"] = {"constant": 1, "id": str(log.arms[arm])}
        if y is not None and y.shape[1] > 1:
            one["y"] = _features(y[t, arm])
        actions.append(one)
    shared = {} if y is None or y.shape[1] > 1 else {"y": _features(y[t, 0])}
    return {**shared, "_multi": actions}


def _features(values: Any) -> dict[str, float]:
    return {f"y{i}": one for i, one in enumerate(values.tolist())}
