"""`application`: the ASGI application of a folder, with all routes and settings."""

from __future__ import annotations

from dataclasses import dataclass, field

from keyhole.errors import InvalidValue
from keyhole.files import Path
from keyhole.service.http.access import Access, is_loopback
from keyhole.service.http.app import Application
from keyhole.service.http.commits import Commits
from keyhole.service.http.limits import Limits
from keyhole.service.http.personalizer import personalizer_routes
from keyhole.service.http.routes import native_routes
from keyhole.service.http.routing import Router
from keyhole.service.keys import KeyFile
from keyhole.service.service import Service
from keyhole.service.settings import LoopSettings


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a folder is served.

    Parameters
    ----------
    host : str, default "127.0.0.1"
        The address. One that others can reach needs a key.
    loops : dict of str to LoopSettings, default {}
        Loops that are made, or changed, at the start.
    origins : tuple of str, default ()
        Origins of pages that may send requests.
    limits : Limits
        How much a client may send.
    log_requests : bool, default False
        Write a line of JSON for every request.
    synchronous : {"FULL", "OFF"}, default "FULL"
        Whether the disk confirms what is written. "OFF" is for measurements.
    """

    host: str = "127.0.0.1"
    loops: dict[str, LoopSettings] = field(default_factory=dict)
    origins: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    log_requests: bool = False
    synchronous: str = "FULL"


def application(folder: Path, options: Options | None = None) -> Application:
    """Return the ASGI application of a folder.

    Parameters
    ----------
    folder : path-like
        The folder of the service, which is made if it does not exist.
    options : Options, optional
        How it is served.

    Raises
    ------
    InvalidValue
        If others can reach the address, and there is no key.
    FileUnusable
        If another process works on the folder.
    """
    options = options or Options()
    keys = KeyFile(folder)
    is_public = not is_loopback(options.host)
    if is_public and not keys.has_valid():
        raise InvalidValue(
            f"host must be one of this machine, such as 127.0.0.1, while there is no key, got "
            f"{options.host!r}: others could decide and learn. 'keyhole keys add' makes a key"
        )
    commits = Commits()
    service = Service(folder, notify=commits.notify, synchronous=options.synchronous)
    try:
        commits.service = service
        for name, settings in options.loops.items():
            service.create(name, settings)
        return Application(
            service,
            commits,
            Access(keys, is_public=is_public, origins=options.origins),
            Router([*native_routes(), *personalizer_routes()]),
            limits=options.limits,
            log_requests=options.log_requests,
        )
    except BaseException:
        service.close()
        raise
