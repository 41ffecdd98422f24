"""Deciding online: `Bandit`, its decisions, and its log."""

from typing import TYPE_CHECKING, Any

from keyhole.core import Effects
from keyhole.online.bandit import Bandit
from keyhole.online.decision import Decision
from keyhole.online.decisions import Decisions
from keyhole.online.explaining import Explanation

if TYPE_CHECKING:
    from keyhole.online.log import Log

__all__ = ["Bandit", "Decision", "Decisions", "Effects", "Explanation", "Log"]


def __getattr__(name: str) -> Any:
    # A log needs the extra "logs", which deciding does not.
    if name == "Log":
        from keyhole.online.log import Log

        return Log
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
