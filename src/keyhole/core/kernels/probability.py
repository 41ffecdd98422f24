"""The probability that an independent normal score is the largest of several.

For one score that is p = integral of phi_p(x) prod_{j != p} Phi_j(x) dx. Two scores have a closed
form. More of them are integrated by one of two rules, whose error is known beforehand.

Both rules rest on bounds for the distribution function on lines parallel to the real axis:

    |Phi(x + iy)| <= Phi(x) exp(y^2 / 2),  since |phi(x + iy)| = phi(x) exp(y^2 / 2)      (1)
    |Phi(x + iy)| <= exp(growth(Y)) for |y| <= Y,  growth(Y) = sup_x log |Phi(x + iY)|    (2)

By the three lines theorem growth(Y) is convex; it is also even, and 0 at 0, so it increases. So
does growth(Y) / Y^2 (`tests/core/test_probability.py` has its values): growth(aY) <= a^2 growth(Y)
for 0 <= a <= 1, and a score that is wider than the narrowest one by 1 / a counts as a^2 scores.

**Equal steps.** In t = (x - m_p) / s_p, with r_j = s_p / s_j and n_j scores of kind j, the
integrand f(t) = phi(t) prod_j Phi(a_j + r_j t)^n_j is entire. The trapezoidal rule of step h is
then off by at most 2 M / (exp(2 pi c / h) - 1), M = integral of |f(t + ic)| dt, for every c > 0
(Trefethen and Weideman 2014, theorem 5.1). By (1), M <= p exp(c^2 R / 2) with
R = 1 + sum n_j r_j^2; the best c is 2 pi / (h R), and the error is less than

    2 p exp(-2 pi^2 / (h^2 R)).                                                           (3)

By (2) with c = Y / r, r = max(1, r_1, r_2, ...), for every Y it is less than

    2 exp(Y^2 / 2 + growth(Y) (R - 1) / r^2 - 2 pi c / h),                                (4)

which is better with many scores. The longer one of the two steps is taken. It is a multiple of
1 / `FINENESS`: phi at the nodes is then in a table.

**Graded panels.** A score that is certain, or much narrower than the one in question, needs short
steps, but only near its own location. The integral is then over panels of Gauss-Legendre nodes.
It begins at the highest lower end of all scores (`REACH` standard deviations below a location).
From there on Phi_j of one score after the other becomes 1 and is left out. The width of a panel is
in proportion to the narrowest score that is still included: by (2) the integrand is less than
exp(Y^2 / 2 + growth(Y) (R - 1) / r^2) / sqrt(2 pi) on an ellipse around the panel, whose semi-axis
is Y times the narrowest scale. That bounds the error of Gauss's rule (Trefethen, Approximation
Theory and Approximation Practice, theorem 19.3).

The cost of both is Phi for every score at every node. `tail` has no branches, so that the compiler
computes four of them at once.
"""

from __future__ import annotations

import math

import cython
import numpy as np
from cython.cimports.libc.math import erfc, exp, fabs, floor, log1p, sqrt

from keyhole.core.kernels.types import Floats, Ints

# The two rules are off by less than this. Rounding adds less than 1e-13.
TOLERANCE = 5e-13
# A normal exceeds this many standard deviations with a probability of 1e-21.
REACH = cython.declare(cython.double, 9.5)
# A normal exceeds another, whose mean is higher by this many standard deviations of their
# difference, with a probability of 1.2e-19. Leaving out ten million such scores adds 1e-12.
APART = cython.declare(cython.double, 9.0)
# A normal exceeds this many with a probability of 1e-17: Phi is 1 in float64.
NEAR = cython.declare(cython.double, 8.5)
# Two normals both exceed this many with a probability of 1e-18: where phi is that small, Phi may be
# taken as 1.
BOTH_NEAR = cython.declare(cython.double, 6.0)
# A score that is narrower than another by this factor counts as certain.
NARROWEST = cython.declare(cython.double, 1e-290)
# Four nodes with a total mass below this are left out.
NOTHING = cython.declare(cython.double, 1e-24)
ROOT_TWO_PI = cython.declare(cython.double, math.sqrt(2.0 * math.pi))

