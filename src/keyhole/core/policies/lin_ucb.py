"""LinUCB: optimism in the face of uncertainty, with a fixed multiple of the width."""

from dataclasses import dataclass, field

from keyhole import checks
from keyhole.core.kernels import Rule
from keyhole.core.policies.policy import Policy


@dataclass(frozen=True, repr=False)
class LinUCB(Policy):
    """Choose the arm with the largest mean + alpha width.

    Parameters
    ----------
    alpha : float, default 1.0
        Multiple of the width.
    sharing : {"per-arm", "shared", "hybrid"}, default "per-arm"
        As in `Policy`.
    prior_precision : float, default 1.0
        As in `Policy`.
    """

    alpha: float = field(default=1.0, kw_only=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set_field("alpha", checks.real("alpha", self.alpha, min_value=0.0))

    @property
    def rule(self) -> Rule:
        return Rule(optimism=self.alpha)
