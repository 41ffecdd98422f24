"""A world that hands out the same rounds again and again."""

from __future__ import annotations

from typing import Any

import numpy as np

import keyhole as kh


class Replay(kh.World):
    """Rounds that were made before: a simulation of them is the policy's work and nothing else.

    Its replications are as long as there are rounds, and done one after another.

    Parameters
    ----------
    observations : ndarray of shape (rounds, n_arms, dim) or (rounds, 1, dim)
        What is seen in each round.
    rewards : ndarray of shape (rounds, n_arms)
        What each arm would give.
    noise_scale : float
        The standard deviation of a reward, for policies of v="oracle".

    """

    def __init__(self, observations: Any, rewards: Any, noise_scale: float = 1.0) -> None:
        self.shared_context = observations.shape[1] == 1
        self.made = kh.Rounds(observations, rewards, np.zeros_like(rewards), rewards)
        self.at, self.noise = 0, noise_scale

    @property
    def n_arms(self) -> int:
        """As many as there are rewards in a round."""
        return int(self.made.rewards.shape[1])

    @property
    def dim(self) -> int:
        """The length of an observation."""
        return int(self.made.observations.shape[2])

    @property
    def eta(self) -> Any:
        """Unknown, and not needed: nobody looks at the regret."""
        return np.zeros((self.n_arms, self.dim))

    @property
    def noise_scale(self) -> float:
        """As given."""
        return self.noise

    def rounds(self, state: Any, n: int) -> kh.Rounds:  # noqa: ARG002
        """Return the next n rounds; after the last, the first follows again."""
        start = self.at % len(self.made)
        now, self.at = slice(start, start + n), start + n
        made = self.made
        return kh.Rounds(
            made.observations[now], made.rewards[now], made.values[now], made.latent[now]
        )
