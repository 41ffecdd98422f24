"""`Candidates`: the arms that a request may be answered with, and what is seen of them."""

from __future__ import annotations

from typing import Any, NamedTuple

from keyhole.core import Arm, Features
from keyhole.errors import InvalidValue, shown
from keyhole.online import LoggedBandit
from keyhole.service.requests import Action, Context, DecideRequest
from keyhole.service.settings import LoopSettings


class Candidates(NamedTuple):
    """What a decision is made from.

    Attributes
    ----------
    context : dict or list
        The context, without fields that are ignored.
    names : list of str
        The candidates.
    records : dict, optional
        Their records by name, if features have some of arms and the request brings them.
    new : dict, list or None
        Arms that the bandit does not have yet, for `Bandit.add_arms`.
    baseline : str
        The arm of the modes "shadow" and "off".
    ignored : list of str
        Fields of the context that the features do not have.
    """

    context: Context
    names: list[Arm]
    records: dict[Arm, Any] | None
    new: Any
    baseline: Arm
    ignored: list[str]

    @classmethod
    def of(cls, bandit: LoggedBandit, settings: LoopSettings, request: DecideRequest) -> Candidates:
        """Return the candidates of a request, or raise `InvalidValue`.

        Parameters
        ----------
        bandit : LoggedBandit
            The bandit of the loop.
        settings : LoopSettings
            The settings of the loop.
        request : DecideRequest
            The request.
        """
        features = bandit.learner.features
        context, ignored = _known_fields(request.context, features, settings)
        if settings.dim is not None and len(context) != settings.dim:
            raise InvalidValue(f"context must have {settings.dim} numbers, got {len(context)}")
        excluded = set(request.exclude)
        if request.actions is None:
            _check_excluded(excluded, bandit.arms)
            names = [name for name in bandit.arms if name not in excluded]
            records, new = _kept_records(bandit, features, names), None
        else:
            actions = _by_name(request.actions)
            _check_excluded(excluded, actions)
            kept = {name: one for name, one in actions.items() if name not in excluded}
            names = list(kept)
            records, new = _records(bandit, features, kept)
        if not names:
            raise InvalidValue(
                "actions must have at least one that is not excluded, got none: the loop has no "
                "arms, or all are excluded"
            )
        return cls(context, names, records, new, _baseline(settings, request, names), ignored)


def _records(
    bandit: LoggedBandit, features: Any, actions: dict[str, Action]
) -> tuple[dict[Arm, Any] | None, Any]:
    """Return the records of candidates, and the arms that have to be added."""
    unknown = [name for name in actions if name not in bandit._learned.arms]
    if isinstance(features, Features) and features.arms is not None:
        records: dict[Arm, Any] = {name: one.features or {} for name, one in actions.items()}
        if bandit.policy.sharing == "shared":
            # Nothing of an arm is kept but its record, which comes with the request.
            return records, None
        return records, {name: records[name] for name in unknown} or None
    for name, one in actions.items():
        if one.features:
            raise InvalidValue(
                f"actions: {shown(name)} has features, and the loop's features have none of arms: "
                "set features.arms, or leave them out"
            )
    return None, unknown or None


def _kept_records(bandit: LoggedBandit, features: Any, names: list[Arm]) -> dict[Arm, Any] | None:
    """Return the records of arms that the bandit keeps, if features have some of arms."""
    if not isinstance(features, Features) or features.arms is None:
        return None
    kept = bandit._learned.arm_records
    return {name: kept.get(name, {}) for name in names}


def bandit_among(bandit: LoggedBandit, names: tuple[Arm, ...]) -> tuple[Arm, ...] | None:
    """Return candidates for `Bandit.choose`: None if they are all arms, which is ten times faster.

    A replay must take the same way as the decision did.

    Parameters
    ----------
    bandit : LoggedBandit
        The bandit.
    names : tuple of arms
        The candidates.
    """
    return None if names == bandit.arms else names


def _by_name(actions: list[Action]) -> dict[str, Action]:
    named = {one.id: one for one in actions}
    if len(named) < len(actions) or not all(named):
        raise InvalidValue("actions must have different ids that are not empty")
    return named


def _check_excluded(excluded: set[str], names: Any) -> None:
    for name in sorted(excluded):
        if name not in names:
            raise InvalidValue(f"exclude must name actions, got {shown(name)}")


def _baseline(settings: LoopSettings, request: DecideRequest, names: list[Arm]) -> Arm:
    """Return the arm of the modes "shadow" and "off"."""
    for where, name in (("baseline", request.baseline), ("the loop's baseline", settings.baseline)):
        if name is not None:
            if name not in names:
                raise InvalidValue(f"{where} must be one of the candidates, got {shown(name)}")
            return name
    return names[0]


def _known_fields(
    context: Context, features: Any, settings: LoopSettings
) -> tuple[Context, list[str]]:
    """Return a context without fields that are ignored, and these."""
    if not settings.ignore_unknown_fields or not isinstance(context, dict):
        return context, []
    fields = set(features.fields) if isinstance(features, Features) else set()
    ignored = [name for name in context if name not in fields]
    return {name: value for name, value in context.items() if name in fields}, ignored
