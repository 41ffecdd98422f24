"""The audit's verdicts where the answer is known, its controls, and worlds outside."""

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import xarray as xr
from scipy.optimize import brentq
from scipy.special import ndtr
from scipy.stats import binom, norm
from scipy.stats import t as student

import keyhole as kh
from keyhole.lab import evidence
from keyhole.lab.audit import FAMILY_ERROR, LEMMAS, Finding, Power, Scope, assumptions, audit
from keyhole.lab.audit.choices import States, first_odds, states, wrong_choices
from keyhole.lab.audit.claims import CLAIMS, SHARED_CLAIMS, estimates, observations, pulls, regret
from keyhole.lab.audit.measures import probability, slack_of
from keyhole.lab.audit.paths import replay
from keyhole.theory import Statement, bounds, unmet
from tests.worlds import linear

WORLD = kh.LinearWorld.random(n_arms=3, context_dim=4, dim=4, seed=1)
SMALL: dict[str, Any] = {"horizon": 1000, "replications": 24}
SIGNS: dict[str, Any] = {
    "context_distribution": "rademacher",
    "sensing_distribution": "rademacher",
}
HEAVY: dict[str, Any] = {"context_distribution": "student-t", "sensing_distribution": "student-t"}
BARE: dict[str, Any] = {
    "name": "made up", "label": "lem:none", "claim": "", "kind": "claim", "p": 1.0, "level": 0.01,
    "supported": False, "slack": 2.0, "evidence": "",
}  # fmt: skip


@pytest.fixture(scope="module")
def found() -> dict[str, Finding]:
    return {one.name: one for one in audit(Scope(world=WORLD, horizon=3000, replications=30))}


def contradicted(scope: Scope) -> set[str]:
    made = audit(scope, with_controls=False)
    return {one.name for one in made if one.outcome == "contradicted"}


# -- inside the assumptions ------------------------------------------------------------------------


def test_no_claim_is_contradicted_and_every_control_is(found: dict[str, Finding]) -> None:
    assert [name for name, one in found.items() if not one.as_expected] == []
    assert [name for name, one in found.items() if not one.has_power] == []
    assert all(one.control is not None for one in found.values())


def test_only_claims_in_their_time_have_a_verdict(found: dict[str, Finding]) -> None:
    now = [name for name, one in found.items() if one.verdict != "not yet"]
    assert now == [
        "truncation", "tails", "prediction", "ellipsoid", "supermartingale", "choices", "odds",
        "shared: ellipsoid", "shared: supermartingale",
    ]  # fmt: skip
    for one in found.values():
        assert bool(one.begins) == (one.name not in now)
        assert (one.kind == "claim") == (one.name in now)
    # With 30 replications and no miss an exact test excludes twice delta: 0.8^30 is 0.1%.
    assert found["truncation"].verdict == "holds"
    assert found["pulls"].outcome == "holds"
    assert "paper claims it from tau = " in found["pulls"].begins
    assert "paper claims it from nu_1 = " in found["eigenvalues"].begins
    assert "cannot exceed" in found["wrong pulls by samples"].begins
    assert "above 1 says nothing" in found["suboptimal pulls"].evidence


def test_every_lemma_has_a_claim_or_a_reason(found: dict[str, Finding]) -> None:
    assert len(LEMMAS) == 15
    own = {name for name in found if not name.startswith("shared: ")}
    for lemma in LEMMAS:
        assert bool(lemma.claims) != bool(lemma.reason), lemma.label
        assert all(found[name].label == lemma.label for name in lemma.claims), lemma.label
    theorems = own - {name for lemma in LEMMAS for name in lemma.claims}
    assert {found[name].label for name in theorems} == {"thm:eta2", "thm:reg2"}
    assert {one.label for one in found.values()} >= {"thm:reg1", "thm:reg2", "thm:eta2"}
    assert len(found) == len(CLAIMS) + len(SHARED_CLAIMS) == 25


def test_the_level_is_the_familys_error_over_the_number_of_tests(
    found: dict[str, Finding],
) -> None:
    assert {one.level for one in found.values()} == {FAMILY_ERROR / 25}
    assert all(one.control is None or one.control.level == one.level for one in found.values())


