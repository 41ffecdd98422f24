"""Each claim of the paper held against simulation."""

from keyhole.audit.claims import Scope, audit
from keyhole.audit.findings import Finding

__all__ = ["Finding", "Scope", "audit"]
