"""The theory as a tool: the constants of an instance, and what each lemma promises of it."""

from keyhole.theory import bounds, comparison
from keyhole.theory.constants import Constants
from keyhole.theory.derivations import Derivation, Row, derivation
from keyhole.theory.instances import Instance, instance, unmet
from keyhole.theory.promises import Promise, Promises
from keyhole.theory.quantities import Quantity
from keyhole.theory.statements import GAPS, STATEMENTS, Statement, Status, status_of

__all__ = [
    "GAPS",
    "STATEMENTS",
    "Constants",
    "Derivation",
    "Instance",
    "Promise",
    "Promises",
    "Quantity",
    "Row",
    "Statement",
    "Status",
    "bounds",
    "comparison",
    "derivation",
    "instance",
    "status_of",
    "unmet",
]
