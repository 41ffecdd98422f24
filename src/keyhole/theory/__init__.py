"""The theory as a tool: the constants of an instance, and what each lemma promises of it."""

from keyhole.theory import bounds
from keyhole.theory.constants import Constant, Instance, instance
from keyhole.theory.promises import Promise, Promises

__all__ = ["Constant", "Instance", "Promise", "Promises", "bounds", "instance"]
