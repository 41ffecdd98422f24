"""`Logged`: the columns of a log of decisions that an evaluation reads, checked once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keyhole import checks
from keyhole.core import Arm, Floats, Ints, Sharing
from keyhole.errors import InvalidValue, UnknownArm, shown
from keyhole.evaluation.arms import arm_names
from keyhole.evaluation.formats import Format, Progress, read_columns
from keyhole.evaluation.known import SUM_TOLERANCE, KnownCheckpoints
from keyhole.evaluation.scores import Scores, propensity_of

# The square of its inverse, and a sum of many, are numbers.
SMALLEST = 1e-100
# Columns that are of the log, and have no entry for each round.
WHOLE = ("arms", "sharing", "prior_precision", "checkpoints", "vetoed", "left_out")


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Logged:
    """Columns of a log: n rounds in the order of their decisions, K arms.

    Before a round, arm i has the score mean_i + width_i (optimism_i + dispersion_i z_i) with z_i a
    standard normal. With probability epsilon a candidate is picked uniformly instead.

    Parameters
    ----------
    arms : sequence of str or int
        Names of the K arms.
    chosen : array_like of int of shape (n,)
        Index in `arms` of the chosen arm.
    probability : array_like of shape (n,)
        Probability with which it was chosen, above 0 and at most 1.
    reward : array_like of shape (n,)
        Its reward, NaN where it has not come.
    mean : array_like of shape (n, K), optional
        Expected reward of each arm before the round, on the scale of the rewards; NaN for an arm
        that was no candidate. It is the reward model of doubly robust estimates.
    width : array_like of shape (n, K), optional
        Width of each arm's score.
    optimism : float or array_like of shape (n,) or (n, K), default 0.0
        Optimism of the logged rule.
    dispersion : float or array_like of shape (n,) or (n, K), optional
        Dispersion of the logged rule. A learned v differs from arm to arm.
    epsilon : float or array_like of shape (n,), default 0.0
        Probability of a uniform choice.
    probabilities : array_like of shape (n, K), optional
        Probability of every arm, 0 for an arm that was no candidate. By default they are computed
        from the scores.
    observation : array_like of shape (n, d) or (n, K, d), optional
        Observation as the posterior sees it, one for all arms or one for each; NaN for an arm that
        was no candidate.
    sharing : {"per-arm", "shared", "hybrid"}, default "per-arm"
        Whether arms have parameters of their own, as in `Policy`.
    prior_precision : float, default 1.0
        Prior precision of the logged posterior.
    candidates : array_like of bool of shape (n, K), optional
        Whether each arm could be chosen. By default arms with a mean, or else with a probability,
        or else all.
    checkpoints : mapping, optional
        Probabilities of the logged policy at other contexts, where they do not follow from
        `observation`: `starts`, rounds before which it was asked; `contexts`, an array of earlier
        rounds for each; and `probabilities` of every arm at their contexts, (m, K) for each.
    vetoed : Logged or mapping, optional
        Rounds in which another arm was taken in place of the chosen one, with the same columns.
        They are not used; `audit_log` tells whether vetoes depend on the chosen arm.
    left_out : mapping of str to int, optional
        How many other rounds are not among these, by reason, for the audit.

    Raises
    ------
    InvalidValue
        If a column has a wrong shape or value. The message names the column and the row.
    UnknownArm
        If `chosen` has an index without an arm.

    Examples
    --------
    >>> import keyhole as kh
    >>> log = kh.evaluation.Logged(
    ...     arms=["A", "B"],
    ...     chosen=[0, 1, 1],
    ...     probability=[0.5, 0.5, 0.8],
    ...     reward=[1.0, 0.0, float("nan")],
    ... )
    >>> log
    Logged(3 rounds, 2 arms, rewards up to round 2)
    """

    arms: tuple[Arm, ...]
    chosen: Ints  # (n,)
    probability: Floats  # (n,)
    reward: Floats  # (n,)
    mean: Floats | None  # (n, K)
    width: Floats | None  # (n, K)
    optimism: Floats  # (n, K)
    dispersion: Floats | None  # (n, K)
    epsilon: Floats  # (n,)
    probabilities: Floats | None  # (n, K)
    observation: Floats | None  # (n, 1, d) or (n, K, d)
    sharing: Sharing
    prior_precision: float
    candidates: NDArray[np.bool_]  # (n, K)
    checkpoints: KnownCheckpoints | None
    vetoed: Logged | None
    left_out: tuple[tuple[str, int], ...]

    def __init__(
        self,
        *,
        arms: Any,
        chosen: ArrayLike,
        probability: ArrayLike,
        reward: ArrayLike,
        mean: ArrayLike | None = None,
        width: ArrayLike | None = None,
        optimism: ArrayLike = 0.0,
        dispersion: ArrayLike | None = None,
        epsilon: ArrayLike = 0.0,
        probabilities: ArrayLike | None = None,
        observation: ArrayLike | None = None,
        sharing: Sharing = "per-arm",
        prior_precision: float = 1.0,
        candidates: ArrayLike | None = None,
        checkpoints: Any = None,
        vetoed: Any = None,
        left_out: Mapping[str, int] | None = None,
    ) -> None:
        names = arm_names(arms)
        e = _column("probability", probability)
        n, k = len(e), len(names)
        _refuse(~(e > 0.0) | ~(e <= 1.0), "probability", e, "above 0 and at most 1")
        _refuse(e < SMALLEST, "probability", e, f"at least {SMALLEST:g}: weights beyond overflow")
        columns: dict[str, Any] = {
            "arms": names,
            "chosen": _chosen(chosen, n, names),
            "probability": e,
            "reward": _shaped("reward", checks.with_missing("reward", reward), (n,)),
            "mean": _table("mean", mean, n, k),
            "width": _table("width", width, n, k),
            "optimism": _spread("optimism", optimism, n, k),
            "dispersion": None
            if dispersion is None
            else _spread("dispersion", dispersion, n, k, low=0.0),
            "epsilon": _spread("epsilon", epsilon, n, None, low=0.0, high=1.0),
            "probabilities": _table("probabilities", probabilities, n, k, missing=False),
            "observation": _observation(observation, n, k),
            "sharing": sharing,
            "prior_precision": checks.positive("prior_precision", prior_precision),
            "checkpoints": KnownCheckpoints.of(checkpoints, n, k),
            "vetoed": None if vetoed is None else Logged.of(vetoed),
            "left_out": _left_out(left_out),
        }
        if not isinstance(sharing, str) or sharing not in get_args(Sharing):
            raise checks.unknown("sharing", sharing, get_args(Sharing))
        columns["candidates"] = _candidates(candidates, columns, n, k)
        self._set(columns)
        self._check_scores()
        self._check_probabilities()
        self._check_observation()

    @classmethod
    def of(
        cls,
        source: object,
        *,
        format: str | Format | None = None,  # noqa: A002 - the word of the command line, too
        progress: Progress | None = None,
    ) -> Logged:
        """Return the columns of a log, or of a file of another library.

        Parameters
        ----------
        source : Logged, Log, path, list of paths, mapping, frame or Arrow table
            A folder stands for all its files. A mapping, or the one that a method `columns()`
            returns, has the arguments of `Logged` as keys, or is obp's.
        format : str or Format, optional
            Name of the format, or a format with settings, see `keyhole.evaluation.formats`. By
            default that of the content, if it is certain.
        progress : callable, optional
            Called with the bytes that were read and those of all files.

        Returns
        -------
        Logged
            The columns, checked.

        Raises
        ------
        InvalidValue
            If the source is of another kind, or its columns are unknown, missing or not valid.
        FileError
            If a file is not of its format. The message names the line and the field.
        """
        if isinstance(source, Logged):
            if format is not None:
                raise InvalidValue(f"format must be None for a Logged, got {shown(format)}")
            return source
        given = read_columns(source, format, progress)
        known = [field.name for field in fields(cls)]
        for name in given:
            if name not in known:
                raise checks.unknown("a column", name, known)
        for name in ("arms", "chosen", "probability", "reward"):
            if name not in given:
                raise InvalidValue(f"log must have the column {name!r}, got {', '.join(given)}")
        return cls(**given)

    @property
    def n_rounds(self) -> int:
        """Number of rounds."""
        return len(self.chosen)

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return len(self.arms)

    @cached_property
    def n_rewarded(self) -> int:
        """Number of rounds before the first one without a reward.

        Rewards that arrived are no sample of all rewards: successes often come sooner. So rounds
        after the first missing reward are not used.
        """
        missing = np.isnan(self.reward)
        return int(missing.argmax()) if missing.any() else self.n_rounds

    @property
    def missing(self) -> str:
        """What is said of rounds without a reward; empty if there are none."""
        if self.n_rewarded == self.n_rounds:
            return ""
        n = int(np.isnan(self.reward).sum())
        return (
            f"{n:,} of {self.n_rounds:,} rounds have no reward, the first of them round "
            f"{self.n_rewarded + 1:,}, and rounds from that one on are not used"
        )

    @property
    def scores(self) -> Scores | None:
        """Scores of the logged rule before each round, or None if the log has none."""
        if self.mean is None or self.width is None or self.dispersion is None:
            return None
        return Scores(self.mean, self.width, self.optimism, self.dispersion)

    @cached_property
    def computed(self) -> Floats | None:
        """Probability of every arm computed from the scores, (n, K), or None without scores."""
        scores = self.scores
        return None if scores is None else propensity_of(scores, self.epsilon, self.candidates)

    @property
    def propensity(self) -> Floats | None:
        """Probability of every arm, as logged or else as computed, (n, K); None if not known."""
        return self.computed if self.probabilities is None else self.probabilities

    def head(self, n: int) -> Logged:
        """Return the first n rounds."""
        if n == self.n_rounds:
            return self
        cut = object.__new__(type(self))
        per_round = {field.name for field in fields(self)}.difference(WHOLE)
        cut._set(
            {
                field.name: value[:n] if field.name in per_round and value is not None else value
                for field in fields(self)
                for value in [getattr(self, field.name)]
            }
        )
        if self.checkpoints is not None:
            cut._set({"checkpoints": self.checkpoints.head(n)})
        known = self.__dict__.get("computed")
        if known is not None:
            cut.__dict__["computed"] = known[:n]
        return cut

    def __repr__(self) -> str:
        rewarded = self.n_rewarded
        until = "" if rewarded == self.n_rounds else f", rewards up to round {rewarded:,}"
        return f"Logged({self.n_rounds:,} rounds, {self.n_arms} arms{until})"

    def _set(self, columns: dict[str, Any]) -> None:
        for name, value in columns.items():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            object.__setattr__(self, name, value)

    def _check_scores(self) -> None:
        if self.width is not None:
            if self.mean is None:
                raise InvalidValue("width must come with mean, got None for mean")
            _refuse(self.width < 0.0, "width", self.width, "at least 0")
            differ = np.isnan(self.width) != np.isnan(self.mean)
            _refuse(differ, "width", self.width, "missing where mean is missing, and only there")
        if self.mean is not None:
            row = np.arange(self.n_rounds)
            lost = np.isnan(self.mean[row, self.chosen])
            if lost.any():
                t = int(lost.argmax())
                raise InvalidValue(
                    f"mean[{t}, {self.chosen[t]}] must be a number, got nan: the arm "
                    f"{self.arms[self.chosen[t]]!r} was chosen in that round"
                )

    def _check_probabilities(self) -> None:
        p = self.probabilities
        if p is None:
            return
        check_propensity("probabilities", p)
        rule = "0 where mean is missing" if self.mean is not None else "0 for no candidate"
        _refuse((p > 0.0) & ~self.candidates, "probabilities", p, rule)
        own = p[np.arange(self.n_rounds), self.chosen]
        off = np.abs(own - self.probability) > SUM_TOLERANCE
        if off.any():
            t = int(off.argmax())
            raise InvalidValue(
                f"probabilities[{t}, {self.chosen[t]}] must equal probability[{t}] = "
                f"{self.probability[t]:g}, got {own[t]:g}"
            )

    def _check_observation(self) -> None:
        """Refuse missing entries of candidates; those of other arms become 0, and are not used."""
        if self.observation is None or not np.isnan(self.observation).any():
            return
        lost = np.isnan(self.observation)
        seen = self.candidates[:, :, None] if lost.shape[1] > 1 else np.True_
        wrong = lost & seen
        if wrong.any():
            t, arm, column = _place(wrong)
            at = f"{t}, {arm}, {column}" if lost.shape[1] > 1 else f"{t}, {column}"
            raise InvalidValue(
                f"observation[{at}] must be a number, got nan: log what the posterior saw"
            )
        self._set({"observation": np.where(lost, 0.0, self.observation)})


def _left_out(given: Any) -> tuple[tuple[str, int], ...]:
    if given is not None and not isinstance(given, Mapping):
        raise InvalidValue(f"left_out must be a mapping of reasons to counts, got {shown(given)}")
    return tuple(
        (str(reason), checks.integer(f"left_out[{reason!r}]", n, min_value=0))
        for reason, n in (given or {}).items()
    )


def _place(wrong: NDArray[np.bool_]) -> tuple[int, ...]:
    """Return the place of the first wrong value."""
    return tuple(int(i) for i in np.argwhere(wrong)[0])


def check_propensity(name: str, propensity: Floats) -> None:
    """Raise if rows are not probabilities that add up to 1.

    Parameters
    ----------
    name : str
        Name of the table in error messages.
    propensity : ndarray of shape (n, K)
        The table.
    """
    _refuse(~(propensity >= 0.0) | ~(propensity <= 1.0), name, propensity, "from 0 to 1")
    total = propensity.sum(axis=1)
    off = np.abs(total - 1.0) > SUM_TOLERANCE
    if off.any():
        t = int(off.argmax())
        raise InvalidValue(f"{name}[{t}] must add up to 1, got {total[t]:g}")


def _chosen(given: ArrayLike, n: int, arms: tuple[Arm, ...]) -> Ints:
    try:
        chosen = np.asarray(given)
    except Exception as reason:  # a user-defined object may raise anything
        raise InvalidValue(f"chosen cannot be read as an array: {shown(reason)}") from reason
    if chosen.dtype.kind not in "iu" or chosen.shape != (n,):
        raise InvalidValue(
            f"chosen must be {n} indices of arms, whole numbers from 0 to {len(arms) - 1}, got "
            f"{chosen.dtype} of shape {chosen.shape}"
        )
    outside = (chosen < 0) | (chosen >= len(arms))
    if outside.any():
        t = int(outside.argmax())
        raise UnknownArm(f"chosen[{t}] must be from 0 to {len(arms) - 1}, got {chosen[t]}")
    return np.array(chosen, np.int64)


def _column(name: str, value: ArrayLike) -> Floats:
    column = checks.with_missing(name, value)
    if column.ndim != 1 or column.size == 0:
        raise InvalidValue(f"{name} must have a number for each round, got shape {column.shape}")
    return column


def _shaped(name: str, array: Floats, shape: tuple[int, ...]) -> Floats:
    if array.shape != shape:
        raise InvalidValue(f"{name} must have shape {shape}, got {array.shape}")
    return array


def _table(
    name: str, value: ArrayLike | None, n: int, k: int, *, missing: bool = True
) -> Floats | None:
    if value is None:
        return None
    table = checks.with_missing(name, value) if missing else checks.floats(name, value)
    return _shaped(name, table, (n, k))


def _spread(
    name: str,
    value: ArrayLike,
    n: int,
    k: int | None,
    *,
    low: float = -checks.LARGEST,
    high: float = checks.LARGEST,
) -> Floats:
    """Return a setting of the rule as (n, k), or (n,) with k None, without a copy of each entry."""
    given = checks.floats(name, value)
    allowed = [(), (n,)] if k is None else [(), (n,), (n, k)]
    if given.shape not in allowed:
        raise InvalidValue(
            f"{name} must be a number or have shape {' or '.join(map(str, allowed[1:]))}, "
            f"got {given.shape}"
        )
    _refuse((given < low) | (given > high), name, given, f"from {low:g} to {high:g}")
    if k is None:
        return np.broadcast_to(given, (n,))
    return np.broadcast_to(given[:, None] if given.ndim == 1 else given, (n, k))


def _candidates(
    given: ArrayLike | None, columns: dict[str, Any], n: int, k: int
) -> NDArray[np.bool_]:
    """Return which arms could be chosen, as given, or else by their means or probabilities."""
    if given is not None:
        found = np.array(given)
        if found.dtype != np.bool_ or found.shape != (n, k):
            raise InvalidValue(
                f"candidates must be True or False for each round and arm, shape ({n}, {k}), got "
                f"{found.dtype} of shape {found.shape}"
            )
        chosen, mean = columns["chosen"], columns["mean"]
        lost = ~found[np.arange(n), chosen]
        if lost.any():
            t = int(lost.argmax())
            raise InvalidValue(
                f"candidates[{t}, {chosen[t]}] must be True, got False: the arm "
                f"{columns['arms'][chosen[t]]!r} was chosen in that round"
            )
        if mean is not None:
            _refuse(
                np.isnan(mean) == found, "mean", mean, "missing for no candidate, and only there"
            )
        return found
    if columns["mean"] is not None:
        return np.asarray(~np.isnan(columns["mean"]))
    if columns["probabilities"] is not None:
        return np.asarray(columns["probabilities"] > 0.0)
    return np.broadcast_to(np.True_, (n, k))


def _observation(value: ArrayLike | None, n: int, k: int) -> Floats | None:
    if value is None:
        return None
    given = checks.with_missing("observation", value)
    y = given[:, None] if given.ndim == 2 else given
    if y.ndim != 3 or y.shape[0] != n or y.shape[1] not in (1, k) or y.shape[2] == 0:
        raise InvalidValue(
            f"observation must have shape ({n}, d) or ({n}, {k}, d), got {given.shape}"
        )
    return y


def _refuse(wrong: NDArray[np.bool_], name: str, values: Floats, rule: str) -> None:
    """Raise with the place of the first wrong value, if there is one."""
    if wrong.any():
        place = _place(wrong)
        at = f"[{', '.join(map(str, place))}]" if place else ""
        raise InvalidValue(f"{name}{at} must be {rule}, got {values[place]:g}")
