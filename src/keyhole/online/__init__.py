"""Deciding online: `Bandit`, its decisions, its log, and one fitted from files."""

from typing import TYPE_CHECKING, Any

from keyhole.core import Effects
from keyhole.online.bandit import Bandit
from keyhole.online.decision import Decision
from keyhole.online.decisions import Decisions
from keyhole.online.explaining import Explanation

if TYPE_CHECKING:
    from keyhole.online.fitting import fit
    from keyhole.online.log import Log

__all__ = ["Bandit", "Decision", "Decisions", "Effects", "Explanation", "Log", "fit"]


def __getattr__(name: str) -> Any:
    # A log and files need the extra "logs", which deciding does not.
    if name == "Log":
        from keyhole.online.log import Log

        return Log
    if name == "fit":
        from keyhole.online.fitting import fit

        return fit
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
