"""The compiled core: functions and extension types of arrays alone.

They are handed every random number that they use, or the state of a stream to draw it from.

The only place where Cython is used. Callers use the names below; the rest is their machinery.
"""

from keyhole.core.kernels import builds, rebuilding

BUILD = builds.take()
if BUILD != builds.UNCOMPILED:
    # The compiled files go before the Python files that they were compiled from.
    __path__.insert(0, str(rebuilding.COMPILED / BUILD))

# ruff: noqa: E402 - that has to come first
from keyhole.core.kernels.choosing import Chooser
from keyhole.core.kernels.core import LARGE, TOGETHER, Core
from keyhole.core.kernels.drawing import NormalModel, draw_rounds, multiply_rows
from keyhole.core.kernels.exploring import Explorer
from keyhole.core.kernels.missing import add_rows, fill_rows
from keyhole.core.kernels.normals import Bits, fill_normals, fill_uniforms, stream_state
from keyhole.core.kernels.observing import FILLS, RowObserver, sample_rows
from keyhole.core.kernels.online import Choice, Everyday, Online, Tally, score_lists
from keyhole.core.kernels.playing import Block, Oracle, Record, add_regret, play, run_block
from keyhole.core.kernels.probability import (
    Chances,
    chance_of,
    chance_rows,
    mixed,
    propensity_weight,
    winning_rows,
)
from keyhole.core.kernels.recent import REMEMBERED, RecentIds
from keyhole.core.kernels.retracing import retrace
from keyhole.core.kernels.summing import padded, sum_rows
from keyhole.core.kernels.types import Floats, Ints, Rule, State, aligned_zeros, is_aligned

__all__ = [
    "BUILD",
    "FILLS",
    "LARGE",
    "REMEMBERED",
    "TOGETHER",
    "Bits",
    "Block",
    "Chances",
    "Choice",
    "Chooser",
    "Core",
    "Everyday",
    "Explorer",
    "Floats",
    "Ints",
    "NormalModel",
    "Online",
    "Oracle",
    "RecentIds",
    "Record",
    "RowObserver",
    "Rule",
    "State",
    "Tally",
    "add_regret",
    "add_rows",
    "aligned_zeros",
    "chance_of",
    "chance_rows",
    "draw_rounds",
    "fill_normals",
    "fill_rows",
    "fill_uniforms",
    "is_aligned",
    "mixed",
    "multiply_rows",
    "padded",
    "play",
    "propensity_weight",
    "retrace",
    "run_block",
    "sample_rows",
    "score_lists",
    "stream_state",
    "sum_rows",
    "winning_rows",
]
