"""One root seed, named streams: what is drawn for one purpose never shifts another."""

import math
import numbers
import zlib
from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from keyhole.core.kernels import Bits, Floats, fill_normals, fill_uniforms, stream_state
from keyhole.errors import InvalidValue, shown

Seed: TypeAlias = int | np.random.SeedSequence | None
Shape: TypeAlias = int | tuple[int, ...] | None
Memory: TypeAlias = dict[str, Floats]

# Larger ones than any digest are typing errors, and Python does not print them.
LARGEST_SEED = 2**4096


def seed_sequence(seed: Seed) -> np.random.SeedSequence:
    """Make the seed sequence of a whole number, or of fresh entropy (None); one stays itself."""
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
    """The child of this number, whichever others have been made, and in whatever order."""
    return np.random.SeedSequence(parent.entropy, spawn_key=(*parent.spawn_key, key))


def choice_streams(seed: Seed) -> Bits:
    """Return the states of the streams that choices are drawn from, (2, 4).

    They are those of "policy" (normals) and "coin" (uniform numbers), as in a simulation: a bandit
    with the seed of a replication chooses the arms that are chosen there.
    """
    named = Streams(seed)
    return np.stack([named["policy"].state, named["coin"].state])


def _words(seed: np.random.SeedSequence) -> Bits:
    words: Bits = seed.generate_state(3, np.uint64).astype(np.uint64)
    return words


class Stream:
    """A source of random numbers: a NumPy generator, with normals in bulk at thrice its speed.

    `standard_normal` and `random` are drawn by kernels. All else is the generator's, independent
    of those, and made when first asked for: most streams never are.
    """

    def __init__(self, parent: np.random.SeedSequence, words: Bits, key: int) -> None:
        self._parent, self._key = parent, key
        # Where it is, for kernels that draw by themselves.
        self.state = stream_state(words, key)

    @cached_property
    def _generator(self) -> np.random.Generator:
        # SFC64 is as well tested as NumPy's default, and a fifth faster.
        return np.random.Generator(np.random.SFC64(child_seed(self._parent, self._key)))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # copying and pickling ask for what is not there
            raise AttributeError(name)
        return getattr(self._generator, name)

    def standard_normal(self, size: Shape = None, *, out: Floats | None = None) -> Any:
        """The next standard normals, as an array of this size, or within `out`."""
        return self._filled(fill_normals, size, out)

    def random(self, size: Shape = None, *, out: Floats | None = None) -> Any:
        """The next uniform numbers from 0 to 1, as an array of this size, or within `out`."""
        return self._filled(fill_uniforms, size, out)

    def _filled(self, fill: Callable[[Bits, Floats], None], size: Shape, out: Floats | None) -> Any:
        room = np.empty(() if size is None else size) if out is None else out
        if not room.flags.c_contiguous or room.dtype != np.float64:
            raise InvalidValue("out must be a contiguous array of float64")
        fill(self.state, room.reshape(-1))
        return float(room) if size is None and out is None else room


class Streams:
    """Independent random streams by name, all from one seed.

    Numbers taken from one stream are the same however many are taken at a time, and whatever is
    taken from the others. With a `memory` of the caller's, blocks drawn one after another share
    it: each is gone when the next is drawn.

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
        """What all streams begin from: a seed sequence for each would cost as much as 50 rounds."""
        return _words(self.seed)

    def empty(self, name: str, shape: tuple[int, ...]) -> Floats:
        """Room for a block's large arrays, by name: new, or that of the last block in `memory`.

        Fresh memory costs as much as filling it with normals: the system hands it out page by
        page, and makes threads wait for each other when it takes it back.
        """
        size = math.prod(shape)
        if self.memory is None:
            return np.empty(shape)
        if name not in self.memory or self.memory[name].size < size:
            self.memory[name] = np.empty(size)
        return self.memory[name][:size].reshape(shape)


def streams(seed: "Seed | Streams") -> Streams:
    """The streams of a seed, or themselves."""
    return seed if isinstance(seed, Streams) else Streams(seed)
