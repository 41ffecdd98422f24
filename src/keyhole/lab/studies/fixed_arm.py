"""`FixedArm`: a learner that always chooses the same arm and learns nothing."""

from __future__ import annotations

from dataclasses import dataclass

from keyhole.core import Chosen, Draws, Floats


@dataclass(frozen=True)
class FixedArm:
    """Always choose one arm.

    Parameters
    ----------
    arm : int
        The index of the arm.
    """

    arm: int

    def start(self, n_arms: int, dim: int) -> None:
        """Return no state.

        Parameters
        ----------
        n_arms, dim
            As in `AnyLearner.start`.
        """

    def choose(self, state: None, observation: Floats, draws: Draws) -> Chosen:
        """Choose the arm.

        Parameters
        ----------
        state, observation, draws
            As in `AnyLearner.choose`.
        """
        del state, observation, draws
        return Chosen(self.arm, 1.0)

    def learn(self, state: None, arm: int, observation: Floats, reward: float) -> None:
        """Learn nothing.

        Parameters
        ----------
        state, arm, observation, reward
            As in `AnyLearner.learn`.
        """
