"""Write the bits of a stream to standard output without end, for a battery of tests to read.

    python -m benchmarks.randomness bits | RNG_test stdin64          # PractRand
    python -m benchmarks.randomness normals | ./testu01 SmallCrush   # docs/randomness.md

`bits` are those that every number is made of. `normals` are standard normals z, as the first 32
bits of Phi(z) each: uniform if, and only if, the normals are normal.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import special

import keyhole as kh
from keyhole.core.kernels import normals

# As many at a time as a core's own cache holds.
N = 1 << 13


def bits(state: normals.Bits) -> memoryview:
    """Return the next words of a stream."""
    words = np.empty(N, np.uint64)
    normals.fill_bits(state, words)
    return words.data


def uniforms_of_normals(state: normals.Bits) -> memoryview:
    """Return the next normals of a stream, as 32 bits each that should be uniform."""
    z = np.empty(N)
    normals.fill_normals(state, z)
    # Phi(z) rounds to 1 from z = 8.3 on.
    uniforms: NDArray[np.float64] = np.minimum(special.ndtr(z) * 2.0**32, 2.0**32 - 1.0)
    return uniforms.astype(np.uint32).data


SOURCES: dict[str, Callable[[normals.Bits], memoryview]] = {
    "bits": bits,
    "normals": uniforms_of_normals,
}


def main() -> None:
    """Write until nobody reads any more."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("source", choices=SOURCES)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    state, source = kh.Streams(given.seed)["test"].state, SOURCES[given.source]
    try:
        while True:
            sys.stdout.buffer.write(source(state))
    except BrokenPipeError:
        sys.stderr.close()  # what is left in the buffer has nowhere to go


if __name__ == "__main__":
    main()
