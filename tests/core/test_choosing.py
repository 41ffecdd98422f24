"""Scores are the textbook's, whatever is left out on the way, and ties are broken alike."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import keyhole as kh
from keyhole.core import kernels
from keyhole.core.kernels.core import LARGE
from tests.textbook import Textbook

Array = NDArray[np.float64]
# As in kernels.choosing, where it is a number of C.
REACH = 8.5


def owner_of(policy: kh.Policy, n_arms: int) -> NDArray[np.int64]:
    return np.zeros(n_arms, np.int64) if policy.sharing == "shared" else np.arange(n_arms)


def posterior_of(policy: kh.Policy, n_arms: int, dim: int) -> kh.Posterior:
    n = 1 if policy.sharing == "shared" else n_arms
    return kh.Posterior(n_parameters=n, dim=dim, prior_precision=policy.prior_precision)


def chooser_of(policy: kh.Policy, posterior: kh.Posterior, n_arms: int, keeps: bool) -> Any:
    rule = policy.plain_rule()
    return kernels.Chooser(posterior.core, rule, owner_of(policy, n_arms), keeps)


def play(
    policy: kh.Policy,
    *,
    n_arms: int,
    dim: int,
    rounds: int,
    seed: int,
    keeps: bool,
    one_context: bool = False,
) -> tuple[np.ndarray, kh.Posterior]:
    rng = np.random.default_rng(seed)
    spread = 10.0 ** rng.uniform(-2, 2, dim)
    y = rng.standard_normal((rounds, 1 if one_context else n_arms, dim)) * spread
    eta = rng.standard_normal((n_arms, dim)) / spread
    rewards = (y * eta).sum(2) + rng.standard_normal((rounds, n_arms))
    posterior, chosen = posterior_of(policy, n_arms, dim), np.empty(rounds, np.int64)
    z, uniforms = rng.standard_normal((rounds, n_arms)), rng.random((rounds, 2))
    block = kernels.Block(y, rewards, z, uniforms)
    kernels.play(chooser_of(policy, posterior, n_arms, keeps), block, chosen)
    return chosen, posterior


policies = st.one_of(
    st.floats(0, 10).map(lambda v: kh.ThompsonSampling(v=v)),
    st.just(kh.ThompsonSampling(v="learned", prior_precision=0.3)),
    st.just(kh.ThompsonSampling(v="learned", sharing="shared")),
    st.floats(0, 10).map(lambda alpha: kh.LinUCB(alpha=alpha)),
    st.just(kh.OFUL(r=0.6, c_eta=0.5, delta=0.1)),
    st.just(kh.GreedyFirst(lambda_0=0.3, v=0.7, patience=20)),
    st.just(kh.EpsilonGreedy(epsilon=0.3)),
    st.just(kh.Greedy(sharing="shared")),
)


@settings(max_examples=60, deadline=None)
@given(policies, st.integers(1, 30), st.integers(1, 12), st.integers(0, 10_000), st.booleans())
def test_with_and_without_a_law_the_same_arms_are_chosen(
    policy: kh.Policy, n_arms: int, dim: int, seed: int, one_context: bool
) -> None:
    """To the bit: both go through one compiled score, whose bound holds after rounding too."""
    (chosen, posterior), (again, other) = (
        play(
            policy,
            n_arms=n_arms,
            dim=dim,
            rounds=200,
            seed=seed,
            keeps=keeps,
            one_context=one_context,
        )
        for keeps in (True, False)
    )
    np.testing.assert_array_equal(chosen, again)
    np.testing.assert_array_equal(posterior.covariance, other.covariance)


# -- against all arms written out -----------------------------------------------------------------


def textbook_law(policy: kh.Policy, posterior: kh.Posterior, y: Array) -> tuple[Array, Array]:
    """Location and scale of the score of every arm, y: (n_arms, dim), from the sums alone."""
    book = Textbook(policy, len(y), posterior.dim)
    book.B, book.b = list(posterior.precision), list(posterior.moment)
    book.n, book.squares = posterior.count.tolist(), posterior.squares.tolist()
    book.weight = posterior.weight.tolist()
    along = np.empty_like(y)
    for arm, row in enumerate(y):
        root = np.linalg.cholesky(np.linalg.inv(book.B[book.parameter(arm)]))
        along[arm] = root.T @ row / np.linalg.norm(root.T @ row)
    location, _ = book.scores(y, np.zeros_like(y))
    above, _ = book.scores(y, along)  # where every scalar normal is 1
    return location, above - location


tame_policies = st.one_of(
    st.sampled_from([0.0, 1e-3, 0.1, 1.0, 10.0]).map(lambda v: kh.ThompsonSampling(v=v)),
    st.just(kh.ThompsonSampling(v="learned", prior_precision=0.3)),
    st.just(kh.ThompsonSampling(v="learned", sharing="shared")),
    st.just(kh.LinUCB(alpha=0.7)),
    st.just(kh.OFUL(r=0.6, c_eta=0.5, delta=0.1)),
    st.just(kh.GreedyFirst(lambda_0=0.3, v=0.7, patience=20)),
    st.just(kh.GreedyFirst(lambda_0=1e9, v=0.7, patience=0)),
    st.just(kh.EpsilonGreedy(epsilon=0.3)),
    st.just(kh.Greedy(sharing="shared")),
)


@settings(max_examples=100, deadline=None)
@given(
    policy=tame_policies,
    n_arms=st.integers(1, 30),
    dim=st.integers(1, 8),
    seed=st.integers(0, 10_000),
    one_context=st.booleans(),
    share=st.sampled_from([0.0, 0.2, 0.6, 1.0]),
    rewards_each=st.sampled_from([1, 5, 60]),
)
def test_scores_and_laws_are_those_of_all_arms_written_out(
    policy: kh.Policy,
    n_arms: int,
    dim: int,
    seed: int,
    one_context: bool,
    share: float,
    rewards_each: int,
) -> None:
    """Whatever share of the arms has rewards, and however well those are known.

    Numbers are of order one, and B is conditioned well: 1e-9 is far above their rounding. A chance
    moves by as much as a location does in standard deviations, of which the least is 1e-4.
    """
    rng = np.random.default_rng(seed)
    posterior, parameter_of = posterior_of(policy, n_arms, dim), owner_of(policy, n_arms)
    eta = 2.0 * rng.standard_normal((n_arms, dim))
    for arm in np.flatnonzero(rng.random(n_arms) < share):
        rows = rng.standard_normal((rewards_each, dim))
        rewards = rows @ eta[arm] + 0.1 * rng.standard_normal(rewards_each)
        posterior.learn_many(np.full(rewards_each, parameter_of[arm]), rows, rewards)
    rounds = 12
    y = rng.standard_normal((rounds, 1 if one_context else n_arms, dim))
    z, uniforms = rng.standard_normal((rounds, n_arms)), rng.random((rounds, 2))
    kept = chooser_of(policy, posterior, n_arms, True).choose_rounds(y, z, uniforms)
    chosen, scores, location, scale = kept
    bare = chooser_of(policy, posterior, n_arms, False).choose_rounds(y, z, uniforms)
    np.testing.assert_array_equal(chosen, bare[0])
    np.testing.assert_array_equal(scores, bare[1])
    assert bare[2].shape == bare[3].shape == (0, n_arms)

    epsilon = policy.rule.epsilon
    for t in range(rounds):
        seen = np.broadcast_to(y[t], (n_arms, dim))
        m, s = textbook_law(policy, posterior, seen)
        written_out, picked = m + s * z[t], uniforms[t, 0] < epsilon
        np.testing.assert_allclose(scores[t], written_out[chosen[t]], atol=1e-9)
        if picked:
            assert chosen[t] == int(uniforms[t, 0] / epsilon * n_arms)
        else:
            assert written_out[chosen[t]] >= written_out.max() - 1e-9
        # What was left out has an arm that is out of its reach, and is given as certainly below it.
        for k in np.flatnonzero(np.abs(location[t] - m) + np.abs(scale[t] - s) > 1e-9):
            assert (m - m[k] - REACH * np.hypot(s, s[k])).max() > -1e-9
            assert (m - location[t, k] - REACH * s).max() > -1e-9
            assert scale[t, k] == 0.0
    whole = posterior.scores(policy.rule, parameter_of, y[:, 0] if one_context else y)
    np.testing.assert_allclose(
        kh.choice_probabilities(location, scale), kh.choice_probabilities(*whole), atol=1e-9
    )


@pytest.mark.parametrize("keeps", [True, False])
@pytest.mark.parametrize("dim", [1, 2, 3, 4, 5, 7, 8, 9, 16, 21])
@pytest.mark.parametrize("n_arms", range(1, 10))
def test_means_are_predicted_wherever_an_arm_is(n_arms: int, dim: int, keeps: bool) -> None:
    """Four arms at a time, at every way their number and the dimension can be odd."""
    rng = np.random.default_rng([n_arms, dim])
    posterior = kh.Posterior(n_parameters=n_arms, dim=dim)
    posterior.learn_many(
        np.arange(n_arms), rng.standard_normal((n_arms, dim)), rng.standard_normal(n_arms)
    )
    chooser = chooser_of(kh.Greedy(), posterior, n_arms, keeps)
    for rows in (1, n_arms):
        y = rng.standard_normal((20, rows, dim))
        numbers = rng.standard_normal((20, n_arms)), rng.random((20, 2))
        chosen, scores, location, _ = chooser.choose_rounds(y, *numbers)
        expected = (y * posterior.mean).sum(axis=2)
        np.testing.assert_array_equal(chosen, expected.argmax(axis=1))
        np.testing.assert_allclose(scores, expected.max(axis=1), atol=1e-13)
        if keeps:
            np.testing.assert_allclose(location, expected, atol=1e-13)


def test_no_rounds_are_no_choices() -> None:
    chooser = chooser_of(kh.Greedy(), kh.Posterior(n_parameters=3, dim=2), 3, True)
    made = chooser.choose_rounds(np.empty((0, 1, 2)), np.empty((0, 3)), np.empty((0, 2)))
    assert [array.shape for array in made] == [(0,), (0,), (0, 3), (0, 3)]


@pytest.mark.parametrize("dim", [3, 6, 20])
@pytest.mark.parametrize("n_arms", [5, 200])
def test_logged_and_pruned_bandits_are_the_same_to_the_bit(n_arms: int, dim: int) -> None:
    """Round after round, when some arms are known well and most not at all."""
    rng = np.random.default_rng(dim)
    logged, pruned = (
        kh.Bandit(kh.ThompsonSampling(), arms=n_arms, dim=dim, seed=1, probabilities=probabilities)
        for probabilities in (True, False)
    )
    for y in rng.standard_normal((300, dim)):
        one, other = logged.choose(y), pruned.choose(y)
        assert (one.arm, one.score) == (other.arm, other.score)
        for bandit, decision in ((logged, one), (pruned, other)):
            bandit.learn(decision, float(y[0]) - (one.arm != 1))
    assert logged.counts == pruned.counts


@pytest.mark.parametrize("scale", [0.0, 1e-320, 1e-163, 1e-100, 1e-40, 1e40])
def test_hardly_anything_and_very_much(scale: float) -> None:
    """Squares that underflow rule nobody out."""
    n = 45
    logged, pruned = (
        kh.Bandit(kh.LinUCB(alpha=50.0), arms=n, dim=2, seed=1, probabilities=probabilities)
        for probabilities in (True, False)
    )
    for bandit in (logged, pruned):
        decisions = [kh.Decision(arm=arm, observation=[1.0, 1.0]) for arm in range(n)]
        bandit.learn_many(decisions, np.linspace(1e9, 1e10, n))
    for y in scale * np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 0.5]]):
        assert logged.choose(y).arm == pruned.choose(y).arm


# -- what is not read -----------------------------------------------------------------------------


def known_first(policy: kh.Policy, n_arms: int, dim: int, known: int) -> kh.Posterior:
    """A posterior whose first arms have a few rewards each, and whose others have none."""
    rng = np.random.default_rng(dim)
    posterior = posterior_of(policy, n_arms, dim)
    posterior.learn_many(
        np.repeat(np.arange(known), 5),
        rng.standard_normal((5 * known, dim)),
        3.0 * rng.standard_normal(5 * known),
    )
    return posterior


EXPLORING = [
    kh.ThompsonSampling(v=1.0),
    kh.ThompsonSampling(v=0.01),
    kh.ThompsonSampling(),
    kh.LinUCB(alpha=1.0),
    kh.EpsilonGreedy(epsilon=0.5),
]


@pytest.mark.parametrize("keeps", [True, False])
@pytest.mark.parametrize("rows", [1, 43], ids=["one context", "own contexts"])
@pytest.mark.parametrize("dim", [2, 3, LARGE])
@pytest.mark.parametrize("policy", EXPLORING, ids=str)
def test_arms_without_rewards_are_not_read(
    policy: kh.Policy, dim: int, rows: int, keeps: bool
) -> None:
    """NaN in their matrices changes nothing, and in one context neither does NaN in their means.

    Means are read four at a time: no poisoned one is among four of which another has rewards.
    """
    n, known = 43, 4
    rng, found = np.random.default_rng(7), []
    y = rng.standard_normal((200, rows, dim))
    z, uniforms = rng.standard_normal((200, n)), rng.random((200, 2))
    for poisoned in (False, True):
        posterior = known_first(policy, n, dim, known)
        state = posterior.state  # which no step waits for then, poisoned or not
        if poisoned:
            state.matrices[known:] = state.moment[known:] = np.nan
            state.mean[known:] = np.nan if rows == 1 else 0.0
        found.append(chooser_of(policy, posterior, n, keeps).choose_rounds(y, z, uniforms))
    for clean, other in zip(*found, strict=True):
        np.testing.assert_array_equal(clean, other)
        assert np.isfinite(other).all()
    assert (found[0][0] < known).any()
    assert (found[0][0] >= known).any()


def test_arms_with_rewards_are_read() -> None:
    """The negative control: of those that have a reward, NaN shows."""
    policy = kh.ThompsonSampling(v=1.0)
    posterior = known_first(policy, 8, 3, 4)
    posterior.state.covariance[2][np.tril_indices(3)] = np.nan
    chooser = chooser_of(policy, posterior, 8, True)
    made = chooser.choose_rounds(np.ones((1, 1, 3)), np.zeros((1, 8)), np.full((1, 2), 0.5))
    assert np.isnan(made[3][0]).tolist() == [False, False, True] + [False] * 5
    assert np.isnan(posterior.predict(np.arange(8), np.ones((1, 3)))[1][0, 2])


@pytest.mark.parametrize("keeps", [True, False])
def test_matrices_of_hopeless_arms_are_not_read(keeps: bool) -> None:
    """Behind the bound there is a real saving; with a score_params, of arms that are out of reach.

    200 rewards at y = (1, 0) leave a width of 201^-1/2 = 0.07, of which the kept bound says 1, as
    the other direction is unknown. Means are 4.98 apart, and the difference of two scores of
    dispersion v has a standard deviation of v at most: with v = 0.1 that is out of reach, with
    v = 1 only these normals tell them apart.
    """
    y = np.array([[[1.0, 0.0]]])
    for v, is_read in ((0.1, False), (1.0, True)):
        posterior, policy = kh.Posterior(n_parameters=3, dim=2), kh.ThompsonSampling(v=v)
        for arm, reward in enumerate((5.0, 0.0, -5.0)):
            posterior.learn_many(np.full(200, arm), np.tile(y[0], (200, 1)), np.full(200, reward))
        posterior.state.covariance[1:, *np.tril_indices(2)] = np.nan
        chooser = chooser_of(policy, posterior, 3, keeps)
        z = np.array([[0.5, 1.0, 1.0]])
        chosen, _, _, scale = chooser.choose_rounds(y, z, np.full((1, 2), 0.5))
        assert chosen[0] == 0
        if keeps:
            assert np.isnan(scale[0]).any() == is_read
            assert scale[0, 0] == pytest.approx(v / np.sqrt(201.0))
        # The negative control: with other normals, an arm that might win is read, and is NaN.
        z = np.array([[0.5, 500.0, 1.0]])
        found = chooser.choose_rounds(y, z, np.full((1, 2), 0.5))
        assert not keeps or np.isnan(found[3][0, 1])


@pytest.mark.parametrize(("mean", "counts"), [(3.0, True), (8.0, False)])
def test_reach_is_that_of_a_difference(mean: float, counts: bool) -> None:
    """One reward leaves a width of 2^-1/2, and 9,999 one of 0.01, in one dimension.

    Means apart by 3 are 4.2 standard deviations of the first apart, and the second arm, narrow as
    it is, wins with probability 1e-5; those apart by 8 are 11.
    """
    posterior, policy = kh.Posterior(n_parameters=2, dim=1), kh.ThompsonSampling(v=1.0)
    posterior.learn(0, np.ones(1), 2.0 * mean)
    posterior.learn_many(np.ones(9999, np.int64), np.ones((9999, 1)), np.zeros(9999))
    chooser = chooser_of(policy, posterior, 2, True)
    made = chooser.choose_rounds(np.ones((1, 1, 1)), np.zeros((1, 2)), np.full((1, 2), 0.5))
    assert made[0][0] == 0
    np.testing.assert_allclose(made[2], [[mean, 0.0]], atol=1e-12)
    np.testing.assert_allclose(made[3], [[np.sqrt(0.5), 0.01 if counts else 0.0]], rtol=1e-9)


@pytest.mark.parametrize("n_arms", range(1, 18))
def test_the_most_promising_arm_is_read_first(n_arms: int) -> None:
    """Wherever it is: its score puts all others out of reach, and their widths are not computed."""
    for best in range(n_arms):
        posterior = kh.Posterior(n_parameters=n_arms, dim=2)
        rewards = np.where(np.arange(n_arms) == best, 100.0, -100.0)
        posterior.learn_many(np.arange(n_arms), np.ones((n_arms, 2)), rewards)
        chooser = chooser_of(kh.ThompsonSampling(v=1.0), posterior, n_arms, True)
        numbers = np.zeros((1, n_arms)), np.full((1, 2), 0.5)
        chosen, _, _, scale = chooser.choose_rounds(np.ones((1, 1, 2)), *numbers)
        assert chosen[0] == best
        assert np.flatnonzero(scale[0]).tolist() == [best]


@pytest.mark.parametrize("keeps", [True, False])
@pytest.mark.parametrize("n_arms", range(2, 10))
def test_an_arm_of_which_nothing_is_known_any_more_is_not_chosen(n_arms: int, keeps: bool) -> None:
    """A mean of NaN, wherever it is: the best of the others wins."""
    rng = np.random.default_rng(n_arms)
    y = rng.standard_normal((20, 1, 3))
    z, uniforms = rng.standard_normal((20, n_arms)), rng.random((20, 2))
    for policy in (kh.Greedy(), kh.ThompsonSampling(v=1.0), kh.ThompsonSampling()):
        for lost in range(n_arms):
            posterior = known_first(policy, n_arms, 3, n_arms)
            location, scale = posterior.scores(policy.rule, np.arange(n_arms), y[:, 0])
            expected = location + scale * z
            expected[:, lost] = -np.inf
            posterior.state.mean[lost] = np.nan
            chooser = chooser_of(policy, posterior, n_arms, keeps)
            chosen, scores, _, _ = chooser.choose_rounds(y, z, uniforms)
            np.testing.assert_array_equal(chosen, expected.argmax(axis=1))
            np.testing.assert_allclose(scores, expected.max(axis=1), atol=1e-12)
        posterior.state.mean[:] = np.nan
        chosen, scores, _, _ = chooser.choose_rounds(y, z, uniforms)
        assert ((chosen >= 0) & (chosen < n_arms)).all()
        assert np.isnan(scores).all()


@pytest.mark.parametrize("keeps", [True, False])
def test_widths_know_what_large_matrices_have_yet_to_be_told(keeps: bool) -> None:
    """After 9 rewards that wait, an arm's width is 1 / sqrt(10): its z = 10 is less than a 5."""
    n, rounds = 5, 10
    y, z = np.zeros((rounds, 1, LARGE)), np.zeros((rounds, n))
    y[:, :, 0], z[:, 0], z[9, 1] = 1.0, 10.0, 5.0
    block = kernels.Block(y, np.zeros((rounds, n)), z, np.full((rounds, 2), 0.5))
    posterior, chosen = kh.Posterior(n_parameters=n, dim=LARGE), np.empty(rounds, np.int64)
    kernels.play(chooser_of(kh.ThompsonSampling(v=1.0), posterior, n, keeps), block, chosen)
    assert chosen.tolist() == [0] * 9 + [1]