# Y, and growth(Y) rounded up.
STRIPS = (
    (0.2, 5.1e-17),
    (0.25, 6.5e-12),
    (0.3, 4.6e-9),
    (0.35, 2.73e-7),
    (0.4, 4.24e-6),
    (0.5, 1.286e-4),
    (0.6, 9.79e-4),
    (0.7, 3.794e-3),
    (0.8, 0.01013),
    (1.0, 0.03929),
    (1.2, 0.09851),
    (1.5, 0.2587),
    (2.0, 0.7488),
    (2.5, 1.5438),
    (3.0, 2.6516),
)

# Nodes per standard deviation in the table of phi, which ends three of the longest steps after
# REACH.
FINENESS = cython.declare(cython.Py_ssize_t, 128)
BELL = cython.declare(cython.double[1536])
BELL_SIZE = 1536
# Entry k of these two is for up to 2^(k / 4) of the narrowest scores: the longest step and the
# widest panel, in units of their scale.
STEPS = cython.declare(cython.double[213])
WIDTHS = cython.declare(cython.double[213])
SIZES = cython.declare(cython.int, 213)
QUARTER = cython.declare(cython.double, 2.0**0.25)
# The longest step that (3) allows, times sqrt(R).
SMOOTH = cython.declare(cython.double, math.pi * math.sqrt(2.0 / math.log(2.0 / TOLERANCE)))
# Equal steps are used up to this many nodes; for all scores at once, over this length in units of
# the narrowest. Beyond that, graded panels are faster.
MAX_NODES = cython.declare(cython.double, 1020.0)
MAX_LENGTH = cython.declare(cython.double, 60.0)
# The nodes of a panel.
PANEL = cython.declare(cython.Py_ssize_t, 16)
NODES = cython.declare(cython.double[16])
WEIGHTS = cython.declare(cython.double[16])


def longest_step(scores: float) -> float:
    """Return the step h for which (4) equals `TOLERANCE`, if no other score is narrower."""
    constant = math.log(2.0 / TOLERANCE)
    return max(2.0 * math.pi * y / (constant + y * y / 2.0 + g * scores) for y, g in STRIPS)


def widest_panel(scores: float) -> float:
    """Return the width of a panel, in units of the narrowest score.

    On a panel of half-width H, n nodes are off by less than 64/15 H max|f| e^(2 - 2n) / (1 - e^-2)
    where H sinh(log e) = Y is a semi-axis of the ellipse. The last factor is less than 4/3. All H
    together are less than 12 s_p: the panels begin and end within REACH of m_p, except the last.
    """
    constant = math.log(64 / 15 * 4 / 3 * 12.0 / math.sqrt(2.0 * math.pi) / TOLERANCE)
    exponents = [(y, constant + y * y / 2.0 + growth * scores) for y, growth in STRIPS]
    # Strips that are far too wide would overflow.
    return max(
        2.0 * y / math.sinh(exponent / (2.0 * PANEL - 2.0))
        for y, exponent in exponents
        if exponent < 1000.0
    )


def fill_tables() -> None:
    """Fill the tables above."""
    for k in range(SIZES):
        STEPS[k] = longest_step(2.0 ** (k / 4.0))
        WIDTHS[k] = widest_panel(2.0 ** (k / 4.0))
    for k in range(BELL_SIZE):
        BELL[k] = math.exp(-0.5 * (k / FINENESS) ** 2) / math.sqrt(2.0 * math.pi)
    nodes, weights = np.polynomial.legendre.leggauss(PANEL)
    for k in range(PANEL):
        NODES[k], WEIGHTS[k] = nodes[k], weights[k]


fill_tables()


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def bell(x: cython.double) -> cython.double:
    """Return exp(-x^2 / 2) for |x| <= REACH, by a polynomial in x^2 for its 64th root."""
    s = x * x
    p = 1.644962054715173e-28
    p = p * s - 2.8489306981071993e-25
    p = p * s + 3.4256057627297294e-22
    p = p * s - 3.5233131731646067e-19
    p = p * s + 3.1579102021575983e-16
    p = p * s - 2.425317434400238e-13
    p = p * s + 1.5522042569728029e-10
    p = p * s - 7.947285966224546e-08
    p = p * s + 3.0517578124779087e-05
    p = p * s - 0.007812499999999502
    p = p * s + 0.9999999999999998
    p = p * p
    p = p * p
    p = p * p
    p = p * p
    p = p * p
    return p * p


