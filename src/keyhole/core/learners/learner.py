"""`Learner`: a policy, and the conversion of observations before its posterior sees them."""

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
from keyhole.core.observers import CLIP, OPTIONS, Fill, Layout, Observer, Recipe
from keyhole.core.policies import Policy
from keyhole.core.posterior import Posterior
from keyhole.errors import InvalidValue, shown

# The options of a learner without features; with them they are the features'.
USUAL = {
    "intercept": False,
    "standardize": False,
    "missing": None,
    "clip": CLIP,
    "clip_rewards": True,
}
NOT_GIVEN: Any = object()


@dataclass(frozen=True, repr=False)
class Learner:
    """A linear-Gaussian learner: the recipe that `Bandit` and `simulate` both take.

    A learner is simulated as it is deployed: with the same seed both choose the same arms. A bare
    policy stands for `Learner(policy)`.

    Parameters
    ----------
    policy : Policy
        The policy, which scores arms.
    features : Features or Transformed, optional
        The encoding of records as numbers, which then has the five options below.
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
    clip_rewards : bool, default True
        False takes the first 32 rewards as they are: where most are 0 and a few are large, the
        large ones are no errors.

    Examples
    --------
    >>> import keyhole as kh
    >>> kh.Learner(kh.ThompsonSampling(v=1.0), intercept=True)
    Learner(ThompsonSampling(v=1.0), intercept=True)
    """

    policy: Policy
    features: Recipe | None = None
    _: KW_ONLY
    intercept: bool = NOT_GIVEN
    standardize: bool = NOT_GIVEN
    missing: Fill | None = NOT_GIVEN
    clip: float | None = NOT_GIVEN
    clip_rewards: bool = NOT_GIVEN

    def __post_init__(self) -> None:
        if not isinstance(self.policy, Policy):
            raise InvalidValue(
                "a learner needs a policy, a Policy such as ThompsonSampling(), "
                f"got {shown(self.policy)}"
            )
        if self.features is not None:
            self._take_options()
        for name, usual in USUAL.items():
            if getattr(self, name) is NOT_GIVEN:
                object.__setattr__(self, name, usual)
        for name, value in self._observer().options.items():  # checked, and plain
            object.__setattr__(self, name, value)

    def _take_options(self) -> None:
        """Take the options of the features."""
        if not isinstance(self.features, Recipe):
            raise InvalidValue(
                "features must be a Features, or a Transformed around a fitted transformer, "
                f"got {shown(self.features)}"
            )
        for name in OPTIONS:
            given, theirs = getattr(self, name), getattr(self.features, name)
            if given is not NOT_GIVEN and given != theirs:
                raise InvalidValue(
                    f"{name} is an option of the features here: give it to them, "
                    f"Features(..., {name}={given!r})"
                )
            object.__setattr__(self, name, getattr(self.features, name))

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
        """True if the posterior sees observations as they are."""
        return self.features is None and self._observer().is_plain

    def resolve(self, noise_scale: float) -> Self:
        """Return the learner for a world of this noise scale, which an "oracle" setting takes."""
        return replace(self, policy=self.policy.resolve(noise_scale))

    def _observer(self, dim: int = 1, layout: Layout | None = None) -> Observer:
        options = {name: getattr(self, name) for name in OPTIONS}
        return Observer(dim, **options, layout=layout)

    def arms(self, names: Iterable[Arm]) -> Arms:
        """Return arms with the parameters that this learner gives them."""
        sharing = self.policy.sharing
        is_open = sharing == "shared" and getattr(self.features, "arms", None) is not None
        is_hybrid = sharing == "hybrid"
        return Arms(names, shared=sharing != "per-arm", is_open=is_open, is_hybrid=is_hybrid)

    # -- the protocol -----------------------------------------------------------------------------

    def start(self, n_arms: int | Iterable[Arm], dim: int | None = None) -> LearnerState:
        """Return the state of a learner that has learned nothing.

        Parameters
        ----------
        n_arms : int or iterable of names
            The number of arms, or their names.
        dim : int, optional
            The length of an observation; with features, the number of their columns.
        """
        names: Any = range(int(n_arms)) if isinstance(n_arms, Integral) else n_arms
        arms = self.arms(names)
        encoder = None if self.features is None else self.features.start()
        if encoder is not None:
            if dim not in (None, encoder.dim) and not encoder.takes_rows:
                raise InvalidValue(
                    f"dim must be {encoder.dim}, the number of columns of the features, got {dim}"
                )
            observer = self._observer(encoder.dim, Layout.of(encoder))
            if observer.n_columns == 0:
                raise InvalidValue(
                    "the features have no column before a level was seen: give intercept=True, or "
                    "the levels of a category"
                )
        elif dim is None:
            raise InvalidValue("dim must be given: the length of an observation")
        else:
            observer = self._observer(dim)
        if arms.is_hybrid or arms.is_open or not observer.is_plain:
            self._check_unweighted()
        posterior = Posterior(
            n_parameters=arms.n_parameters,
            dim=observer.n_columns * (1 + len(arms.names) if arms.is_hybrid else 1),
            prior_precision=self.policy.prior_precision,
        )
        return LearnerState(arms, observer, posterior, encoder)

    def _check_unweighted(self) -> None:
        """Raise if the policy weighs rewards: those that wait or are exchanged have no weight."""
        if self.policy.resolve(1.0).plain_rule().weighted:
            raise InvalidValue(
                f"{self.policy!r} weighs rewards, and takes observations as they are: give "
                "sharing='per-arm' or 'shared', no intercept, standardize or missing, and no "
                "features of arms"
            )

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
        rows = np.atleast_2d(state.numbers(observation))
        n, dim = len(state.arms.names), state.observer.dim
        if rows.shape not in ((1, dim), (n, dim)):
            raise InvalidValue(
                f"observation must have shape ({dim},) or ({n}, {dim}), got {rows.shape}"
            )
        filled, design = state.prepared(rows)
        design = state.placed(design, state.arms)
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
        best = float(kernels.chance_rows(location, scale, place)[0])
        state.see(rows)
        row = int(place[0]) if len(rows) > 1 else 0
        state.last = rows[row], filled[row]
        rate = state.posterior.uniform_rate(rule)
        probability = kernels.mixed(best, rate, parameter_of.size)
        state.last_chosen = Chosen(int(place[0]), probability)
        return state.last_chosen

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
        raw = np.atleast_2d(state.numbers(observation))
        if raw.shape != (1, state.observer.dim):
            raise InvalidValue(
                f"observation must have shape ({state.observer.dim},), got {np.shape(observation)}"
            )
        seen, filled = state.last
        if not np.array_equal(raw[0], seen, equal_nan=True):
            filled = state.observer.filled(raw)[0]
        weights = None
        rule = self.policy.plain_rule()
        if rule.weighted:
            last = state.last_chosen
            if last.arm != arm or not np.array_equal(raw[0], seen):
                raise InvalidValue(
                    f"arm {arm} at {shown(raw[0])} is not the last choice: a weighted policy needs "
                    "its propensity, so learn each reward before the next choice, or use a Bandit"
                )
            weights = state.weights(rule, np.array([last.probability]))
        state.add([state.arms.names[arm]], filled[None], raw, np.array([reward]), "", weights)

    def coefficients(self, state: LearnerState) -> Floats:
        """Return the mean of each arm's coefficients in the features' own units, (n_arms, dim).

        They are NaN where columns are crossed or transformed: there is no coefficient of an
        observation's entry alone.
        """
        n, encoder = len(state.arms.names), state.encoder
        if not state.observer.layout.is_plain or (encoder is not None and encoder.takes_rows):
            return np.full((n, 1), np.nan)
        # Without the row of the constant, steps of numbers are diagonal.
        steps = np.diagonal(state.observer.steps())[self.intercept :]
        means: Floats = state.means()[:, self.intercept :] * steps
        return means

    def __repr__(self) -> str:
        if self.features is not None:
            return f"Learner({self.policy!r}, {self.features!r})"
        changed = [
            f"{f.name}={getattr(self, f.name)!r}"
            for f in fields(self)
            if f.name in USUAL and getattr(self, f.name) != USUAL[f.name]
        ]
        return f"Learner({', '.join([repr(self.policy), *changed])})"
