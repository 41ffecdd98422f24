"""The log of a bandit: its schema, its file, and the bandit that follows from it."""

from keyhole.online.log import rows
from keyhole.online.log.events import DECIDED, FORGOTTEN, LEARNED, UNKNOWN
from keyhole.online.log.log import Log
from keyhole.online.log.parquet import write as write_parquet
from keyhole.online.log.store import Store

__all__ = [
    "DECIDED",
    "FORGOTTEN",
    "LEARNED",
    "UNKNOWN",
    "Log",
    "Store",
    "rows",
    "write_parquet",
]
