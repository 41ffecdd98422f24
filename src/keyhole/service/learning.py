"""`LoopLearning`: learn the events of a loop, from their rewards or the default."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keyhole.errors import InvalidValue, shown
from keyhole.online import LoggedBandit, rows
from keyhole.service.events import Event, EventCache, State
from keyhole.service.requests import RewardAnswer, RewardStatus, check_id
from keyhole.service.settings import LARGEST, LoopSettings
from keyhole.service.units import Draft, LoopUnits

# Rows that may carry a reward.
CAME = (rows.Reward, rows.Amend, rows.Outcome)
# Events that time out in one unit: some milliseconds, in which no request is served.
MAX_DUE = 50


class LoopLearning(LoopUnits):
    """The events of a loop, learned by its bandit.

    Attributes
    ----------
    settings : LoopSettings
        Its settings.
    bandit : LoggedBandit
        Its bandit, which writes to the journal.
    events : EventCache
        Its events.
    """

    settings: LoopSettings
    bandit: LoggedBandit
    events: EventCache
    _now: Callable[[], float]  # the clock
    _tell: Callable[[str], None]  # issues a warning

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
            Distinguishes it from other rewards of the event.
        """
        check_id("reward_id", reward_id, shortest=0)
        if not abs(value) <= LARGEST:
            raise InvalidValue(f"value must be a number from -1e50 to 1e50, got {value}")
        self.check_usable()
        event = self.journal.event(name)
        if reward_id in event.rewards or reward_id in event.uncounted:
            return self._reward_answer("duplicate", event)
        status = self._status(event)
        with Draft(self) as draft:
            if status in ("late", "ignored"):
                self._leave_out(event, reward_id, value)
            else:
                self._take(event, reward_id, value, holds=status == "held")
            draft.add(event)
            # Rows of rewards that have waited for this one may follow.
            seq = next(one.seq for one in self.journal.written if isinstance(one, CAME))
            counts = int(reward_id in event.rewards)
            draft.rewards.append((self.number, name, reward_id, seq, value, counts))
        return self._reward_answer(status, event)

    def _leave_out(self, event: Event, reward_id: str, value: float) -> None:
        """Keep a reward that never counts."""
        event.uncounted[reward_id] = value
        self.journal.append(rows.Outcome, event=event.name, id=reward_id, value=value, counts=False)

    def _take(self, event: Event, reward_id: str, value: float, *, holds: bool) -> None:
        """Keep a reward that counts, and learn it or hold it."""
        event.rewards[reward_id] = value
        try:
            total = self._checked_total(event, value)
            if holds:
                self.journal.append(rows.Outcome, event=event.name, id=reward_id, value=value)
            else:
                self._learn(event, total, reward_id, value)
        except BaseException:
            del event.rewards[reward_id]
            raise

    def _status(self, event: Event) -> RewardStatus:
        """Return the status of a new reward of an event."""
        settings = self.settings.reward
        if not event.learns:
            return "ignored"
        if not self.journal.has_row(event):
            return "late"  # its decision was archived
        if self._lost_arm(event):
            return "ignored"
        if event.state is State.DEFERRED:
            return "held"
        if event.state is State.ENDED:
            if settings.late == "ignore":
                return "late"
            return "counted" if event.learned is None else "amended"
        if settings.learning == "at_end" and event.due is not None and event.learned is None:
            # An event of earlier settings has no end, or was learned: it learns rewards at once.
            return "held"
        return "counted"

    def _checked_total(self, event: Event, value: float) -> float:
        """Return the total of the rewards that count, with the new one; or raise."""
        total = event.total(self.settings.reward)
        assert total is not None
        if not abs(total) <= LARGEST:
            raise InvalidValue(
                f"value must keep the total of the event between -1e50 and 1e50, got {value}: the "
                f"total would be {total}"
            )
        return total

    def _learn(self, event: Event, total: float, reward_id: str, value: float) -> None:
        """Learn a total, or amend the one that was learned; if they are equal, log the reward."""
        if event.learned is None:
            self._learn_first(event, total, id=reward_id, outcome=value)
        elif event.learned != total:
            self.journal.extra = {"id": reward_id, "outcome": value}
            self.bandit.amend(event.name, total)
            event.learned = total
        else:
            self.journal.append(rows.Outcome, event=event.name, id=reward_id, value=value)

    def _learn_first(self, event: Event, total: float, **fields: Any) -> None:
        """Learn the reward of an event that was not learned before.

        Parameters
        ----------
        event : Event
            The event.
        total : float
            The total of its rewards that count, or the default.
        **fields
            Further fields of the row.
        """
        if self.bandit.learns_in_order:
            # With these fields a start takes in rewards without their decisions, many in one call.
            row = self.journal.row_of(event)
            assert isinstance(row, rows.Decision)
            fields |= row.learned_at()
        self.journal.extra = fields
        self.bandit.learn(event.name, total)
        event.learned = total

    def _lost_arm(self, event: Event) -> bool:
        """Whether the arm of an event was removed: nothing can be learned of it."""
        arm, bandit = event.arm, self.bandit
        return (
            not bandit.has_arm(arm)
            or self._is_gone(event)
            or bandit.is_integrated_out(arm, event.seq)
        )

    def _is_gone(self, event: Event) -> bool:
        """Whether an event lost its term when its arm was removed."""
        return self.bandit.has_lost(event.arm, event.seq)

    def _learnable_total(self, event: Event) -> float | None:
        """Return the total of the rewards that count; None if nothing can be learned of it."""
        total = event.total(self.settings.reward)
        if total is None or self._lost_arm(event):
            return None
        if not abs(total) <= LARGEST:  # by another aggregate than when they came
            self._tell(f"an event was not learned: its total {total:g} is beyond {LARGEST:g}")
            return None
        return total

    def _reward_answer(self, status: RewardStatus, event: Event) -> RewardAnswer:
        total = event.total(self.settings.reward)
        return RewardAnswer(status=status, total=total, version=self.version)

    # -- other changes of an event ----------------------------------------------------------------

    def activate(self, name: str) -> None:
        """Make a deferred event active; one that is active stays so."""
        self.check_usable()
        event = self.journal.event(name)
        if event.state is not State.DEFERRED:
            return
        if not self.journal.has_row(event):
            raise InvalidValue(
                f"event {shown(name)} was archived before it was activated, and is never learned: "
                "give 'keyhole compact' a longer --keep"
            )
        with Draft(self) as draft:
            event.state, event.due = State.OPEN, self._due() if event.learns else None
            self.journal.append(rows.Activate, event=name, due=event.due)
            self._begin(event)
            draft.add(event)

    def forget(self, name: str) -> None:
        """Take an event out of the sums, and refuse rewards of it from now on."""
        event = self.journal.event(name)
        with Draft(self) as draft:
            if isinstance(self.journal.row_of(event), rows.Decision):
                self.bandit.forget(name)
            else:
                self.journal.append(rows.Forget, event=name)
            event.state, event.due, event.learned = State.FORGOTTEN, None, None
            event.last = event.last_row = None
            draft.add(event)

    def time_out(self, names: list[str]) -> int:
        """End events that no longer wait for rewards, and return how many did.

        Parameters
        ----------
        names : list of str
            Their ids. Those that are not due are left alone.
        """
        now, ended = self._now(), 0
        with Draft(self) as draft:
            for name in names:
                event = self.events.get(name)
                if event is None or event.due is None or event.due > now:
                    continue
                total = self._learnable_total(event)
                if event.learned is None and total is not None:
                    self._learn_first(event, total, ends=True)
                else:
                    self.journal.append(rows.Due, event=name)
                event.state, event.due = State.ENDED, None
                draft.add(event)
                ended += 1
        return ended

    def _due(self) -> float | None:
        """Return when an event that becomes active now is due."""
        reward = self.settings.reward
        return None if reward.learning == "at_once" else self._now() + reward.seconds

    def _begin(self, event: Event) -> None:
        """Learn the held rewards, or the default, of an event that becomes active."""
        if self.settings.reward.learning == "at_end" or not event.learns:
            return
        total = self._learnable_total(event)
        if total is not None:
            self._learn_first(event, total)
