"""Learners: what is deployed is what is simulated, and anything with three functions plays."""

import copy
import itertools
import pickle
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

import keyhole as kh
from keyhole.core import POLICIES
from keyhole.lab.worlds import identity
from tests.policies import KINDS, every_policy
from tests.textbook import TextbookLearner

OPTIONS: list[dict[str, Any]] = [
    {"intercept": intercept, "standardize": standardize, "missing": missing}
    for intercept, standardize, missing in itertools.product(
        (False, True), (False, True), (None, "predict", "mean", "zero", "drop")
    )
]


def world_of(missing: str | None, *, shared: bool) -> kh.World:
    """Observer in units far apart and about 3, some of them hidden if that is allowed."""
    whole = kh.LinearWorld(
        sensing=np.diag([1.0, 30.0, 0.1]),
        coefficients=np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5], [0.5, 0.5, 0.0]]),
        reward_scale=0.5,
        shared_context=shared,
    )
    return kh.MissingWorld(whole, share=0.0 if missing is None else 0.2, centre=3.0)


def simulated_arms(world: kh.World, learner: Any, horizon: int, seed: int) -> list[int]:
    """The arm of every round of replication 2."""
    every = range(1, horizon + 1)
    runs = kh.simulate(
        world, learner, horizon=horizon, replications=3, seed=seed, checkpoints=every
    )
    pulls = runs.pulls.isel(policy=0).sel(replication=2)
    arms: list[int] = np.diff(pulls, axis=0, prepend=0).argmax(axis=1).tolist()
    return arms


def deployed_arms(world: kh.World, learner: Any, horizon: int, seed: int) -> list[int]:
    """The same rounds through a bandit with the seed of that replication."""
    own = np.random.SeedSequence(seed, spawn_key=(2,))
    rounds = world.sample(horizon, own)
    bandit, arms = kh.Bandit(learner, arms=world.n_arms, dim=world.dim, seed=own), []
    for y, rewards in zip(rounds.observations, rounds.rewards, strict=True):
        decision = bandit.choose(y)
        arms.append(int(decision.arm))
        bandit.learn(decision, float(rewards[decision.arm]))
    return arms


@pytest.mark.filterwarnings("ignore::keyhole.KeyholeWarning")
@pytest.mark.parametrize("shared", [True, False], ids=["one context", "own contexts"])
@pytest.mark.parametrize("options", OPTIONS, ids=lambda given: "-".join(map(str, given.values())))
def test_what_is_deployed_is_what_is_simulated(options: dict[str, Any], shared: bool) -> None:
    """The same arms, round by round, beyond the third time that units are looked at again."""
    learner = kh.Learner(kh.ThompsonSampling(), **options)
    world, horizon = world_of(options["missing"], shared=shared), 700
    simulated = simulated_arms(world, learner, horizon, seed=5)
    assert simulated == deployed_arms(world, learner, horizon, seed=5)
    assert len(set(simulated[-100:])) > 1


@pytest.mark.parametrize(
    "policy", [kh.Greedy(), kh.LinUCB(), kh.EpsilonGreedy(0.2), kh.ThompsonSampling(v=1.0)], ids=str
)
def test_bare_policies_are_simulated_as_they_are_deployed(policy: kh.Policy) -> None:
    world = world_of(None, shared=True)
    assert simulated_arms(world, policy, 300, 1) == deployed_arms(world, policy, 300, 1)


@pytest.mark.parametrize("options", [{}, {"intercept": True}], ids=["plain", "intercept"])
def test_large_dimensions_are_simulated_as_they_are_deployed(options: dict[str, Any]) -> None:
    """With updates that are pending at different times, were anything to apply them early."""
    world = kh.LinearWorld.random(n_arms=3, context_dim=50, dim=45, seed=2)
    learner = kh.Learner(kh.ThompsonSampling(), **options)
    assert simulated_arms(world, learner, 400, 5) == deployed_arms(world, learner, 400, 5)


def test_a_copy_of_a_bandit_learns_for_itself() -> None:
    bandit = kh.Bandit(FollowTheMean(), arms=2, dim=1, seed=1)
    twin = copy.copy(bandit)
    twin.learn(kh.Decision(arm=0, observation=[1.0]), 5.0)
    assert bandit._state.pulls.tolist() == [0.0, 0.0]  # type: ignore[attr-defined]


