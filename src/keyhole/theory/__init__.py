"""The theory as a tool: the constants of an instance, and what each lemma promises of it."""

from keyhole.theory import bounds
from keyhole.theory.constants import Constant, Instance, instance

__all__ = ["Constant", "Instance", "bounds", "instance"]
