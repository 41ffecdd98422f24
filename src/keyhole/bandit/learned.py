"""What a bandit has learned: of its arms, by its features, and what still waits for their units."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from keyhole.bandit.arms import Arm, Arms
from keyhole.bandit.features import Effects, Features, Reward
from keyhole.errors import InvalidValue
from keyhole.kernels import Floats
from keyhole.moments import Moments
from keyhole.posterior import Posterior


class Learned:
    """A posterior of arms by name, in the units of some features.

    `waiting`: rewards that came before the units were settled. They are learned when those are.
    """

    def __init__(self, arms: Arms, features: Features, prior_precision: float) -> None:
        self.arms = arms
        self.features = features
        self.waiting: list[Reward] = []
        self.posterior = Posterior(
            n_parameters=1 if arms.shared else len(arms.names),
            dim=features.width,
            prior_precision=prior_precision,
        )

    @property
    def counts(self) -> dict[Arm, int]:
        """How many rewards the parameter of each arm has, those that wait included."""
        learned = self.posterior.count
        for reward in self.waiting:
            learned[self.arms.parameter(reward.arm)] += 1
        return dict(zip(self.arms.names, learned[self.arms.owner].tolist(), strict=True))

    @property
    def effects(self) -> dict[Arm, Effects]:
        """What each arm's reward is made of, in the features' own units."""
        # What the posterior sees of nothing (the constant), and of one more of each feature.
        steps = self.features.steps()
        estimate, width = self.posterior.predict(self.arms.owner, steps)
        error = width * self.posterior.noise_scale()[self.arms.owner]
        error[~(steps.any(axis=1) & self.features.is_settled)] = np.inf
        if self.features.intercept:
            estimate[0] += self.features.offset
        return {arm: Effects(estimate[:, k], error[:, k]) for k, arm in enumerate(self.arms.names)}

    # -- learning ---------------------------------------------------------------------------------

    def add(self, arms: Sequence[Arm], y: Floats, rewards: Floats) -> None:
        """Learn many rewards, or have them wait."""
        parameters = np.array([self.arms.parameter(arm) for arm in arms], dtype=np.int64)
        if self.features.is_settled:
            given = rewards - self.features.offset
            self.posterior.learn_many(parameters, self.features.design(y), given)
        else:
            self.waiting += map(Reward, arms, y, rewards.tolist())
            self._settle()

    def see(self, rows: Floats) -> None:
        """Take note of observations."""
        self.features.see(rows)
        self._settle()

    def _settle(self) -> None:
        """If all units are settled by now, learn what was waiting for them."""
        self.features.settle_zero(self.waiting)
        if self.waiting and self.features.is_settled:
            waiting, self.waiting = self.waiting, []
            self.features.teach(self.posterior, self.arms, waiting)

    # -- arms -------------------------------------------------------------------------------------

    def add_arms(self, names: Iterable[Arm]) -> None:
        """Add arms of which nothing is known yet."""
        wider = self.arms.plus(names)
        self.posterior, self.arms = self._aligned(wider), wider

    def remove_arms(self, names: Iterable[Arm]) -> None:
        """Remove arms, and with them what was learned of them ("shared": only the names)."""
        gone = self.arms.among(names)
        fewer = Arms((arm for arm in self.arms.names if arm not in gone), shared=self.arms.shared)
        self.posterior, self.arms = self._aligned(fewer), fewer
        if fewer.shared:
            self.waiting = [reward._replace(arm=fewer.names[0]) for reward in self.waiting]
        else:
            self.waiting = [reward for reward in self.waiting if reward.arm in fewer]

    # -- merging ----------------------------------------------------------------------------------

    def merge(self, other: Learned, base: Learned | None) -> None:
        """Add what another has learned since `base`, from which both went on; or nothing."""
        old = () if base is None else base.arms.names
        if not all(arm in self.arms and arm in other.arms for arm in old):
            raise InvalidValue("every arm of the base must be an arm of both bandits")
        new = [arm for arm in other.arms.names if arm not in self.arms]
        arms = self.arms.plus(new) if new else self.arms
        features = self.features.copy()
        features.take_units_of(other.features)
        known = Moments.empty(features.dim) if base is None else base.features.moments
        features.moments.merge(other.features.moments, known)
        waiting: list[Reward] = []
        if features.is_settled:
            posterior = self._told_in(features, arms)
            posterior.merge(
                other._told_in(features, arms),
                base=None if base is None else base._told_in(features, arms),
            )
        else:
            posterior = self._aligned(arms)
            already = [] if base is None else base.waiting
            if not (self._began_with(already) and other._began_with(already)):
                raise InvalidValue("both bandits must have learned all that their base has")
            waiting = self.waiting + other.waiting[len(already) :]
        self.posterior, self.arms = posterior, arms
        self.features, self.waiting = features, waiting
        self.see(np.empty((0, features.dim)))

    def _began_with(self, rewards: list[Reward]) -> bool:
        """Whether these are the first that wait here."""
        mine = self.waiting[: len(rewards)]
        return len(mine) == len(rewards) and all(
            (a.arm, a.reward) == (b.arm, b.reward)
            and np.array_equal(a.observation, b.observation, equal_nan=True)
            for a, b in zip(mine, rewards, strict=True)
        )

    def _told_in(self, features: Features, arms: Arms) -> Posterior:
        """A copy of all that was learned, in the units of `features` and for these arms."""
        posterior = self._aligned(arms)
        posterior.change_units(features.from_units_of(self.features))
        if self.features.is_settled:  # else all of it waits, and the posterior is empty
            posterior.move_rewards(self.features.offset - features.offset)
        features.teach(posterior, arms, self.waiting)
        return posterior

    def _aligned(self, arms: Arms) -> Posterior:
        """A copy of the posterior with the parameters of `arms`, in their order."""
        posterior = self.posterior.copy()
        if not arms.shared:
            unknown = [arm for arm in arms.names if arm not in self.arms]
            if unknown:
                posterior.extend(len(unknown))
            place = {arm: i for i, arm in enumerate((*self.arms.names, *unknown))}
            posterior.keep([place[arm] for arm in arms.names])
        return posterior
