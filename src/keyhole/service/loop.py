"""`Loop`: one bandit of the service, the events it has decided, and what is learned of them.

A call changes memory at once and returns the number of the unit that it wrote; its answer may be
sent when that unit is on the disk. Units are committed in order, so what a decision was based on is
never less durable than the decision itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, NamedTuple

import msgspec
import numpy as np

from keyhole.errors import FileUnusable, InvalidValue, shown
from keyhole.online import LoggedBandit, rows
from keyhole.service.answers import decide_answer
from keyhole.service.candidates import Candidates, bandit_among
from keyhole.service.events import NOT_YET, Event, EventCache, State
from keyhole.service.journal import LoopJournal
from keyhole.service.packing import packed
from keyhole.service.requests import DecideAnswer, DecideRequest, RewardAnswer, RewardStatus
from keyhole.service.settings import LARGEST, LoopSettings
from keyhole.service.store import RewardRow, Unit, event_row

LONGEST_ID = 200
# Names of fields that are ignored, and counted.
MOST_IGNORED = 200
# Events that time out in one unit.
MOST_DUE = 500


class Conflict(InvalidValue):
    """The id of an event that answers another request; nothing was changed."""


class NotYet(InvalidValue):
    """A version that the state has not reached; nothing was changed."""


class Decided(NamedTuple):
    """An answer, whether it was given before, and the unit to wait for."""

    answer: DecideAnswer
    is_replay: bool
    unit: int


class Draft(NamedTuple):
    """What a unit writes beside its rows."""

    events: list[Event]
    rewards: list[RewardRow]
    others: list[tuple[str, tuple[Any, ...]]]

    def add(self, event: Event) -> None:
        """Have an event written, which was changed."""
        event.unit = NOT_YET
        self.events.append(event)


class Loop:
    """A loop in memory.

    Parameters
    ----------
    number : int
        Its number in the database.
    name : str
        Its name.
    settings : LoopSettings
        Its settings.
    bandit : LoggedBandit
        Its bandit, which writes to the journal.
    journal : LoopJournal
        Its log.
    events : EventCache
        Its events.
    submit : callable
        Hands a unit to the writer and returns its number.
    now : callable
        The clock.
    """

    def __init__(
        self,
        number: int,
        name: str,
        settings: LoopSettings,
        bandit: LoggedBandit,
        journal: LoopJournal,
        events: EventCache,
        submit: Callable[[Unit], int],
        now: Callable[[], float],
    ) -> None:
        self.number, self.name, self.settings = number, name, settings
        self.bandit, self.journal, self.events = bandit, journal, events
        self._submit, self._now = submit, now
        self.unit = 0  # the last one that this loop submitted
        self.is_broken = False  # memory is ahead of what was submitted
        self.ignored: dict[str, int] = {}  # fields that the features do not have, and how often

    @property
    def version(self) -> int:
        """The number of the last row."""
        return self.journal.seq

    # -- deciding ---------------------------------------------------------------------------------

    def decide(self, event_id: str, request: DecideRequest, digest: bytes) -> Decided:
        """Decide, or give the answer that stands.

        Parameters
        ----------
        event_id : str
            The id of the event.
        request : DecideRequest
            The request.
        digest : bytes
            A digest of its content, which tells it from others with the same id.
        """
        check_id("event_id", event_id)
        self._check_usable()
        known = self.events.get(event_id)
        if known is not None:
            return self._again(known, request, digest)
        if request.at_least is not None and request.at_least > self.version:
            raise NotYet(f"at_least must be at most {self.version}, got {request.at_least}")
        candidates = Candidates.of(self.bandit, self.settings, request)
        if candidates.ignored:
            self.count_ignored(candidates.ignored)
        with self._unit() as unit:
            event = Event(event_id, 0, digest, State.DEFERRED if request.defer else State.OPEN)
            self._decide(event, candidates, request.defer)
            unit.add(event)
            self.events.add(event)
            if not request.defer:
                self._begin(event)
        return Decided(self._answer(event, request), False, self.unit)

    def count_ignored(self, names: list[str]) -> None:
        """Count fields that the features do not have; of endless names only the first."""
        for name in names:
            if name in self.ignored or len(self.ignored) < MOST_IGNORED:
                self.ignored[name] = self.ignored.get(name, 0) + 1

    def _decide(self, event: Event, candidates: Candidates, deferred: bool) -> None:
        """Choose, and write down what was chosen."""
        journal, mode = self.journal, self.settings.mode
        due = None if deferred else self._due()
        if mode == "off":
            event.learns, event.due, event.state = False, None, State.OPEN
            journal.append(
                rows.Served,
                event=event.name,
                arm=candidates.baseline,
                arms=candidates.names,
                request=event.request.hex(),
            )
        else:
            if candidates.new:
                self.bandit.add_arms(candidates.new)
            event.due = due
            # Encoded first: a replay then does the same with the numbers of the row.
            y = self._encoded(candidates)
            journal.extra = {"request": event.request.hex(), "due": due, "deferred": deferred}
            # A row lists its candidates always: arms may come and go.
            journal.extra["arms"] = candidates.names
            if mode == "shadow":
                journal.extra["served"] = candidates.baseline
            among = bandit_among(self.bandit, tuple(candidates.names))
            self.bandit.choose(y, among=among, event=event.name)
        # After it there may be rows of rewards that have waited for this observation.
        made = (one for one in journal.written if isinstance(one, rows.Decision | rows.Served))
        event.row = row = next(made)
        event.seq = row.seq

    def _encoded(self, candidates: Candidates) -> Any:
        """Return what is seen of the candidates as numbers, NaN for a missing entry."""
        context = candidates.context
        if self.settings.features is None and isinstance(context, list):
            return np.array(context, dtype=np.float64)  # the bandit checks their number and size
        y, _ = self.bandit.encoded(context, candidates.records)
        return y

    def _again(self, event: Event, request: DecideRequest, digest: bytes) -> Decided:
        if event.request != digest:
            raise Conflict(
                f"event {shown(event.name)} answers another request: an id is for one request"
            )
        self.journal.event(event.name)  # or raise, if it was forgotten
        return Decided(self._answer(event, request), True, self.unit)

    def _answer(self, event: Event, request: DecideRequest) -> DecideAnswer:
        row = self.journal.row_of(event)
        explanation = None
        if request.explain and isinstance(row, rows.Decision):
            explanation = self.explain(event.name)
        return decide_answer(row, explanation)

    def explain(self, name: str) -> dict[str, Any]:
        """Return what each feature adds to the score of an event's arm, by what is known now."""
        event = self.journal.event(name)
        row = self.journal.row_of(event)
        if not isinstance(row, rows.Decision):
            raise InvalidValue(f"event {shown(name)} was served by a baseline, not decided")
        decision = self.bandit.decision(name)
        y = np.array(row.y[0] if len(row.y) == 1 else row.y, dtype=np.float64)  # null is NaN
        explanation = asdict(self.bandit.explain(decision, y, among=row.arms))
        return {**explanation, "version": self.version}

    def _due(self) -> float | None:
        """Return when an event that becomes active now is due."""
        reward = self.settings.reward
        return None if reward.learning == "at_once" else self._now() + reward.seconds

    def _begin(self, event: Event) -> None:
        """Learn what is learned of an event when it becomes active."""
        reward = self.settings.reward
        if not event.learns or self._lost_arm(event):
            return
        total = event.total(reward.aggregate, None)
        if reward.learning == "provisional":
            total = event.total(reward.aggregate, reward.default)
        if reward.learning != "at_end" and total is not None:
            self.bandit.learn(event.name, total)
            event.learned = total

    # -- rewards ----------------------------------------------------------------------------------

    def reward(self, name: str, value: float, reward_id: str = "") -> RewardAnswer:
        """Take a reward of an event.

        Parameters
        ----------
        name : str
            The id of the event.
        value : float
            The reward.
        reward_id : str, default ""
            What tells it from other rewards of the event.
        """
        check_id("reward_id", reward_id, shortest=0)
        if not abs(value) <= LARGEST:
            raise InvalidValue(f"value must be a number from -1e50 to 1e50, got {value}")
        self._check_usable()
        event = self.journal.event(name)
        if reward_id in event.rewards:
            return self._reward_answer("duplicate", event)
        with self._unit() as unit:
            event.rewards[reward_id] = value
            try:
                status = self._take(event, reward_id, value)
            except BaseException:
                del event.rewards[reward_id]
                raise
            unit.add(event)
            unit.rewards.append((self.number, name, reward_id, self.journal.seq, value))
        return self._reward_answer(status, event)

    def _take(self, event: Event, reward_id: str, value: float) -> RewardStatus:
        """Learn, amend or hold a reward, and say which."""
        settings = self.settings.reward
        total = event.total(settings.aggregate, settings.default)
        assert total is not None
        if not abs(total) <= LARGEST:
            raise InvalidValue(
                f"value must leave the rewards of the event within {LARGEST:g} together, got "
                f"{value}: they come to {total}"
            )
        status: RewardStatus = "counted"
        if not event.learns:
            status = "ignored"
        elif not self.journal.has_row(event):
            status = "late"  # its decision was archived
        elif self._lost_arm(event):
            status = "ignored"
        elif event.state is State.DEFERRED:
            status = "held"
        elif event.state is State.ENDED:
            status = "amended" if settings.late == "amend" else "late"
        elif settings.learning == "at_end" and event.due is not None and event.learned is None:
            # An event of other settings has no end, or was learned: it learns rewards at once.
            status = "held"
        if status in ("counted", "amended"):
            self._learn(event, total, reward_id, value)
        else:
            self.journal.append(rows.Outcome, event=event.name, id=reward_id, value=value)
        return status

    def _learn(self, event: Event, total: float, reward_id: str, value: float) -> None:
        """Have the sums of an event be those of a total."""
        self.journal.extra = {"id": reward_id, "outcome": value}
        if event.learned is None:
            self.bandit.learn(event.name, total)
        elif event.learned != total:
            self.bandit.amend(event.name, total)
        else:
            self.journal.extra = {}
            self.journal.append(rows.Outcome, event=event.name, id=reward_id, value=value)
        event.learned = total

    def _lost_arm(self, event: Event) -> bool:
        """Whether the arm of an event was removed: nothing can be learned of it."""
        row, arms = self.journal.row_of(event), self.bandit._learned.arms
        arm = row.taken if isinstance(row, rows.Decision) else row.arm
        if arms.is_open:
            return False
        # One that was added again knows nothing of what it was.
        return arm not in arms or (not arms.shared and self.bandit.terms.is_gone(arm, event.seq))

    def _learnable_total(self, event: Event) -> float | None:
        """Return what the rewards of an event come to; None if nothing can be learned of it."""
        settings = self.settings.reward
        total = event.total(settings.aggregate, settings.default)
        return None if self._lost_arm(event) else total

    def _reward_answer(self, status: RewardStatus, event: Event) -> RewardAnswer:
        settings = self.settings.reward
        total = event.total(settings.aggregate, settings.default)
        return RewardAnswer(status=status, total=total, version=self.version)

    # -- what else becomes of an event ------------------------------------------------------------

    def activate(self, name: str) -> None:
        """Make a deferred event active; one that is active stays so."""
        self._check_usable()
        event = self.journal.event(name)
        if event.state is not State.DEFERRED:
            return
        with self._unit() as unit:
            event.state, event.due = State.OPEN, self._due() if event.learns else None
            self.journal.append(rows.Activate, event=name, due=event.due)
            self._begin(event)
            unit.add(event)

    def forget(self, name: str) -> None:
        """Take an event out of the sums, and refuse rewards of it from now on."""
        event = self.journal.event(name)
        with self._unit() as unit:
            if isinstance(self.journal.row_of(event), rows.Decision):
                self.bandit.forget(name)
            else:
                self.journal.append(rows.Forget, event=name)
            event.state, event.due, event.learned = State.FORGOTTEN, None, None
            event.last = event.last_row = None
            unit.add(event)

    def time_out(self, names: list[str]) -> int:
        """End events whose rewards are no longer waited for, and return how many did.

        Parameters
        ----------
        names : list of str
            Their ids. Those that are not due are left alone.
        """
        now, ended = self._now(), 0
        with self._unit() as unit:
            for name in names:
                event = self.events.get(name)
                if event is None or event.due is None or event.due > now:
                    continue
                total = self._learnable_total(event)
                if event.learned is None and total is not None:
                    self.journal.extra = {"ends": True}
                    self.bandit.learn(name, total)
                    event.learned = total
                else:
                    self.journal.append(rows.Due, event=name)
                event.state, event.due = State.ENDED, None
                unit.add(event)
                ended += 1
        return ended

    # -- arms, observations, settings -------------------------------------------------------------

    def add_arms(self, arms: list[str] | dict[str, dict[str, Any]]) -> None:
        """Add arms; a dict has their records."""
        with self._unit():
            self.bandit.add_arms(arms)

    def remove_arms(self, arms: list[str]) -> None:
        """Remove arms, and with them what was learned of them."""
        with self._unit():
            self.bandit.remove_arms(arms)

    def observe(self, contexts: Any) -> None:
        """Take note of contexts that no decision is wanted for."""
        with self._unit():
            self.bandit.observe(contexts)

    def change(self, settings: LoopSettings) -> None:
        """Change what may change: rewards, mode, baseline; and add arms.

        Raises
        ------
        Conflict
            If policy or features would change: what was learned depends on them.
        """
        mine, given = self.settings.what_is_fixed(), settings.what_is_fixed()
        for name, value in mine.items():
            if given[name] != value:
                raise Conflict(
                    f"{name} of loop {self.name!r} cannot change from {shown(value)} to "
                    f"{shown(given[name])}: what was learned depends on it. Create another loop"
                )
        given_arms, known = settings.arms, set(self.bandit.arms)
        new: Any = [name for name in given_arms if name not in known]
        if isinstance(given_arms, dict):
            new = {name: given_arms[name] for name in new}
        with self._unit() as unit:
            if new:
                self.bandit.add_arms(new)
            self.journal.append(rows.Settings, settings=settings.to_dict())
            self.settings = settings
            unit.others.append(
                (
                    "UPDATE loop SET settings = ? WHERE id = ?",
                    (msgspec.json.encode(settings), self.number),
                )
            )

    def model(self) -> bytes:
        """Return the bandit as a snapshot keeps it: equal states give equal bytes."""
        return packed(self.bandit)

    # -- units ------------------------------------------------------------------------------------

    @contextmanager
    def _unit(self) -> Iterator[Draft]:
        """Hand over what is written in a block as one unit, with what the draft lists."""
        self._check_usable()
        draft = Draft([], [], [])
        try:
            yield draft
        except BaseException:
            self.journal.extra = {}
            self._give_up()
            raise
        if self.journal.written:
            for event in self.journal.touched.values():
                draft.add(event)
            events = {event.name: event for event in draft.events}
            try:
                listed = [event_row(self.number, event) for event in events.values()]
                self.submit(Unit(self.journal.take(), listed, draft.rewards, draft.others))
            except BaseException:
                self.is_broken = True  # memory is ahead of what will be written
                raise
            for event in events.values():
                event.unit = self.unit

    def _give_up(self) -> None:
        """Have what was written in a block that raised agree with what was changed.

        A call of the bandit changes and writes all, or nothing. Arms and levels that a refused
        request brought stand by themselves. After anything else, memory is ahead.
        """
        if all(isinstance(row, rows.Arms | rows.Levels) for row in self.journal.written):
            with self._unit():
                return
        self.is_broken = True

    def submit(self, unit: Unit) -> None:
        """Hand a unit over."""
        self.unit = self._submit(unit)

    def _check_usable(self) -> None:
        """Raise if memory is ahead of the log: what it says might be lost."""
        if self.is_broken:
            raise FileUnusable(
                f"loop {self.name!r} has changes that could not be written: it has to be loaded "
                "again"
            )


def check_id(name: str, given: str, shortest: int = 1) -> None:
    """Raise unless a text can be an id.

    Parameters
    ----------
    name : str
        What it is called in messages.
    given : str
        The text.
    shortest : int, default 1
        The length that it must have.
    """
    if not shortest <= len(given) <= LONGEST_ID or not given.isprintable():
        raise InvalidValue(
            f"{name} must be a text of {shortest} to {LONGEST_ID} printable characters, got "
            f"{shown(given)}"
        )
