"""The specification: the paper's Algorithms 1 and 2 as printed, and the other policies likewise.

Every arm draws a full d-dimensional sample from its posterior; every matrix is inverted directly.
Nothing here is fast, and nothing here knows of Keyhole's kernels.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

import keyhole as kh

Array = NDArray[np.float64]


@dataclass
class Round:
    """What one round of the textbook drew and did."""

    arm: int
    z: Array  # (n_arms,)  each arm's normals projected on that arm's own direction


@dataclass
class Textbook:
    policy: Any
    n_arms: int
    dim: int
    B: list[Array] = field(init=False)
    b: list[Array] = field(init=False)

    def __post_init__(self) -> None:
        count = 1 if self.policy.parameters == "shared" else self.n_arms
        self.B = [self.policy.prior_precision * np.eye(self.dim) for _ in range(count)]
        self.b = [np.zeros(self.dim) for _ in range(count)]

    def parameter(self, arm: int) -> int:
        return 0 if self.policy.parameters == "shared" else arm

    def scores(self, y: Array, normals: Array) -> tuple[Array, Array]:
        """Each arm's score and its scalar normal; y, normals: (n_arms, dim)."""
        score, z = np.zeros(self.n_arms), np.zeros(self.n_arms)
        for arm in range(self.n_arms):
            i = self.parameter(arm)
            covariance = np.linalg.inv(self.B[i])
            mean = covariance @ self.b[i]
            root = np.linalg.cholesky(covariance)
            direction = root.T @ y[arm]
            width = np.linalg.norm(direction)
            z[arm] = direction @ normals[arm] / width
            match self.policy:
                case kh.ThompsonSampling(v=v):
                    sample = mean + v * root @ normals[arm]
                    score[arm] = y[arm] @ sample
                case kh.LinUCB(alpha=alpha):
                    score[arm] = y[arm] @ mean + alpha * width
                case _:
                    score[arm] = y[arm] @ mean
        return score, z

    def choose(self, y: Array, normals: Array, coin: float, tie: float) -> Round:
        score, z = self.scores(y, normals)
        match self.policy:
            case kh.EpsilonGreedy(epsilon=epsilon):
                explores = coin < epsilon
            case kh.Uniform():
                epsilon, explores = 1.0, True
            case _:
                epsilon, explores = 0.0, False
        if explores:
            return Round(int(coin / epsilon * self.n_arms), z)
        best = np.flatnonzero(score == score.max())
        return Round(int(best[int(tie * best.size)]), z)

    def learn(self, arm: int, y: Array, reward: float) -> None:
        i = self.parameter(arm)
        self.B[i] = self.B[i] + np.outer(y, y)
        self.b[i] = self.b[i] + reward * y
