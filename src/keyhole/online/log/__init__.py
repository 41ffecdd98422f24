"""The log of a bandit: its schema, its file, and the bandit that follows from it."""

from keyhole.online.log.log import Log
from keyhole.online.log.store import Store

__all__ = ["Log", "Store"]
