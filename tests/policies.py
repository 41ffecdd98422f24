"""One of every policy, for the tests that run over all of them."""

from typing import Any

import keyhole as kh

KINDS: list[tuple[type[kh.Policy], dict[str, Any]]] = [
    (kh.ThompsonSampling, {"v": 0.7}),
    (kh.ThompsonSampling, {"v": "learned"}),
    (kh.Greedy, {}),
    (kh.LinUCB, {"alpha": 0.8}),
    (kh.EpsilonGreedy, {"epsilon": 0.2}),
    (kh.Uniform, {}),
    (kh.OFUL, {"r": 0.6, "c_eta": 0.5, "delta": 0.1}),
    (kh.GreedyFirst, {"lambda_0": 0.3, "v": 0.7, "patience": 20}),
    (kh.GreedyFirst, {"lambda_0": 1.5, "v": "learned"}),
    (kh.WeightedThompsonSampling, {"epsilon": 0.2, "decay": 0.0, "v": 0.7}),
    (kh.WeightedThompsonSampling, {"v": "learned"}),
]


def every_policy(**settings: Any) -> list[kh.Policy]:
    return [
        kind(**own, sharing=sharing, **settings)
        for kind, own in KINDS
        for sharing in ("per-arm", "shared")
    ]
