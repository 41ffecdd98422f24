"""The theory as a tool: an instance's constants, the bound of each lemma, and certificates."""

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
from keyhole.theory.selection import SelectedRegression, selected_regression
from keyhole.theory.statements import GAPS, STATEMENTS, Statement, Status, status_of
from keyhole.theory.weighting import WeightedCost, weighted_cost

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
    "SelectedRegression",
    "SensorRow",
    "Statement",
    "Status",
    "Step",
    "WeightedCost",
    "asymptote",
    "bounds",
    "certificate",
    "comparison",
    "derivation",
    "exploration",
    "instance",
    "runs_needed",
    "selected_regression",
    "sensor_rows",
    "status_of",
    "unmet",
    "weighted_cost",
]