# -- locations and scales with their counts -------------------------------------------------------


@pytest.mark.parametrize("known", [0, 1, 4, 6])
@pytest.mark.parametrize("n_arms", [6, 7, 40, 300])
@pytest.mark.parametrize("policy", EXPLORING, ids=str)
def test_a_law_with_counts_gives_the_chances_of_all_arms(
    policy: kh.Policy, n_arms: int, known: int
) -> None:
    """Arms without rewards are one column of it, however many; those out of reach are none.

    Chances are exact to 1e-12. A mean's rounding counts in standard deviations, which are 1e-3 and
    more.
    """
    rng = np.random.default_rng(n_arms)
    bandit = kh.Bandit(policy, arms=n_arms, dim=3, seed=4)
    for arm in range(known):
        for y in rng.standard_normal((5, 3)):
            bandit.learn(kh.Decision(arm=arm, observation=y), float(3.0 * rng.standard_normal()))
    parameter_of, posterior = np.arange(n_arms), bandit.posterior
    for y in rng.standard_normal((40, 3)):
        decision = bandit.choose(y)
        location, scale = posterior.scores(policy.rule, parameter_of, y[None])
        chances = kh.choice_probabilities(location[0], scale[0])
        score_params, arm = decision._score_params, int(decision.arm)
        assert score_params.shape[1] <= known + 1
        assert score_params[2].sum() <= n_arms
        np.testing.assert_allclose(
            score_params[:2, decision._column], [location[0, arm], scale[0, arm]]
        )
        each = [kernels.chance_of(*score_params, column) for column in range(score_params.shape[1])]
        assert score_params[2] @ each == pytest.approx(1.0, abs=1e-11)
        assert each[decision._column] == pytest.approx(chances[arm], abs=1e-11)
        expected = kh.choice_probabilities(location[0], scale[0], epsilon=policy.rule.epsilon)
        assert decision.probability == pytest.approx(expected[arm], abs=1e-11)
        # The column of arms without rewards stands for all of them, if it can win at all.
        if known < n_arms and chances[known:].sum() > 1e-15:
            alike = np.isclose(score_params[:2].T, [location[0, -1], scale[0, -1]], rtol=1e-14)
            column = np.flatnonzero(alike.all(axis=1))
            assert score_params[2, column].tolist() == [n_arms - known]
            assert each[column[0]] == pytest.approx(chances[-1], abs=1e-11)


