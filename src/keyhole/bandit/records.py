"""Between a bandit and the plain header and arrays of its file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from keyhole import checks, policies
from keyhole.bandit.arms import Arm, Arms
from keyhole.bandit.features import Features, Reward, Units
from keyhole.errors import FileError, InvalidValue
from keyhole.kernels import State
from keyhole.moments import Moments
from keyhole.policies import Policy
from keyhole.posterior import Posterior


class Saved(NamedTuple):
    """What a file holds, checked: a bandit can be put together from it."""

    policy: Policy
    arms: tuple[Arm, ...]
    probabilities: bool
    random: dict[str, Any]
    features: Features
    waiting: list[Reward]
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
        features = _features(header, arrays)
        saved = Saved(
            policy=policy,
            arms=arms,
            probabilities=bool(header["probabilities"]),
            random=_random(header["random"]),
            features=features,
            waiting=_waiting(header, arrays, features.dim),
            state=_state(
                header["version"],
                arrays,
                1 if shared else len(arms),
                features.width,
                policy.prior_precision,
            ),
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


def feature_arrays(features: Features, waiting: list[Reward]) -> dict[str, NDArray[Any]]:
    """What follows from the observations so far, where anything does."""
    if features.is_plain:
        return {}
    arrays: dict[str, NDArray[Any]] = {
        **{f"seen_{name}": array for name, array in features.moments._asdict().items()},
        "waiting_y": np.array([one.observation for one in waiting]).reshape(-1, features.dim),
        "waiting_reward": np.array([one.reward for one in waiting], dtype=np.float64),
    }
    if features.units is not None:
        arrays |= {f"units_{name}": array for name, array in features.units._asdict().items()}
    return arrays


def _features(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Features:
    if header["version"] == 1:  # there was nothing but plain observations then
        return Features(int(arrays["mean"].shape[-1]))
    features = Features(checks.whole("dim", header["dim"]), **header["features"])
    if features.is_plain:
        return features
    dim, learned = features.dim, bool(arrays["n"].any())
    # Before version 3 rewards were counted from 0.
    zero = header["zero"] if header["version"] > 2 else 0.0 if learned else features.zero
    features.zero = None if zero is None else checks.number("zero", zero)
    if features.zero is None and learned:
        raise FileError("the saved bandit has learned rewards from a zero that is not there")
    shapes = {name: array.shape for name, array in features.moments._asdict().items()}
    seen = {name: _like(arrays, f"seen_{name}", shape) for name, shape in shapes.items()}
    features.moments = Moments(**seen)
    if (features.moments.pairs < 0).any():
        raise FileError("the saved counts of observations cannot have come about")
    if "units_scale" in arrays:
        units = {name: _like(arrays, f"units_{name}", (dim,)) for name in Units._fields}
        features.units = Units(**units)
        if (features.units.scale < 0).any():
            raise FileError("the saved units cannot have come about")
    elif features.standardize and learned:
        raise FileError("the saved bandit has learned in units that are not there")
    return features


def _waiting(
    header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], dim: int
) -> list[Reward]:
    arms = header.get("waiting", [])
    if not arms:
        return []
    if unknown := set(arms) - set(header["arms"]):
        raise FileError(f"the saved rewards are of arms that are not there: {unknown}")
    y = _like(arrays, "waiting_y", (len(arms), dim), gaps=True)
    rewards = _like(arrays, "waiting_reward", (len(arms),))
    return [Reward(*one) for one in zip(arms, y, rewards.tolist(), strict=True)]


def _like(
    arrays: Mapping[str, NDArray[Any]], name: str, shape: tuple[int, ...], *, gaps: bool = False
) -> NDArray[np.float64]:
    array = arrays[name]
    if array.shape != shape or array.dtype != np.float64:
        raise FileError(f"the saved {name} has shape {array.shape} and type {array.dtype}")
    if not (np.isfinite(array) | (gaps & np.isnan(array))).all():
        raise FileError(f"the saved {name} is not finite")
    return np.ascontiguousarray(array)


def _packed(arrays: Mapping[str, NDArray[Any]], shape: tuple[int, ...]) -> NDArray[np.float64]:
    """The matrices of a file from when B and P were two, of which the lower triangles counted."""
    precision, covariance = (np.tril(_like(arrays, n, shape)) for n in ("precision", "covariance"))
    k, dim, _ = shape
    matrices = np.zeros((k, dim + 1, dim))
    matrices[:, :-1] = precision.transpose(0, 2, 1)
    matrices[:, 1:] += covariance
    return matrices


def _state(
    version: int, arrays: Mapping[str, NDArray[Any]], parameters: int, dim: int, prior: float
) -> State:
    """The arrays as a state, like that of a posterior of this size, and possible."""
    if version < 3:
        arrays = {**arrays, "matrices": _packed(arrays, (parameters, dim, dim))}
    like = Posterior(n_parameters=parameters, dim=dim, prior_precision=prior).state
    shapes = {name: array.shape for name, array in like._asdict().items()}
    state = State(**{name: _like(arrays, name, shape) for name, shape in shapes.items()})
    diagonals = [np.diagonal(m, axis1=1, axis2=2) for m in (state.precision, state.covariance)]
    never_negative = (state.n, state.squares, state.residual, state.bound, state.staleness)
    if any((d <= 0).any() for d in diagonals) or any((a < 0).any() for a in never_negative):
        raise FileError("the saved sums cannot have come about")
    if (state.n % 1 != 0).any() or (state.prior != prior).any():
        raise FileError("the saved counts or priors cannot have come about")
    return state
