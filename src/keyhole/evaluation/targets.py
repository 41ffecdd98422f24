"""Targets: the policies to be evaluated, as exact probabilities of every arm in every round."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from keyhole import checks
from keyhole.core import Arm, Floats, Policy, Rule, arm_name
from keyhole.errors import InvalidValue, UnknownArm, shown
from keyhole.evaluation.logged import Logged, check_propensity
from keyhole.evaluation.replay import Checkpoints, Model, Replayed, replay
from keyhole.evaluation.scores import Scores, propensity_of, uniform_propensity

UNIFORM, AS_LOGGED = "uniform", "as logged"


@dataclass(frozen=True)
class FixedArm:
    """The target that always chooses one arm.

    Parameters
    ----------
    arm : str or int
        Name of the arm.
    """

    arm: Arm

    def __post_init__(self) -> None:
        object.__setattr__(self, "arm", arm_name(self.arm))


@dataclass(frozen=True)
class OnFeatures:
    """A policy whose posterior sees some coordinates of the observation only.

    Parameters
    ----------
    policy : Policy
        The policy.
    columns : sequence of int
        Coordinates of the logged observation that it sees.
    """

    policy: Policy
    columns: Sequence[int]

    def __post_init__(self) -> None:
        if not isinstance(self.policy, Policy):
            raise InvalidValue(f"policy must be a Policy, got {shown(self.policy)}")
        given = list(self.columns) if checks.is_listing(self.columns) else []
        if not given:
            raise InvalidValue(f"columns must be one or more indices, got {shown(self.columns)}")
        indices = tuple(checks.integer("a column", one, min_value=0) for one in given)
        object.__setattr__(self, "columns", indices)


@dataclass(frozen=True)
class WithFloor:
    """A policy that picks a candidate uniformly with a fixed probability.

    Parameters
    ----------
    policy : Policy or OnFeatures
        The policy otherwise.
    epsilon : float or "as logged", default "as logged"
        Probability of a uniform choice; by default that of the log in each round.
    """

    policy: Policy | OnFeatures
    epsilon: float | Literal["as logged"] = "as logged"

    def __post_init__(self) -> None:
        if not isinstance(self.policy, Policy | OnFeatures):
            raise InvalidValue(f"policy must be a Policy or OnFeatures, got {shown(self.policy)}")
        if not (isinstance(self.epsilon, str) and self.epsilon == AS_LOGGED):
            floor = checks.real("epsilon", self.epsilon, min_value=0.0, max_value=1.0)
            object.__setattr__(self, "epsilon", floor)


Target: TypeAlias = Policy | FixedArm | OnFeatures | WithFloor | str | Any


class Propensities(NamedTuple):
    """Probabilities of a target: in every round, and at the contexts of every checkpoint."""

    rows: Floats  # (n, K)
    at: Floats | None  # (m, K), or None if they are not known or not needed
    moves: bool  # whether the target changes with what was learned


class Tracks:
    """A log with its checkpoints, and the propensities of targets along it.

    Parameters
    ----------
    log : Logged
        A log in which every round has a reward.
    """

    def __init__(self, log: Logged) -> None:
        self.log, known = log, log.checkpoints
        if known is None:
            self.checkpoints = Checkpoints.plan(log.n_rounds)
        else:
            self.checkpoints = Checkpoints.of(known.starts, known.contexts)

    @cached_property
    def own(self) -> Replayed | None:
        """Scores of the logged posterior at the checkpoints, or None without observations."""
        if self.log.observation is None or self.log.mean is None:
            return None
        return replay(self.log, Model.of_log(self.log), Rule(), self.checkpoints)

    @cached_property
    def logged(self) -> Propensities:
        """Propensities of the logged policy."""
        log = self.log
        if log.propensity is None:
            raise InvalidValue(
                "log must have the probability of every arm here: give mean, width and dispersion, "
                "or probabilities"
            )
        at: Floats | None = None
        if log.checkpoints is not None:
            at = np.concatenate([np.empty((0, log.n_arms)), *log.checkpoints.probabilities])
        if at is None and self.own is not None and log.dispersion is not None:
            # The logged rule at the round of the checkpoint is known before that round.
            starts, contexts, counts = self.checkpoints
            rounds = np.repeat(starts, counts)
            scores = Scores(*self.own.at, log.optimism[rounds], log.dispersion[rounds])
            at = propensity_of(scores, log.epsilon[rounds], log.candidates[contexts])
        return Propensities(log.propensity, at, moves=True)

    def propensities(self, target: Target) -> Propensities:
        """Return the propensities of a target.

        Parameters
        ----------
        target : target
            The target, as in `evaluate`.

        Returns
        -------
        Propensities
            Its probabilities.

        Raises
        ------
        InvalidValue
            If the log does not have what the target needs, or the target is not valid.
        UnknownArm
            If the log does not have the target's arm, or not in every round.
        """
        if isinstance(target, WithFloor):
            return self._floored(target)
        if isinstance(target, OnFeatures):
            return self._replayed(target.policy, tuple(target.columns))
        if isinstance(target, Policy):
            return self._of_policy(target)
        if isinstance(target, FixedArm):
            return self._fixed(target.arm)
        if isinstance(target, str):
            return self._named(target)
        return self._own_probabilities(target)

    def _named(self, name: str) -> Propensities:
        if name in (UNIFORM, AS_LOGGED):
            if name in self.log.arms:
                raise InvalidValue(f"{name!r} is also an arm: give FixedArm({name!r}) or Uniform()")
            return self._uniform() if name == UNIFORM else self.logged
        return self._fixed(name)

    def _uniform(self) -> Propensities:
        return self._stationary(uniform_propensity(self.log.candidates))

    def _fixed(self, arm: Arm) -> Propensities:
        log = self.log
        if arm not in log.arms:
            raise UnknownArm(f"the log has no arm {shown(arm)}; its arms are {shown(log.arms)}")
        place = log.arms.index(arm)
        absent = ~log.candidates[:, place]
        if absent.any():
            raise UnknownArm(
                f"the arm {shown(arm)} was no candidate in row {int(absent.argmax())}: a target "
                "can choose candidates only"
            )
        propensity = np.zeros((log.n_rounds, log.n_arms))
        propensity[:, place] = 1.0
        return self._stationary(propensity)

    def _own_probabilities(self, given: Any) -> Propensities:
        log = self.log
        if not isinstance(given, np.ndarray | list | tuple):
            raise InvalidValue(
                "a target must be a Policy, FixedArm, OnFeatures, WithFloor, an arm, 'uniform', "
                f"'as logged' or an array of probabilities, got {shown(given)}"
            )
        propensity = checks.floats("target", given)
        if (
            propensity.ndim != 2
            or propensity.shape[1] != log.n_arms
            or len(propensity) < log.n_rounds
        ):
            raise InvalidValue(
                f"target must have a probability for each round and arm, shape ({log.n_rounds}, "
                f"{log.n_arms}), got {propensity.shape}"
            )
        check_propensity("target", propensity)
        propensity = propensity[: log.n_rounds]
        outside = (propensity > 0.0) & ~log.candidates
        if outside.any():
            t, i = (int(one) for one in np.argwhere(outside)[0])
            raise UnknownArm(
                f"target[{t}, {i}] must be 0, got {propensity[t, i]:g}: the arm {log.arms[i]!r} "
                "was no candidate in that row"
            )
        return self._stationary(propensity)

    def _floored(self, target: WithFloor) -> Propensities:
        propensities = self.propensities(target.policy)
        floor = self.log.epsilon if target.epsilon == AS_LOGGED else np.array(target.epsilon)
        mixed = np.broadcast_to(floor, (self.log.n_rounds,))[:, None]
        rows = (1.0 - mixed) * propensities.rows + mixed * uniform_propensity(self.log.candidates)
        return propensities._replace(rows=rows)

    def _stationary(self, propensity: Floats) -> Propensities:
        return Propensities(propensity, propensity[self.checkpoints.contexts], moves=False)

    def _of_policy(self, policy: Policy) -> Propensities:
        rule = policy.plain_rule()
        if rule.epsilon == 1.0:
            return self._uniform()
        is_fixed = not (rule.learned or rule.radius or rule.diversity or rule.joint)
        if not is_fixed or Model.of_policy(policy) != Model.of_log(self.log):
            return self._replayed(policy, None)
        mean, width = self.log.mean, self.log.width
        if mean is None or width is None:
            if self.log.observation is not None:
                return self._replayed(policy, None)
            raise InvalidValue(
                f"log must have the columns 'mean' and 'width', or 'observation', for the target "
                f"{policy!r}"
            )
        nothing = np.zeros(())
        scores = Scores(mean, width, nothing, nothing).under(rule)
        rows = propensity_of(scores, rule.epsilon, self.log.candidates)
        return Propensities(rows, None, moves=True)

    def _replayed(self, policy: Policy, columns: tuple[int, ...] | None) -> Propensities:
        rule = policy.plain_rule()
        if rule.joint:
            raise InvalidValue(
                f"the probabilities of {policy!r} are not known in closed form: give "
                "draw='per-arm', or probabilities of your own"
            )
        if self.log.checkpoints is not None:
            raise InvalidValue(
                f"the target {policy!r} needs a posterior of its own, which columns of this log "
                "do not give: rewards came late or were changed, a baseline was served, or its "
                "learner has units, a constant or predictions, and a replay would not learn what "
                "the logged policy had. Give a policy with the log's prior and sharing and a fixed "
                "v, such as ThompsonSampling(v=1.0) or Greedy()"
            )
        found = replay(self.log, Model.of_policy(policy, columns), rule)
        return Propensities(
            propensity_of(found.rows, rule.epsilon, self.log.candidates), None, moves=True
        )


def named_targets(policies: Any) -> dict[str, Target]:
    """Return targets by name, from a mapping, a list or a single target.

    Parameters
    ----------
    policies : mapping, iterable or target
        The targets. In a list, each is named by its repr, or by itself if it is a string.
    """
    if isinstance(policies, Mapping):
        found = {str(name): one for name, one in policies.items()}
    elif isinstance(policies, Policy | FixedArm | OnFeatures | WithFloor | str):
        found = {name_of(policies): policies}
    elif isinstance(policies, np.ndarray):
        found = {"probabilities": policies}
    elif isinstance(policies, Iterable):
        listed = list(policies)
        found = {name_of(one): one for one in listed}
        if len(found) < len(listed):
            raise InvalidValue("policies must be different: give a mapping with a name for each")
    else:
        raise InvalidValue(f"policies must be targets, got {shown(policies)}")
    if not found:
        raise InvalidValue("policies must be one or more targets, got none")
    return found


def name_of(target: Target) -> str:
    """Return the name of a target in a table."""
    if isinstance(target, str):
        return target
    if isinstance(target, FixedArm):
        return f"always {target.arm}"
    if isinstance(target, OnFeatures):
        return f"{target.policy!r} on columns {', '.join(map(str, target.columns))}"
    if isinstance(target, WithFloor):
        return f"{name_of(target.policy)} with floor {target.epsilon}"
    return repr(target) if isinstance(target, Policy) else "probabilities"
