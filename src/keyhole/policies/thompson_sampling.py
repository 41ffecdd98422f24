"""Thompson sampling, the paper's Algorithms 1 and 2."""

from dataclasses import dataclass, field
from typing import Literal

from keyhole import checks
from keyhole.errors import InvalidValue
from keyhole.kernels import Rule
from keyhole.policies.policy import Policy


@dataclass(frozen=True, repr=False)
class ThompsonSampling(Policy):
    """Choose the arm whose sampled parameter promises most (eq:sample).

    v is the standard deviation of a reward given its observation, the paper's posterior
    dispersion: at least R for its guarantees. "learned" estimates it for each parameter from the
    rewards, starting from their mean square.

    >>> import keyhole as kh
    >>> kh.ThompsonSampling(v=0.5, parameters="shared")
    ThompsonSampling(parameters='shared', v=0.5)
    """

    v: float | Literal["learned"] = field(default="learned", kw_only=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.v, str):
            if self.v != "learned":
                raise InvalidValue(f"v must be a number or 'learned', got {self.v!r}")
        else:
            self._settle("v", checks.number("v", self.v, least=0.0))

    @property
    def rule(self) -> Rule:
        learned = self.v == "learned"
        dispersion = 0.0 if self.v == "learned" else self.v
        return Rule(0.0, dispersion, 0.0, learned, self.prior_precision)
