"""Draws that are a keyed hash of a name."""

import hashlib

import numpy as np
from scipy import stats

from keyhole.core import key_streams
from keyhole.core.kernels import Bits, fill_normals, fill_uniforms

KEY = bytes(range(32))


def streams(name: str, key: bytes = KEY) -> Bits:
    made: Bits = np.zeros((2, 4), np.uint64)
    key_streams(made, key, name)
    return made


def test_the_state_is_the_hash_by_hand() -> None:
    digest = hashlib.blake2b(b"o-4711", digest_size=48, key=KEY).digest()
    words = [int.from_bytes(digest[8 * k : 8 * k + 8], "little") for k in range(6)]
    assert streams("o-4711").tolist() == [[*words[:3], 1], [*words[3:], 1]]


def test_a_name_has_the_same_draws_again_and_other_names_and_keys_have_others() -> None:
    assert (streams("a") == streams("a")).all()
    assert (streams("a")[:, :3] != streams("b")[:, :3]).all()
    assert (streams("a")[:, :3] != streams("a", KEY[::-1])[:, :3]).all()


def test_first_draws_of_many_names_are_independent_of_each_other() -> None:
    n = 20_000
    normals, uniforms = np.empty((n, 3)), np.empty((n, 2))
    for k in range(n):
        state = streams(f"o-{k}")
        fill_normals(state[0], normals[k])
        fill_uniforms(state[1], uniforms[k])
    for column in normals.T:
        assert stats.kstest(column, "norm").pvalue > 1e-4
    for column in uniforms.T:
        assert stats.kstest(column, "uniform").pvalue > 1e-4
    joint = np.column_stack([normals, uniforms, np.roll(normals[:, :1], 1, axis=0)])
    # Correlations of n independent pairs have a standard deviation of 1 / sqrt(n).
    off = np.corrcoef(joint.T)[np.triu_indices(6, 1)]
    assert np.abs(off).max() < 4.5 / np.sqrt(n)


def test_names_are_hashed_whole() -> None:
    # A weak mixing of names would show here: they differ in one letter.
    first = np.array([streams(f"{'x' * 150}{k}")[0, 0] for k in range(2000)])
    assert len(set(first.tolist())) == 2000
