"""The protocol of a learner: three functions."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np

from keyhole import checks
from keyhole.core.kernels import Floats
from keyhole.core.learners.draws import Draws
from keyhole.errors import InvalidValue, shown


class Chosen(NamedTuple):
    """The index of a chosen arm, and the probability with which it was chosen, if known."""

    arm: int
    probability: float | None = None


def checked_choice(answer: object, learner: object, n_arms: int) -> Chosen:
    """Return the choice of a learner, or raise `InvalidValue` if there is no such arm.

    Parameters
    ----------
    answer : int or Chosen
        The result of `choose`.
    learner : object
        The learner, for the message.
    n_arms : int
        The number of arms.
    """
    chosen = answer if isinstance(answer, Chosen) else Chosen(answer)  # type: ignore[arg-type]
    is_index = isinstance(chosen.arm, int | np.integer) and not isinstance(chosen.arm, bool)
    if not is_index or not 0 <= chosen.arm < n_arms:
        raise InvalidValue(
            f"{shown(learner)}.choose must return an arm from 0 to {n_arms - 1}, "
            f"got {shown(answer)}"
        )
    probability = chosen.probability
    if probability is not None:
        probability = checks.real(
            "the probability of a choice", probability, min_value=0.0, max_value=1.0
        )
    return Chosen(int(chosen.arm), probability)


# Names for readers: a state is whatever `start` returns.
State: TypeAlias = Any


@runtime_checkable
class AnyLearner(Protocol):
    """Anything that starts, chooses and learns.

    `simulate`, the studies and `Bandit` take such an object, by a plain Python loop. A learner
    holds settings only: all that it learns is in the state, which `learn` changes in place.

    Besides, `coefficients(state)` may return an array of shape (n_arms, dim), the present estimate
    of each arm's coefficients: simulations then report its error.
    """

    def start(self, n_arms: int, dim: int) -> State:
        """Return the state of a learner that has learned nothing.

        Parameters
        ----------
        n_arms : int
            The number of arms.
        dim : int
            The length of an observation.
        """

    def choose(self, state: State, observation: Floats, draws: Draws) -> int | Chosen:
        """Choose an arm.

        Parameters
        ----------
        state : object
            What `start` returned, changed by `learn` since.
        observation : ndarray of shape (dim,) or (n_arms, dim)
            One observation for all arms, or one for each. Missing entries are NaN, and left to the
            learner.
        draws : Draws
            Random numbers. A learner that uses no others can be replayed.

        Returns
        -------
        int or Chosen
            The index of the arm, or the index and the probability of that choice.
        """

    def learn(self, state: State, arm: int, observation: Floats, reward: float) -> None:
        """Learn the reward of an arm.

        Parameters
        ----------
        state : object
            The state, which is changed in place.
        arm : int
            The index of the arm.
        observation : ndarray of shape (dim,)
            The observation of that arm.
        reward : float
            Its reward.
        """