def test_findings_have_the_status_of_their_bound(found: dict[str, Finding]) -> None:
    for claim in CLAIMS:
        if claim.bound:
            status = kh.theory.status_of(claim.bound)
            assert (found[claim.name].status, found[claim.name].gaps) == (status.word, status.gaps)
    assert found["choices"].status == "proved"
    assert "shared-context" not in found["regret"].gaps
    assert found["regret"].reasons


def test_slacks_are_limit_over_seen(found: dict[str, Finding]) -> None:
    """Nothing that is kept has a slack below 1; that of the theorems is astronomical."""
    assert all(one.slack > 1.0 for one in found.values())
    assert found["regret"].slack > 1e9
    assert found["truncation"].slack < 1.5
    scope = Scope(world=WORLD, **SMALL)
    y = [np.abs(WORLD.sample(1000, np.random.SeedSequence(1, spawn_key=(k,))).observations).max()
         for k in range(24)]  # fmt: skip
    limit = float(bounds.truncation(scope.constants, horizon=1000))
    assert scope.traced.entries == pytest.approx(np.array(y) / limit)
    # The quantile 0.9 of 24 numbers is at 20.7 of 0 to 23, and rounded up.
    assert observations.TRUNCATION.measure(scope).slack == pytest.approx(limit / sorted(y)[21])


def test_slack_and_probability_by_hand() -> None:
    ratios = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 2.0, 4.0])
    assert slack_of(ratios, 0.5) == pytest.approx(1 / 0.6)
    assert slack_of(np.zeros(4), 0.1) == np.inf
    made = probability(ratios, 0.1)
    # Two misses of 10 at 10%: 1 - 0.9^10 - 10 0.1 0.9^9.
    assert made.p == pytest.approx(1 - 0.9**10 - 0.9**9)
    assert not made.supported
    assert made.evidence.startswith("so in 8 of 10 ")
    # A limit that is met exactly is kept.
    assert probability(np.ones(4), 0.1).p == 1.0


def test_holds_without_power_is_said() -> None:
    def said(**settings: Any) -> tuple[str, str]:
        one = Finding(**{**BARE, **settings})
        return one.verdict, one.outcome

    weak, strong = (Power("none", p, 0.01, 1.0, "") for p in (0.02, 0.01))
    assert said() == ("not contradicted", "not contradicted")
    assert said(supported=True) == ("holds", "holds")
    assert said(supported=True, control=strong) == ("holds", "holds")
    assert said(supported=True, control=weak)[0] == "holds without power"
    assert said(p=0.01, supported=True) == ("contradicted", "contradicted")
    assert said(supported=True, begins="later") == ("not yet", "holds")
    assert said(p=0.001, begins="later") == ("not yet", "contradicted")
    assert said(begins="later", early="too few") == ("not yet", "not yet")
    assert said(needs=("eq:cy",)) == ("outside", "not yet")
    assert not Finding(**{**BARE, "p": 0.001, "begins": "later"}).as_expected
    assert Finding(**{**BARE, "p": 0.001, "outside": True}).as_expected


def test_too_few_pulls_are_said() -> None:
    crowd = kh.LinearWorld.random(n_arms=10, context_dim=20, dim=20, seed=1)
    early = Scope(world=crowd, horizon=200, replications=4)
    for claim in (estimates.ACCURACY, regret.SUBOPTIMAL, regret.REGRET, pulls.ALL):
        made = claim.measure(early)
        assert "too few pulls" in made.early
        assert made.slack > 1.0  # known all the same
    assert "too few pulls: 2" in estimates.GROWTH.measure(early).early
    # A weak signal: ten pulls for each dimension are enough for estimates, and not for choices.
    faint = Scope(world=replace(WORLD, reward_scale=20.0), horizon=4000, replications=4)
    assert faint.early == ""
    assert "too few pulls" in faint.early_choices(1.0)


def test_worlds_without_regret() -> None:
    """Arms of one parameter and one context: nothing can be confused, and nothing divides by 0."""
    alike = replace(WORLD, coefficients=np.ones((3, 4)), shared_context=True)
    made = list(audit(Scope(world=alike, outside=True, **SMALL), with_controls=False))
    lost = next(one for one in made if one.name == "regret")
    assert lost.slack == np.inf
    assert lost.outcome != "contradicted"


# -- units, and no noise ---------------------------------------------------------------------------


