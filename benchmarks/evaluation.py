"""Check off-policy evaluation: against peers, by coverage on simulated logs, and its speed.

    python -m benchmarks.evaluation obp                 # equal to obp 0.4.1 on the same arrays
    python -m benchmarks.evaluation vw                  # and to vw-estimators 0.2.2
    python -m benchmarks.evaluation cressie-read        # coverage of its interval
    python -m benchmarks.evaluation coverage --logs 1000 --arms 2 --rounds 500
    python -m benchmarks.evaluation sequences --logs 200
    python -m benchmarks.evaluation controls            # propensities that are wrong must show
    python -m benchmarks.evaluation open-bandit         # one real policy's value from another's log
    python -m benchmarks.evaluation speed

Peers are installed into environments of their own under `.peers`. docs/how-to/evaluation.md has the
numbers.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import keyhole as kh
from benchmarks.peers.environments import HOME, environment, pip_install
from keyhole.core import Floats, Ints, Rule, kernels
from keyhole.evaluation import FixedArm, Logged
from keyhole.evaluation.estimators import ESTIMATORS

LEVEL = 0.95
DIM = 3


# -- simulated logs -------------------------------------------------------------------------------


class Simulated(NamedTuple):
    """A Thompson log of a world with a constant and normal features, and the truth."""

    log: Logged
    values: Floats  # (n, K)
    eta: Floats  # (K, d)


def simulated(
    rng: np.random.Generator, *, n_arms: int, rounds: int, signal: float, epsilon: float
) -> Simulated:
    """Return a log of Thompson sampling with v = 1 and unit noise, of n rounds.

    Parameters
    ----------
    rng : Generator
        Source of all random numbers.
    n_arms, rounds : int
        Number of arms and of rounds.
    signal : float
        Standard deviation of each coefficient.
    epsilon : float
        Probability of a uniform choice.
    """
    y = np.ones((rounds, DIM))
    y[:, 1:] = rng.normal(size=(rounds, DIM - 1))
    eta = signal * rng.normal(size=(n_arms, DIM))
    values = y @ eta.T
    rewards = values + rng.normal(size=values.shape)
    rule, parameter_of = Rule(dispersion=1.0, epsilon=epsilon), np.arange(n_arms)
    chosen = np.empty(rounds, np.int64)
    posterior = kh.Posterior(n_parameters=n_arms, dim=DIM)
    block = kernels.Block(
        y[:, None], rewards, rng.normal(size=values.shape), rng.random((rounds, 2))
    )
    kernels.play(kernels.Chooser(posterior.core, rule, parameter_of, False), block, chosen)
    reward = rewards[np.arange(rounds), chosen]
    return Simulated(_logged(y, chosen, reward, rule, n_arms), values, eta)


def _logged(y: Floats, chosen: Ints, reward: Floats, rule: Rule, n_arms: int) -> Logged:
    posterior = kh.Posterior(n_parameters=n_arms, dim=DIM)
    out = np.empty((4, len(y), n_arms))
    explorer = kernels.Explorer(posterior.core, rule)
    kernels.retrace(explorer, np.arange(n_arms), y[:, None], chosen, reward, out)
    propensity = kh.choice_probabilities(out[0], out[1], epsilon=rule.epsilon)
    return Logged(
        arms=range(n_arms),
        chosen=chosen,
        probability=propensity[np.arange(len(y)), chosen],
        reward=reward,
        mean=out[0],
        width=out[1],
        dispersion=1.0,
        epsilon=rule.epsilon,
        probabilities=propensity,
        observation=y,
    )


def targets(world: Simulated) -> dict[str, Any]:
    """Return the targets of the grid."""
    return {
        "fixed arm": FixedArm(0),
        "best arm": FixedArm(int(world.eta[:, 0].argmax())),
        "uniform": "uniform",
        "v/2": kh.ThompsonSampling(v=0.5),
        "2v": kh.ThompsonSampling(v=2.0),
    }


def truth(world: Simulated, name: str) -> float:
    """Return the value of a target: of a new context, or over these rounds if it learns."""
    if name == "fixed arm":
        return float(world.eta[0, 0])
    if name == "best arm":
        return float(world.eta[:, 0].max())
    if name == "uniform":
        return float(world.eta[:, 0].mean())
    assert world.log.mean is not None
    assert world.log.width is not None
    v = {"v/2": 0.5, "2v": 2.0}[name]
    propensity = kh.choice_probabilities(world.log.mean, v * world.log.width)
    return float((propensity * world.values).sum(axis=1).mean())


# -- coverage -------------------------------------------------------------------------------------


def coverage(logs: int, n_arms: int, rounds: int, seed: int) -> None:
    """Print coverage and RMSE of MinVar, StableVar, DR and SNIPS in every cell.

    Plain DR is that with the normal quantile, as others have it.

    Parameters
    ----------
    logs : int
        Number of logs in each cell.
    n_arms, rounds : int
        Number of arms and of rounds.
    seed : int
        Seed of the first log.
    """
    names = ("minvar", "stablevar", "dr", "snips")
    print("| arms | rounds | signal | epsilon | target |", end="")
    print("".join(f" {one} cover | {one} rmse |" for one in names), end="")
    print(" plain dr cover | size >= 30 | cover there |")
    for signal in (0.6, 0.0):
        for epsilon in (0.0, 0.02, 0.1):
            rng = np.random.default_rng(
                [seed, n_arms, rounds, int(10 * signal), int(100 * epsilon)]
            )
            cells: dict[tuple[str, str], list[tuple[float, float, float, float]]] = {}
            for _ in range(logs):
                world = simulated(rng, n_arms=n_arms, rounds=rounds, signal=signal, epsilon=epsilon)
                found = kh.evaluate(
                    world.log, targets(world), estimator=names, min_size=0.0, check=False
                )
                for row in found.rows:
                    value = truth(world, row.policy)
                    inside = row.low <= value <= row.high
                    plain = abs(row.value - value) <= 1.96 * row.error
                    cells.setdefault((row.policy, row.estimator), []).append(
                        (float(inside), row.value - value, row.effective_size, float(plain))
                    )
            for target in targets(world):
                table = {one: np.array(cells[target, one]) for one in names}
                large = table["minvar"][:, 2] >= 30.0
                there = table["minvar"][large, 0].mean() if large.any() else float("nan")
                print(f"| {n_arms} | {rounds:,} | {signal:g} | {epsilon:g} | {target} |", end="")
                for one in names:
                    rmse = np.sqrt((table[one][:, 1] ** 2).mean())
                    print(f" {table[one][:, 0].mean():.3f} | {rmse:.3f} |", end="")
                plainly = table["dr"][:, 3].mean()
                print(f" {plainly:.3f} | {large.mean():.2f} | {there:.3f} |", flush=True)


def controls(logs: int, seed: int) -> None:
    """Print coverage of IPS, and how often the audit objects, with propensities that are wrong.

    Rewards are raised by 2: a doubly robust estimate with a good model would hide wrong weights.

    Parameters
    ----------
    logs : int
        Number of logs.
    seed : int
        Seed of the logs.
    """
    print("| propensities | cover, uniform | audit objects | without scores |")
    for kind in ("exact", "100 draws", "1.0", "1/K"):
        rng = np.random.default_rng(seed)
        inside, objected, bare_objected = [], [], []
        for _ in range(logs):
            world = simulated(rng, n_arms=3, rounds=2000, signal=0.3, epsilon=0.1)
            log = world.log
            e = log.probability
            if kind == "100 draws":
                e = np.maximum(rng.binomial(100, e), 1) / 100.0
            elif kind != "exact":
                e = np.full(len(e), 1.0 if kind == "1.0" else 1.0 / 3.0)
            bare = {
                "arms": log.arms,
                "chosen": log.chosen,
                "probability": e,
                "reward": log.reward + 2.0,
            }
            scores = {"mean": log.mean, "width": log.width, "dispersion": 1.0, "epsilon": 0.1}
            scored = {**bare, **scores}
            row = kh.evaluate(scored, "uniform", estimator="ips", min_size=0.0, check=False).rows[0]
            inside.append(row.low <= 2.0 + world.eta[:, 0].mean() <= row.high)
            objected.append(not kh.evaluation.audit_log(scored).is_sound)
            bare_objected.append(not kh.evaluation.audit_log(bare).is_sound)
        shares = (np.mean(one) for one in (inside, objected, bare_objected))
        print(f"| {kind} |", " | ".join(f"{one:.3f}" for one in shares), "|", flush=True)


# -- peers ----------------------------------------------------------------------------------------


def peer(name: str, *packages: str, without: str) -> Path:
    """Return the interpreter of a peer's own environment.

    Parameters
    ----------
    name : str
        Name of the environment.
    *packages : str
        What it needs.
    without : str
        The peer, installed without its own requirements.
    """
    python, done = environment(HOME / name), HOME / name / "installed"
    if not done.exists():
        pip_install(python, "--no-deps", without)
        pip_install(python, *packages)
        done.touch()
    return python


def answer(python: Path, code: str, arrays: dict[str, Any]) -> dict[str, float]:
    """Run code in another environment on the same arrays, and return the numbers it prints.

    Parameters
    ----------
    python : Path
        The interpreter.
    code : str
        Code that reads `arrays` and prints lines of a name and a number.
    arrays : dict
        The arrays.
    """
    with tempfile.TemporaryDirectory() as folder:
        np.savez(Path(folder, "arrays.npz"), **arrays)
        read = f"import numpy as np\narrays = np.load({str(Path(folder, 'arrays.npz'))!r})\n"
        shown = subprocess.check_output([python, "-W", "ignore", "-c", read + code], text=True)
    return {name: float(number) for name, number in map(str.split, shown.splitlines())}


OBP = """
import importlib, sys, types
for name in ("torch", "matplotlib", "matplotlib.pyplot", "seaborn", "mypy_extensions"):
    module = types.ModuleType(name)
    module.__getattr__ = lambda one: type(one, (), {})
    sys.modules.setdefault(name, module)
