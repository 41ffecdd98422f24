"""Routes of events: reward, activate, show and forget one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from keyhole.errors import InvalidValue, shown
from keyhole.service.events import State
from keyhole.service.http import batches, responses
from keyhole.service.http.problems import Problem
from keyhole.service.http.request import Request
from keyhole.service.http.routing import Answered
from keyhole.service.loop import Loop
from keyhole.service.requests import DecideAnswer, RewardRequest

if TYPE_CHECKING:
    from keyhole.service.http.app import Application

EventState = Literal["deferred", "open", "ended"]


class RewardLine(RewardRequest, frozen=True, kw_only=True):
    """A reward of a batch, with the id of its event."""

    event_id: str


class EventView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An event: its state, its decision and its rewards.

    Parameters
    ----------
    event_id : str
        Its id.
    state : str
        "deferred": it waits for its activation. "open": it waits for rewards. "ended": rewards are
        late.
    decision : DecideAnswer
        The answer to its request.
    rewards : dict of str to float
        The rewards that came and count, by their ids.
    uncounted : dict of str to float
        The rewards that were answered as late or ignored, by their ids: they never count.
    total : float or None
        The total of the rewards that count.
    learned : float or None
        The total that was learned; null if nothing was, or the arm was removed.
    due : float or None
        When rewards are no longer waited for, in seconds since 1970.
    seq : int
        The number of its row in the log.
    explanation : dict, optional
        The contribution of each feature, by the present state.
    unexplained : str, optional
        Why there is no explanation, although it was requested.
    """

    event_id: str
    state: EventState
    decision: DecideAnswer
    rewards: dict[str, float]
    uncounted: dict[str, float]
    total: float | None
    learned: float | None
    due: float | None
    seq: int
    explanation: dict[str, Any] | None = None
    unexplained: str | None = None


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """The state of an event after a change."""

    event_id: str
    status: Literal["active", "forgotten"]
    version: int


_reward = msgspec.json.Decoder(RewardRequest)
_reward_line = msgspec.json.Decoder(RewardLine)


def reward(app: Application, request: Request, body: bytes) -> Answered:
    """Take a reward of an event.

    Parameters
    ----------
    app : Application
        The application.
    request : Request
        The request.
    body : bytes
        Its body.
    """
    given = _reward.decode(body)
    loop = app.ready().loop(request.params[0])
    answer = loop.reward(request.params[1], given.value, given.reward_id)
    return responses.json(answer), loop.unit


async def reward_batch(app: Application, request: Request) -> Answered:
    """Take the reward of each line, and answer each with a status of its own."""

    def one(number: int, line: bytes) -> tuple[int, Any]:
        given = _reward_line.decode(line)
        loop = app.ready().loop(request.params[0])
        answer = loop.reward(given.event_id, given.value, given.reward_id)
        return loop.unit, batches.Reward(
            line=number, event_id=given.event_id, status=200, answer=answer
        )

    return await batches.answered(app, request, one)


def activate(app: Application, request: Request, _body: bytes) -> Answered:
    """Make a deferred event active.

    Parameters
    ----------
    app : Application
        The application.
    request : Request
        The request.
    _body : bytes
        Its body, which is not used.
    """
    loop = app.ready().loop(request.params[0])
    loop.activate(request.params[1])
    done = Done(event_id=request.params[1], status="active", version=loop.version)
    return responses.json(done), loop.unit


async def forget(app: Application, request: Request) -> Answered:
    """Forget an event: take it out of the sums."""
    loop = app.ready().loop(request.params[0])
    loop.forget(request.params[1])
    done = Done(event_id=request.params[1], status="forgotten", version=loop.version)
    return responses.json(done), loop.unit


async def event(app: Application, request: Request) -> Answered:
    """Show an event."""
    explain = request.query("explain").get("explain", "false")
    if explain not in ("true", "false"):
        raise Problem(422, f"explain must be true or false, got {shown(explain)}")
    loop = app.ready().loop(request.params[0])
    view = event_view(loop, request.params[1], explain=explain == "true")
    return responses.json(view), loop.unit


def event_view(loop: Loop, name: str, *, explain: bool = False) -> EventView:
    """Return an event as clients see it.

    Parameters
    ----------
    loop : Loop
        Its loop.
    name : str
        Its id.
    explain : bool, default False
        Say what each feature adds.
    """
    found = loop.journal.event(name)
    row = loop.journal.row_of(found)
    states: dict[State, EventState] = {
        State.DEFERRED: "deferred",
        State.OPEN: "open",
        State.ENDED: "ended",
    }
    explanation = unexplained = None
    if explain:
        try:
            explanation = loop.explain(name)
        except InvalidValue as reason:
            unexplained = str(reason)
    return EventView(
        event_id=found.name,
        state=states[found.state],
        decision=loop.answers.of(row),
        rewards=found.rewards,
        uncounted=found.uncounted,
        total=found.total(loop.settings.reward),
        learned=found.learned,
        due=found.due,
        seq=found.seq,
        explanation=explanation,
        unexplained=unexplained,
    )
