"""A bandit fitted from files of rows: an arm, an observation and a reward each."""

from keyhole.online.fitting.fitting import fit

__all__ = ["fit"]
