"""Logs of other libraries: how fast they are read, and whether Vowpal Wabbit reads what we write.

`python -m benchmarks.evaluation` runs these checks.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import keyhole as kh
from benchmarks.peers.environments import PEERS
from keyhole.evaluation import Logged, write_log

DRINKS = ("Cappucino", "Cold brew", "Iced mocha", "Latte", "Espresso")
GROUP = 10_000


# -- speed ----------------------------------------------------------------------------------------


def personalizer(rng: np.random.Generator, first: int) -> Iterator[bytes]:
    """Yield lines as Personalizer exports them: five actions with tags, features that are texts.

    Parameters
    ----------
    rng : Generator
        Source of all random numbers.
    first : int
        Number of the first event.
    """
    actions = ",".join(
        f'{{"_tag":"{name}","i":{{"constant":1,"id":"{name}"}},"j":[{{"type":"hot",'
        '"origin":"kenya","organic":"yes","roast":"dark"}]}'
        for name in DRINKS
    )
    clicks = rng.random(GROUP) < 0.3
    best = rng.integers(1, 6, GROUP)
    other = rng.random(GROUP) < 0.2
    order = rng.permuted(np.tile(np.arange(1, 6), (GROUP, 1)), axis=1)
    for i in range(GROUP):
        # The best action has 0.84; the chosen one stands first.
        rest = [k for k in order[i].tolist() if k != best[i]]
        a = [rest[0], int(best[i]), *rest[1:]] if other[i] else [int(best[i]), *rest]
        p = [0.84 if k == best[i] else 0.04 for k in a]
        cost, event = -float(clicks[i]), f"{first + i:032x}"
        yield (
            f'{{"_label_cost":{cost},"_label_probability":{p[0]},"_label_Action":{a[0]},'
            f'"_labelIndex":{a[0] - 1},'
            f'"o":[{{"v":{-cost},"EventId":"{event}","ActionTaken":false}}],"Timestamp":"2021-02-04T16:31:29.2460000Z","Version":"1","EventId":"{event}","a":{a},'
            '"c":{"FromUrl":[{"timeofday":"Morning","weather":"Sunny","name":"Cathy"}],"_multi":'
            f'[{actions}]}},"p":{p},"VWState":{{"m":"ff0744c1aa494e1ab39ba0c78d048146/550c12cb"}},'
            f'"_original_label_cost":{cost}}}\n'
        ).encode()


def numeric(rng: np.random.Generator, first: int) -> Iterator[bytes]:
    """Yield lines of dsjson with ten actions and ten features that are numbers.

    Parameters
    ----------
    rng : Generator
        Source of all random numbers.
    first : int
        Number of the first event.
    """
    x = rng.normal(size=(GROUP, 10)).round(6)
    chosen = rng.integers(1, 11, GROUP)
    actions = ",".join(f'{{"Action":{{"id":"a{k}"}}}}' for k in range(10))
    for i in range(GROUP):
        a = [int(chosen[i]), *(k for k in range(1, 11) if k != chosen[i])]
        seen = ",".join(f'"x{j}":{one}' for j, one in enumerate(x[i].tolist()))
        yield (
            f'{{"_label_cost":{-float(x[i, 0] > 0)},"_label_probability":0.1,'
            f'"_label_Action":{a[0]},"_labelIndex":{a[0] - 1},"EventId":"{first + i}",'
            f'"a":{a},"c":{{"User":{{{seen}}},"_multi":[{actions}]}},"p":{[0.1] * 10}}}\n'
        ).encode()


def text(rng: np.random.Generator, first: int) -> Iterator[bytes]:
    """Yield lines of Vowpal Wabbit's text with ten features.

    Parameters
    ----------
    rng : Generator
        Source of all random numbers.
    first : int
        Not used.
    """
    del first
    x = rng.normal(size=(GROUP, 10)).round(6)
    for i, row in enumerate(x.tolist()):
        seen = " ".join(f"x{j}:{one}" for j, one in enumerate(row))
        yield f"{i % 10 + 1}:{-float(row[0] > 0)}:0.1 |User {seen}\n".encode()


FILES: dict[str, Callable[[np.random.Generator, int], Iterator[bytes]]] = {
    "dsjson of Personalizer, 5 actions": personalizer,
    "dsjson, 10 actions, 10 numbers": numeric,
    "cb text, 10 numbers": text,
}


def speed(lines: int) -> None:
    """Print lines per second of processor time, and seconds for a million lines.

    Parameters
    ----------
    lines : int
        Number of lines in each file.
    """
    print("| file | bytes a line | lines/s | a million lines | json.loads alone |")
    print("|---|---:|---:|---:|---:|")
    for name, make in FILES.items():
        rng = np.random.default_rng(1)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "log")
            with path.open("wb") as file:
                for first in range(0, lines, GROUP):
                    file.writelines(make(rng, first))
            start = time.process_time()
            log = Logged.of(path)
            taken = time.process_time() - start
            alone = _json_alone(path) if "dsjson" in name else "-"
            size = path.stat().st_size / log.n_rounds
        rate = log.n_rounds / taken
        print(f"| {name} | {size:,.0f} | {rate:,.0f} | {1e6 / rate:.1f} s | {alone} |", flush=True)


def _json_alone(path: Path) -> str:
    """Return the lines per second of the standard library's decoder, which only decodes."""
    with path.open("rb") as file:
        some = [next(file) for _ in range(GROUP)]
    start = time.process_time()
    for line in some:
        json.loads(line)
    return f"{len(some) / (time.process_time() - start):,.0f}"


