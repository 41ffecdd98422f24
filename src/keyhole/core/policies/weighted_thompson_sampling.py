"""Thompson sampling whose rewards are weighed by exact propensities."""

from dataclasses import dataclass, field, replace
from typing import Literal, Self

from keyhole import checks
from keyhole.core.kernels import Rule
from keyhole.core.policies.policy import Policy
from keyhole.core.policies.thompson_sampling import ThompsonSampling
from keyhole.errors import InvalidValue


@dataclass(frozen=True, repr=False)
class WeightedThompsonSampling(Policy):
    """Thompson sampling with inverse propensity weights, for worlds that are not normal.

    An arm is chosen where its observation looks good. If E[r | y] is not linear in y, unweighted
    estimates then tend to the regression given that the arm is chosen, and regret grows linearly
    (`keyhole.theory.selected_regression`). Here a reward has the weight w = (epsilon / n_arms) / p,
    where p is the exact probability with which its arm was chosen at y. Given y, arm i is chosen
    with probability p, so the expectation of w y y' and of w y r over choices is
    (epsilon / n_arms) E[y y'] and (epsilon / n_arms) E[y r], whatever the rule: estimates tend to
    the unselected regression eta.

    p is at least epsilon / n_arms, so weights are at most 1. The posterior stays honest: with
    B = prior + sum w y y', the covariance of the estimate is the noise variance times
    B^-1 (sum w^2 y y') B^-1, and w^2 <= w bounds it by B^-1.

    The price is exploration. A uniform choice costs the same in every round, and only about epsilon
    / n_arms of the rounds inform about an arm where it is not chosen. With `decay` = 1/2 both costs
    grow like the root of the horizon.

    Parameters
    ----------
    epsilon : float, default 1.0
        The probability of a uniform choice after n rewards is epsilon (1 + n)^-decay.
    decay : float, default 0.5
        See `epsilon`; from 0 (a constant probability) to 1.
    v : float, "learned" or "oracle", default "learned"
        As in `ThompsonSampling`.
    sharing : {"per-arm", "shared"}, default "per-arm"
        As in `Policy`.
    prior_precision : float, default 1.0
        As in `Policy`.

    Examples
    --------
    >>> import keyhole as kh
    >>> bandit = kh.Bandit(kh.WeightedThompsonSampling(), arms=["A", "B"], dim=1, seed=1)
    >>> decision = bandit.choose([1.0])  # with epsilon = 1 the first choice is uniform
    >>> bandit.learn(decision, reward=3.0)
    >>> float(bandit.posterior.weight.sum())
    1.0
    """

    epsilon: float = field(default=1.0, kw_only=False)
    decay: float = field(default=0.5, kw_only=True)
    v: float | Literal["learned", "oracle"] = field(default="learned", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sharing == "hybrid":
            raise InvalidValue(
                "WeightedThompsonSampling needs sharing='per-arm' or 'shared', got 'hybrid'"
            )
        epsilon = checks.real("epsilon", self.epsilon, above=0.0, max_value=1.0)
        self._set_field("epsilon", epsilon)
        self._set_field("decay", checks.real("decay", self.decay, min_value=0.0, max_value=1.0))
        if not isinstance(self._sampler.v, str):
            self._set_field("v", self._sampler.v)

    @property
    def _sampler(self) -> ThompsonSampling:
        return ThompsonSampling(v=self.v)

    def resolve(self, noise_scale: float) -> Self:
        """Return the policy with this v in place of v="oracle"."""
        return replace(self, v=self._sampler.resolve(noise_scale).v)

    @property
    def rule(self) -> Rule:
        return self._sampler.rule._replace(epsilon=self.epsilon, decay=self.decay, weighted=True)
