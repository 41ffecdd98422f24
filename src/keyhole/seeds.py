"""One root seed, named streams: what is drawn for one purpose never shifts another."""

import numbers
from typing import TypeAlias

import numpy as np

from keyhole.errors import InvalidValue

Seed: TypeAlias = int | np.random.SeedSequence | None


def root(seed: Seed) -> np.random.SeedSequence:
    """The seed sequence of a whole number, of fresh entropy (None), or itself."""
    if isinstance(seed, np.random.SeedSequence):
        return seed
    whole = isinstance(seed, numbers.Integral) and not isinstance(seed, bool)
    if seed is not None and (not whole or seed < 0):
        raise InvalidValue(f"seed must be a whole number of at least 0, or None, got {seed!r}")
    return np.random.SeedSequence(None if seed is None else int(seed))