package = types.ModuleType("obp"); package.__path__ = [p + "/obp" for p in sys.path]
sys.modules["obp"] = package
ope = types.ModuleType("obp.ope"); ope.__path__ = [p + "/obp/ope" for p in sys.path]
sys.modules["obp.ope"] = ope
E = importlib.import_module("obp.ope.estimators")
data = dict(reward=arrays["reward"], action=arrays["chosen"], pscore=arrays["probability"],
            action_dist=arrays["target"][:, :, None], position=np.zeros(len(arrays["reward"]), int),
            estimated_rewards_by_reg_model=arrays["mean"][:, :, None])
for name, one in dict(
    ips=E.InverseProbabilityWeighting(), snips=E.SelfNormalizedInverseProbabilityWeighting(),
    dm=E.DirectMethod(), dr=E.DoublyRobust(), sndr=E.SelfNormalizedDoublyRobust(),
    switch=E.SwitchDoublyRobust(tau=3.0), dros=E.DoublyRobustWithShrinkage(lambda_=5.0),
).items():
    print(name, repr(float(one.estimate_policy_value(**data))))
"""

VW = """
from estimators.bandits import cressieread, cs, gaussian, ips, snips
w = arrays["target"][np.arange(len(arrays["chosen"])), arrays["chosen"]]
made = dict(ips=ips.Estimator(), snips=snips.Estimator(), sequence=cs.Interval(0, 1),
            cr=cressieread.Estimator(), interval=cressieread.Interval())
