"""The kernels are plain Python too: run uncompiled, with every index checked, they do the same."""

import os
import subprocess
import sys

PLAY = """
import numpy as np
import keyhole as kh
from keyhole import kernels

for dim in (1, 2, 3, 4, 5, 7, 8, 43, 66):
    rng = np.random.default_rng(dim)
    y, rewards = rng.standard_normal((40, 3, dim)) * 30, rng.standard_normal((40, 3))
    for policy in (kh.ThompsonSampling(v=1.0), kh.ThompsonSampling(), kh.EpsilonGreedy(0.3)):
        posterior, chosen = kh.Posterior(n_parameters=3, dim=dim), np.empty(40, np.int64)
        block = kernels.Block(y, rewards, rng.standard_normal((40, 3)), rng.random((40, 2)))
        kernels.play(posterior.state, policy.rule, np.arange(3), block, True, chosen)
        posterior.refresh()
        print(dim, policy, chosen.tolist(), posterior.state.mean.round(6).tolist())
print(kh.choice_probabilities([0.0, 0.5, 0.5], [1.0, 0.0, 1e-3]).round(9))
"""


def output(disable: str) -> str:
    environment = {**os.environ, "NUMBA_DISABLE_JIT": disable}
    command = [sys.executable, "-W", "error", "-c", PLAY]
    return subprocess.check_output(command, text=True, env=environment)


def test_uncompiled_kernels_do_the_same() -> None:
    compiled = output("0")
    assert compiled.count("\n") == 28
    assert output("1") == compiled
