"""`LoggedSensorBandit`: a bandit with sensors that writes down what it decides and learns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from keyhole.core import Arm, Arms, Floats, Seed, SensorLearner, SensorReward
from keyhole.errors import ForgottenEvent
from keyhole.files import Path
from keyhole.online import storage
from keyhole.online.bandit import Bandit
from keyhole.online.decision import Decision
from keyhole.online.log import Store, rows
from keyhole.online.log.decisions import Columns, decision_of
from keyhole.online.log.events import FORGOTTEN
from keyhole.online.log.packing import packed
from keyhole.online.log.terms import Learned
from keyhole.online.logged.fields import nulls, score_fields
from keyhole.online.logged.terms import as_floats
from keyhole.online.logged.writing import Writes
from keyhole.online.sensing import SensorBandit


class LoggedSensorBandit(Writes, SensorBandit):
    """A bandit with sensors and a log; `Bandit(SensorLearner(...), log=...)` makes one.

    Parameters
    ----------
    learner, arms, dim, seed, probabilities
        As in `SensorBandit`.
    log : Store or path-like
        Where to write.
    """

    _unlogged = SensorBandit

    def __init__(
        self,
        learner: SensorLearner,
        *,
        arms: int | Iterable[Arm],
        dim: int | None = None,
        seed: Seed = None,
        probabilities: bool = True,
        log: Store | Path,
    ) -> None:
        SensorBandit.__init__(
            self, learner, arms=arms, dim=dim, seed=seed, probabilities=probabilities
        )
        self._begin_log(log)

    def start_fields(self) -> dict[str, Any]:
        """Return the fields of the first row that depend on the kind of bandit."""
        policy = self.policy
        return {
            "policy": storage.policy_record(policy),
            "sharing": policy.sharing,
            "prior_precision": float(policy.prior_precision),
            "bandit": packed(self.to_bytes()),
            "learner": "sensors",
            "sensors": list(self._own.names),
        }

    def without_log(self) -> Bandit:
        """Return this bandit as one that writes nothing; it takes over all that was learned."""
        bandit = object.__new__(SensorBandit)
        bandit._put_together(
            self._own,
            self._state,
            self._random,
            self._probabilities,
            self._lineage,
            self._once,
            self._truths,
        )
        return bandit

    def _has_warnings(self) -> bool:
        return bool(self._state.messages)

    def _decision_columns(self) -> Columns:
        named = zip(self._own.names, self._own.sensors, strict=True)
        return Columns(sensors=tuple((name, one.digest) for name, one in named))

    # -- choosing ---------------------------------------------------------------------------------

    def choose(
        self, y: Any, *, among: Iterable[Arm] | None = None, sensor: object = None
    ) -> Decision:
        """Choose an arm, as `SensorBandit.choose`, and write it down.

        Parameters
        ----------
        y, among, sensor
            As in `SensorBandit.choose`.
        """
        names = None if among is None else tuple(among)  # an iterator serves once
        with self._writing() as log:
            decision = super().choose(y, among=names, sensor=sensor)
            arms = self._among_arms(names)
            measured = self._own.measured(self._state, y, sensor, arms)
            design, place = self._last_design, arms.names.index(decision.arm)
            decision._description = self._score_parts(arms, design)
            log.append(
                rows.Decision,
                event=decision.id,
                round=self._lineage.decisions,
                version=log.seq,
                arm=decision.arm,
                probability=decision.probability,
                score=decision.score,
                y=[nulls(row) for row in measured],
                **score_fields(decision._description, self._state.zero),
                epsilon=self._state.rule.epsilon,
                arms=None if names is None else list(arms.names),
                x=design[place if len(design) > 1 else 0].tolist(),
                place=place if len(measured) > 1 else None,
                sensor=self._own.place(sensor),
            )
        return decision

    def _score_parts(self, arms: Arms, design: Floats) -> Floats:
        """Return the parts of every arm's score, (4, n_arms).

        Parameters
        ----------
        arms : Arms
            The arms.
        design : ndarray of shape (1, c) or (n_arms, c)
            What the posterior sees.
        """
        state, parameter_of = self._state, arms.parameter_of
        seen = design[None] if len(design) > 1 else design
        mean, width = state.posterior.predict(parameter_of, seen)
        explored = [part[parameter_of] for part in state.posterior.explorations(state.rule)]
        return np.array([mean[0], width[0], *explored])

    def chances(self, contexts: Sequence[tuple[rows.Decision, list[Arm]]]) -> list[Floats]:
        """Return the probability of each candidate at the contexts of other rounds, now.

        Parameters
        ----------
        contexts : sequence of (Decision, list of arms)
            The rows of these rounds, and their candidates.
        """
        found = []
        for row, names in contexts:
            assert row.sensor is not None
            sensor, y = self._own.names[row.sensor], as_floats(row.y)  # type: ignore[arg-type]
            chances = self.choice_probabilities(y, among=names, sensor=sensor)
            found.append(np.array([chances[name] for name in names]))
        return found

    # -- learning ---------------------------------------------------------------------------------

    def learn(
        self,
        decision: Decision | str,
        reward: float,
        *,
        again: bool = False,
        context: ArrayLike | None = None,
    ) -> None:
        """Learn the reward of a decision, as `SensorBandit.learn`, and write it down.

        Parameters
        ----------
        decision : Decision or str
            The decision, or its id, by which it is found in the log.
        reward, again, context
            As in `SensorBandit.learn`.
        """
        with self._writing() as log:
            found = self._found(decision)
            self._check_once(log, found.id, again)
            super().learn(found, reward, again=again, context=context)
            self._write_given(log, [found])
            given, x = self._last_reward
            log.append(
                rows.Reward,
                event=found.id,
                value=given.reward,
                again=again,
                x=None if np.array_equal(given.y, found.raw, equal_nan=True) else nulls(given.y),
                **_context_fields(context, x),
            )

    def learn_context(self, decision: Decision | str, context: ArrayLike) -> None:
        """Learn the context of a decision, as `SensorBandit.learn_context`, and write it down.

        Parameters
        ----------
        decision : Decision or str
            The decision, or its id, by which it is found in the log.
        context
            As in `SensorBandit.learn_context`.
        """
        with self._writing() as log:
            found = self._found(decision)
            if found.id is not None and log.state(found.id) == FORGOTTEN:
                raise ForgottenEvent(f"event {found.id!r} was forgotten, and learns no context")
            super().learn_context(found, context)
            fields = _context_fields(context, self._last_reward[1])
            log.append(rows.Context, event=found.id, **fields)

    def merge(self, other: Any, *, base: Any = None) -> None:  # type: ignore[override]
        """Add what another bandit has learned, as `SensorBandit.merge`, and write it down.

        Parameters
        ----------
        other, base
            As in `SensorBandit.merge`.
        """
        kinds = (other, base)
        files = [packed(one.to_bytes()) if isinstance(one, Bandit) else None for one in kinds]
        with self._writing() as log:
            super().merge(other, base=base)
            log.append(rows.Merge, other=files[0], base=files[1])

    # -- changing what was learned ----------------------------------------------------------------

    def _term(self, one: Learned) -> rows.Term | None:
        decision = decision_of(one.decision, self._decision_columns())
        return rows.Term(
            arm=one.term.arm,
            value=one.term.value,
            x=nulls(decision.raw) if one.term.x is None else one.term.x,
            sensor=self._own.place(decision.sensor),
            context=one.term.context,
        )

    def take_out(self, terms: Sequence[rows.Term]) -> None:
        """Take rewards of one event out of the sums: all of them, or none.

        Parameters
        ----------
        terms : sequence of Term
            What the sums have of them.
        """
        if terms:
            self._state.forget([_given(one) for one in terms])
            self._lineage.additions += len(terms)

    def exchange(self, term: rows.Term, value: float) -> None:
        """Replace a reward in the sums.

        Parameters
        ----------
        term : Term
            What the sums have of it.
        value : float
            The reward that replaces it.
        """
        given, context = _given(term)
        self._state.amend(given, context, value)
        self._lineage.additions += 1

    def note_forgotten(self, event: str) -> None:
        """Take note that the rewards of an event can learn no context any more."""
        self._truths.rewards.pop(event, None)

    def note_amended(self, event: str, value: float) -> None:
        """Take note of the reward of an event, which may learn its context later.

        Parameters
        ----------
        event : str
            The id of the decision.
        value : float
            The reward.
        """
        kept = self._truths.rewards.get(event)
        if kept:
            self._truths.rewards[event] = [one._replace(reward=value) for one in kept]


def _given(term: rows.Term) -> tuple[SensorReward, Floats | None]:
    """Return a reward as it was learned, and its context."""
    assert term.x is not None
    assert term.sensor is not None
    given = SensorReward(term.arm, term.sensor, as_floats(term.x), term.value)
    return given, None if term.context is None else np.array(term.context)


def _context_fields(context: ArrayLike | None, learned: Floats | None) -> dict[str, Any]:
    """Return a context as it was given and, if it was clipped, as it was learned."""
    if context is None or learned is None:
        return {}
    given = np.asarray(context, dtype=np.float64)
    clipped = None if np.array_equal(given, learned) else learned.tolist()
    return {"context": given.tolist(), "clipped": clipped}