def test_arms_with_contexts_of_their_own_are_not_grouped() -> None:
    """Without rewards they share P, and nothing else: their widths are |y|."""
    bandit, y = kh.Bandit(kh.ThompsonSampling(v=1.0), arms=5, dim=1, seed=4), np.arange(1.0, 6.0)
    for _ in range(20):
        decision = bandit.choose(y[:, None])
        assert decision._score_params.tolist() == [[0.0] * 5, y.tolist(), [1.0] * 5]
        expected = kh.choice_probabilities(np.zeros(5), y)[int(decision.arm)]
        assert decision.probability == pytest.approx(expected, abs=1e-12)


def test_very_many_arms_without_rewards_have_equal_chances() -> None:
    """One column of 100,000, of which each is chosen with probability 1e-5."""
    bandit = kh.Bandit(kh.ThompsonSampling(v=1.0), arms=100_000, dim=1, seed=4)
    decision = bandit.choose([2.0])
    assert decision._score_params.tolist() == [[0.0], [2.0], [100_000.0]]
    assert decision.probability == pytest.approx(1e-5, rel=1e-12)


# -- ties -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [kh.Greedy(), kh.ThompsonSampling(v=1.0), kh.LinUCB(alpha=1.0)])
def test_ties_are_broken_uniformly(policy: kh.Policy) -> None:
    """At y = 0 every score is zero: each of 4 arms comes up with probability 1/4, and says so."""
    bandit = kh.Bandit(policy, arms=4, dim=2, seed=3)
    rounds = 4000
    wins = np.zeros(4)
    for _ in range(rounds):
        decision = bandit.choose(np.zeros(2))
        wins[int(decision.arm)] += 1
    assert decision.probability == pytest.approx(0.25, abs=1e-15)
    error = np.sqrt(0.25 * 0.75 / rounds)
    assert (np.abs(wins / rounds - 0.25) <= 4 * error).all()


