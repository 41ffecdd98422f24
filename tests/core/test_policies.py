"""One contract for every policy; then what is each one's own."""

import json
from dataclasses import FrozenInstanceError, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import keyhole as kh
from tests.bandits import bandit_of
from tests.policies import every_policy

every = pytest.mark.parametrize("policy", every_policy(), ids=str)


def taught(policy: kh.Policy, *, rounds: int = 60, seed: int = 1, **settings: Any) -> kh.Bandit:
    """A bandit that has seen some rounds."""
    bandit = bandit_of(policy, arms=["A", "B", "C"], dim=3, seed=seed, **settings)
    rng = np.random.default_rng(4)
    for _ in range(rounds):
        decision = bandit.choose(rng.standard_normal((3, 3)))
        bandit.learn(decision, float(rng.standard_normal()))
    return bandit


@every
def test_it_chooses_before_any_reward(policy: kh.Policy) -> None:
    decision = kh.Bandit(policy, arms=3, dim=2, seed=0).choose([1.0, -1.0])
    assert decision.arm in (0, 1, 2)
    assert decision.probability == pytest.approx(1 / 3, abs=1e-12)


@every
def test_frequencies_match_the_stated_probabilities(policy: kh.Policy) -> None:
    """On one fixed posterior, one at a time and in a batch: within 4 standard errors."""
    bandit = taught(policy)
    y = np.random.default_rng(8).standard_normal((3, 3))
    p = bandit.choice_probabilities(y)
    assert sum(p.values()) == pytest.approx(1.0, abs=1e-12)
    n = 4000
    singles = [bandit.choose(y).arm for _ in range(n)]
    batch = bandit.choose_many(np.broadcast_to(y, (n, 3, 3))).arms
    for arms in (singles, batch):
        for arm, chance in p.items():
            error = np.sqrt(chance * (1 - chance) / n)
            assert abs(arms.count(arm) / n - chance) <= 4 * error + 1e-12


@every
def test_every_decision_carries_its_own_probability(policy: kh.Policy) -> None:
    bandit = taught(policy)
    rng = np.random.default_rng(9)
    for _ in range(20):
        y = rng.standard_normal((3, 3))
        expected = bandit.choice_probabilities(y)
        decision = bandit.choose(y)
        bandit.learn(decision, 1.0)  # what is asked later is still the probability back then
        assert decision.probability == pytest.approx(expected[decision.arm], abs=1e-12)
    y = rng.standard_normal((7, 3, 3))
    expected_rows = [bandit.choice_probabilities(row) for row in y]
    decisions = bandit.choose_many(y)
    for decision, row in zip(decisions, expected_rows, strict=True):
        assert decision.probability == pytest.approx(row[decision.arm], abs=1e-12)


@every
def test_the_seed_decides_everything(policy: kh.Policy) -> None:
    def arms(seed: int) -> list[Any]:
        bandit = taught(policy, seed=seed)
        return [bandit.choose(np.full(3, 0.1)).arm for _ in range(50)]

    assert arms(1) == arms(1)
    if not isinstance(policy, kh.Greedy | kh.LinUCB | kh.OFUL | kh.GreedyFirst):
        assert arms(1) != arms(2)


@every
def test_keeping_no_probabilities_changes_no_choice(policy: kh.Policy) -> None:
    if policy.plain_rule().weighted:
        with pytest.raises(kh.InvalidValue, match="probabilities must be True, got False"):
            taught(policy, probabilities=False)
        return
    with_them, without = taught(policy), taught(policy, probabilities=False)
    np.testing.assert_array_equal(with_them.posterior.covariance, without.posterior.covariance)
    assert without.choose(np.ones(3)).probability is None


