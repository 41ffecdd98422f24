"""Every build does the same, and so do the same files as plain Python, with every index checked."""

import os
import subprocess
import sys

import pytest

from keyhole.core.kernels import builds

PLAY = """
import numpy as np
import keyhole as kh
from keyhole.core import kernels

def play(policy, rounds, arms, dim, contexts, keeps=False):
    rng = np.random.default_rng(dim)
    y, rewards = rng.standard_normal((rounds, contexts, dim)), rng.standard_normal((rounds, arms))
    posterior, chosen = kh.Posterior(n_parameters=arms, dim=dim), np.empty(rounds, np.int64)
    z, uniforms = rng.standard_normal((rounds, arms)), rng.random((rounds, 2))
    block = kernels.Block(y * 30, rewards, z, uniforms)
    chooser = kernels.Chooser(posterior.core, policy.plain_rule(), np.arange(arms), keeps)
    kernels.play(chooser, block, chosen)
    posterior.refresh()
    print(dim, policy, chosen.tolist(), posterior.state.mean[chosen].round(6).tolist())


def ask(policy, arms, dim):
    bandit, rng = kh.Bandit(policy, arms=arms, dim=dim, seed=3), np.random.default_rng(dim)
    for y in rng.standard_normal((30, dim)):
        decision = bandit.choose(y)
        bandit.learn(decision, float(y[0]))
        print(decision.arm, round(decision.score, 6), round(decision.probability, 9), end="; ")
    many = bandit.choose_many(rng.standard_normal((5, dim)))
    print([each.arm for each in many], many.probabilities.round(9).tolist())


for dim in (1, 2, 3, 4, 5, 7, 8, 43, 66):
    for policy in (kh.ThompsonSampling(v=1.0), kh.ThompsonSampling(), kh.EpsilonGreedy(0.3)):
        play(policy, 40, 3, dim, contexts=3)
for dim in (3, 6):
    play(kh.ThompsonSampling(v=1.0), 40, 9, dim, contexts=1)
    play(kh.ThompsonSampling(v=1.0), 4, 4100, dim, contexts=1)
    play(kh.ThompsonSampling(v=1.0), 40, 50, dim, contexts=1, keeps=True)
for policy in (kh.ThompsonSampling(), kh.OFUL(), kh.GreedyFirst(0.3, v=1.0, patience=9)):
    ask(policy, 7, 2)
    ask(policy, 3, 41)
print(kh.choice_probabilities([0.0, 0.5, 0.5], [1.0, 0.0, 1e-3]).round(9))
"""


# Tests that run on the Python files within half a minute: what a decision and its file rest on,
# and a simulation.
CORE = [
    "tests/online/test_bandit.py",
    "tests/online/test_keyed.py",
    "tests/service/test_rewards.py",
    "tests/service/http/test_deciding.py",
    "tests/core/test_choice.py::test_certain_scores",
    "tests/core/test_choice.py::test_three_arms_against_quadrature_in_30_digits",
    "tests/core/test_choice.py::test_two_arms_have_the_normal_formula",
    "tests/core/test_choosing.py::test_a_tie_between_some_arms_leaves_the_others_out",
    "tests/core/test_choosing.py::test_an_arm_of_which_nothing_is_known_any_more_is_not_chosen",
    "tests/core/test_choosing.py::test_an_arm_picked_by_the_coin_or_a_tie_learns_from_its_own_width",
    "tests/core/test_choosing.py::test_arms_that_know_the_same_are_tied_to_the_bit",
    "tests/core/test_choosing.py::test_arms_with_contexts_of_their_own_are_not_grouped",
    "tests/core/test_choosing.py::test_matrices_of_hopeless_arms_are_not_read",
    "tests/core/test_choosing.py::test_means_are_predicted_wherever_an_arm_is",
    "tests/core/test_choosing.py::test_the_most_promising_arm_is_read_first",
    "tests/core/test_choosing.py::test_the_tie_breaker_picks_by_its_share",
    "tests/core/test_core.py",
    "tests/core/test_drawing.py",
    "tests/core/test_exploring.py::test_it_explores_when_an_arm_starves",
    "tests/core/test_exploring.py::test_the_radius_by_hand",
    "tests/core/test_exploring.py::test_the_test_is_that_of_the_smallest_eigenvalue",
    "tests/core/test_standardizing.py::test_metres_and_millimetres_decide_alike",
    "tests/core/test_normals.py::test_streams_differ_and_are_repeated",
    "tests/core/test_posterior.py::test_a_batch_goes_to_the_right_parameters",
    "tests/core/test_posterior.py::test_a_scheduled_refresh_comes_after_so_many_steps",
    "tests/core/test_posterior.py::test_before_any_reward",
    "tests/core/test_posterior.py::test_it_is_ridge_regression",
    "tests/core/test_posterior.py::test_one_reward_by_hand",
    "tests/core/test_posterior.py::test_the_noise_scale_by_hand",
    "tests/core/test_posterior.py::test_what_is_not_a_precision_has_no_inverse",
    "tests/core/test_predicting.py",
    "tests/core/test_row_sums.py::test_a_posterior_of_sums_is_that_of_the_rows",
    "tests/core/test_row_sums.py::test_two_rows_by_hand",
    "tests/lab/test_simulate.py::test_a_plan_travels",
    "tests/lab/test_simulate.py::test_decisions_depend_on_nothing_hidden",
    "tests/lab/test_simulate.py::test_regrets_are_judged_wherever_the_best_arm_is",
    "tests/online/test_storage.py::test_a_file_brings_back_all_of_it",
    "tests/online/test_storage.py::test_a_file_says_what_wrote_it",
    "tests/core/test_textbook_replay.py::test_a_bandit_replays_the_textbook_online",
    "tests/core/test_textbook_replay.py::test_the_kernel_replays_the_textbook"
    "[ThompsonSampling(v='learned')-own context]",
    "tests/core/test_textbook_replay.py::test_the_kernel_replays_the_textbook"
    "[ThompsonSampling(v=0.7)-shared context]",
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
    assert uncompiled.count("\n") == 40
    assert output(build) == uncompiled


def test_the_core_of_the_suite_holds_uncompiled() -> None:
    command = [sys.executable, "-m", "pytest", "--quiet", "-p", "no:cacheprovider", *CORE]
    environment = {**os.environ, "KEYHOLE_BUILD": builds.UNCOMPILED}
    done = subprocess.run(command, text=True, env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout
