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
    n: list[int] = field(init=False)
    squares: list[float] = field(init=False)
    weight: list[float] = field(init=False)  # the sum of the weights of rewards
    last_weight: float = 1.0  # that of the reward of the last choice

    def __post_init__(self) -> None:
        count = 1 if self.policy.sharing == "shared" else self.n_arms
        self.B = [self.policy.prior_precision * np.eye(self.dim) for _ in range(count)]
        self.b = [np.zeros(self.dim) for _ in range(count)]
        self.n, self.squares, self.weight = [0] * count, [0.0] * count, [0.0] * count

    def parameter(self, arm: int) -> int:
        return 0 if self.policy.sharing == "shared" else arm

    def learned_v(self) -> Array:
        """The dispersion of each parameter that v="learned" stands for, from the sums alone."""
        prior, misfits, freedoms = self.policy.prior_precision, [], []
        for B, b, n, squares in zip(self.B, self.b, self.weight, self.squares, strict=True):
            P = np.linalg.inv(B)
            mean = P @ b
            seen = B - prior * np.eye(self.dim)
            misfits.append(max(squares - 2 * b @ mean + mean @ seen @ mean, 0.0))
            freedoms.append(max(n - self.dim + (prior * np.trace(P)) ** 2 / self.dim, 0.0))
        misfit, freedom = np.array(misfits), np.array(freedoms)
        if sum(self.squares) == 0:
            return np.ones(misfit.size)
        weight = 16 / (4 + freedom.sum())
        mean_square = sum(self.squares) / sum(self.weight)
        pooled = (weight * mean_square + misfit.sum()) / (weight + freedom.sum())
        own = (4 * pooled + misfit) / (4 + freedom)
        trust = misfit / (4 * pooled + misfit)
        v: Array = np.sqrt((1 - trust) * pooled + trust * own)
        return v

    def diverse(self) -> bool:
        """GreedyFirst's test, by the eigenvalues of the data themselves."""
        prior, t = self.policy.prior_precision, sum(self.n)
        least = min(np.linalg.eigvalsh(B - prior * np.eye(self.dim))[0] for B in self.B)
        patience = self.policy.patience
        early = t < (4 * len(self.B) * self.dim if patience is None else patience)
        return bool(early or least >= self.policy.lambda_0 * t / 4)

    def radius(self, i: int) -> float:
        """OFUL's radius, with the determinant bounded by the trace."""
        prior, d = self.policy.prior_precision, self.dim
        grown = d * np.log(np.trace(self.B[i]) / d) - d * np.log(prior)
        sure = 2 * np.log(1 / self.policy.delta)
        return float(self.policy.r * np.sqrt(grown + sure) + np.sqrt(prior) * self.policy.c_eta)

    def scores(self, y: Array, normals: Array) -> tuple[Array, Array]:
        """Each arm's score and its scalar normal; y, normals: (n_arms, dim)."""
        score, z = np.zeros(self.n_arms), np.zeros(self.n_arms)
        learned = self.learned_v() if getattr(self.policy, "v", 0.0) == "learned" else None
        for arm in range(self.n_arms):
            i = self.parameter(arm)
            covariance = np.linalg.inv(self.B[i])
            mean = covariance @ self.b[i]
            root = np.linalg.cholesky(covariance)
            direction = root.T @ y[arm]
            width = np.linalg.norm(direction)
            z[arm] = direction @ normals[arm] / width
            match self.policy:
                case kh.ThompsonSampling(v=v) | kh.WeightedThompsonSampling(v=v):
                    v = v if learned is None else learned[i]
                    sample = mean + v * root @ normals[arm]
                    score[arm] = y[arm] @ sample
                case kh.GreedyFirst(v=v):
                    v = 0.0 if self.diverse() else v if learned is None else learned[i]
                    score[arm] = y[arm] @ (mean + v * root @ normals[arm])
                case kh.OFUL():
                    score[arm] = y[arm] @ mean + self.radius(i) * width
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
            case kh.WeightedThompsonSampling():
                epsilon = self.policy.epsilon * (1 + sum(self.n)) ** -self.policy.decay
                explores = coin < epsilon
            case _:
                epsilon, explores = 0.0, False
        best = np.flatnonzero(score == score.max())
        arm = int(coin / epsilon * self.n_arms) if explores else int(best[int(tie * best.size)])
        if isinstance(self.policy, kh.WeightedThompsonSampling):
            self.last_weight = epsilon / self.n_arms / self.propensity(arm, y, epsilon)
        return Round(arm, z)

    def propensity(self, arm: int, y: Array, epsilon: float) -> float:
        """The probability of an arm: scores are normal, with mean y'mean and variance v^2 y'Py."""
        i = [self.parameter(k) for k in range(self.n_arms)]
        v = self.learned_v()[i] if self.policy.v == "learned" else self.policy.v
        P = np.array([np.linalg.inv(self.B[k]) for k in i])
        location = [y[k] @ P[k] @ self.b[i[k]] for k in range(self.n_arms)]
        scale = v * np.sqrt(np.einsum("kd,kde,ke->k", y, P, y))
        return float(kh.choice_probabilities(location, scale, epsilon=epsilon)[arm])

    def learn(self, arm: int, y: Array, reward: float) -> None:
        i, w = self.parameter(arm), self.last_weight
        self.B[i] = self.B[i] + w * np.outer(y, y)
        self.b[i] = self.b[i] + w * reward * y
        self.n[i] += 1
        self.weight[i] += w
        self.squares[i] += w * reward**2


@dataclass(frozen=True)
class TextbookLearner:
    """The textbook as a learner: any policy, in a plain loop, from one normal number per arm.

    A sample's score is y'mean + v |root'y| z, where z is the part of its normals along root'y: an
    arm whose normals are all along that direction needs no others.
    """

    policy: kh.Policy

    def start(self, n_arms: int, dim: int) -> Textbook:
        return Textbook(self.policy, n_arms, dim)

    def choose(self, state: Textbook, observation: Array, draws: kh.Draws) -> int:
        y = np.broadcast_to(observation, (state.n_arms, state.dim))
        normals = np.empty((state.n_arms, state.dim))
        for arm in range(state.n_arms):
            covariance = np.linalg.inv(state.B[state.parameter(arm)])
            direction = np.linalg.cholesky(covariance).T @ y[arm]
            normals[arm] = draws.normals[arm] * direction / np.linalg.norm(direction)
        coin, tie = draws.uniforms.tolist()
        return state.choose(y, normals, coin, tie).arm

    def learn(self, state: Textbook, arm: int, observation: Array, reward: float) -> None:
        state.learn(arm, observation, reward)

    def coefficients(self, state: Textbook) -> Array:
        means = [np.linalg.solve(B, b) for B, b in zip(state.B, state.b, strict=True)]
        return np.array([means[state.parameter(arm)] for arm in range(state.n_arms)])