@every
def test_saving_resumes_to_the_bit(policy: kh.Policy, tmp_path: Path) -> None:
    bandit = taught(policy)
    bandit.save(tmp_path / "bandit.npz")
    again = kh.Bandit.load(tmp_path / "bandit.npz", resume=True)
    rng = np.random.default_rng(10)
    for _ in range(100):
        y, reward = rng.standard_normal((3, 3)), float(rng.standard_normal())
        first, second = bandit.choose(y), again.choose(y)
        assert {**first.to_dict(), "id": 0} == {**second.to_dict(), "id": 0}
        bandit.learn(first, reward)
        again.learn(second, reward)
    for name, array in bandit.posterior.state._asdict().items():
        np.testing.assert_array_equal(array, getattr(again.posterior.state, name), err_msg=name)


@every
def test_a_decision_survives_json(policy: kh.Policy) -> None:
    bandit = taught(policy)
    decision = bandit.choose(np.array([0.3, -0.2, 1 / 3]))
    there = kh.Decision.from_dict(json.loads(json.dumps(decision.to_dict())))
    assert there == decision
    twin = taught(policy)
    bandit.learn(decision, 0.5)
    twin.learn(there, 0.5)
    np.testing.assert_array_equal(bandit.posterior.covariance, twin.posterior.covariance)


@every
def test_it_is_frozen(policy: kh.Policy) -> None:
    with pytest.raises(FrozenInstanceError):
        policy.prior_precision = 2.0  # type: ignore[misc]


def test_only_the_first_setting_goes_by_position() -> None:
    assert kh.ThompsonSampling(0.5) == kh.ThompsonSampling(v=0.5)
    assert kh.ThompsonSampling() == kh.ThompsonSampling(v="learned")
    with pytest.raises(TypeError):
        kh.ThompsonSampling(0.5, "shared")  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        kh.Greedy("shared")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (kh.ThompsonSampling, {"v": -1.0}),
        (kh.ThompsonSampling, {"v": float("nan")}),
        (kh.ThompsonSampling, {"v": float("inf")}),
        (kh.ThompsonSampling, {"v": "lerned"}),
        (kh.ThompsonSampling, {"v": None}),
        (kh.ThompsonSampling, {"v": True}),
        (kh.LinUCB, {"alpha": -0.1}),
        (kh.EpsilonGreedy, {"epsilon": 1.1}),
        (kh.EpsilonGreedy, {"epsilon": -0.1}),
        (kh.Greedy, {"sharing": "per arm"}),
        (kh.Greedy, {"sharing": np.array(["per-arm", "shared"])}),
        (kh.Greedy, {"sharing": np.array("per-arm")}),
        (kh.Greedy, {"sharing": ["shared"]}),
        (kh.Greedy, {"sharing": 10**5000}),
        (kh.ThompsonSampling, {"v": 10**5000}),
        (kh.ThompsonSampling, {"v": np.array("learned")}),
        (kh.OFUL, {"r": np.timedelta64(1, "s")}),
        (kh.Greedy, {"prior_precision": 0}),
        (kh.Uniform, {"prior_precision": "1"}),
    ],
)
def test_nonsense_settings(kind: type[kh.Policy], settings: dict[str, Any]) -> None:
    with pytest.raises(kh.InvalidValue, match=next(iter(settings))):
        kind(**settings)


def test_greedy_is_thompson_sampling_without_dispersion() -> None:
    y = np.random.default_rng(1).standard_normal((40, 3, 3))
    greedy, still = taught(kh.Greedy()), taught(kh.ThompsonSampling(v=0.0))
    assert [greedy.choose(row).arm for row in y] == [still.choose(row).arm for row in y]


def test_a_learned_v_does_not_lock_in_on_rare_rewards() -> None:
    """Two arms with rewards of 1 at rates 0.05 and 0.02: after 3,000 rounds the better one has
    most of the last 500 pulls in all but a few of 100 runs. (With each arm's own estimate of its
    noise alone, one run in twenty is stuck for good.)"""
    stuck = 0
    for seed in range(100):
        bandit = kh.Bandit(kh.ThompsonSampling(), arms=2, dim=1, seed=seed, probabilities=False)
        uniforms = np.random.default_rng(seed).random(3000)
        arms = np.empty(3000)
        for t, u in enumerate(uniforms):
            decision = bandit.choose(np.ones(1))
            arms[t] = int(decision.arm)
            bandit.learn(decision, float(u < (0.05, 0.02)[int(decision.arm)]))
        stuck += int((arms[-500:] == 1).mean() > 0.9)
    assert stuck <= 1


