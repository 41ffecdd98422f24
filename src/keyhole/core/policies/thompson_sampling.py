"""Thompson sampling, the paper's Algorithms 1 and 2."""

from dataclasses import dataclass, field, replace
from typing import Literal, Self

from keyhole import checks
from keyhole.core.kernels import Rule
from keyhole.core.policies.policy import Policy
from keyhole.errors import InvalidValue, shown


@dataclass(frozen=True, repr=False)
class ThompsonSampling(Policy):
    """Choose the arm with the largest reward under a sampled parameter (eq:sample).

    Parameters
    ----------
    v : float, "learned" or "oracle", default "learned"
        Standard deviation of a reward given its observation, the paper's posterior dispersion: the
        theory requires at least R. "learned" estimates it for each parameter from the rewards,
        starting from their mean square. "oracle", for simulations, takes the `noise_scale` of the
        world that the policy plays in, which is R in a normal world.
    sharing : {"per-arm", "shared", "hybrid"}, default "per-arm"
        As in `Policy`.
    prior_precision : float, default 1.0
        As in `Policy`.

    Examples
    --------
    >>> import keyhole as kh
    >>> kh.ThompsonSampling(v=0.5, sharing="shared")
    ThompsonSampling(sharing='shared', v=0.5)
    """

    v: float | Literal["learned", "oracle"] = field(default="learned", kw_only=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.v, str):
            self._set_field("v", checks.real("v", self.v, min_value=0.0))
        elif self.v not in ("learned", "oracle"):
            raise InvalidValue(f"v must be a number, 'learned' or 'oracle', got {shown(self.v)}")

    def resolve(self, noise_scale: float) -> Self:
        """Return the policy with this v in place of v="oracle"."""
        return replace(self, v=noise_scale) if self.v == "oracle" else self

    @property
    def rule(self) -> Rule:
        if self.v == "oracle":
            raise InvalidValue(
                "v must be a number or 'learned' outside of a simulation, got 'oracle'"
            )
        return Rule(learned=True) if self.v == "learned" else Rule(dispersion=self.v)
