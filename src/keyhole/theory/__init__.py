"""The theory as a tool: the constants of an instance, and what each lemma promises of it."""

from keyhole.theory import bounds
from keyhole.theory.constants import Constants
from keyhole.theory.instances import Instance, instance, unmet
from keyhole.theory.promises import Promise, Promises
from keyhole.theory.quantities import Quantity
from keyhole.theory.selection import SelectedRegression, selected_regression
from keyhole.theory.statements import GAPS, STATEMENTS, Statement, Status, status_of
from keyhole.theory.weighting import WeightedCost, weighted_cost

__all__ = [
    "GAPS",
    "STATEMENTS",
    "Constants",
    "Instance",
    "Promise",
    "Promises",
    "Quantity",
    "SelectedRegression",
    "Statement",
    "Status",
    "WeightedCost",
    "bounds",
    "instance",
    "selected_regression",
    "status_of",
    "unmet",
    "weighted_cost",
]
