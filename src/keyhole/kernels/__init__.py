"""The compiled core: functions of arrays alone, handed every random number that they use.

The only place where numba is used. Callers use the names below; the rest is their machinery.
"""

from keyhole.kernels.choosing import explorations, select_rows
from keyhole.kernels.learning import absorb_many, refresh, settle
from keyhole.kernels.online import all_usable, choose, learn
from keyhole.kernels.playing import Block, Record, play, trial
from keyhole.kernels.probability import winning_rows
from keyhole.kernels.types import Floats, Ints, Rule, State

__all__ = [
    "Block",
    "Floats",
    "Ints",
    "Record",
    "Rule",
    "State",
    "absorb_many",
    "all_usable",
    "choose",
    "explorations",
    "learn",
    "play",
    "refresh",
    "select_rows",
    "settle",
    "trial",
    "winning_rows",
]
