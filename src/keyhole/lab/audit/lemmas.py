"""The fifteen lemmas of the appendices: the claims that test each, or the reason why none does."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Lemma:
    """A lemma of the appendices.

    Parameters
    ----------
    label : str
        Its label in the paper; that of its formula if it has none.
    says : str
        Its statement.
    claims : tuple of str, default ()
        The claims of an audit that test it, by name.
    reason : str, default ""
        Why no simulation tests it, if none does.
    """

    label: str
    says: str
    claims: tuple[str, ...] = ()
    reason: str = ""


LEMMAS = (
    Lemma("lem:tr", "no entry of an observation exceeds v_T", ("truncation",)),
    Lemma(
        "lem:subg",
        "rewards are R-sub-Gaussian about y'eta, and ellipsoids cover",
        ("tails", "prediction", "ellipsoid"),
    ),
    Lemma("lem:dti", "E M <= 1 at every stopping time", ("supermartingale",)),
    Lemma("lem:eig", "eigenvalues of B grow like lambda_m n / 2", ("eigenvalues",)),
    Lemma("lem:azu", "Azuma's inequality, as lem:ni uses it", ("choices",)),
    Lemma("lem:eta0", "|mean - eta| <= h / sqrt(n)", ("estimation by pulls",)),
    Lemma("lem:eta1", "the same of samples", ("sampling",)),
    Lemma(
        "lem:inq",
        "the odds of choosing j and not i",
        reason="an inequality between two integrals that holds in every state by independence of "
        "the samples: there is nothing random to test. A unit test computes both sides",
    ),
    Lemma(
        "lem:nineq",
        "bounds on the tails of a normal",
        reason="a statement about one function, decided by computing it: as printed, for both "
        "tails, the lower bound is true and the upper one false from z = 1.184 on; for one tail, "
        "as the proofs use it, the lower one is false below z = 1.184",
    ),
    Lemma("eq:phiinv2", "the odds against a clearly best arm, on average", ("odds",)),
    Lemma("lem:term1", "pulls of j, both arms well known", ("wrong pulls, well known",)),
    Lemma("lem:term2", "pulls of j by a far sample", ("wrong pulls by samples",)),
    Lemma("lem:term3", "pulls of j by a far estimate", ("wrong pulls by estimates",)),
    Lemma("lem:piineq", "expected pulls of a clearly best arm", ("wrong pulls",)),
    Lemma("lem:ni", "n_i(t) >= p_i t / 4", ("pulls",)),
)
