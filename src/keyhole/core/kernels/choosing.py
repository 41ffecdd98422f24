"""Choosing an arm: one rule for every policy, exact with and without pruning.

An arm's score is y'mean + width (optimism + dispersion z) with width^2 = y'Py. It has the
distribution that the paper's Algorithms 1 and 2 get by drawing a d-dimensional sample (eq:sample).
Since P only ever shrinks, width <= |y| sqrt(bound). If an arm's score is below the best one even at
that width, y'Py is not computed.
"""

from __future__ import annotations

import cython
import numpy as np
from cython.cimports.libc.math import sqrt

from keyhole.core.kernels.types import Floats, Ints, Rule

if cython.compiled:
    from cython.cimports.keyhole.core.kernels.core import Core
    from cython.cimports.keyhole.core.kernels.exploring import Explorer
    from cython.cimports.keyhole.core.kernels.pointers import after, start_of
    from cython.cimports.keyhole.core.kernels.probability import chance_of, mixed
else:
    from keyhole.core.kernels.core import Core
    from keyhole.core.kernels.exploring import Explorer
    from keyhole.core.kernels.pointers import after, start_of
    from keyhole.core.kernels.probability import chance_of, mixed

# Far above the rounding of any quadratic form, and too small to affect pruning.
SLACK = cython.declare(cython.double, 1.0 + 1e-6)
INFINITY = cython.declare(cython.double, float("inf"))
# One normal exceeds another whose mean is this many standard deviations of their difference higher
# with a probability of 1.2e-19: ten million such arms together do not win once in 8e11.
REACH = cython.declare(cython.double, 9.0)
# Marks in place of scales that were not computed: the arm has the scale of every arm without
# rewards, or cannot win.
ALIKE = cython.declare(cython.double, -1.0)
CANNOT_WIN = cython.declare(cython.double, -2.0)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def pick(share: cython.double, n: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Return an index below n, uniformly, from a uniform number `share`."""
    return min(cython.cast(cython.Py_ssize_t, share * n), n - 1)


@cython.final
@cython.cclass
class Chooser:
    """A rule over a set of arms, with its workspace. Not thread-safe.

    Parameters
    ----------
    core : Core
        Posterior of the parameters.
    rule : Rule
        Rule that scores arms.
    parameter_of : ndarray of int of shape (n_arms,)
        Index of the parameter of each arm.
    keeps : bool
        Whether location and scale of the scores are kept, from which probabilities are computed.
    describes : bool, default False
        Whether every score is computed, and its parts are kept in `description`: mean, width,
        optimism and dispersion of each arm, (4, n_arms).
    """

    def __init__(
        self, core: Core, rule: Rule, parameter_of: Ints, keeps: bool, describes: bool = False
    ) -> None:
        core.check(parameter_of)
        if parameter_of.size == 0:
            raise ValueError("a Chooser needs at least one arm")
        if rule.joint:
            raise ValueError("a Chooser draws for each arm: a joint sample needs choose_jointly")
        keeps = keeps or rule.weighted  # weights follow from probabilities
        self.core, self.explorer = core, Explorer(core, rule)
        self.parameter_of, self.n_arms, self.keeps = parameter_of, parameter_of.size, keeps
        self.location, self.scale, self.score = np.empty((3, parameter_of.size))
        self.score_params = np.ones((3, parameter_of.size if keeps else 0))
        self.columns = self.score_params
        self.describes = describes
        self.description = np.empty((4, parameter_of.size if describes else 0))
        self.parts = self.description
        self.slot, self.value, self.n_columns, self.column, self.alike = -1, 0.0, 0, 0, -1
        self.best = self.top = self.top_scale = self.alike_width = 0.0

    def choose_rounds(
        self, y: Floats, z: Floats, uniforms: Floats
    ) -> tuple[Ints, Floats, Floats, Floats]:
        """Choose an arm in each of T rounds from the current posterior.

        Parameters
        ----------
        y : ndarray of shape (T, 1, d) or (T, n_arms, d)
            One observation for all arms of a round, or one for each.
        z : ndarray of shape (T, n_arms)
            Standard normals.
        uniforms : ndarray of shape (T, 2)
            Uniform numbers.

        Returns
        -------
        chosen, scores : ndarray of shape (T,)
            Indices of the chosen arms, and their scores.
        location, scale : ndarray of shape (T, n_arms)
            Mean and standard deviation of the scores; of shape (0, n_arms) if they are not kept. A
            score that cannot win has scale 0 and a location below the others.
        """
        rounds, rows, dim = y.shape
        shapes = (rows in (1, self.n_arms), dim == self.core.dim, z.shape == (rounds, self.n_arms))
        if not all(shapes) or uniforms.shape != (rounds, 2):
            raise ValueError(
                f"shapes of y {y.shape}, z {z.shape} and uniforms {uniforms.shape} must be "
                f"(T, 1 or {self.n_arms}, {self.core.dim}), (T, {self.n_arms}) and (T, 2)"
            )
        kept = rounds if self.keeps else 0
        chosen, scores = np.empty(rounds, np.int64), np.empty(rounds)
        location, scale = np.empty((2, kept, self.n_arms))
        flat_y: cython.double[::1] = y.reshape(-1)
        flat_z: cython.double[::1] = z.reshape(-1)
        rows_of_y: cython.p_double = start_of(flat_y)
        normals: cython.p_double = start_of(flat_z)
        numbers: cython.double[:, ::1] = uniforms
        places: cython.longlong[::1] = chosen
        values: cython.double[::1] = scores
        locations: cython.double[:, ::1] = location
        scales: cython.double[:, ::1] = scale
        size: cython.Py_ssize_t = rows * dim
        stride: cython.Py_ssize_t = dim if rows > 1 else 0
        n_rounds: cython.Py_ssize_t = rounds
        with cython.nogil:
            for t in range(n_rounds):
                places[t] = self.choose(
                    after(rows_of_y, t * size),
                    stride,
                    after(normals, t * self.n_arms),
                    numbers[t, 0],
                    numbers[t, 1],
                )
                values[t] = self.value
                for k in range(self.n_arms if self.keeps else 0):
                    locations[t, k] = self.location[k]
                    scales[t, k] = max(self.scale[k], 0.0)
                    if self.scale[k] == ALIKE:
                        locations[t, k] = self.columns[0, self.alike]
                        scales[t, k] = self.columns[1, self.alike]
        return chosen, scores, location, scale

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def choose(
        self,
        y: cython.p_double,
        stride: cython.Py_ssize_t,
        z: cython.p_double,
        coin: cython.double,
        tie: cython.double,
    ) -> cython.Py_ssize_t:
        """Return the index of the chosen arm.

        Parameters
        ----------
        y : pointer to double
            Observations.
        stride : int
            Distance from one arm's observation to the next, or 0 if all arms share one.
        z : pointer to double
            A standard normal for each arm.
        coin, tie : float
            Uniform numbers, for exploration and for ties.
        """
        self.core.stamp += 1
        self.explorer.look()
        # The arm with the largest upper bound goes first: its score rules out most of the others.
        leader: cython.Py_ssize_t = self.upper_bounds(y, stride, z)
        picked: cython.Py_ssize_t = -1
        if coin < self.explorer.rate:
            picked = pick(coin / self.explorer.rate, self.n_arms)
        winner: cython.Py_ssize_t = leader
        tied: cython.bint = False
        self.slot, self.best, self.alike_width = -1, -INFINITY, -1.0
        self.top, self.top_scale = -INFINITY, 0.0
        # One flag in place of two in the loop: 3% of a round of 1000 arms.
        skips: cython.bint = not self.keeps and not self.describes
        best: cython.double = self.best  # a local: the compiler keeps it in a register
        for step in range(-1, self.n_arms):
            k: cython.Py_ssize_t = leader if step < 0 else step
            # An arm that cannot be the best is skipped, unless its scale is needed.
            if step == leader or (
                self.score[k] < best
                and k != picked
                and (skips or (not self.describes and self.passes(k, stride)))
            ):
                continue
            slot: cython.Py_ssize_t = self.look_at(k, after(y, k * stride), stride, z[k])
            if self.score[k] >= self.best:
                tied = self.score[k] == self.best
                self.best = best = self.score[k]
                self.slot, winner = slot, k

        chosen: cython.Py_ssize_t = winner
        if picked >= 0:
            chosen = picked
        elif tied:
            chosen = self.one_of_best(self.best, tie)
        if chosen != winner:
            self.slot = -1
        self.value = self.score[chosen]
        if self.keeps:
            self.keep_score_params(chosen, stride)
        return chosen

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def chance(self) -> cython.double:
        """Return the probability of the last choice; scores must be kept."""
        n: cython.Py_ssize_t = self.n_columns
        best: cython.double = chance_of(
            self.columns[0, :n], self.columns[1, :n], self.columns[2, :n], self.column
        )
        return mixed(best, self.explorer.rate, self.n_arms)

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def passes(self, k: cython.Py_ssize_t, stride: cython.Py_ssize_t) -> cython.bint:
        """Return whether the width of an arm that cannot be the best is not needed.

        Probabilities need it, unless the arm is like others or cannot win.

        Parameters
        ----------
        k : int
            Index of the arm.
        stride : int
            Distance between observations, as in `choose`.
        """
        i: cython.Py_ssize_t = self.parameter_of[k]
        if self.alike_width >= 0.0 and stride == 0 and self.core.n[i] == 0.0:
            self.scale[k] = ALIKE
            return True
        max_width: cython.double = self.scale[k]  # an upper bound until the width is computed
        gap: cython.double = self.top - self.location[k] - self.explorer.optimism_of(i) * max_width
        spread: cython.double = self.explorer.dispersion_of(i) * max_width
        square: cython.double = spread * spread + self.top_scale * self.top_scale
        if gap > 0.0 and gap * gap > REACH * REACH * square:
            self.scale[k] = CANNOT_WIN
            return True
        return False

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def look_at(
        self,
        k: cython.Py_ssize_t,
        y: cython.p_double,
        stride: cython.Py_ssize_t,
        z: cython.double,
    ) -> cython.Py_ssize_t:
        """Compute score, location and scale of an arm.

        Parameters
        ----------
        k : int
            Index of the arm.
        y : pointer to double
            Observation of the arm.
        stride : int
            Distance between observations, as in `choose`.
        z : float
            Standard normal of the arm.

        Returns
        -------
        int
            Slot of P y in the core, or -1 if P y was not computed.
        """
        i: cython.Py_ssize_t = self.parameter_of[k]
        slot: cython.Py_ssize_t = -1
        width: cython.double = 0.0
        fresh: cython.bint = stride == 0 and self.core.n[i] == 0.0
        if fresh and self.alike_width >= 0.0:
            width = self.alike_width
        elif self.explorer.uncertain or self.describes:
            if self.score[k] < self.best and not fresh:
                # Its upper bound is below the best score: it is not chosen, and P y not needed.
                width = sqrt(self.core.quadratic_form_alone(i, y))
            else:
                slot = 1 if self.slot == 0 else 0
                width = sqrt(self.core.quadratic_form(i, y, slot))
            if fresh:
                self.alike_width = width
        optimism: cython.double = self.explorer.optimism_of(i)
        dispersion: cython.double = self.explorer.dispersion_of(i)
        if self.describes:
            self.parts[0, k], self.parts[1, k] = self.location[k], width
            self.parts[2, k], self.parts[3, k] = optimism, dispersion
        self.score[k] = self.location[k] + width * (optimism + dispersion * z)
        self.location[k] += width * optimism
        self.scale[k] = width * dispersion
        if self.location[k] - REACH * self.scale[k] > self.top - REACH * self.top_scale:
            self.top, self.top_scale = self.location[k], self.scale[k]
        return slot

    # -- before any quadratic form ----------------------------------------------------------------

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def upper_bounds(
        self,
        y: cython.p_double,
        stride: cython.Py_ssize_t,
        z: cython.p_double,
    ) -> cython.Py_ssize_t:
        """Set scores to upper bounds, locations to y'mean and scales to upper bounds of widths.

        Parameters
        ----------
        y : pointer to double
            Observations.
        stride : int
            Distance between observations, as in `choose`.
        z : pointer to double
            A standard normal for each arm.

        Returns
        -------
        int
            Index of the largest upper bound.
        """
        self.predict(y, stride)
        # The compiler vectorises plain loops over arrays, but not loops indexed by parameter_of:
        # square roots have a loop of their own.
        for k in range(self.n_arms):
            self.scale[k] = SLACK * sqrt(self.scale[k])
        optimism: cython.double
        dispersion: cython.double
        if self.explorer.learned or self.explorer.radius > 0.0:
            for k in range(self.n_arms):
                i: cython.Py_ssize_t = self.parameter_of[k]
                exploration: cython.double = (
                    self.explorer.optimism_of(i) + self.explorer.dispersion_of(i) * z[k]
                )
                self.score[k] = self.location[k] + self.scale[k] * max(exploration, 0.0)
            return self.argmax_score()
        # Optimism and dispersion are the same for all arms. The bound has the product and the sum
        # of a score, so that rounding cannot put a score above its bound.
        optimism = self.explorer.optimism_of(0)
        dispersion = self.explorer.dispersion_of(0)
        for k in range(self.n_arms):
            self.score[k] = self.location[k] + self.scale[k] * max(
                optimism + dispersion * z[k], 0.0
            )
        return self.argmax_score()

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def predict(self, y: cython.p_double, stride: cython.Py_ssize_t) -> cython.void:
        """Set locations to y'mean, and scales to |y|^2 bound, an upper bound of the squared width.

        Arms that share an observation are processed four at a time; the last four may overlap
        those before. All are then rounded in the same way, and equal means give equal numbers. The
        mean of an arm without rewards is zero and is not read.

        Parameters
        ----------
        y : pointer to double
            Observations.
        stride : int
            Distance between observations, as in `choose`.
        """
        dim: cython.Py_ssize_t = self.core.dim
        last: cython.Py_ssize_t = self.n_arms - 1
        squared: cython.double = 0.0
        if stride > 0:
            for k in range(self.n_arms):
                place: cython.Py_ssize_t = k * stride
                i: cython.Py_ssize_t = self.parameter_of[k]
                mean: cython.double = 0.0
                squared = 0.0
                for j in range(dim):
                    mean += y[place + j] * self.core.mean[i, j]
                    squared += y[place + j] * y[place + j]
                self.location[k], self.scale[k] = mean, squared * self.core.bound[i]
            return
        for j in range(dim):
            squared += y[j] * y[j]
        for k in range(self.n_arms):
            self.scale[k] = squared * self.core.bound[self.parameter_of[k]]
        for start in range(0, self.n_arms, 4):
            k0: cython.Py_ssize_t = max(min(start, last - 3), 0)
            k1: cython.Py_ssize_t = min(k0 + 1, last)
            k2: cython.Py_ssize_t = min(k0 + 2, last)
            k3: cython.Py_ssize_t = min(k0 + 3, last)
            i0: cython.Py_ssize_t = self.parameter_of[k0]
            i1: cython.Py_ssize_t = self.parameter_of[k1]
            i2: cython.Py_ssize_t = self.parameter_of[k2]
            i3: cython.Py_ssize_t = self.parameter_of[k3]
            a: cython.double = 0.0
            b: cython.double = 0.0
            c: cython.double = 0.0
            d: cython.double = 0.0
            if self.core.n[i0] + self.core.n[i1] + self.core.n[i2] + self.core.n[i3] > 0.0:
                for j in range(dim):
                    now: cython.double = y[j]
                    a += self.core.mean[i0, j] * now
                    b += self.core.mean[i1, j] * now
                    c += self.core.mean[i2, j] * now
                    d += self.core.mean[i3, j] * now
            self.location[k0], self.location[k1] = a, b
            self.location[k2], self.location[k3] = c, d

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def argmax_score(self) -> cython.Py_ssize_t:
        """Return the first index of the largest score. Four are compared at a time."""
        a: cython.double = self.score[0]
        b: cython.double = a
        c: cython.double = a
        d: cython.double = a
        whole: cython.Py_ssize_t = self.n_arms - self.n_arms % 4
        place: cython.Py_ssize_t = 0
        for k in range(0, whole, 4):
            a = self.score[k] if self.score[k] > a else a
            b = self.score[k + 1] if self.score[k + 1] > b else b
            c = self.score[k + 2] if self.score[k + 2] > c else c
            d = self.score[k + 3] if self.score[k + 3] > d else d
        for k in range(whole, self.n_arms):
            a = self.score[k] if self.score[k] > a else a
        a = max(max(a, b), max(c, d))
        while self.score[place] < a:
            place += 1
        return place

    # -- after all scores -------------------------------------------------------------------------

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def one_of_best(self, best: cython.double, tie: cython.double) -> cython.Py_ssize_t:
        """Return the index of an arm with the best score, uniformly if there are several.

        Parameters
        ----------
        best : float
            The best score.
        tie : float
            Uniform number.
        """
        ties: cython.Py_ssize_t = 0
        for k in range(self.n_arms):
            ties += self.score[k] == best
        left: cython.Py_ssize_t = pick(tie, ties)
        for k in range(self.n_arms):
            if self.score[k] == best:
                if left == 0:
                    return k
                left -= 1
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def keep_score_params(
        self, chosen: cython.Py_ssize_t, stride: cython.Py_ssize_t
    ) -> cython.void:
        """Write location and scale of the scores that can win to `columns`, with their number.

        Arms without rewards that share an observation have one column together.

        Parameters
        ----------
        chosen : int
            Index of the chosen arm, whose column is kept.
        stride : int
            Distance between observations, as in `choose`.
        """
        n: cython.Py_ssize_t = 0
        self.alike = -1
        others: cython.Py_ssize_t = 0  # number of arms that were not evaluated and share a column
        for k in range(self.n_arms):
            if self.scale[k] < 0.0:
                others += self.scale[k] == ALIKE
                continue
            column: cython.Py_ssize_t = n
            if stride == 0 and self.core.n[self.parameter_of[k]] == 0.0:
                self.alike = n if self.alike < 0 else self.alike
                column = self.alike
            if column == n:
                self.columns[0, n], self.columns[1, n] = self.location[k], self.scale[k]
                self.columns[2, n] = 0.0
                n += 1
            self.columns[2, column] += 1.0
            if k == chosen:
                self.column = column
        if others > 0:
            self.columns[2, self.alike] += others
        self.n_columns = n