def memory(lines: int) -> None:
    """Print the largest memory of reading, beside that of the log itself.

    Parameters
    ----------
    lines : int
        Number of lines.
    """
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "log")
        with path.open("wb") as file:
            for first in range(0, lines, GROUP):
                file.writelines(personalizer(rng, first))
        tracemalloc.start()
        log = Logged.of(path)
        kept, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        size = path.stat().st_size
    print(
        f"{log.n_rounds:,} lines, {size / 1e6:.0f} MB: at most {most / 1e6:.0f} MB of memory, and "
        f"{kept / 1e6:.0f} MB for the log"
    )


# -- Vowpal Wabbit --------------------------------------------------------------------------------

# Every line is parsed strictly, its label compared, and learned; then whole files are.
CHECK = """
import json, sys
from vowpalwabbit import LabelType, Workspace
dsjson, cb, arms = sys.argv[1:4]
def labels(examples):
    return [(i, c.action, c.cost, c.probability) for i, one in enumerate(examples)
            for c in one.get_label(LabelType.CONTEXTUAL_BANDIT).costs if c.probability > 0]
vw = Workspace("--cb_explore_adf --dsjson --strict_parse --quiet")
n = labelled = 0
worst = 0.0
for line in open(dsjson):
    given, examples = json.loads(line), vw.parse(line)
    found = labels(examples)
    assert len(examples) == 1 + len(given["a"]), (len(examples), given["a"])
    if "_label_cost" in given:
        [(place, _, cost, p)] = found
        assert place == 1 + given["_labelIndex"], (place, given)
        worst = max(worst, abs(cost - given["_label_cost"]), abs(p - given["_label_probability"]))
        labelled += 1
    else:
        assert found == [], found
    features = [one.get_feature_number() for one in examples]
    assert min(features) > 0, features
    vw.learn(examples)
    vw.finish_example(examples)
    n += 1
whole = Workspace(f"--cb_explore_adf --dsjson --strict_parse --quiet -d {dsjson}")
assert whole.get_weighted_examples() == n, (whole.get_weighted_examples(), n)
print("dsjson", n); print("labelled", labelled); print("features", features[0])
vw = Workspace(f"--cb {arms} --quiet")
for k, line in enumerate(open(cb), start=1):
    example = vw.parse(line.rstrip("\\n"))
    action, cost, p = line.split()[0].split(":")
    [(_, a, c, q)] = labels([example])
    assert a == int(action), (a, line)
    worst = max(worst, abs(c - float(cost)), abs(q - float(p)))
    vw.learn(example)
    vw.finish_example(example)
print("cb", k); print("difference", worst)
"""


