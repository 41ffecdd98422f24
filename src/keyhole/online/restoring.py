"""Between a bandit and the plain header and arrays of its file.

The header is JSON: policy, arms, options, random stream, and what is not an array. The arrays are
those of the posterior's state by name, and with the prefixes seen_ (moments of observations),
sample_ and units_ (units of features), reward_sample_ and reward_unit_ (of rewards), waiting_ and
provisional_ (rewards that wait, or were learned by early predictions), those of the rest.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from keyhole import checks
from keyhole.core import (
    POLICIES,
    SAMPLE,
    Arms,
    Features,
    Floats,
    Learner,
    LearnerState,
    Moments,
    Policy,
    Posterior,
    Provisional,
    Sample,
    Units,
    Waiting,
)
from keyhole.core.kernels import Bits, State
from keyhole.errors import FileError, InvalidValue, shown
from keyhole.online.lineage import Past
from keyhole.online.once import Once

Arrays: TypeAlias = Mapping[str, NDArray[Any]]

# Sums of products of numbers up to `checks.LARGEST` stay below it.
LARGEST_SAVED = 1e120
# The caches of a state may have lost digits by up to this since they were last computed anew.
DRIFT = 1e-3
# More values than anybody has seen; twice as many can still be counted.
MOST_SEEN = 2**53
# An eigenvalue of correlations below this is rounding.
ROUNDING = 1e-9


class Saved(NamedTuple):
    """What a file holds, checked: the parts of a bandit."""

    learner: Learner
    learned: LearnerState
    random: Bits  # (2, 4)  the states of its streams
    probabilities: bool
    pasts: dict[str, Past]
    once: Once
    columns: tuple[str, ...] | None


# -- writing ---------------------------------------------------------------------------------------


def recorded(saved: Saved) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the header and the arrays of a bandit's parts; none is shared with the bandit."""
    learned, features = saved.learned, saved.learned.features
    header = {
        "policy": policy_record(saved.learner.policy),
        "arms": list(learned.arms.names),
        "dim": features.dim,
        "features": features.options,
        "zero": features.zero,
        "probabilities": saved.probabilities,
        "random": saved.random.tolist(),
        "lineage": saved.pasts,
        "learned_ids": saved.once.recent.listed(),
        "columns": None if saved.columns is None else list(saved.columns),
        "waiting": [one.arm for one in learned.waiting],
        "waiting_keys": [one.key for one in learned.waiting],
        "provisional": [one.arm for one in learned.provisional],
    }
    arrays: dict[str, NDArray[Any]] = {
        name: array.copy() for name, array in learned.posterior.state._asdict().items()
    }
    if not features.is_plain:
        arrays |= _prefixed("seen", features.moments)
        arrays |= _prefixed("sample", features.sample)
        arrays |= _prefixed("reward_sample", features.reward_sample)
        arrays |= _prefixed("reward_unit", features.reward_unit)
        arrays |= {} if features.units is None else _prefixed("units", features.units)
        arrays |= _columns("waiting", learned.waiting, Waiting)
        arrays |= _columns("provisional", learned.provisional, Provisional)
    return header, arrays


def _prefixed(prefix: str, arrays: Any) -> dict[str, NDArray[Any]]:
    return {f"{prefix}_{name}": array.copy() for name, array in arrays._asdict().items()}


def _columns(prefix: str, rows: list[Any], kind: Any) -> dict[str, NDArray[Any]]:
    """Return one array for each field of many rewards but arm and key, which are texts."""
    if not rows:
        return {}
    names = [name for name in kind._fields if name not in ("arm", "key")]
    return {f"{prefix}_{name}": np.array([getattr(row, name) for row in rows]) for name in names}


def policy_record(policy: Policy) -> dict[str, Any]:
    """Return a policy as its name and its settings, as plain as JSON leaves them."""
    kind = type(policy)
    ours = kind in POLICIES.values()
    name = kind.__name__ if ours else f"{kind.__module__}.{kind.__qualname__}"
    try:
        text = json.dumps({"name": name, "settings": asdict(policy)}, default=_plain)
    except (TypeError, ValueError, RecursionError) as reason:
        raise InvalidValue(f"the settings of {policy!r} cannot be written down: {reason}") from None
    record: dict[str, Any] = json.loads(text)
    return record


def _plain(value: object) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{value!r} is neither a number, a string nor an array")


# -- reading ---------------------------------------------------------------------------------------


