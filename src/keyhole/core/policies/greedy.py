"""The greedy policy, Thompson sampling's counterpart without exploration."""

from dataclasses import dataclass

from keyhole.core.kernels import Rule
from keyhole.core.policies.policy import Policy


@dataclass(frozen=True, repr=False)
class Greedy(Policy):
    """Choose the arm with the largest posterior mean reward; break ties at random.

    Parameters
    ----------
    sharing : {"per-arm", "shared", "hybrid"}, default "per-arm"
        As in `Policy`.
    prior_precision : float, default 1.0
        As in `Policy`.
    """

    @property
    def rule(self) -> Rule:
        return Rule()
