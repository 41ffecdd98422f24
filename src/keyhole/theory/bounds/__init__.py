"""Every explicit bound of the paper's appendices C to F, as a function of an instance's constants.

A bound takes `Constants` and the point at which it is taken, by name: horizon (T, the number of
rounds), t (a round), n (pulls of an arm), p (the probability that the arm is best). These may be
arrays. Logarithms are natural. Where the paper slips, the corrected form is given and the docstring
says so.

A function computes its formula at any point. From when on the paper claims it, and whether that is
proved, corrected or open, is in `keyhole.theory.STATEMENTS`; `keyhole.theory.Promises` gives no
value before that time. Most bounds are open, and minimum times are beyond any horizon that can be
simulated.

Wrong arguments raise `InvalidValue`: a NaN, a round below 1, a probability outside 0 to 1.
"""

from keyhole.theory.bounds.estimation import (
    confidence_radius,
    covariance_bound,
    estimation_error,
    h,
    length,
    nu_1,
    sampling_error,
    truncation,
)
from keyhole.theory.bounds.pulls import (
    ell,
    expected_pulls,
    missed_odds,
    nu_2,
    tau,
    term_1,
    term_2,
    term_3,
    theorem_1,
)
from keyhole.theory.bounds.regret import (
    bounded_corollary,
    c_m,
    g,
    g_1,
    shared_suboptimal_probability,
    shared_theorem,
    suboptimal_probability,
    theorem_2,
)

__all__ = [
    "bounded_corollary",
    "c_m",
    "confidence_radius",
    "covariance_bound",
    "ell",
    "estimation_error",
    "expected_pulls",
    "g",
    "g_1",
    "h",
    "length",
    "missed_odds",
    "nu_1",
    "nu_2",
    "sampling_error",
    "shared_suboptimal_probability",
    "shared_theorem",
    "suboptimal_probability",
    "tau",
    "term_1",
    "term_2",
    "term_3",
    "theorem_1",
    "theorem_2",
    "truncation",
]