def parse(header: Mapping[str, Any], arrays: Arrays, policy: Policy | None) -> Saved:
    """Return the parts of a bandit.

    Parameters
    ----------
    header, arrays
        What `recorded` gave.
    policy : Policy or None
        One of the user's own class, which a file cannot bring back.

    Raises
    ------
    FileError
        For the first thing that is not as saved.
    """
    try:
        policy = _policy(header["policy"], policy)
        arms = Arms(_list(header["arms"]), shared=policy.sharing == "shared")
        features = _features(header, arrays)
        return Saved(
            learner=Learner(policy, **features.options),
            learned=_learned(header, arrays, arms, features, policy.prior_precision),
            random=_random(header["random"]),
            probabilities=checks.flag("probabilities", header["probabilities"]),
            pasts=_pasts(header["lineage"]),
            once=Once(_texts("learned_ids", header["learned_ids"])),
            columns=_column_names(header["columns"], features.dim),
        )
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as reason:
        if isinstance(reason, FileError):
            raise
        raise FileError(f"the saved bandit is damaged: {reason}") from None


def _policy(record: Mapping[str, Any], given: Policy | None) -> Policy:
    if given is not None:
        if policy_record(given) != record:
            raise FileError(f"the bandit was saved with {record}, not with {policy_record(given)}")
        return given
    ours = {kind.__name__: kind for kind in POLICIES.values()}
    if record["name"] not in ours:
        raise FileError(
            f"the bandit's policy {record['name']!r} is none of Keyhole's: "
            f"give it to load(path, policy=...), with the settings {record['settings']}"
        )
    return ours[record["name"]](**record["settings"])


def _random(words: Any) -> Bits:
    are_states = isinstance(words, list) and [len(state) for state in words] == [4, 4]
    if not are_states or not all(
        type(word) is int and 0 <= word < 2**64 for state in words for word in state
    ):
        raise FileError(
            "the saved random streams must be two lists of four whole numbers below 2**64, "
            f"got {shown(words)}"
        )
    return np.array(words, dtype=np.uint64)


def _pasts(record: Mapping[str, Any]) -> dict[str, Past]:
    return {
        run: Past(*(checks.integer("lineage", number, min_value=0) for number in past))
        for run, past in record.items()
    }


def _list(given: Any) -> list[Any]:
    if not isinstance(given, list):
        raise FileError(f"the saved arms must be a list, got {shown(given)}")
    return given


def _texts(name: str, given: Any) -> list[str]:
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        raise FileError(f"the saved {name} must be a list of strings, got {shown(given)}")
    return given


def _column_names(given: Any, dim: int) -> tuple[str, ...] | None:
    if given is None:
        return None
    names = tuple(_texts("columns", given))
    if len(names) != dim:
        raise FileError(f"the saved columns are {len(names)}, and dim is {dim}")
    return names


