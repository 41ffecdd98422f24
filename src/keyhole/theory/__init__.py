"""The theory as a tool: the constants of an instance, and what each lemma promises of it."""

from keyhole.theory import bounds
from keyhole.theory.asymptotics import (
    Asymptote,
    Change,
    Exploration,
    SensorRow,
    asymptote,
    exploration,
    sensor_rows,
)
from keyhole.theory.constants import Constants
from keyhole.theory.instances import Instance, instance, unmet
from keyhole.theory.promises import Promise, Promises
from keyhole.theory.quantities import Quantity
from keyhole.theory.statements import GAPS, STATEMENTS, Statement, Status, status_of

__all__ = [
    "GAPS",
    "STATEMENTS",
    "Asymptote",
    "Change",
    "Constants",
    "Exploration",
    "Instance",
    "Promise",
    "Promises",
    "Quantity",
    "SensorRow",
    "Statement",
    "Status",
    "asymptote",
    "bounds",
    "exploration",
    "instance",
    "sensor_rows",
    "status_of",
    "unmet",
]
