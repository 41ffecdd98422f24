"""The statistics that decide claims, for studies and for the audit."""

from keyhole.lab.evidence.estimates import LEVEL, Estimate, estimate, jackknife, standard_error
from keyhole.lab.evidence.growth import (
    WORST_OF,
    Slope,
    expected_worst,
    exponent,
    power_of_log,
    power_of_time,
    rate_of_decay,
    slope,
)
from keyhole.lab.evidence.outcomes import (
    Outcome,
    Verdict,
    all_of,
    at_least,
    at_most,
    counted,
    listed,
    within,
)
from keyhole.lab.evidence.shares import Share, share

__all__ = [
    "LEVEL",
    "WORST_OF",
    "Estimate",
    "Outcome",
    "Share",
    "Slope",
    "Verdict",
    "all_of",
    "at_least",
    "at_most",
    "counted",
    "estimate",
    "expected_worst",
    "exponent",
    "jackknife",
    "listed",
    "power_of_log",
    "power_of_time",
    "rate_of_decay",
    "share",
    "slope",
    "standard_error",
    "within",
]
