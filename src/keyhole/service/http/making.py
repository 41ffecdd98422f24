"""`application`: the ASGI application of a folder, with all routes and settings."""

from __future__ import annotations

from dataclasses import dataclass, field

from keyhole.errors import InvalidValue
from keyhole.files import Path
from keyhole.service.http import logs
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
        The address. One that other machines can reach needs a key.
    loops : dict of str to LoopSettings, default {}
        Loops that are made, or changed, at the start. Arms that were removed stay so.
    origins : tuple of str, default ()
        Origins of pages that may send requests.
    limits : Limits
        How much a client may send.
    log_requests : bool, default False
        Write a line of JSON for every request.
    without_keys : bool, default False
        Serve without keys again, after the file of keys was deleted.
    synchronous : {"FULL", "OFF"}, default "FULL"
        Whether the disk confirms what is written. "OFF" is for measurements.
    """

    host: str = "127.0.0.1"
    loops: dict[str, LoopSettings] = field(default_factory=dict)
    origins: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    log_requests: bool = False
    without_keys: bool = False
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
        If other machines can reach the address and there is no key; or if there were keys before
        and their file is gone.
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
        check_keys(keys, service, without_keys=options.without_keys)
        for name, settings in options.loops.items():
            create_at_start(service, name, settings)
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


def create_at_start(service: Service, name: str, settings: LoopSettings) -> None:
    """Make or change a loop at a start; arms that were removed since stay so.

    The same settings are given at every start, and would undo every removal.

    Parameters
    ----------
    service : Service
        The service.
    name : str
        The loop.
    settings : LoopSettings
        Its settings.
    """
    removed = service.removed_arms(name, settings.arms)
    if removed:
        logs.event(
            "arms were removed, and the settings at the start list them: they are left out. "
            "POST .../arms adds them again",
            loop=name,
            arms=removed,
        )
    service.create(name, settings.without(removed))


def check_keys(keys: KeyFile, service: Service, *, without_keys: bool) -> None:
    """Raise `InvalidValue` if the keys of a folder are gone: it would be open to all programs.

    Parameters
    ----------
    keys : KeyFile
        The keys.
    service : Service
        The service, which notes that there are keys.
    without_keys : bool
        Serve without keys again.
    """
    keys.refresh()
    if without_keys:
        if keys.exists:
            raise InvalidValue(f"--without-keys needs a folder without keys, got {keys.path}")
        service.wait(service.note_keys(are_needed=False))
    elif keys.exists:
        service.wait(service.note_keys())
    elif service.has_had_keys:
        raise InvalidValue(
            f"{keys.path} is missing, and this folder was served with keys: restore the file, or "
            "make a key with 'keyhole keys add'. 'keyhole serve --without-keys' serves all "
            "programs of this machine again"
        )
