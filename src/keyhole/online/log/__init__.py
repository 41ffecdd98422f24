"""The log of a bandit: its schema, its file, and the bandit that follows from it."""

from keyhole.online.log.log import Log

__all__ = ["Log"]
