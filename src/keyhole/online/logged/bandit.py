"""`LoggedBandit`: a bandit of a linear learner that writes down what it decides and learns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from keyhole.core import (
    Arm,
    Encoder,
    Floats,
    Learner,
    Policy,
    Recipe,
    Seed,
    Term,
    kernels,
    key_streams,
)
from keyhole.errors import InvalidValue, shown
from keyhole.files import Path
from keyhole.online import arguments, storage
from keyhole.online.bandit import Bandit
from keyhole.online.decision import LONGEST_ID, Decision
from keyhole.online.decisions import Decisions
from keyhole.online.log import UNKNOWN, Store, rows
from keyhole.online.log.decisions import Columns
from keyhole.online.log.packing import packed
from keyhole.online.logged.changing import ChangesTerms
from keyhole.online.logged.fields import decision_fields
from keyhole.online.once import Once


class LoggedBandit(ChangesTerms):
    """A bandit with a log; `Bandit(..., log=...)` makes one.

    Parameters
    ----------
    learner, arms, dim, seed, probabilities
        As in `Bandit`.
    log : Store or path-like
        Where to write.

    Attributes
    ----------
    check_size : callable or None
        Called with the number of arms and of columns before new levels get columns; it refuses them
        by raising `InvalidValue`.
    """

    check_size: Callable[[int, int], None] | None = None
    _describes = True
    _last_key: str | None = None  # that of the last rewards that Python code has learned

    def __init__(
        self,
        learner: Learner | Policy,
        *,
        arms: int | Iterable[Arm] | Mapping[Arm, Any],
        dim: int | None = None,
        seed: Seed = None,
        probabilities: bool = True,
        log: Store | Path,
    ) -> None:
        super().__init__(learner, arms=arms, dim=dim, seed=seed, probabilities=probabilities)
        self._begin_log(log)

    @classmethod
    def _of_record(
        cls,
        record: storage.Record,
        *,
        policy: Policy | None,
        features: Recipe | None,
        random: kernels.Bits | None,
    ) -> Bandit:
        if record.header["format"] == storage.SENSOR_FORMAT:
            from keyhole.online import sensor_storage
            from keyhole.online.logged.sensing import LoggedSensorBandit

            return LoggedSensorBandit.of_parts(sensor_storage.parse(record, policy), random)
        return super()._of_record(record, policy=policy, features=features, random=random)

    def start_fields(self) -> dict[str, Any]:
        """Return the fields of the first row that depend on the kind of bandit."""
        policy = self.policy
        return {
            "policy": storage.policy_record(policy),
            "sharing": policy.sharing,
            "prior_precision": float(policy.prior_precision),
            "bandit": packed(self.to_bytes()),
            "keyed": self._draw_key is not None,
        }

    def without_log(self) -> Bandit:
        """Return this bandit as one that writes nothing; it takes over all that was learned."""
        bandit = object.__new__(Bandit)
        bandit._set(*self._parts())
        if self._draw_key is not None:
            bandit._once = Once()  # of its own: without the store it has to remember ids
        return bandit

    def _learn_at_once(self) -> None:
        self._learned.posterior.learn_at_once()
        self._drop_kept()

    def write_start(self) -> None:
        """Write down the bandit as it is now: the first row of a store."""
        assert self._log is not None
        self._write_start(self._log, resumed=False)

    @property
    def n_columns(self) -> int:
        """Number of columns, with those that are crossed and a constant."""
        n_columns: int = self._observer.n_columns
        return n_columns

    @property
    def rewards_offset(self) -> float:
        """The value that rewards are centred by: the mean of the first ones, or 0."""
        return self._observer.offset

    @property
    def run(self) -> str:
        """The name of the run."""
        name: str = self._lineage.run
        return name

    @property
    def arm_records(self) -> dict[Arm, dict[str, Any]]:
        """The records of arms, by name, as they are kept."""
        return self._learned.arm_records

    def checked_records(self, arms: Mapping[Arm, Any]) -> dict[Arm, dict[str, Any]]:
        """Return records of arms as they would be kept; raise `InvalidValue` if they cannot be."""
        return self._checked_records(arms)[0]

    # -- one call, one row ------------------------------------------------------------------------

    def _has_warnings(self) -> bool:
        return bool(self._learned.observer.messages)

    def _know(self, encoder: Encoder, rows: Any = None, names: Any = None) -> None:
        if self.check_size is not None and encoder is not self._learned.encoder:
            self.check_size(len(self.arms), encoder.n_columns)
        super()._know(encoder, rows, names)

    def _see(self, seen: Floats) -> None:
        super()._see(seen)
        self._seen = seen

    def _key(self) -> str:
        self._last_key = super()._key()
        return self._last_key

    def _write_levels(self, log: Store, before: tuple[tuple[str, str], ...] | None) -> None:
        """Write down the levels that got columns since `before`."""
        grown = self._learned.grown
        if grown is not None and grown != before:
            log.append(rows.Levels, grown=list(grown[len(before or ()) :]))

    def _after(self, log: Store, version: int) -> None:
        learned = self._learned
        self._terms.follow(learned, version, self._lineage.decisions)
        if learned.fixed:
            fixed, learned.fixed = learned.fixed, []
            many = [
                {"event": self._terms.events.pop(one.key), "term": row_term(one)}
                for one in fixed
                if one.key in self._terms.events
            ]
            if many:
                log.append_all(rows.Counted, many)

    def _give_up(self) -> None:
        self._learned.fixed = []

    def _decision_columns(self) -> Columns:
        return Columns(self._learned.grown, self._learned.recipe)

    # -- choosing ---------------------------------------------------------------------------------

    def choose(
        self,
        y: Any,
        *,
        among: Iterable[Arm] | None = None,
        sensor: object = None,
        event: str | None = None,
    ) -> Decision:
        """Choose an arm, as `Bandit.choose`, and write it down.

        Parameters
        ----------
        y, among, sensor
            As in `Bandit.choose`.
        event : str, optional
            The id of the decision, which no other has; by default it gets one.
        """
        if among is not None and not isinstance(among, Mapping | tuple):
            among = tuple(among)  # an iterator serves once
        with self._writing() as log:
            if event is not None:
                self._check_new(log, event)
            before, version, offset = self._learned.grown, log.seq, self._observer.offset
            self._rows: Any = None
            if self._draw_key is not None:
                key_streams(self._random, self._draw_key, event or "")
            decision = super().choose(y, among=among, sensor=sensor)
            if event is not None:
                decision._id, decision._run = event, self._lineage.run
            self._write_levels(log, before)
            seen: Iterable[Floats]
            candidates, place = self._candidates(among), None
            if not decision._is_for_all:
                seen = self._all_rows(y)
                place = (self.arms if candidates is None else candidates).index(decision._arm)
            else:
                seen = [decision.raw if decision._predicted else decision._observation]
            fields = decision_fields(decision, seen, version, offset)
            number = decision._number or self._lineage.decisions
            log.append(rows.Decision, **fields, round=number, arms=candidates, place=place)
        return decision

    def encoded(
        self, y: Any, among: Mapping[Arm, Any] | None = None
    ) -> tuple[Floats, tuple[Arm, ...] | None]:
        """Return a record as rows of numbers, (1 or n, dim), and the candidates they are of.

        New levels of growing categories get their columns, and are written down. Candidates need
        not be arms yet.

        Parameters
        ----------
        y : record or array_like
            The record, or numbers.
        among : dict of names and records, optional
            The candidates, if features have some of arms.
        """
        with self._writing() as log:
            self._finish()
            before = self._learned.grown
            numbers, names, encoder = self._encoded(y, among)
            if encoder is not None:
                self._know(encoder, numbers)
            self._write_levels(log, before)
            rows_of_y = np.atleast_2d(np.asarray(self._observer.numbers(numbers), dtype=np.float64))
        return rows_of_y, None if names is None else tuple(names)

    def _check_new(self, log: Store, event: str) -> None:
        """Raise unless a text can be the id of a new decision."""
        if not (isinstance(event, str) and 0 < len(event) <= LONGEST_ID):
            raise InvalidValue(
                f"event must be a text of 1 to {LONGEST_ID} characters, got {shown(event)}"
            )
        if log.state(event) != UNKNOWN:
            raise InvalidValue(f"event must be a new id, got {shown(event)}, which was decided")

    def _numbers_of(self, y: Any, among: Any) -> tuple[Any, Any]:
        numbers, names = super()._numbers_of(y, among)
        self._rows = numbers
        return numbers, names

    def _all_rows(self, y: Any) -> Floats:
        """Return what was seen of every candidate, (n, dim)."""
        given = y if self._rows is None else self._rows
        return np.atleast_2d(np.asarray(self._observer.numbers(given), dtype=np.float64))

    def _candidates(self, among: Iterable[Arm] | None) -> list[Arm] | None:
        return None if among is None else list(self._learned.arms.among(among).names)

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
            self._finish()
            before, version, offset = self._learned.grown, log.seq, self._observer.offset
            decisions = super().choose_many(y, among=among)
            self._write_levels(log, before)
            parts, designs, rounds = self._last_batch
            candidates = self._candidates(among)
            many = []
            own_rows, names = rounds.ndim == 3, self.arms if candidates is None else candidates
            for k, decision in enumerate(decisions):
                decision._description = parts[k]
                decision._design = None if designs is None else designs[k]
                seen = rounds[k] if own_rows else rounds[k : k + 1]
                fields = decision_fields(decision, seen, version, offset)
                fields["round"] = decision._number or self._lineage.decisions
                fields["arms"], fields["batch"] = candidates, (k, len(decisions))
                fields["place"] = names.index(decision._arm) if own_rows else None
                many.append(fields)
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
            found = self._found(decision)
            self._check_once(log, found.id, again)
            weights = self._weights([found])
            before = self._prepare_to_learn()
            super().learn(found, reward, again=again, context=context)
            self._write_levels(log, before)
            self._write_rewards(log, [found], [float(reward)], weights, again)

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
            for one in listed:
                self._check_once(log, one.id, again)
            weights = self._weights(listed)
            before = self._prepare_to_learn()
            super().learn_many(listed, given.rewards, again=again)
            self._write_levels(log, before)
            self._write_rewards(log, listed, given.rewards.tolist(), weights, again, batch=True)

    def _prepare_to_learn(self) -> tuple[tuple[str, str], ...] | None:
        """Return the levels that are known, before rewards are learned."""
        self._last_key, self._learned.added = None, None
        return self._learned.grown

    def _write_rewards(
        self,
        log: Store,
        decisions: list[Decision],
        rewards: list[float],
        weights: Floats | None,
        again: bool,
        *,
        batch: bool = False,
    ) -> None:
        """Write down rewards that were learned, and before them decisions of other bandits.

        Parameters
        ----------
        log : Store
            The log.
        decisions, rewards : list
            The decisions and their rewards.
        weights : ndarray or None
            Their weights.
        again : bool
            Whether they are additional rewards.
        batch : bool, default False
            Whether they were learned together.
        """
        self._write_given(log, decisions)
        many = self.reward_fields(decisions, rewards, weights)
        for k, fields in enumerate(many):
            fields["again"] = again
            if batch:
                fields["batch"] = (k, len(many))
        if len(many) == 1:
            log.append(rows.Reward, **many[0])
        elif many:
            log.append_all(rows.Reward, many)

    def reward_fields(
        self, decisions: list[Decision], rewards: list[float], weights: Floats | None
    ) -> list[dict[str, Any]]:
        """Return the fields of the rows of rewards that were just learned.

        Parameters
        ----------
        decisions, rewards : list
            The decisions and their rewards.
        weights : ndarray or None
            Their weights.
        """
        many: list[dict[str, Any]] = [
            {"event": one.id, "value": value} for one, value in zip(decisions, rewards, strict=True)
        ]
        if not self._learned.is_plain:
            self._add_counted(many, decisions)
        if weights is not None:
            for fields, weight in zip(many, weights.tolist(), strict=True):
                fields["weight"] = weight
        return many

    def learn_again(self, decision: Decision, reward: float) -> dict[str, Any]:
        """Learn a reward of the log, and return the fields of its row that follow from that.

        Parameters
        ----------
        decision : Decision
            The decision.
        reward : float
            Its reward.
        """
        weights = self._weights([decision])
        self._prepare_to_learn()
        self._unlogged.learn(self, decision, reward)
        [fields] = self.reward_fields([decision], [reward], weights)
        return fields

    def fixed_term(self, key: str | None) -> tuple[str | None, rows.Term | None]:
        """Return the event and the term of a reward that has waited, and has its term by now.

        Parameters
        ----------
        key : str or None
            What it was found by.
        """
        found = [one for one in self._learned.fixed or [] if one.key == key]
        return self._terms.events.get(key or ""), row_term(found[0]) if found else None

    def _add_counted(self, many: list[dict[str, Any]], decisions: list[Decision]) -> None:
        """Add to the fields of rewards how these count, where they are not learned as they came.

        Parameters
        ----------
        many : list of dict
            The fields of each reward.
        decisions : list of Decision
            Their decisions.
        """
        provisional = {one.key for one in self._learned.provisional[-len(many) :]}
        for k, (fields, one) in enumerate(zip(many, decisions, strict=True)):
            fields |= self._counted(k, one, fields["value"], provisional)
            if "key" in fields and fields["event"] is not None:
                self.note_key(fields["key"], fields["event"])

    def _counted(
        self, k: int, decision: Decision, value: float, provisional: set[str]
    ) -> dict[str, Any]:
        """Return how a reward counts that was just learned, the k-th of its call.

        Parameters
        ----------
        k : int
            Its place among the rewards of the call.
        decision : Decision
            The decision.
        value : float
            The reward.
        provisional : set of str
            The keys of the latest provisional rewards.
        """
        learned = self._learned
        added, key = learned.added, f"{self._last_key}.{k}"
        if self._last_key is None:  # compiled code has learned it
            is_own = decision._run == self._lineage.run and decision._design is not None
            if is_own and decision._number > self._terms.n_before:
                return {}  # at the row that it was chosen by
            y = self._in_columns(decision, self._encoder_of([decision]))[0]
            return self._at(decision, learned.observer.design(y[None])[0], value, value)
        if added is None:
            return {"key": key}
        if k not in added.places:
            return {"dropped": True}
        place = added.places.index(k)
        if key in provisional:
            return {"key": key}
        return self._at(decision, added.design[place], added.rewards[place], value)

    def _at(self, decision: Decision, x: Floats, counted: float, value: float) -> dict[str, Any]:
        """Return the row at which a reward was learned, and as what it counted, if need be.

        Parameters
        ----------
        decision : Decision
            The decision.
        x : ndarray of shape (n_columns,)
            The row.
        counted, value : float
            The reward as it counted, and as it was given.
        """
        fields: dict[str, Any] = {} if counted == value else {"counted": counted}
        if decision._design is None or not np.array_equal(x, decision._design):
            fields["x"] = x.tolist()
        return fields

    # -- what else changes a bandit ---------------------------------------------------------------

    def observe(self, y: Any) -> None:
        """Take note of observations, as `Bandit.observe`, and write them down."""
        encoder = self._learned.encoder
        if encoder is not None and encoder.can_grow and not self._is_columns(y):
            # New levels change columns, and observations may change units: each a row of its own,
            # as a replay takes them.
            with self._writing() as log:
                before = self._learned.grown
                y, wider = encoder.encode_frame(y)
                self._know(wider, y)
                self._write_levels(log, before)
        with self._writing() as log:
            super().observe(y)
            log.append(rows.Observe, y=self._seen.tolist())

    def merge(self, other: Bandit, *, base: Bandit | None = None) -> None:
        """Add what another bandit has learned, as `Bandit.merge`, and write it down.

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


def row_term(one: Term) -> rows.Term:
    """Return a term of the sums as rows have it."""
    return rows.Term(arm=one.arm, value=one.reward, x=one.design.tolist(), key=one.key)
