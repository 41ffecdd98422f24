"""Arguments that every kind of bandit takes, checked in one place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from keyhole import checks
from keyhole.core import MOST_ARMS, Arm, Arms, Floats, Rule
from keyhole.errors import InvalidValue, shown
from keyhole.online.decision import Decision
from keyhole.online.decisions import Decisions

# Observations of one round, and of many rounds: numbers, or records with names.
Observed: TypeAlias = ArrayLike | Mapping[str, Any]
ObservedMany: TypeAlias = ArrayLike | Sequence[Mapping[str, Any]]


def arm_names(arms: int | Iterable[Arm]) -> Iterable[Arm]:
    """Return the names of the arms; a number n stands for the names 0 to n - 1."""
    if isinstance(arms, Integral):
        return range(checks.integer("arms", arms, max_value=MOST_ARMS))
    names: Any = arms
    return names  # type: ignore[no-any-return] # `Arms` checks them


def check_rows(y: ArrayLike, shape: tuple[int, ...], n_arms: int, dim: int) -> None:
    """Raise unless an observation is one row for all arms or a row for each.

    Parameters
    ----------
    y : array_like
        The observation as it was given, for the message.
    shape : tuple of int
        Its shape, with two axes.
    n_arms, dim : int
        The number of arms that are available, and the length of a row.
    """
    if shape != (1, dim) and shape != (n_arms, dim):
        raise InvalidValue(
            f"y must have shape ({dim},), or ({n_arms}, {dim}) with a row for each of the "
            f"{n_arms} arms, got {np.shape(y)}"
        )


def check_arms(arms: Arms) -> None:
    """Raise if there is no arm to choose."""
    if not arms.names:
        raise InvalidValue("this bandit has no arms of its own: give among={name: record, ...}")


def checked_decision(decision: object) -> Decision:
    """Return the decision given to `learn`, or raise if it is none."""
    if isinstance(decision, str):
        raise InvalidValue(
            f"learn takes a Decision and its reward, got {shown(decision)}: an id is enough only "
            "for a bandit with a log, Bandit(..., log=path)"
        )
    if not isinstance(decision, Decision):
        raise InvalidValue(f"learn takes a Decision and its reward, got {shown(decision)}")
    return decision


def check_observation(y: Floats, dim: int) -> None:
    """Raise unless a decision's observation has the length that the bandit's have.

    Parameters
    ----------
    y : ndarray
        The observation.
    dim : int
        The length of the bandit's observations.
    """
    if y.shape != (dim,):
        raise InvalidValue(f"this decision's observation has shape {y.shape}, not ({dim},)")


def reward_number(reward: object) -> float:
    """Return a reward as a float; True and False are 1 and 0."""
    is_bool = isinstance(reward, bool | np.bool_)
    return checks.real("reward", float(reward) if is_bool else reward)  # type: ignore[arg-type]


class Rewards(NamedTuple):
    """The arguments of `learn_many`."""

    decisions: Decisions | list[Decision]
    rewards: Floats  # (n,)

    @property
    def arms(self) -> list[Arm]:
        """The chosen arms."""
        if isinstance(self.decisions, Decisions):
            return self.decisions.arms
        return [each.arm for each in self.decisions]


def many_rewards(decisions: object, rewards: ArrayLike) -> Rewards:
    """Return many decisions and their rewards.

    Parameters
    ----------
    decisions : Decisions or iterable of Decision
        The decisions.
    rewards : array_like of shape (n,)
        Their rewards.
    """
    listed = decisions if isinstance(decisions, Decisions) else _listed(decisions)
    given = checks.floats("rewards", rewards)
    if given.shape != (len(listed),):
        raise InvalidValue(
            f"{len(listed)} decisions need as many rewards, got an array of shape {given.shape}"
        )
    return Rewards(listed, given)


def many_rows(decisions: Decisions | list[Decision], dim: int) -> tuple[Floats, Floats]:
    """Return the observations of many decisions, (n, dim): filled in, and with NaN.

    Parameters
    ----------
    decisions : Decisions or list of Decision
        The decisions.
    dim : int
        The length of the bandit's observations.
    """
    if isinstance(decisions, Decisions):
        y, raw = decisions.observations, decisions.raw
        if y.shape != (len(y), dim):
            raise InvalidValue(f"observations have shape {y.shape}, not ({len(y)}, {dim})")
        return y, raw
    if shapes := {each.observation.shape for each in decisions} - {(dim,)}:
        raise InvalidValue(f"an observation has shape {shapes.pop()}, not ({dim},)")
    y = np.array([each.observation for each in decisions]).reshape(-1, dim)
    return y, np.array([each.raw for each in decisions]).reshape(-1, dim)


def _listed(decisions: Any) -> list[Decision]:
    listed = list(decisions) if checks.is_listing(decisions) else [decisions]
    if strange := [each for each in listed if not isinstance(each, Decision)]:
        raise InvalidValue(f"learn_many takes Decisions, got {shown(strange[0])}")
    return listed


def check_not_joint(rule: Rule) -> None:
    """Raise if arms are scored by one sample, whose probabilities are not known."""
    if rule.joint:
        raise InvalidValue(
            "probabilities of all arms need draw='per-arm': with draw='joint' scores depend on "
            "each other, and only the probability of a decision between two arms is known"
        )