def in_units(s: float, **settings: Any) -> kh.LinearWorld:
    """A world with contexts, sensing noise and reward noise of scale s, and eta of about 1."""
    usual: dict[str, Any] = {
        "sensing": np.eye(2),
        "coefficients": [[1.0, 0.3], [-0.5, 1.0], [0.7, -0.7]],
        "context_covariance": s * s,
        "sensing_covariance": s * s,
        "reward_scale": s,
    }
    return kh.LinearWorld(**{**usual, **settings})


@pytest.mark.parametrize("s", [0.001, 0.01, 0.03, 1.0, 100.0])
def test_units_contradict_no_true_claim(s: float) -> None:
    """In small units the prior hides rates, and eq:phiinv2, which leaves it out, is false."""
    found = list(audit(Scope(world=in_units(s), **SMALL), with_controls=False))
    assert all(one.as_expected for one in found)
    false = {one.name for one in found if one.outcome == "contradicted"}
    assert false == ({"odds"} if s < 1.0 else set())
    assert all("the claim is false in this world" in o.evidence for o in found if o.name in false)
    assert {bool(one.false) for one in found if one.name == "odds"} == {s < 1.0}


def test_pulls_from_which_data_outweigh_the_prior() -> None:
    """The covariance of y is 2 s^2: ten times the prior's precision of 1 needs 5 / s^2 pulls."""
    small = Scope(world=in_units(0.03), **SMALL)
    assert small.outweighing == pytest.approx(5 / 0.03**2)
    assert small.early.endswith("where data outweigh the prior 10 times from 5,556 on")
    weak = kh.ThompsonSampling(v=0.05, prior_precision=1e-3)
    assert replace(small, policy=weak).early == ""
    # Exponents of sqrt(k) / (1 + k), the noise of an estimate with k times the prior.
    for k, power in ((10, -0.46), (1, -0.24)):
        assert np.log10(np.sqrt(10) * (1 + k) / (1 + 10 * k)) == pytest.approx(power, abs=0.005)


def test_odds_before_any_pull() -> None:
    """Scores are normal about 0 with scale v |y_i|, and arm i's must beat the middle."""
    scope = Scope(world=in_units(0.3), **SMALL)
    c, eta = scope.constants, scope.world.eta
    y = scope.world.sample(10_000, np.random.SeedSequence(1, spawn_key=(24,))).observations
    odds: dict[tuple[int, int], list[float]] = {}
    for one in y:
        values = (one * eta).sum(axis=1)
        second, first = np.sort(values)[1:]
        if first - second > c.kappa * np.linalg.norm(one):
            i = int(values.argmax())
            for j in {0, 1, 2} - {i}:
                z = (values[i] + values[j]) / 2 / (c.v * np.linalg.norm(one[i]))
                odds.setdefault((i, j), []).append(ndtr(z) / ndtr(-z))
    cut = [np.minimum(seen, np.quantile(seen, 0.99)).mean() for seen in odds.values()]
    bound = bounds.missed_odds(c, horizon=1000, n=0.0)
    assert first_odds(scope) == pytest.approx(max(cut) / bound)


def test_a_contradiction_is_excused_only_where_the_claim_is_false() -> None:
    """v = R / 20 breaks v >= R, and the claim, with v = R, is true of this world."""
    timid = kh.ThompsonSampling(v=WORLD.noise_scale / 20)
    found = audit(Scope(world=WORLD, policy=timid, **SMALL), with_controls=False)
    odds = next(one for one in found if one.name == "odds")
    assert (odds.outcome, odds.false, odds.as_expected) == ("contradicted", "", False)


@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e3])
def test_worlds_without_noise(scale: float) -> None:
    """Errors of rounding break no limit of 0, and nothing is divided by R = 0."""
    world = in_units(scale, sensing_covariance=0.0, reward_scale=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = {one.name: one for one in audit(Scope(world=world, **SMALL), with_controls=False)}
    assert all(one.outcome != "contradicted" for one in found.values())
    assert {found[name].outcome for name in ("tails", "prediction", "choices")} <= {
        "holds", "not contradicted"
    }  # fmt: skip
    assert found["supermartingale"].early == "R is 0, and D divides by it"
    assert "the bound is infinite" in found["odds"].early


# -- broken on purpose -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (replace(WORLD, **HEAVY), {"truncation", "prediction"}),
        (replace(WORLD, reward_distribution="student-t", reward_scale=2.0), {"tails"}),
        (replace(WORLD, **SIGNS), {"prediction"}),
    ],
    ids=["eq:cy", "eq:r1", "ass:subg"],
)
def test_a_broken_assumption_is_found_by_its_claim(broken: kh.LinearWorld, said: set[str]) -> None:
    assert contradicted(Scope(world=broken, outside=True, **SMALL)) == said