def test_own_bandits_know_columns_and_rows() -> None:
    class Greedy(FollowTheMean):
        def choose(self, state: Any, observation: Any, draws: kh.Draws) -> Any:
            observation *= 0.0  # which is the learner's own
            return super().choose(state, observation, draws)

    bandit = kh.Bandit(Greedy(), arms=2, dim=2, seed=1, probabilities=False)
    decision = bandit.choose(np.array([[1.0, 2.0], [3.0, 4.0]]))
    assert decision.observation.tolist() in ([1.0, 2.0], [3.0, 4.0])
    assert decision.probability is None
    assert bandit.choose([1.0, 2.0]).instead(1).observation.tolist() == [1.0, 2.0]
    bandit.choose(pd.Series({"a": 1.0, "b": 2.0}))
    with pytest.raises(kh.InvalidValue, match="columns"):
        bandit.choose(pd.Series({"b": 2.0, "a": 1.0}))
    with pytest.raises(kh.InvalidValue, match="no files"):
        type(bandit).load("x.npz")


def test_a_learner_refuses_what_it_cannot_use() -> None:
    learner = kh.Learner(kh.Greedy())
    state, draws = learner.start(np.int64(2), 2), kh.Draws(np.zeros(2), np.zeros(2))  # type: ignore[arg-type]
    for bad in ([np.nan, 1.0], [1.0], np.ones((3, 2))):
        with pytest.raises(kh.InvalidValue):
            learner.choose(state, bad, draws)  # type: ignore[arg-type]
    for arm, y, reward in ((-1, [1.0, 2.0], 1.0), (0, [np.nan, 2.0], 1.0), (0, [1.0, 2.0], np.nan)):
        with pytest.raises(kh.InvalidValue):
            learner.learn(state, arm, y, reward)  # type: ignore[arg-type]
    assert state.posterior.count.tolist() == [0, 0]


def test_learners_that_do_not_show_themselves_have_the_names_of_their_classes(
    tmp_path: Path,
) -> None:
    world = kh.LinearWorld.random(n_arms=2, context_dim=2, dim=2, seed=1)
    sizes: dict[str, Any] = {"horizon": 20, "replications": 2, "seed": 1, "resume": tmp_path}
    first = kh.simulate(world, FollowTheMean(), **sizes)
    again = kh.simulate(world, FollowTheMean(), **sizes)
    assert first.policy.values.tolist() == ["FollowTheMean"]
    assert first.identical(again)


@pytest.mark.parametrize("options", OPTIONS, ids=lambda given: "-".join(map(str, given.values())))
def test_the_protocol_of_a_learner_is_the_learner(options: dict[str, Any]) -> None:
    """By its three functions alone, in a plain loop, it chooses the same arms."""

    class Wrapped:
        def __init__(self, learner: kh.Learner) -> None:
            self.start, self.learn = learner.start, learner.learn
            self.choose = learner.choose

    learner = kh.Learner(kh.ThompsonSampling(), **options)
    world = world_of(options["missing"], shared=True)
    assert simulated_arms(world, Wrapped(learner), 300, 4) == simulated_arms(world, learner, 300, 4)


@pytest.mark.parametrize("shared", [True, False], ids=["one context", "own contexts"])
@pytest.mark.parametrize("policy", every_policy(), ids=str)
def test_simulations_are_those_of_the_textbook(policy: kh.Policy, shared: bool) -> None:
    """The textbook plays as a learner, in the same rounds, and does as the compiled one does."""
    world = world_of(None, shared=shared)
    both: dict[str, Any] = {"compiled": policy, "textbook": TextbookLearner(policy)}
    runs = kh.simulate(world, both, horizon=120, replications=2, seed=6, checkpoints=120)
    one, other = runs.sel(policy="compiled"), runs.sel(policy="textbook")
    np.testing.assert_array_equal(one.pulls, other.pulls)
    np.testing.assert_allclose(one.regret, other.regret, rtol=1e-12)
    np.testing.assert_allclose(one.error, other.error, rtol=1e-6)


def test_one_registry_has_every_policy() -> None:
    assert set(POLICIES.values()) == {kind for kind, _ in KINDS}
    assert all(getattr(kh, kind.__name__) is kind for kind in POLICIES.values())


class Counts(NamedTuple):
    """How often each arm was tried, and what it gave in all."""

    pulls: np.ndarray
    total: np.ndarray


