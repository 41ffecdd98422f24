"""OFUL: optimism of exactly the size that the theory requires (lem:subg)."""

import math
from dataclasses import dataclass, field, replace
from typing import Literal, Self

from keyhole import checks
from keyhole.core.kernels import Rule
from keyhole.core.policies.policy import Policy
from keyhole.errors import InvalidValue, shown


@dataclass(frozen=True, repr=False)
class OFUL(Policy):
    """Choose the arm with the largest mean + radius_i width, radius_i that of its own ellipsoid.

    radius_i = r sqrt(d log(trace B_i / (d prior)) + 2 log(1 / delta)) + sqrt(prior) c_eta. This is
    the radius of lem:subg, with the observations of the arm in place of a bound on all possible
    observations.

    Parameters
    ----------
    r : float or "oracle", default 1.0
        Standard deviation of a reward given its observation. "oracle", for simulations, takes that
        of the world that the policy plays in.
    c_eta : float, default 1.0
        Bound on the norm of a parameter.
    delta : float, default 0.05
        Allowed probability that an ellipsoid ever misses its parameter.
    sharing : {"per-arm", "shared", "hybrid"}, default "per-arm"
        As in `Policy`.
    prior_precision : float, default 1.0
        As in `Policy`.

    Examples
    --------
    >>> import keyhole as kh
    >>> kh.OFUL(r=0.5, delta=0.1)
    OFUL(r=0.5, delta=0.1)
    """

    r: float | Literal["oracle"] = field(default=1.0, kw_only=False)
    c_eta: float = field(default=1.0, kw_only=True)
    delta: float = field(default=0.05, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.r, str):
            self._set_field("r", checks.real("r", self.r, min_value=0.0))
        elif self.r != "oracle":
            raise InvalidValue(f"r must be a number or 'oracle', got {shown(self.r)}")
        self._set_field("c_eta", checks.real("c_eta", self.c_eta, min_value=0.0))
        self._set_field("delta", checks.real("delta", self.delta, above=0.0, max_value=1.0))

    def resolve(self, noise_scale: float) -> Self:
        """Return the policy with this r in place of r="oracle"."""
        return replace(self, r=noise_scale) if self.r == "oracle" else self

    @property
    def rule(self) -> Rule:
        if isinstance(self.r, str):
            raise InvalidValue("r must be a number outside of a simulation, got 'oracle'")
        return Rule(
            optimism=math.sqrt(self.prior_precision) * self.c_eta,
            radius=self.r,
            level=2.0 * math.log(1.0 / self.delta),
        )