@pytest.mark.parametrize("keeps", [True, False])
@pytest.mark.parametrize("policy", [kh.Greedy(), kh.LinUCB(alpha=0.5)], ids=str)
def test_the_tie_breaker_picks_by_its_share(policy: kh.Policy, keeps: bool) -> None:
    """Of m tied arms the j-th has the uniform numbers from j/m to (j + 1)/m, wherever it is."""
    n, rng = 11, np.random.default_rng(2)
    for _ in range(30):
        tied = np.flatnonzero(rng.random(n) < 0.4)
        if tied.size == 0:
            continue
        posterior = kh.Posterior(n_parameters=n, dim=2)
        rewards = np.where(np.isin(np.arange(n), tied), 2.0, -rng.random(n))
        posterior.learn_many(np.arange(n), np.ones((n, 2)), rewards)
        ties = (np.arange(3 * tied.size) + 0.5) / (3 * tied.size)
        y, uniforms = np.ones((ties.size, 1, 2)), np.stack([np.full(ties.size, 0.5), ties], axis=1)
        chooser = chooser_of(policy, posterior, n, keeps)
        chosen = chooser.choose_rounds(y, np.zeros((ties.size, n)), uniforms)[0]
        np.testing.assert_array_equal(chosen, np.repeat(tied, 3))


