"""Tests of the paper's claims by simulation."""

from keyhole.lab.audit.claims import audit
from keyhole.lab.audit.findings import Finding
from keyhole.lab.audit.scope import Scope

__all__ = ["Finding", "Scope", "audit"]
