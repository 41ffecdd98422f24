"""The decision service: loops behind HTTP, durable, exactly once, provable."""

from keyhole.errors import MissingExtra, install_line

try:
    import apsw as _apsw  # noqa: F401
    import msgspec as _msgspec  # noqa: F401
except ImportError as _reason:
    raise MissingExtra(
        f"the decision service needs {_reason.name}, which is not installed: "
        f"{install_line('service')}"
    ) from None

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from keyhole.service.compacting import Compacted, compact
from keyhole.service.config import loops_of
from keyhole.service.exporting import export, replay
from keyhole.service.http import (
    EventView,
    Limits,
    LoopView,
    Options,
    ProbabilitiesView,
    application,
    serve,
)
from keyhole.service.keys import ROLES, Key, KeyFile, Role
from keyhole.service.loop import Conflict, Decided, Loop, NotYet
from keyhole.service.requests import (
    Action,
    DecideAnswer,
    DecideRequest,
    RewardAnswer,
    RewardRequest,
)
from keyhole.service.service import Service, UnknownLoop
from keyhole.service.settings import LoopSettings, RewardSettings
from keyhole.service.verifying import Verified, verify

if _TYPE_CHECKING:
    from keyhole.service.client import AsyncClient, Client, ServiceError

__all__ = [
    "ROLES",
    "Action",
    "AsyncClient",
    "Client",
    "Compacted",
    "Conflict",
    "DecideAnswer",
    "DecideRequest",
    "Decided",
    "EventView",
    "Key",
    "KeyFile",
    "Limits",
    "Loop",
    "LoopSettings",
    "LoopView",
    "NotYet",
    "Options",
    "ProbabilitiesView",
    "RewardAnswer",
    "RewardRequest",
    "RewardSettings",
    "Role",
    "Service",
    "ServiceError",
    "UnknownLoop",
    "Verified",
    "application",
    "compact",
    "export",
    "loops_of",
    "replay",
    "serve",
    "verify",
]


def __getattr__(name: str) -> _Any:
    """Import the clients when they are first used: the server does not need them."""
    if name in ("AsyncClient", "Client", "ServiceError"):
        return getattr(_import_module("keyhole.service.client"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
