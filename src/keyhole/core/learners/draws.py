"""The random numbers of one choice."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from keyhole.core.kernels import Floats


class Draws(NamedTuple):
    """Random numbers that a learner is handed for one choice.

    Two learners with the same draws can be compared round by round, and a run can be replayed.

    Attributes
    ----------
    normals : ndarray of shape (n_arms,)
        Standard normals, one for each arm.
    uniforms : ndarray of shape (2,)
        Uniform numbers from 0 to below 1: a coin, and a number that breaks ties.
    """

    normals: Floats
    uniforms: Floats

    def generator(self) -> np.random.Generator:
        """Return a generator seeded by these numbers, for learners that need more of them."""
        words = np.concatenate([self.normals, self.uniforms]).view(np.uint32)
        return np.random.default_rng(words.tolist())
