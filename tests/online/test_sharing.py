"""One bandit in many hands: threads, forked children, copies, pickles, files."""

import copy
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import keyhole as kh
from tests.bandits import bandit_of

POLICY = kh.ThompsonSampling(v=1.0)
Y = np.array([0.5, -1.0, 2.0])


def made(**options: Any) -> kh.Bandit:
    bandit = bandit_of(POLICY, arms=["A", "B", "C"], dim=3, seed=1, **options)
    for k in range(40):
        bandit.learn(bandit.choose(Y + k % 3), float(k))
    return bandit


def scores(bandit: kh.Bandit, n: int = 20) -> list[float | None]:
    return [bandit.choose(Y).score for _ in range(n)]


def is_whole(bandit: kh.Bandit) -> bool:
    """Whether the caches are those of the sums: P = B^-1 and mean = P b."""
    posterior = bandit.posterior
    inverse = np.linalg.inv(posterior.precision)
    mean = np.einsum("kde,ke->kd", inverse, posterior.moment)
    return np.allclose(posterior.covariance, inverse) and np.allclose(posterior.mean, mean)


@pytest.fixture
def _often() -> Any:
    """Have threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("_often")
@pytest.mark.parametrize(
    "options", [{}, {"intercept": True, "standardize": True, "missing": "predict", "clip": None}]
)
def test_eight_threads_while_arms_come_and_go(options: dict[str, Any]) -> None:
    """Every reward is counted once, and the sums and their caches stay those of all of them."""
    bandit = bandit_of(POLICY, arms=["A", "B", "C"], dim=3, seed=1, **options)
    learned: list[list[Any]] = [[] for _ in range(8)]
    failures: list[BaseException] = []
    rounds = 150

    def play(k: int) -> None:
        rng = np.random.default_rng(k)
        try:
            for _ in range(rounds):
                y = rng.standard_normal(3)
                decision = bandit.choose(y)
                try:
                    bandit.learn(decision, float(rng.standard_normal()))
                except kh.UnknownArm:  # it has gone meanwhile
                    assert decision.arm not in ("A", "B", "C")
                else:
                    learned[k].append(decision.arm)
        except BaseException as reason:
            failures.append(reason)

    def change_arms() -> None:
        for n in range(60):
            bandit.add_arms([n])
            bandit.remove_arms([n])
            assert all((repr(bandit), bandit.effects, bandit.counts))

    threads = [threading.Thread(target=play, args=(k,)) for k in range(8)]
    threads.append(threading.Thread(target=change_arms))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert bandit.arms == ("A", "B", "C")
    counts = bandit.counts
    for arm in "ABC":
        assert counts[arm] == sum(own.count(arm) for own in learned)
    assert is_whole(bandit)


@pytest.mark.usefixtures("_often")
def test_two_bandits_merged_into_each_other_at_once_do_not_wait_for_ever() -> None:
    bandits = [kh.Bandit(POLICY, arms=["A"], dim=3) for _ in range(2)]

    def merge(one: kh.Bandit, other: kh.Bandit) -> None:
        for _ in range(200):
            one.merge(other)

    threads = [
        threading.Thread(target=merge, args=pair, daemon=True)
        for pair in (bandits, reversed(bandits))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60.0)
        assert not thread.is_alive()


FORK = """
import os, threading
import numpy as np
import keyhole as kh

bandit = kh.Bandit(kh.ThompsonSampling(v=1.0), arms=["A", "B"], dim=2, seed=1)
bandit.learn(bandit.choose([1.0, 2.0]), 1.0)
stop = threading.Event()

def busy():
    while not stop.is_set():
        bandit.learn(bandit.choose([0.5, 0.5]), 1.0)

worker = threading.Thread(target=busy)
worker.start()
for _ in range(20):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        decision = bandit.choose([1.0, 1.0])
        posterior = bandit.posterior
        whole = np.allclose(posterior.covariance, np.linalg.inv(posterior.precision))
        os.write(writing, f"{decision.score!r} {decision.id} {whole}".encode())
        os._exit(0)
    os.close(writing)
    print(os.read(reading, 200).decode())
    os.close(reading)
    os.waitpid(child, 0)