def test_a_direction_without_noise_is_found_by_lem_eig() -> None:
    """The last coordinate has no signal, and none of the noise that is claimed of it."""
    seen = np.diag([1.0, 1.0, 1.0, 0.0])
    stated = replace(WORLD, sensing=seen @ WORLD.sensing)
    silent = replace(stated, sensing_covariance=seen)
    made = contradicted(Scope(world=silent, assumed=stated, horizon=1000, replications=24))
    assert made >= {"eigenvalues", "shared: eigenvalues"}
    assert not made & {"truncation", "tails", "prediction", "ellipsoid", "pulls", "regret"}


def test_shared_contexts_are_found_by_lem_eig() -> None:
    """Twelve arms at even angles: lem:eig is false with a shared context (see test_theory)."""
    angle = 2 * np.pi * np.arange(12) / 12
    around = 4 * np.column_stack([np.cos(angle), np.sin(angle)])
    cones = kh.LinearWorld(sensing=0.5 * np.eye(2), coefficients=around, shared_context=True)
    shared = Scope(world=cones, outside=True, horizon=4000, replications=8)
    level = FAMILY_ERROR / 25
    assert estimates.GROWTH.measure(shared).p <= level
    own = replace(shared, world=replace(cones, shared_context=False), outside=False)
    assert estimates.GROWTH.measure(own).p == 1.0
    assert observations.TRUNCATION.measure(shared).p == 1.0


def test_a_bound_below_what_happens_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    scope = Scope(world=WORLD, horizon=2000, replications=8)
    claims = (estimates.ACCURACY, regret.REGRET, pulls.FIRST)
    assert all(claim.measure(scope).p > 0.5 for claim in claims)
    monkeypatch.setattr(Statement, "at", lambda *_, **__: 1e-9)
    assert all(claim.measure(scope).p < 1e-7 for claim in claims)
    assert regret.SUBOPTIMAL.measure(scope).p < 0.1  # by the last pull of each replication alone


def test_a_policy_of_ones_own_can_be_audited() -> None:
    """Uniform choice: wrong pulls do not fall; all that depends on no choice is kept."""
    made = contradicted(Scope(world=WORLD, policy=kh.Uniform(), horizon=4000, replications=10))
    assert {"choices", "suboptimal pulls", "regret"} <= made
    assert not made & {"truncation", "tails", "prediction", "ellipsoid", "supermartingale"}


# -- validity --------------------------------------------------------------------------------------


def test_assumptions_agree_with_the_theory() -> None:
    for settings in (
        {}, HEAVY, SIGNS, {"reward_distribution": "student-t"}, {"sensing_covariance": 0.0},
        {"sensing_distribution": "uniform"},
    ):  # fmt: skip
        world = linear(**settings)
        met = {one.label: one.met for one in assumptions(world)}
        assert met.pop("eq:reward")
        assert all(met.values()) == (unmet(world) == ()), settings
        for label, is_met in met.items():
            assert any(f"({label})" in why for why in unmet(world)) == (not is_met), label
    shared = assumptions(linear(shared_context=True))
    assert [one.label for one in shared if not one.met] == ["eq:reward"]


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        (HEAVY, {"choices"}),
        (SIGNS, {"truncation", "choices"}),
        ({"reward_distribution": "student-t"}, {"truncation", "choices"}),
        (
            {"sensing_covariance": 0.0},
            {"truncation", "tails", "prediction", "ellipsoid", "supermartingale", "choices", "odds",
             "shared: ellipsoid", "shared: supermartingale"},
        ),
    ],
)  # fmt: skip
def test_claims_are_refused_without_their_assumptions(
    settings: dict[str, Any], kept: set[str]
) -> None:
    world = linear(dim=3, **settings)
    made = list(audit(Scope(world=world, horizon=100, replications=4), with_controls=False))
    assert {one.name for one in made if not one.needs} == kept
    refused = [one for one in made if one.needs]
    assert {one.verdict for one in refused} == {"outside"}
    assert all(one.as_expected and np.isnan(one.slack) for one in refused)
    assert {one.level for one in made} == {FAMILY_ERROR / len(kept)}


