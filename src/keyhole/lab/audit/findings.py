"""`Finding`, the result of an audit for one claim."""

from __future__ import annotations

from dataclasses import dataclass

from keyhole.theory import GAPS


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
        The claim.
    holds : bool or None
        False if the simulation contradicts the claim. None if it cannot tell, because of too few
        pulls or too much noise.
    evidence : str
        The observed numbers.
    expected : bool, default True
        False for a negative control: a claim outside its assumptions. A working audit must
        contradict it.
    supported : bool, default False
        Whether an exact test supports the claim, beyond not contradicting it.
    begins : str, default ""
        The point from which the paper makes the claim, if it is beyond the run. The tested claim is
        then stronger than the paper's.
    status : str, default ""
        Whether the paper's bound is proved, repaired or open (`keyhole.theory.status_of`).
    gaps : tuple of str, default ()
        The open points, as keys of `keyhole.theory.GAPS`.
    """

    name: str
    label: str
    claim: str
    holds: bool | None
    evidence: str
    expected: bool = True
    supported: bool = False
    begins: str = ""
    status: str = ""
    gaps: tuple[str, ...] = ()

    @property
    def as_expected(self) -> bool:
        """True if the claim is not contradicted, or if the finding is a contradicted control."""
        return self.holds is not False if self.expected else self.holds is False

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons why the bound is open, in sentences."""
        return tuple(GAPS[gap] for gap in self.gaps)

    @property
    def verdict(self) -> str:
        """The outcome in words.

        "holds" requires an exact test that supports the claim, within the rounds for which the
        paper makes it. Otherwise a claim that is not contradicted is "not contradicted".
        """
        if self.holds is None:
            return "cannot tell"
        if not self.holds:
            return "contradicted"
        return "holds" if self.supported and not self.begins else "not contradicted"
