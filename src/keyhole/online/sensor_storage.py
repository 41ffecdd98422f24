"""The file of a bandit with sensors: one npz file of plain arrays, as in `storage`.

The header has, besides `written_by`, `policy`, `arms`, `probabilities`, `random`, `lineage` and
`learned_ids` as there:

    format, version      "keyhole.sensor-bandit" and 1
    sensors              for each its name, dim, kind ("known", "pairs" or "repeats") and whether
                         it is centred
    context_dim, intercept, reward_scale, clip, em
                         the settings of the learner
    configurations       for each the index of its sensor (-1: the context) and the entries seen
    rewards              rewards whose context is not known: the decision's id, the arm, the
                         index of the sensor, the reward and the measurement (null: missing)
    known_contexts       the ids of decisions whose context is known
    first_rewards        the first rewards, whose median is the number that rewards count from
    reward_variance, estimated
                         s^2, and how many rewards there were when it was estimated

The arrays are those of the posterior (`storage`), `weights` (m, k), `numerators` (k,), `units`
(k, c) and `refreshed` (k,), and three flat ones: `sensors`, `pairs` and `sums` have one number
after the other of every sensor, of the moments of every calibrated one (those of all pairs, and
those that it was last estimated from), and of the sums of every configuration: n and sum r^2 of
every parameter, then of those that have rewards sum r u and the upper triangle of sum u u'. Where
entries drop out at random there are many configurations, and few of their parameters have rewards.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from keyhole import checks
from keyhole.core import (
    REWARDS,
    Arms,
    Floats,
    Moments,
    Policy,
    Posterior,
    Sensor,
    SensorLearner,
    SensorReward,
    SensorState,
    Sums,
)
from keyhole.core.kernels import Bits
from keyhole.errors import FileError, InvalidValue, shown
from keyhole.online import restoring, storage
from keyhole.online.lineage import Past
from keyhole.online.once import Once
from keyhole.online.truths import Truths

FORMAT = storage.SENSOR_FORMAT
KNOWN, PAIRS, REPEATS = "known", "pairs", "repeats"


class Parts(NamedTuple):
    """The parts of a bandit with sensors that are saved."""

    learner: SensorLearner
    state: SensorState
    random: Bits
    probabilities: bool
    pasts: dict[str, Past]
    once: Once
    truths: Truths


# -- writing ---------------------------------------------------------------------------------------


def snapshot(parts: Parts) -> storage.Record:
    """Return a bandit's parts as the content of a file, which shares no array with them."""
    learner, state = parts.learner, parts.state
    named = zip(learner.names, learner.sensors, strict=True)
    header = {
        "format": FORMAT,
        "version": storage.VERSION,
        "written_by": storage.writer(),
        "policy": storage.policy_record(learner.policy),
        "arms": list(state.arms.names),
        "sensors": [[name, one.dim, _kind(one), one.is_centred] for name, one in named],
        "context_dim": learner.context_dim,
        "intercept": learner.intercept,
        "reward_scale": learner.reward_scale,
        "clip": learner.clip,
        "em": learner.em,
        "configurations": [[one.sensor, one.seen.tolist()] for one in state.configurations],
        "rewards": _rewards(parts.truths),
        "known_contexts": parts.truths.known.listed(),
        "first_rewards": state.first_rewards,
        "reward_variance": state.reward_variance,
        "estimated": state.estimated,
        "probabilities": parts.probabilities,
        "random": parts.random.tolist(),
        "lineage": parts.pasts,
        "learned_ids": parts.once.recent.listed(),
    }
    arrays: dict[str, NDArray[Any]] = {
        **state.posterior.state._asdict(),
        "weights": state.weights,
        "numerators": state.numerators,
        "units": state.units,
        "refreshed": state.refreshed,
        "sensors": _flat([array for one in learner.sensors for array in _arrays(one)]),
        "pairs": _flat([array for pairs in _all_pairs(state) for array in pairs]),
        "sums": _flat([array for sums in state.sums for array in _sums_arrays(sums)]),
    }
    return storage.Record(header, arrays).copy()


def _kind(sensor: Sensor) -> str:
    if sensor.pairs is not None:
        return PAIRS
    return KNOWN if sensor.doubt is None else REPEATS


def _arrays(sensor: Sensor) -> list[Floats]:
    """Return the arrays that determine a sensor."""
    if sensor.pairs is not None:
        return list(sensor.pairs)
    known = [sensor.sensing, sensor.context_covariance, sensor.sensing_covariance]
    known += [sensor.mean, sensor.offset]
    return known if sensor.doubt is None else [*known, *(np.asarray(one) for one in sensor.doubt)]


def _rewards(truths: Truths) -> list[list[Any]]:
    """Return the rewards whose context is not known, as plain lists."""
    return [
        [key, one.arm, one.sensor, one.reward, [None if x != x else x for x in one.y.tolist()]]
        for key, each in truths.rewards.items()
        for one in each
    ]


