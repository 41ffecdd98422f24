"""Errors as `application/problem+json` (RFC 9457): what came, what is allowed, the fix.

400  the body is not JSON                  410  the event was forgotten
401  no key, or one that is not known      413  too large: bytes, lines
403  a key without the role or the loop    422  not of the schema, not finite, not allowed
404  no such route, loop or event          503  nothing can be written to the disk
405  the route has other methods
408  the request did not come in time
409  the id was used for a different request, or a setting cannot change
"""

from __future__ import annotations

from http import HTTPStatus

import msgspec

from keyhole.errors import (
    AlreadyLearned,
    FileError,
    ForgottenEvent,
    InvalidValue,
    KeyholeError,
    UnknownEvent,
)
from keyhole.service.http.responses import Header, Response, json
from keyhole.service.loop import Conflict, NotYet
from keyhole.service.service import UnknownLoop

CONTENT = (b"content-type", b"application/problem+json")

# The first that fits counts.
STATUSES: tuple[tuple[type[BaseException], int], ...] = (
    (UnknownLoop, 404),
    (UnknownEvent, 404),
    (ForgottenEvent, 410),
    (Conflict, 409),
    (NotYet, 409),
    (AlreadyLearned, 409),
    (InvalidValue, 422),
    (msgspec.ValidationError, 422),
    (msgspec.DecodeError, 400),
    (UnicodeDecodeError, 400),
    (RecursionError, 422),
    (FileError, 503),
)


class ProblemDetails(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An error, as clients get it.

    Parameters
    ----------
    type : str
        The kind of problem; "about:blank" if the status says all.
    title : str
        The meaning of the status.
    status : int
        The status.
    detail : str
        What came, what is allowed, and the fix.
    request_id : str, optional
        The id by which the request is found in the service's log.
    """

    title: str
    status: int
    detail: str
    type: str = "about:blank"
    request_id: str | None = None


class Problem(KeyholeError):
    """A request that is answered with an error.

    Parameters
    ----------
    status : int
        The status.
    detail : str
        What came, what is allowed, and the fix.
    headers : tuple, optional
        Headers of the answer.
    """

    def __init__(self, status: int, detail: str, headers: tuple[Header, ...] = ()) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, headers


def problem_of(error: BaseException) -> Problem:
    """Return an exception as the problem that a client gets."""
    if isinstance(error, Problem):
        return error
    for kind, status in STATUSES:
        if isinstance(error, kind):
            headers = ((b"retry-after", b"1"),) if status == 503 else ()
            return Problem(status, _text(error), headers)
    return Problem(500, "the service failed; its log has the reason under this request_id")


def details(problem: Problem, request_id: str | None = None) -> ProblemDetails:
    """Return a problem as clients get it.

    Parameters
    ----------
    problem : Problem
        The problem.
    request_id : str, optional
        The id of the request.
    """
    return ProblemDetails(
        title=HTTPStatus(problem.status).phrase,
        status=problem.status,
        detail=problem.detail,
        request_id=request_id,
    )


def response_of(problem: Problem, request_id: str) -> Response:
    """Return the answer to a request that failed.

    Parameters
    ----------
    problem : Problem
        The problem.
    request_id : str
        The id of the request.
    """
    return json(details(problem, request_id), problem.status, (CONTENT, *problem.headers))


def _text(error: BaseException) -> str:
    if isinstance(error, RecursionError):
        return "the body is nested too deeply"
    if isinstance(error, msgspec.ValidationError):
        return f"the body is not of the schema (see /openapi.json): {error}"
    if isinstance(error, msgspec.DecodeError | UnicodeDecodeError):
        return f"the body must be JSON in UTF-8: {error}"
    return str(error)
