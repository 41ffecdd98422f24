"""Streams of standard normals, by the ziggurat (Marsaglia and Tsang, 2000), and of uniforms.

NumPy's generators use the same method, but fetch each number's bits by a call through a pointer,
which takes most of their time. Here the bits are generated in the same loop, by SFC64
(Doty-Humphrey).

The area under exp(-x^2 / 2) is covered by 256 strips of equal area: strip 0 has the tail and the
rectangle below it, strip i > 0 reaches from 0 to edge[i]. A point of a strip that is left of the
next strip's edge is certainly under the curve; this holds for 98.8% of the points.

The state of a stream is four words of any values: a copy of the array saves a stream, and writing
it back restores it.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import cython
import numpy as np
from cython.cimports.libc.math import copysign, exp, fabs, log1p
from numpy.typing import NDArray

from keyhole.core.kernels.types import Floats

Bits: TypeAlias = NDArray[np.uint64]

STRIPS = 256
# Start of the tail, for 256 strips.
TAIL = 3.6541528853610088
# A signed point of a strip has this many bits besides its sign.
PRECISION = 52


def _edges() -> Floats:
    """Return the right edges of the strips, the widest first, which also covers the tail."""
    height = math.exp(-0.5 * TAIL**2)
    area = TAIL * height + math.sqrt(0.5 * math.pi) * math.erfc(TAIL / math.sqrt(2.0))
    edges, x = [area / height], TAIL
    while len(edges) < STRIPS:
        edges.append(x)
        # After the last strip this is the square root of about 0, and is not used.
        x = math.sqrt(max(-2.0 * math.log(area / x + math.exp(-0.5 * x * x)), 0.0))
    return np.array([*edges, 0.0])


EDGES = _edges()
CURVE = np.exp(-0.5 * EDGES**2)

# The same tables for C, which reads its own arrays without a lookup in Python.
tail_start = cython.declare(cython.double, TAIL)
height = cython.declare(cython.double[257])
step = cython.declare(cython.double[256])
safe = cython.declare(cython.longlong[256])
for _strip in range(STRIPS):
    step[_strip] = EDGES[_strip] * 2.0**-PRECISION
    safe[_strip] = int(EDGES[_strip + 1] / EDGES[_strip] * 2.0**PRECISION)
for _strip in range(STRIPS + 1):
    height[_strip] = CURVE[_strip]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def word(number: cython.ulonglong) -> cython.ulonglong:
    """Return a number modulo 2^64, which is implicit in C."""
    if not cython.compiled:
        number = number & 0xFFFFFFFFFFFFFFFF
    return number


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def signed_point(bits: cython.ulonglong) -> cython.longlong:
    """Return the highest 53 bits as a signed number."""
    point: cython.longlong
    if cython.compiled:
        point = cython.cast(cython.longlong, bits) >> 11
    else:
        point = (bits >> 11) - (bits >> 63 << 53)
    return point


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def next_bits(state: cython.ulonglong[::1]) -> cython.ulonglong:
    """Return the next 64 bits of a stream."""
    a: cython.ulonglong = cython.cast(cython.ulonglong, state[0])
    b: cython.ulonglong = cython.cast(cython.ulonglong, state[1])
    c: cython.ulonglong = cython.cast(cython.ulonglong, state[2])
    counter: cython.ulonglong = cython.cast(cython.ulonglong, state[3])
    bits: cython.ulonglong = word(a + b + counter)
    state[0], state[1] = b ^ (b >> 11), word(c + (c << 3))
    state[2] = word((word(c << 24) | (c >> 40)) + bits)
    state[3] = word(counter + 1)
    return bits


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def next_uniform(state: cython.ulonglong[::1]) -> cython.double:
    """Return the next uniform number of a stream, from 0 to below 1."""
    bits: cython.ulonglong = next_bits(state)
    return cython.cast(cython.double, bits >> 11) * 2.0**-53


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def draw_uniforms(state: cython.ulonglong[::1], out: cython.double[::1]) -> cython.void:
    """Fill an array with the next uniform numbers of a stream, from 0 to below 1.

    Parameters
    ----------
    state : array of shape (4,)
        State of the stream, which advances.
    out : array of shape (n,)
        Array to fill.
    """
    k: cython.Py_ssize_t
    for k in range(out.shape[0]):
        out[k] = next_uniform(state)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def draw_normals(
    state: cython.ulonglong[::1], out: cython.double[::1], n: cython.Py_ssize_t
) -> cython.void:
    """Fill the first n entries of an array with the next standard normals of a stream.

    Parameters
    ----------
    state : array of shape (4,)
        State of the stream, which advances.
    out : array
        Array to fill, of at least n entries.
    n : int
        Number of normals.
    """
    a: cython.ulonglong = cython.cast(cython.ulonglong, state[0])
    b: cython.ulonglong = cython.cast(cython.ulonglong, state[1])
    c: cython.ulonglong = cython.cast(cython.ulonglong, state[2])
    counter: cython.ulonglong = cython.cast(cython.ulonglong, state[3])
    bits: cython.ulonglong
    point: cython.longlong
    strip: cython.Py_ssize_t
    k: cython.Py_ssize_t
    for k in range(n):
        bits = word(a + b + counter)
        a, b = b ^ (b >> 11), word(c + (c << 3))
        c = word((word(c << 24) | (c >> 40)) + bits)
        counter = word(counter + 1)
        # The strip is in the lowest eight bits, the point in the highest 53, its sign included.
        strip = bits & 255
        point = signed_point(bits)
        out[k] = point * step[strip]
        if abs(point) >= safe[strip]:
            state[0], state[1], state[2], state[3] = a, b, c, counter
            out[k] = unsure(state, strip, out[k])
            a = cython.cast(cython.ulonglong, state[0])
            b = cython.cast(cython.ulonglong, state[1])
            c = cython.cast(cython.ulonglong, state[2])
            counter = cython.cast(cython.ulonglong, state[3])
    state[0], state[1], state[2], state[3] = a, b, c, counter


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def unsure(
    state: cython.ulonglong[::1], strip: cython.Py_ssize_t, x: cython.double
) -> cython.double:
    """Return a normal for a point that may be outside the curve: x, a tail value or a new draw.

    Parameters
    ----------
    state : array of shape (4,)
        State of the stream, which advances.
    strip : int
        Index of the strip.
    x : float
        Horizontal position of the point.
    """
    bits: cython.ulonglong
    point: cython.longlong
    while True:
        if strip == 0 and fabs(x) >= tail_start:
            return copysign(beyond_tail(state), x)
        share = next_uniform(state)
        low, high = height[strip], height[strip + 1]
        if strip > 0 and low + share * (high - low) < exp(-0.5 * x * x):
            return x
        bits = next_bits(state)
        strip = bits & 255
        point = signed_point(bits)
        x = point * step[strip]
        if abs(point) < safe[strip]:
            return x


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def beyond_tail(state: cython.ulonglong[::1]) -> cython.double:
    """Return a normal beyond TAIL (Marsaglia, 1964)."""
    while True:
        beyond = -log1p(-next_uniform(state)) / tail_start
        exponential = -log1p(-next_uniform(state))
        if 2.0 * exponential > beyond * beyond:
            return tail_start + beyond


def stream_state(words: Bits, key: int) -> Bits:
    """Return the initial state of a stream: three words of a seed, its key and a counter, mixed.

    SFC64's author recommends 12 steps of mixing, and 18 for related seeds such as those of two
    keys.

    Parameters
    ----------
    words : array of shape (3,)
        Words that all streams of one seed begin from.
    key : int
        Number of the stream, from 0 to below 2^64.

    Returns
    -------
    array of shape (4,)
        The state.
    """
    state: Bits = np.empty(4, np.uint64)
    state[:3] = words
    state[0] ^= np.uint64(key)
    state[3] = 1
    view: cython.ulonglong[::1] = state
    for _ in range(18):
        next_bits(view)
    return state


def fill_uniforms(state: cython.ulonglong[::1], out: cython.double[::1]) -> None:
    """Fill a flat array with the next uniform numbers of a stream, from 0 to below 1.

    Parameters
    ----------
    state : array of shape (4,)
        State of the stream, which advances.
    out : array of shape (n,)
        Array to fill.
    """
    with cython.nogil:
        draw_uniforms(state, out)


def fill_normals(state: cython.ulonglong[::1], out: cython.double[::1]) -> None:
    """Fill a flat array with the next standard normals of a stream.

    Parameters
    ----------
    state : array of shape (4,)
        State of the stream, which advances.
    out : array of shape (n,)
        Array to fill.
    """
    with cython.nogil:
        draw_normals(state, out, out.shape[0])


def fill_bits(state: cython.ulonglong[::1], out: cython.ulonglong[::1]) -> None:
    """Fill a flat array with the next words of 64 bits of a stream.

    Parameters
    ----------
    state : array of shape (4,)
        State of the stream, which advances.
    out : array of uint64 of shape (n,)
        Array to fill.
    """
    k: cython.Py_ssize_t
    with cython.nogil:
        for k in range(out.shape[0]):
            out[k] = next_bits(state)
