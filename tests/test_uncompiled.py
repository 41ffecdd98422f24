"""Every build does the same, and so do the same files as plain Python, with every index checked."""

import os
import subprocess
import sys

import pytest

from keyhole.kernels import builds

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


# Tests that run on the Python files within half a minute: what a decision and its file rest on.
CORE = [
    "tests/test_bandit.py::test_choosing_many_is_choosing_each_from_the_same_posterior",
    "tests/test_bandit.py::test_learning_many_is_learning_each",
    "tests/test_bandit.py::test_rewards_may_come_late_and_in_any_order",
    "tests/test_choice.py::test_certain_scores",
    "tests/test_choice.py::test_three_arms_against_quadrature_in_30_digits",
    "tests/test_choice.py::test_two_arms_have_the_normal_formula",
    "tests/test_choosing.py::test_a_tie_between_some_arms_leaves_the_others_out",
    "tests/test_posterior.py::test_a_batch_goes_to_the_right_parameters",
    "tests/test_posterior.py::test_before_any_reward",
    "tests/test_posterior.py::test_one_reward_by_hand",
    "tests/test_posterior.py::test_the_noise_scale_by_hand",
    "tests/test_storage.py::test_a_file_brings_back_all_of_it",
    "tests/test_storage.py::test_a_file_says_what_wrote_it",
    "tests/test_textbook_replay.py::test_a_bandit_replays_the_textbook_online",
    "tests/test_textbook_replay.py::test_a_wrong_textbook_is_noticed",
]


def output(build: str) -> str:
    environment = {**os.environ, "KEYHOLE_BUILD": build}
    command = [sys.executable, "-W", "error", "-c", PLAY]
    return subprocess.check_output(command, text=True, env=environment)


@pytest.fixture(scope="module")
def uncompiled() -> str:
    return output(builds.UNCOMPILED)


@pytest.mark.parametrize("build", builds.usable())
def test_builds_agree(build: str, uncompiled: str) -> None:
    assert uncompiled.count("\n") == 32
    assert output(build) == uncompiled


def test_the_core_of_the_suite_holds_uncompiled() -> None:
    command = [sys.executable, "-m", "pytest", "--quiet", "-p", "no:cacheprovider", *CORE]
    environment = {**os.environ, "KEYHOLE_BUILD": builds.UNCOMPILED}
    done = subprocess.run(command, text=True, env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout
