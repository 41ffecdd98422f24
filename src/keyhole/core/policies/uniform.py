"""Uniform choices, whatever was learned."""

from dataclasses import dataclass

from keyhole.core.kernels import Rule
from keyhole.core.policies.policy import Policy


@dataclass(frozen=True, repr=False)
class Uniform(Policy):
    """Choose every arm with the same probability; the posterior still learns.

    Parameters
    ----------
    sharing : {"per-arm", "shared", "hybrid"}, default "per-arm"
        As in `Policy`.
    prior_precision : float, default 1.0
        As in `Policy`.
    """

    @property
    def rule(self) -> Rule:
        return Rule(epsilon=1.0)
