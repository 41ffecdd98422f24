"""Each library behind the same three calls: make, choose, learn. Runs in its own environment.

Every bandit has one parameter an arm, a context that all arms share, no constant, prior I and
v = 1, as far as the library can be told so.
"""

from __future__ import annotations

import importlib
import random
from typing import Any

import numpy as np


class Keyhole:
    """Keyhole: choices without their probabilities, as of all the others."""

    logged = False

    def __init__(self, n_arms: int, dim: int) -> None:
        kh = importlib.import_module("keyhole")
        policy = kh.ThompsonSampling(v=1.0)
        self.bandit = kh.Bandit(policy, arms=n_arms, dim=dim, seed=1, probabilities=self.logged)
        self.decided = kh.Decision

    def choose(self, y: Any) -> int:
        self.decision = self.bandit.choose(y)
        return int(self.decision.arm)

    def learn(self, y: Any, arm: int, reward: float) -> None:  # noqa: ARG002
        self.bandit.learn(self.decision, reward)

    def teach(self, ys: Any, arms: Any, rewards: Any) -> None:
        """History that was not chosen here."""
        for y, arm, reward in zip(ys, arms, rewards, strict=True):
            self.bandit.learn(self.decided(arm=int(arm), observation=y), float(reward))


class KeyholeLogged(Keyhole):
    """As it comes: every decision can tell its exact probability, which is never read here."""

    logged = True


class KeyholeRead(KeyholeLogged):
    """As it comes, and the exact probability of each decision is read, as a log does."""

    def choose(self, y: Any) -> int:
        self.decision = self.bandit.choose(y)
        self.probability = self.decision.probability
        return int(self.decision.arm)


class Contextualbandits:
    """LinTS as it comes: samples of the coefficients, Cholesky."""

    options: dict[str, Any] = {}  # noqa: RUF012

    def __init__(self, n_arms: int, dim: int) -> None:
        online = importlib.import_module("contextualbandits.online")
        self.bandit = online.LinTS(n_arms, fit_intercept=False, random_state=1, **self.options)
        # It predicts only once it was fitted; a context and a reward of 0 teach it nothing.
        for arm in range(n_arms):
            self.learn(np.zeros(dim), arm, 0.0)

    def choose(self, y: Any) -> int:
        return int(self.bandit.predict(y[None, :])[0])

    def learn(self, y: Any, arm: int, reward: float) -> None:
        self.bandit.partial_fit(y[None, :], np.array([arm]), np.array([reward]))


class ContextualbanditsCi(Contextualbandits):
    """LinTS with samples of the prediction, and Sherman and Morrison's update."""

    options = {"sample_from": "ci", "method": "sm"}  # noqa: RUF012


class Mabwiser:
    """LinTS."""

    def __init__(self, n_arms: int, dim: int) -> None:
        mab = importlib.import_module("mabwiser.mab")
        policy = mab.LearningPolicy.LinTS(alpha=1.0, l2_lambda=1.0)
        self.bandit = mab.MAB(list(range(n_arms)), policy, seed=1)
        self.bandit.fit([0], [0.0], np.zeros((1, dim)))

    def choose(self, y: Any) -> int:
        return int(self.bandit.predict(y[None, :]))

    def learn(self, y: Any, arm: int, reward: float) -> None:
        self.bandit.partial_fit([arm], [reward], y[None, :])

    def teach(self, ys: Any, arms: Any, rewards: Any) -> None:
        """History is given to `fit` in one call, as its documentation does."""
        self.bandit.fit(arms.tolist(), rewards.tolist(), ys)


class Bayesianbandits:
    """ContextualAgent of NormalRegressors."""

    def __init__(self, n_arms: int, dim: int) -> None:  # noqa: ARG002
        bb = importlib.import_module("bayesianbandits")
        arms = [bb.Arm(i, learner=bb.NormalRegressor(alpha=1.0, beta=1.0)) for i in range(n_arms)]
        self.bandit = bb.ContextualAgent(arms, bb.ThompsonSampling(), random_seed=1)

    def choose(self, y: Any) -> int:
        return int(self.bandit.pull(y[None, :])[0])

    def learn(self, y: Any, arm: int, reward: float) -> None:
        self.bandit.select_for_update(arm).update(y[None, :], np.array([reward]))


class Coba:
    """LinTSLearner; its one parameter becomes one an arm by crossing contexts with unit vectors."""

    def __init__(self, n_arms: int, dim: int) -> None:
        if n_arms * dim > 2000:
            raise MemoryError(
                f"one parameter of {n_arms * dim} numbers: its covariance is too large"
            )
        learners = importlib.import_module("coba.learners")
        self.bandit = learners.LinTSLearner(v=1.0, features=["ax"])
        self.actions = [tuple(row) for row in np.eye(n_arms).tolist()]

    def choose(self, y: Any) -> int:
        action, self.probability = self.bandit.predict(y.tolist(), self.actions)
        return self.actions.index(action)

    def learn(self, y: Any, arm: int, reward: float) -> None:
        self.bandit.learn(y.tolist(), self.actions[arm], reward, 1.0)


