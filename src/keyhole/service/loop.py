"""`Loop`: one bandit of the service, the events it has decided, and what is learned of them.

A call changes memory at once and returns the number of the unit that it wrote; its answer may be
sent when that unit is on the disk. Units are committed in order, so a decision is never
more durable than the rows it depends on.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, NamedTuple

import msgspec
import numpy as np

from keyhole import checks
from keyhole.core import Arm, Floats
from keyhole.errors import InvalidValue, KeyholeWarning, Message, shown
from keyhole.online import LoggedBandit, rows
from keyhole.service.answers import Answers
from keyhole.service.candidates import Candidates, check_missing, checked_context
from keyhole.service.events import Event, EventCache, State
from keyhole.service.journal import LoopJournal
from keyhole.service.learning import LoopLearning
from keyhole.service.packing import packed
from keyhole.service.requests import Context, DecideAnswer, DecideRequest, check_event_id, check_id
from keyhole.service.settings import LoopSettings, check_size
from keyhole.service.store import Unit
from keyhole.service.units import Draft

# Names of ignored fields that are counted.
MAX_IGNORED = 200


class Conflict(InvalidValue):
    """The id of an event was used for a different request; nothing was changed."""


class NotYet(InvalidValue):
    """A version that the state has not reached; nothing was changed."""


class Decided(NamedTuple):
    """An answer, whether it was given before, and the unit to wait for."""

    answer: DecideAnswer
    is_replay: bool
    unit: int


class Loop(LoopLearning):
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
        super().__init__(number, name, journal, submit)
        self.settings, self.bandit, self.events, self._now = settings, bandit, events, now
        events.is_gone, bandit.tell = self._is_gone, self._tell
        bandit.check_size = self._check_size
        # The candidates of requests that name none, with the arms and settings they follow from.
        self._usual: tuple[tuple[Arm, ...], LoopSettings, Candidates | None] = ((), settings, None)
        self.answers = Answers()
        self.ignored: dict[str, int] = {}  # fields that the features do not have, and how often

    # -- deciding ---------------------------------------------------------------------------------

    def decide(self, event_id: str, request: DecideRequest, digest: bytes) -> Decided:
        """Decide; for an event that was decided before, return the same answer.

        Parameters
        ----------
        event_id : str
            The id of the event.
        request : DecideRequest
            The request.
        digest : bytes
            Its digest, which detects a different request with the same id.
        """
        check_event_id(event_id)
        self.check_usable()
        known = self.events.get(event_id)
        if known is not None:
            return self._again(known, request, digest)
        self.check_reached(request.at_least)
        context, ignored = checked_context(request.context, self.bandit, self.settings)
        candidates = self._candidates(request)
        if ignored:
            self.count_ignored(ignored)
        event = Event(event_id, 0, digest, State.DEFERRED if request.defer else State.OPEN)
        with Draft(self) as draft:
            row = event.row = self._decide(event, candidates, context, request.defer)
            self._check_score(row)
            event.seq, event.arm = row.seq, str(row.taken)
            draft.add(event)
            self.events.add(event)
            if not request.defer:
                self._begin(event)
        answer = self._answer(event, request) if request.explain else self.answers.of(row)
        return Decided(answer, False, self.unit)

    def check_reached(self, version: int | None) -> None:
        """Raise `NotYet` unless the state includes the row of a version."""
        if version is not None and version > self.version:
            raise NotYet(
                f"at_least must be at most {self.version}, got {version}: send the request again "
                "later"
            )

    def _candidates(self, request: DecideRequest) -> Candidates:
        """Return the candidates of a request; for most requests they are all arms, and cached."""
        bandit, settings = self.bandit, self.settings
        if request.actions is not None or request.exclude or request.baseline is not None:
            return Candidates.of(bandit, settings, request)
        arms, given, kept = self._usual
        if kept is None or arms is not bandit.arms or given is not settings:
            kept = Candidates.of(bandit, settings, request)
            self._usual = bandit.arms, settings, kept
        return kept

    def count_ignored(self, names: list[str]) -> None:
        """Count fields that the features do not have, of at most `MAX_IGNORED` names."""
        for name in names:
            if name in self.ignored or len(self.ignored) < MAX_IGNORED:
                self.ignored[name] = self.ignored.get(name, 0) + 1

    def _decide(
        self, event: Event, candidates: Candidates, context: Context, deferred: bool
    ) -> rows.Decision | rows.Served:
        """Choose an arm, append its row, and return the row.

        Parameters
        ----------
        event : Event
            The event, which is not known yet.
        candidates : Candidates
            The arms.
        context : dict or list
            The context.
        deferred : bool
            Whether the event is not active yet.
        """
        journal, mode, request = self.journal, self.settings.mode, event.request.hex()
        if mode == "off":
            event.learns, event.state = False, State.OPEN
            served = {"event": event.name, "arm": candidates.baseline, "arms": candidates.names}
            return journal.add(rows.Served, served | {"request": request})
        # Encoded first: a replay then does the same with the numbers of the row.
        y = self._encoded(context, candidates)
        if candidates.new:
            check_missing(self.settings, context)  # a request that is refused adds no arms
            seen = np.asarray(y)
            checks.floats("context", seen[~np.isnan(seen)])
            self._add_arms(candidates.new)
        event.due = None if deferred else self._due()
        # A row always lists its candidates: arms may come and go.
        extra: dict[str, Any] = {"request": request, "arms": candidates.names}
        if event.due is not None:
            extra["due"] = event.due
        if deferred:
            extra["deferred"] = True
        if mode == "shadow":
            extra["served"] = candidates.baseline
        if candidates.among is None:
            fields = self.bandit.choose_everyday(y, event.name)
            if fields is not None:
                fields.update(extra)
                return journal.add(rows.Decision, fields)
        journal.extra, before = extra, len(journal.written)
        try:
            self.bandit.choose(y, among=candidates.among, event=event.name)
        except InvalidValue:
            check_missing(self.settings, context)
            raise
        # Rows of new levels may come before it, and rows of rewards that have waited after it.
        made = (row for row in journal.written[before:] if isinstance(row, rows.Decision))
        return next(made)

    def _check_score(self, row: rows.Decision | rows.Served) -> None:
        """Raise if a score is NaN, since sums are not finite: its row is not written."""
        if isinstance(row, rows.Decision) and row.score is not None and row.score != row.score:
            raise InvalidValue(
                f"loop {self.name!r} cannot decide, since its sums are not finite: rewards or "
                "observations of extreme size were learned. Export its log and create another loop"
            )

    def _encoded(self, context: Context, candidates: Candidates) -> Floats | list[Any]:
        """Return the observations of the candidates as numbers, NaN for a missing entry."""
        if context.__class__ is list and self.settings.features is None:
            # The bandit checks their number and size. An array, since integers would be computed by
            # other code than the floats of the row, with other last digits.
            try:
                return np.array(context, dtype=np.float64)
            except (TypeError, ValueError, OverflowError):
                return context  # the bandit raises, and names the fault
        y, _ = self.bandit.encoded(context, candidates.records)
        return y

    def _again(self, event: Event, request: DecideRequest, digest: bytes) -> Decided:
        self.journal.event(event.name)  # or raise, if it was forgotten
        if event.request != digest:
            raise Conflict(
                f"event_id {shown(event.name)} was used for a different request: send a new "
                "event_id"
            )
        return Decided(self._answer(event, request), True, self.unit)

    def _answer(self, event: Event, request: DecideRequest) -> DecideAnswer:
        answer = self.answers.of(self.journal.row_of(event))
        if not request.explain:
            return answer
        try:
            return msgspec.structs.replace(answer, explanation=self.explain(event.name))
        except InvalidValue as reason:
            # The decision is in the log, and must be answered.
            return msgspec.structs.replace(answer, unexplained=str(reason))

    def explain(self, name: str) -> dict[str, Any]:
        """Return what each feature adds to the score of an event's arm, by what is known now.

        The arm is compared with the candidates that still exist.

        Raises
        ------
        InvalidValue
            If a baseline was answered, or the arm was removed.
        """
        event = self.journal.event(name)
        row = self.journal.row_of(event)
        if not isinstance(row, rows.Decision):
            raise InvalidValue(
                f"event {shown(name)} cannot be explained: the loop was off, and its baseline was "
                "answered"
            )
        if self._lost_arm(event):
            raise InvalidValue(
                f"event {shown(name)} cannot be explained: its arm {shown(event.arm)} was removed"
            )
        seen = np.array([row.y], dtype=np.float64)  # null is NaN
        [y] = self.bandit.in_present_columns(seen, row.levels)
        names = row.arms or []
        kept = [k for k, arm in enumerate(names) if self.bandit.has_arm(arm)]
        y = y[0] if len(y) == 1 else y[kept]
        among = [names[k] for k in kept]
        explanation = asdict(self.bandit.explain(self.bandit.decision(name), y, among=among))
        return {**explanation, "version": self.version}

    # -- arms, observations, settings -------------------------------------------------------------

    def add_arms(self, arms: list[str] | dict[str, dict[str, Any]]) -> None:
        """Add arms; a dict has their records."""
        with Draft(self):
            self._add_arms(arms)

    def _add_arms(self, arms: list[str] | dict[str, dict[str, Any]]) -> None:
        for arm in arms:
            check_id("arms", arm)
        self._check_size(len(self.bandit.arms) + len(arms), self.bandit.n_columns)
        self.bandit.add_arms(arms)

    def _check_size(self, n_arms: int, n_columns: int) -> None:
        check_size(self.bandit.policy, n_arms, n_columns)

    def remove_arms(self, arms: list[str]) -> None:
        """Remove arms and their estimates.

        A parameter that arms share keeps their rewards.

        Raises
        ------
        InvalidValue
            If an arm is not there, is the baseline, or has pending rewards of a hybrid policy.
        """
        if self.settings.baseline in arms:
            raise InvalidValue(
                f"arm {shown(self.settings.baseline)} is the baseline, and cannot be removed: "
                "change the setting first"
            )
        sharing = self.bandit.policy.sharing
        if sharing == "hybrid" and self.bandit.has_waiting(arms):
            # They would be lost, and those that were learned stay in the shared part.
            raise InvalidValue(
                "arms of sharing='hybrid' cannot be removed while rewards of them wait until units "
                "are known: remove them later, or forget the events of these rewards"
            )
        with Draft(self) as draft:
            self.bandit.remove_arms(arms)
            self.events.drop_gone()
            if sharing == "per-arm":
                # Decisions of later rows are of an arm that was added again.
                statement = (
                    "UPDATE event SET learned = NULL WHERE loop = ? AND seq < ? "
                    "AND learned IS NOT NULL AND arm IN (SELECT value FROM json_each(?))"
                )
                listed = msgspec.json.encode(arms).decode()
                draft.others.append((statement, (self.number, self.version, listed)))
            left = self.settings.without(arms)
            if left != self.settings:
                # Settings that list a removed arm would add it again when they are given back.
                self._write_settings(left, draft)

    def observe(self, contexts: Any) -> None:
        """Record contexts without a decision."""
        with Draft(self):
            self.bandit.observe(contexts)

    def change(self, settings: LoopSettings) -> None:
        """Change what may change: rewards, mode, baseline; and add arms.

        Raises
        ------
        Conflict
            If policy, features or the record of an arm would change: what was learned depends on
            them.
        InvalidValue
            If the baseline is no arm.
        """
        mine, given = self.settings.what_is_fixed(), settings.what_is_fixed()
        for name, value in mine.items():
            if given[name] != value:
                raise Conflict(
                    f"{name} of loop {self.name!r} cannot change from {shown(value)} to "
                    f"{shown(given[name])}: what was learned depends on it. Create another loop"
                )
        settings.check_baseline(dict.fromkeys([*self.bandit.arms, *settings.arms]))
        self._check_records(settings.arms)
        given_arms, known = settings.arms, set(self.bandit.arms)
        new: Any = [name for name in given_arms if name not in known]
        if isinstance(given_arms, dict):
            new = {name: given_arms[name] for name in new}
        with Draft(self) as draft:
            if new:
                self._add_arms(new)
            self._write_settings(settings, draft)

    def _check_records(self, arms: list[str] | dict[str, dict[str, Any]]) -> None:
        """Raise `Conflict` if an arm would get another record."""
        if not isinstance(arms, dict):
            return
        kept = self.bandit.arm_records
        same: dict[Arm, Any] = {name: record for name, record in arms.items() if name in kept}
        for name, record in self.bandit.checked_records(same).items():
            if record != kept[name]:
                raise Conflict(
                    f"the record of arm {shown(name)} cannot change from {shown(kept[name])} to "
                    f"{shown(record)}: send the features with each request, in actions, or remove "
                    "the arm and add it again, which forgets what was learned of it"
                )

    def _write_settings(self, settings: LoopSettings, draft: Draft) -> None:
        """Change the settings, and log them.

        Parameters
        ----------
        settings : LoopSettings
            The settings.
        draft : Draft
            The unit that writes them.
        """
        self.journal.append(rows.Settings, loop=self.name, settings=settings.to_dict())
        self.settings = settings
        statement = "UPDATE loop SET settings = ? WHERE id = ?"
        draft.others.append((statement, (msgspec.json.encode(settings), self.number)))

    def _tell(self, message: str) -> None:
        """Issue a warning of the bandit, without values: it becomes a line of the service's log."""
        public = message.public if isinstance(message, Message) else message
        warnings.warn(f"loop {self.name!r}: {public}", KeyholeWarning, stacklevel=2)

    def model(self) -> bytes:
        """Return the bandit as a snapshot keeps it: equal states give equal bytes."""
        return packed(self.bandit)
