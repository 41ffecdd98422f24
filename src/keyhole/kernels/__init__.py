"""The compiled core: functions of arrays alone, handed every random number that they use.

Those that make such numbers are here too, and handed the state of a stream.

The only place where numba is used. Callers use the names below; the rest is their machinery.
"""

from keyhole.kernels.choosing import select_rows
from keyhole.kernels.drawing import NormalLaw, draw_rounds
from keyhole.kernels.exploring import explorations
from keyhole.kernels.gaps import add_rows, fill_rounds, fill_rows, sample_rows
from keyhole.kernels.learning import absorb_many, forget, refresh, settle
from keyhole.kernels.normals import Bits, fill_normals, fill_uniforms, stream_state
from keyhole.kernels.online import all_finite, all_usable, choose, learn
from keyhole.kernels.playing import Block, Record, Truth, play, trial
from keyhole.kernels.probability import winning_rows
from keyhole.kernels.types import Floats, Ints, Rule, State

__all__ = [
    "Bits",
    "Block",
    "Floats",
    "Ints",
    "NormalLaw",
    "Record",
    "Rule",
    "State",
    "Truth",
    "absorb_many",
    "add_rows",
    "all_finite",
    "all_usable",
    "choose",
    "draw_rounds",
    "explorations",
    "fill_normals",
    "fill_rounds",
    "fill_rows",
    "fill_uniforms",
    "forget",
    "learn",
    "play",
    "refresh",
    "sample_rows",
    "select_rows",
    "settle",
    "stream_state",
    "trial",
    "winning_rows",
]
