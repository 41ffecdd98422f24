"""Every arm alike, whatever is known."""

from dataclasses import dataclass

from keyhole.core.kernels import Rule
from keyhole.core.policies.policy import Policy


@dataclass(frozen=True, repr=False)
class Uniform(Policy):
    """Choose any arm, each with the same probability; it still learns."""

    @property
    def rule(self) -> Rule:
        return Rule(epsilon=1.0)
