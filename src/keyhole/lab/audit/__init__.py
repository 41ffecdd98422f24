"""Tests of the paper's claims, and of certificates, by simulation."""

from keyhole.lab.audit.auditing import FAMILY_ERROR, audit
from keyhole.lab.audit.certifying import Check, burn_in, check_certificate
from keyhole.lab.audit.findings import Finding, Power
from keyhole.lab.audit.lemmas import LEMMAS, Lemma
from keyhole.lab.audit.overviews import Overview, overview
from keyhole.lab.audit.scope import Scope
from keyhole.lab.audit.validity import Assumption, assumptions

__all__ = [
    "FAMILY_ERROR",
    "LEMMAS",
    "Assumption",
    "Check",
    "Finding",
    "Lemma",
    "Overview",
    "Power",
    "Scope",
    "assumptions",
    "audit",
    "burn_in",
    "check_certificate",
    "overview",
]