@pytest.mark.parametrize("probabilities", [True, False])
@pytest.mark.parametrize("dim", [1, 3, 4, 6, 21])
@pytest.mark.parametrize("n_arms", [2, 5, 7])
def test_arms_that_know_the_same_are_tied_to_the_bit(
    n_arms: int, dim: int, probabilities: bool
) -> None:
    """Wherever they are among the four that are predicted at a time."""
    rng = np.random.default_rng(dim)
    bandit = kh.Bandit(kh.Greedy(), arms=n_arms, dim=dim, seed=3, probabilities=probabilities)
    for y in rng.standard_normal((5, dim)):
        for arm in range(n_arms):
            bandit.learn(kh.Decision(arm=arm, observation=y), reward=float(y[0]))
    y = rng.standard_normal(dim)
    assert {bandit.choose(y).arm for _ in range(100)} == set(range(n_arms))


@pytest.mark.parametrize("policy", [kh.Greedy(), kh.LinUCB(alpha=0.5)], ids=str)
@pytest.mark.parametrize("dim", [1, 3, 4, 6, LARGE])
@pytest.mark.parametrize("rows", [1, 7], ids=["one context", "own contexts"])
def test_twins_are_tied_to_the_bit_by_every_rule(policy: kh.Policy, rows: int, dim: int) -> None:
    """In one context or in equal ones, and those without rewards, in one context, too."""
    rng = np.random.default_rng(dim)
    posterior, seen = kh.Posterior(n_parameters=7, dim=dim), rng.standard_normal((5, dim))
    for each in seen:
        for arm in (0, 2, 5):
            posterior.learn(arm, each, -4.0)
    y = np.repeat(seen.mean(axis=0)[None, None], rows, axis=1)
    ties = (np.arange(50) + 0.5) / 50
    numbers = np.zeros((50, 7)), np.stack([np.full(50, 0.5), ties], axis=1)
    for sign, best in ((-1.0, {0, 2, 5}), (1.0, {1, 3, 4, 6})):
        for keeps in (True, False):
            chooser = chooser_of(policy, posterior, 7, keeps)
            chosen = chooser.choose_rounds(np.repeat(sign * y, 50, axis=0), *numbers)[0]
            assert set(chosen.tolist()) == best


