"""Certificates: bounds on regret that are not vacuous, each with its proof in steps.

Each module proves its own steps in its docstring: exploration and information (`exploration`),
spectrum and ellipsoid (`ellipsoid`), confusion (`confusion`), largest gap, deviation and the
trivial bound (`deviation`), the burn-in (`burn_in`). `derivation` puts them together, round by
round.
"""

from keyhole.theory.certificates.burn_in import BurnIn, runs_needed
from keyhole.theory.certificates.certificate import Certificate, certificate
from keyhole.theory.certificates.steps import Step

__all__ = ["BurnIn", "Certificate", "Step", "certificate", "runs_needed"]