stop.set()
worker.join()
"""


def test_a_forked_child_draws_its_own_numbers_and_is_never_half_updated() -> None:
    output = subprocess.check_output([sys.executable, "-c", FORK], text=True, timeout=300)
    drawn, ids, whole = zip(*(line.split() for line in output.splitlines()), strict=True)
    assert len(set(drawn)) == 20
    assert len({one.partition("-")[0] for one in ids}) == 20  # each is a run of its own
    assert set(whole) == {"True"}


def test_loaded_bandits_draw_their_own_numbers_unless_one_resumes(tmp_path: Path) -> None:
    bandit = made()
    bandit.save(tmp_path / "b.npz")
    one, other = (kh.Bandit.load(tmp_path / "b.npz") for _ in range(2))
    assert set(scores(one)).isdisjoint(scores(other))
    resumed = kh.Bandit.load(tmp_path / "b.npz", resume=True)
    seeded = [kh.Bandit.load(tmp_path / "b.npz", seed=5) for _ in range(2)]
    assert scores(resumed) == scores(bandit)
    assert scores(seeded[0]) == scores(seeded[1])
    for wrong in ({"resume": 5}, {"resume": True, "seed": 1}, {"seed": -1}):
        with pytest.raises(kh.InvalidValue):
            kh.Bandit.load(tmp_path / "b.npz", **wrong)  # type: ignore[arg-type]


def test_servers_that_load_one_file_try_different_arms(tmp_path: Path) -> None:
    """Four of them chose the same of ten arms in 200 of 200 rounds."""
    kh.Bandit(POLICY, arms=10, dim=3, seed=1).save(tmp_path / "b.npz")
    servers = [kh.Bandit.load(tmp_path / "b.npz") for _ in range(4)]
    same = sum(len({server.choose(Y).arm for server in servers}) == 1 for _ in range(200))
    assert same <= 10  # of 200 with probability 1/1000 each


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda b: pickle.loads(pickle.dumps(b))]
)
@pytest.mark.parametrize("options", [{}, {"standardize": True, "missing": "predict"}])
def test_copies_share_nothing(copied: Any, options: dict[str, Any]) -> None:
    bandit = made(**options)
    twin = copied(bandit)
    before = bandit.posterior
    np.testing.assert_array_equal(twin.posterior.mean, before.mean)
    assert set(scores(twin)).isdisjoint(scores(bandit))
    for _ in range(50):
        twin.learn(twin.choose(Y), 9.0)
    np.testing.assert_array_equal(bandit.posterior.mean, before.mean)
    assert sum(twin.counts.values()) + sum(twin.waiting.values()) == 90
    assert is_whole(twin)


def test_read_only_buffers_of_a_pickle_are_no_trouble() -> None:
    """Pickle 5 hands large arrays over as they are, and joblib maps them from a file read-only."""
    bandit = kh.Bandit(POLICY, arms=50, dim=60, seed=1)
    posterior = bandit.posterior
    for original in (bandit, posterior):
        buffers: list[pickle.PickleBuffer] = []
        stream = pickle.dumps(original, protocol=5, buffer_callback=buffers.append)
        frozen = [bytes(buffer.raw()) for buffer in buffers]
        assert frozen
        again = pickle.loads(stream, buffers=frozen)
        if isinstance(again, kh.Bandit):
            again.learn(again.choose(np.ones(60)), 1.0)
            assert sum(again.counts.values()) == 1
        else:
            again.learn(0, np.ones(60), 1.0)
            assert again.count.sum() == 1


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_posteriors_copy_shares_nothing(copied: Any) -> None:
    posterior = made().posterior
    before, twin = posterior.mean.copy(), copied(posterior)
    twin.learn(0, Y, 5.0)
    np.testing.assert_array_equal(posterior.mean, before)


def test_a_bandits_posterior_is_handed_out_as_a_copy() -> None:
    """Keeping one parameter of three made the next choice write where it must not."""
    bandit = made()
    posterior = bandit.posterior
    posterior.keep([0])
    posterior.state.mean[:] = np.nan
    for _ in range(20):
        bandit.learn(bandit.choose(Y), 1.0)
    assert is_whole(bandit)
    for name, value in (("dim", 7), ("policy", kh.Greedy()), ("probabilities", False)):
        with pytest.raises(AttributeError):
            setattr(bandit, name, value)
    with pytest.raises(AttributeError):
        posterior.state = made().posterior.state  # type: ignore[misc]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: p.keep([3]), "from 0 to 2"),
        (lambda p: p.keep([0, 0]), "different indices"),
        (lambda p: p.keep([]), "one or more"),
        (lambda p: p.keep("A"), "parameters must be"),
        (lambda p: p.predict([5], np.ones((1, 3))), "from 0 to 2"),
        (lambda p: p.predict([0], np.ones((1, 2))), "shape"),
        (lambda p: p.predict([0], np.ones(3)), "shape"),
        (lambda p: p.change_units(np.eye(2)), r"\(3, 3\)"),
        (lambda p: p.change_units(np.full((3, 3), np.nan)), "finite"),
        (lambda p: p.merge(None), "Posterior"),
        (lambda p: p.merge(p.copy(), base=3), "Posterior"),
        (lambda p: p.extend(-1), "n_parameters"),
        (lambda p: p.learn(0, [[1.0], [1.0, 2.0]], 1.0), "rows of equal length"),
        (lambda p: p.learn(True, Y, 1.0), "parameter"),
    ],
)
def test_a_posterior_refuses_nonsense_and_stays_as_it_is(call: Any, message: str) -> None:
    posterior = made().posterior
    before = [array.copy() for array in posterior.state]
    with pytest.raises(kh.InvalidValue, match=message):
        call(posterior)
    for array, expected in zip(posterior.state, before, strict=True):
        np.testing.assert_array_equal(array, expected)


def test_more_than_this_machines_memory_is_refused_at_once() -> None:
    for arms, dim in ((10**9, 2), (10**6, 10**4)):
        with pytest.raises(kh.InvalidValue, match=r"at most|GiB"):
            kh.Bandit(POLICY, arms=arms, dim=dim)


def test_a_name_that_comes_twice_among_very_many_is_found_at_once() -> None:
    """Looking for it took 22 seconds with 20,000 arms; here ten times as many take none."""
    names = [*map(str, range(200_000)), "199999"]
    with pytest.raises(kh.InvalidValue, match="'199999' comes twice"):
        kh.Bandit(POLICY, arms=names, dim=1)