def test_a_tie_between_some_arms_leaves_the_others_out() -> None:
    bandit = kh.Bandit(kh.Greedy(), arms=["low", "a", "b"], dim=1, seed=3)
    bandit.learn(kh.Decision(arm="low", observation=[1.0]), reward=-1.0)
    chosen = [bandit.choose([1.0]).arm for _ in range(400)]
    assert "low" not in chosen
    assert abs(chosen.count("a") / 400 - 0.5) <= 4 * np.sqrt(0.25 / 400)
    assert bandit.choice_probabilities([1.0]) == {"low": 0.0, "a": 0.5, "b": 0.5}


@pytest.mark.parametrize("keeps", [True, False])
@pytest.mark.parametrize("one_context", [True, False])
def test_an_arm_picked_by_the_coin_or_a_tie_learns_from_its_own_width(
    one_context: bool, keeps: bool
) -> None:
    """With a coin and a dispersion, the P y kept for the best arm is not the picked one's.

    What the schedule of refreshes allows: d eps 1e7 times the condition of the scaled B.
    """

    class Both(kh.Policy):
        @property
        def rule(self) -> kh.Rule:
            return kh.Rule(dispersion=1.0, epsilon=0.5)

    _, posterior = play(
        Both(), n_arms=4, dim=5, rounds=300, seed=1, keeps=keeps, one_context=one_context
    )
    for precision, covariance in zip(posterior.precision, posterior.covariance, strict=True):
        scale = np.sqrt(np.diag(covariance))
        error = np.abs(covariance - np.linalg.inv(precision)) / np.outer(scale, scale)
        spread = np.sqrt(np.diag(precision))
        condition = np.linalg.cond(precision / np.outer(spread, spread))
        assert error.max() <= 5 * np.finfo(float).eps * 1e7 * condition
