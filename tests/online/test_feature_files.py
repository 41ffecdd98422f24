"""Files of bandits with units, predictions of missing entries and a zero of rewards."""

import json
from pathlib import Path

import numpy as np
import pytest

import keyhole as kh
from tests.featured import ALL, made, observations, play, played, with_missing


@pytest.mark.parametrize("before", [5, 60])
def test_saved_and_loaded_it_goes_on_to_the_bit(tmp_path: Path, before: int) -> None:
    """Before the units are fixed, and after."""
    ys = with_missing(observations(200), 0.2)
    whole, first = made(**ALL), made(**ALL)
    play(whole, ys[:before])
    play(first, ys[:before])
    first.save(tmp_path / "bandit.npz")
    second = kh.Bandit.load(tmp_path / "bandit.npz", resume=True)
    assert second.counts == whole.counts
    assert play(second, ys[before:]) == play(whole, ys[before:])
    assert (second.posterior.mean == whole.posterior.mean).all()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("seen_pairs", np.full((4, 4), -1.0)),
        ("units_scale", np.full(4, -1.0)),
        ("units_middle", np.full(4, np.nan)),
        ("seen_total", np.zeros(3)),
    ],
)
def test_damaged_files_are_refused(tmp_path: Path, name: str, value: np.ndarray) -> None:
    bandit = made(**ALL)
    play(bandit, observations(50))
    bandit.save(tmp_path / "bandit.npz")
    with np.load(tmp_path / "bandit.npz") as file:
        arrays = {**file, name: value}
    np.savez(tmp_path / "bad.npz", **arrays)
    with pytest.raises(kh.FileError):
        kh.Bandit.load(tmp_path / "bad.npz")


def test_counts_that_would_overflow_are_refused(tmp_path: Path) -> None:
    """They fit each other, but the next value would be counted below zero."""
    bandit = made(**ALL)
    play(bandit, observations(50))
    bandit.save(tmp_path / "bandit.npz")
    with np.load(tmp_path / "bandit.npz") as file:
        counts = {"sample_seen": np.full(4, 2**63 - 1), "sample_stride": np.full(4, 2**62)}
        np.savez(tmp_path / "bad.npz", **{**file, **counts})
    with pytest.raises(kh.FileError, match="samples do not fit"):
        kh.Bandit.load(tmp_path / "bad.npz")


def test_the_zero_is_in_the_file(tmp_path: Path) -> None:
    _, _, bandit = played(100.0, intercept=True)
    bandit.save(tmp_path / "bandit.npz")
    again = kh.Bandit.load(tmp_path / "bandit.npz", resume=True)
    assert again._observer.zero == bandit._observer.zero
    assert again.choose(np.ones(4)).score == bandit.choose(np.ones(4)).score
    with np.load(tmp_path / "bandit.npz") as file:
        arrays = dict(file)
    header = json.loads(str(arrays["header"]))
    for zero in (None, "x", float("nan")):
        arrays["header"] = np.array(json.dumps({**header, "zero": zero}))
        np.savez(tmp_path / "bad.npz", **arrays)
        with pytest.raises(kh.FileError):
            kh.Bandit.load(tmp_path / "bad.npz")
