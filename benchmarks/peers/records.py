"""Decisions as people make them: a record for each arm, missing fields, units, a constant.

    python -m benchmarks.peers.records NAME SECONDS

prints a line of JSON. Eight arms have a row of 27 columns each, 15 of the context and 12 of their
own. Five of the context's are missing one time in ten each, so that 41% of rounds have a missing
entry. Every library has a parameter for each arm, a constant and the probability of its choice.
"""

from __future__ import annotations

import importlib
import json
import random
import sys
import time
from typing import Any

import numpy as np

ARMS, CONTEXT, OWN, GAPS, SHARE = 8, 15, 12, 5, 0.1
ROUNDS, COLD = 6_000, 500


def rounds(n: int) -> tuple[Any, Any]:
    """Return rows, (n, 8, 27), with NaN where an entry is missing, and rewards, (n, 8)."""
    rng = np.random.default_rng(1)
    context = rng.standard_normal((n, CONTEXT)) @ rng.standard_normal((CONTEXT, CONTEXT))
    own = 3.0 + 2.0 * rng.standard_normal((n, ARMS, OWN))
    rows = np.concatenate([np.broadcast_to(context[:, None], (n, ARMS, CONTEXT)), own], axis=2)
    effects = rng.standard_normal((ARMS, CONTEXT + OWN)) / 5.0
    rewards = 1.0 + np.einsum("tad,ad->ta", rows, effects) + rng.standard_normal((n, ARMS))
    gone = rng.random((n, 1, GAPS)) < SHARE
    rows[:, :, :GAPS][np.broadcast_to(gone, (n, ARMS, GAPS))] = np.nan
    return rows, rewards


class Keyhole:
    """Keyhole, from arrays."""

    def __init__(self) -> None:
        kh = importlib.import_module("keyhole")
        self.bandit = kh.Bandit(self.learner(kh), arms=ARMS, dim=CONTEXT + OWN, seed=1)

    def learner(self, kh: Any) -> Any:
        """Return units, a constant and predictions around Thompson sampling."""
        options = {"intercept": True, "standardize": True, "missing": "predict"}
        return kh.Learner(kh.ThompsonSampling(), clip=None, **options)

    def prepare(self, rows: Any) -> list[Any]:
        """Return what is there before the time of each round."""
        return list(rows)

    def choose(self, given: Any) -> int:
        """Return the arm, after its probability was read."""
        self.decision = self.bandit.choose(given)
        self.probability = self.decision.probability
        return int(self.decision.arm)

    def learn(self, given: Any, arm: int, reward: float) -> None:  # noqa: ARG002
        """Learn the reward of the last choice."""
        self.bandit.learn(self.decision, reward)


class KeyholeRecords(Keyhole):
    """Keyhole, from records with names: a dict for the context and one for each arm."""

    def __init__(self) -> None:
        kh = importlib.import_module("keyhole")
        arms = kh.Features(numbers=[f"own {j}" for j in range(OWN)])
        fields = [f"context {j}" for j in range(CONTEXT)]
        features = kh.Features(numbers=fields, arms=arms, clip=None)
        records = {arm: dict.fromkeys(arms.fields) for arm in range(ARMS)}
        self.bandit = kh.Bandit(kh.Learner(kh.ThompsonSampling(), features), arms=records, seed=1)
        self.fields, self.own = fields, arms.fields

    def prepare(self, rows: Any) -> list[Any]:
        return [
            (
                {
                    name: value
                    for name, value in zip(self.fields, row[0, :CONTEXT].tolist(), strict=True)
                    if value == value
                },
                {
                    arm: dict(zip(self.own, row[arm, CONTEXT:].tolist(), strict=True))
                    for arm in range(ARMS)
                },
            )
            for row in rows
        ]

    def choose(self, given: Any) -> int:
        self.decision = self.bandit.choose(given[0], among=given[1])
        self.probability = self.decision.probability
        return int(self.decision.arm)


