"""Between a bandit and the plain header and arrays of its file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from keyhole import policies
from keyhole.bandit.arms import Arm, Arms
from keyhole.errors import FileError, InvalidValue
from keyhole.kernels import State
from keyhole.policies import Policy

SHAPES = {
    "precision": "kdd",
    "moment": "kd",
    "pulls": "k",
    "squares": "k",
    "covariance": "kdd",
    "mean": "kd",
    "residual": "k",
    "trace": "k",
    "bound": "k",
    "staleness": "k",
}


class Saved(NamedTuple):
    """What a file holds, checked: a bandit can be put together from it."""

    policy: Policy
    arms: tuple[Arm, ...]
    probabilities: bool
    random: dict[str, Any]
    state: State


def policy_record(policy: Policy) -> dict[str, Any]:
    """A policy as its name and its settings."""
    return {"name": type(policy).__name__, "settings": asdict(policy)}


def parse(
    header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], policy: Policy | None
) -> Saved:
    """Check all that a file holds. Raises `FileError` for the first thing that is not as saved."""
    try:
        policy = _policy(header["policy"], policy)
        saved = Saved(
            policy=policy,
            arms=Arms(header["arms"], shared=policy.parameters == "shared").names,
            probabilities=bool(header["probabilities"]),
            random=_random(header["random"]),
            state=_state(arrays),
        )
    except (KeyError, TypeError, AttributeError, InvalidValue) as reason:
        raise FileError(f"the saved bandit is damaged: {reason}") from None
    parameters = 1 if saved.policy.parameters == "shared" else len(saved.arms)
    if len(saved.state.pulls) != parameters:
        raise FileError(f"the saved bandit has {len(saved.arms)} arms, but not their parameters")
    return saved


def _policy(record: Mapping[str, Any], given: Policy | None) -> Policy:
    if given is not None:
        if policy_record(given) != record:
            raise FileError(f"the bandit was saved with {record}, not with {policy_record(given)}")
        return given
    if record["name"] not in policies.__all__:
        raise FileError(
            f"the bandit's policy {record['name']!r} is none of Keyhole's: "
            f"give it to load(path, policy=...), with the settings {record['settings']}"
        )
    kind: type[Policy] = getattr(policies, record["name"])
    return kind(**record["settings"])


def _random(state: dict[str, Any]) -> dict[str, Any]:
    try:
        np.random.PCG64().state = cast(Any, state)
    except (ValueError, OverflowError) as reason:
        raise FileError(f"the saved random stream cannot be resumed: {reason}") from None
    return state


def _state(arrays: Mapping[str, NDArray[Any]]) -> State:
    k, d = arrays["moment"].shape if arrays["moment"].ndim == 2 else (0, 0)
    for name, axes in SHAPES.items():
        array = arrays[name]
        if (
            array.shape != tuple({"k": k, "d": d}[axis] for axis in axes)
            or array.dtype != np.float64
        ):
            raise FileError(f"the saved {name} has shape {array.shape} and type {array.dtype}")
        if not np.isfinite(array).all():
            raise FileError(f"the saved {name} is not finite")
    return State(**{name: np.ascontiguousarray(arrays[name]) for name in SHAPES})