def test_observations_in_more_dimensions_than_contexts_have() -> None:
    """Without sensing noise y = A x varies in four of its five directions."""
    flat = linear(dim=5, sensing_covariance=0.0)
    made = observations.PREDICTION.measure(Scope(world=flat, horizon=200, replications=8))
    assert made.p == 1.0
    assert 1.0 < made.slack < np.inf


def test_with_a_shared_context_what_rests_on_lem_eig_is_refused() -> None:
    world = replace(WORLD, shared_context=True)
    scope = Scope(world=world, horizon=100, replications=4)
    made = {one.name: one for one in audit(scope, with_controls=False)}
    assert made["eigenvalues"].needs == ("eq:reward: the contexts of arms are independent",)
    assert made["eigenvalues"].gaps[-1] == "shared-context"
    assert "lem:eig is false" in made["eigenvalues"].reasons[-1]
    assert not made["ellipsoid"].needs
    assert not made[
        "shared: eigenvalues"
    ].needs  # the arms of Algorithm 2 have contexts of their own


# -- the measuring ---------------------------------------------------------------------------------


def test_the_trace_sees_what_a_posterior_says() -> None:
    """Distances, samples, log M and eigenvalues against whole matrices, one pull after another."""
    # At delta = 1/2 lem:eig, and so estimates and samples, are tested from 177 pulls on.
    scope = Scope(world=WORLD, horizon=700, replications=4, seed=5, delta=0.5)
    c, seen = scope.constants, scope.traced
    k, source = 2, kh.Streams(np.random.SeedSequence(5, spawn_key=(2,)))
    rounds = WORLD.sample(700, source)
    normals = source["audit"].standard_normal((700, 4))
    each = replace(c, delta=c.delta / 3, longest=scope.promises.length)
    posterior = kh.Posterior(n_parameters=3, dim=4)
    reach, estimated, sampled, log_m, highest = np.zeros((5, 3))
    for t, i in enumerate(scope.arms[k]):
        y, r = rounds.observations[t, i], float(rounds.rewards[t, i])
        posterior.learn(int(i), y, r)
        n = int((scope.arms[k][: t + 1] == i).sum())
        miss = posterior.mean[i] - WORLD.eta[i]
        far = np.sqrt(miss @ posterior.precision[i] @ miss)
        reach[i] = max(reach[i], far / bounds.confidence_radius(each, horizon=700, n=n))
        if n >= scope.enough:
            error = np.linalg.norm(miss) / bounds.estimation_error(c, horizon=700, n=n)
            estimated[i] = max(estimated[i], error)
        root = np.linalg.cholesky(np.linalg.inv(posterior.precision[i]))
        drawn = np.linalg.norm(miss + c.v * root @ normals[t])
        if n >= scope.enough:
            sampled[i] = max(sampled[i], drawn / bounds.sampling_error(c, horizon=700, n=n))
        value = y @ WORLD.eta[i]
        log_m[i] += (r - value) * value / c.r - value**2 / 2
        highest[i] = max(highest[i], log_m[i])
    assert seen.reach[k] == pytest.approx(reach)
    assert (estimated > 0.0).any()
    assert seen.estimated[k] == pytest.approx(estimated)
    assert seen.sampled[k] == pytest.approx(sampled)
    assert seen.martingale[k] == pytest.approx(highest / np.log(6))
    assert seen.errors[k, -1] == pytest.approx(np.linalg.norm(posterior.mean - WORLD.eta, axis=1))
    assert seen.pulls[k].tolist() == np.bincount(scope.arms[k], minlength=3).tolist()
    gap = rounds.values.max(axis=1) - rounds.values[np.arange(700), scope.arms[k]]
    assert seen.regret[k, -1] == pytest.approx(gap.sum())
    assert seen.suboptimal[k, -1] == (gap > 0).sum()
    assert seen.last[k] == float(gap[-1] > 0)
    noise = np.abs(rounds.rewards - rounds.values).max()
    assert seen.tails[k] == pytest.approx(noise / (c.r * np.sqrt(2 * np.log(2 * 700 * 3 / 0.5))))