for t, (e, r, p) in enumerate(zip(arrays["probability"], arrays["reward"], w), start=1):
    for one in made.values():
        one.add_example(float(e), float(r), float(p))
    if t in arrays["looks"]:
        low, high = made["sequence"].get(0.05)
        print(f"low{t}", repr(float(low))); print(f"high{t}", repr(float(high)))
        low, high = made["interval"].get(0.05)
        print(f"cr{t}", repr(float(made["cr"].get())))
        print(f"crlow{t}", repr(float(low))); print(f"crhigh{t}", repr(float(high)))
print("ips", repr(float(made["ips"].get()))); print("snips", repr(float(made["snips"].get())))
"""


def same_arrays(
    seed: int, concentration: float = 2.0, rounds: int = 2000
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return columns of a log with rewards from 0 to 1, and arrays for a peer.

    Parameters
    ----------
    seed : int
        Seed of the log.
    concentration : float, default 2.0
        How alike all probabilities are.
    rounds : int, default 2000
        Number of rounds.
    """
    rng = np.random.default_rng(seed)
    propensity, target = rng.dirichlet(np.full(4, concentration), (2, rounds))
    chosen = (rng.random((rounds, 1)) > propensity.cumsum(axis=1)).sum(axis=1).clip(max=3)
    columns = {
        "chosen": chosen,
        "probability": propensity[np.arange(rounds), chosen],
        "reward": (rng.random(rounds) < 0.35 + 0.1 * chosen).astype(float),
        "mean": rng.random((rounds, 4)),
    }
    log = {"arms": range(4), "probabilities": propensity, **columns}
    return log, {**columns, "target": target, "looks": np.array([10, 100, 1000, rounds])}


