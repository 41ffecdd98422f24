"""Tests of the paper's claims, and of certificates, by simulation."""

from keyhole.lab.audit.certifying import Check, burn_in, check_certificate
from keyhole.lab.audit.claims import audit
from keyhole.lab.audit.findings import Finding
from keyhole.lab.audit.scope import Scope

__all__ = ["Check", "Finding", "Scope", "audit", "burn_in", "check_certificate"]
