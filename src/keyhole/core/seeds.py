"""Named random streams from one root seed: draws from one never shift the draws of another."""

import math
import numbers
import sys
import zlib
from collections.abc import Callable
from functools import cache, cached_property
from typing import Any, TypeAlias

import numpy as np

from keyhole.core.kernels import Bits, Floats, fill_normals, fill_uniforms, stream_state
from keyhole.errors import InvalidValue, shown

Seed: TypeAlias = int | np.random.SeedSequence | None
Shape: TypeAlias = int | tuple[int, ...] | None
Memory: TypeAlias = dict[str, Floats]

# Seeds larger than any digest are typing errors, and Python does not print them.
LARGEST_SEED = 2**4096
# The counter of a new stream, as a word of its state.
_ONE = (1).to_bytes(8, sys.byteorder)


def seed_sequence(seed: Seed) -> np.random.SeedSequence:
    """Return the seed sequence of an integer or, for None, of fresh entropy.

    A seed sequence is returned as it is.
    """
    given = seed.entropy if isinstance(seed, np.random.SeedSequence) else seed
    whole = isinstance(given, numbers.Integral) and not isinstance(given, bool | np.timedelta64)
    if whole and not 0 <= given < LARGEST_SEED:  # type: ignore[operator] # a whole number
        raise InvalidValue(f"seed must be from 0 to below 2**4096, got {shown(given)}")
    if isinstance(seed, np.random.SeedSequence):
        return seed
    if seed is not None and not whole:
        raise InvalidValue(f"seed must be a whole number of at least 0, or None, got {shown(seed)}")
    return np.random.SeedSequence(None if seed is None else int(seed))


def child_seed(parent: np.random.SeedSequence, key: int) -> np.random.SeedSequence:
    """Return the child of a seed sequence by its key.

    It depends neither on which other children have been made nor on their order.

    Parameters
    ----------
    parent : numpy.random.SeedSequence
        The parent.
    key : int
        Number of the child.

    Returns
    -------
    numpy.random.SeedSequence
        The child.
    """
    return np.random.SeedSequence(parent.entropy, spawn_key=(*parent.spawn_key, key))


def choice_streams(seed: Seed) -> Bits:
    """Return the states of the streams that choices are drawn from, (2, 4).

    The streams are "policy" (normals) and "coin" (uniform numbers), as in a simulation: a bandit
    with the seed of a replication chooses the arms that are chosen there.
    """
    named = Streams(seed)
    return np.stack([named["policy"].state, named["coin"].state])


def key_streams(streams: Bits, key: bytes, name: str) -> None:
    """Set the streams that a choice is drawn from by a keyed hash of its name.

    Without the key the numbers of a name cannot be predicted; with it the same numbers are drawn
    again. A hash needs no further mixing.

    Parameters
    ----------
    streams : ndarray of uint64 of shape (2, 4)
        The states of the streams, which are overwritten.
    key : bytes
        The key, of 16 to 64 bytes.
    name : str
        The name of the choice.
    """
    digest = _blake2b()(name.encode(), digest_size=48, key=key).digest()
    streams.data.cast("B")[:] = digest[:24] + _ONE + digest[24:] + _ONE


@cache
def _blake2b() -> Any:
    # Imported late: with OpenSSL it takes milliseconds, which every first decision would wait for.
    # And once: an import statement takes as long as the hash.
    from hashlib import blake2b

    return blake2b


def _words(seed: np.random.SeedSequence) -> Bits:
    words: Bits = seed.generate_state(3, np.uint64).astype(np.uint64)
    return words


