"""Batches: newline-delimited JSON in, a line with a status out for each, in one commit or a few.

A line that is refused does not affect the others. All that was accepted is on the disk before the
answer begins. Blank lines are not answered, but count in the numbers of lines.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from keyhole.service.http import responses
from keyhole.service.http.problems import Problem, ProblemDetails, details, problem_of
from keyhole.service.http.request import Request
from keyhole.service.http.responses import Response
from keyhole.service.requests import DecideAnswer, RewardAnswer

if TYPE_CHECKING:
    from keyhole.service.http.app import Application
    from keyhole.service.writer import Writer

# Lines, 3 ms of work, after which a commit is made and other requests have their turn.
TURN = 100


class Decision(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to a line of `decide:batch`."""

    line: int
    event_id: str
    status: int
    answer: DecideAnswer
    replay: bool = False


class Reward(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to a line of `rewards`."""

    line: int
    event_id: str
    status: int
    answer: RewardAnswer


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a line that was refused; the id is null if none could be read."""

    line: int
    event_id: str | None
    status: int
    problem: ProblemDetails


class _Named(msgspec.Struct):
    """What is read of a line that was refused."""

    event_id: Any = None


_named = msgspec.json.Decoder(_Named)


async def answered(
    app: Application, request: Request, one: Callable[[int, bytes], tuple[int, Any]]
) -> Response:
    """Answer each line of a batch.

    Parameters
    ----------
    app : Application
        The application.
    request : Request
        The request.
    one : callable
        Answers a line, by its number and content: returns the unit that it wrote, and the answer.
    """
    body = await request.body(app.limits.batch)
    given = [(k, line) for k, line in enumerate(body.split(b"\n"), 1) if line.strip()]
    if len(given) > app.limits.batch_lines:
        raise Problem(
            413, f"a batch must have at most {app.limits.batch_lines} lines, got {len(given)}"
        )
    answers: list[Any] = []
    # A service that recovers in between has another writer, and units of its own.
    units: dict[Writer, int] = {}
    for count, (number, line) in enumerate(given):
        if count and count % TURN == 0:
            await asyncio.sleep(0)
        try:
            unit, answer = one(number, line)
        except Exception as error:  # becomes the status of its line
            problem = problem_of(error)
            if problem.status >= 500:
                raise
            answer = Refused(
                line=number,
                event_id=event_id_of(line),
                status=problem.status,
                problem=details(problem),
            )
            unit = app.service.writer.submitted  # a refusal may follow from rows, too
        writer = app.service.writer
        units[writer] = max(unit, units.get(writer, 0))
        answers.append(answer)
    response = responses.lines(answers)
    for writer, unit in units.items():
        if writer.committed < unit:
            await app.commits.future(writer, unit)
    return response


def event_id_of(line: bytes) -> str | None:
    """Return the id of the event of a line that was refused, or None if it has none."""
    try:
        found = _named.decode(line).event_id
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return found if isinstance(found, str) else None
