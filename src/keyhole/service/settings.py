"""`LoopSettings`: how a loop decides, what it learns from, and in which mode it is.

Settings come as JSON or TOML. They are checked once, and are written into the log whole.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection
from typing import Any, Literal

import msgspec

from keyhole.core import POLICIES, Arm, Features, Fill, Learner, Policy
from keyhole.errors import InvalidValue, KeyholeError, shown
from keyhole.service.requests import check_id

Learning = Literal["at_once", "at_end", "provisional"]
Aggregate = Literal["sum", "first", "last", "mean", "max", "min"]
Mode = Literal["online", "shadow", "off"]

# A part of an ISO 8601 duration, and its seconds. Months and years have no fixed length.
DURATION = re.compile(
    r"P(?:(?P<W>\d+)W)?(?:(?P<D>\d+)D)?"
    r"(?:T(?:(?P<H>\d+)H)?(?:(?P<M>\d+)M)?(?:(?P<S>\d+(?:\.\d+)?)S)?)?"
)
SECONDS = {"W": 604_800.0, "D": 86_400.0, "H": 3_600.0, "M": 60.0, "S": 1.0}
# Rewards beyond it are refused, as by every bandit.
LARGEST = 1e50
# A posterior of this dimension takes 8 MB per arm, and a decision some milliseconds.
MAX_NUMBERS = 1_000
# Arms times the square of dim: posteriors of 800 MB.
MAX_SUMS = 100_000_000
MAX_WAIT = 366 * 86_400.0
# Settings of a loop whose contexts are lists; named fields have them among `features`.
OF_LISTS = ("intercept", "standardize", "missing", "clip_rewards")


class RewardSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a loop learns from the rewards of an event.

    Parameters
    ----------
    default : float, optional
        The reward of an event that has none when it is due.
    wait : str or float, optional
        How long rewards are waited for: an ISO 8601 duration, or seconds. By default "PT10M"; with
        "at_once" there is none, since rewards are learned whenever they come.
    aggregate : str, default "sum"
        How the total of several rewards is made: "sum", "first", "last", "mean", "max" or "min".
    learn : str, optional
        "at_once" learns rewards as they come. "at_end" learns an event once, when it is due.
        "provisional" learns the default at once, and amends it. By default "at_end" if there is a
        default reward, and otherwise "at_once".
    late : str, optional
        What happens to a reward after that: "amend" what was learned, or "ignore" it. By default
        "amend"; with "at_once" there is none, since no reward is late.
    """

    default: float | None = None
    wait: str | float | None = None
    aggregate: Aggregate = "sum"
    learn: Learning | None = None
    late: Literal["amend", "ignore"] | None = None

    def __post_init__(self) -> None:
        """Set the defaults that depend on the learning mode."""
        if self.learning != "at_once":
            if self.wait is None:
                msgspec.structs.force_setattr(self, "wait", "PT10M")
            if self.late is None:
                msgspec.structs.force_setattr(self, "late", "amend")

    @property
    def learning(self) -> Learning:
        """The learning mode."""
        return self.learn or ("at_once" if self.default is None else "at_end")

    @property
    def seconds(self) -> float:
        """How long rewards are waited for, unless they are learned at once."""
        assert self.wait is not None
        return duration(self.wait)

    def check(self) -> None:
        """Raise `InvalidValue` if settings contradict each other."""
        if self.wait is not None:
            duration(self.wait)
        if self.default is not None and not abs(self.default) <= LARGEST:
            raise InvalidValue(
                f"reward.default must be a number from {-LARGEST:g} to {LARGEST:g}, got "
                f"{self.default}"
            )
        if self.learning == "provisional" and self.default is None:
            raise InvalidValue("reward.learn = 'provisional' needs reward.default, got null")
        if self.learn == "at_once" and self.default is not None:
            raise InvalidValue(
                "reward.learn = 'at_once' learns rewards that come, and reward.default must be "
                f"null, got {self.default}: learning zeros only at the end would favour arms whose "
                "rewards have not come; use 'at_end' or 'provisional'"
            )
        for name in ("wait", "late"):
            given = getattr(self, name)
            if self.learning == "at_once" and given is not None:
                raise InvalidValue(
                    f"reward.{name} must be null with reward.learn = 'at_once', got {given!r}: "
                    "rewards are learned whenever they come. Give reward.default, or reward.learn "
                    "= 'at_end', to end events"
                )


