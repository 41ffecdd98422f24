"""Greedy choices while the data are diverse, and Thompson sampling while they are not."""

from dataclasses import dataclass, field, replace
from typing import Literal, Self

from keyhole import checks
from keyhole.core.kernels import Rule
from keyhole.core.policies.policy import Policy
from keyhole.core.policies.thompson_sampling import ThompsonSampling


@dataclass(frozen=True, repr=False)
class GreedyFirst(Policy):
    """Choose greedily while the data are diverse, and by Thompson sampling while they are not.

    Data are diverse if the smallest eigenvalue of every parameter's sum of y y' is at least
    lambda_0 / 4 times the number of all rewards so far, or if that number is below `patience`.
    Observations then explore by themselves (Bastani, Bayati and Khosravi). Their algorithm never
    returns to greedy choices. Here the condition is evaluated before each choice, so that a choice
    depends on the learned state alone.

    Parameters
    ----------
    lambda_0 : float, default 0.1
        Required diversity. An arm that is seldom best is seldom pulled, so lambda_0 has to be
        smaller the more arms there are.
    v : float, "learned" or "oracle", default "learned"
        As in `ThompsonSampling`.
    patience : int, optional
        Number of rewards before which data count as diverse. By default four times the number of
        parameters times the dimension: no data can be diverse before.
    sharing : {"per-arm", "shared", "hybrid"}, default "per-arm"
        As in `Policy`.
    prior_precision : float, default 1.0
        As in `Policy`.

    Examples
    --------
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
            self._set_field("patience", checks.integer("patience", self.patience, min_value=0))
        if not isinstance(self._explorer.v, str):
            self._set_field("v", self._explorer.v)

    @property
    def _explorer(self) -> ThompsonSampling:
        return ThompsonSampling(v=self.v)

    def resolve(self, noise_scale: float) -> Self:
        """Return the policy with this v in place of v="oracle"."""
        return replace(self, v=self._explorer.resolve(noise_scale).v)

    @property
    def rule(self) -> Rule:
        patience = -1.0 if self.patience is None else float(self.patience)
        return self._explorer.rule._replace(diversity=self.lambda_0 / 4.0, patience=patience)
