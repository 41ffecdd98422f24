"""Formats of logs: those of Keyhole, Vowpal Wabbit, Personalizer, Open Bandit, obp, and frames.

A format is a frozen recipe with its settings, such as `Dsjson(slot=0)`. `Logged.of` and
`keyhole.evaluate` take it, or its name, as `format`; `FORMATS` has every name.
"""

from keyhole.evaluation.formats.cb import Cb
from keyhole.evaluation.formats.dsjson import Dsjson
from keyhole.evaluation.formats.format import Format, Progress
from keyhole.evaluation.formats.frame import Frame
from keyhole.evaluation.formats.frame import to_table as to_table
from keyhole.evaluation.formats.keyhole_log import KeyholeLog
from keyhole.evaluation.formats.obp import Obp
from keyhole.evaluation.formats.obp import to_dict as to_dict
from keyhole.evaluation.formats.open_bandit import OpenBandit
from keyhole.evaluation.formats.registry import FORMATS, format_of, read_columns

__all__ = [
    "FORMATS",
    "Cb",
    "Dsjson",
    "Format",
    "Frame",
    "KeyholeLog",
    "Obp",
    "OpenBandit",
    "Progress",
    "format_of",
    "read_columns",
    "to_dict",
    "to_table",
]
