"""Deciding online: `Bandit` and its decisions."""

from keyhole.core import Effects
from keyhole.online.bandit import Bandit
from keyhole.online.decision import Decision
from keyhole.online.decisions import Decisions
from keyhole.online.explaining import Explanation

__all__ = ["Bandit", "Decision", "Decisions", "Effects", "Explanation"]
