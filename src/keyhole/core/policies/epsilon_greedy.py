"""Greedy with a coin before it."""

from dataclasses import dataclass, field

from keyhole import checks
from keyhole.core.kernels import Rule
from keyhole.core.policies.policy import Policy


@dataclass(frozen=True, repr=False)
class EpsilonGreedy(Policy):
    """With probability epsilon any arm, each alike; otherwise as `Greedy` chooses."""

    epsilon: float = field(default=0.1, kw_only=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set_field("epsilon", checks.number("epsilon", self.epsilon, least=0.0, most=1.0))

    @property
    def rule(self) -> Rule:
        return Rule(epsilon=self.epsilon)
