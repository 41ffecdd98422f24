"""The statement of each bound, the round from which it is claimed, and its status.

The decorator `bound` fills `STATEMENTS`. The gaps were found by reading the proofs; those that are
called false have a counterexample in the tests.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from numpy.typing import ArrayLike

from keyhole.errors import InvalidValue, shown
from keyhole.theory.constants import Constants
from keyhole.theory.ranges import Floats

Word: TypeAlias = Literal["proved", "repaired", "open"]

# What is missing in a proof, or false, by a name that bounds refer to.
GAPS = {
    "selection": "eq:vt bounds E[y y' | arm i is chosen] by the covariance of the sensing noise, "
    "as if the choice did not depend on y",
    "direction": "lem:eig is proved for one direction z, and then used for all of them",
    "truncation": "Azuma's inequality is applied to observations that are cut off at L, with the "
    "mean that they have uncut",
    "shared-context": "with a shared context lem:eig is false: E[y y' | arm i is best] can have "
    "eigenvalues far below lambda_m / 2",
    "adaptivity": "eq:cdfhat treats the noise of past rewards as independent of the arms that were "
    "chosen after them, and leaves out the prior: before any pull it is false",
    "odds": "eq:term2 is false: it takes |y_i(t)| / |y(t)|, which can be near 0, for 1",
    "tail": "lem:nineq is used for one tail, for which it is false where 1 <= z < 1.18; for two "
    "tails it is false beyond",
    "conditioning": "lem:term1 to lem:piineq count pulls given that arm i is clearly best, and "
    "lose the factor 1 / P(A^kappa): 4 l in tau_i becomes 8 l / p_i",
    "impossible-arms": "arms with p_j = 0 are not covered: n_j >= p_j t / 4 says nothing of them",
    "filtration": "thm:reg1 applies Azuma's inequality with a trivial filtration, and lem:ni and "
    "thm:reg2 with that of the arms alone, in which the differences are no martingale differences",
    "delta": "several steps fail with probability delta each, and delta is not divided among them",
}


# Where lem:eig enters, which needs contexts of the arms' own.
WHERE_CONTEXTS_ARE_OWN = {"nu_1", "nu_1_repaired", "shared_nu_1_repaired", "pulls_repaired"}


class Formula(Protocol):
    """A bound: a function of constants and of the point at which it is taken."""

    def __call__(self, c: Constants, **at: ArrayLike) -> Floats: ...  # noqa: D102


@dataclass(frozen=True)
class Statement:
    """A bound of the paper or its repair, and the state of its proof.

    Parameters
    ----------
    bound : callable
        The function in `keyhole.theory.bounds`.
    takes : tuple of str
        Its arguments besides the constants.
    label : str
        Its label in the paper.
    meaning : str
        The bounded quantity.
    starts : str, default ""
        The bound from whose value on it is claimed; "" if always.
    rests_on : tuple of str, default ()
        The bounds that its proof uses.
    gaps : tuple of str, default ()
        The gaps of its own proof, as keys of `GAPS`.
    repair : str, default ""
        The difference from the printed formula.
    replaces : str, default ""
        The printed bound that it takes the place of.
    of_arm : bool, default False
        Whether it is about one arm.
    """

    bound: Formula
    takes: tuple[str, ...]
    label: str
    meaning: str
    starts: str = ""
    rests_on: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    repair: str = ""
    replaces: str = ""
    of_arm: bool = False

    def at(self, c: Constants, **point: ArrayLike) -> float:
        """Return the bound at a point, of which it takes the arguments that it depends on.

        Parameters
        ----------
        c : Constants
            The constants.
        **point : array_like
            Numbers by the names of `takes`, and others.
        """
        return float(self.bound(c, **{name: point[name] for name in self.takes}))


# Every bound by name, in the order of the appendices, and then the repaired ones.
STATEMENTS: dict[str, Statement] = {}


@dataclass(frozen=True)
class Status:
    """Status of a bound: proved, repaired (proved in another form than printed) or open.

    Parameters
    ----------
    word : {"proved", "repaired", "open"}
        The status.
    gaps : tuple of str
        The gaps in all steps of the proof, as keys of `GAPS`.
    repairs : tuple of str
        The differences from the printed formulas in all steps.
    """

    word: Word
    gaps: tuple[str, ...]
    repairs: tuple[str, ...]


def status_of(name: str, *, shared_context: bool = False) -> Status:
    """Tell whether a bound is proved, repaired or open.

    A bound is open if a step that it rests on is.

    Parameters
    ----------
    name : str
        A function of `keyhole.theory.bounds`.
    shared_context : bool, default False
        Whether all arms see one observation. lem:eig is false then.

    Returns
    -------
    Status
        The word, the names of the gaps (keys of `GAPS`), and the repairs on the way.

    Raises
    ------
    InvalidValue
        If there is no bound of this name.

    Examples
    --------
    >>> status_of("length").word, status_of("confidence_radius").word
    ('proved', 'repaired')
    >>> status_of("covariance_bound", shared_context=True).gaps
    ('selection', 'direction', 'truncation', 'shared-context')

    """
    if name not in STATEMENTS:
        raise InvalidValue(
            f"there is no bound {shown(name)}; there are {', '.join(sorted(STATEMENTS))}"
        )
    steps = _steps(name)
    gaps = list(dict.fromkeys(gap for step in steps for gap in STATEMENTS[step].gaps))
    if shared_context and WHERE_CONTEXTS_ARE_OWN & set(steps):
        gaps.append("shared-context")
    repairs = tuple(text for step in steps if (text := STATEMENTS[step].repair))
    word: Word = "open" if gaps else "repaired" if repairs else "proved"
    return Status(word, tuple(gaps), repairs)


def _steps(name: str) -> list[str]:
    """Return a bound and all that it rests on, the first steps first."""
    before = [step for parent in STATEMENTS[name].rests_on for step in _steps(parent)]
    return list(dict.fromkeys([*before, name]))
