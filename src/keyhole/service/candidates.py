"""The parts of a request, checked: `Candidates`, the arms to choose among; and its context."""

from __future__ import annotations

from typing import Any, NamedTuple

from keyhole.core import Arm, Features
from keyhole.errors import InvalidValue, shown
from keyhole.online import LoggedBandit
from keyhole.service.requests import Action, Context, DecideRequest
from keyhole.service.settings import LoopSettings


class Candidates(NamedTuple):
    """The arms that a decision is made among.

    Attributes
    ----------
    names : list of str
        The candidates.
    among : tuple of str, optional
        The same for `Bandit.choose`; None if they are all arms.
    records : dict, optional
        Their records by name, if the loop has features of arms.
    new : dict, list or None
        Arms that the bandit does not have yet, for `Bandit.add_arms`.
    baseline : str
        The arm of the modes "shadow" and "off".
    """

    names: list[Arm]
    among: tuple[Arm, ...] | None
    records: dict[Arm, Any] | None
    new: Any
    baseline: Arm

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
            if new and not settings.add_arms:
                raise _unknown(next(iter(new)))
        if not names:
            raise _none_left(bandit, request)
        among = bandit_among((*bandit.arms, *(new or ())), tuple(names))
        return cls(names, among, records, new, _baseline(settings, request, names))


def _records(
    bandit: LoggedBandit, features: Any, actions: dict[str, Action]
) -> tuple[dict[Arm, Any] | None, Any]:
    """Return the records of candidates, and the arms that have to be added."""
    unknown = [name for name in actions if name not in bandit._learned.arms]
    if isinstance(features, Features) and features.arms is not None:
        kept = bandit._learned.arm_records  # those of arms that come without features
        records: dict[Arm, Any] = {
            name: kept.get(name, {}) if one.features is None else one.features
            for name, one in actions.items()
        }
        if bandit.policy.sharing == "shared":
            # Only the record of an arm is kept, and each request has it.
            return records, None
        return records, {name: records[name] for name in unknown} or None
    for name, one in actions.items():
        if one.features:
            raise InvalidValue(
                f"actions: {shown(name)} has features, but the loop has no features of arms: "
                "set features.arms, or leave them out"
            )
    return None, unknown or None


def _unknown(name: Arm) -> InvalidValue:
    return InvalidValue(
        f"actions must be arms of the loop, got {shown(name)}: add it with POST .../arms, or let "
        "requests add arms, by the setting add_arms"
    )


def _none_left(bandit: LoggedBandit, request: DecideRequest) -> InvalidValue:
    if request.actions is None and not bandit.arms:
        return InvalidValue("the loop has no arms: list the candidates in actions")
    if request.actions == []:
        return InvalidValue("actions must have at least one, got none")
    what = "arms of the loop" if request.actions is None else "actions"
    return InvalidValue(f"no candidate is left: exclude names all {what}")


def _kept_records(bandit: LoggedBandit, features: Any, names: list[Arm]) -> dict[Arm, Any] | None:
    """Return the records that the bandit keeps of arms, if the loop has features of arms."""
    if not isinstance(features, Features) or features.arms is None:
        return None
    kept = bandit._learned.arm_records
    return {name: kept.get(name, {}) for name in names}


def bandit_among(arms: tuple[Arm, ...], names: tuple[Arm, ...]) -> tuple[Arm, ...] | None:
    """Return candidates for `Bandit.choose`: None if they are all arms, which is ten times faster.

    A replay must take the same way as the decision did.

    Parameters
    ----------
    arms : tuple of arms
        All arms.
    names : tuple of arms
        The candidates.
    """
    return None if names == arms else names


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
    """Return the arm of the modes "shadow" and "off"; in "online" the loop's is not needed."""
    where, name = "baseline", request.baseline
    if name is None and settings.mode != "online":
        where, name = "the loop's baseline", settings.baseline
    if name is None:
        return names[0]
    if name not in names:
        raise InvalidValue(f"{where} must be one of the candidates, got {shown(name)}")
    return name


def checked_context(
    context: Context, bandit: LoggedBandit, settings: LoopSettings
) -> tuple[Context, list[str]]:
    """Return a context without the fields that are ignored, and these; or raise `InvalidValue`.

    Parameters
    ----------
    context : dict or list
        The context of a request.
    bandit : LoggedBandit
        The bandit of the loop.
    settings : LoopSettings
        The settings of the loop.
    """
    if settings.dim is not None and len(context) != settings.dim:
        raise InvalidValue(f"context must have {settings.dim} numbers, got {len(context)}")
    if settings.features is not None:
        check_named(bandit, context)
    if not settings.ignore_unknown_fields or not isinstance(context, dict):
        return context, []
    features = bandit.learner.features
    fields = set(features.fields) if isinstance(features, Features) else set()
    ignored = [name for name in context if name not in fields]
    return {name: value for name, value in context.items() if name in fields}, ignored


def check_named(bandit: LoggedBandit, context: Context) -> None:
    """Raise `InvalidValue` if a context of a loop with named fields is a list.

    Parameters
    ----------
    bandit : LoggedBandit
        The bandit of the loop.
    context : dict or list
        The context.
    """
    if isinstance(context, list):
        fields = getattr(bandit.learner.features, "fields", ())
        raise InvalidValue(
            "context must be an object with fields by name, got a list: the loop has the fields "
            f"{shown(list(fields))}"
        )


def check_missing(settings: LoopSettings, context: Context) -> None:
    """Raise `InvalidValue` if a context has null where a loop takes none.

    Parameters
    ----------
    settings : LoopSettings
        The settings of the loop.
    context : dict or list
        The context.
    """
    has_null = isinstance(context, list) and None in context
    if has_null and settings.dim is not None and settings.missing is None:
        raise InvalidValue(
            "context must have numbers, got null: create the loop with the setting missing, such "
            "as 'predict', and null is a missing entry"
        )
