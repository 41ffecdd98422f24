"""What two bandits have in common counts once, however they were saved, loaded and merged."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import keyhole as kh

POLICY = kh.ThompsonSampling(v=1.0)


def fresh(**options: Any) -> kh.Bandit:
    return kh.Bandit(POLICY, arms=["A", "B"], dim=2, seed=1, **options)


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
    one, other = (kh.Bandit.load(tmp_path / "base.npz") for _ in range(2))
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
    one, other = (kh.Bandit.load(tmp_path / "base.npz") for _ in range(2))
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


def test_two_that_resumed_one_file_are_not_merged(tmp_path: Path) -> None:
    """They went on as the same run: their numbers say nothing of each other."""
    base = fresh()
    worked(base, 10, 1)
    base.save(tmp_path / "base.npz")
    one, other = (kh.Bandit.load(tmp_path / "base.npz", resume=True) for _ in range(2))
    worked(one, 5, 2)
    worked(other, 5, 3)
    with pytest.raises(kh.InvalidValue, match="count twice"):
        one.merge(other, base=base)


def test_arms_removed_on_one_side_do_not_block_a_merge(tmp_path: Path) -> None:
    base = kh.Bandit(POLICY, arms=["A", "B", "C"], dim=2, seed=1)
    worked(base, 30, 1)
    base.save(tmp_path / "base.npz")
    one, other = (kh.Bandit.load(tmp_path / "base.npz") for _ in range(2))
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
    servers = [kh.Bandit.load(common) for _ in range(3)]
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
