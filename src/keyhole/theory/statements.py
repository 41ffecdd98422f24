"""Where each bound comes from, from when on it is claimed, and whether it is proved.

Small on purpose: a table of what is known of the proofs today. The gaps were found by reading the
proofs; those that are called false have a counterexample in the tests.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from keyhole.errors import InvalidValue, shown

Word: TypeAlias = Literal["proved", "corrected", "open"]

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
    "chosen after them",
    "odds": "eq:term2 is false: it takes |y_i(t)| / |y(t)|, which can be near 0, for 1",
    "tail": "lem:nineq is used for one tail, for which it is false where 1 <= z < 1.18",
    "conditioning": "lem:term1 to lem:piineq count pulls given that arm i is clearly best, and "
    "lose the factor 1 / P(A^kappa): 4 l in tau_i becomes 8 l / p_i",
    "impossible-arms": "arms with p_j = 0 are not covered: n_j >= p_j t / 4 says nothing of them",
    "filtration": "thm:reg1 applies Azuma's inequality with a trivial filtration, in which the "
    "differences are no martingale differences",
    "delta": "several steps fail with probability delta each, and delta is not divided among them",
}


@dataclass(frozen=True)
class Statement:
    """A bound of the paper: its label, its meaning and what it rests on.

    starts names the bound that says from when on it is claimed ("" for always), and of_arm whether
    it is about one arm. rests_on names bounds, gaps are keys of `GAPS`, and corrected says how the
    formula differs from the printed one.
    """

    label: str
    meaning: str
    starts: str = ""
    rests_on: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    corrected: str = ""
    of_arm: bool = False


@dataclass(frozen=True)
class Status:
    """Whether a bound is proved, corrected (proved once a slip is mended) or open, and why."""

    word: Word
    gaps: tuple[str, ...]
    corrections: tuple[str, ...]


STATEMENTS = {
    "truncation": Statement("lem:tr", "no entry of any observation is larger"),
    "length": Statement("eq:ybnd", "no observation is longer", rests_on=("truncation",)),
    "confidence_radius": Statement(
        "lem:subg",
        "radius of an arm's ellipsoid after as many pulls as rounds, if no observation is longer "
        "than L",
        rests_on=("length",),
        corrected="mean - eta = B^-1 (S - eta), which gives + c_eta; R^2 on the right of |S|^2; "
        "log(1 / delta) twice where d_y = 1",
    ),
    "nu_1": Statement(
        "lem:eig",
        "pulls from which B's eigenvalues are said to grow",
        rests_on=("length",),
        gaps=("selection", "direction", "truncation"),
    ),
    "nu_2": Statement(
        "lem:term1", "pulls from which an arm is said not to be mistaken", rests_on=("nu_1",)
    ),
    "ell": Statement(
        "lem:ni",
        "pulls that other arms may take from a clearly best one",
        rests_on=("term_1", "term_2", "term_3"),
    ),
    "h": Statement(
        "eq:h",
        "estimation error times the root of the pulls",
        starts="nu_1",
        rests_on=("confidence_radius", "nu_1"),
        gaps=("delta",),
    ),
    "missed_odds": Statement(
        "eq:phiinv2",
        "odds against a clearly best arm's sample, on average",
        rests_on=("length",),
        gaps=("adaptivity", "odds", "tail"),
    ),
    "term_1": Statement(
        "lem:term1",
        "pulls of j from a clearly best i, both well known",
        starts="term_1",
        rests_on=("nu_2", "missed_odds"),
        gaps=("conditioning",),
        corrected="P(A^eta) >= 1 - exp(...), where <= is printed",
    ),
    "term_2": Statement(
        "lem:term2",
        "pulls of j since its sample is far off",
        starts="term_2",
        rests_on=("nu_2",),
        gaps=("adaptivity", "conditioning"),
        corrected="E^2 with a quarter of the gap, as the proof uses it",
    ),
    "term_3": Statement(
        "lem:term3",
        "pulls of j since its estimate is far off",
        starts="term_3",
        rests_on=("nu_2",),
        gaps=("adaptivity", "conditioning"),
        corrected="E^2 with a quarter of the gap; the sum is split by n_j, where n_i is printed",
    ),
    "g_1": Statement(
        "eq:g1",
        "a sample's error times the root of the rounds",
        starts="tau",
        rests_on=("sampling_error", "tau"),
    ),
    "c_m": Statement("eq:cm", "the constant of a suboptimal pull", starts="nu_1", rests_on=("h",)),
    "suboptimal_probability": Statement(
        "thm:reg2",
        "probability of a suboptimal pull in the last round",
        starts="tau",
        rests_on=("c_m", "tau"),
        gaps=("impossible-arms",),
    ),
    "theorem_2": Statement(
        "thm:reg2",
        "regret of Algorithm 1",
        starts="tau",
        rests_on=("g_1", "suboptimal_probability"),
        gaps=("delta",),
        corrected="4 c_M, from the step before, where 16 c_M is printed",
    ),
    "bounded_corollary": Statement(
        "thm:reg2",
        "regret of Algorithm 1 where no observation is ever longer than a number",
        starts="tau",
        rests_on=("theorem_2",),
    ),
    "g": Statement(
        "thm:reg1",
        "errors of two samples times the root of the rounds, shared parameter",
        starts="nu_1",
        rests_on=("sampling_error",),
        corrected="with the root of 2 / lambda_m that lem:eta1 brings, and without an undefined "
        "lambda",
    ),
    "shared_suboptimal_probability": Statement(
        "eq:probijsum",
        "probability of a suboptimal pull, shared parameter",
        starts="nu_1",
        rests_on=("c_m",),
        corrected="without the L of eq:probij",
    ),
    "shared_theorem": Statement(
        "thm:reg1",
        "regret of Algorithm 2, if all arms share a parameter",
        starts="nu_1",
        rests_on=("g", "shared_suboptimal_probability"),
        gaps=("filtration", "delta"),
    ),
    "tau": Statement(
        "lem:ni",
        "the round from which the arm is said to be pulled often enough",
        rests_on=("nu_1", "ell"),
        gaps=("delta",),
        corrected="128 / p_i^2, as proved, where 32 / p_i^2 is stated",
        of_arm=True,
    ),
    "expected_pulls": Statement(
        "lem:piineq",
        "pulls that are expected at least",
        starts="ell",
        rests_on=("ell",),
        of_arm=True,
    ),
    "covariance_bound": Statement(
        "lem:eig", "largest eigenvalue of B^-1", starts="nu_1", rests_on=("nu_1",), of_arm=True
    ),
    "estimation_error": Statement(
        "lem:eta0", "|mean - eta|", starts="nu_1", rests_on=("h",), of_arm=True
    ),
    "theorem_1": Statement(
        "thm:eta2",
        "|mean - eta|, by rounds",
        starts="tau",
        rests_on=("h", "tau"),
        corrected="R multiplies the root and not c_eta, as in lem:eta0",
        of_arm=True,
    ),
    "sampling_error": Statement(
        "lem:eta1",
        "|sample - eta|",
        starts="nu_1",
        rests_on=("h",),
        corrected="the largest eigenvalue of B^-1 is 2 / (lambda_m n), without a root",
        of_arm=True,
    ),
}


def status_of(name: str, *, shared_context: bool = False) -> Status:
    """Tell whether a bound is proved, corrected or open.

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
        The word, the names of the gaps (keys of `GAPS`), and the corrections on the way.

    Raises
    ------
    InvalidValue
        If there is no bound of this name.

    Examples
    --------
    >>> status_of("length").word, status_of("confidence_radius").word
    ('proved', 'corrected')
    >>> status_of("covariance_bound", shared_context=True).gaps
    ('selection', 'direction', 'truncation', 'shared-context')

    """
    if name not in STATEMENTS:
        raise InvalidValue(
            f"there is no bound {shown(name)}; there are {', '.join(sorted(STATEMENTS))}"
        )
    steps = _steps(name)
    gaps = list(dict.fromkeys(gap for step in steps for gap in STATEMENTS[step].gaps))
    if shared_context and "nu_1" in steps:  # where lem:eig enters
        gaps.append("shared-context")
    corrections = tuple(text for step in steps if (text := STATEMENTS[step].corrected))
    word: Word = "open" if gaps else "corrected" if corrections else "proved"
    return Status(word, tuple(gaps), corrections)


def _steps(name: str) -> list[str]:
    """Return a bound and all that it rests on, the first steps first."""
    before = [step for parent in STATEMENTS[name].rests_on for step in _steps(parent)]
    return list(dict.fromkeys([*before, name]))
