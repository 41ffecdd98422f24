"""Every explicit bound of the paper's appendices C to F, as a function of an instance's constants.

A bound takes `Constants` and the point at which it is taken, by name: horizon (T, the number of
rounds), t (a round), n (pulls of an arm), p (the probability that the arm is best). These may be
arrays. Logarithms are natural. Where a slip of the paper has an obvious correction, that form is
given and the docstring says so. Where a step of the proof had to be replaced, the printed formula
stays, and its repair stands beside it under its name with `_repaired`.

A function computes its formula at any point. From when on the paper claims it, and whether that is
proved, repaired or open, is in `keyhole.theory.STATEMENTS`; `keyhole.theory.Promises` gives no
value before that time. Most printed bounds are open, and their minimum times are beyond any horizon
that can be simulated.

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
from keyhole.theory.bounds.repaired import (
    confidence_radius_repaired,
    covariance_bound_repaired,
    estimation_error_repaired,
    h_repaired,
    length_repaired,
    nu_1_repaired,
    pulls_repaired,
    sampling_error_repaired,
    shared_nu_1_repaired,
    shared_theorem_repaired,
    suboptimal_probability_repaired,
    tau_repaired,
    theorem_1_repaired,
    theorem_2_repaired,
)

__all__ = [
    "bounded_corollary",
    "c_m",
    "confidence_radius",
    "confidence_radius_repaired",
    "covariance_bound",
    "covariance_bound_repaired",
    "ell",
    "estimation_error",
    "estimation_error_repaired",
    "expected_pulls",
    "g",
    "g_1",
    "h",
    "h_repaired",
    "length",
    "length_repaired",
    "missed_odds",
    "nu_1",
    "nu_1_repaired",
    "nu_2",
    "pulls_repaired",
    "sampling_error",
    "sampling_error_repaired",
    "shared_nu_1_repaired",
    "shared_suboptimal_probability",
    "shared_theorem",
    "shared_theorem_repaired",
    "suboptimal_probability",
    "suboptimal_probability_repaired",
    "tau",
    "tau_repaired",
    "term_1",
    "term_2",
    "term_3",
    "theorem_1",
    "theorem_1_repaired",
    "theorem_2",
    "theorem_2_repaired",
    "truncation",
]