@cython.ccall
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def tail(x: cython.double) -> cython.double:
    """Return Phi(-x) for 0 <= x <= REACH, to a relative error of 5e-14.

    That is `bell` times a quotient of two polynomials with positive coefficients. As the product
    of all 1 - Phi(-x_j) is less than exp(-sum Phi(-x_j)), it is off by less than half as much.
    """
    p = 2.5572888604569615e-05
    p = p * x + 0.0005478191663432575
    p = p * x + 0.005568650220541813
    p = p * x + 0.034442136950911084
    p = p * x + 0.1395613094615804
    p = p * x + 0.37200721079217103
    p = p * x + 0.611975943329198
    p = p * x + 0.4999999999999993
    q = 6.410173100272363e-05
    q = q * x + 0.001373178597383934
    q = q * x + 0.014022652918840273
    q = q * x + 0.08770646713224925
    q = q * x + 0.3636642759687998
    q = q * x + 1.0160023139245975
    q = q * x + 1.8572065074895174
    q = q * x + 2.0218364474610007
    q = q * x + 1.0
    return bell(x) * p / q


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def within(t: cython.double) -> cython.double:
    """Return |t|, at most REACH, written as a number: stores of a loop might change a variable."""
    x = fabs(t)
    return x if x < 9.5 else 9.5


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def below(t: cython.double) -> cython.double:
    """Return Phi(t) for t >= -REACH."""
    q = tail(within(t))
    return q if t < 0.0 else 1.0 - q


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def above(t: cython.double) -> cython.double:
    """Return 1 - Phi(t) for t >= -REACH."""
    q = tail(within(t))
    return 1.0 - q if t < 0.0 else q


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def multiply(
    mass: cython.p_double,
    points: cython.p_double,
    start: cython.Py_ssize_t,
    fours: cython.Py_ssize_t,
    slope: cython.double,
    offset: cython.double,
    times: cython.double,
) -> cython.void:
    """Multiply mass by Phi(slope points + offset)^times, elementwise.

    Parameters
    ----------
    mass, points : pointer to double
        Mass and position of each node.
    start, fours : int
        First node, and the number of nodes divided by 4; at most 1024 nodes.
    slope, offset : float
        Line of the argument of Phi.
    times : float
        Exponent, an integer of at least 1.
    """
    k: cython.Py_ssize_t
    if times == 1.0:
        for k in range(4 * fours):
            mass[start + k] *= below(slope * points[start + k] + offset)
        return
    # By repeated squaring, of 1 - Phi^times rather than Phi^times: no digit is lost where Phi is
    # near 1, as it is for many scores, since all terms are positive.
    square = cython.declare(cython.double[1024])
    power = cython.declare(cython.double[1024])
    for k in range(4 * fours):
        square[k] = above(slope * points[start + k] + offset)
        power[k] = 0.0
    left = cython.cast(cython.longlong, times)
    while left > 0:
        if left % 2 == 1:
            for k in range(4 * fours):
                power[k] += square[k] * (1.0 - power[k])
        for k in range(4 * fours):
            square[k] *= 2.0 - square[k]
        left //= 2
    for k in range(4 * fours):
        mass[start + k] *= 1.0 - power[k]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def size_of(scores: cython.double) -> cython.int:
    """Return the entry of `STEPS` and `WIDTHS` for a number of scores."""
    k: cython.int = 0
    bound = 1.0
    while bound < scores and k < SIZES - 1:
        bound *= QUARTER
        k += 1
    return k