def check_size(policy: Policy, n_arms: int, dim: int) -> None:
    """Raise `InvalidValue` if the posteriors of a loop would take too much memory.

    Parameters
    ----------
    policy : Policy
        The policy, which has a posterior for each arm, one that all share, or one of a shared part
        and a part of each arm.
    n_arms, dim : int
        The number of arms, and of columns.
    """
    sizes = {"per-arm": n_arms * dim**2, "shared": dim**2, "hybrid": ((1 + n_arms) * dim) ** 2}
    size = sizes[policy.sharing]
    if size > MAX_SUMS:
        raise InvalidValue(
            f"a loop may learn {MAX_SUMS:,} numbers, got {size:,}: {n_arms:,} arms and {dim:,} "
            f"columns with sharing = {policy.sharing!r}. Use fewer arms, fields or levels"
            + ("" if policy.sharing == "shared" else ", or policy.sharing = 'shared'")
        )


def duration(given: str | float) -> float:
    """Return the seconds of an ISO 8601 duration, or of a number of seconds."""
    if isinstance(given, str):
        match = DURATION.fullmatch(given)
        parts = {} if match is None else {k: v for k, v in match.groupdict().items() if v}
        if not parts:
            raise InvalidValue(
                f"reward.wait must be a duration such as 'PT4H' or 'P1DT30M', or seconds, got "
                f"{shown(given)}"
            )
        seconds = sum(float(value) * SECONDS[unit] for unit, value in parts.items())
    else:
        seconds = float(given)
    if not 0.0 < seconds <= MAX_WAIT:
        raise InvalidValue(
            f"reward.wait must be above 0 and at most {MAX_WAIT:.0f} seconds, got {given!r}"
        )
    return seconds


class LoopSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of a loop.

    Parameters
    ----------
    policy : dict, default {"name": "ThompsonSampling"}
        The name of a policy, and its settings.
    arms : list of str, or dict of str to dict, optional
        The arms, or their records by name. The arms of an existing loop stay, and others join.
    features : dict, optional
        The arguments of `Features`, with `arms` for those of the arms.
    dim : int, optional
        The length of a context that is a list of numbers, in place of features.
    intercept, standardize : bool, default False
        As in `Learner`, for contexts that are lists.
    missing : {"predict", "mean", "zero"}, optional
        As in `Learner`, for contexts that are lists: what replaces null, a missing entry. Without
        it null is refused. Features have their own setting, "predict" by default.
    clip_rewards : bool, default False
        As in `Learner`, where the default is True: move outliers among the first 32 rewards. Then
        a reward that was answered as counted may be learned as another number.
    reward : RewardSettings
        How rewards are learned.
    mode : str, default "online"
        "online" decides. "shadow" answers the baseline, logs the decision it would have made, and
        learns from the baseline's rewards. "off" answers the baseline and learns nothing.
    baseline : str, optional
        The arm of "shadow" and "off"; by default the first candidate of a request.
    add_arms : bool, default False
        Let requests add arms: an action that the loop does not have joins it, for all requests.
        Otherwise it is refused. A loop that is made by its first request has it set. Where actions
        are known by their features alone, any may come.
    ignore_unknown_fields : bool, default False
        Leave out fields of a context that the features do not have, and count them, in place of
        refusing them.
    """

    policy: dict[str, Any] = msgspec.field(default_factory=lambda: {"name": "ThompsonSampling"})
    arms: list[str] | dict[str, dict[str, Any]] = []
    features: dict[str, Any] | None = None
    dim: int | None = None
    intercept: bool = False
    standardize: bool = False
    missing: Fill | None = None
    clip_rewards: bool = False
    reward: RewardSettings = RewardSettings()
    mode: Mode = "online"
    baseline: str | None = None
    add_arms: bool = False
    ignore_unknown_fields: bool = False

    @classmethod
    def of(cls, given: object) -> LoopSettings:
        """Return settings from JSON values, checked, or raise `InvalidValue`."""
        try:
            settings = given if isinstance(given, cls) else msgspec.convert(given, cls)
        except msgspec.ValidationError as reason:
            raise InvalidValue(f"settings of a loop: {reason}") from None
        settings.reward.check()
        for arm in settings.arms:
            check_id("arms", arm)
        if settings.dim is not None and not 1 <= settings.dim <= MAX_NUMBERS:
            raise InvalidValue(f"dim must be from 1 to {MAX_NUMBERS}, got {settings.dim}")
        learner = settings.learner()
        features = learner.features
        dim = features.start().n_columns if isinstance(features, Features) else settings.dim
        assert dim is not None  # one of both was given
        check_size(learner.policy, len(settings.arms), dim)
        if settings.missing == "drop" or getattr(learner.features, "missing", None) == "drop":
            raise InvalidValue(
                "missing must be 'predict', 'mean' or 'zero', got 'drop': events with a missing "
                "entry would not be learned, but their rewards would be answered as counted"
            )
        if getattr(learner.policy, "draw", None) == "joint":
            raise InvalidValue(
                "policy.draw must be 'per-arm', got 'joint': every answer of a loop has the exact "
                "probability of its action, which is not known for joint draws"
            )
        return settings

    def check_mode(self) -> None:
        """Raise `InvalidValue` if nothing could be learned in this mode."""
        if self.mode == "shadow" and self.learner().policy.rule.weighted:
            raise InvalidValue(
                "mode must not be 'shadow' with a policy that weighs rewards by the probability "
                "of their arms: a baseline is not drawn, and its rewards could not be learned"
            )

    def check_baseline(self, arms: Collection[Arm]) -> None:
        """Raise `InvalidValue` if there are arms, and the baseline is none of them.

        Parameters
        ----------
        arms : collection of str
            The arms of the loop. While there are none, they come with requests.
        """
        if self.baseline is not None and arms and self.baseline not in arms:
            raise InvalidValue(
                f"baseline must be one of the arms, got {shown(self.baseline)}: they are "
                f"{shown(list(arms))}"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values, from which `of` makes the same settings."""
        record: dict[str, Any] = msgspec.to_builtins(self)
        return record

    def learner(self) -> Learner:
        """Return the learner."""
        policy = policy_of(self.policy)
        if self.features is not None:
            if self.dim is not None:
                raise InvalidValue("a loop has features or dim, got both")
            for name in OF_LISTS:
                if getattr(self, name):
                    raise InvalidValue(f"{name} of a loop with features is features.{name}")
            return Learner(policy, features_of(self.features))
        if self.dim is None:
            raise InvalidValue(
                "a loop needs features, such as {'numbers': ['age']}, or dim, the length of a "
                "context that is a list of numbers; got neither"
            )
        return Learner(
            policy,
            intercept=self.intercept,
            standardize=self.standardize,
            missing=self.missing,
            clip_rewards=self.clip_rewards,
        )

    def what_is_fixed(self) -> dict[str, Any]:
        """Return the settings that the learned state depends on: they cannot change."""
        record = self.to_dict()
        names = ("policy", "features", "dim", *OF_LISTS)
        return {name: record[name] for name in names}

    def without(self, arms: Collection[Arm]) -> LoopSettings:
        """Return settings that do not list some arms."""
        if isinstance(self.arms, dict):
            left: Any = {name: one for name, one in self.arms.items() if name not in arms}
        else:
            left = [name for name in self.arms if name not in arms]
        return msgspec.structs.replace(self, arms=left)

    @property
    def arm_names(self) -> list[Arm]:
        """The names of the arms."""
        return list(self.arms)


