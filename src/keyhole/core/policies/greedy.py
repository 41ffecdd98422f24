"""The greedy policy, Thompson sampling's counterpart without exploration."""

from dataclasses import dataclass

from keyhole.core.kernels import Rule
from keyhole.core.policies.policy import Policy


@dataclass(frozen=True, repr=False)
class Greedy(Policy):
    """Choose the arm whose posterior mean promises most; ties are broken at random."""

    @property
    def rule(self) -> Rule:
        return Rule()
