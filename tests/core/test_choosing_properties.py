"""Identities of choices: what is left out on the way, the order of arms, replays."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import keyhole as kh
from keyhole.core import Chosen, choice_streams, kernels

Array = NDArray[np.float64]
EPS = float(np.finfo(np.float64).eps)
seeds = st.integers(0, 2**32 - 1)
policies = st.one_of(
    st.sampled_from([1e-3, 1.0, 30.0]).map(lambda v: kh.ThompsonSampling(v=v)),
    st.just(kh.ThompsonSampling()),
    st.sampled_from([0.1, 2.0]).map(lambda alpha: kh.LinUCB(alpha=alpha)),
    st.just(kh.OFUL(r=0.6, c_eta=0.5, delta=0.1)),
    st.just(kh.Greedy()),
)


def learned(n_arms: int, dim: int, prior: float, scale: float, seed: int) -> kh.Posterior:
    """Return a posterior whose arms have learned from none to forty rewards, one by one.

    Features are of order `scale` and rewards of order 1. Width bounds are as old as the steps that
    an arm has made since it was last recomputed.
    """
    rng = np.random.default_rng(seed)
    posterior = kh.Posterior(n_parameters=n_arms, dim=dim, prior_precision=prior)
    eta = rng.standard_normal((n_arms, dim)) / scale
    for arm in range(n_arms):
        for y in scale * rng.standard_normal((int(rng.choice([0, 1, 5, 40])), dim)):
            posterior.learn(arm, y, float(y @ eta[arm] + 0.1 * rng.standard_normal()))
    return posterior


@settings(max_examples=60, deadline=None)
@given(
    policies, st.integers(1, 40), st.integers(1, 8), st.integers(-20, 20), st.integers(-3, 3),
    st.booleans(), seeds,
)  # fmt: skip
def test_arms_that_are_left_out_would_not_have_been_chosen(
    policy: kh.Policy,
    n_arms: int,
    dim: int,
    power: int,
    prior: int,
    one_context: bool,
    seed: int,
) -> None:
    """At any scale of features: the best of all scores computed in full, and to the bit the same
    with and without what a probability follows from.

    A score is a sum of d products of the mean, and v z |y| |P|^1/2: its two computations differ by
    less than 16 d eps of the sizes of both.
    """
    scale = 10.0**power
    posterior = learned(n_arms, dim, scale**2 * 10.0**prior, scale, seed)
    rng, rounds = np.random.default_rng([seed, 1]), 8
    y = scale * rng.standard_normal((rounds, 1 if one_context else n_arms, dim))
    z, uniforms = rng.standard_normal((rounds, n_arms)), rng.random((rounds, 2))
    arms = np.arange(n_arms)
    kept, bare = (
        kernels.Chooser(posterior.core, policy.plain_rule(), arms, keeps).choose_rounds(
            y, z, uniforms
        )
        for keeps in (True, False)
    )
    np.testing.assert_array_equal(kept[0], bare[0])
    np.testing.assert_array_equal(kept[1], bare[1])
    location, width = posterior.scores(policy.rule, arms, y[:, 0] if one_context else y)
    scores = location + width * z
    sizes = np.abs(y) @ np.abs(posterior.mean).T if one_context else np.abs(y * posterior.mean)
    size = float(sizes.sum(axis=2).max() if sizes.ndim == 3 else sizes.max())
    size += float(np.abs(location).max() + np.abs(width * z).max())
    near = 16 * dim * EPS * size
    np.testing.assert_allclose(bare[1], scores[np.arange(rounds), bare[0]], rtol=0, atol=near)
    assert (bare[1] >= scores.max(axis=1) - near).all()


@settings(max_examples=60, deadline=None)
@given(policies, st.integers(1, 12), st.integers(1, 6), st.booleans(), seeds)
def test_permuted_arms_have_permuted_choices_scores_and_probabilities(
    policy: kh.Policy, n_arms: int, dim: int, one_context: bool, seed: int
) -> None:
    """Scores are of order 10 at most and agree to 1e-12, widths to as much of theirs; the least
    width of 1e-4 makes 1e-7 of it in a probability."""
    rng = np.random.default_rng([seed, 2])
    order = rng.permutation(n_arms)
    one = learned(n_arms, dim, 1.0, 1.0, seed)
    other = one.copy()
    other.keep(order.tolist())
    y = rng.standard_normal((6, 1 if one_context else n_arms, dim))
    z, uniforms = rng.standard_normal((6, n_arms)), rng.random((6, 2))
    rule, arms = policy.plain_rule(), np.arange(n_arms)
    moved = y if one_context else y[:, order]
    a = kernels.Chooser(one.core, rule, arms, False).choose_rounds(y, z, uniforms)
    b = kernels.Chooser(other.core, rule, arms, False).choose_rounds(
        np.ascontiguousarray(moved), np.ascontiguousarray(z[:, order]), uniforms
    )
    np.testing.assert_allclose(a[1], b[1], rtol=1e-12, atol=1e-12)
    laws = one.scores(rule, arms, y[:, 0] if one_context else y)
    again = other.scores(rule, arms, moved[:, 0] if one_context else moved)
    for law, twin in zip(laws, again, strict=True):
        np.testing.assert_allclose(twin, law[:, order], rtol=1e-12, atol=1e-12)
    scores = np.sort(laws[0] + laws[1] * z, axis=1)
    for t in range(6):
        if n_arms == 1 or scores[t, -1] - scores[t, -2] > 1e-9:  # no tie
            assert order[b[0][t]] == a[0][t]
    if (laws[1] > 1e-4).all():
        np.testing.assert_allclose(
            kh.choice_probabilities(*again),
            kh.choice_probabilities(*laws)[:, order],
            rtol=0,
            atol=1e-7,
        )


OPTIONS = st.fixed_dictionaries(
    {
        "intercept": st.booleans(),
        "standardize": st.booleans(),
        "missing": st.sampled_from([None, "predict", "mean", "zero", "drop"]),
    }
)


def observed(rounds: int, dim: int, missing: object, seed: int) -> Array:
    rng = np.random.default_rng([seed, 3])
    y = 10.0 ** rng.uniform(-3, 3, dim) * (rng.standard_normal((rounds, dim)) + 2.0)
    return y if missing is None else np.where(rng.random(y.shape) < 0.2, np.nan, y)


def by_protocol(
    learner: kh.Learner, ys: Array, rewards: Array, draws: list[kh.Draws]
) -> tuple[list[Chosen], Any]:
    state, made = learner.start(rewards.shape[1], ys.shape[1]), []
    for y, reward, numbers in zip(ys, rewards, draws, strict=True):
        made.append(learner.choose(state, y, numbers))
        learner.learn(state, made[-1].arm, y, float(reward[made[-1].arm]))
    return made, state


@pytest.mark.filterwarnings("ignore::keyhole.KeyholeWarning")
@settings(max_examples=30, deadline=None)
@given(policies, OPTIONS, st.integers(1, 5), st.integers(1, 4), seeds)
def test_the_protocol_with_a_bandits_numbers_is_the_bandit(
    policy: kh.Policy, options: dict[str, Any], n_arms: int, dim: int, seed: int
) -> None:
    """The same arms and sums to the bit; replayed with the same draws, the same probabilities too.

    A bandit's probability may come from another rule of integration, and both are off by 6e-13.
    """
    learner, rounds = kh.Learner(policy, **options), 50
    ys = observed(rounds, dim, options["missing"], seed)
    rewards = np.random.default_rng([seed, 4]).standard_normal((rounds, n_arms))
    bandit = kh.Bandit(learner, arms=n_arms, dim=dim, seed=seed)
    decisions = []
    for y, reward in zip(ys, rewards, strict=True):
        decision = bandit.choose(y)
        decisions.append(decision)
        bandit.learn(decision, float(reward[decision.arm]))
    streams, draws = choice_streams(seed), []
    for _ in range(rounds):
        draws.append(kh.Draws(np.empty(n_arms), np.empty(2)))
        kernels.fill_normals(streams[0], draws[-1].normals)
        kernels.fill_uniforms(streams[1], draws[-1].uniforms)
    made, state = by_protocol(learner, ys, rewards, draws)
    assert [one.arm for one in made] == [one.arm for one in decisions]
    mine, its = (np.array([one.probability for one in run], float) for run in (made, decisions))
    assert np.isfinite(mine).all()
    np.testing.assert_allclose(mine, its, rtol=0, atol=1.2e-12)
    for one, other in zip(state.posterior.state, bandit.posterior.state, strict=True):
        np.testing.assert_array_equal(one, other)
    replayed, again = by_protocol(learner, ys, rewards, draws)
    assert replayed == made
    np.testing.assert_array_equal(again.posterior.mean, state.posterior.mean)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 5), seeds, st.integers(0, 6))
def test_draws_seed_a_generator_of_their_own(n_arms: int, seed: int, place: int) -> None:
    """Equal draws give equal numbers, and draws that differ in one bit of one number others."""
    rng = np.random.default_rng(seed)
    draws = kh.Draws(rng.standard_normal(n_arms), rng.random(2))
    twin = kh.Draws(draws.normals.copy(), draws.uniforms.copy())
    assert draws.generator().random(4).tolist() == twin.generator().random(4).tolist()
    numbers = np.concatenate([twin.normals, twin.uniforms])
    place %= numbers.size
    numbers[place] = np.nextafter(numbers[place], 2.0)
    other = kh.Draws(numbers[:n_arms], numbers[n_arms:])
    assert draws.generator().random(4).tolist() != other.generator().random(4).tolist()