def policy_of(given: dict[str, Any]) -> Policy:
    """Return the policy of its name and settings, or raise `InvalidValue`."""
    settings = dict(given)
    name = settings.pop("name", "ThompsonSampling")
    known = {kind.__name__: kind for kind in POLICIES.values()} | POLICIES
    if not isinstance(name, str) or name not in known:
        raise InvalidValue(
            f"policy.name must be one of {', '.join(sorted(known))}, got {shown(name)}"
        )
    policy: Policy = _made("policy", known[name], settings)
    return policy


def features_of(given: dict[str, Any]) -> Features:
    """Return features from their arguments, or raise `InvalidValue`.

    Rewards are taken as they are by default: a reward that is answered as counted is learned so.
    """
    settings = {"clip_rewards": False, **given}
    if settings.get("arms") is not None:
        if not isinstance(settings["arms"], dict):
            raise InvalidValue(f"features.arms must be an object, got {shown(settings['arms'])}")
        settings["arms"] = features_of({"clip_rewards": True, **settings["arms"]})  # no choice
    if "cross" in settings:
        pairs = settings["cross"]
        if not isinstance(pairs, list) or not all(isinstance(one, list) for one in pairs):
            raise InvalidValue(f"features.cross must be a list of pairs, got {shown(pairs)}")
        settings["cross"] = [tuple(pair) for pair in pairs]
    made: Features = _made("features", Features, settings)
    return made


def _made(name: str, kind: Any, settings: dict[str, Any]) -> Any:
    allowed = list(inspect.signature(kind).parameters)
    if name == "policy":
        allowed.insert(0, "name")
    for unknown in (one for one in settings if one not in allowed):
        raise InvalidValue(f"{name} takes {', '.join(allowed)}, got {shown(unknown)}")
    try:
        return kind(**settings)
    except KeyholeError as reason:
        raise InvalidValue(f"{name}: {reason}") from None
    except TypeError as reason:  # an argument that is missing
        raise InvalidValue(f"{name}: {str(reason).partition('() ')[2] or reason}") from None