class FollowTheMean:
    """The arm of the best mean reward, whatever is seen; one in ten at random."""

    def start(self, n_arms: int, dim: int) -> Counts:  # noqa: ARG002
        return Counts(np.zeros(n_arms), np.zeros(n_arms))

    def choose(self, state: Counts, observation: Any, draws: kh.Draws) -> kh.Chosen:  # noqa: ARG002
        n = len(state.pulls)
        means = np.where(state.pulls > 0, state.total / np.maximum(state.pulls, 1.0), np.inf)
        best = int(means.argmax())
        arm = int(draws.uniforms[1] * n) if draws.uniforms[0] < 0.1 else best
        return kh.Chosen(arm, 0.1 / n + 0.9 * (arm == best))

    def learn(self, state: Counts, arm: int, observation: Any, reward: float) -> None:  # noqa: ARG002
        state.pulls[arm] += 1.0
        state.total[arm] += reward


def test_a_learner_of_ones_own_is_simulated_and_deployed_alike() -> None:
    world = world_of(None, shared=True)
    assert isinstance(FollowTheMean(), kh.AnyLearner)
    simulated = simulated_arms(world, FollowTheMean(), 200, 3)
    assert simulated == deployed_arms(world, FollowTheMean(), 200, 3)
    runs = kh.simulate(
        world,
        {"mine": FollowTheMean(), "greedy": kh.Greedy()},
        horizon=50,
        replications=2,
        seed=1,
    )
    assert runs.pulls.isel(time=-1).sum("arm").values.tolist() == [[50, 50], [50, 50]]
    assert np.isnan(runs.error.sel(policy="mine")).all()
    assert np.isfinite(runs.error.sel(policy="greedy")).all()


def test_a_bandit_of_ones_own_learner() -> None:
    bandit = kh.Bandit(FollowTheMean(), arms=["A", "B"], dim=2, seed=1)
    assert isinstance(bandit, kh.Bandit)
    decision = bandit.choose([1.0, 2.0])
    assert 0.0 < (decision.probability or 0.0) <= 1.0
    bandit.learn(decision, 1.0)
    with pytest.raises(kh.AlreadyLearned):
        bandit.learn(decision, 1.0)
    assert sum(bandit.counts.values()) == 1
    assert "1 rewards learned" in repr(bandit)
    again = pickle.loads(pickle.dumps(bandit))
    twin = copy.copy(bandit)
    assert again.counts == twin.counts == bandit.counts
    with pytest.raises(kh.AlreadyLearned):
        again.learn(decision, 1.0)
    with pytest.raises(kh.UnknownArm):
        bandit.learn(kh.Decision(arm="C", observation=[1.0, 2.0]), 1.0)
    with pytest.raises(kh.InvalidValue, match="shape"):
        bandit.choose([1.0, 2.0, 3.0])
    for refused in ("posterior", "effects", "policy", "waiting"):
        with pytest.raises(kh.InvalidValue, match=f"{refused} needs a linear-Gaussian learner"):
            getattr(bandit, refused)
    for call in ("save", "merge", "choose_many", "learn_many", "choice_probabilities", "observe"):
        with pytest.raises(kh.InvalidValue, match=f"{call} needs"):
            getattr(bandit, call)()


@pytest.mark.parametrize("answer", [2, -1, 0.5, None, "A"])
def test_an_arm_that_there_is_not_is_refused(answer: Any) -> None:
    class Odd(FollowTheMean):
        def choose(self, *_: Any) -> Any:
            return answer

    world = kh.LinearWorld.random(n_arms=2, context_dim=2, dim=2, seed=1)
    with pytest.raises(kh.InvalidValue, match="must return an arm from 0 to 1"):
        kh.simulate(world, Odd(), horizon=5, replications=1, seed=1)
    with pytest.raises(kh.InvalidValue, match="must return an arm from 0 to 1"):
        kh.Bandit(Odd(), arms=2, dim=2, seed=1).choose([0.0, 0.0])