def _all_pairs(state: SensorState) -> list[Moments]:
    """Return, for each calibrated sensor, all pairs and those that it was last estimated from."""
    found = [each for j in state.pairs for each in (state.pairs[j], state.sensors[j].pairs)]
    return [each for each in found if each is not None]


def _sums_arrays(sums: Sums) -> list[Floats]:
    """Return the numbers of a configuration that are not 0 for want of rewards."""
    upper = np.triu_indices(sums.moment.shape[1])
    arrays = [sums.n, sums.squares]
    for i in np.flatnonzero(sums.n).tolist():
        arrays += [sums.moment[i], sums.gram[i][upper]]
    return arrays


def _read_sums(numbers: _Numbers, k: int, f: int) -> Sums:
    """Return the sums of the next configuration.

    Parameters
    ----------
    numbers : _Numbers
        The numbers of all configurations.
    k : int
        The number of parameters.
    f : int
        The length of u.
    """
    n, squares = numbers.take(k), numbers.take(k)
    if (n < 0).any() or (n % 1 != 0).any() or (squares < 0).any():
        raise FileError("the saved sums must have whole counts, and squares of at least 0")
    sums, upper = Sums.empty(k, f), np.triu_indices(f)
    sums.n[:], sums.squares[:] = n, squares
    for i in np.flatnonzero(n).tolist():
        sums.moment[i] = numbers.take(f)
        sums.gram[i][upper] = numbers.take(len(upper[0]))
        sums.gram[i] += np.triu(sums.gram[i], 1).T
    return sums


def _flat(arrays: list[Floats]) -> Floats:
    return np.concatenate([np.empty(0), *(np.ravel(array) for array in arrays)])


# -- reading ---------------------------------------------------------------------------------------


class _Numbers:
    """The numbers of a flat array, taken one array at a time."""

    def __init__(self, name: str, arrays: dict[str, NDArray[Any]]) -> None:
        self.name, self.given = name, restoring.like(arrays, name, arrays[name].shape)
        self.place = 0

    def take(self, *shape: int) -> Floats:
        """Return the next array of a shape."""
        size = int(np.prod(shape))
        taken = self.given[self.place : self.place + size]
        if self.given.ndim != 1 or taken.size != size:
            raise FileError(f"the saved {self.name} are too few: {self.given.shape}")
        self.place += size
        return taken.reshape(shape).copy()

    def end(self) -> None:
        """Raise if there are more."""
        if self.place != self.given.size:
            raise FileError(f"the saved {self.name} are {self.given.size}, not {self.place}")


def parse(record: storage.Record, policy: Policy | None) -> Parts:
    """Return the parts of a bandit with sensors, or raise `FileError` for the first wrong field.

    Parameters
    ----------
    record : Record
        The result of `snapshot` or `storage.read`.
    policy : Policy or None
        One of the user's own class, which a file cannot bring back.
    """
    header, arrays = record
    try:
        learner = SensorLearner(
            storage.policy_of(header["policy"], policy),
            _sensors(header, arrays),
            intercept=header["intercept"],
            reward_scale=header["reward_scale"],
            clip=header["clip"],
            em=header["em"],
        )
        shared = learner.policy.sharing == "shared"
        state = SensorState(learner, Arms(storage.listed("arms", header["arms"]), shared=shared))
        _restore(state, header, arrays)
        return Parts(
            learner,
            state,
            storage.random_of(header["random"]),
            checks.flag("probabilities", header["probabilities"]),
            storage.pasts_of(header["lineage"]),
            Once(restoring.texts("learned_ids", header["learned_ids"])),
            _truths(state, header),
        )
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as reason:
        if isinstance(reason, FileError):
            raise
        raise FileError(f"the saved bandit is damaged: {reason}") from None


