"""`Learner`: a policy, and what is done to observations before its posterior sees them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, fields, replace
from numbers import Integral
from typing import Any, Self

import numpy as np

from keyhole import checks
from keyhole.core import kernels
from keyhole.core.kernels import Floats
from keyhole.core.learners.arms import Arm, Arms
from keyhole.core.learners.draws import Draws
from keyhole.core.learners.joint import choose_jointly
from keyhole.core.learners.protocol import Chosen
from keyhole.core.learners.state import LearnerState
from keyhole.core.observers import CLIP, Fill, Observer
from keyhole.core.policies import Policy
from keyhole.core.posterior import Posterior
from keyhole.errors import InvalidValue, shown


@dataclass(frozen=True, repr=False)
class Learner:
    """A linear-Gaussian learner: the recipe that `Bandit` and `simulate` both take.

    What is deployed is what is simulated: with the same seed both choose the same arms. A bare
    policy stands for `Learner(policy)`.

    Parameters
    ----------
    policy : Policy
        How arms are scored.
    intercept : bool, default False
        Fit a constant per arm. Rewards are centred by the median of the first 8.
    standardize : bool, default False
        Convert each feature to units of its own spread (and, with `intercept`, to a middle of 0).
        The unit of a feature is fixed when it was seen 32 times, from its quartiles, and replaced
        later if it turns out wrong by a factor of 3. Until the first unit is fixed, arms are
        picked uniformly and rewards wait.
    missing : {"predict", "mean", "zero", "drop"}, optional
        Replace missing entries (NaN): "predict" by their best linear prediction from the others,
        by the mean and covariance of all observations before; "mean" by their mean so far; "zero"
        by 0. "drop" neither chooses by nor learns from an observation with a missing entry.
        Without it they are an error.
    clip : float or None, default 10
        With `standardize`, move features, and the first 32 rewards, that are more than this many
        units from their middle to that limit. None takes all as they are. `Bandit` warns of clipped
        values; `simulate` does not.

    Examples
    --------
    >>> import keyhole as kh
    >>> kh.Learner(kh.ThompsonSampling(v=1.0), intercept=True)
    Learner(ThompsonSampling(v=1.0), intercept=True)
    """

    policy: Policy
    _: KW_ONLY
    intercept: bool = False
    standardize: bool = False
    missing: Fill | None = None
    clip: float | None = CLIP

    def __post_init__(self) -> None:
        if not isinstance(self.policy, Policy):
            raise InvalidValue(
                "a learner needs a policy, a Policy such as ThompsonSampling(), "
                f"got {shown(self.policy)}"
            )
        for name, value in self._observer(1).options.items():  # checked, and plain
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, learner: object) -> Learner:
        """Return a learner itself, or the plain learner of a policy."""
        if isinstance(learner, type):
            raise InvalidValue(
                f"learner must be an object, not a class: {learner.__name__}(...) in place of "
                f"{learner.__name__}"
            )
        return learner if isinstance(learner, Learner) else cls(learner)  # type: ignore[arg-type]

    @property
    def options(self) -> dict[str, Any]:
        """All settings but the policy."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "policy"}

    @property
    def is_plain(self) -> bool:
        """Whether the posterior sees observations as they are."""
        return self._observer(1).is_plain

    def resolve(self, noise_scale: float) -> Self:
        """Return the learner for a world of this noise scale, which an "oracle" setting takes."""
        return replace(self, policy=self.policy.resolve(noise_scale))

    def _observer(self, dim: int) -> Observer:
        return Observer(
            dim,
            intercept=self.intercept,
            standardize=self.standardize,
            missing=self.missing,
            clip=self.clip,
        )

    # -- the protocol -----------------------------------------------------------------------------

    def start(self, n_arms: int | Iterable[Arm], dim: int) -> LearnerState:
        """Return the state of a learner that has learned nothing.

        Parameters
        ----------
        n_arms : int or iterable of names
            The number of arms, or their names.
        dim : int
            The length of an observation.
        """
        names: Any = range(int(n_arms)) if isinstance(n_arms, Integral) else n_arms
        arms = Arms(names, shared=self.policy.sharing == "shared")
        observer = self._observer(dim)
        posterior = Posterior(
            n_parameters=arms.n_parameters,
            dim=observer.n_columns,
            prior_precision=self.policy.prior_precision,
        )
        return LearnerState(arms, observer, posterior)

    def choose(self, state: LearnerState, observation: Floats, draws: Draws) -> Chosen:
        """Choose an arm by its index, as `AnyLearner.choose`; the observation counts as seen.

        Parameters
        ----------
        state : LearnerState
            What `start` returned.
        observation : array_like of shape (dim,) or (n_arms, dim)
            One observation for all arms, or one for each.
        draws : Draws
            Random numbers.
        """
        rows = np.atleast_2d(state.observer.numbers(observation))
        n, dim = len(state.arms.names), state.observer.dim
        if rows.shape not in ((1, dim), (n, dim)):
            raise InvalidValue(
                f"observation must have shape ({dim},) or ({n}, {dim}), got {rows.shape}"
            )
        filled, design = state.prepared(rows)
        rule = state.rule_now(self.policy.plain_rule())
        parameter_of = state.arms.parameter_of
        if rule.joint:
            chosen, _ = choose_jointly(state.posterior, rule, design, n, draws)
            state.see(rows)
            row = chosen.arm if len(rows) > 1 else 0
            state.last = rows[row], filled[row]
            return chosen
        chooser = kernels.Chooser(state.posterior.core, rule, parameter_of, keeps=True)
        place, _, location, scale = chooser.choose_rounds(
            design[None], np.array(draws.normals)[None], np.array(draws.uniforms)[None]
        )
        # Rounding takes a sure choice past 1.
        best = float(kernels.chance_rows(location, scale, place).clip(0.0, 1.0)[0])
        state.see(rows)
        row = int(place[0]) if len(rows) > 1 else 0
        state.last = rows[row], filled[row]
        probability = (1.0 - rule.epsilon) * best + rule.epsilon / parameter_of.size
        return Chosen(int(place[0]), probability)

    def learn(self, state: LearnerState, arm: int, observation: Floats, reward: float) -> None:
        """Learn the reward of the arm of this index, as `AnyLearner.learn`.

        Missing entries are those that were predicted when the arm was chosen, if this is the
        observation of the last choice, and predicted now otherwise.

        Parameters
        ----------
        state : LearnerState
            What `start` returned, which is changed.
        arm : int
            The index of the arm.
        observation : array_like of shape (dim,)
            The observation of that arm.
        reward : float
            Its reward.
        """
        arm = checks.integer("arm", arm, min_value=0, max_value=len(state.arms.names) - 1)
        reward = checks.real("reward", reward)
        raw = np.atleast_2d(state.observer.numbers(observation))
        if raw.shape != (1, state.observer.dim):
            raise InvalidValue(
                f"observation must have shape ({state.observer.dim},), got {np.shape(observation)}"
            )
        seen, filled = state.last
        if not np.array_equal(raw[0], seen, equal_nan=True):
            filled = state.observer.filled(raw)[0]
        state.add([state.arms.names[arm]], filled[None], raw, np.array([reward]), key="")

    def coefficients(self, state: LearnerState) -> Floats:
        """Return the mean of each arm's coefficients in the features' own units, (n_arms, dim)."""
        # Without the row of the constant, steps are diagonal.
        steps = np.diagonal(state.observer.steps())[self.intercept :]
        means: Floats = state.posterior.mean[:, self.intercept :] * steps
        return means[state.arms.parameter_of]

    def __repr__(self) -> str:
        changed = [
            f"{f.name}={getattr(self, f.name)!r}"
            for f in fields(self)
            if f.name != "policy" and getattr(self, f.name) != f.default
        ]
        return f"Learner({', '.join([repr(self.policy), *changed])})"
