"""The greedy policy, Thompson sampling's counterpart without exploration."""

from dataclasses import dataclass

from keyhole.kernels import Rule
from keyhole.policies.policy import Policy


@dataclass(frozen=True, repr=False)
class Greedy(Policy):
    """Choose the arm whose posterior mean promises most; ties are broken at random."""

    @property
    def rule(self) -> Rule:
        return Rule()
