"""The kernels are plain Python too: run uncompiled, with every index checked, they do the same."""

import os
import subprocess
import sys

PLAY = """
import numpy as np
import keyhole as kh
from keyhole import kernels

def play(policy, rounds, arms, dim, contexts):
    rng = np.random.default_rng(dim)
    y, rewards = rng.standard_normal((rounds, contexts, dim)), rng.standard_normal((rounds, arms))
    posterior, chosen = kh.Posterior(n_parameters=arms, dim=dim), np.empty(rounds, np.int64)
    z, uniforms = rng.standard_normal((rounds, arms)), rng.random((rounds, 2))
    block = kernels.Block(y * 30, rewards, z, uniforms)
    kernels.play(posterior.state, policy.rule, np.arange(arms), block, True, chosen)
    posterior.refresh()
    print(dim, policy, chosen.tolist(), posterior.state.mean[chosen].round(6).tolist())


for dim in (1, 2, 3, 4, 5, 7, 8, 43, 66):
    for policy in (kh.ThompsonSampling(v=1.0), kh.ThompsonSampling(), kh.EpsilonGreedy(0.3)):
        play(policy, 40, 3, dim, contexts=3)
for dim in (3, 6):
    play(kh.ThompsonSampling(v=1.0), 40, 9, dim, contexts=1)
    play(kh.ThompsonSampling(v=1.0), 4, 4100, dim, contexts=1)
print(kh.choice_probabilities([0.0, 0.5, 0.5], [1.0, 0.0, 1e-3]).round(9))
"""


def output(disable: str) -> str:
    environment = {**os.environ, "NUMBA_DISABLE_JIT": disable}
    command = [sys.executable, "-W", "error", "-c", PLAY]
    return subprocess.check_output(command, text=True, env=environment)


def test_uncompiled_kernels_do_the_same() -> None:
    compiled = output("0")
    assert compiled.count("\n") == 32
    assert output("1") == compiled
