"""`Call`: a request and the type of its answer; `ServiceError`: the answer was an error."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

import msgspec

from keyhole.errors import KeyholeError, MissingExtra, install_line

try:
    import httpx
except ImportError as _reason:  # pragma: no cover - tests have it
    raise MissingExtra(f"the client needs httpx: {install_line('service')}") from _reason

Answer = TypeVar("Answer")
# Statuses after which the same request may succeed.
AGAIN = frozenset({408, 429, 502, 503, 504})
# The status of an event that was forgotten, also by a request whose answer was lost.
FORGOTTEN = 410


class ServiceError(KeyholeError):
    """The service answered with an error, or not at all.

    Parameters
    ----------
    detail : str
        The message of the service: what came, what is allowed, and the fix.
    status : int, optional
        The status; None if there was no answer.
    request_id : str, optional
        The id by which the request is found in the service's log.
    """

    def __init__(
        self, detail: str, status: int | None = None, request_id: str | None = None
    ) -> None:
        super().__init__(detail)
        self.status, self.request_id = status, request_id


class Call(NamedTuple, Generic[Answer]):
    """A request, and the type of its answer."""

    method: str
    path: str
    content: bytes | None
    kind: type[Answer]

    def answer(self, response: httpx.Response) -> Answer:
        """Return the answer, or raise `ServiceError`."""
        if response.status_code >= 400:
            raise _error(response)
        return msgspec.json.decode(response.content, type=self.kind)


def _error(response: httpx.Response) -> ServiceError:
    try:
        found = msgspec.json.decode(response.content)
        detail, name = found["detail"], found.get("request_id")
    except (msgspec.MsgspecError, UnicodeDecodeError, KeyError, TypeError):
        detail, name = response.text[:200], None  # a proxy's, and not the service's
    return ServiceError(f"{response.status_code}: {detail}", response.status_code, name)
