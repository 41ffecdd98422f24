"""Deciding online: `Bandit`, its decisions, its log, and one fitted from files."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from keyhole.core import Effects
from keyhole.online.bandit import Bandit
from keyhole.online.decision import Decision
from keyhole.online.decisions import Decisions
from keyhole.online.explaining import Explanation

if TYPE_CHECKING:
    from keyhole.online.fitting import fit
    from keyhole.online.log import (
        DECIDED,
        FORGOTTEN,
        LEARNED,
        UNKNOWN,
        Log,
        Store,
        rows,
        write_parquet,
    )
    from keyhole.online.log.replaying import Own, Replay
    from keyhole.online.logged import LoggedBandit

__all__ = [
    "DECIDED",
    "FORGOTTEN",
    "LEARNED",
    "UNKNOWN",
    "Bandit",
    "Decision",
    "Decisions",
    "Effects",
    "Explanation",
    "Log",
    "LoggedBandit",
    "Own",
    "Replay",
    "Store",
    "fit",
    "rows",
    "write_parquet",
]

# What needs the extra "logs", which deciding does not.
_HOMES = {
    **dict.fromkeys(
        ("DECIDED", "FORGOTTEN", "LEARNED", "UNKNOWN", "Log", "Store", "rows", "write_parquet"),
        "keyhole.online.log",
    ),
    "LoggedBandit": "keyhole.online.logged",
    "Own": "keyhole.online.log.replaying",
    "Replay": "keyhole.online.log.replaying",
    "fit": "keyhole.online.fitting",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
