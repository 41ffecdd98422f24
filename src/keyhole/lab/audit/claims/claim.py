"""`Claim`: a statement of the paper, its test and its control, as data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from keyhole.lab.audit.controls import Control
from keyhole.lab.audit.findings import Kind
from keyhole.lab.audit.measures import Measured
from keyhole.lab.audit.scope import Scope
from keyhole.theory import STATEMENTS

# What claims need, by the labels of `Assumption`.
SUBGAUSSIAN = ("eq:cy",)
NOISE = ("eq:r1", "ass:subg")
ELLIPSOID = (*SUBGAUSSIAN, *NOISE)
EIGENVALUES = (*ELLIPSOID, "eq:vt", "eq:reward")


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A statement of the paper that an audit tests.

    Parameters
    ----------
    name, label : str
        Its name, and its label in the paper.
    bound : str
        The function of `keyhole.theory.bounds` whose status is the claim's; "" if it has none.
    says : callable
        Returns the tested statement for a scope.
    measure : callable
        Tests it in a scope.
    control : Control
        Breaks it.
    needs : tuple of str
        The assumptions that it needs, by their labels.
    begins : callable, optional
        Returns when the paper's statement begins, if that is beyond the run.
    false : callable, optional
        Returns why the paper's statement is false in the world of a scope, if it is known to be.
        Called only where a test contradicts it.
    kind : {"claim", "within the run", "rate"}, default "claim"
        The kind of test; see `Finding`.
    """

    name: str
    label: str
    bound: str
    says: Callable[[Scope], str]
    measure: Callable[[Scope], Measured]
    control: Control
    needs: tuple[str, ...]
    begins: Callable[[Scope], str] = lambda _: ""
    false: Callable[[Scope], str] = lambda _: ""
    kind: Kind = "claim"


def from_pulls(scope: Scope) -> str:
    """Describe the pulls from which lem:eig is claimed, if the run has fewer.

    Parameters
    ----------
    scope : Scope
        The scope of the audit.
    """
    needed, most = scope.promises.nu_1, scope.traced.pulls.max()
    return "" if scope.traced.pulls.min() >= needed else (
        f"at this horizon the paper claims it from nu_1 = {needed:.2g} pulls on; the run has up to "
        f"{most:,.0f}"
    )  # fmt: skip


def from_rounds(scope: Scope) -> str:
    """Describe the round from which the theorems are claimed, if the run ends before it.

    Parameters
    ----------
    scope : Scope
        The scope of the audit.
    """
    name, c = "nu_1" if scope.shared else "tau", scope.constants
    needed = STATEMENTS[name].at(c, horizon=scope.horizon, p=c.p_min)
    return "" if scope.horizon >= needed else (
        f"at this horizon the paper claims it from {name} = {needed:.2g} rounds on"
    )  # fmt: skip