def _obp() -> Path:
    needs = ("numpy", "pandas", "scikit-learn", "scipy", "pyyaml", "tqdm")
    return peer("obp", *needs, without="obp==0.4.1")


def obp() -> None:
    """Print the largest difference to obp on the same arrays."""
    python = _obp()
    worst = 0.0
    for seed in range(5):
        log, arrays = same_arrays(seed)
        theirs = answer(python, OBP, arrays)
        for name, number in theirs.items():
            found = kh.evaluate(
                log, arrays["target"], estimator=name, threshold=3.0, shrinkage=5.0, min_size=0.0
            )
            worst = max(worst, abs(found.rows[0].value - number))
    print(f"obp 0.4.1: {len(theirs)} estimators on 5 logs, largest difference {worst:.1e}")


def vw() -> None:
    """Print the largest difference to vw-estimators on the same arrays."""
    python = peer("vw-estimators", "numpy", "scipy", without="vw-estimators==0.2.2")
    worst = dict.fromkeys(("ips", "snips", "sequence"), 0.0)
    for seed in range(5):
        # Large weights raise the guess of theirs above 1, where the inequality does not hold: ours
        # ends there. With weights near 1 both are the same.
        log, arrays = same_arrays(seed, concentration=2000.0)
        theirs = answer(python, VW, arrays)
        for name in ("ips", "snips"):
            found = kh.evaluate(log, arrays["target"], estimator=name)
            worst[name] = max(worst[name], abs(found.rows[0].value - theirs[name]))
        for low, high, t in _bounds(log, arrays):
            off = max(abs(low - theirs[f"low{t}"]), abs(high - theirs[f"high{t}"]))
            worst["sequence"] = max(worst["sequence"], off)
    worst["cressie-read"] = max(
        _cressie_read(python, seed, concentration)
        for seed in range(5)
        for concentration in (0.3, 2.0, 2000.0)
    )
    print(
        "vw-estimators 0.2.2, largest difference:",
        ", ".join(f"{k} {v:.1e}" for k, v in worst.items()),
    )


def _cressie_read(python: Path, seed: int, concentration: float) -> float:
    """Return the largest difference of value and interval at several numbers of rounds."""
    log, arrays = same_arrays(seed, concentration)
    # Before, all rewards may be the same: theirs then reaches 1.4e-9 farther, by its tolerance.
    looks = [10, 100, 1000, 2000]
    theirs = answer(python, VW, {**arrays, "looks": np.array(looks)})
    off = 0.0
    for t in looks:
        head = {name: log[name][:t] for name in ("chosen", "probability", "reward")}
        [row] = kh.evaluate(
            {"arms": log["arms"], **head},
            arrays["target"],
            estimator="cressie-read",
            bounds=(0.0, 1.0),
            min_size=0.0,
            check=False,
        ).rows
        names = (f"cr{t}", f"crlow{t}", f"crhigh{t}")
        pairs = zip((row.value, row.low, row.high), names, strict=True)
        off = max(off, *(abs(own - theirs[name]) for own, name in pairs))
    return off


def cressie_read(logs: int) -> None:
    """Print how often Cressie-Read's interval covers, on logs that are samples, by their weights.

    Parameters
    ----------
    logs : int
        Number of logs.
    """
    print("| concentration | rounds | cressie-read | ips |")
    for concentration in (0.3, 2.0, 20.0):
        for rounds in (50, 500, 2000):
            inside = []
            for seed in range(logs):
                log, arrays = same_arrays(seed, concentration, rounds)
                found = kh.evaluate(
                    log,
                    arrays["target"],
                    estimator=("cressie-read", "ips"),
                    bounds=(0.0, 1.0),
                    min_size=0.0,
                    check=False,
                )
                # Every arm has the share 1/4 on average, and rewards 0.35 to 0.65.
                inside.append([row.low <= 0.5 <= row.high for row in found.rows])
            shares = " | ".join(f"{one:.3f}" for one in np.mean(inside, axis=0))
            print(f"| {concentration:g} | {rounds:,} | {shares} |", flush=True)


def _bounds(log: dict[str, Any], arrays: dict[str, Any]) -> Iterator[tuple[float, float, int]]:
    """Yield our bounds at single looks, which are not those of earlier looks."""
    for t in arrays["looks"].tolist():
        found = kh.evaluation.value_sequence(log, arrays["target"], looks=[t])
        yield float(found.low[0]), float(found.high[0]), t