def test_a_learner_may_keep_what_it_is_handed() -> None:
    """The memory of a block is used again for the next one."""

    class Keeps(FollowTheMean):
        def start(self, n_arms: int, dim: int) -> Any:  # noqa: ARG002
            return []

        def choose(self, state: Any, observation: Any, draws: kh.Draws) -> Any:
            state.append((observation, draws.normals))
            return 0

        def learn(self, *_: Any) -> None:
            pass

    kept: list[Any] = []

    class Noted(Keeps):
        def start(self, n_arms: int, dim: int) -> Any:  # noqa: ARG002
            return kept

    world = kh.LinearWorld.random(n_arms=2, context_dim=2, dim=2, seed=1)
    kh.simulate(world, Noted(), horizon=9000, replications=1, seed=1, workers=1)
    expected = world.sample(9000, np.random.SeedSequence(1, spawn_key=(0,))).observations
    np.testing.assert_array_equal([one[0] for one in kept], expected)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"policy": "thompson"}, "a Policy such as"),
        ({"missing": "guess"}, "missing must be one of 'predict'"),
        ({"missing": np.array(["mean", "zero"])}, "missing must be one of"),
        ({"missing": np.array("mean")}, "missing must be one of"),
        ({"missing": ["mean"]}, "missing must be one of"),
        ({"intercept": 1}, "intercept"),
        ({"clip": 5.0}, "clip is in units of features"),
    ],
)
def test_settings_that_cannot_be_used(given: dict[str, Any], message: str) -> None:
    with pytest.raises(kh.InvalidValue, match=message):
        kh.Learner(**{"policy": kh.Greedy(), **given})


class Fixed(FollowTheMean):
    """One arm, whose number is a setting that it does not show."""

    def __init__(self, arm: int) -> None:
        self.arm = arm

    def choose(self, *_: Any) -> Any:
        return self.arm


class Scaled(kh.World):
    """Values that a setting multiplies."""

    n_arms, dim, noise_scale, eta = 2, 1, 1.0, np.ones((2, 1))

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def rounds(self, state: Any, n: int) -> kh.Rounds:
        y = state["context"].standard_normal((n, 2, 1))
        values = self.factor * y[:, :, 0]
        return kh.Rounds(observations=y, rewards=values, values=values, latent=values)


def test_a_folder_of_results_is_for_the_same_settings_only(tmp_path: Path) -> None:
    sizes: dict[str, Any] = {"horizon": 20, "replications": 2, "seed": 1}
    kh.simulate(Scaled(1.0), {"mine": Fixed(0)}, resume=tmp_path, **sizes)
    kh.simulate(Scaled(1.0), {"mine": Fixed(0)}, resume=tmp_path, **sizes)  # new objects, the same
    for world, learner in ((Scaled(2.0), Fixed(0)), (Scaled(1.0), Fixed(1))):
        with pytest.raises(kh.InvalidValue, match="another simulation"):
            kh.simulate(world, {"mine": learner}, resume=tmp_path, **sizes)


@pytest.mark.parametrize("probability", [2.0, -0.1, np.nan])
def test_a_probability_that_is_none_is_refused(probability: float) -> None:
    class Sure(FollowTheMean):
        def choose(self, *_: Any) -> Any:
            return kh.Chosen(0, probability)

    with pytest.raises(kh.InvalidValue, match="probability"):
        kh.simulate(Scaled(1.0), Sure(), horizon=5, replications=1, seed=1)


def test_classes_without_a_source_are_told_apart_by_their_code() -> None:
    """As those typed in at a prompt are: another body, another digest; the same one, the same."""
    made = []
    for body in ("0", "1", "0"):
        scope: dict[str, Any] = {"__name__": "prompt"}
        exec(f"class Typed:\n    def choose(self, *_):\n        return {body}\n", scope)
        made.append(identity(scope["Typed"]())["code"])
    assert made[0] == made[2] != made[1]


def test_a_sure_choice_has_a_probability_of_at_most_one() -> None:
    """Rounding took one of these 600 choices to 1 + 2e-16, which `simulate` refuses."""
    world = kh.LinearWorld.random(n_arms=3, context_dim=4, dim=4, seed=1)
    learner = kh.Learner(kh.ThompsonSampling(v=1.0, sharing="shared"))
    state, rounds, rng = learner.start(3, 4), world.sample(600, 3), np.random.default_rng(3)
    for y, rewards in zip(rounds.observations, rounds.rewards, strict=True):
        chosen = learner.choose(state, y, kh.Draws(rng.standard_normal(3), rng.random(2)))
        assert chosen.probability is not None
        assert chosen.probability <= 1.0
        learner.learn(state, chosen.arm, y[chosen.arm], float(rewards[chosen.arm]))
