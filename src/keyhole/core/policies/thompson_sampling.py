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
    draw : {"per-arm", "joint"}, default "per-arm"
        With a shared parameter, whether every arm draws a sample of its own, as in the paper's
        Algorithm 2, or all are scored by one. Joint draws run uncompiled, and the probability of a
        choice is known for up to two arms.

    Examples
    --------
    >>> import keyhole as kh
    >>> kh.ThompsonSampling(v=0.5, sharing="shared")
    ThompsonSampling(sharing='shared', v=0.5)
    """

    v: float | Literal["learned", "oracle"] = field(default="learned", kw_only=False)
    draw: Literal["per-arm", "joint"] = field(default="per-arm", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.v, str):
            self._set_field("v", checks.real("v", self.v, min_value=0.0))
        elif self.v not in ("learned", "oracle"):
            raise InvalidValue(f"v must be a number, 'learned' or 'oracle', got {shown(self.v)}")
        if not isinstance(self.draw, str) or self.draw not in ("per-arm", "joint"):
            raise InvalidValue(f"draw must be 'per-arm' or 'joint', got {shown(self.draw)}")
        if self.draw == "joint" and self.sharing != "shared":
            raise InvalidValue(
                "draw='joint' is one sample of a parameter that arms share: give sharing='shared'"
            )

    def resolve(self, noise_scale: float) -> Self:
        """Return the policy with this v in place of v="oracle"."""
        return replace(self, v=noise_scale) if self.v == "oracle" else self

    @property
    def rule(self) -> Rule:
        if self.v == "oracle":
            raise InvalidValue(
                "v must be a number or 'learned' outside of a simulation, got 'oracle'"
            )
        rule = Rule(learned=True) if self.v == "learned" else Rule(dispersion=self.v)
        return rule._replace(joint=self.draw == "joint")
