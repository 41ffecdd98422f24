"""The log of a bandit: its schema, its file, and the bandit that follows from it."""

from keyhole.online.log import rows
from keyhole.online.log.decisions import decision_of
from keyhole.online.log.journal import Journal
from keyhole.online.log.log import Log
from keyhole.online.log.parquet import write as write_parquet

__all__ = ["Journal", "Log", "decision_of", "rows", "write_parquet"]
