"""Each claim of the paper held against simulation."""

from keyhole.audit.claims import audit
from keyhole.audit.findings import Finding
from keyhole.audit.scope import Scope

__all__ = ["Finding", "Scope", "audit"]