def test_eigenvalues_at_the_end_against_numpy() -> None:
    scope = Scope(world=WORLD, horizon=1000, replications=4)
    one = replay(WORLD, scope.arms[0], seed=1, replication=0)
    for i in range(3):
        y = one.rounds.observations[scope.arms[0] == i, i]
        assert len(y) >= scope.enough
        largest = 1 / np.linalg.eigvalsh(np.eye(4) + y.T @ y)[0]
        lambda_m = scope.constants.lambda_m
        assert scope.traced.eigenvalues[0, i] == pytest.approx(largest * lambda_m * len(y) / 2)


def test_pulls_from_which_lem_eig_is_tested() -> None:
    """(sqrt 4 + sqrt(2 log 30))^2 / (1 - sqrt(1/2))^2 by hand, and the share that it keeps."""
    scope = Scope(world=WORLD, **SMALL)
    assert scope.enough == pytest.approx((2 + np.sqrt(2 * np.log(30))) ** 2 / 0.0857864376269)
    n = int(np.ceil(scope.enough))
    u = np.random.default_rng(3).standard_normal((400, n, 4))
    smallest = np.linalg.eigvalsh(np.einsum("knd,kne->kde", u, u))[:, 0]
    assert (smallest < n / 2).mean() <= 0.1 / 3  # far less: Davidson and Szarek's is a bound


def random_states(n: int, n_arms: int, seed: int) -> States:
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((n, n_arms))
    means = values + rng.standard_normal((n, n_arms))
    scales = rng.uniform(0.2, 2.0, (n, n_arms))
    return States(np.arange(n), values.argmax(axis=1), values, means, scales, np.ones(n))


@pytest.mark.parametrize("n_arms", [2, 3, 6])
def test_wrong_choices_against_exact_probabilities(n_arms: int) -> None:
    at = random_states(40, n_arms, seed=n_arms)
    below, above = wrong_choices(at)
    exact = kh.choice_probabilities(at.means, at.scales)
    exact[np.arange(40), at.best] = 0.0
    assert below + above == pytest.approx(exact, abs=1e-3)
    # Split at the middle, by a simulation: four standard errors of 20,000 draws.
    drawn = at.means + at.scales * np.random.default_rng(1).standard_normal((20_000, 40, n_arms))
    chosen = drawn.argmax(axis=2)
    middle = at.values + 0.5 * at.leads
    for j in range(n_arms):
        low = ((chosen == j) & (drawn[:, :, j] < middle[:, j])).mean(axis=0)
        kept = at.best != j
        error = 4 * np.sqrt(low * (1 - low) / 20_000) + 1e-3
        assert (np.abs(low - below[:, j])[kept] <= error[kept]).all()


def test_sums_of_choices_by_hand() -> None:
    """One replication, round by round: terms split by a quarter of the lead, odds, shortfall."""
    scope = Scope(world=WORLD, horizon=200, replications=4)
    arms, c = scope.arms[3], scope.constants
    at = states(replay(WORLD, arms, seed=1, replication=3), scope)
    below, above = wrong_choices(at)
    p = kh.choice_probabilities(at.means, at.scales)
    terms, odds, short = np.zeros((3, 3, 3)), np.zeros((3, 3)), np.zeros(3)
    for k, i in enumerate(at.best):
        short[i] += p[k, i] - (arms[at.rounds[k]] == i)
        for j in set(range(3)) - {i}:
            lead = at.values[k, i] - at.values[k, j]
            if at.means[k, j] <= at.values[k, j] + lead / 4:
                terms[0, i, j] += below[k, j]
                terms[1, i, j] += above[k, j]
            else:
                terms[2, i, j] += below[k, j] + above[k, j]
            z = (at.means[k, i] - (at.values[k, i] + at.values[k, j]) / 2) / at.scales[k, i]
            odds[i, j] += norm.sf(z) / norm.cdf(z) / bounds.missed_odds(c, horizon=200, n=at.n[k])
    best = np.array([one.value for one in scope.promises.instance.p])
    assert scope.choices.terms[3] == pytest.approx(terms)
    assert scope.choices.odds[3] == pytest.approx(odds / (200 * best[:, None] * 6 / 0.1))
    assert scope.choices.shortfall[3] == pytest.approx(
        short / np.sqrt(2 * 200 * np.log(30)), abs=1e-3
    )
    place = int(np.searchsorted(scope.times, 50))
    early = scope.choices.growing[3, place]
    assert early[3] == pytest.approx((below + above)[at.rounds < scope.times[place]].sum())