class Stream:
    """Stream of random numbers: a NumPy generator, with bulk normals at three times its speed.

    Kernels draw `standard_normal` and `random`. All other methods are those of a NumPy generator,
    which is independent of the kernels' stream and made when first used: most streams never use it.

    Parameters
    ----------
    parent : numpy.random.SeedSequence
        Seed from which the generator is derived.
    words : ndarray of uint64 of shape (3,)
        Words of the seed that the kernels' stream begins from.
    key : int
        Number of the stream.
    """

    def __init__(self, parent: np.random.SeedSequence, words: Bits, key: int) -> None:
        self._parent, self._key = parent, key
        # The current state, for kernels that draw by themselves.
        self.state = stream_state(words, key)

    @cached_property
    def _generator(self) -> np.random.Generator:
        # SFC64 is as well tested as NumPy's default, and a fifth faster.
        return np.random.Generator(np.random.SFC64(child_seed(self._parent, self._key)))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # copying and pickling look up attributes that do not exist
            raise AttributeError(name)
        return getattr(self._generator, name)

    def standard_normal(self, size: Shape = None, *, out: Floats | None = None) -> Any:
        """Return the next standard normals.

        Parameters
        ----------
        size : int or tuple of int, optional
            Shape of the result; a float by default.
        out : ndarray of float64, optional
            Contiguous array to fill instead.
        """
        return self._filled(fill_normals, size, out)

    def random(self, size: Shape = None, *, out: Floats | None = None) -> Any:
        """Return the next uniform numbers from 0 to 1.

        Parameters
        ----------
        size : int or tuple of int, optional
            Shape of the result; a float by default.
        out : ndarray of float64, optional
            Contiguous array to fill instead.
        """
        return self._filled(fill_uniforms, size, out)

    def _filled(self, fill: Callable[[Bits, Floats], None], size: Shape, out: Floats | None) -> Any:
        array = np.empty(() if size is None else size) if out is None else out
        if not array.flags.c_contiguous or array.dtype != np.float64:
            raise InvalidValue(
                f"out must be a contiguous array of float64, got {array.dtype} "
                f"of shape {array.shape}"
            )
        fill(self.state, array.reshape(-1))
        return float(array) if size is None and out is None else array


class Streams:
    """Independent random streams by name, all from one seed.

    The numbers of one stream depend neither on how many are drawn at a time nor on the draws from
    other streams.

    Parameters
    ----------
    seed : int, numpy.random.SeedSequence or None
        Root seed of all streams; None takes fresh entropy.
    memory : dict of str to ndarray, optional
        Memory that blocks drawn one after another share: drawing a block overwrites the previous
        one.

    Examples
    --------
    >>> first, second = Streams(7), Streams(7)
    >>> (first["context"].random(2).tolist() + first["context"].random(1).tolist()
    ...     == second["context"].random(3).tolist())
    True
    """

    def __init__(self, seed: Seed, *, memory: Memory | None = None) -> None:
        self.seed = seed_sequence(seed)
        self.memory = memory
        self._streams: dict[str, Stream] = {}

    def __getitem__(self, name: str) -> Stream:
        if name not in self._streams:
            self._streams[name] = Stream(self.seed, self._words, zlib.crc32(name.encode()))
        return self._streams[name]

    @cached_property
    def _words(self) -> Bits:
        """Words that all streams begin from; a seed sequence per stream would cost 50 rounds."""
        return _words(self.seed)

    def empty(self, name: str, shape: tuple[int, ...]) -> Floats:
        """Return an uninitialized array for a block, from `memory` if there is one.

        Fresh memory costs as much as filling it with normals: the system maps it page by page, and
        threads wait for each other when it is unmapped.

        Parameters
        ----------
        name : str
            Name of the array; in `memory`, the array of this name is reused.
        shape : tuple of int
            Shape of the array.

        Returns
        -------
        ndarray of float64
            The array.
        """
        size = math.prod(shape)
        if self.memory is None:
            return np.empty(shape)
        if name not in self.memory or self.memory[name].size < size:
            self.memory[name] = np.empty(size)
        return self.memory[name][:size].reshape(shape)


def streams(seed: "Seed | Streams") -> Streams:
    """Return the streams of a seed; streams are returned as they are."""
    return seed if isinstance(seed, Streams) else Streams(seed)
