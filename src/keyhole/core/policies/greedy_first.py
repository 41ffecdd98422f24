"""Greedy while the data allow it, and Thompson sampling while they do not."""

from dataclasses import dataclass, field, replace
from typing import Literal, Self

from keyhole import checks
from keyhole.core.kernels import Rule
from keyhole.core.policies.policy import Policy
from keyhole.core.policies.thompson_sampling import ThompsonSampling


@dataclass(frozen=True, repr=False)
class GreedyFirst(Policy):
    """Choose greedily as long as the data are diverse, and by Thompson sampling when they are not.

    Diverse means: the smallest eigenvalue of every parameter's sum of y y' is at least
    lambda_0 / 4 times the number of all rewards so far; or that number is below `patience`, by
    default four times the parameters times the dimension: before, no data can be. Then
    observations explore by themselves (Bastani, Bayati and Khosravi). An arm that is seldom best
    is seldom pulled, so that lambda_0 has to be smaller the more arms there are. Their algorithm
    never goes back to greedy choices; here the state is asked before each choice, so that what a
    bandit does follows from what it has learned alone. v: as in `ThompsonSampling`.

    >>> import keyhole as kh
    >>> kh.GreedyFirst(lambda_0=0.1, v=1.0)
    GreedyFirst(lambda_0=0.1, v=1.0)
    """

    lambda_0: float = field(default=0.1, kw_only=False)
    v: float | Literal["learned", "oracle"] = field(default="learned", kw_only=True)
    patience: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set_field("lambda_0", checks.positive("lambda_0", self.lambda_0))
        if self.patience is not None:
            self._set_field("patience", checks.whole("patience", self.patience, least=0))
        if not isinstance(self._explorer.v, str):
            self._set_field("v", self._explorer.v)

    @property
    def _explorer(self) -> ThompsonSampling:
        return ThompsonSampling(v=self.v)

    def resolve(self, noise_scale: float) -> Self:
        """With v="oracle", the policy with this v."""
        return replace(self, v=self._explorer.resolve(noise_scale).v)

    @property
    def rule(self) -> Rule:
        patience = -1.0 if self.patience is None else float(self.patience)
        return self._explorer.rule._replace(diversity=self.lambda_0 / 4.0, patience=patience)