def test_pulls_from_which_choices_show_their_rate() -> None:
    """n = 8 d (R / s)^2 for a noise of half the lead, where wrong choices fall like n^-0.47."""
    scope = Scope(world=replace(WORLD, reward_scale=20.0), horizon=4000, replications=4)
    s = np.sort(WORLD.value_scales)[:2]
    needed = 8 * 4 * scope.world.noise_scale**2 / (s**2).mean()
    assert scope.early_choices(0.5).endswith(f"where a rate needs {needed:,.0f}")
    for ratio, power in ((0.5, -0.47), (1.0, -0.41)):
        fall = np.log10(np.arctan(ratio / np.sqrt(10)) / np.arctan(ratio))
        assert fall == pytest.approx(power, abs=0.005)


def test_lem_inq_in_every_state() -> None:
    """P(a = j, E1) <= (1 - p) / p P(a = i, E1), both sides by fine sums over scores."""
    at = random_states(60, 3, seed=9)
    score = np.linspace(-15.0, 15.0, 20_001)
    for k in range(60):
        i = at.best[k]
        cdf = norm.cdf(score[:, None], at.means[k], at.scales[k])
        pdf = norm.pdf(score[:, None], at.means[k], at.scales[k]) * (score[1] - score[0])
        for j in set(range(3)) - {i}:
            m = 3 - i - j
            middle = 0.5 * (at.values[k, i] + at.values[k, j])
            chosen = (pdf[:, j] * cdf[:, i] * cdf[:, m])[score < middle].sum()
            under = np.minimum(cdf[:, j], norm.cdf(middle, at.means[k, j], at.scales[k, j]))
            instead = (pdf[:, i] * under * cdf[:, m]).sum()
            p = norm.sf(middle, at.means[k, i], at.scales[k, i])
            assert chosen <= (1 - p) / p * instead + 1e-9


def test_lem_nineq_where_it_is_false() -> None:
    """As printed: P(|Z| > z) between f(z) / 2 and f(z), f(z) = exp(-z^2 / 2) / (sqrt(pi) z)."""

    def f(z: float) -> float:
        return float(np.exp(-(z**2) / 2) / (np.sqrt(np.pi) * z))

    turn = brentq(lambda z: 2 * norm.sf(z) - f(z), 1.0, 2.0)
    assert turn == pytest.approx(1.184, abs=5e-4)
    for z in (1.0, 1.1, 1.18):  # one tail: the lower bound is false
        assert norm.sf(z) < f(z) / 2 <= 2 * norm.sf(z) <= f(z)
    for z in (1.19, 2.0, 5.0):  # both tails: the upper bound is false
        assert f(z) / 2 <= norm.sf(z) < f(z) < 2 * norm.sf(z)


def test_states_are_those_of_a_posterior() -> None:
    scope = Scope(world=WORLD, horizon=200, replications=4)
    one = replay(WORLD, scope.arms[1], seed=1, replication=1)
    at = states(one, scope)
    kappa = scope.constants.kappa
    y = one.rounds.observations
    lead = np.sort(one.rounds.values, axis=1)
    clear = (lead[:, -1] - lead[:, -2]) / np.linalg.norm(y.reshape(200, -1), axis=1) > kappa
    assert at.rounds.tolist() == np.flatnonzero(clear).tolist()
    posterior = kh.Posterior(n_parameters=3, dim=4)
    for t in range(200):
        if clear[t]:
            row = int(np.searchsorted(at.rounds, t))
            for i in range(3):
                width = y[t, i] @ np.linalg.solve(posterior.precision[i], y[t, i])
                assert at.means[row, i] == pytest.approx(y[t, i] @ posterior.mean[i], abs=1e-9)
                assert at.scales[row, i] == pytest.approx(WORLD.noise_scale * np.sqrt(width))
            assert at.n[row] == (scope.arms[1][:t] == at.best[row]).sum()
        arm = int(scope.arms[1][t])
        posterior.learn(arm, y[t, arm], float(one.rounds.rewards[t, arm]))