def _features(header: Mapping[str, Any], arrays: Arrays) -> Features:
    features = Features(checks.integer("dim", header["dim"], max_value=10**7), **header["features"])
    if features.is_plain:
        return features
    zero, learned = header["zero"], bool(np.any(arrays["n"]))
    features.zero = None if zero is None else checks.real("zero", zero)
    if features.zero is None and learned:
        raise FileError("the saved bandit has learned rewards from a zero that is not there")
    seen = _like_those_of(features.moments, "seen", arrays)
    features.moments = Moments(**seen)
    if (features.moments.pairs < 0).any():
        raise FileError("the saved counts of observations must not be negative")
    features.sample = Sample(**_like_those_of(features.sample, "sample", arrays))
    rewards = _like_those_of(features.reward_sample, "reward_sample", arrays)
    features.reward_sample = Sample(**rewards)
    features.reward_unit = Units(**_like_those_of(features.reward_unit, "reward_unit", arrays))
    for sample in (features.sample, features.reward_sample):
        size = -(-sample.seen // np.maximum(sample.stride, 1))
        wrong = (sample.seen < 0) | (sample.seen > MOST_SEEN) | (sample.stride < 1)
        if wrong.any() or (size > SAMPLE).any():
            raise FileError("the saved samples do not fit their counts")
    if "units_scale" in arrays:
        features.units = Units(**_like_those_of(Units.unknown(features.dim), "units", arrays))
        if (features.units.scale < 0).any() or (features.reward_unit.scale < 0).any():
            raise FileError("the saved units must not be negative")
    elif features.standardize and learned:
        raise FileError("the saved bandit has learned in units that are not there")
    return features


def _learned(
    header: Mapping[str, Any], arrays: Arrays, arms: Arms, features: Features, prior: float
) -> LearnerState:
    state = _state(arrays, arms.n_parameters, features.n_columns, prior)
    learned = LearnerState(arms, features, Posterior.of_state(state))
    waiting = _rewards("waiting", header, arrays, arms, {"observation": features.dim})
    keys = _texts("waiting_keys", header["waiting_keys"])
    if len(keys) != len(waiting):
        raise FileError("the saved rewards that wait do not fit their keys")
    learned.waiting = [Waiting(**one, key=key) for one, key in zip(waiting, keys, strict=True)]
    shapes = {"observation": features.dim, "design": features.n_columns}
    provisional = _rewards("provisional", header, arrays, arms, shapes)
    learned.provisional = [Provisional(**one) for one in provisional]
    return learned


def _rewards(
    name: str, header: Mapping[str, Any], arrays: Arrays, arms: Arms, rows: dict[str, int]
) -> list[dict[str, Any]]:
    names = header[name]
    if not names:
        return []
    if unknown := [arm for arm in names if arm not in arms]:
        raise FileError(f"the saved rewards are of an arm that is not there: {unknown[0]!r}")
    n = len(names)
    columns = {
        row: _like(arrays, f"{name}_{row}", (n, d), nan=row == "observation")
        for row, d in rows.items()
    }
    rewards = _like(arrays, f"{name}_reward", (n,)).tolist()
    return [
        {"arm": arm, "reward": rewards[k], **{row: column[k] for row, column in columns.items()}}
        for k, arm in enumerate(names)
    ]


def _like_those_of(known: Any, prefix: str, arrays: Arrays) -> dict[str, NDArray[Any]]:
    return {
        name: _like(arrays, f"{prefix}_{name}", array.shape, dtype=array.dtype)
        for name, array in known._asdict().items()
    }


def _like(
    arrays: Arrays, name: str, shape: tuple[int, ...], *, nan: bool = False, dtype: Any = np.float64
) -> NDArray[Any]:
    """Return an array of a file, if it is of this shape and type and holds finite numbers."""
    array = arrays[name]
    if array.shape != shape or array.dtype != dtype:
        raise FileError(f"the saved {name} has shape {array.shape} and type {array.dtype}")
    if not (np.isfinite(array) | (nan & np.isnan(array))).all():
        raise FileError(f"the saved {name} is not finite")
    if array.size and np.nanmax(np.abs(array), initial=0.0) > LARGEST_SAVED:
        raise FileError(f"the saved {name} holds numbers beyond {LARGEST_SAVED:g}")
    # Arrays out of a pickle may be read-only, and of a file in another order.
    return np.require(array, requirements=["C", "W", "O"])


def _state(arrays: Arrays, n_parameters: int, dim: int, prior: float) -> State:
    """Return the arrays as a state of this size, if sums and caches fit together."""
    k, d = n_parameters, dim
    shapes = dict.fromkeys(State._fields, (k,))
    shapes |= {"matrices": (k, d + 1, d), "moment": (k, d), "mean": (k, d)}  # type: ignore[dict-item]
    state = State(**{name: _like(arrays, name, shape) for name, shape in shapes.items()})
    never_negative = ("n", "squares", "residual", "penalty", "trace", "bound", "staleness")
    for name in never_negative:
        if (getattr(state, name) < 0).any():
            raise FileError(
                f"the saved {name} must not be negative, got {getattr(state, name).min()}"
            )
    if (state.n % 1 != 0).any() or (state.prior != prior).any():
        raise FileError("the saved counts must be whole numbers, and the prior the policy's")
    _check_caches(Posterior.of_state(state))
    return state


def _check_caches(posterior: Posterior) -> None:
    """Check that B is positive definite, and that P and the mean are its inverse and P b.

    With the diagonal of B scaled to 1, whatever the units of features: what rounding may change of
    B P grows with the condition of that.
    """
    step = max(1, 2**22 // posterior.dim**2)  # a few parameters at a time: no second copy of all
    for start in range(0, posterior.n_parameters, step):
        some = Posterior.of_state(State(*(a[start : start + step] for a in posterior.state)))
        diagonals = [np.einsum("kdd->kd", m) for m in (some.precision, some.covariance)]
        if not all((diagonal > 0).all() for diagonal in diagonals):
            raise FileError("the saved precision or covariance is not positive")
        size = np.sqrt(diagonals[0])
        if (some.moment[some.count == 0] != 0).any():
            raise FileError("the saved moments are of arms without a reward")
        scaled = some.precision / size[:, :, None] / size[:, None, :]
        values = np.linalg.eigvalsh(scaled)
        if (values[:, 0] < -ROUNDING).any():
            raise FileError("the saved precision is not positive definite")
        # Where features are collinear to rounding, caches follow from the sums but in no digit.
        sound = values[:, 0] > ROUNDING
        product = scaled @ (some.covariance * size[:, :, None] * size[:, None, :])
        off = np.abs(product - np.eye(posterior.dim)).max(axis=(1, 2))
        mean: Floats = np.einsum("kde,ke->kd", some.covariance, some.moment)
        largest = np.abs(some.mean).max(axis=1) + np.abs(mean).max(axis=1)
        moved = np.abs(some.mean - mean).max(axis=1) > 2 * DRIFT * largest + 1e-300
        if (sound & ((off > DRIFT / values[:, 0].clip(min=ROUNDING)) | moved)).any():
            raise FileError("the saved covariance or mean does not follow from the saved sums")
