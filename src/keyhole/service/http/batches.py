"""Batches: newline-delimited JSON in, a line with a status out for each, in one commit or a few.

A line that is refused does not affect the others. All that was accepted is on the disk before the
answer begins. Blank lines are not answered, but count in the numbers of lines.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from keyhole.service.http import responses
from keyhole.service.http.problems import Problem, ProblemDetails, details, problem_of
from keyhole.service.http.request import Request
from keyhole.service.http.routing import Answered
from keyhole.service.http.turns import Turns
from keyhole.service.requests import DecideAnswer, RewardAnswer

if TYPE_CHECKING:
    from keyhole.service.http.app import Application


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
    """The id in a line that was refused."""

    event_id: Any = None


_named = msgspec.json.Decoder(_Named)


async def answered(
    app: Application, request: Request, one: Callable[[int, bytes], tuple[int, Any]]
) -> Answered:
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
    check_lines(body, app.limits.batch_lines)
    answers: list[Any] = []
    turns = Turns(app)
    for number, line in enumerate(body.split(b"\n"), 1):
        if not line.strip():
            continue
        await turns.begin_step()
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
        turns.add(unit)
        answers.append(answer)
    return responses.lines(answers), turns.unit


def check_lines(body: bytes, limit: int) -> None:
    """Raise a `Problem` of status 413 if a batch has too many lines, blank ones too.

    They are counted before they are split: millions of them take a gigabyte.

    Parameters
    ----------
    body : bytes
        The batch.
    limit : int
        How many lines it may have.
    """
    count = body.count(b"\n") + (not body.endswith(b"\n"))
    if count > limit:
        raise Problem(
            413, f"a batch must have at most {limit} lines, got {count}: send it in parts"
        )


def event_id_of(line: bytes) -> str | None:
    """Return the id of the event of a line that was refused, or None if it has none."""
    try:
        found = _named.decode(line).event_id
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return found if isinstance(found, str) else None