def test_pulls_are_those_that_probabilities_predict() -> None:
    """Pulls less their probabilities have mean 0: a sum is within four standard errors of it."""
    scope = Scope(world=WORLD, **SMALL)
    short = scope.choices.shortfall.ravel()
    assert abs(short.mean()) <= 4 * short.std() / np.sqrt(short.size)
    clear = scope.choices.terms.sum(axis=(1, 2, 3))
    assert scope.choices.growing[:, -1, 3] == pytest.approx(clear)


# -- the statistics --------------------------------------------------------------------------------


@pytest.mark.parametrize("power", [-1.0, -0.5, 0.0, 0.3])
def test_exponents(power: float) -> None:
    time = np.unique(np.geomspace(1, 10_000, 80).astype(int))
    factors = np.random.default_rng(1).lognormal(sigma=0.1, size=50)
    curves = xr.DataArray(
        np.outer(factors, time**power), dims=("replication", "time"), coords={"time": time}
    )
    slope = evidence.exponent(curves)
    assert slope.value == pytest.approx(power, abs=1e-6)
    assert slope.error < 2e-6  # a common factor does not change a slope
    assert slope.size == 50


def test_slopes_by_students_test() -> None:
    slope = evidence.Slope(-0.3, 0.05, 10)
    assert slope.p_above(-0.4) == pytest.approx(student.sf(2.0, 9))
    assert slope.p_below(-0.4) == pytest.approx(student.cdf(2.0, 9))
    assert str(slope) == "-0.30 ± 0.05"
    assert evidence.Slope(0.0, 0.0, 10).p_above(-0.4) == 1.0  # no spread, no test
    assert evidence.Slope(np.nan, np.nan, 10).p_above(-0.4) == 1.0


def test_shares_by_exact_tests() -> None:
    """Misses of 40 at a claimed 10%: P(at least 10) is 0.5%, P(at least 9) 1.6%.

    At 20%, which is to be excluded: P(at most 2) is 0.8%, P(at most 3) 2.8%.
    """

    def missed(n: int, of: int = 40) -> evidence.Share:
        return evidence.Share(of - n, of)

    assert [n for n in range(41) if missed(n).p_against(0.9) <= 0.01] == list(range(10, 41))
    assert [n for n in range(41) if missed(n).p_for(0.9) <= 0.01] == [0, 1, 2]
    assert missed(0).p_against(0.9) == 1.0
    assert missed(4, of=4).p_against(0.9) == pytest.approx(1e-4)
    # Twice a delta of a half would be 1, which any hit excludes: 3/4 is in its place.
    assert missed(20).p_for(0.5) == pytest.approx(binom.cdf(20, 40, 0.75))
    assert missed(3).value == pytest.approx(37 / 40)
    # Clopper and Pearson: 40 of 40 leave 1 - 0.025^(1/40) = 8.8% open.
    assert str(evidence.share(np.array([True] * 40))) == "40 of 40 (91% to 100%)"


@pytest.mark.parametrize("n", [4, 24, 100])
def test_a_true_claim_is_contradicted_no_more_often_than_said(n: int) -> None:
    """The exact probability of a p-value below the level, if misses have probability delta."""
    for level in (FAMILY_ERROR / 25, 0.01, 0.1):
        below = [k for k in range(n + 1) if evidence.Share(n - k, n).p_against(0.9) <= level]
        assert binom.pmf(below, n, 0.1).sum() <= level


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"world": "small"}, "world: an audit is of a LinearWorld, got str"),
        ({"assumed": "small"}, "assumed: an audit is of a LinearWorld, got str"),
        ({"assumed": linear(dim=3)}, "assumed must have 3 arms and dim 4 .* got 3 and 3"),
        ({"policy": "greedy"}, "policy must be a Policy, got str"),
        ({"horizon": 10}, "horizon"),
        ({"replications": 1}, "replications"),
        ({"seed": -1}, "seed"),
        ({"delta": 0.0}, "delta"),
        ({"outside": 1}, "outside"),
        ({"world": kh.LinearWorld(sensing=[[1.0]], coefficients=[[1.0]])}, "two arms or more"),
    ],
)
def test_nonsense(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(kh.InvalidValue, match=message):
        Scope(**{"world": WORLD, **settings})


def test_an_audit_takes_a_scope() -> None:
    with pytest.raises(kh.InvalidValue, match="audit takes a Scope, got LinearWorld"):
        next(audit(WORLD))  # type: ignore[arg-type]
