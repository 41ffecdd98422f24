"""Deciding online: `Bandit` and its decisions."""

from keyhole.bandit.bandit import Bandit
from keyhole.bandit.decision import Decision, Decisions

__all__ = ["Bandit", "Decision", "Decisions"]
