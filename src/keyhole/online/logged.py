"""`LoggedBandit`: a bandit that writes down what it decides and learns, before it answers.

Each call is made as without a log, under the same lock; then its row is written, and then it
returns. So rows are in the order in which the bandit changed, and a caller who got an answer finds
it in the log. If a row cannot be written, the call raises, and the bandit refuses all that would
change it: its state is ahead of its log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from keyhole.core import Arm, Floats, Learner, Policy, Seed
from keyhole.errors import ForgottenEvent, InvalidValue, UnknownEvent, shown
from keyhole.files import Path
from keyhole.online import arguments, storage
from keyhole.online.bandit import Bandit
from keyhole.online.decision import Decision
from keyhole.online.decisions import Decisions
from keyhole.online.holding import held_interrupts
from keyhole.online.lineage import NOTHING, Lineage
from keyhole.online.log import Log, rows
from keyhole.online.log.packing import packed


class LoggedBandit(Bandit):
    """A bandit with a log; `Bandit(..., log=...)` makes one.

    Parameters
    ----------
    learner, arms, dim, seed, probabilities
        As in `Bandit`.
    log : Log or path-like
        Where to write.
    """

    _describes = True
    _log: Log | None = None
    _quiet = False  # whether warnings wait until a row is written

    def __init__(
        self,
        learner: Learner | Policy,
        *,
        arms: int | Iterable[Arm] | Mapping[Arm, Any],
        dim: int | None = None,
        seed: Seed = None,
        probabilities: bool = True,
        log: Log | Path,
    ) -> None:
        super().__init__(learner, arms=arms, dim=dim, seed=seed, probabilities=probabilities)
        self._begin_log(log)

    def _begin_log(self, log: Log | Path) -> None:
        """Open a new log, and write down the bandit as it is now."""
        opened = log if isinstance(log, Log) else Log(log)
        opened.open()
        try:
            if opened.seq:
                raise InvalidValue(
                    f"{opened.path} is the log of another bandit: Bandit.from_log goes on with "
                    "that one; a new bandit needs a new file"
                )
            self._write_start(opened, resumed=False)
        except BaseException:
            opened.close()
            raise

    def resume(self, log: Log) -> None:
        """Go on writing to an open log, whose rows have led to this bandit, in a new run."""
        self._lineage = Lineage(self._lineage.everything())
        self._drop_kept()
        self._write_start(log, resumed=True)

    def _write_start(self, log: Log, *, resumed: bool) -> None:
        policy = self.policy
        log.append(
            rows.Start,
            schema=rows.SCHEMA,
            run=self._lineage.run,
            arms=list(self.arms),
            policy=storage.policy_record(policy),
            sharing=policy.sharing,
            prior_precision=float(policy.prior_precision),
            bandit=packed(self.to_bytes()),
            resumed=resumed,
        )
        self._log = log

    def begin_run(self, name: str) -> None:
        """Go on in the run of this name: that of the bandit that wrote a log."""
        pasts = self._lineage.everything()
        past = pasts.pop(name, NOTHING)
        self._lineage = Lineage(pasts)
        self._lineage.run = name
        self._lineage.decisions, self._lineage.additions = past
        self._drop_kept()

    def without_log(self) -> Bandit:
        """Return this bandit as one that writes nothing; it takes over all that was learned."""
        bandit = object.__new__(Bandit)
        bandit._set(
            self._learner,
            self._learned,
            self._random,
            self._probabilities,
            self._lineage,
            self._once,
            self._columns,
        )
        return bandit

    @property
    def log(self) -> Log | None:
        """The log."""
        return self._log

    # -- one call, one row ------------------------------------------------------------------------

    def _writing(self) -> _Writing:
        """Hold Ctrl-C, the lock and warnings until the row is written."""
        return _Writing(self)

    def _warn(self, stacklevel: int = 3) -> None:
        if not self._quiet:
            super()._warn(stacklevel)

    def _see(self, seen: Floats) -> None:
        super()._see(seen)
        self._seen = seen

    def _write_levels(self, log: Log, before: tuple[tuple[str, str], ...] | None) -> None:
        """Write down the levels that got columns since `before`."""
        grown = self._learned.grown
        if grown is not None and grown != before:
            log.append(rows.Levels, grown=list(grown))

    # -- choosing ---------------------------------------------------------------------------------

    def choose(
        self, y: Any, *, among: Iterable[Arm] | None = None, sensor: object = None
    ) -> Decision:
        """Choose an arm, as `Bandit.choose`, and write it down.

        Parameters
        ----------
        y, among, sensor
            As in `Bandit.choose`.
        """
        if among is not None and not isinstance(among, Mapping | tuple):
            among = tuple(among)  # an iterator serves once
        with self._writing() as log:
            before, version = self._learned.grown, log.seq
            self._rows: Any = None
            decision = super().choose(y, among=among, sensor=sensor)
            self._write_levels(log, before)
            seen: Iterable[Floats]
            if not decision._is_for_all:
                seen = self._all_rows(y)
            else:
                seen = [decision.raw if decision._predicted else decision._observation]
            log.append(
                rows.Decision, **self._fields(decision, seen, version, self._candidates(among))
            )
        return decision

    def _numbers_of(self, y: Any, among: Any) -> tuple[Any, Any]:
        numbers, names = super()._numbers_of(y, among)
        self._rows = numbers
        return numbers, names

    def _all_rows(self, y: Any) -> Floats:
        """Return the observation of every candidate, (n, dim)."""
        given = y if self._rows is None else self._rows
        return np.atleast_2d(np.asarray(self._observer.numbers(given), dtype=np.float64))

    def _candidates(self, among: Iterable[Arm] | None) -> list[Arm] | None:
        return None if among is None else list(self._learned.arms.among(among).names)

    def _fields(
        self,
        decision: Decision,
        seen: Iterable[Floats],
        version: int,
        candidates: list[Arm] | None,
    ) -> dict[str, Any]:
        """Return the fields of a decision's row.

        Parameters
        ----------
        decision : Decision
            The decision.
        seen : iterable of arrays
            The observation, a row for all arms or one for each.
        version : int
            The last row that the state had taken in.
        candidates : list of arms, optional
            The candidates, if they were not all arms.
        """
        mean, width, optimism, dispersion = decision._description.tolist()
        offset = self._observer.offset
        predicted, grown = decision._predicted, decision._grown
        return {
            "event": decision._name(),
            "round": decision._number or self._lineage.decisions,
            "version": version,
            "arm": decision._arm,
            "probability": decision.probability,
            "score": decision._score,
            "y": [row.tolist() for row in seen],
            "mean": [value + offset for value in mean] if offset else mean,
            "width": width,
            "optimism": _once(optimism),
            "dispersion": _once(dispersion),
            "epsilon": decision._epsilon,
            "arms": candidates,
            "x": None if decision._design is None else decision._design.tolist(),
            "predicted": list(predicted) if predicted else None,
            "filled": decision._observation.tolist() if predicted else None,
            "levels": None if grown is None else len(grown),
        }

    def choose_many(self, y: Any, *, among: Iterable[Arm] | None = None) -> Decisions:
        """Choose an arm for each of n rounds, as `Bandit.choose_many`, and write them down.

        Parameters
        ----------
        y, among
            As in `Bandit.choose_many`.
        """
        if among is not None and not isinstance(among, Mapping | tuple):
            among = tuple(among)
        with self._writing() as log:
            before, version = self._learned.grown, log.seq
            self._finish()
            decisions = super().choose_many(y, among=among)
            self._write_levels(log, before)
            parts, designs, rounds = self._last_batch
            candidates = self._candidates(among)
            many = []
            for k, decision in enumerate(decisions):
                decision._description = parts[k]
                decision._design = None if designs is None else designs[k]
                seen = rounds[k] if rounds.ndim == 3 else rounds[k : k + 1]
                fields = self._fields(decision, seen, version, candidates)
                many.append({**fields, "batch": (k, len(decisions))})
            if many:
                log.append_all(rows.Decision, many)
        return decisions

    # -- learning ---------------------------------------------------------------------------------

    def learn(
        self,
        decision: Decision | str,
        reward: float,
        *,
        again: bool = False,
        context: ArrayLike | None = None,
    ) -> None:
        """Learn the reward of a decision, as `Bandit.learn`, and write it down.

        Parameters
        ----------
        decision : Decision or str
            The decision, or its id, by which it is found in the log.
        reward, again, context
            As in `Bandit.learn`.

        Raises
        ------
        AlreadyLearned
            If its reward was learned at any time.
        UnknownEvent
            If no decision of the log has this id.
        ForgottenEvent
            If it was forgotten.
        """
        with self._writing() as log:
            if isinstance(decision, str):
                found = self.decision(decision)
            else:
                found = arguments.checked_decision(decision)
            if not again:
                log.check_once(found.id)
            before = self._learned.grown
            super().learn(found, reward, again=again, context=context)
            self._write_levels(log, before)
            self._write_rewards(log, [found], [float(reward)], again)

    def learn_many(
        self, decisions: Iterable[Decision], rewards: ArrayLike, *, again: bool = False
    ) -> None:
        """Learn the rewards of many decisions, as `Bandit.learn_many`, and write them down.

        Parameters
        ----------
        decisions, rewards, again
            As in `Bandit.learn_many`.
        """
        given = arguments.many_rewards(decisions, rewards)
        with self._writing() as log:
            listed = list(given.decisions)
            for one in listed if not again else ():
                log.check_once(one.id)
            before = self._learned.grown
            super().learn_many(listed, given.rewards, again=again)
            self._write_levels(log, before)
            self._write_rewards(log, listed, given.rewards.tolist(), again, batch=True)

    def _write_rewards(
        self,
        log: Log,
        decisions: list[Decision],
        rewards: list[float],
        again: bool,
        *,
        batch: bool = False,
    ) -> None:
        """Write down rewards that were learned, and before them decisions of other bandits.

        Parameters
        ----------
        log : Log
            The log.
        decisions, rewards : list
            The decisions and their rewards.
        again : bool
            Whether they are additional rewards.
        batch : bool, default False
            Whether they were learned together.
        """
        given: list[dict[str, Any]] = [
            {"event": one.id, "decision": one.to_dict()}
            for one in decisions
            if not log.has_decision(one)
        ]
        if given:
            log.append_all(rows.Given, given)
        n = len(decisions)
        many = [
            {
                "event": one.id,
                "value": value,
                "again": again,
                "batch": (k, n) if batch else None,
            }
            for k, (one, value) in enumerate(zip(decisions, rewards, strict=True))
        ]
        if many:
            log.append_all(rows.Reward, many)

    def decision(self, event: str) -> Decision:
        """Return a decision of the log by its id, or raise `UnknownEvent`."""
        log = self._log
        if log is None:
            raise UnknownEvent(f"this bandit has no log, in which {shown(event)} could be")
        grown = self._learned.grown
        return log.decision(event, grown, self._learned.recipe)

    def forget(self, event: str) -> None:
        """Take the rewards of a decision out again: the sums are those of a log without them.

        From then on a reward for this event is refused. The rows stay in the file.

        Parameters
        ----------
        event : str
            The id of the decision.

        Raises
        ------
        UnknownEvent
            If no decision of the log has this id.
        ForgottenEvent
            If it was forgotten already.
        InvalidValue
            If the learner has units, a constant or predictions, in which observations live on.
        """
        if not self._learned.is_plain or self._rule.weighted:
            raise InvalidValue(
                "forget needs a learner without intercept, standardize, missing and weights: what "
                f"these follow from is not kept by event, got {shown(self._learner)}"
            )
        with self._writing() as log:
            if log.status(event) == "forgotten":
                raise ForgottenEvent(f"event {event!r} was forgotten already")
            self.take_out(log.learned(event))
            log.append(rows.Forget, event=event)

    def take_out(self, learned: list[tuple[Decision, float]]) -> None:
        """Take rewards out of the sums: all of them, or none.

        Parameters
        ----------
        learned : list of (Decision, float)
            Decisions and their rewards, all of which were learned.
        """
        with self._at_work():
            posterior = self._learned.posterior.copy()
            for decision, reward in learned:
                arm = self._learned.arms.parameter(decision.arm)
                posterior.forget(arm, decision._observation, reward)
            self._drop_kept()
            self._learned.posterior = posterior
            # A base that has them would not have less than this bandit.
            self._lineage.additions += len(learned)

    # -- what else changes a bandit ---------------------------------------------------------------

    def observe(self, y: Any) -> None:
        """Take note of observations, as `Bandit.observe`, and write them down."""
        with self._writing() as log:
            before = self._learned.grown
            super().observe(y)
            self._write_levels(log, before)
            log.append(rows.Observe, y=self._seen.tolist())

    def merge(self, other: Bandit, *, base: Bandit | None = None) -> None:
        """Add the rewards of another bandit, as `Bandit.merge`, and write it down.

        Parameters
        ----------
        other, base
            As in `Bandit.merge`.
        """
        files = [None if one is None else packed(one.to_bytes()) for one in (other, base)]
        with self._writing() as log:
            super().merge(other, base=base)
            log.append(rows.Merge, other=files[0], base=files[1])

    def add_arms(self, arms: Iterable[Arm]) -> None:
        """Add arms, as `Bandit.add_arms`, and write them down."""
        given: Any = arms if isinstance(arms, Mapping) else tuple(arms)
        with self._writing() as log:
            known, before = set(self.arms), self._learned.grown
            super().add_arms(given)
            self._write_levels(log, before)
            records = self._learned.arm_records
            new = [(name, records.get(name)) for name in self.arms if name not in known]
            log.append(rows.Arms, added=new)

    def remove_arms(self, arms: Iterable[Arm]) -> None:
        """Remove arms, as `Bandit.remove_arms`, and write it down."""
        given = tuple(arms)
        with self._writing() as log:
            super().remove_arms(given)
            log.append(rows.Arms, removed=list(given))

    # -- copies -----------------------------------------------------------------------------------

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy has no log: one bandit writes to it.
        return _unlogged, (self.__getstate__(),)


class _Writing:
    """A call of a bandit that ends with a row in its log. A class: half the time of a generator."""

    __slots__ = ("bandit", "held")

    def __init__(self, bandit: LoggedBandit) -> None:
        self.bandit, self.held = bandit, held_interrupts()

    def __enter__(self) -> Log:
        self.held.__enter__()
        bandit = self.bandit
        bandit._lock.acquire()
        try:
            log = bandit._log
            if log is None:
                raise InvalidValue("this bandit has no log")
            log.check_ready()
        except BaseException:
            bandit._lock.release()
            self.held.__exit__(None, None, None)
            raise
        bandit._quiet = True
        return log

    def __exit__(self, *_error: object) -> None:
        bandit = self.bandit
        bandit._quiet = False
        bandit._lock.release()
        self.held.__exit__(None, None, None)
        if bandit._learned.observer.messages:
            bandit._warn(stacklevel=4)


def _unlogged(state: dict[str, Any]) -> Bandit:
    """Return a bandit without a log out of a pickle or a copy."""
    bandit = object.__new__(Bandit)
    bandit.__setstate__(state)
    return bandit


def _once(values: list[float]) -> list[float]:
    """Return one number in place of equal ones."""
    return values[:1] if values.count(values[0]) == len(values) else values
