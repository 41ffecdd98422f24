"""The theory as a tool: an instance's constants, what each lemma promises, and certificates."""

from keyhole.theory import bounds, comparison
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
    "BurnIn",
    "Certificate",
    "Constants",
    "Derivation",
    "Instance",
    "Promise",
    "Promises",
    "Quantity",
    "Row",
    "Statement",
    "Status",
    "Step",
    "bounds",
    "certificate",
    "comparison",
    "derivation",
    "instance",
    "runs_needed",
    "status_of",
    "unmet",
]
