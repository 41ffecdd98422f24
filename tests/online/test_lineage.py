"""What two bandits have in common counts once, however they were saved, loaded and merged."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import keyhole as kh
from tests.bandits import bandit_of

POLICY = kh.ThompsonSampling(v=1.0)


def fresh(**options: Any) -> kh.Bandit:
    return bandit_of(POLICY, arms=["A", "B"], dim=2, seed=1, **options)


def worked(bandit: kh.Bandit, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(n):
        bandit.learn(bandit.choose(rng.standard_normal(2)), float(rng.standard_normal()))


def learned(bandit: kh.Bandit) -> int:
    return sum(bandit.counts.values())


@pytest.mark.parametrize("options", [{}, {"missing": "predict"}])
def test_a_forgotten_base_is_refused(tmp_path: Path, options: dict[str, Any]) -> None:
    base = fresh(**options)
    worked(base, 10, 1)
    base.save(tmp_path / "base.npz")
    one, other = (kh.Bandit.load(tmp_path / "base.npz", seed=k) for k in range(2))
    worked(one, 5, 2)
    worked(other, 7, 3)
    with pytest.raises(kh.InvalidValue, match="give that one as base"):
        one.merge(other)
    assert learned(one) == 15
    one.merge(other, base=kh.Bandit.load(tmp_path / "base.npz"))
    assert learned(one) == 22


def test_a_repeated_merge_is_refused(tmp_path: Path) -> None:
    base = fresh()
    worked(base, 10, 1)
    base.save(tmp_path / "base.npz")
    one, other = (kh.Bandit.load(tmp_path / "base.npz", seed=k) for k in range(2))
    worked(other, 7, 3)
    one.merge(other, base=base)
    for again in (base, None):
        with pytest.raises(kh.InvalidValue, match="count twice"):
            one.merge(other, base=again)
    assert learned(one) == 17
    other.save(tmp_path / "then.npz")
    worked(other, 4, 5)
    one.merge(other, base=kh.Bandit.load(tmp_path / "then.npz"))
    assert learned(one) == 21


def test_a_base_that_one_of_them_does_not_know_is_refused() -> None:
    one, other, base = fresh(), fresh(), fresh()
    for k, bandit in enumerate((one, other, base)):
        worked(bandit, 5, k)
    with pytest.raises(kh.InvalidValue, match="all that their base has"):
        one.merge(other, base=base)
    one.merge(other)
    assert learned(one) == 10


def test_two_that_resumed_one_file_are_runs_of_their_own(tmp_path: Path) -> None:
    base = fresh()
    worked(base, 10, 1)
    base.save(tmp_path / "base.npz")
    one, other = (kh.Bandit.load(tmp_path / "base.npz", resume=True) for _ in range(2))
    worked(one, 5, 2)
    worked(other, 5, 3)
    one.merge(other, base=base)
    assert learned(one) == 20


def test_ids_given_out_before_a_crash_are_not_given_out_again(tmp_path: Path) -> None:
    """The process dies after the save: its decision in flight is not that of the next process."""
    bandit = fresh()
    bandit.save(tmp_path / "b.npz")
    in_flight = kh.Decision.from_dict(bandit.choose([1.0, 2.0]).to_dict())
    resumed = kh.Bandit.load(tmp_path / "b.npz", resume=True)
    decision = resumed.choose([1.0, 2.0])
    assert decision.score == in_flight.score
    resumed.learn(in_flight, 1.0)
    resumed.learn(decision, 5.0)
    assert learned(resumed) == 2


def test_a_base_that_an_arm_was_removed_from_is_refused(tmp_path: Path) -> None:
    """It came back, and what it had learned counted twice."""
    base = fresh()
    worked(base, 20, 1)
    base.save(tmp_path / "base.npz")
    one, other = (kh.Bandit.load(tmp_path / "base.npz", seed=k) for k in range(2))
    base.remove_arms(["A"])
    with pytest.raises(kh.InvalidValue, match="as it was then"):
        one.merge(other, base=base)


def test_an_arm_removed_and_added_again_is_told(tmp_path: Path) -> None:
    base = fresh()
    worked(base, 20, 1)
    base.save(tmp_path / "base.npz")
    one, other = (kh.Bandit.load(tmp_path / "base.npz", seed=k) for k in range(2))
    other.remove_arms(["A"])
    other.add_arms(["A"])
    with pytest.raises(kh.InvalidValue, match="arm 'A' was removed and added again"):
        one.merge(other, base=base)


@pytest.mark.parametrize("first", ["observe", "nothing"])
def test_shared_parameters_lose_no_reward_with_an_arm(tmp_path: Path, first: str) -> None:
    policy = kh.ThompsonSampling(v=1.0, sharing="shared")
    bandit = bandit_of(policy, arms=["A", "B"], dim=1, seed=1, standardize=True)
    rng = np.random.default_rng(1)
    for _ in range(10):
        bandit.learn(bandit.choose(rng.standard_normal(1)), 1.0)
    bandit.save(tmp_path / "b.npz")
    base, one, other = (kh.Bandit.load(tmp_path / "b.npz") for _ in range(3))
    other.remove_arms(["A"])
    if first == "observe":
        one.observe(rng.standard_normal((40, 1)))
    one.merge(other, base=base)
    assert one.counts["B"] + one.waiting["B"] == 10


@pytest.mark.parametrize("rounds", [2, 10, 40, 150])
@pytest.mark.parametrize(
    "options",
    [
        {"missing": "predict"},
        {"intercept": True},
        {"standardize": True},
        {"missing": "predict", "intercept": True, "standardize": True},
    ],
)
def test_the_loop_of_servers_with_every_option(
    tmp_path: Path, options: dict[str, Any], rounds: int
) -> None:
    """Across units that are fixed, rewards that wait and predictions that are made again."""
    rng = np.random.default_rng(rounds)
    common = tmp_path / "common.npz"
    bandit_of(POLICY, arms=["A", "B", "C"], dim=2, seed=1, **options).save(common)
    servers = {name: kh.Bandit.load(common, seed=k) for k, name in enumerate(("east", "west"))}
    for _ in range(4):
        for name, server in servers.items():
            for _ in range(rounds):
                y = rng.normal([1.7, 70.0], [0.1, 12.0])
                if "missing" in options:
                    y[rng.random(2) < 0.3] = np.nan
                server.learn(server.choose(y), float(rng.normal()))
            server.save(tmp_path / f"{name}.npz")
        base, merged = kh.Bandit.load(common), kh.Bandit.load(common)
        for name in servers:
            merged.merge(kh.Bandit.load(tmp_path / f"{name}.npz"), base=base)
        merged.save(common)
        for name, server in servers.items():
            server.merge(merged, base=kh.Bandit.load(tmp_path / f"{name}.npz"))
    for server in servers.values():
        assert learned(server) + sum(server.waiting.values()) == 8 * rounds
        posterior = server.posterior
        np.testing.assert_allclose(
            posterior.covariance @ posterior.precision,
            np.broadcast_to(np.eye(posterior.dim), posterior.precision.shape),
            atol=1e-6,
        )


def test_a_reward_that_two_servers_learned_is_told() -> None:
    one, other, chooses = fresh(), fresh(), fresh()
    decision = chooses.choose([1.0, 2.0])
    for server in (one, other):
        server.learn(kh.Decision.from_dict(decision.to_dict()), 1.0)
    with pytest.warns(kh.KeyholeWarning, match="1 decisions were learned by both"):
        one.merge(other)


def test_arms_removed_on_one_side_do_not_block_a_merge(tmp_path: Path) -> None:
    base = kh.Bandit(POLICY, arms=["A", "B", "C"], dim=2, seed=1)
    worked(base, 30, 1)
    base.save(tmp_path / "base.npz")
    one, other = (kh.Bandit.load(tmp_path / "base.npz", seed=k) for k in range(2))
    worked(one, 5, 2)
    worked(other, 7, 3)
    one.remove_arms(["A"])
    other.remove_arms(["B"])
    other.add_arms(["D"])
    expected = one.counts["C"] + other.counts["C"] - base.counts["C"]
    one.merge(other, base=base)
    assert one.arms == ("C", "D")
    assert one.counts["C"] == expected
    third, gone = (kh.Bandit.load(tmp_path / "base.npz") for _ in range(2))
    gone.remove_arms(["A", "B"])
    third.remove_arms(["C"])
    with pytest.raises(kh.InvalidValue, match="none would be left"):
        third.merge(gone, base=base)


def test_the_periodic_loop_of_several_servers_equals_one_that_saw_all(tmp_path: Path) -> None:
    """Each round every server saves; one merges; every server takes what is new. All count once."""
    whole = kh.Bandit(POLICY, arms=["A", "B"], dim=2, seed=1)
    common = tmp_path / "common.npz"
    fresh().save(common)
    servers = [kh.Bandit.load(common, seed=k) for k in range(3)]
    rng = np.random.default_rng(1)
    for _ in range(4):
        for k, server in enumerate(servers):
            for _ in range(int(rng.integers(1, 6))):
                decision, reward = server.choose(rng.standard_normal(2)), float(rng.normal())
                server.learn(decision, reward)
                whole.learn(decision, reward)
            server.save(tmp_path / f"server{k}.npz")
        base = kh.Bandit.load(common)
        merged = kh.Bandit.load(common)
        for k in range(3):
            merged.merge(kh.Bandit.load(tmp_path / f"server{k}.npz"), base=base)
        merged.save(common)
        for k, server in enumerate(servers):
            decision, reward = server.choose(rng.standard_normal(2)), float(rng.normal())
            server.learn(decision, reward)  # while the others were merged
            whole.learn(decision, reward)
            server.merge(kh.Bandit.load(common), base=kh.Bandit.load(tmp_path / f"server{k}.npz"))
        # What all have in common now is the merged file.
    for k, server in enumerate(servers):
        assert learned(server) == learned(whole) - 2  # but for the last reward of the other two
        base = kh.Bandit.load(common)
        if k:
            servers[0].merge(server, base=base)
    np.testing.assert_allclose(servers[0].posterior.precision, whole.posterior.precision, rtol=1e-9)
    np.testing.assert_allclose(servers[0].posterior.mean, whole.posterior.mean, rtol=1e-9)


def test_merging_remembers_what_the_other_has_learned() -> None:
    one, other = fresh(), fresh()
    decision = other.choose([1.0, 2.0])
    other.learn(decision, 1.0)
    one.merge(other)
    with pytest.raises(kh.AlreadyLearned):
        one.learn(decision, 1.0)
