"""Streams of standard normals, by the ziggurat (Marsaglia and Tsang, 2000), and of uniforms.

NumPy's generators use the same method, but fetch each number's bits by a call through a pointer,
which is most of their time. Here they are made in the same loop, by SFC64 (Doty-Humphrey).

The area under exp(-x^2 / 2) is covered by 256 strips of equal area: strip 0 has the tail and the
rectangle below it, strip i > 0 reaches from 0 to edge[i]. A point of a strip that is left of the
next strip's edge is under the curve for certain, as 98.8% of them are.
"""

import math
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from keyhole.kernels.jit import kernel, loop
from keyhole.kernels.types import Floats

Bits: TypeAlias = NDArray[np.uint64]

STRIPS = 256
# Where the tail begins, for 256 strips.
TAIL = 3.6541528853610088
# A signed point of a strip has this many bits besides its sign.
PRECISION = 52


def _edges() -> Floats:
    """The right edges of the strips, from the widest, whose rectangle stands for the tail too."""
    height = math.exp(-0.5 * TAIL**2)
    area = TAIL * height + math.sqrt(0.5 * math.pi) * math.erfc(TAIL / math.sqrt(2.0))
    edges = [area / height, TAIL]
    while len(edges) < STRIPS:
        x = edges[-1]
        edges.append(math.sqrt(-2.0 * math.log(area / x + math.exp(-0.5 * x * x))))
    return np.array([*edges, 0.0])


EDGES = _edges()
CURVE = np.exp(-0.5 * EDGES**2)
STEP = EDGES[:-1] * 2.0**-PRECISION
SAFE = (EDGES[1:] / EDGES[:-1] * 2.0**PRECISION).astype(np.int64)

# Numba reads an int beside a uint64 as a float64: every constant says what it is.
ONE, THREE, ELEVEN, TWENTY_FOUR, FORTY = (np.uint64(n) for n in (1, 3, 11, 24, 40))
LAYER = np.uint64(STRIPS - 1)
UNIFORM = 2.0**-53


@loop
def next_bits(state: Bits) -> Any:
    """The next 64 bits of a stream."""
    a, b, c, counter = state[0], state[1], state[2], state[3]
    bits = a + b + counter
    state[0], state[1] = b ^ (b >> ELEVEN), c + (c << THREE)
    state[2] = ((c << TWENTY_FOUR) | (c >> FORTY)) + bits
    state[3] = counter + ONE
    return bits


@kernel
def stream_state(words: Bits, key: int) -> Bits:
    """The state of a stream: three words of a seed, its key, and a counter, well stirred.

    SFC64's author asks for 12 steps after which no trace of the start is left; 18 where seeds are
    related, as those of two keys are.
    """
    state = np.empty(4, np.uint64)
    state[:3] = words
    state[0] ^= np.uint64(key)
    state[3] = ONE
    for _ in range(18):
        next_bits(state)
    return state


@loop
def fill_uniforms(state: Bits, out: Floats) -> None:
    """Fill a flat array with the next uniform numbers of a stream, from 0 to below 1."""
    for k in range(out.size):
        out[k] = (next_bits(state) >> ELEVEN) * UNIFORM


@loop
def fill_normals(state: Bits, out: Floats) -> None:
    """Fill a flat array with the next standard normals of a stream."""
    a, b, c, counter = state[0], state[1], state[2], state[3]
    for k in range(out.size):
        bits = a + b + counter
        a, b = b ^ (b >> ELEVEN), c + (c << THREE)
        c = ((c << TWENTY_FOUR) | (c >> FORTY)) + bits
        counter += ONE
        # The strip is in the lowest eight bits, the point in the highest 53, its sign included.
        strip = bits & LAYER
        point = np.int64(bits) >> 11
        out[k] = point * STEP[strip]
        if abs(point) >= SAFE[strip]:
            state[0], state[1], state[2], state[3] = a, b, c, counter
            out[k] = unsure(state, strip, out[k])
            a, b, c, counter = state[0], state[1], state[2], state[3]
    state[0], state[1], state[2], state[3] = a, b, c, counter


@kernel
def unsure(state: Bits, strip: np.uint64, x: float) -> float:
    """A normal, given a point that may be outside the curve: of the tail, itself, or a new one."""
    while True:
        if strip == 0 and abs(x) >= TAIL:
            return math.copysign(tail(state), x)
        share = (next_bits(state) >> ELEVEN) * UNIFORM
        low, high = CURVE[strip], CURVE[strip + ONE]
        if strip > 0 and low + share * (high - low) < math.exp(-0.5 * x * x):
            return x
        bits = next_bits(state)
        strip = bits & LAYER
        point = np.int64(bits) >> 11
        x = point * STEP[strip]
        if abs(point) < SAFE[strip]:
            return x


@kernel
def tail(state: Bits) -> float:
    """A normal beyond TAIL (Marsaglia, 1964)."""
    while True:
        beyond = -math.log1p(-((next_bits(state) >> ELEVEN) * UNIFORM)) / TAIL
        height = -math.log1p(-((next_bits(state) >> ELEVEN) * UNIFORM))
        if 2.0 * height > beyond * beyond:
            return TAIL + beyond
