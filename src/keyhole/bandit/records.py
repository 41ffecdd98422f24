"""Between a bandit and the plain header and arrays of its file."""

from __future__ import annotations

import json
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
from keyhole.posterior import Posterior


class Saved(NamedTuple):
    """What a file holds, checked: a bandit can be put together from it."""

    policy: Policy
    arms: tuple[Arm, ...]
    probabilities: bool
    random: dict[str, Any]
    state: State


def policy_record(policy: Policy) -> dict[str, Any]:
    """A policy as its name and its settings, as plain as JSON leaves them."""
    kind = type(policy)
    ours = kind in vars(policies).values()
    name = kind.__name__ if ours else f"{kind.__module__}.{kind.__qualname__}"
    try:
        text = json.dumps({"name": name, "settings": asdict(policy)}, default=_plain)
    except TypeError as reason:
        raise InvalidValue(f"the settings of {policy!r} cannot be written down: {reason}") from None
    record: dict[str, Any] = json.loads(text)
    return record


def _plain(value: object) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{value!r} is neither a number, a string nor an array")


def parse(
    header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], policy: Policy | None
) -> Saved:
    """Check all that a file holds. Raises `FileError` for the first thing that is not as saved."""
    try:
        policy = _policy(header["policy"], policy)
        shared = policy.parameters == "shared"
        arms = Arms(header["arms"], shared=shared).names
        saved = Saved(
            policy=policy,
            arms=arms,
            probabilities=bool(header["probabilities"]),
            random=_random(header["random"]),
            state=_state(arrays, 1 if shared else len(arms), policy.prior_precision),
        )
    except (KeyError, TypeError, AttributeError, InvalidValue) as reason:
        raise FileError(f"the saved bandit is damaged: {reason}") from None
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


def _state(arrays: Mapping[str, NDArray[Any]], parameters: int, prior: float) -> State:
    """The arrays as a state, like that of a posterior of this size, and possible."""
    dim = arrays["mean"].shape[-1] if arrays["mean"].ndim else 0
    like = Posterior(n_parameters=parameters, dim=int(dim), prior_precision=prior).state
    for name, expected in like._asdict().items():
        array = arrays[name]
        if array.shape != expected.shape or array.dtype != expected.dtype:
            raise FileError(f"the saved {name} has shape {array.shape} and type {array.dtype}")
        if not np.isfinite(array).all():
            raise FileError(f"the saved {name} is not finite")
    state = State(**{name: np.ascontiguousarray(arrays[name]) for name in State._fields})
    diagonals = [np.diagonal(m, axis1=1, axis2=2) for m in (state.precision, state.covariance)]
    never_negative = (state.n, state.squares, state.residual, state.bound, state.staleness)
    if any((d <= 0).any() for d in diagonals) or any((a < 0).any() for a in never_negative):
        raise FileError("the saved sums cannot have come about")
    if (state.n % 1 != 0).any() or (state.prior != prior).any():
        raise FileError("the saved counts or priors cannot have come about")
    return state