def _sensors(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> dict[Any, Sensor]:
    """Return the sensors by name."""
    numbers, d = _Numbers("sensors", arrays), checks.integer("context_dim", header["context_dim"])
    found: dict[Any, Sensor] = {}
    for name, given, kind, centred in storage.listed("sensors", header["sensors"]):
        dim = checks.integer("dim", given)
        if kind == PAIRS:
            found[name] = Sensor.of_pairs(_moments(numbers, d + dim), d, bool(centred))
            continue
        if kind not in (KNOWN, REPEATS):
            raise FileError(f"the saved sensor {name!r} has the unknown kind {shown(kind)}")
        sensor = Sensor(
            sensing=numbers.take(dim, d),
            context_covariance=numbers.take(d, d),
            sensing_covariance=numbers.take(dim, dim),
            mean=numbers.take(d),
            offset=numbers.take(dim),
        )
        if kind == REPEATS:
            gram, spread = numbers.take(dim, dim), numbers.take(d, d)
            sensor = sensor.doubted(gram, spread, float(numbers.take(1)[0]))
        found[name] = sensor
    numbers.end()
    return found


def _moments(numbers: _Numbers, size: int) -> Moments:
    counted, total, product = (numbers.take(size, size) for _ in range(3))
    moments = Moments(counted, total, product, numbers.take(size))
    counts = moments.pairs
    if not (counts == counts[0, 0]).all() or counts[0, 0] < 0 or counts[0, 0] % 1 != 0:
        raise FileError(
            "the saved pairs must be counted in whole numbers, the same for all entries"
        )
    spread = moments.covariance
    if np.linalg.eigvalsh(spread).min() < -restoring.ROUNDING * np.abs(spread).max(initial=1e-300):
        raise FileError("the saved pairs have a negative variance")
    return moments


def _truths(state: SensorState, header: dict[str, Any]) -> Truths:
    """Return the rewards whose context is not known, if they are among those of the sums."""
    truths = Truths(known=restoring.texts("known_contexts", header["known_contexts"]))
    left = [sums.n.copy() for sums in state.sums]
    for key, arm, sensor, reward, seen in storage.listed("rewards", header["rewards"]):
        j = checks.integer("sensor", sensor, min_value=0, max_value=len(state.learner.sensors) - 1)
        y = checks.with_missing("rewards", seen)
        if not isinstance(key, str) or y.shape != (state.learner.sensors[j].dim,):
            raise FileError("the saved rewards must have an id and a measurement of their sensor")
        place = state.places.get((j, (~np.isnan(y)).tobytes()))
        if place is None or left[place][state.arms.parameter(arm)] < 1.0 or key in truths.known:
            raise FileError(f"the saved reward of decision {key!r} is not among the sums")
        left[place][state.arms.parameter(arm)] -= 1.0
        one = SensorReward(arm, j, y, checks.real("reward", reward))
        truths.rewards.setdefault(key, []).append(one)
    return truths


def _restore(state: SensorState, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Set the learned state."""
    k, learner = state.arms.n_parameters, state.learner
    first = storage.listed("first_rewards", header["first_rewards"])
    if len(first) > REWARDS * learner.intercept:
        raise FileError(f"the saved first_rewards are too many: {len(first)}")
    state.see_first_rewards([checks.real("first_rewards", reward) for reward in first])
    pairs = _Numbers("pairs", arrays)
    for j, known in state.pairs.items():
        state.pairs[j], before = (_moments(pairs, len(known.origin)) for _ in range(2))
        if not known.seen[0] <= before.seen[0] <= state.pairs[j].seen[0]:
            raise FileError(
                "the saved pairs must be at least those that the sensor was estimated from, and "
                "those at least the ones that it was calibrated from"
            )
        state.estimate_sensor(j, before)
    pairs.end()
    sums = _Numbers("sums", arrays)
    for sensor, seen in storage.listed("configurations", header["configurations"]):
        place = checks.integer("sensor", sensor, min_value=-1, max_value=len(learner.sensors) - 1)
        dim = learner.context_dim if place < 0 else learner.sensors[place].dim
        if len(seen) != dim or not all(isinstance(one, bool) for one in seen):
            raise FileError(f"the saved configurations must say which of {dim} entries are seen")
        index = state.configuration(place, np.array(seen, dtype=bool))
        f = len(state.configurations[index].constant)
        state.sums[index] = _read_sums(sums, k, f)
    sums.end()
    c, prior = learner.n_columns, learner.policy.prior_precision
    state.units = restoring.like(arrays, "units", (k, c))
    state.set_bases()
    found = restoring.posterior_state(arrays, k, state.posterior.dim, prior)
    state.posterior = Posterior.of_state(found)
    m = len(state.configurations)
    if len(header["configurations"]) != m:
        raise FileError("a saved configuration is there twice")
    if not np.array_equal(np.sum([one.n for one in state.sums], axis=0), state.n):
        raise FileError("the saved counts of configurations do not add up to those of arms")
    state.weights = restoring.like(arrays, "weights", (m, k), nan=True)
    state.numerators = restoring.like(arrays, "numerators", (k,), nan=True)
    state.refreshed = restoring.like(arrays, "refreshed", (k,))
    counted = np.stack([one.n for one in state.sums]) > 0
    if (np.isnan(state.weights) == counted).any() or (state.weights[counted] <= 0).any():
        raise FileError("the saved weights must be positive where there are rewards")
    if (state.units < 0).any() or (state.refreshed < 0).any():
        raise FileError("the saved units and counts must not be negative")
    state.reward_variance = checks.real("reward_variance", header["reward_variance"], min_value=0.0)
    state.estimated = checks.real("estimated", header["estimated"], min_value=0.0)
    if learner.reward_scale is not None and state.reward_variance != learner.reward_scale**2:
        raise InvalidValue("reward_variance must be that of reward_scale")
