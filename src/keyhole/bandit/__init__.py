"""Deciding online: `Bandit` and its decisions."""

from keyhole.bandit.bandit import Bandit
from keyhole.bandit.decision import Decision
from keyhole.bandit.decisions import Decisions
from keyhole.bandit.features import Effects

__all__ = ["Bandit", "Decision", "Decisions", "Effects"]
