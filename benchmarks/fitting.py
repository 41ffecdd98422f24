"""Measure fits from Parquet: rows per second of one core, beside what bounds them.

    python -m benchmarks.fitting
    python -m benchmarks.fitting --rows 1000000 --arms 100

For each layout and dimension, in one run and on one thread: `kh.fit` from the file to the bandit;
decoding the same columns alone, which no fit from Parquet can do without; sums of squares of the
same rows by arm in memory, by our kernel and by BLAS on one thread. The bound is what decoding and
the faster of the two sums take together. Times are of the processor, the least of several; what is
measured takes turns, since the speed of a shared machine drifts. Of a log, decisions are counted,
each of which has a second row for its reward. The last column needs two free cores.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from threadpoolctl import threadpool_limits

import keyhole as kh
from benchmarks.timing import best
from keyhole.core import Floats, Ints, Summing

ROUNDS = 5
BATCH = 2**14


class Rows:
    """Rows of a history, and the files that hold them.

    Parameters
    ----------
    n, dim, n_arms : int
        Number of rows, of numbers in an observation, and of arms.
    folder : Path
        Where files go.
    """

    def __init__(self, n: int, dim: int, n_arms: int, folder: Path) -> None:
        rng = np.random.default_rng(dim)
        self.y: Floats = rng.standard_normal((n, dim))
        self.chosen: Ints = rng.integers(0, n_arms, n)
        self.rewards: Floats = rng.standard_normal(n)
        self.arms = [f"arm {k}" for k in range(n_arms)]
        self.folder, self.dim = folder, dim

    def _written(self, name: str, seen: dict[str, Any]) -> Path:
        arms = pa.DictionaryArray.from_arrays(pa.array(self.chosen), self.arms).cast(pa.string())
        table = pa.table({"arm": arms, "reward": self.rewards, **seen})
        path = self.folder / f"{name}-{self.dim}.parquet"
        pq.write_table(table, path)  # as pyarrow writes by default: row groups of a million
        return path

    def flat(self) -> tuple[Path, dict[str, Any]]:
        """Return a file with a column for each number, and the columns' names."""
        columns = {f"y{j}": np.ascontiguousarray(column) for j, column in enumerate(self.y.T)}
        return self._written("columns", columns), {"observation": list(columns)}

    def lists(self) -> tuple[Path, dict[str, Any]]:
        """Return a file with a column of lists, and its name."""
        seen = pa.FixedSizeListArray.from_arrays(pa.array(self.y.reshape(-1)), self.dim)
        return self._written("lists", {"y": seen}), {"observation": "y"}

    def log(self) -> tuple[Path, None]:
        """Return a log in Parquet that has as many decisions, each with a reward."""
        n, policy = 20_000, kh.ThompsonSampling(v=1.0)
        path = self.folder / f"log-{self.dim}.parquet"
        lines = path.with_suffix(".jsonl")
        bandit = kh.Bandit(policy, arms=self.arms, dim=self.dim, seed=1, log=lines)
        for y, reward in zip(self.y[:n], self.rewards[:n].tolist(), strict=True):
            bandit.learn(bandit.choose(y), reward)
        kh.Log(lines).to_parquet(path)
        once = pq.read_table(path)
        table = pa.concat_tables([once] * (len(self.y) // n))
        pq.write_table(
            table, path, row_group_size=50_000, use_dictionary=["kind"], write_page_checksum=True
        )
        return path, None

    def fit(self, path: Path, columns: dict[str, Any] | None, workers: int = 1) -> None:
        """Fit a bandit from a file.

        Parameters
        ----------
        path : Path
            The file.
        columns : dict, optional
            Its columns.
        workers : int, default 1
            Number of threads.
        """
        kh.fit(path, kh.ThompsonSampling(), arms=self.arms, columns=columns, workers=workers)

    def sums(self) -> None:
        """Add up squares by arm with our kernel, of rows in memory."""
        summing = Summing(len(self.arms), self.dim)
        summing.add(self.chosen, self.y, self.rewards)

    def multiply(self) -> None:
        """Add up squares by arm with BLAS on one thread, of rows in memory, in batches."""
        with threadpool_limits(1):
            for first in range(0, len(self.y), BATCH):
                y, chosen = self.y[first : first + BATCH], self.chosen[first : first + BATCH]
                for k in range(len(self.arms)):
                    own = y[chosen == k]
                    own.T @ own


def decode(path: Path, columns: list[str]) -> None:
    """Decode columns of a file, as Arrow arrays.

    Parameters
    ----------
    path : Path
        The file.
    columns : list of str
        The columns.
    """
    file = pq.ParquetFile(path, read_dictionary=["arm"])
    for group in range(file.num_row_groups):
        for _ in file.iter_batches(BATCH, row_groups=[group], columns=columns, use_threads=False):
            pass


def rates(works: dict[str, Callable[[], None]], n: int) -> dict[str, float]:
    """Return rows per second of the processor, the best of several rounds in turns.

    Parameters
    ----------
    works : dict
        What is measured, by name.
    n : int
        Number of rows.
    """
    least = dict.fromkeys(works, np.inf)
    for _ in range(ROUNDS):
        for name, work in works.items():
            start = time.process_time()
            work()
            least[name] = min(least[name], time.process_time() - start)
    return {name: n / seconds for name, seconds in least.items()}


def compare(n: int, n_arms: int) -> None:
    """Print a row for each dimension and layout.

    Parameters
    ----------
    n, n_arms : int
        Number of rows at dim 20, and of arms.
    """
    pa.set_cpu_count(1)
    print("| dim | layout | fit | decode alone | sums alone | BLAS by arm | of the bound |", end="")
    print(" 2 threads |\n|---:|---|---:|---:|---:|---:|---:|---:|")
    for dim in (20, 80):
        with tempfile.TemporaryDirectory() as folder:
            rows = Rows(n * 20 // dim, dim, n_arms, Path(folder))
            files = {"columns": rows.flat(), "lists": rows.lists(), "log": rows.log()}
            works: dict[str, Callable[[], None]] = {"sums": rows.sums, "BLAS": rows.multiply}
            for name, (path, columns) in files.items():
                read = ["arm", "learned", "observation"]
                if columns is not None:
                    seen = columns["observation"]
                    read = ["arm", "reward", *([seen] if isinstance(seen, str) else seen)]
                works[f"fit {name}"] = partial(rows.fit, path, columns)
                works[f"decode {name}"] = partial(decode, path, read)
            found = rates(works, len(rows.y))
            for name, (path, columns) in files.items():
                fit, decoding = found[f"fit {name}"], found[f"decode {name}"]
                bound = 1.0 / (1.0 / decoding + 1.0 / max(found["sums"], found["BLAS"]))
                one, two = (best(partial(rows.fit, path, columns, w), 3) for w in (1, 2))
                four = (fit, decoding, found["sums"], found["BLAS"])
                cells = " | ".join(f"{rate / 1e6:.1f}M" for rate in four)
                print(f"| {dim} | {name} | {cells} | {fit / bound:.2f} | x {one / two:.2f} |")


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000, help="rows at dim 20")
    parser.add_argument("--arms", type=int, default=5)
    given = parser.parse_args()
    compare(given.rows, given.arms)


if __name__ == "__main__":
    main()
