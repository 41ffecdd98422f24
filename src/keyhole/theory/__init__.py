"""The theory as a tool: an instance's constants, what each lemma promises, and certificates."""

from keyhole.theory import bounds, comparison
from keyhole.theory.asymptotics import (
    Asymptote,
    Change,
    Exploration,
    SensorRow,
    asymptote,
    exploration,
    sensor_rows,
)
from keyhole.theory.certificates import BurnIn, Certificate, Step, certificate, runs_needed
from keyhole.theory.constants import Constants
from keyhole.theory.derivations import Derivation, Row, derivation
from keyhole.theory.instances import Instance, instance, unmet
from keyhole.theory.promises import Promise, Promises
from keyhole.theory.quantities import Quantity
from keyhole.theory.statements import GAPS, STATEMENTS, Statement, Status, status_of

__all__ = [
    "GAPS",
    "STATEMENTS",
    "Asymptote",
    "BurnIn",
    "Certificate",
    "Change",
    "Constants",
    "Derivation",
    "Exploration",
    "Instance",
    "Promise",
    "Promises",
    "Quantity",
    "Row",
    "SensorRow",
    "Statement",
    "Status",
    "Step",
    "asymptote",
    "bounds",
    "certificate",
    "comparison",
    "derivation",
    "exploration",
    "instance",
    "runs_needed",
    "sensor_rows",
    "status_of",
    "unmet",
]