# Locations are subtracted from each other before anything is added, so that scores narrower than
# the rounding of their locations lose nothing. Every such difference is divided or compared, as the
# compiler may reorder sums.


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def highest_low(location: cython.double[::1], scale: cython.double[::1]) -> cython.Py_ssize_t:
    """Return the index of the score with the highest lower end.

    The largest score is below that end with a negligible probability.

    Parameters
    ----------
    location, scale : array of shape (k,)
        Mean and standard deviation of each score.
    """
    j: cython.Py_ssize_t
    top: cython.Py_ssize_t = 0
    for j in range(1, location.shape[0]):
        if location[j] - location[top] > REACH * (scale[j] - scale[top]):
            top = j
    return top


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def can_win(
    location: cython.double[::1],
    scale: cython.double[::1],
    j: cython.Py_ssize_t,
    top: cython.Py_ssize_t,
) -> cython.bint:
    """Return whether score j exceeds score `top` with a probability of more than 1.2e-19.

    A score stays included if squares overflow or underflow.

    Parameters
    ----------
    location, scale : array of shape (k,)
        Mean and standard deviation of each score.
    j, top : int
        Indices of the two scores.
    """
    gap = location[top] - location[j]
    square = scale[j] * scale[j] + scale[top] * scale[top]
    return gap <= 0.0 or gap * gap <= APART * APART * square


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def middle(
    location: cython.double[::1],
    scale: cython.double[::1],
    j: cython.Py_ssize_t,
    top: cython.Py_ssize_t,
) -> cython.double:
    """Return the distance of score j above the lower end of `top`, in units of scale[j].

    It is at most REACH, up to rounding.

    Parameters
    ----------
    location, scale : array of shape (k,)
        Mean and standard deviation of each score.
    j, top : int
        Indices of the two scores; scale[j] must be above 0.
    """
    unit = float(scale[j])
    above_top = (float(location[j]) - float(location[top])) / unit
    result = above_top + REACH * (float(scale[top]) / unit)
    return result if result < REACH else REACH


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def ahead(
    location: cython.double[::1],
    scale: cython.double[::1],
    j: cython.Py_ssize_t,
    other: cython.Py_ssize_t,
) -> cython.double:
    """Return the probability that score j exceeds another one.

    Parameters
    ----------
    location, scale : array of shape (k,)
        Mean and standard deviation of each score.
    j, other : int
        Indices of the two scores, of which at most one is certain.
    """
    a = float(scale[j])
    b = float(scale[other])
    wide = a if a > b else b
    ratio = (b if a > b else a) / wide
    distance = (float(location[j]) - float(location[other])) / wide
    return 0.5 * erfc(-distance / sqrt(2.0 * (1.0 + ratio * ratio)))


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def chance_of_certain(
    location: cython.double[::1],
    scale: cython.double[::1],
    count: cython.double[::1],
    place: cython.Py_ssize_t,
) -> cython.double:
    """Return `chance_of` for a score of scale 0.

    Parameters
    ----------
    location, scale, count, place
        As in `chance_of`.
    """
    j: cython.Py_ssize_t
    ties = 0.0
    product = 1.0
    for j in range(location.shape[0]):
        if scale[j] == 0.0:
            if location[j] > location[place]:
                return 0.0
            if location[j] == location[place]:
                ties += count[j]
        elif count[j] == 1.0 or location[j] > location[place]:
            product *= ahead(location, scale, place, j) ** count[j]
        else:
            # A power of a number near 1, computed from its difference to 1.
            product *= exp(count[j] * log1p(-ahead(location, scale, j, place)))
    return product / ties


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def by_equal_steps(
    location: cython.double[::1],
    scale: cython.double[::1],
    count: cython.double[::1],
    place: cython.Py_ssize_t,
    top: cython.Py_ssize_t,
    first: cython.Py_ssize_t,
    stride: cython.Py_ssize_t,
) -> cython.double:
    """Return `chance_of` from the nodes t = stride k / FINENESS between k = first and t = NEAR.

    Parameters
    ----------
    location, scale, count, place
        As in `chance_of`.
    top : int
        Index of the score with the highest lower end.
    first, stride : int
        Index of the first node, and the step as a multiple of 1 / FINENESS.
    """
    points = cython.declare(cython.double[1024])
    mass = cython.declare(cython.double[1024])
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    step = cython.cast(cython.double, stride) / FINENESS
    last = cython.cast(cython.Py_ssize_t, floor(NEAR / step))
    # In fours, so that no loop has a remainder. Nodes before `start` and after `end` are finished.
    fours = (last - first) // 4 + 1
    start: cython.Py_ssize_t = 0
    for k in range(4 * fours):
        entry = stride * (first + k)
        points[k] = step * (first + k)
        mass[k] = BELL[entry if entry > 0 else -entry]
    for j in range(location.shape[0]):
        times = count[j] - 1.0 if j == place else count[j]
        if times > 0.0 and can_win(location, scale, j, top):
            slope = max(scale[place] / scale[j], NARROWEST)
            offset = (location[place] - location[j]) / scale[j]
            # Beyond `high` the factors of one score change nothing; those of many together may.
            if times == 1.0:
                high = min((NEAR - offset) / slope, max(BOTH_NEAR, (BOTH_NEAR - offset) / slope))
            else:
                high = (REACH - offset) / slope
            high = max(high, -REACH)
            end = fours
            if high / step - first < 4.0 * fours - 4.0:
                end = cython.cast(cython.Py_ssize_t, floor(high / step - first)) // 4 + 1
            multiply(mass, points, 4 * start, end - start, slope, offset, times)
            k = 4 * start
            while start < fours and mass[k] + mass[k + 1] + mass[k + 2] + mass[k + 3] < NOTHING:
                start += 1
                k += 4
    total = 0.0
    for k in range(4 * start, 4 * fours):
        total += mass[k]
    return step * total


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def matters(
    location: cython.double[::1],
    scale: cython.double[::1],
    j: cython.Py_ssize_t,
    top: cython.Py_ssize_t,
    unit: cython.double,
    low: cython.double,
) -> cython.bint:
    """Return whether Phi_j is below 1 at a distance above the lower end of `top`.

    Parameters
    ----------
    location, scale : array of shape (k,)
        Mean and standard deviation of each score.
    j, top : int
        Indices of the two scores.
    unit, low : float
        Unit of length, and the distance in this unit.
    """
    if scale[j] <= NARROWEST * unit:
        return False
    return middle(location, scale, j, top) + REACH > low * (unit / scale[j])


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def by_panels(
    location: cython.double[::1],
    scale: cython.double[::1],
    count: cython.double[::1],
    place: cython.Py_ssize_t,
    top: cython.Py_ssize_t,
) -> cython.double:
    """Return `chance_of` by graded panels, from the lower end of score `top` on.

    Lengths are in units of the scale of score `place`, and are differences from that lower end:
    close to it, floats resolve the narrowest scores.

    Parameters
    ----------
    location, scale, count, place
        As in `chance_of`.
    top : int
        Index of the score with the highest lower end.
    """
    points = cython.declare(cython.double[16])
    mass = cython.declare(cython.double[16])
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    unit = scale[place]
    own = middle(location, scale, place, top)
    low = 0.0
    total = 0.0
    while low < own + REACH:
        steepest = 1.0
        for j in range(location.shape[0]):
            if matters(location, scale, j, top, unit, low):
                steepest = max(steepest, unit / scale[j])
        scores = 0.0
        for j in range(location.shape[0]):
            if matters(location, scale, j, top, unit, low):
                scores += count[j] * (unit / scale[j] / steepest) ** 2
        half = 0.5 * WIDTHS[size_of(scores)] / steepest
        for k in range(PANEL):
            points[k] = low + half * (1.0 + NODES[k])
            mass[k] = half * WEIGHTS[k] * exp(-0.5 * (points[k] - own) * (points[k] - own))
        for j in range(location.shape[0]):
            times = count[j] - 1.0 if j == place else count[j]
            if times > 0.0 and matters(location, scale, j, top, unit, low):
                offset = -middle(location, scale, j, top)
                multiply(mass, points, 0, PANEL // 4, unit / scale[j], offset, times)
        for k in range(PANEL):
            total += mass[k]
        low += 2.0 * half
    return total / ROOT_TWO_PI


@cython.ccall
@cython.nogil
@cython.exceptval(check=False)
def chance_of(
    location: cython.double[::1],
    scale: cython.double[::1],
    count: cython.double[::1],
    place: cython.Py_ssize_t,
) -> cython.double:
    """Return the probability that one score of kind `place` is the largest of all.

    Parameters
    ----------
    location, scale : array of shape (k,)
        Mean and standard deviation of each kind of score. Scores of scale 0 are certain.
    count : array of shape (k,)
        Number of independent scores of each kind, an integer of at least 1.
    place : int
        Index of the kind of the score in question.

    Returns
    -------
    float
        The probability, to 1e-12. Certain scores that tie share it equally.
    """
    j: cython.Py_ssize_t
    if scale[place] == 0.0:
        return chance_of_certain(location, scale, count, place)
    if location.shape[0] == 2 and count[0] == 1.0 and count[1] == 1.0:
        # Also for scores out of each other's reach: small probabilities keep their digits.
        return ahead(location, scale, place, 1 - place)
    top = highest_low(location, scale)
    if not can_win(location, scale, place, top):
        return 0.0
    rival = place
    certain = 0.0
    others = 0.0
    steepest = 1.0
    curvature = float(count[place])
    for j in range(location.shape[0]):
        if j != place and can_win(location, scale, j, top):
            rival = j
            if scale[j] <= NARROWEST * scale[place]:
                certain = 1.0
            else:
                slope = float(scale[place]) / float(scale[j])
                steepest = max(steepest, slope)
                curvature += count[j] * slope * slope
                others += count[j]
    if others + certain == 0.0:
        return 1.0 / count[place]
    if others + certain == 1.0 and count[place] == 1.0:
        return ahead(location, scale, place, rival)
    step = STEPS[size_of((curvature - 1.0) / (steepest * steepest))] / steepest
    step = max(step, SMOOTH / sqrt(curvature))
    stride = cython.cast(cython.Py_ssize_t, floor(step * FINENESS))
    if certain == 0.0 and stride > 0:
        step = cython.cast(cython.double, stride) / FINENESS
        low = floor(-min(middle(location, scale, place, top), NEAR) / step)
        if NEAR / step - low < MAX_NODES:
            first = cython.cast(cython.Py_ssize_t, low)
            return by_equal_steps(location, scale, count, place, top, first, stride)
    return by_panels(location, scale, count, place, top)


@cython.ccall
@cython.nogil
@cython.exceptval(check=False)
def mixed(best: cython.double, epsilon: cython.double, n_arms: cython.Py_ssize_t) -> cython.double:
    """Return the probability of an arm if with probability epsilon arms are picked uniformly.

    Parameters
    ----------
    best : float
        Probability that its score is the largest, up to rounding.
    epsilon : float
        Probability of a uniform choice.
    n_arms : int
        Number of arms.
    """
    return (1.0 - epsilon) * min(max(best, 0.0), 1.0) + epsilon / n_arms


@cython.ccall
@cython.nogil
@cython.exceptval(check=False)
def propensity_weight(
    epsilon: cython.double, n_arms: cython.Py_ssize_t, probability: cython.double
) -> cython.double:
    """Return the weight of a reward: the smallest propensity of any arm over that of the chosen.

    It is at most 1, also for decisions that were made when epsilon was smaller.

    Parameters
    ----------
    epsilon : float
        Probability of a uniform choice.
    n_arms : int
        Number of arms.
    probability : float
        Propensity of the chosen arm, above 0.
    """
    least: cython.double = epsilon / n_arms
    return 1.0 if least >= probability else least / probability


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def add_node(
    x: cython.double,
    weight: cython.double,
    n: cython.Py_ssize_t,
    slope: cython.double[::1],
    centre: cython.double[::1],
    probability: cython.double[::1],
    chance: cython.double[::1],
) -> cython.void:
    """Add weight phi_i(x) prod_{j != i} Phi_j(x) to every chance[i].

    Parameters
    ----------
    x, weight : float
        Node and weight of a rule of integration.
    n : int
        Number of scores.
    slope, centre, probability, chance : array
        As in `winning`.
    """
    i: cython.Py_ssize_t
    mass = weight / ROOT_TWO_PI
    for i in range(n):
        probability[i] = below(slope[i] * x - centre[i])
        mass *= probability[i]
    if mass > 0.0:
        for i in range(n):
            density = bell(within(slope[i] * x - centre[i])) * slope[i]
            chance[i] += mass * density / probability[i]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def all_by_panels(
    n: cython.Py_ssize_t,
    slope: cython.double[::1],
    centre: cython.double[::1],
    probability: cython.double[::1],
    chance: cython.double[::1],
    arm: cython.Py_ssize_t[::1],
    out: cython.double[::1],
) -> cython.void:
    """Integrate for n scores of `winning` by graded panels, changing their order.

    Parameters
    ----------
    n : int
        Number of scores.
    slope, centre, probability, chance, arm, out : array
        As in `winning`.
    """
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    low = 0.0
    while n > 0:
        steepest = 0.0
        i = 0
        while i < n:
            if centre[i] + REACH > slope[i] * low:
                steepest = max(steepest, slope[i])
                i += 1
            else:
                # Score i is finished. The last one takes its place.
                out[arm[i]] = chance[i]
                n -= 1
                slope[i] = slope[n]
                centre[i] = centre[n]
                chance[i] = chance[n]
                arm[i] = arm[n]
        if n > 0:
            half = 0.5 * WIDTHS[size_of(n)] / steepest
            for k in range(PANEL):
                x = low + half * (1.0 + NODES[k])
                add_node(x, half * WEIGHTS[k], n, slope, centre, probability, chance)
            low += 2.0 * half


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def all_by_equal_steps(
    n: cython.Py_ssize_t,
    slope: cython.double[::1],
    centre: cython.double[::1],
    probability: cython.double[::1],
    chance: cython.double[::1],
    arm: cython.Py_ssize_t[::1],
    out: cython.double[::1],
) -> cython.bint:
    """Integrate for n scores of `winning` by equal steps; return False if there are too many steps.

    Parameters
    ----------
    n : int
        Number of scores.
    slope, centre, probability, chance, arm, out : array
        As in `winning`.
    """
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    steepest = 0.0
    curvature = 0.0
    high = 0.0
    for i in range(n):
        steepest = max(steepest, slope[i])
        curvature += slope[i] * slope[i]
        high = max(high, (centre[i] + REACH) / slope[i])
    if high * steepest > MAX_LENGTH:
        return False
    step = STEPS[size_of(curvature / (steepest * steepest))] / steepest
    step = max(step, SMOOTH / sqrt(curvature))
    for k in range(cython.cast(cython.Py_ssize_t, high / step) + 1):
        add_node(step * k, step, n, slope, centre, probability, chance)
    for i in range(n):
        out[arm[i]] = chance[i]
    return True


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def winning(
    location: cython.double[::1],
    scale: cython.double[::1],
    slope: cython.double[::1],
    centre: cython.double[::1],
    probability: cython.double[::1],
    chance: cython.double[::1],
    arm: cython.Py_ssize_t[::1],
    out: cython.double[::1],
) -> cython.void:
    """Set `out` to the probability of each score being the largest.

    Parameters
    ----------
    location, scale : array of shape (k,)
        Mean and standard deviation of each score. Scores of scale 0 are certain.
    slope, centre, probability, chance, arm : array of shape (k,)
        Workspace for the scores that can win and are not certain. Entry i is for score `arm[i]`,
        and Phi_i(x) = Phi(slope[i] x - centre[i]), where x begins at the highest lower end.
    out : array of shape (k,)
        Array for the probabilities.
    """
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    n: cython.Py_ssize_t = 0
    top = highest_low(location, scale)
    unit = 0.0
    for j in range(location.shape[0]):
        out[j] = 0.0
        if can_win(location, scale, j, top):
            unit = max(unit, scale[j])
    mark = top
    ties = 0.0
    for j in range(location.shape[0]):
        if not can_win(location, scale, j, top):
            continue
        if scale[j] > NARROWEST * unit:
            slope[n] = unit / scale[j]
            centre[n] = middle(location, scale, j, top)
            chance[n] = 0.0
            arm[n] = j
            n += 1
        elif ties == 0.0 or location[j] > location[mark]:
            mark = j
            ties = 1.0
        elif location[j] == location[mark]:
            ties += 1.0
    if ties > 0.0:
        product = 1.0 / ties
        for i in range(n):
            product *= ahead(location, scale, mark, arm[i])
        for j in range(location.shape[0]):
            if scale[j] <= NARROWEST * unit and location[j] == location[mark]:
                out[j] = product
    if n == 1:
        out[arm[0]] = ahead(location, scale, arm[0], mark) if ties > 0.0 else 1.0
    elif n == 2 and ties == 0.0:
        out[arm[0]] = ahead(location, scale, arm[0], arm[1])
        out[arm[1]] = ahead(location, scale, arm[1], arm[0])
    elif ties > 0.0 or not all_by_equal_steps(n, slope, centre, probability, chance, arm, out):
        all_by_panels(n, slope, centre, probability, chance, arm, out)


def winning_rows(location: cython.double[:, ::1], scale: cython.double[:, ::1]) -> Floats:
    """Return the probability of each score being the largest of its row.

    Parameters
    ----------
    location, scale : array of shape (n, k)
        Mean and standard deviation of each score. Scores of scale 0 are certain.

    Returns
    -------
    ndarray of shape (n, k)
        The probabilities, to 1e-12. Certain scores that tie share theirs equally.
    """
    t: cython.Py_ssize_t
    n, k = location.shape[0], location.shape[1]
    result = np.empty((n, k))
    out: cython.double[:, ::1] = result
    slope: cython.double[::1] = np.empty(k)
    centre: cython.double[::1] = np.empty(k)
    probability: cython.double[::1] = np.empty(k)
    chance: cython.double[::1] = np.empty(k)
    arm: cython.Py_ssize_t[::1] = np.empty(k, np.intp)
    with cython.nogil:
        for t in range(n):
            if k == 2 and scale[t, 0] + scale[t, 1] > 0.0:
                # Also for scores out of each other's reach: small probabilities keep their digits.
                out[t, 0] = ahead(location[t], scale[t], 0, 1)
                out[t, 1] = ahead(location[t], scale[t], 1, 0)
            else:
                winning(location[t], scale[t], slope, centre, probability, chance, arm, out[t])
    return result


@cython.final
@cython.cclass
class Chances:
    """The probability of every candidate of a decision, from the numbers of its row in a log.

    It keeps its memory: that of `winning_rows` takes as long as its work at five arms.

    Parameters
    ----------
    n : int
        The number of candidates.
    """

    def __init__(self, n: cython.Py_ssize_t) -> None:
        self.n = n
        self.location, self.scale, self.slope, self.centre, self.mass, self.chance, self.out = (
            np.empty((7, n))
        )
        self.arm = np.empty(n, np.intp)

    def of(
        self,
        mean: list,  # type: ignore[type-arg]
        width: list,  # type: ignore[type-arg]
        optimism: list,  # type: ignore[type-arg]
        dispersion: list,  # type: ignore[type-arg]
        epsilon: cython.double,
    ) -> list:  # type: ignore[type-arg]
        """Return the probabilities.

        Parameters
        ----------
        mean, width : list of float
            Of each score.
        optimism, dispersion : list of float
            Of each score, or one number for all.
        epsilon : float
            The probability of a uniform pick.
        """
        k: cython.Py_ssize_t
        if not len(mean) == len(width) == self.n:
            raise ValueError(f"mean and width must have {self.n} numbers")
        n_optimism: cython.Py_ssize_t = len(optimism)
        n_dispersion: cython.Py_ssize_t = len(dispersion)
        if n_optimism not in (1, self.n) or n_dispersion not in (1, self.n):
            raise ValueError(f"optimism and dispersion must have 1 or {self.n} numbers")
        for k in range(self.n):
            # As C numbers: a choice has added them so, and scores that tied there have to tie here.
            centre: cython.double = mean[k]
            spread: cython.double = width[k]
            ahead_by: cython.double = optimism[k if n_optimism > 1 else 0]
            share: cython.double = dispersion[k if n_dispersion > 1 else 0]
            self.location[k] = centre + spread * ahead_by
            self.scale[k] = spread * share
        if self.n == 2 and self.scale[0] + self.scale[1] > 0.0:
            self.out[0] = ahead(self.location, self.scale, 0, 1)
            self.out[1] = ahead(self.location, self.scale, 1, 0)
        else:
            winning(
                self.location,
                self.scale,
                self.slope,
                self.centre,
                self.mass,
                self.chance,
                self.arm,
                self.out,
            )
        return [float(mixed(self.out[k], epsilon, self.n)) for k in range(self.n)]


def chance_rows(
    location: cython.double[:, ::1], scale: cython.double[:, ::1], places: Ints
) -> Floats:
    """Return the probability that one given score of each row is the largest of its row.

    Parameters
    ----------
    location, scale : array of shape (n, k)
        As in `winning_rows`.
    places : ndarray of int of shape (n,)
        Index of the score in each row.

    Returns
    -------
    ndarray of shape (n,)
        The probabilities.
    """
    chosen: cython.longlong[::1] = places
    count: cython.double[::1] = np.ones(location.shape[1])
    result = np.empty(location.shape[0])
    out: cython.double[::1] = result
    t: cython.Py_ssize_t
    with cython.nogil:
        for t in range(out.shape[0]):
            out[t] = chance_of(location[t], scale[t], count, chosen[t])
    return result
