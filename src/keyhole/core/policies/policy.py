"""What every policy is: a frozen recipe that comes down to a few numbers."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Literal, Self, TypeAlias

from keyhole import checks
from keyhole.core.kernels import Rule
from keyhole.errors import InvalidValue, shown

Sharing: TypeAlias = Literal["per-arm", "shared"]


@dataclass(frozen=True, kw_only=True, repr=False)
class Policy(ABC):
    """How to score arms: score_i = mean_i + width_i (optimism + dispersion z_i).

    sharing: "per-arm" learns a parameter for each arm (Algorithm 1), "shared" one for all
    (Algorithm 2; every arm still draws its own sample). prior_precision: the precision of each
    parameter's coordinates before any data; the paper's is 1.

    A policy of your own is a subclass with a `rule`, which must follow from the policy's settings
    alone. It is evaluated when a bandit or a simulation starts, not before each choice: a rule
    that counts rounds, draws random numbers or reads what changes would be frozen as it was then.
    It is refused where it is seen: when two evaluations in a row differ, and in `simulate` when it
    differs at the start or the end of any replication from what it was when the simulation began.
    """

    sharing: Sharing = "per-arm"
    prior_precision: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.sharing, str) or self.sharing not in ("per-arm", "shared"):
            raise InvalidValue(f"sharing must be 'per-arm' or 'shared', got {shown(self.sharing)}")
        self._set_field("prior_precision", checks.positive("prior_precision", self.prior_precision))

    @property
    @abstractmethod
    def rule(self) -> Rule:
        """The policy in numbers, as the kernels take it."""

    def plain_rule(self, before: Rule | None = None) -> Rule:
        """Check the rule, and return it in plain numbers.

        Parameters
        ----------
        before : Rule, optional
            What this method returned earlier: the rule must still be the same.

        Returns
        -------
        Rule
            The rule in plain floats.

        Raises
        ------
        InvalidValue
            If it is no `Rule`, has a number that a rule cannot have, or depends on state: two
            evaluations differ, or the rule is not what it was before.

        """
        first, again = self._evaluated(), self._evaluated()
        for other in (again, before):
            if other is not None and other != first:
                raise InvalidValue(
                    f"the rule of {self!r} must depend on its settings alone, but it was {other} "
                    f"and then {first}: what changes in the course of rounds cannot be in a rule"
                )
        return first

    def _evaluated(self) -> Rule:
        if not isinstance(rule := self.rule, Rule):
            raise InvalidValue(f"the rule of {self!r} must be a Rule, got {shown(rule)}")
        return rule.plain()

    def resolve(self, noise_scale: float) -> Self:  # noqa: ARG002
        """Return the policy for a world of this noise scale, which an "oracle" setting takes."""
        return self

    def __repr__(self) -> str:
        """The class with its own setting, and of the others those that are not the default."""
        told = [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in fields(self)
            if not field.kw_only or getattr(self, field.name) != field.default
        ]
        return f"{type(self).__name__}({', '.join(told)})"

    def _set_field(self, name: str, value: float) -> None:
        """Put a checked number, now a plain float, into a frozen field."""
        object.__setattr__(self, name, value)
