"""What the service promises of events and rewards, as plain Python: the model of the state machine.

It knows settings, events and rewards, and no bandit, no log and no disk. Which arm is chosen comes
from the answer; everything else follows.
"""

from dataclasses import dataclass, field
from typing import Any

from tests.service.rebuilding import AGGREGATES, DEFERRED, ENDED, FORGOTTEN, OPEN, learning_of


class Refused(Exception):
    """The name of the error that a request must get."""


@dataclass
class Promise:
    """An event, as a client may expect it."""

    request: dict[str, Any]
    answer: dict[str, Any]
    arm: str
    state: int
    due: float | None
    learns: bool
    learned: float | None = None
    is_lost: bool = False  # its arm was removed, and may have been added again
    rewards: dict[str, float] = field(default_factory=dict)  # those that count
    uncounted: dict[str, float] = field(default_factory=dict)


def content(request: dict[str, Any]) -> dict[str, Any]:
    """Return what a request is decided by."""
    return {name: value for name, value in request.items() if name != "at_least"}


class Contract:
    """A loop, as its clients may expect it.

    Parameters
    ----------
    settings : dict
        Its settings, with every field.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.arms: list[str] = list(settings["arms"])
        self.events: dict[str, Promise] = {}

    # -- what is asked ----------------------------------------------------------------------------

    def known(self, event: str) -> Promise:
        if event not in self.events:
            raise Refused("UnknownEvent")
        if self.events[event].state == FORGOTTEN:
            raise Refused("ForgottenEvent")
        return self.events[event]

    def again(self, event: str, request: dict[str, Any]) -> dict[str, Any] | None:
        """Return the answer that stands; None if there is none yet."""
        if event not in self.events:
            named = {one["id"] for one in request.get("actions") or []}
            if not self.settings["add_arms"] and not named <= set(self.arms):
                raise Refused("InvalidValue")
            return None
        promise = self.known(event)
        if content(promise.request) != content(request):
            raise Refused("Conflict")
        return promise.answer

    def decide(
        self, event: str, request: dict[str, Any], answer: dict[str, Any], now: float
    ) -> None:
        """Take note of a new decision."""
        mode, baseline = self.settings["mode"], self.settings["baseline"]
        names = [one["id"] for one in request.get("actions") or []] or list(self.arms)
        if mode != "off":  # a loop that is off does not learn of arms
            self.arms += [name for name in names if name not in self.arms]
        assert set(answer["probabilities"]) == set(names)
        assert abs(sum(answer["probabilities"].values()) - 1.0) < 1e-9
        assert answer["mode"] == mode
        if mode != "online":
            assert answer["action"] == (baseline if baseline in names else names[0])
            assert answer["probability"] == 1.0
        assert answer["action"] in names
        deferred = bool(request.get("defer")) and mode != "off"
        promise = Promise(
            request, answer, answer["action"], DEFERRED if deferred else OPEN, None, mode != "off"
        )
        self.events[event] = promise
        if not deferred:
            self._begin(promise, now)

    def activate(self, event: str, now: float) -> None:
        promise = self.known(event)
        if promise.state == DEFERRED:
            promise.state = OPEN
            self._begin(promise, now)

    def reward(self, event: str, value: float, name: str) -> tuple[str, float | None]:
        """Return the status and the total that must be answered."""
        promise = self.known(event)
        if name in promise.rewards or name in promise.uncounted:
            return "duplicate", self.total(promise)
        status = self.status(promise)
        kept = promise.uncounted if status in ("ignored", "late") else promise.rewards
        kept[name] = value
        if status in ("counted", "amended"):
            self._learn(promise, self.total(promise))
        return status, self.total(promise)

    def status(self, promise: Promise) -> str:
        """Return what must become of a new reward."""
        if not promise.learns or promise.is_lost:
            return "ignored"
        if promise.state == DEFERRED:
            return "held"
        if promise.state == ENDED and self.settings["reward"]["late"] == "ignore":
            return "late"
        if promise.state == ENDED and promise.learned is not None:
            return "amended"
        # One that was decided by other settings has no end, or was learned already.
        is_open = promise.due is not None and promise.learned is None
        return "held" if learning_of(self.settings) == "at_end" and is_open else "counted"

    def forget(self, event: str) -> None:
        promise = self.known(event)
        promise.state, promise.due, promise.learned = FORGOTTEN, None, None

    def time_out(self, now: float) -> int:
        """End what is due, and return how many events did."""
        due = [one for one in self.events.values() if one.due is not None and one.due <= now]
        for promise in due:
            if promise.learned is None and not promise.is_lost:
                self._learn(promise, self.total(promise))
            promise.state, promise.due = ENDED, None
        return len(due)

    def remove(self, arm: str) -> None:
        self.arms.remove(arm)
        for promise in self.events.values():
            if promise.arm == arm:
                promise.learned, promise.is_lost = None, True

    # -- what follows -----------------------------------------------------------------------------

    def total(self, promise: Promise) -> float | None:
        reward, values = self.settings["reward"], list(promise.rewards.values())
        total = AGGREGATES[reward["aggregate"]](values) if values else reward["default"]
        return None if total is None else float(total)

    def _begin(self, promise: Promise, now: float) -> None:
        learning = learning_of(self.settings)
        if not promise.learns:
            return
        if learning != "at_once":
            promise.due = now + self.settings["reward"]["wait"]
        begins = learning == "provisional" or (learning == "at_once" and promise.rewards)
        if begins and not promise.is_lost:
            self._learn(promise, self.total(promise))

    def _learn(self, promise: Promise, total: float | None) -> None:
        if total is not None:
            promise.learned = total

    @property
    def in_sums(self) -> int:
        """How many events the sums have."""
        return sum(one.learned is not None for one in self.events.values())
