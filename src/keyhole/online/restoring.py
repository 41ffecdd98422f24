"""The state of a bandit from header and arrays of its file (the layout is in `storage`).

Nothing is trusted: shape, type and range of every array are checked, that counts and samples fit
together, and that the caches of the posterior follow from its sums. Arrays are kept as they are
given, and are checked without a second copy of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from keyhole import checks
from keyhole.core import (
    SAMPLE,
    Arms,
    Encoder,
    Floats,
    Layout,
    LearnerState,
    Moments,
    Observer,
    Posterior,
    Provisional,
    Sample,
    Units,
    Waiting,
)
from keyhole.core.kernels import State
from keyhole.errors import FileError, shown

Arrays: TypeAlias = Mapping[str, NDArray[Any]]

# Sums of products of numbers up to `checks.LARGEST` stay below it.
LARGEST_SAVED = 1e120
# The caches of a state may have lost digits by up to this since they were last computed anew.
DRIFT = 1e-3
# More values than any log has; twice as many can still be counted.
MOST_SEEN = 2**53
# An eigenvalue of correlations below this is rounding.
ROUNDING = 1e-9
# Numbers of a matrix, or of several, that are checked at a time.
AT_A_TIME = 2**14


def texts(name: str, given: Any) -> list[str]:
    """Return a field of a header that is a list of texts; raise if it is none.

    Parameters
    ----------
    name : str
        The name of the field.
    given : object
        Its value.
    """
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        raise FileError(f"the saved {name} must be a list of strings, got {shown(given)}")
    return given


def observer(header: Mapping[str, Any], arrays: Arrays, encoder: Encoder | None) -> Observer:
    """Return the observer, with its statistics.

    Parameters
    ----------
    header, arrays
        The content of a file.
    encoder : Encoder or None
        How records become observations.
    """
    # Features whose categories all grow have no column before their first record.
    least = 1 if encoder is None else 0
    dim = checks.integer("dim", header["dim"], min_value=least, max_value=10**7)
    if arrays["matrices"].size < dim**2:  # before anything of that size is allocated
        raise FileError(f"the saved matrices are smaller than dim={dim} says")
    if encoder is not None and encoder.dim != dim:
        raise FileError(f"the saved features make {encoder.dim} columns, and dim is {dim}")
    layout = None if encoder is None else Layout.of(encoder)
    found = Observer(dim, **header["observer"], layout=layout)
    if found.is_plain:
        return found
    zero, learned = header["zero"], bool(np.any(arrays["n"]))
    found.zero = None if zero is None else checks.real("zero", zero)
    if found.zero is None and learned:
        raise FileError("the saved zero of rewards is missing, though rewards were learned")
    found.moments = Moments(**_like_those_of(found.moments, "seen", arrays))
    found.snapshot = Moments(**_like_those_of(found.snapshot, "snapshot", arrays))
    for moments in (found.moments, found.snapshot):
        _check_moments(moments)
    found.sample = _sample(found.sample, "sample", arrays)
    found.reward_sample = _sample(found.reward_sample, "reward_sample", arrays)
    found.reward_unit = _units(found.reward_unit, "reward_unit", arrays)
    if "units_scale" in arrays:
        found.units = _units(Units.unknown(dim), "units", arrays)
    elif found.standardize and learned:
        raise FileError("the saved units are missing, though rewards were learned")
    return found


def _check_moments(moments: Moments) -> None:
    """Check that sums over pairs are those of some rows: by Cauchy and Schwarz."""
    if (moments.pairs < 0).any():
        raise FileError("the saved counts of observations must not be negative")
    size = np.sqrt(np.maximum(moments.product.diagonal(), 0.0))
    limit = np.outer(size, size) * (1.0 + ROUNDING) + 1e-300
    if (moments.product.diagonal() < 0).any() or (np.abs(moments.product) > limit).any():
        raise FileError("the saved products of observations do not fit together")


def _sample(known: Sample, prefix: str, arrays: Arrays) -> Sample:
    sample = Sample(**_like_those_of(known, prefix, arrays))
    size = -(-sample.seen // np.maximum(sample.stride, 1))
    wrong = (sample.seen < 0) | (sample.seen > MOST_SEEN) | (sample.stride < 1) | (size > SAMPLE)
    if wrong.any() or (sample.stride & (sample.stride - 1)).any():  # powers of two
        raise FileError("the saved samples do not fit their counts")
    return sample


def _units(known: Units, prefix: str, arrays: Arrays) -> Units:
    units = Units(**_like_those_of(known, prefix, arrays))
    if (units.scale < 0).any():
        raise FileError("the saved units must not be negative")
    return units


def learned(
    header: Mapping[str, Any],
    arrays: Arrays,
    arms: Arms,
    observer: Observer,
    encoder: Encoder | None,
    *,
    prior: float,
) -> LearnerState:
    """Return the state of the learner, which keeps the arrays.

    Parameters
    ----------
    header, arrays
        The content of a file.
    arms : Arms
        The names of the arms.
    observer : Observer
        The observer.
    encoder : Encoder or None
        How records become observations.
    prior : float
        The prior precision of the policy.
    """
    parts = 1 + len(arms.names) if arms.is_hybrid else 1
    state = posterior_state(arrays, arms.n_parameters, parts * observer.n_columns, prior)
    found = LearnerState(arms, observer, Posterior.of_state(state), encoder)
    waiting = _rewards("waiting", header, arrays, arms, {"observation": observer.dim})
    found.waiting = [Waiting(**one) for one in waiting]
    shapes = {"observation": observer.dim, "design": observer.n_columns}
    provisional = _rewards("provisional", header, arrays, arms, shapes)
    found.provisional = [Provisional(**one) for one in provisional]
    return found


def _rewards(
    name: str, header: Mapping[str, Any], arrays: Arrays, arms: Arms, rows: dict[str, int]
) -> list[dict[str, Any]]:
    names, keys = header[name], texts(f"{name}_keys", header[f"{name}_keys"])
    if len(keys) != len(names):
        raise FileError(f"the saved {name} rewards do not fit their keys")
    if not names:
        return []
    if unknown := [arm for arm in names if arm not in arms and not arms.is_open]:
        raise FileError(f"the saved rewards are of an unknown arm: {unknown[0]!r}")
    n = len(names)
    columns = {
        row: like(arrays, f"{name}_{row}", (n, d), nan=row == "observation")
        for row, d in rows.items()
    }
    rewards = like(arrays, f"{name}_reward", (n,)).tolist()
    return [
        {
            **{row: column[k] for row, column in columns.items()},
            "arm": arm,
            "reward": rewards[k],
            "key": keys[k],
        }
        for k, arm in enumerate(names)
    ]


def _like_those_of(known: Any, prefix: str, arrays: Arrays) -> dict[str, NDArray[Any]]:
    return {
        name: like(arrays, f"{prefix}_{name}", array.shape, dtype=array.dtype)
        for name, array in known._asdict().items()
    }


def like(
    arrays: Arrays, name: str, shape: tuple[int, ...], *, nan: bool = False, dtype: Any = np.float64
) -> NDArray[Any]:
    """Return an array of a file, if it is of this shape and type and holds finite numbers.

    Parameters
    ----------
    arrays : mapping of str to ndarray
        The arrays of a file.
    name : str
        The name of the array.
    shape : tuple of int
        The shape that it must have.
    nan : bool, default False
        Allow NaN.
    dtype : dtype, default float64
        The type that it must have.
    """
    array = arrays[name]
    if array.shape != shape or array.dtype != dtype:
        raise FileError(f"the saved {name} has shape {array.shape} and type {array.dtype}")
    # The smallest and the largest number tell, and take no memory: NaN comes through min and max,
    # and is passed over by fmin and fmax.
    least, largest = (np.fmin, np.fmax) if nan else (np.minimum, np.maximum)
    ends = [float(find.reduce(array, axis=None)) for find in (least, largest)] if array.size else []
    if any(math.isinf(end) or (math.isnan(end) and not nan) for end in ends):
        raise FileError(f"the saved {name} is not finite")
    if any(abs(end) > LARGEST_SAVED for end in ends):
        raise FileError(f"the saved {name} holds numbers beyond {LARGEST_SAVED:g}")
    # Arrays of a file that others wrote may be in another order.
    return np.require(array, requirements=["C", "W"])


def posterior_state(arrays: Arrays, n_parameters: int, dim: int, prior: float) -> State:
    """Return the arrays as a state of this size, if sums and caches fit together.

    Parameters
    ----------
    arrays : mapping of str to ndarray
        The arrays of a file.
    n_parameters, dim : int
        The size.
    prior : float
        The precision of the policy's prior.
    """
    k, d = n_parameters, dim
    shapes = dict.fromkeys(State._fields, (k,))
    shapes |= {"matrices": (k, d + 1, d), "moment": (k, d), "mean": (k, d)}  # type: ignore[dict-item]
    state = State(**{name: like(arrays, name, shape) for name, shape in shapes.items()})
    never_negative = (
        "n",
        "weight",
        "squares",
        "residual",
        "penalty",
        "trace",
        "bound",
        "staleness",
    )
    for name in never_negative:
        if (getattr(state, name) < 0).any():
            raise FileError(
                f"the saved {name} must not be negative, got {getattr(state, name).min()}"
            )
    if (state.weight > state.n * (1.0 + ROUNDING)).any():
        raise FileError("the saved weight must be at most n: no reward counts more than once")
    if (state.n % 1 != 0).any() or (state.prior != prior).any():
        raise FileError("the saved counts must be whole numbers, and the prior the policy's")
    _check_caches(state)
    return state


def _check_caches(state: State) -> None:
    """Check that B is positive definite, and that P and the mean are its inverse and P b.

    A few parameters at a time, so that memory never holds a second copy of all.
    """
    k, d = state.mean.shape
    step = max(1, AT_A_TIME // d**2)
    for start in range(0, k, step):
        some = Posterior.of_state(State(*(array[start : start + step] for array in state)))
        if (some.moment[some.count == 0] != 0).any():
            raise FileError("the saved moments are of arms without a reward")
        _check_inverse(some)


def _check_inverse(some: Posterior) -> None:
    """Check the caches of some parameters.

    The diagonal of B is scaled to 1, whatever the units of features: the error that rounding may
    cause in B P grows with the condition of the scaled matrix. That of the mean is one of the
    terms it was summed from, |mean_i| <= sqrt(P_ii sum r^2), which may cancel to 0.
    """
    precision, covariance, mean = some.precision, some.covariance, some.mean
    diagonals = [np.einsum("kdd->kd", matrix) for matrix in (precision, covariance)]
    if not all((diagonal > 0).all() for diagonal in diagonals):
        raise FileError("the saved precision or covariance is not positive")
    if (some.state.bound < diagonals[1].max(axis=1) * (1.0 - DRIFT)).any():
        raise FileError("the saved bounds are below the saved covariance")
    size = np.sqrt(diagonals[0])
    scaled = precision / size[:, :, None] / size[:, None, :]
    lowest = np.linalg.eigvalsh(scaled)[:, 0]
    if (lowest < -ROUNDING).any():
        raise FileError("the saved precision is not positive definite")
    product = scaled @ (covariance * size[:, :, None] * size[:, None, :])
    off = np.abs(product - np.eye(size.shape[1])).max(axis=(1, 2))
    expected: Floats = np.einsum("kde,ke->kd", covariance, some.moment)
    largest = np.abs(mean).max(axis=1) + np.abs(expected).max(axis=1)
    terms = np.sqrt(diagonals[1].max(axis=1) * some.squares)
    moved = np.abs(mean - expected).max(axis=1) > 2 * DRIFT * largest + ROUNDING * terms + 1e-300
    # Where features are collinear to rounding, no digit of the caches follows from the sums.
    sound = lowest > ROUNDING
    if (sound & ((off > DRIFT / lowest.clip(min=ROUNDING)) | moved)).any():
        raise FileError("the saved covariance or mean does not follow from the saved sums")
