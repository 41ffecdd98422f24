"""How much a rule explores: its optimism and dispersion, as numbers or as the data tell them."""

from __future__ import annotations

import cython
import numpy as np
from cython.cimports.libc.math import log, sqrt

from keyhole.core.kernels.types import Floats, Rule

if cython.compiled:
    from cython.cimports.keyhole.core.kernels.core import Core
    from cython.cimports.keyhole.core.kernels.pointers import row_of
else:
    from keyhole.core.kernels.core import Core
    from keyhole.core.kernels.pointers import row_of

# Far above the rounding of any eigenvalue, far below what pruning would notice.
SLACK = cython.declare(cython.double, 1.0 + 1e-6)
# The weak priors of a learned noise scale count as much as this many residuals.
PRIOR_RESIDUALS = cython.declare(cython.double, 4.0)


@cython.final
@cython.cclass
class Explorer:
    """A rule, and what it says of the parameters of a posterior.

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
        self.greedy, self.pooled, self.uncertain = False, 0.0, True

    def explorations(self) -> tuple[Floats, Floats]:
        """Return optimism and dispersion of each parameter, as the next choice will use them."""
        self.look()
        optimism, dispersion = np.empty((2, self.core.size))
        for i in range(self.core.size):
            optimism[i], dispersion[i] = self.optimism_of(i), self.dispersion_of(i)
        return optimism, dispersion

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def look(self) -> cython.int:
        """Update what the rule needs from the data, before a choice."""
        self.pooled = self.pooled_variance() if self.learned else 0.0
        self.greedy = self.diversity > 0.0 and self.is_diverse() == 1
        hopes: cython.bint = self.optimism > 0.0 or self.radius > 0.0
        self.uncertain = not self.greedy and (self.learned or self.dispersion > 0.0 or hopes)
        return 0

    # -- how much noise there is ------------------------------------------------------------------

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def misfit(self, i: cython.Py_ssize_t) -> cython.double:
        """The sum of squares of parameter i's residuals r - y'mean."""
        return max(self.core.residual[i] - self.core.penalty[i], 0.0)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def freedom(self, i: cython.Py_ssize_t) -> cython.double:
        """The degrees of freedom of parameter i's residuals, or somewhat fewer.

        With H = YPY', the misfit r'(I - H)^2 r has the noise variance times
        n - d + prior^2 trace(P^2) as its expectation, up to what the prior holds back of the
        signal, which vanishes like 1/n. trace(P)^2 / d is at most trace(P^2), equal if all
        directions are known alike, and at hand.
        """
        dim: cython.Py_ssize_t = self.core.dim
        trace: cython.double = self.core.prior[i] * self.core.trace[i]
        return max(self.core.n[i] - dim + trace * trace / dim, 0.0)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def pooled_variance(self) -> cython.double:
        """The noise variance as all parameters together tell it, from the rewards' mean square on.

        The start counts as a few residuals and fades as real ones come, so that rewards much larger
        than their noise do not pass for noise for long. Starting from the data makes every choice
        independent of the rewards' unit. While all rewards are zero there is no unit, and any
        positive number leads to the same choice.
        """
        n: cython.double = 0.0
        squares: cython.double = 0.0
        left: cython.double = 0.0
        free: cython.double = 0.0
        for i in range(self.core.size):
            n += self.core.n[i]
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
        """The rule's dispersion, or the learned standard deviation of parameter i's rewards; or 0.

        That is between the pooled one and its own. Its own counts by how many residuals of the
        pooled size it has seen, not by how many rewards. An arm of rare rewards that has not seen
        one yet would otherwise be sure of having no noise, and never be tried again.
        """
        if self.greedy or not self.learned:
            return 0.0 if self.greedy else self.dispersion
        seen: cython.double = self.misfit(i)
        start: cython.double = PRIOR_RESIDUALS * self.pooled
        own: cython.double = (start + seen) / (PRIOR_RESIDUALS + self.freedom(i))
        trust: cython.double = seen / (start + seen) if seen > 0.0 else 0.0
        return sqrt(self.pooled + trust * (own - self.pooled))

    # -- how much is hoped for --------------------------------------------------------------------

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def optimism_of(self, i: cython.Py_ssize_t) -> cython.double:
        """The rule's optimism, and a multiple of the confidence radius of parameter i.

        log det B - log det prior is at most d log(trace B / (d prior)): lem:subg with what was seen
        in place of the bound L on what can be.
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
        """Whether all data are as diverse as the rule asks for.

        The smallest eigenvalue of each parameter's sum of y y' is at least diversity times the
        number of all rewards. Cheap bounds from either side decide most cases: a kept bound on the
        largest eigenvalue of P from above, its diagonal and a few steps of power iteration from
        below. Where the eigenvalue itself has to, it becomes the kept bound, and is not needed
        again for a while.
        """
        total: cython.double = 0.0
        limit: cython.double
        largest: cython.double
        for i in range(self.core.size):
            total += self.core.n[i]
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
        """A little less than the largest eigenvalue: the quotient after a few steps of iteration.

        The root's first row has room for a vector.
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
        # Rounding may have put it above the eigenvalue by this much.
        return quotient * (1.0 - 1e-12)
