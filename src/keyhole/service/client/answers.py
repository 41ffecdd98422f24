"""`Call`: a request and the type of its answer; `ServiceError`: the answer was an error."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

import msgspec

from keyhole.errors import KeyholeError, MissingExtra, install_line, shown

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
    """A request, and the type of its answer.

    Parameters
    ----------
    method, path : str
        The method and the path.
    content : bytes, optional
        The body.
    kind : type
        The type of the answer.
    same : tuple of str, optional
        A field of the answer and the value that it has in the request, such as ("event_id", "e1").
    """

    method: str
    path: str
    content: bytes | None
    kind: type[Answer]
    same: tuple[str, str] | None = None

    def answer(self, response: httpx.Response) -> Answer:
        """Return the answer, or raise `ServiceError`.

        It does so for an answer to another request, which a proxy or a connection that is shared
        may mix up: its action would be that of another event.
        """
        if response.status_code >= 300:
            raise _error(response)
        try:
            answer = msgspec.json.decode(response.content, type=self.kind)
        except _UNREADABLE as reason:
            raise _foreign(response, self.kind, reason) from reason
        if self.same is not None:
            field, sent = self.same
            came = getattr(answer, field)
            if came != sent:
                raise ServiceError(
                    f"the answer is that of another request: {field} must be {shown(sent)}, got "
                    f"{shown(came)}. Is there a proxy that caches, or mixes up connections?",
                    response.status_code,
                )
        return answer


# What msgspec raises for bytes that are not JSON of a type.
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def _error(response: httpx.Response) -> ServiceError:
    try:
        found = msgspec.json.decode(response.content)
        detail, name = found["detail"], found.get("request_id")
    except (*_UNREADABLE, KeyError, TypeError):
        detail, name = _start(response), None  # a proxy's, and not the service's
    if response.has_redirect_location:
        detail = f"url must be the address of the service, which moved to {_place(response)}"
    return ServiceError(f"{response.status_code}: {detail}", response.status_code, name)


def _foreign(response: httpx.Response, kind: type, reason: Exception) -> ServiceError:
    """Return the exception of an answer that is not of the service.

    Parameters
    ----------
    response : Response
        The answer.
    kind : type
        The type that it should have.
    reason : Exception
        The reason why it has not.
    """
    status, media = response.status_code, response.headers.get("content-type", "no type")
    return ServiceError(
        f"{status}: the answer must be a {kind.__name__} in JSON, got {media}: {_start(response)} "
        f"({reason}). Is url the address of the service?",
        status,
    )


def _start(response: httpx.Response) -> str:
    # Not response.text: a header could name a codec that is none of texts, and raises.
    return response.content[:200].decode("utf-8", "replace")


def _place(response: httpx.Response) -> str:
    return shown(response.headers["location"])
