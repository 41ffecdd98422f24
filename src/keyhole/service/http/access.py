"""`Access`: who may do what. Without keys, only programs of this machine are served.

A browser sends requests for any page that its user visits, also to loopback. Requests that a page
of another origin makes are therefore refused, and so is a host name that is not of this machine
while there are no keys: another site may have made that name point here.
"""

from __future__ import annotations

import ipaddress

from keyhole.service.http.problems import Problem
from keyhole.service.http.request import Request
from keyhole.service.http.responses import Header
from keyhole.service.keys import Key, KeyFile, Role

CHALLENGE = ((b"www-authenticate", b'Bearer realm="keyhole"'),)
ANYONE = Key(name="", digest="", roles=["admin"])


def is_loopback(host: str) -> bool:
    """Tell whether a host, without its port, is this machine and cannot be reached by others."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class Access:
    """Who may do what.

    Parameters
    ----------
    keys : KeyFile
        The keys.
    is_public : bool, default False
        Whether programs of other machines can reach the service: keys are then needed, also if all
        of them were revoked.
    origins : tuple of str, default ()
        Origins of pages that may send requests, such as "https://shop.example".
    """

    def __init__(
        self, keys: KeyFile, *, is_public: bool = False, origins: tuple[str, ...] = ()
    ) -> None:
        self.keys, self._is_public = keys, is_public
        self._origins = frozenset(origin.encode() for origin in origins)
        self._hosts: set[bytes] = set()  # names that were found to be of this machine

    def check(self, request: Request, role: Role, loop: str | None) -> None:
        """Raise a `Problem` of status 401 or 403 unless a request may be served.

        Parameters
        ----------
        request : Request
            The request, which gets its key.
        role : str
            The role that is needed.
        loop : str or None
            The loop that it is about.
        """
        headers = request.headers
        if b"origin" in headers or b"sec-fetch-site" in headers:
            self._check_origin(headers)
        if self._is_open:
            self.check_host(request)
            request.key = ANYONE
            return
        key = self._key(headers)
        if not key.allows(role, loop):
            needed = f"role {role}" + ("" if loop is None else f" for loop {loop!r}")
            raise Problem(403, f"key {key.name!r} must have the {needed}, and does not")
        request.key = key

    @property
    def _is_open(self) -> bool:
        """Whether programs of this machine need no key."""
        return not self._is_public and not self.keys.exists

    def _key(self, headers: dict[bytes, bytes]) -> Key:
        given = headers.get(b"authorization")
        if given is not None:
            kind, _, secret = given.partition(b" ")
            secret = secret.strip() if kind.lower() == b"bearer" else b""
        else:
            secret = headers.get(b"ocp-apim-subscription-key", b"")
        if not secret:
            raise Problem(
                401,
                "a key is needed: send the header 'Authorization: Bearer KEY'; "
                "'keyhole keys add' makes one",
                CHALLENGE,
            )
        key = self.keys.find(secret)
        if key is None:
            raise Problem(401, "the key is not known, was revoked, or has expired", CHALLENGE)
        return key

    def _check_origin(self, headers: dict[bytes, bytes]) -> None:
        origin, site = headers.get(b"origin"), headers.get(b"sec-fetch-site", b"same-origin")
        if origin is not None and origin in self._origins:
            return
        own = origin is None or origin.partition(b"://")[2] == headers.get(b"host")
        if not own or site not in (b"same-origin", b"none"):
            raise Problem(
                403,
                "requests from pages of another origin are not served; 'keyhole serve --origin' "
                "allows one",
            )

    def check_host(self, request: Request) -> None:
        """Raise a `Problem` of status 403 if no keys are needed, but the host is not local."""
        host = request.headers.get(b"host", b"")
        if host in self._hosts or not self._is_open:
            return
        name = host.decode("latin-1")
        name = name[: name.rindex("]") + 1] if "]" in name else name.partition(":")[0]
        if not is_loopback(name):
            raise Problem(
                403,
                f"the header Host must be localhost or 127.0.0.1 while there are no keys, got "
                f"{name[:100]!r}; 'keyhole keys add' makes a key",
            )
        if len(self._hosts) < 100:
            self._hosts.add(host)

    def cors(self, headers: dict[bytes, bytes]) -> tuple[Header, ...]:
        """Return the headers by which a page of an allowed origin may read an answer."""
        origin = headers.get(b"origin")
        if origin is None or origin not in self._origins:
            return ()
        return (
            (b"access-control-allow-origin", origin),
            (b"access-control-allow-methods", b"GET, POST, PUT, DELETE"),
            (
                b"access-control-allow-headers",
                b"authorization, content-type, ocp-apim-subscription-key",
            ),
            (b"access-control-expose-headers", b"idempotent-replay, x-request-id"),
            (b"vary", b"origin"),
        )
