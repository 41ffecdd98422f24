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
from keyhole.service.exporting import export, replay
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
    "Action",
    "Compacted",
    "Conflict",
    "DecideAnswer",
    "DecideRequest",
    "Decided",
    "Loop",
    "LoopSettings",
    "NotYet",
    "RewardAnswer",
    "RewardRequest",
    "RewardSettings",
    "Service",
    "UnknownLoop",
    "Verified",
    "compact",
    "export",
    "replay",
    "verify",
]
