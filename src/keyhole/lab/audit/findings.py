"""`Finding`, the result of an audit for one claim, and `Power`, that of its control."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from keyhole.theory import GAPS

Kind: TypeAlias = Literal["claim", "within the run", "rate"]
CONTRADICTED, HOLDS, OPEN, NOT_YET = "contradicted", "holds", "not contradicted", "not yet"


@dataclass(frozen=True)
class Power:
    """The result of a control: the same test where the claim is broken on purpose.

    Parameters
    ----------
    name : str
        The property that is broken.
    p : float
        The p-value against the claim.
    level : float
        The level below which a p-value contradicts.
    slack : float
        limit / seen, as in `Finding`.
    evidence : str
        The observed numbers.
    """

    name: str
    p: float
    level: float
    slack: float
    evidence: str

    @property
    def contradicted(self) -> bool:
        """True if the test contradicts the broken claim, as it must to have power."""
        return self.p <= self.level


@dataclass(frozen=True)
class Finding:
    """The result of testing one claim by simulation.

    Parameters
    ----------
    name : str
        The name of the test.
    label : str
        The label of the claim in the paper.
    claim : str
        The tested statement.
    kind : {"claim", "within the run", "rate"}
        Whether the paper's own statement is tested, the same statement before its time, or the
        rate. The last two are tests in place of a statement that begins beyond the run.
    p : float
        The p-value against the tested statement. 1 if nothing was tested.
    level : float
        The level below which a p-value contradicts: the family's error over the number of tests.
    supported : bool
        Whether a test at 1% supports it: it excludes twice the allowed probability of failure, or
        the interval of a rate lies on the claimed side.
    slack : float
        limit / seen: the factor by which the limit could be lower and still be kept with the
        claimed probability. Below 1 it is broken more often than claimed. NaN if nothing was seen.
    evidence : str
        The observed numbers.
    begins : str, default ""
        The point from which the paper makes the claim, if it is beyond the run.
    early : str, default ""
        The reason why even the test in its place has too little to go by, if it has.
    needs : tuple of str, default ()
        The assumptions of the claim that the world does not meet. Nothing is tested then.
    outside : bool, default False
        Whether the world was audited outside of the assumptions, on purpose.
    control : Power or None, default None
        The control of this claim.
    status : str, default ""
        Whether the paper's bound is proved, repaired or open (`keyhole.theory.status_of`).
    false : str, default ""
        The reason why the paper's statement is false in this world, where a test contradicts it and
        the reason is known.
    gaps : tuple of str, default ()
        The gaps of its proof, as keys of `keyhole.theory.GAPS`.
    """

    name: str
    label: str
    claim: str
    kind: Kind
    p: float
    level: float
    supported: bool
    slack: float
    evidence: str
    begins: str = ""
    early: str = ""
    needs: tuple[str, ...] = ()
    outside: bool = False
    control: Power | None = None
    status: str = ""
    false: str = ""
    gaps: tuple[str, ...] = ()

    @property
    def has_power(self) -> bool:
        """False if the control of the claim was not contradicted: the test could not have failed.

        True without a control.
        """
        return self.control is None or self.control.contradicted

    @property
    def outcome(self) -> str:
        """The outcome of the test, of the paper's own statement or of the one in its place.

        "contradicted", "holds", "holds without power", "not contradicted", or "not yet" if there
        was too little to test.
        """
        if self.needs or self.early:
            return NOT_YET
        if self.p <= self.level:
            return CONTRADICTED
        if not self.supported:
            return OPEN
        return HOLDS if self.has_power else f"{HOLDS} without power"

    @property
    def verdict(self) -> str:
        """The verdict on the paper's own statement.

        "not yet" if it begins beyond the run, "outside" if the world does not meet an assumption of
        the claim, and otherwise the outcome of its test.
        """
        if self.needs:
            return "outside"
        return NOT_YET if self.begins else self.outcome

    @property
    def as_expected(self) -> bool:
        """False if a test contradicts the claim or its rate in a world of its assumptions.

        True where the claim is known to be false.
        """
        return self.outside or bool(self.false) or self.outcome != CONTRADICTED

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons why the bound is open, in sentences."""
        return tuple(GAPS[gap] for gap in self.gaps)