def accepted() -> None:
    """Print how many of our lines Vowpal Wabbit parses strictly, and how far its labels are off."""
    peer = next(one for one in PEERS if one.name == "vowpalwabbit")
    version = peer.install()
    for name, log in _logs().items():
        with tempfile.TemporaryDirectory() as folder:
            files = [str(Path(folder, one)) for one in ("log.dsjson", "log.vw")]
            write_log(log, files[0], "dsjson")
            shared = {"observation": None} if name == "rows of their own" else {}
            rewarded = {one: getattr(log.head(log.n_rewarded), one) for one in COLUMNS}
            write_log({**rewarded, **shared}, files[1], "cb")
            command = [str(peer.python), "-c", CHECK, *files, str(log.n_arms)]
            shown = subprocess.check_output(command, text=True)
        found = dict(map(str.split, shown.splitlines()))
        print(
            f"vowpalwabbit {version}, {name}: {found['dsjson']} lines of dsjson "
            f"({found['labelled']} with a label) and {found['cb']} of text parsed and learned, "
            f"labels differ by at most {float(found['difference']):.1e} (float32)"
        )


COLUMNS = ("arms", "chosen", "probability", "reward", "probabilities", "observation", "candidates")


def _logs() -> dict[str, Logged]:
    """Return logs with all that can be written: names, candidates, missing rewards, own rows."""
    rng = np.random.default_rng(1)
    n, k, d = 500, 4, 3
    candidates = rng.random((n, k)) < 0.7
    chosen = rng.integers(0, k, n)
    candidates[np.arange(n), chosen] = candidates[np.arange(n), (chosen + 1) % k] = True
    p = np.where(candidates, rng.random((n, k)), 0.0)
    p /= p.sum(axis=1, keepdims=True)
    columns: dict[str, Any] = {
        "arms": ["red: 1", "green|2", "blue 'x'", "grün"],
        "chosen": chosen,
        "probability": p[np.arange(n), chosen],
        "probabilities": p,
        "reward": np.where(np.arange(n) < 400, rng.normal(size=n), np.nan),
        "candidates": candidates,
    }
    own = rng.normal(size=(n, k, d))
    plain = {**columns, "arms": [1, 2, 3, 4], "candidates": np.ones((n, k), bool)}
    return {
        "one row for all arms": Logged(**columns, observation=rng.normal(size=(n, d))),
        "rows of their own": Logged(**columns, observation=own),
        "numbers and no context": Logged(**{**plain, "reward": rng.normal(size=n)}),
    }


# -- Open Bandit ----------------------------------------------------------------------------------


def open_bandit() -> None:
    """Print each policy's value from the other's log, beside the mean of its own log."""
    print("| campaign | policy | own log | 95% | log of the other | 95% | size |")
    print("|---|---|---:|---|---:|---|---:|")
    for campaign in ("all", "men", "women"):
        frames = kh.datasets.open_bandit(campaign)
        logs = {name: Logged.of(one, format="open-bandit") for name, one in frames.items()}
        shares = kh.datasets.daily_shares(frames["bts"], frames["random"])
        for policy, log, target in (
            ("random", logs["bts"], "uniform"),
            ("bts", logs["random"], shares),
        ):
            clicks = logs[policy].reward
            reach = 1.96 * clicks.std() / np.sqrt(len(clicks))
            [row] = kh.evaluate(log, {policy: target}, estimator="snips").rows
            found = f"{row.value:.4f} | {row.low:.4f} to {row.high:.4f}"
            if row.note.startswith("refused"):
                found = "refused | "
            print(
                f"| {campaign} | {policy} | {clicks.mean():.4f} | {clicks.mean() - reach:.4f} to "
                f"{clicks.mean() + reach:.4f} | {found} | {row.effective_size:,.0f} |"
            )
