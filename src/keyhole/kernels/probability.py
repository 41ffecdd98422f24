"""The probability that each of several independent normal scores is the largest.

p_i = integral of phi_i(x) prod_{j != i} Phi_j(x) dx, for all i at once, by Gauss-Legendre panels
that are halved until two halves agree with the whole and their total with the growth of
prod_j Phi_j over the panel, which is known exactly. The second test sees a narrow score that all
nodes of a wide panel miss.
"""

import math

import numpy as np

from keyhole.kernels.algebra import EPSILON
from keyhole.kernels.jit import kernel, part
from keyhole.kernels.types import Floats

# Beyond this many standard deviations a normal holds less than 1e-20.
REACH = 9.5
# Halving a panel this often ends at the spacing of float64, whatever the scores' scales.
DEPTH = 60
ROOT_TWO_PI = math.sqrt(2.0 * math.pi)


@part
def below(t: float) -> float:
    """The standard normal distribution function, 1 from REACH on."""
    return 1.0 if t > REACH else 0.5 * math.erfc(-t * math.sqrt(0.5))


@kernel
def all_below(x: float, location: Floats, scale: Floats) -> float:
    """The probability that every score is below x."""
    product = 1.0
    for i in range(location.size):
        product *= below((x - location[i]) / scale[i])
    return product


@kernel
def panel(
    a: float, b: float, location: Floats, scale: Floats, nodes: Floats, weights: Floats, out: Floats
) -> None:
    """out[i] = integral from a to b of phi_i prod_{j != i} Phi_j, by one Gauss-Legendre rule."""
    out[:] = 0.0
    share = np.empty(location.size)
    middle, half = 0.5 * (a + b), 0.5 * (b - a)
    for k in range(nodes.size):
        x = middle + half * nodes[k]
        mass = weights[k] * half / ROOT_TWO_PI
        for i in range(location.size):
            t = (x - location[i]) / scale[i]
            share[i] = 0.0
            if t < REACH:
                probability = below(t)
                mass *= probability
                share[i] = math.exp(-0.5 * t * t) / (probability * scale[i])
        if mass > 0.0:
            for i in range(location.size):
                out[i] += mass * share[i]


@kernel
def integrate(
    low: float, high: float, location: Floats, scale: Floats, nodes: Floats, weights: Floats
) -> Floats:
    """The integrals over [low, high], where low is above every location - REACH scale."""
    n = location.size
    result = np.zeros(n)
    # What rounding in a product of n factors makes unavoidable, and a little more.
    tolerance = 4.0 * EPSILON * (64.0 + n)
    ends = np.empty((DEPTH + 1, 2))
    whole = np.empty((DEPTH + 1, n))
    left, right = np.empty(n), np.empty(n)
    ends[0] = low, high
    panel(low, high, location, scale, nodes, weights, whole[0])
    top = 0
    while top >= 0:
        a, b = ends[top]
        middle = 0.5 * (a + b)
        panel(a, middle, location, scale, nodes, weights, left)
        panel(middle, b, location, scale, nodes, weights, right)
        grown = all_below(b, location, scale) - all_below(a, location, scale)
        missed = abs(left.sum() + right.sum() - grown)
        differs = np.abs(left + right - whole[top]).max()
        if not max(missed, differs) > tolerance or top == DEPTH:
            result += left + right
            top -= 1
        else:
            # The right half takes the whole's place and the left one goes on top: the stack
            # holds at most one panel of each size.
            ends[top] = middle, b
            whole[top] = right
            ends[top + 1] = a, middle
            whole[top + 1] = left
            top += 1
    return result


@kernel
def winning(location: Floats, scale: Floats, nodes: Floats, weights: Floats) -> Floats:
    """The probability of each score being the largest; scores of scale 0 that tie share alike."""
    # Nothing wins below the highest of the scores' lower ends. Measured from there, every score
    # that can win is within REACH of its own standard deviations, so none loses digits to another.
    location = location - (location - REACH * scale).max()
    low = (location - REACH * scale).max()
    in_play = location + REACH * scale >= low
    # And in units of the widest of them, no number is too small or too large.
    unit = scale[in_play].max()
    if unit > 0.0:
        location, scale, low = location / unit, scale / unit, low / unit
    # Against the widest score in play, one this narrow is a single point of float64.
    fixed = scale <= EPSILON * scale[in_play].max()
    drawn = in_play & ~fixed

    result = np.zeros(location.size)
    mark = -np.inf
    if fixed.any():
        mark = location[fixed].max()
        at_mark = fixed & (location == mark)
        result[at_mark] = all_below(mark, location[drawn], scale[drawn]) / at_mark.sum()
    if drawn.any():
        start, high = max(mark, low), (location + REACH * scale)[drawn].max()
        if start < high:
            result[drawn] = integrate(start, high, location[drawn], scale[drawn], nodes, weights)
    return result


@kernel
def winning_rows(location: Floats, scale: Floats, nodes: Floats, weights: Floats) -> Floats:
    """`winning` for each row."""
    result = np.empty(location.shape)
    for t in range(location.shape[0]):
        result[t] = winning(location[t], scale[t], nodes, weights)
    return result