class Obp:
    """LinTS."""

    def __init__(self, n_arms: int, dim: int) -> None:
        policy = importlib.import_module("obp.policy")
        self.bandit = policy.LinTS(dim=dim, n_actions=n_arms, batch_size=1, random_state=1)

    def choose(self, y: Any) -> int:
        return int(self.bandit.select_action(y[None, :])[0])

    def learn(self, y: Any, arm: int, reward: float) -> None:
        self.bandit.update_params(arm, reward, y[None, :])


class River:
    """LinUCBDisjoint, its nearest: no sampling."""

    def __init__(self, n_arms: int, dim: int) -> None:  # noqa: ARG002
        bandit = importlib.import_module("river.bandit")
        self.bandit = bandit.LinUCBDisjoint(alpha=1.0, beta=1.0, seed=1)
        self.arms = range(n_arms)

    def choose(self, y: Any) -> int:
        return int(self.bandit.pull(self.arms, context=dict(enumerate(y.tolist()))))

    def learn(self, y: Any, arm: int, reward: float) -> None:
        self.bandit.update(arm, dict(enumerate(y.tolist())), reward)


class VowpalWabbit:
    """SquareCB over linear models, its nearest: a point estimate, no posterior."""

    exploration = "squarecb"

    def __init__(self, n_arms: int, dim: int) -> None:  # noqa: ARG002
        vw = importlib.import_module("vowpalwabbit")
        options = f"--cb_explore_adf --{self.exploration} -q sa --noconstant --quiet"
        self.bandit, self.arms = vw.Workspace(options), range(n_arms)
        self.actions = [f"|a {i}" for i in range(n_arms)]
        self.random = random.Random(1)

    def choose(self, y: Any) -> int:
        # Made once a round, and parsed for both calls.
        self.shared = self.text(y)
        examples = self.bandit.parse([self.shared, *self.actions])
        self.chances = self.bandit.predict(examples)
        self.bandit.finish_example(examples)
        return self.drawn()

    def learn(self, y: Any, arm: int, reward: float) -> None:  # noqa: ARG002
        lines = [self.shared, *self.actions]
        lines[1 + arm] = self.labelled(arm, reward)
        examples = self.bandit.parse(lines)
        self.bandit.learn(examples)
        self.bandit.finish_example(examples)

    def text(self, y: Any) -> str:
        return "shared |s " + " ".join(f"{j}:{v:.6g}" for j, v in enumerate(y.tolist()))

    def labelled(self, arm: int, reward: float) -> str:
        return f"0:{-reward:.6g}:{self.chances[arm]:.6g} |a {arm}"

    def drawn(self) -> int:
        return self.random.choices(self.arms, self.chances)[0]


class VowpalWabbitRegcb(VowpalWabbit):
    """RegCB over linear models."""

    exploration = "regcb"


class VowpalWabbitParsed(VowpalWabbit):
    """SquareCB as fast as its Python interface allows, with all contexts parsed before the time.

    The examples of the actions are parsed once. It learns from the line of the chosen action alone,
    the only one with a cost, which is the only text that is parsed within the time.
    """

    def __init__(self, n_arms: int, dim: int) -> None:
        super().__init__(n_arms, dim)
        self.examples = self.bandit.parse(["shared |s", *self.actions])

    def prepare(self, ys: Any) -> None:
        self.contexts = iter([self.bandit.parse(self.text(y))[0] for y in ys])

    def choose(self, y: Any) -> int:  # noqa: ARG002
        self.examples[0] = next(self.contexts)
        self.chances = self.bandit.predict(self.examples)
        return self.drawn()

    def learn(self, y: Any, arm: int, reward: float) -> None:  # noqa: ARG002
        one = self.bandit.parse(self.labelled(arm, reward))
        pair = [self.examples[0], *one]
        self.bandit.learn(pair)
        self.bandit.finish_example(pair)


ADAPTERS: dict[str, Any] = {
    "keyhole": Keyhole,
    "keyhole-logged": KeyholeLogged,
    "keyhole-read": KeyholeRead,
    "contextualbandits": Contextualbandits,
    "contextualbandits-ci": ContextualbanditsCi,
    "mabwiser": Mabwiser,
    "bayesianbandits": Bayesianbandits,
    "coba": Coba,
    "obp": Obp,
    "river": River,
    "vowpalwabbit-squarecb": VowpalWabbit,
    "vowpalwabbit-regcb": VowpalWabbitRegcb,
    "vowpalwabbit-parsed": VowpalWabbitParsed,
}