class Greedy(kh.Policy):
    """Somebody else's policy of the same name, with a setting that JSON turns into a list."""

    levels: tuple[float, ...] = (1.0, 2.0)

    @property
    def rule(self) -> kh.Rule:
        return kh.Rule(dispersion=3.0)


def test_a_foreign_policy_of_the_same_name_is_not_mistaken(tmp_path: Path) -> None:
    mine = dataclass(frozen=True, kw_only=True)(Greedy)
    kh.Bandit(mine(), arms=2, dim=2).save(tmp_path / "mine.npz")
    with pytest.raises(kh.FileError, match="none of Keyhole's"):
        kh.Bandit.load(tmp_path / "mine.npz")
    assert isinstance(kh.Bandit.load(tmp_path / "mine.npz", policy=mine()).policy, Greedy)


@pytest.mark.parametrize(
    "rule", [kh.Rule(dispersion=-1.0), kh.Rule(epsilon=2.0), kh.Rule(optimism=np.nan)]
)
def test_a_rule_that_makes_no_sense(rule: kh.Rule) -> None:
    class Odd(kh.Policy):
        @property
        def rule(self) -> kh.Rule:
            return rule

    with pytest.raises(kh.InvalidValue, match="a rule's"):
        kh.Bandit(Odd(), arms=2, dim=2)


class Stubborn(kh.Policy):
    """A policy of one's own: a rule, and nothing else."""

    @property
    def rule(self) -> kh.Rule:
        return kh.Rule(optimism=2, dispersion=1, epsilon=0)


def test_a_policy_of_ones_own(tmp_path: Path) -> None:
    bandit = taught(Stubborn())
    assert sum(bandit.choice_probabilities(np.ones(3)).values()) == pytest.approx(1.0)
    bandit.save(tmp_path / "own.npz")
    with pytest.raises(kh.FileError, match="policy="):
        kh.Bandit.load(tmp_path / "own.npz")
    with pytest.raises(kh.FileError, match="saved with"):
        kh.Bandit.load(tmp_path / "own.npz", policy=Stubborn(prior_precision=2.0))
    again = kh.Bandit.load(tmp_path / "own.npz", policy=Stubborn(), resume=True)
    assert again.choose(np.ones(3)).score == bandit.choose(np.ones(3)).score


# -- a learned v ----------------------------------------------------------------------------------


def world(n_arms: int, dim: int, sigma: Any, seed: int) -> tuple[kh.Bandit, Any]:
    """A bandit with v="learned", and how a reward comes about."""
    rng = np.random.default_rng(seed)
    eta = rng.standard_normal((n_arms, dim))
    bandit = kh.Bandit(kh.ThompsonSampling(v="learned"), arms=n_arms, dim=dim, seed=seed)

    def play_round() -> int:
        y = rng.standard_normal((n_arms, dim))
        decision = bandit.choose(y)
        arm = int(decision.arm)
        bandit.learn(decision, float(y[arm] @ eta[arm] + sigma[arm] * rng.standard_normal()))
        return arm

    return bandit, play_round


def test_a_learned_v_converges_to_each_arms_noise_while_choosing() -> None:
    """Four standard errors sigma/sqrt(2 n_i) of each arm's own pulls, and the weak prior's part.

    The rewards that an arm gives when chosen are not selected by their noise: it comes after.
    """
    sigma = np.array([0.5, 1.0, 3.0])
    bandit, play_round = world(3, 4, sigma, seed=5)
    for _ in range(6000):
        play_round()
    n = bandit.posterior.count
    assert (n > 500).all()
    v = bandit.posterior.noise_scale()
    k = np.average(sigma**2, weights=n) / sigma**2  # see test_posterior's test of the same name
    assert (np.abs(v / sigma - 1) <= 4 / np.sqrt(2 * n) + 2 * k * (k + 2) / n + 4 / n).all()