def open_bandit() -> None:
    """Print the value of uniform choices from real logs of Thompson sampling, beside their own.

    obp's wheel has 10,000 rows of both policies in each of three campaigns of the Open Bandit data.
    """
    python = _obp()
    [folder] = python.parents[1].glob("lib/*/site-packages/obp/dataset/obd")
    print("| campaign | estimator | from the Thompson log | 95% | uniform log | 95% |")
    for campaign in ("all", "men", "women"):
        own, other = (
            pd.read_csv(folder / name / campaign / f"{campaign}.csv") for name in ("random", "bts")
        )
        n_arms = int(max(own.item_id.max(), other.item_id.max())) + 1
        clicks = own.click.to_numpy(float)
        reach = 1.96 * clicks.std() / np.sqrt(len(clicks))
        log = {
            "arms": range(n_arms),
            "chosen": other.item_id.to_numpy(np.int64),
            "probability": other.propensity_score.to_numpy(float),
            "reward": other.click.to_numpy(float),
        }
        for row in kh.evaluate(log, "uniform", estimator=("ips", "snips"), check=False).rows:
            print(
                f"| {campaign} | {row.estimator} | {row.value:.4f} | {row.low:.4f} to "
                f"{row.high:.4f} | {clicks.mean():.4f} | {clicks.mean() - reach:.4f} to "
                f"{clicks.mean() + reach:.4f} |"
            )
        print(kh.evaluation.audit_log(log).problems)


# -- sequences ------------------------------------------------------------------------------------


def sequences(logs: int, rounds: int, seed: int) -> None:
    """Print how often sequences ever miss, and their width beside Vowpal Wabbit's.

    Parameters
    ----------
    logs, rounds : int
        Number of logs, and of rounds in each.
    seed : int
        Seed of the logs.
    """
    python = peer("vw-estimators", "numpy", "scipy", without="vw-estimators==0.2.2")
    looks = np.unique(np.geomspace(50, rounds, 40).astype(int))
    print(
        "| target | epsilon | normal ever misses | value misses | gain misses | width / VW, most |"
    )
    for epsilon in (0.02, 0.1):
        for target in ("fixed arm", "uniform", "v/2"):
            rng = np.random.default_rng(seed)
            missed, ratios = [], []
            for number in range(logs):
                world = simulated(rng, n_arms=2, rounds=rounds, signal=0.3, epsilon=epsilon)
                log, value, gain = bernoulli(world, rng, target)
                given = targets(world)[target]
                each = kh.evaluation.value_sequence(log, given, looks=looks, check=False)
                over = kh.evaluation.gain_sequence(log, given, looks=looks, check=False)
                missed.append(
                    (
                        _normal_misses(log, given, value, looks),
                        ((each.low > value[looks - 1]) | (each.high < value[looks - 1])).any(),
                        ((over.low > gain[looks - 1]) | (over.high < gain[looks - 1])).any(),
                    )
                )
                if number < 10:
                    arrays = _weights(log, given)
                    theirs = answer(python, VW, {**arrays, "looks": looks})
                    for t, low, high in zip(looks.tolist(), each.low, each.high, strict=True):
                        ratios.append((high - low) / (theirs[f"high{t}"] - theirs[f"low{t}"]))
            shares = " | ".join(f"{one:.3f}" for one in np.mean(missed, axis=0))
            print(f"| {target} | {epsilon:g} | {shares} | {max(ratios):.3f} |", flush=True)


