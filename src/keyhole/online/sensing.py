"""`SensorBandit`: a bandit whose observations are measurements of sensors."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from keyhole import checks
from keyhole.core import (
    Arm,
    Arms,
    Belief,
    Draws,
    Floats,
    Policy,
    Posterior,
    Seed,
    Sensor,
    SensorLearner,
    SensorReward,
    SensorState,
    choice_probabilities,
    choice_streams,
    kernels,
)
from keyhole.core.kernels import Bits
from keyhole.errors import InvalidValue, KeyholeWarning, shown
from keyhole.files import Source, Target
from keyhole.online import arguments, sensor_storage, sharing, storage
from keyhole.online.bandit import Bandit
from keyhole.online.decision import Decision
from keyhole.online.holding import held_interrupts
from keyhole.online.lineage import Lineage
from keyhole.online.once import Once
from keyhole.online.own import OwnBandit
from keyhole.online.truths import Truths


class SensorBandit(OwnBandit):
    """A bandit for a `SensorLearner`; `Bandit(SensorLearner(...), arms=...)` makes one.

    It may be shared between threads, copied, pickled, saved to a file and merged, as any other.

    Parameters
    ----------
    learner : SensorLearner
        How to choose and learn, through which sensors.
    arms : int or iterable of str or int
        The names of the arms, or how many there are.
    dim : int, optional
        The length of the longest measurement, which follows from the sensors.
    seed, probabilities
        As in `Bandit`.
    log : None
        `Bandit(learner, log=path)` makes one with a log.

    Examples
    --------
    >>> import keyhole as kh
    >>> learner = kh.SensorLearner(kh.ThompsonSampling(), {"cuff": kh.Sensor(sensing=np.eye(2))})
    >>> bandit = kh.Bandit(learner, arms=["A", "B"], dim=2, seed=1)
    >>> decision = bandit.choose([0.3, None], sensor="cuff")  # the second entry is missing
    >>> bandit.learn(decision, reward=1.0, context=[0.2, -0.5])  # the truth, a week later
    >>> bandit.belief([2.0, None], sensor="cuff").mean.tolist()
    [1.0, 0.0]
    """

    _own: SensorLearner
    _state: SensorState
    # For a log: what the posterior saw of the last choice, and the last reward as it was learned.
    _last_design: Floats
    _last_reward: tuple[SensorReward, Floats | None]

    def __init__(
        self,
        learner: SensorLearner,
        *,
        arms: int | Iterable[Arm],
        dim: int | None = None,
        seed: Seed = None,
        probabilities: bool = True,
        log: None = None,
    ) -> None:
        del log  # a bandit with one is of another class
        if not learner.is_complete:
            raise InvalidValue("sensors='oracle' is for simulations: give the sensors")
        size = learner.dim if dim is None else checks.integer("dim", dim)
        state = learner.start(arguments.arm_names(arms), size)
        kept = checks.flag("probabilities", probabilities)
        self._put_together(learner, state, choice_streams(seed), kept, Lineage(), Once(), Truths())

    def _put_together(
        self,
        learner: SensorLearner,
        state: SensorState,
        random: Bits,
        probabilities: bool,
        lineage: Lineage,
        once: Once,
        truths: Truths,
    ) -> None:
        """Put a bandit together from its parts."""
        self._own, self._state, self._random = learner, state, random
        self._probabilities, self._columns = probabilities, None
        self._lineage, self._once, self._truths = lineage, once, truths
        self._share()

    # -- properties -------------------------------------------------------------------------------

    @property
    def dim(self) -> int:
        """The length of the longest measurement."""
        return self._own.dim

    @property
    def arms(self) -> tuple[Arm, ...]:
        """The names of the arms."""
        return self._state.arms.names

    @property
    def policy(self) -> Policy:
        """The policy, which scores arms."""
        return self._own.policy

    @property
    def posterior(self) -> Posterior:
        """A copy of the posterior, in columns of its own; `coefficients` has those of x."""
        with self._lock:
            return self._state.posterior.copy()

    @property
    def counts(self) -> dict[Arm, int]:
        """The number of rewards learned by the parameter of each arm ("shared": one for all)."""
        with self._lock:
            n = self._state.n.astype(int).tolist()
        parameter_of = self._state.arms.parameter_of.tolist()
        return {arm: n[i] for arm, i in zip(self.arms, parameter_of, strict=True)}

    @property
    def coefficients(self) -> dict[Arm, Belief]:
        """Estimate and covariance of each arm's mu, the coefficients of the context.

        They are those of least squares, without the prior that choices are made by; where rewards
        do not determine a combination, the posterior's mean and the prior's variance. With
        `em=True` they are those of the posterior.
        """
        with self._lock:
            means, covariances = self._state.estimates()
        parameter_of = self._state.arms.parameter_of.tolist()
        return {
            arm: Belief(means[i].copy(), covariances[i].copy())
            for arm, i in zip(self.arms, parameter_of, strict=True)
        }

    @property
    def constants(self) -> dict[Arm, tuple[float, float]]:
        """Estimate and standard error of each arm's constant, the reward at a context of 0."""
        if not self._own.intercept:
            raise InvalidValue("constants need SensorLearner(intercept=True)")
        with self._lock:
            means, errors = (part.tolist() for part in self._state.constants())
        parameter_of = self._state.arms.parameter_of.tolist()
        return {arm: (means[i], errors[i]) for arm, i in zip(self.arms, parameter_of, strict=True)}

    def belief(self, y: ArrayLike, *, sensor: object = None) -> Belief:
        """Return mean and covariance of the context given a measurement, as is known now.

        `choose` uses the same: a measurement far from its usual range is clipped.

        Parameters
        ----------
        y : array_like of shape (dim of the sensor,)
            The measurement, with NaN or None for missing entries.
        sensor : name or Sensor, optional
            The sensor; it may be left out if there is only one.
        """
        with self._lock:
            place = self._own.place(sensor)
            one: Sensor = self._state.sensors[place]
            row = checks.with_missing("y", y)
            if row.shape == (one.dim,):  # else `belief` says what it should be
                row = self._state.clipped(place, row)
        self._warn()
        return one.belief(row)

    def __repr__(self) -> str:
        learned = int(self._state.n.sum())
        return f"Bandit({self._own!r}, {len(self.arms)} arms, {learned} rewards learned)"

    # -- choosing and learning --------------------------------------------------------------------

    def choose(
        self, y: Any, *, among: Iterable[Arm] | None = None, sensor: object = None
    ) -> Decision:
        """Choose an arm from a measurement.

        Parameters
        ----------
        y : array_like of shape (dim of the sensor,) or (n_arms, dim of the sensor)
            The measurement of all arms, or one for each, with NaN or None for missing entries.
        among : iterable of names, optional
            The arms available this time; rows of y are then theirs, in that order.
        sensor : name or Sensor, optional
            The sensor; it may be left out if there is only one.
        """
        learner = self._own
        with self._lock:
            arms = self._among_arms(among)
            rows = learner.measured(self._state, y, sensor, arms)
            design, place = learner.prepared(self._state, rows, sensor, arms), learner.place(sensor)
            draws = Draws(np.empty(len(arms.names)), np.empty(2))
            kernels.fill_normals(self._random[0], draws.normals)
            kernels.fill_uniforms(self._random[1], draws.uniforms)
            chosen, score = learner.scored_at(self._state, design, draws, arms)
            self._last_design = design
            self._lineage.decisions += 1
            decision = Decision(
                arm=arms.names[chosen.arm],
                observation=rows[chosen.arm if len(rows) > 1 else 0],
                probability=chosen.probability if self._probabilities else None,
                score=score,
                id=f"{self._lineage.run}-{self._lineage.decisions}",
                sensor=learner.names[place],
                # That of the sensor as it was given: pairs that come later improve its estimate,
                # but y stays a measurement of the same sensor.
                recipe=learner.sensors[place].digest,
            )
            decision._is_for_all = len(rows) == 1
        self._warn()
        return decision

    def _among_arms(self, among: Iterable[Arm] | None) -> Arms:
        return self._state.arms if among is None else self._state.arms.among(among)

    def choice_probabilities(  # type: ignore[override]
        self, y: ArrayLike, *, among: Iterable[Arm] | None = None, sensor: object = None
    ) -> dict[Arm, float]:
        """Return the exact probability of each arm being chosen at y, now; nothing is drawn.

        Parameters
        ----------
        y : array_like
            As in `choose`.
        among : iterable of names, optional
            As in `choose`.
        sensor : name or Sensor, optional
            As in `choose`.
        """
        arguments.check_not_joint(self._state.rule)
        with self._lock:
            arms = self._among_arms(among)
            rows = self._own.measured(self._state, y, sensor, arms)
            design = self._own.prepared(self._state, rows, sensor, arms)
            location, scale = self._state.posterior.scores(
                self._state.rule, arms.parameter_of, design[None] if len(design) > 1 else design
            )
        self._warn()
        chances = choice_probabilities(location, scale, epsilon=self._state.rule.epsilon)
        return dict(zip(arms.names, chances[0].tolist(), strict=True))

    def learn(
        self,
        decision: Decision | str,
        reward: float,
        *,
        again: bool = False,
        context: ArrayLike | None = None,
    ) -> None:
        """Learn the reward of a decision, now or much later, in any order, once.

        Parameters
        ----------
        decision : Decision
            The decision, from `choose` or carried through JSON.
        reward : float
            Its reward; True and False are 1 and 0.
        again : bool, default False
            Learn one more reward of a decision that was learned already.
        context : array_like of shape (context_dim,), optional
            The context, if it is known by now. It takes the place of the belief, and improves the
            estimate of a calibrated sensor.
        """
        decision = arguments.checked_decision(decision)
        number = arguments.reward_number(reward)
        checks.flag("again", again)
        with self._lock:
            own, state, truths = self._own, self._state, self._truths
            state.arms.parameter(decision.arm)  # which raises if there is no such arm
            self._check_sensor(decision)
            if not again:
                self._once.check(decision)
            given = own.given(state, decision.arm, decision.raw, number, decision.sensor)
            x = None if context is None else own.checked_context(state, given.sensor, context)
            self._last_reward = given, x
            with held_interrupts():  # sums, posterior and ids change together
                if x is None:
                    state.learn(given, None)
                    truths.add_reward(decision, given)
                else:
                    self._learn_known(decision, given, x)
                self._once.add(decision)
                self._lineage.additions += 1
        self._warn()

    def _check_sensor(self, decision: Decision) -> None:
        """Raise if a decision was made through another sensor, whatever its name."""
        place = self._own.place(decision.sensor)
        if decision._recipe not in (None, self._own.sensors[place].digest):
            raise InvalidValue(
                f"this decision was made through another sensor than sensors"
                f"[{self._own.names[place]!r}] of this bandit: its matrix, covariances, mean, "
                "offset or pairs differ, or a list of sensors has another order; give it to a "
                "bandit with the sensors that it was made with"
            )

    def _learn_known(self, decision: Decision, given: SensorReward, x: Floats) -> None:
        """Learn a reward with its context, which other rewards of the decision then have, too."""
        before, state = self._truths.of(decision), self._state
        if before:
            state = state.copy()
            state.exchange(before, x)
        # A context and its measurement are one pair, however many rewards they have.
        state.learn(given, x, is_pair=not before and not self._truths.is_known(decision))
        self._state = state
        self._truths.add_context(decision)

    def learn_context(self, decision: Decision, context: ArrayLike) -> None:
        """Learn the context of a decision whose reward was learned before, once.

        The context takes the place of the belief, exactly: sums are then those of
        `learn(decision, reward, context=context)`. The rewards of the last 10,000 decisions are
        remembered for it.

        Parameters
        ----------
        decision : Decision
            The decision, from `choose` or carried through JSON. It needs an id.
        context : array_like of shape (context_dim,)
            The context.

        Raises
        ------
        AlreadyLearned
            If the context of this decision was learned already.
        InvalidValue
            If no reward of this decision is remembered, or the context is none.
        """
        decision = arguments.checked_decision(decision)
        with self._lock:
            rewards = self._truths.check(decision)
            self._check_sensor(decision)
            x = self._own.checked_context(self._state, rewards[0].sensor, context)
            self._last_reward = rewards[0], x
            with held_interrupts():  # sums, posterior and ids change together
                self._state.exchange(rewards, x)
                self._truths.add_context(decision)
                self._lineage.additions += 1
        self._warn()

    def _warn(self, stacklevel: int = 3) -> None:
        """Issue the collected warnings, now that all is done."""
        with self._lock:
            given, self._state.messages = self._state.messages, []
        for message in given:
            warnings.warn(message, KeyholeWarning, stacklevel=stacklevel)

    def merge(self, other: Any, *, base: Any = None) -> None:  # type: ignore[override]
        """Add the rewards that another bandit has learned.

        Sums are added by arm, sensor and missing entries; pairs of contexts and measurements too.

        Parameters
        ----------
        other : Bandit
            The bandit whose rewards are added.
        base : Bandit, optional
            The bandit from which both went on, as in `Bandit.merge`.
        """
        for each in (other, base):
            if each is self:
                raise InvalidValue("a bandit cannot be merged with itself")
            if not isinstance(each, SensorBandit | None) or other is None:
                raise InvalidValue(
                    f"merge takes another Bandit with sensors, and one as base, got {shown(each)}"
                )
            if each is not None and each.learner != self.learner:
                raise InvalidValue(
                    "only bandits of the same learner can be merged, "
                    f"got {self.learner} and {each.learner}"
                )
        involved = [each for each in (self, other, base) if each is not None]
        with sharing.all_locked(*involved):
            self._lineage.check_merge(other._lineage, None if base is None else base._lineage)
            truths = self._truths.merged(other._truths, None if base is None else base._truths)
            state = self._state.merged(other._state, None if base is None else base._state)
            twice = self._once.twice(other._once, None if base is None else base._once)
            if twice:
                state.messages.append(
                    f"{twice} decisions were learned by both of these bandits, and count twice: a "
                    "reward was sent to two of them"
                )
            pasts, once = self._lineage.merged(other._lineage), self._once.merged(other._once)
            with held_interrupts():
                self._state, self._once, self._truths = state, once, truths
                self._lineage.pasts = pasts
        self._warn()

    # -- files ------------------------------------------------------------------------------------

    def save(self, target: Target) -> None:  # type: ignore[override]
        """Write all of it to one file, as `Bandit.save`; `Bandit.load` reads it.

        Parameters
        ----------
        target : path-like or binary file
            The file.
        """
        with self._lock:
            record = sensor_storage.snapshot(
                sensor_storage.Parts(
                    self._own,
                    self._state,
                    self._random,
                    self._probabilities,
                    self._lineage.everything(),
                    self._once,
                    self._truths,
                )
            )
        sensor_storage.parse(record, self.policy)
        storage.write(target, record)

    def to_bytes(self) -> bytes:  # type: ignore[override]
        """Return the content that `save` writes, for a database or a message; `load` reads it."""
        return storage.as_bytes(self.save)

    @classmethod
    def load(cls, source: Source, **options: Any) -> SensorBandit:  # type: ignore[override]
        """Return a saved bandit with sensors, as `Bandit.load`, which reads all kinds.

        Parameters
        ----------
        source : path-like, binary file or bytes
            The file.
        **options
            Those of `Bandit.load`.
        """
        bandit = Bandit.load(source, **options)
        if not isinstance(bandit, SensorBandit):
            raise InvalidValue("this file is not of a bandit with sensors: use Bandit.load")
        return bandit

    @classmethod
    def of_parts(cls, parts: sensor_storage.Parts, random: Bits | None) -> SensorBandit:
        """Return a bandit from a file, with a random stream, or that of the file.

        Parameters
        ----------
        parts : Parts
            The content of the file.
        random : ndarray or None
            The states of its random streams.
        """
        bandit = object.__new__(cls)
        bandit._put_together(
            parts.learner,
            parts.state,
            parts.random if random is None else random,
            parts.probabilities,
            Lineage(parts.pasts),
            parts.once,
            parts.truths,
        )
        return bandit

    def _refuse(self, what: str) -> NoReturn:
        raise InvalidValue(
            f"{what} cannot be used in a bandit with sensors, got {shown(self._own)}"
        )

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            kept = {name: getattr(self, name) for name in ("_own", "_probabilities", "_columns")}
            # A copy: two bandits must not learn into one state.
            kept["_state"] = self._state.copy()
            kept["truths"] = (self._truths.rewards, self._truths.known.listed())
            return {**kept, "pasts": self._lineage.everything(), "ids": self._once.recent.listed()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._put_together(
            state["_own"],
            state["_state"].copy(),
            choice_streams(None),
            state["_probabilities"],
            Lineage(state["pasts"]),
            Once(state["ids"]),
            Truths(*state["truths"]),
        )