def test_a_learned_v_makes_choices_independent_of_the_rewards_unit() -> None:
    def arms(unit: float) -> list[Any]:
        bandit = kh.Bandit(kh.ThompsonSampling(), arms=4, dim=3, seed=2)
        rng, chosen = np.random.default_rng(6), []
        for _ in range(300):
            y = rng.standard_normal((4, 3))
            decision = bandit.choose(y)
            bandit.learn(decision, unit * float(y[int(decision.arm), 0] + rng.standard_normal()))
            chosen.append(decision.arm)
        return chosen

    # Powers of two change no rounding, so not one decision differs.
    assert arms(1.0) == arms(2.0**20) == arms(2.0**-20)


def test_a_learned_v_explores_from_the_first_round() -> None:
    """Every arm is tried within a few rounds, also when all early rewards are exactly zero."""
    for reward in (0.0, 1.0, 1e-9):
        bandit = kh.Bandit(kh.ThompsonSampling(), arms=5, dim=2, seed=4)
        rng = np.random.default_rng(7)
        for _ in range(100):
            bandit.learn(bandit.choose(rng.standard_normal((5, 2))), reward)
        assert min(bandit.counts.values()) >= 3


# -- a rule that depends on state -----------------------------------------------------------------


class Decaying(kh.Policy):
    """Meant to explore less and less: it counts how often its rule was asked for."""

    asked = 0

    @property
    def rule(self) -> kh.Rule:
        self.asked += 1
        return kh.Rule(epsilon=1.0 / self.asked)


class Fickle(kh.Policy):
    """Meant to explore at random: its rule is another one each time."""

    @property
    def rule(self) -> kh.Rule:
        return kh.Rule(epsilon=float(np.random.default_rng().random()))


class Watching(kh.Policy):
    """Its rule follows from something that others change."""

    seen: list[int] = []  # noqa: RUF012 - that is the mistake

    @property
    def rule(self) -> kh.Rule:
        return kh.Rule(optimism=float(len(self.seen)))


WORLD = kh.RandomLinearWorld(n_arms=2, context_dim=2, dim=2)
SHORT: dict[str, Any] = {"horizon": 50, "replications": 3, "seed": 1}


@pytest.mark.parametrize("policy", [Decaying(), Fickle()], ids=str)
def test_a_rule_that_depends_on_state_is_refused(policy: kh.Policy) -> None:
    """Evaluated once, it would be frozen as it was, silently."""
    with pytest.raises(kh.InvalidValue, match="depend on its settings alone"):
        kh.Bandit(policy, arms=2, dim=2)
    with pytest.raises(kh.InvalidValue, match="depend on its settings alone"):
        kh.simulate(WORLD, policy, **SHORT)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_rule_that_changes_during_a_simulation_is_refused(workers: int) -> None:
    with pytest.raises(kh.InvalidValue, match="depend on its settings alone"):
        kh.simulate(WORLD, Watching(), **SHORT, workers=workers, progress=Watching.seen.append)
    # The negative control: as long as it stays the same, it may come from anywhere.
    assert kh.simulate(WORLD, Watching(), **SHORT).sizes["replication"] == 3


def test_a_plain_rule_is_compared_with_the_one_before() -> None:
    policy = kh.EpsilonGreedy(0.3)
    rule = policy.plain_rule()
    assert policy.plain_rule(rule) == rule == kh.Rule(epsilon=0.3)
    with pytest.raises(kh.InvalidValue, match=r"epsilon=0\.2.* and then .*epsilon=0\.3"):
        policy.plain_rule(kh.Rule(epsilon=0.2))
