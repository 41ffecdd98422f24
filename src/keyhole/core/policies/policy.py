"""`Policy`: the base class of policies, frozen recipes that reduce to a `Rule`."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Literal, Self, TypeAlias, get_args

from keyhole import checks
from keyhole.core.kernels import Rule
from keyhole.errors import InvalidValue, shown

Sharing: TypeAlias = Literal["per-arm", "shared", "hybrid"]


@dataclass(frozen=True, kw_only=True, repr=False)
class Policy(ABC):
    """Base class of policies: score_i = mean_i + width_i (optimism + dispersion z_i).

    A policy of your own is a subclass with a `rule`, which must depend on the policy's settings
    alone. The rule is evaluated when a bandit or a simulation starts, not before each choice: a
    rule that counts rounds, draws random numbers or reads changing state would be frozen at that
    evaluation. Such a rule is refused where it is detected: when two consecutive evaluations
    differ, and in `simulate` when the rule at the start or the end of any replication differs from
    the rule at the start of the simulation.

    Parameters
    ----------
    sharing : {"per-arm", "shared", "hybrid"}, default "per-arm"
        "per-arm" learns a parameter for each arm (Algorithm 1), "shared" one for all (Algorithm 2;
        every arm still draws its own sample), "hybrid" the sum of a shared part and one of the
        arm's own, so that a new arm starts from the shared part.
    prior_precision : float, default 1.0
        Precision of each parameter's coordinates before any data; the paper's is 1.
    """

    sharing: Sharing = "per-arm"
    prior_precision: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.sharing, str) or self.sharing not in get_args(Sharing):
            kinds = ", ".join(map(repr, get_args(Sharing)))
            raise InvalidValue(f"sharing must be one of {kinds}, got {shown(self.sharing)}")
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
            An earlier result of this method: the rule must still be the same.

        Returns
        -------
        Rule
            The rule in plain floats.

        Raises
        ------
        InvalidValue
            If it is not a `Rule`, has a number that a rule cannot have, or depends on state: two
            evaluations differ, or the rule differs from `before`.
        """
        first, again = self._evaluated(), self._evaluated()
        for other in (again, before):
            if other is not None and other != first:
                raise InvalidValue(
                    f"the rule of {self!r} must depend on its settings alone, got {other} "
                    f"and then {first}: changing state cannot be part of a rule"
                )
        return first

    def _evaluated(self) -> Rule:
        if not isinstance(rule := self.rule, Rule):
            raise InvalidValue(f"the rule of {self!r} must be a Rule, got {shown(rule)}")
        return rule.plain()

    def resolve(self, noise_scale: float) -> Self:  # noqa: ARG002
        """Return the policy with this noise scale in place of an "oracle" setting."""
        return self

    def __repr__(self) -> str:
        """Return the class with its own setting, and other settings that are not the default."""
        settings = [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in fields(self)
            if not field.kw_only or getattr(self, field.name) != field.default
        ]
        return f"{type(self).__name__}({', '.join(settings)})"

    def _set_field(self, name: str, value: float) -> None:
        """Set a frozen field to a checked number, now a plain float."""
        object.__setattr__(self, name, value)
