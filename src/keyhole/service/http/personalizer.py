"""Personalizer's three routes, for its unchanged clients: rank, reward, activate.

They are served for the loop "personalizer", and under /loops/{loop} for any other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from keyhole.service.digests import request_digest
from keyhole.service.http import rank, responses
from keyhole.service.http.about import About
from keyhole.service.http.deciding import check_may_make, decided_first
from keyhole.service.http.problems import Problem
from keyhole.service.http.request import Request
from keyhole.service.http.responses import Response
from keyhole.service.http.routing import Answered, Route, StraightHandler
from keyhole.service.requests import DecideAnswer
from keyhole.service.service import UnknownLoop

if TYPE_CHECKING:
    from keyhole.service.http.app import Application
    from keyhole.service.keys import Role

# A handler that also takes the name of the loop.
Work: TypeAlias = Callable[[Any, Request, bytes, str], Answered]
LOOP = "personalizer"
PREFIX = "/personalizer/v1.0"
# Statuses that its clients know, and the codes of its errors.
CODES = {
    401: "Unauthorized",
    403: "Forbidden",
    404: "ResourceNotFound",
    405: "BadRequest",
    413: "BadRequest",
}


class PersonalizerError(msgspec.Struct, frozen=True, kw_only=True):
    """An error, as Personalizer's clients read it."""

    code: str
    message: str


class ErrorResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The body of an error."""

    error: PersonalizerError


class RewardValue(msgspec.Struct, frozen=True, kw_only=True):
    """A reward."""

    value: float


_rank = msgspec.json.Decoder(rank.RankRequest)
_reward = msgspec.json.Decoder(RewardValue)
EMPTY = Response(204, b"", ())


def error_of(problem: Problem, _request_id: str) -> Response:
    """Return an error in the form of Personalizer.

    Parameters
    ----------
    problem : Problem
        The problem.
    _request_id : str
        The id of the request, which is in a header.
    """
    status = problem.status
    if status >= 500:
        code = "InternalServerError"
    elif status in CODES:
        code = CODES[status]
    else:
        code, status = "BadRequest", 400
    body = ErrorResponse(error=PersonalizerError(code=code, message=problem.detail))
    return responses.json(body, status, (responses.JSON, *problem.headers))


def ranked(app: Application, request: Request, body: bytes, name: str) -> Answered:
    """Rank the actions of a request.

    Parameters
    ----------
    app : Application
        The application.
    request : Request
        The request.
    body : bytes
        Its body.
    name : str
        The loop, which is made if it does not exist.
    """
    given = rank.as_decide(_rank.decode(body))
    rank.check_once(body)
    app.limits.check_decide(given)
    service = app.ready()
    try:
        settings, is_new = service.loop(name).settings, False
    except UnknownLoop as unknown:
        check_may_make(request, unknown)
        settings, is_new = rank.personalizer_settings(given), True
    kept, ignored = rank.without_unknown(settings, given)
    # The digest is of the whole request, and not of the part that the loop uses.
    digest = request_digest(given)
    if is_new:
        decided = decided_first(service, name, settings, kept, digest)
    else:
        decided = service.decide(name, kept, digest)
    if not decided.is_replay:
        service.loop(name).count_ignored(ignored)
    return responses.json(ranking(decided.answer, given.exclude), 201), decided.unit


def ranking(answer: DecideAnswer, excluded: list[str]) -> rank.RankResponse:
    """Return a decision as a ranking: the chosen action, then others by their probability.

    Parameters
    ----------
    answer : DecideAnswer
        The decision.
    excluded : list of str
        Actions that could not be chosen; they come last.
    """
    others = sorted(
        (name for name in answer.probabilities if name != answer.action),
        key=lambda name: -answer.probabilities[name],
    )
    chances = {**answer.probabilities, **dict.fromkeys(excluded, 0.0)}
    names = [answer.action, *others, *dict.fromkeys(excluded)]
    return rank.RankResponse(
        ranking=[rank.RankedAction(id=one, probability=chances[one]) for one in names],
        event_id=answer.event_id,
        reward_action_id=answer.action,
    )


def rewarded(app: Application, request: Request, body: bytes, name: str) -> Answered:
    """Take the reward of an event; the first of an event counts.

    Parameters
    ----------
    app : Application
        The application.
    request : Request
        The request.
    body : bytes
        Its body.
    name : str
        The loop.
    """
    given = _reward.decode(body)
    loop = app.ready().loop(name)
    loop.reward(request.params[-1], given.value)
    return EMPTY, loop.unit


def activated(app: Application, request: Request, _body: bytes, name: str) -> Answered:
    """Make an event active.

    Parameters
    ----------
    app : Application
        The application.
    request : Request
        The request.
    _body : bytes
        Its body, which is not used.
    name : str
        The loop.
    """
    loop = app.ready().loop(name)
    loop.activate(request.params[-1])
    return EMPTY, loop.unit


def personalizer_routes() -> list[Route]:
    """Return the routes of Personalizer, for its own loop and for any."""
    found = []
    for before, loop in (("", LOOP), ("/loops/{loop}", None)):
        for path, work, role, about in _WORK:
            found.append(
                Route(
                    method="POST",
                    path=before + PREFIX + path,
                    handler=_handler(work, loop),
                    role=role,
                    about=about,
                    loop=loop,
                    problem=error_of,
                    is_straight=True,
                )
            )
    return found


def _handler(work: Work, fixed: str | None) -> StraightHandler:
    """Return a handler that finds its loop in the path, if it is not fixed."""

    def handle(app: Application, request: Request, body: bytes) -> Answered:
        return work(app, request, body, fixed or request.params[0])

    return handle


_WORK: list[tuple[str, Work, Role, About]] = [
    (
        "/rank",
        ranked,
        "decide",
        About(
            "Rank actions, as Personalizer does.",
            {201: rank.RankResponse},
            body=rank.RankRequest,
            error=ErrorResponse,
        ),
    ),
    (
        "/events/{event}/reward",
        rewarded,
        "reward",
        About("Take a reward.", {204: None}, body=RewardValue, error=ErrorResponse),
    ),
    (
        "/events/{event}/activate",
        activated,
        "decide",
        About("Activate an event.", {204: None}, error=ErrorResponse),
    ),
]
