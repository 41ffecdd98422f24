"""Off-policy evaluation: what other policies would have earned, from the log of one.

The order of work: `audit_log`, then `evaluate`; `value_sequence` and `gain_sequence` while the log
grows; `choose_v` for Thompson sampling. `formats` reads and writes the logs of other libraries.
"""

from keyhole.evaluation import formats
from keyhole.evaluation.audit import LogAudit, audit_log
from keyhole.evaluation.choosing import ChosenV, choose_v
from keyhole.evaluation.evaluating import evaluate
from keyhole.evaluation.logged import Logged
from keyhole.evaluation.result import Evaluation, PolicyValue
from keyhole.evaluation.sequences import ConfidenceSequence, gain_sequence, value_sequence
from keyhole.evaluation.targets import FixedArm, OnFeatures, WithFloor
from keyhole.evaluation.writing import to_arrow, to_obp, write_log

__all__ = [
    "ChosenV",
    "ConfidenceSequence",
    "Evaluation",
    "FixedArm",
    "LogAudit",
    "Logged",
    "OnFeatures",
    "PolicyValue",
    "WithFloor",
    "audit_log",
    "choose_v",
    "evaluate",
    "formats",
    "gain_sequence",
    "to_arrow",
    "to_obp",
    "value_sequence",
    "write_log",
]