def bernoulli(
    world: Simulated, rng: np.random.Generator, target: str
) -> tuple[Logged, Floats, Floats]:
    """Return a log with rewards 0 or 1, and running means of the target's value and gain.

    The chance of a reward is Phi(value / 2). The posterior is that of the normal rewards, which
    only makes the logged choices: sequences need no right model.

    Parameters
    ----------
    world : Simulated
        A log with normal rewards.
    rng : Generator
        Source of the rewards.
    target : str
        Name of the target.
    """
    from scipy.special import ndtr

    log = world.log
    assert log.mean is not None
    assert log.width is not None
    assert log.propensity is not None
    chance = ndtr(world.values / 2.0)
    reward = (rng.random(log.n_rounds) < chance[np.arange(log.n_rounds), log.chosen]).astype(float)
    made = Logged(
        arms=log.arms,
        chosen=log.chosen,
        probability=log.probability,
        reward=reward,
        mean=log.mean,
        width=log.width,
        dispersion=1.0,
        epsilon=log.epsilon,
        probabilities=log.propensity,
    )
    # The mean of Phi(a + b z) over a standard normal z is Phi(a / sqrt(1 + b^2)).
    spread = np.sqrt(1.0 + (world.eta[:, 1:] ** 2).sum(axis=1) / 4.0)
    arms = ndtr(world.eta[:, 0] / 2.0 / spread)
    steps = np.arange(1, log.n_rounds + 1)
    if target == "v/2":
        propensity = kh.choice_probabilities(log.mean, 0.5 * log.width)
        value = np.cumsum((propensity * chance).sum(axis=1)) / steps
    else:
        value = np.full(log.n_rounds, arms[0] if target == "fixed arm" else arms.mean())
    logged = np.cumsum((log.propensity * chance).sum(axis=1)) / steps
    return made, value, value - logged


def _weights(log: Logged, target: Any) -> dict[str, Any]:
    propensity = np.zeros((log.n_rounds, log.n_arms))
    if isinstance(target, FixedArm):
        propensity[:, 0] = 1.0
    elif target == "uniform":
        propensity[:] = 1.0 / log.n_arms
    else:
        assert log.mean is not None
        assert log.width is not None
        propensity = kh.choice_probabilities(log.mean, target.v * log.width)
    columns = {"chosen": log.chosen, "probability": log.probability, "reward": log.reward}
    return {**columns, "target": propensity}


def _normal_misses(log: Logged, target: Any, value: Floats, looks: Ints) -> bool:
    arrays = _weights(log, target)
    row = np.arange(log.n_rounds)
    x = arrays["target"][row, log.chosen] / log.probability * log.reward
    mean = np.cumsum(x)[looks - 1] / looks
    spread = np.sqrt(np.maximum(np.cumsum(x * x)[looks - 1] / looks - mean**2, 0.0) / looks)
    return bool((np.abs(mean - value[looks - 1]) > 1.96 * spread).any())


# -- speed ----------------------------------------------------------------------------------------


def speed() -> None:
    """Print processor seconds for a million rows, and rows per second with an integral."""
    rng = np.random.default_rng(0)
    n, k = 1_000_000, 10
    propensity = np.full((n, k), 1.0 / k)
    target = rng.random((n, k))
    target /= target.sum(axis=1, keepdims=True)
    log = Logged(
        arms=range(k),
        chosen=rng.integers(0, k, n),
        probability=np.full(n, 1.0 / k),
        reward=rng.normal(size=n),
        mean=rng.normal(size=(n, k)),
        probabilities=propensity,
    )
    start = time.process_time()
    kh.evaluate(log, target, estimator=list(ESTIMATORS), check=False)
    print(
        f"{len(ESTIMATORS)} estimators, {n:,} rows x {k} arms: {time.process_time() - start:.2f} s"
    )
    start = time.process_time()
    kh.evaluation.audit_log(log)
    print(f"audit: {time.process_time() - start:.2f} s")
    for k in (2, 5, 10):
        world = simulated(rng, n_arms=k, rounds=100_000, signal=0.3, epsilon=0.0)
        for name, one in {
            "v/2": kh.ThompsonSampling(v=0.5),
            "another prior": kh.ThompsonSampling(v=1.0, prior_precision=3.0),
        }.items():
            start = time.process_time()
            kh.evaluate(world.log, one, estimator="dr", check=False)
            rate = world.log.n_rounds / (time.process_time() - start)
            print(f"{name}, {k} arms: {rate:,.0f} rows/s")


def main() -> None:
    """Run one of the checks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "what",
        choices=[
            "obp",
            "vw",
            "coverage",
            "controls",
            "sequences",
            "open-bandit",
            "speed",
            "cressie-read",
        ],
    )
    parser.add_argument("--logs", type=int, default=200)
    parser.add_argument("--arms", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if given.what == "coverage":
        coverage(given.logs, given.arms, given.rounds, given.seed)
    elif given.what == "controls":
        controls(given.logs, given.seed)
    elif given.what == "cressie-read":
        cressie_read(given.logs)
    elif given.what == "sequences":
        sequences(given.logs, given.rounds, given.seed)
    else:
        {"obp": obp, "vw": vw, "open-bandit": open_bandit, "speed": speed}[given.what]()


if __name__ == "__main__":
    main()
