"""Thompson sampling, the paper's Algorithms 1 and 2."""

from dataclasses import dataclass, field, replace
from typing import Literal, Self

from keyhole import checks
from keyhole.errors import InvalidValue, shown
from keyhole.kernels import Rule
from keyhole.policies.policy import Policy


@dataclass(frozen=True, repr=False)
class ThompsonSampling(Policy):
    """Choose the arm whose sampled parameter promises most (eq:sample).

    v is the standard deviation of a reward given its observation, the paper's posterior
    dispersion: the theory asks for at least R. "learned" estimates it for each parameter from the
    rewards, starting from their mean square. "told", for simulations, takes the
    `noise_scale` of the world that the policy plays in, which is R in a normal one.

    >>> import keyhole as kh
    >>> kh.ThompsonSampling(v=0.5, parameters="shared")
    ThompsonSampling(parameters='shared', v=0.5)
    """

    v: float | Literal["learned", "told"] = field(default="learned", kw_only=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.v, str):
            self._settle("v", checks.number("v", self.v, least=0.0))
        elif self.v not in ("learned", "told"):
            raise InvalidValue(f"v must be a number, 'learned' or 'told', got {shown(self.v)}")

    def told(self, noise_scale: float) -> Self:
        """With v="told", the policy with this v."""
        return replace(self, v=noise_scale) if self.v == "told" else self

    @property
    def rule(self) -> Rule:
        if self.v == "told":
            raise InvalidValue("v='told' is for simulations: give a number, or 'learned'")
        return Rule(learned=True) if self.v == "learned" else Rule(dispersion=self.v)
