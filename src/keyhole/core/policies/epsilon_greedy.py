"""Epsilon-greedy: uniform choices with a fixed probability, greedy ones otherwise."""

from dataclasses import dataclass, field

from keyhole import checks
from keyhole.core.kernels import Rule
from keyhole.core.policies.policy import Policy


@dataclass(frozen=True, repr=False)
class EpsilonGreedy(Policy):
    """Choose uniformly with probability epsilon, and as `Greedy` does otherwise.

    Parameters
    ----------
    epsilon : float, default 0.1
        Probability of a uniform choice.
    sharing : {"per-arm", "shared", "hybrid"}, default "per-arm"
        As in `Policy`.
    prior_precision : float, default 1.0
        As in `Policy`.
    """

    epsilon: float = field(default=0.1, kw_only=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set_field(
            "epsilon", checks.real("epsilon", self.epsilon, min_value=0.0, max_value=1.0)
        )

    @property
    def rule(self) -> Rule:
        return Rule(epsilon=self.epsilon)