class VowpalWabbit:
    """SquareCB over linear models, from text; a missing field is left out."""

    def __init__(self) -> None:
        vw = importlib.import_module("vowpalwabbit")
        # Each arm's name with the context's and with its own columns: a parameter for each arm.
        options = "--cb_explore_adf --squarecb -q sa -q fa --noconstant --quiet"
        self.bandit, self.random = vw.Workspace(options), random.Random(1)

    def prepare(self, rows: Any) -> list[Any]:
        """Return the rows: text is made of them within the time, as from a record."""
        return list(rows)

    def text(self, row: Any) -> list[str]:
        """Return the lines of a round."""
        shared = "shared |s 0:1 " + " ".join(
            f"{j + 1}:{v:.6g}" for j, v in enumerate(row[0, :CONTEXT].tolist()) if v == v
        )
        return [shared, *(self.action(arm, row[arm, CONTEXT:].tolist()) for arm in range(ARMS))]

    def action(self, arm: int, own: list[float]) -> str:
        """Return the line of an arm."""
        return f"|a {arm} |f " + " ".join(f"{j}:{v:.6g}" for j, v in enumerate(own))

    def drawn(self, chances: list[float]) -> int:
        """Return an arm by its probability."""
        self.chances = chances
        return self.random.choices(range(ARMS), chances)[0]

    def choose(self, given: Any) -> int:
        self.lines = self.text(given)
        examples = self.bandit.parse(self.lines)
        chances = self.bandit.predict(examples)
        self.bandit.finish_example(examples)
        return self.drawn(chances)

    def learn(self, given: Any, arm: int, reward: float) -> None:  # noqa: ARG002
        # The line of the chosen arm is the only one with a cost, and enough.
        labelled = f"0:{-reward:.6g}:{self.chances[arm]:.6g} {self.lines[1 + arm]}"
        examples = self.bandit.parse([self.lines[0], labelled])
        self.bandit.learn(examples)
        self.bandit.finish_example(examples)


class VowpalWabbitParsed(VowpalWabbit):
    """The same with all rounds parsed before the time, but for the one line that has a cost."""

    def prepare(self, rows: Any) -> list[Any]:
        lines = [self.text(row) for row in rows]
        return [(self.bandit.parse(each), each) for each in lines]

    def choose(self, given: Any) -> int:
        return self.drawn(self.bandit.predict(given[0]))

    def learn(self, given: Any, arm: int, reward: float) -> None:
        examples, lines = given
        one = self.bandit.parse(f"0:{-reward:.6g}:{self.chances[arm]:.6g} {lines[1 + arm]}")
        pair = [examples[0], *one]
        self.bandit.learn(pair)
        self.bandit.finish_example(pair)


ADAPTERS: dict[str, Any] = {
    "keyhole": Keyhole,
    "keyhole-records": KeyholeRecords,
    "vowpalwabbit": VowpalWabbit,
    "vowpalwabbit-parsed": VowpalWabbitParsed,
}


def play(bandit: Any, given: list[Any], rewards: Any) -> float:
    """Return the seconds of one choice and one reward a round."""
    start = time.perf_counter()
    for one, row in zip(given, rewards, strict=True):
        arm = bandit.choose(one)
        bandit.learn(one, arm, float(row[arm]))
    return time.perf_counter() - start


def measure(name: str, seconds: float) -> dict[str, float]:
    """Return rounds per second at the start, and later: the best of pieces of 200 rounds."""
    rows, rewards = rounds(ROUNDS)
    start, cold, rates = time.perf_counter(), 0.0, [0.0]
    while cold == 0.0 or time.perf_counter() - start < seconds:
        bandit = ADAPTERS[name]()
        cold = max(cold, COLD / play(bandit, bandit.prepare(rows[:COLD]), rewards[:COLD]))
        for t in range(COLD, ROUNDS - 200, 200):
            piece = slice(t, t + 200)
            rates.append(200 / play(bandit, bandit.prepare(rows[piece]), rewards[piece]))
    return {"rate": max(rates), "cold": cold}


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], float(sys.argv[2]))))
