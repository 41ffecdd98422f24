"""Structured logs: a line of JSON for each failure and, if wanted, for each request.

The loggers are `keyhole.service` (failures, starts, stops) and `keyhole.service.requests`. No body,
no key and no context is written. Of equal lines, such as those of a full disk, a few are written,
and then how many were left out.
"""

from __future__ import annotations

import itertools
import logging
import math
import secrets
import time
import traceback
from typing import Any

import msgspec

from keyhole.service.http.repeats import Repeats
from keyhole.service.http.responses import Header, Scope

_events = logging.getLogger("keyhole.service")
_requests = logging.getLogger("keyhole.service.requests")
_run, _numbers = secrets.token_hex(4), itertools.count(1)


class Lines(logging.Formatter):
    """A line of JSON for every record, also for those of the server."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record; those of the service are lines already."""
        if record.name.startswith("keyhole.service"):
            return record.getMessage()
        fields = {"logger": record.name, "level": record.levelname, "message": record.getMessage()}
        if record.exc_info is not None:
            fields["trace"] = self.formatException(record.exc_info)
        return _line(**fields)


class Few(logging.Filter):
    """Lets only a few of equal lines through; lines of requests are never equal."""

    def __init__(self) -> None:
        super().__init__()
        self.repeats = Repeats()

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether a line is written."""
        if record.name == _requests.name:
            return True
        kind = getattr(record, "kind", None) or f"{record.name}: {record.getMessage()}"
        return self.repeats.allows(kind)


_few = Few()


def to_stderr() -> None:
    """Write the lines of the service, and warnings of others and of Python, to stderr."""
    handler = logging.StreamHandler()
    handler.setFormatter(Lines())
    handler.addFilter(_few)
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.captureWarnings(True)
    _events.setLevel(logging.INFO)


def tell_left_out(*, at_end: bool = False) -> None:
    """Write how many equal lines were left out.

    Parameters
    ----------
    at_end : bool, default False
        Do so now, and not only when the time for counting is over.
    """
    for kind, count in _few.repeats.over(math.inf if at_end else None):
        event("equal lines were left out", lines=count, like=kind)


def request_id(scope: Scope) -> str:
    """Return the id of a request: that of its header `X-Request-Id`, or a new one."""
    for name, value in scope["headers"]:
        if name == b"x-request-id" and len(value) <= 100:
            text: str = value.decode("latin-1")
            if text.isascii() and text.isprintable():
                return text
    return f"{_run}-{next(_numbers)}"


def request(scope: Scope, status: int, seconds: float, extra: tuple[Header, ...]) -> None:
    """Write a line for a request.

    Parameters
    ----------
    scope : dict
        The request.
    status : int
        The status of its answer.
    seconds : float
        How long it took.
    extra : tuple
        Headers of its answer, which may have its id.
    """
    name = dict(extra).get(b"x-request-id")
    _requests.info(
        _line(
            method=scope["method"],
            path=scope["path"],
            status=status,
            milliseconds=round(1000.0 * seconds, 3),
            request_id=request_id(scope) if name is None else name.decode(),
        )
    )


def failure(scope: Scope, name: str, status: int, error: BaseException) -> None:
    """Write a line for a request that the service failed to answer.

    Parameters
    ----------
    scope : dict
        The request.
    name : str
        Its id.
    status : int
        The status of its answer.
    error : BaseException
        Why.
    """
    fields: dict[str, Any] = {"method": scope["method"], "path": scope["path"], "status": status}
    if status == 500:
        fields["trace"] = "".join(traceback.format_exception(error))
    reason = f"{type(error).__name__}: {error}"
    line = _line(**fields, request_id=name, error=reason)
    _events.error(line, extra={"kind": f"{status}: {reason}"})


def event(what: str, error: BaseException | None = None, **fields: Any) -> None:
    """Write a line for something that happened to the service.

    Parameters
    ----------
    what : str
        What happened.
    error : BaseException, optional
        Why.
    **fields
        What else is known.
    """
    if error is None:
        _events.info(_line(event=what, **fields), extra={"kind": f"{what} {fields or ''}"})
    else:
        trace = "".join(traceback.format_exception(error))
        line = _line(event=what, error=str(error), trace=trace, **fields)
        _events.error(line, extra={"kind": f"{what}: {error}"})


def _line(**fields: Any) -> str:
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
    return msgspec.json.encode({"at": f"{stamp}Z", **fields}).decode()
