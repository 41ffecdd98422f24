"""Check off-policy evaluation: against peers, by coverage on simulated logs, and its speed.

    python -m benchmarks.evaluation obp                 # equal to obp 0.4.1 on the same arrays
    python -m benchmarks.evaluation vw                  # and to vw-estimators 0.2.2
    python -m benchmarks.evaluation cressie-read        # coverage of its interval
    python -m benchmarks.evaluation coverage --logs 1000 --arms 2 --rounds 500
    python -m benchmarks.evaluation sequences --logs 200
    python -m benchmarks.evaluation controls            # propensities that are wrong must show
    python -m benchmarks.evaluation open-bandit         # real policies, from each other's logs
    python -m benchmarks.evaluation speed
    python -m benchmarks.evaluation formats             # lines per second of others' logs
    python -m benchmarks.evaluation vowpal-wabbit       # which reads what we write

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
from typing import Any

import numpy as np

import keyhole as kh
from benchmarks import formats
from benchmarks.peers.environments import HOME, environment, pip_install
from keyhole.core import Floats
from keyhole.evaluation import Logged
from keyhole.evaluation.estimators import ESTIMATORS
from keyhole.lab.studies.click_logs import (
    clicks,
    normal_bounds,
    running_gain,
    running_value,
    target_propensity,
)
from keyhole.lab.studies.evaluation_controls import PROPENSITIES, control
from keyhole.lab.studies.thompson_logs import ThompsonLogs, targets, truth

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
            recipe = ThompsonLogs(n_arms=n_arms, signal=signal, epsilon=epsilon)
            cells: dict[tuple[str, str], list[tuple[float, float, float, float]]] = {}
            for _ in range(logs):
                world = recipe.draw(rng, rounds)
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

    Parameters
    ----------
    logs : int
        Number of logs.
    seed : int
        Seed of the logs.
    """
    print("| propensities | cover, uniform | audit objects | without scores |")
    recipe = ThompsonLogs(n_arms=3, signal=0.3, epsilon=0.1)
    for kind in PROPENSITIES:
        rng = np.random.default_rng(seed)
        found = [control(recipe.draw(rng, 2000), kind, rng) for _ in range(logs)]
        print(f"| {kind} |", " | ".join(f"{one:.3f}" for one in np.mean(found, axis=0)), "|")


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
            recipe = ThompsonLogs(n_arms=2, signal=0.3, epsilon=epsilon)
            missed, ratios = [], []
            for number in range(logs):
                made = clicks(recipe.draw(rng, rounds), rng)
                given = targets(made.source)[target]
                value = running_value(made, target)[looks - 1]
                gain = running_gain(made, target)[looks - 1]
                each = kh.evaluation.value_sequence(made.log, given, looks=looks, check=False)
                over = kh.evaluation.gain_sequence(made.log, given, looks=looks, check=False)
                missed.append(
                    (
                        _misses(*normal_bounds(made, target, looks), value),
                        _misses(each.low, each.high, value),
                        _misses(over.low, over.high, gain),
                    )
                )
                if number < 10:
                    log = made.log
                    arrays = {
                        "chosen": log.chosen,
                        "probability": log.probability,
                        "reward": log.reward,
                        "target": target_propensity(made, target),
                        "looks": looks,
                    }
                    theirs = answer(python, VW, arrays)
                    for t, low, high in zip(looks.tolist(), each.low, each.high, strict=True):
                        ratios.append((high - low) / (theirs[f"high{t}"] - theirs[f"low{t}"]))
            shares = " | ".join(f"{one:.3f}" for one in np.mean(missed, axis=0))
            print(f"| {target} | {epsilon:g} | {shares} | {max(ratios):.3f} |", flush=True)


def _misses(low: Floats, high: Floats, truth: Floats) -> bool:
    return bool(((low > truth) | (high < truth)).any())


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
        world = ThompsonLogs(n_arms=k, signal=0.3, epsilon=0.0).draw(rng, 100_000)
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
            *("obp", "vw", "coverage", "controls", "sequences", "open-bandit", "speed"),
            *("formats", "vowpal-wabbit", "cressie-read"),
        ],
    )
    parser.add_argument("--logs", type=int, default=200)
    parser.add_argument("--arms", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--lines", type=int, default=1_000_000)
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
    elif given.what == "formats":
        formats.speed(given.lines)
        formats.memory(min(given.lines, 100_000))
    else:
        {
            "obp": obp,
            "vw": vw,
            "open-bandit": formats.open_bandit,
            "speed": speed,
            "vowpal-wabbit": formats.accepted,
        }[given.what]()


if __name__ == "__main__":
    main()
