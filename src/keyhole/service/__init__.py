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

from keyhole.service.compacting import Compacted, compact
from keyhole.service.config import loops_of
from keyhole.service.exporting import export, replay
from keyhole.service.http import Limits, Options, application, serve
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

__all__ = [
    "ROLES",
    "Action",
    "Compacted",
    "Conflict",
    "DecideAnswer",
    "DecideRequest",
    "Decided",
    "Key",
    "KeyFile",
    "Limits",
    "Loop",
    "LoopSettings",
    "NotYet",
    "Options",
    "RewardAnswer",
    "RewardRequest",
    "RewardSettings",
    "Role",
    "Service",
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
