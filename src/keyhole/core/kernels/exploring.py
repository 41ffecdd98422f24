"""Exploration of a rule: its optimism and dispersion, as fixed numbers or learned from data."""

from __future__ import annotations

import cython
import numpy as np
from cython.cimports.libc.math import log, pow, sqrt  # noqa: A004 - of doubles

from keyhole.core.kernels.types import Floats, Rule

if cython.compiled:
    from cython.cimports.keyhole.core.kernels.core import Core
    from cython.cimports.keyhole.core.kernels.pointers import row_of
else:
    from keyhole.core.kernels.core import Core
    from keyhole.core.kernels.pointers import row_of

# Far above the rounding of any eigenvalue, and too small to affect pruning.
SLACK = cython.declare(cython.double, 1.0 + 1e-6)
# The weak priors of a learned noise scale have the weight of this many residuals.
PRIOR_RESIDUALS = cython.declare(cython.double, 4.0)


@cython.final
@cython.cclass
class Explorer:
    """Optimism and dispersion of a rule for the parameters of a posterior.

    Parameters
    ----------
    core : Core
        The posterior.
    rule : Rule
        The rule.
    """

    def __init__(self, core: Core, rule: Rule) -> None:
        self.core = core
        self.optimism, self.dispersion, self.epsilon = rule.optimism, rule.dispersion, rule.epsilon
        self.learned, self.radius, self.level = rule.learned, rule.radius, rule.level
        self.diversity, self.patience = rule.diversity, rule.patience
        self.decay, self.weighted, self.rate = rule.decay, rule.weighted, rule.epsilon
        self.greedy, self.pooled, self.uncertain = False, 0.0, True

    def explorations(self) -> tuple[Floats, Floats]:
        """Return optimism and dispersion of each parameter for the next choice."""
        self.look()
        optimism, dispersion = np.empty((2, self.core.size))
        for i in range(self.core.size):
            optimism[i], dispersion[i] = self.optimism_of(i), self.dispersion_of(i)
        return optimism, dispersion

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def look(self) -> cython.int:
        """Update the quantities that the rule needs from the data, before a choice."""
        self.pooled = self.pooled_variance() if self.learned else 0.0
        self.rate = self.epsilon
        if self.decay > 0.0:
            self.rate = self.rate_after(self.n_rewards())
        self.greedy = self.diversity > 0.0 and self.is_diverse() == 1
        is_optimistic: cython.bint = self.optimism > 0.0 or self.radius > 0.0
        self.uncertain = not self.greedy and (
            self.learned or self.dispersion > 0.0 or is_optimistic
        )
        return 0

    # -- uniform choices --------------------------------------------------------------------------

    @cython.ccall
    @cython.nogil
    @cython.exceptval(check=False)
    def rate_after(self, n: cython.double) -> cython.double:
        """Return the probability of a uniform choice after n rewards."""
        return self.epsilon if self.decay == 0.0 else self.epsilon * pow(1.0 + n, -self.decay)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def n_rewards(self) -> cython.double:
        """Return the number of rewards of all parameters."""
        total: cython.double = 0.0
        for i in range(self.core.size):
            total += self.core.n[i]
        return total

    # -- noise scale ------------------------------------------------------------------------------

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def misfit(self, i: cython.Py_ssize_t) -> cython.double:
        """Return the sum of squares of parameter i's residuals r - y'mean."""
        return max(self.core.residual[i] - self.core.penalty[i], 0.0)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def freedom(self, i: cython.Py_ssize_t) -> cython.double:
        """Return the degrees of freedom of parameter i's residuals, or somewhat fewer.

        With H = YPY', the misfit r'(I - H)^2 r has the noise variance times
        n - d + prior^2 trace(P^2) as its expectation, up to the bias of the prior on the signal,
        which vanishes like 1/n. trace(P^2) is replaced by its lower bound trace(P)^2 / d, with
        equality if P has equal eigenvalues, because trace(P) is already known.

        With weights n is their sum. For weights of at most 1 the degrees of freedom are then at
        most a little underestimated: d is subtracted where trace(P sum w^2 y y') <= d would be.
        """
        dim: cython.Py_ssize_t = self.core.dim
        trace: cython.double = self.core.prior[i] * self.core.trace[i]
        return max(self.core.weight[i] - dim + trace * trace / dim, 0.0)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def pooled_variance(self) -> cython.double:
        """Return the noise variance pooled over all parameters.

        Its prior is the mean square of the rewards, with the weight of a few residuals. The prior
        fades as real residuals come, so that rewards much larger than their noise do not count as
        noise for long. A prior from the data makes every choice independent of the rewards' unit.
        While all rewards are zero there is no unit, and any positive number leads to the same
        choice.
        """
        n: cython.double = 0.0
        squares: cython.double = 0.0
        left: cython.double = 0.0
        free: cython.double = 0.0
        for i in range(self.core.size):
            n += self.core.weight[i]
            squares += self.core.squares[i]
            left += self.misfit(i)
            free += self.freedom(i)
        if squares == 0.0:
            return 1.0
        weight: cython.double = PRIOR_RESIDUALS * PRIOR_RESIDUALS / (PRIOR_RESIDUALS + free)
        return (weight * squares / n + left) / (weight + free)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def dispersion_of(self, i: cython.Py_ssize_t) -> cython.double:
        """Return the rule's dispersion, the learned noise scale of parameter i, or 0 if greedy.

        The learned standard deviation is between the pooled one and the parameter's own. The own
        one is weighted by the number of residuals of the pooled size, not by the number of rewards.
        Otherwise an arm of rare rewards that has not had one yet would be estimated to have no
        noise, and never be tried again.
        """
        if self.greedy or not self.learned:
            return 0.0 if self.greedy else self.dispersion
        seen: cython.double = self.misfit(i)
        start: cython.double = PRIOR_RESIDUALS * self.pooled
        own: cython.double = (start + seen) / (PRIOR_RESIDUALS + self.freedom(i))
        trust: cython.double = seen / (start + seen) if seen > 0.0 else 0.0
        return sqrt(self.pooled + trust * (own - self.pooled))

    # -- optimism ---------------------------------------------------------------------------------

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def optimism_of(self, i: cython.Py_ssize_t) -> cython.double:
        """Return the rule's optimism plus a multiple of the confidence radius of parameter i.

        log det B - log det prior is at most d log(trace B / (d prior)): lem:subg with the
        observations so far in place of the bound L on all possible observations.
        """
        if self.greedy or self.radius == 0.0:
            return 0.0 if self.greedy else self.optimism
        trace: cython.double = 0.0
        self.core.flush(i)
        for j in range(self.core.dim):
            trace += self.core.matrices[i, j, j]
        dim: cython.double = self.core.dim
        seen: cython.double = max(dim * log(trace / (dim * self.core.prior[i])), 0.0)
        return self.optimism + self.radius * sqrt(seen + self.level)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def is_diverse(self) -> cython.int:
        """Return whether all data are as diverse as the rule requires.

        The smallest eigenvalue of each parameter's sum of y y' must be at least diversity times the
        number of all rewards. Cheap bounds on the largest eigenvalue of P decide most cases: a
        stored bound from above, its diagonal and a few steps of power iteration from below.
        Otherwise the eigenvalue itself is computed and becomes the stored bound, so that it is not
        needed again for a while.
        """
        total: cython.double = self.n_rewards()
        limit: cython.double
        largest: cython.double
        if total < (
            self.patience if self.patience >= 0.0 else 4.0 * self.core.size * self.core.dim
        ):
            return 1
        for i in range(self.core.size):
            limit = 1.0 / (self.core.prior[i] + self.diversity * total)
            if self.core.bound[i] > limit:
                self.core.flush(i)
                for j in range(self.core.dim):
                    if self.core.matrices[i, j + 1, j] > limit:
                        return 0
        for i in range(self.core.size):
            limit = 1.0 / (self.core.prior[i] + self.diversity * total)
            if self.core.bound[i] > limit:
                if self.lower_eigenvalue(i) > limit:
                    return 0
                with cython.gil:
                    largest = np.linalg.eigvalsh(self.core.state.covariance[i]).max()
                self.core.bound[i] = min(self.core.bound[i], largest * SLACK)
                if largest > limit:
                    return 0
        return 1

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def lower_eigenvalue(self, i: cython.Py_ssize_t) -> cython.double:
        """Return a lower bound on the largest eigenvalue of P, from a few steps of power iteration.

        The first row of `root` holds the vector.
        """
        widest: cython.Py_ssize_t = 0
        quotient: cython.double = 0.0
        self.core.stamp += 1
        for j in range(self.core.dim):
            self.core.root[0, j] = 0.0
            if self.core.matrices[i, j + 1, j] > self.core.matrices[i, widest + 1, widest]:
                widest = j
        self.core.root[0, widest] = 1.0
        for _ in range(4):
            quotient = self.core.quadratic_form(i, row_of(self.core.root, 0), 0)
            squared: cython.double = 0.0
            for j in range(self.core.dim):
                squared += self.core.products[0, j] * self.core.products[0, j]
            for j in range(self.core.dim):
                self.core.root[0, j] = self.core.products[0, j] / sqrt(squared)
        # Rounding may put the quotient above the eigenvalue by this much.
        return quotient * (1.0 - 1e-12)
