"""The audit's verdicts where the answer is known, and the controls that must fail."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import xarray as xr

import keyhole as kh
from keyhole.lab import evidence
from keyhole.lab.audit import Finding, Scope, audit, claims, tracing
from keyhole.theory import Statement, bounds
from tests.worlds import linear

WORLD = kh.LinearWorld.random(n_arms=3, context_dim=4, dim=4, seed=1)
SMALL: dict[str, Any] = {"horizon": 600, "replications": 16}
BARE: dict[str, Any] = {"name": "made up", "label": "lem:none", "claim": "", "evidence": ""}


@pytest.fixture(scope="module")
def found() -> dict[str, Finding]:
    return {one.name: one for one in audit(Scope(world=WORLD, **SMALL))}


def test_no_claim_is_contradicted_and_every_control_is(found: dict[str, Finding]) -> None:
    assert [one.name for one in found.values() if not one.as_expected] == []
    controls = [name for name, one in found.items() if not one.expected]
    assert controls == ["control: Greedy", "control: v = R / 100", "control: heavy tails"]
    assert {found[name].verdict for name in controls} == {"contradicted"}


def test_holds_is_said_only_of_claims_in_their_time(found: dict[str, Finding]) -> None:
    """With 60 replications none of which misses, an exact test excludes twice delta (0.8^60)."""
    sure = {one.name: one for one in audit(Scope(world=WORLD, horizon=300, replications=60))}
    holding = [name for name, one in sure.items() if one.verdict == "holds"]
    assert holding == ["truncation", "ellipsoid", "shared: ellipsoid"]
    # All others begin beyond the run, and the finding says when.
    for name, one in sure.items():
        early = one.expected and name not in holding
        assert bool(one.begins) == early, name
        assert one.verdict in ("not contradicted", "cannot tell") or not early, name
    assert sure["pulls"].supported
    assert sure["pulls"].begins.startswith("at this horizon the paper claims it from tau = ")
    assert sure["eigenvalues"].begins.startswith("at this horizon the paper claims it from nu_1 = ")
    # 16 replications exclude nothing at 1%: 0.8^16 is 2.8%.
    assert {found[name].verdict for name in holding} == {"not contradicted"}


def test_findings_have_the_status_of_their_bound(found: dict[str, Finding]) -> None:
    words = {one.label: one.status for one in found.values() if one.expected}
    assert words.pop("lem:tr") == "proved"
    assert words.pop("lem:subg") == "repaired"
    assert set(words.values()) == {"open"}
    assert {one.status for one in found.values() if not one.expected} == {""}
    assert "shared-context" not in found["regret"].gaps
    shared = Scope(world=replace(WORLD, shared_context=True), **SMALL)
    assert claims.eigenvalues(shared).gaps[-1] == "shared-context"
    assert "lem:eig is false" in claims.eigenvalues(shared).reasons[-1]


def test_every_claim_of_the_paper_is_there(found: dict[str, Finding]) -> None:
    labels = "lem:tr lem:subg lem:eig lem:ni lem:eta0 lem:eta1 thm:eta2 thm:reg2 thm:reg1"
    assert {one.label for one in found.values()} == set(labels.split())
    assert sum(name.startswith("shared: ") for name in found) == 6
    assert "arm 3 from round" in found["pulls"].evidence
    assert "tau_3 = " in found["pulls"].evidence
    assert "above 1 says nothing" in found["suboptimal pulls"].evidence


def test_controls_fail_in_the_smallest_audit_too() -> None:
    """Controls are never smaller than what it takes to fail."""
    made = list(claims.controls(Scope(world=WORLD, horizon=100, replications=4)))
    assert [one.holds for one in made] == [False] * 3
    assert "20 arms" in made[0].claim


def test_worlds_without_regret() -> None:
    """Arms of one parameter and one context: nothing can be confused, and nothing divides by 0."""
    alike = replace(WORLD, coefficients=np.ones((3, 4)), shared_context=True)
    made = {one.name: one for one in audit(Scope(world=alike, **SMALL), with_controls=False)}
    assert "the worst regret is 0" in made["regret"].evidence
    assert all(one.as_expected for one in made.values())


def test_a_bound_below_what_happens_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    scope = Scope(world=WORLD, **SMALL)
    for claim in (claims.suboptimal, claims.estimation, claims.regret):
        assert claim(scope).holds is not False
    monkeypatch.setattr(Statement, "at", lambda *_, **__: 1e-9)
    for claim in (claims.suboptimal, claims.estimation, claims.regret):
        assert claim(scope).holds is False


def test_samples_that_spread_too_far_are_found_out() -> None:
    scope = Scope(world=WORLD, **SMALL)
    assert claims.sampling(scope).holds
    broken = replace(scope)
    vars(broken)["traced"] = scope.traced._replace(sampled=10 * scope.traced.sampled)
    assert claims.sampling(broken).holds is False


# -- the same claims, broken on purpose ------------------------------------------------------------


def test_noise_beyond_what_was_said_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rewards ten times as noisy as the world says: the ellipsoids no longer cover."""
    scope = Scope(world=WORLD, **SMALL)
    assert claims.ellipsoid(scope).holds
    rounds = kh.LinearWorld.rounds

    def noisier(world: kh.LinearWorld, state: Any, n: int) -> kh.Rounds:
        made = rounds(world, state, n)
        return replace(made, rewards=made.values + 10 * (made.rewards - made.values))

    broken = Scope(world=WORLD, **SMALL)
    _ = broken.promises
    monkeypatch.setattr(kh.LinearWorld, "rounds", noisier)
    assert claims.ellipsoid(broken).holds is False


def test_eigenvalues_that_do_not_grow_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A coordinate that is always 0, though its sensing noise is said to be 1."""
    scope = Scope(world=WORLD, **SMALL)
    assert claims.eigenvalues(scope).holds
    rounds = kh.LinearWorld.rounds

    def blind(world: kh.LinearWorld, state: Any, n: int) -> kh.Rounds:
        made = rounds(world, state, n)
        return replace(made, observations=made.observations * [1, 1, 1, 0])

    broken = Scope(world=WORLD, **SMALL)
    _ = broken.promises
    monkeypatch.setattr(kh.LinearWorld, "rounds", blind)
    assert claims.eigenvalues(broken).holds is False


def test_eigenvalues_of_a_narrow_shared_cone_are_found_out() -> None:
    """Twelve arms at even angles: lem:eig is false with a shared context (see test_theory)."""
    angle = 2 * np.pi * np.arange(12) / 12
    around = 4 * np.column_stack([np.cos(angle), np.sin(angle)])
    cones = kh.LinearWorld(sensing=0.5 * np.eye(2), coefficients=around, shared_context=True)
    made = claims.eigenvalues(Scope(world=cones, horizon=4000, replications=4))
    assert made.verdict == "contradicted"
    assert made.evidence.startswith("so in 0 of 4 ")
    assert "in all" not in made.evidence
    own = Scope(world=replace(cones, shared_context=False), horizon=4000, replications=4)
    assert claims.eigenvalues(own).verdict == "not contradicted"


def test_too_early_or_too_noisy_is_neither_yes_nor_no() -> None:
    crowd = kh.LinearWorld.random(n_arms=10, context_dim=20, dim=20, seed=1)
    early = Scope(world=crowd, horizon=200, replications=4)
    for claim in (claims.estimation, claims.suboptimal, claims.regret):
        found = claim(early)
        assert found.holds is None
        assert found.verdict == "cannot tell"
        assert found.as_expected
    assert evidence.Slope(-0.5, 0.2).at_most(-0.4) is None
    assert evidence.Slope(-0.3, 0.05).at_most(-0.4) is None
    assert evidence.Slope(-0.2, 0.05).at_most(-0.4) is False
    assert evidence.Slope(-0.5, 0.05).at_most(-0.4) is True
    assert evidence.Slope(-1.5, 0.2).at_most(-0.4) is True  # known badly, but clearly below
    control = Finding("control", "lem:none", "", None, "", expected=False)
    assert not control.as_expected


def test_a_policy_that_learns_nothing_is_found_out() -> None:
    """Uniform choice: regret and suboptimal pulls do not fall, though estimation does.

    Regret is held against the theorem's own (log t)^5.5, of which a line is told at 4,000 rounds
    and not at 600: there 5.5 / log t is near 1.
    """
    scope = Scope(world=WORLD, horizon=4000, replications=16)
    broken = replace(scope)
    vars(broken)["oracle_runs"] = scope.runs(kh.Uniform())
    assert claims.estimation(broken).holds
    assert claims.suboptimal(broken).verdict == "contradicted"
    assert claims.regret(broken).verdict == "contradicted"
    assert "at most like (log t)^5.5" in claims.regret(broken).claim
    alike = replace(scope, shared=True)
    assert "at most like (log t)^3.5" in claims.regret(alike).claim


def test_thompson_sampling_passes_where_the_controls_fail() -> None:
    """The crowd that Greedy loses arms of is not too hard: with v = R every arm is kept."""
    crowd = kh.LinearWorld.random(n_arms=20, context_dim=10, dim=10, seed=1)
    scope = Scope(world=crowd, horizon=4000, replications=8)
    assert claims.pulls(scope).holds
    assert not claims._pulls(scope, scope.runs(kh.Greedy()), "greedy").holds


# -- the measuring -------------------------------------------------------------------------------


def test_the_trace_sees_what_a_posterior_says() -> None:
    """One arm, ten rounds: distances and eigenvalues against NumPy on the whole matrices."""
    world = kh.LinearWorld.random(n_arms=1, context_dim=3, dim=3, seed=2)
    promises = kh.theory.Promises(kh.theory.instance(world, trials=2000), horizon=10, delta=0.1)
    seen = tracing.trace(world, kh.Greedy(), promises, replications=1, seed=5)
    streams = kh.Streams(np.random.SeedSequence(5, spawn_key=(0,)))
    rounds = world.sample(10, streams)
    normals = streams["audit"].standard_normal((10, 3))
    known = kh.theory.Constants(
        n_arms=1, dim=3, r=world.noise_scale, c_eta=float(np.linalg.norm(world.eta)),
        longest=promises.length, delta=0.1,
    )  # fmt: skip
    v = promises.constants.v
    samples = bounds.sampling_error(promises.constants, horizon=10, n=np.arange(11))
    posterior = kh.Posterior(n_parameters=1, dim=3)
    reach, sampled, late = 0.0, 0.0, 0
    for n in range(1, 11):
        y = rounds.observations[n - 1, 0]
        posterior.learn(0, y, float(rounds.rewards[n - 1, 0]))
        miss = posterior.mean[0] - world.eta[0]
        radius = bounds.confidence_radius(known, horizon=10, n=n)
        covariance = np.linalg.inv(posterior.precision[0])
        reach = max(reach, float(np.sqrt(miss @ posterior.precision[0] @ miss) / radius))
        root = np.linalg.cholesky(covariance)
        drawn = float(np.linalg.norm(miss + v * root @ normals[n - 1]))
        sampled = max(sampled, drawn / float(samples[n]))
        if np.linalg.eigvalsh(covariance).max() > 2.0 / n:
            late = n
    assert seen.reach[0, 0] == pytest.approx(reach)
    assert seen.sampled[0, 0] == pytest.approx(sampled)
    assert seen.late[0, 0] == late
    assert seen.largest[0] == np.abs(rounds.observations).max()
    assert seen.longest[0] == pytest.approx(np.linalg.norm(rounds.observations, axis=2).max())


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


def test_shares_are_judged_by_the_claimed_probability() -> None:
    assert evidence.share(np.array([True] * 9 + [False])).at_least(0.9)
    assert evidence.share(np.array([True] * 40)).at_least(0.9)
    # Wilson's interval: 40 of 40 leave 3.84 / 43.84 = 9% open.
    assert str(evidence.share(np.array([True] * 40))) == "40 of 40 (91% to 100%)"
    assert not evidence.share(np.array([True] * 20 + [False] * 20)).at_least(0.9)


def test_shares_by_exact_tests() -> None:
    """Misses of 40 at a claimed 10%: P(at least 10) is 0.5%, P(at least 9) 1.6%.

    At 20%, which is to be excluded: P(at most 2) is 0.8%, P(at most 3) 2.8%.
    """

    def missed(n: int, of: int = 40) -> evidence.Share:
        return evidence.Share(1 - n / of, of)

    assert [n for n in range(41) if not missed(n).at_least(0.9)] == list(range(10, 41))
    assert [n for n in range(41) if missed(n).supports(0.9)] == [0, 1, 2]
    # Few replications support nothing, and still contradict what misses mostly.
    assert not any(missed(n, of=4).supports(0.9) for n in range(5))
    assert [n for n in range(5) if not missed(n, of=4).at_least(0.9)] == [3, 4]
    # Twice a delta of a half would be 1, which any hit excludes: 3/4 is in its place.
    assert missed(20).supports(0.5)
    assert not missed(25).supports(0.5)


def test_verdicts_in_words() -> None:
    def said(**settings: Any) -> str:
        return Finding(**{**BARE, **settings}).verdict

    assert said(holds=True) == "not contradicted"
    assert said(holds=True, supported=True) == "holds"
    assert said(holds=True, supported=True, begins="later") == "not contradicted"
    assert said(holds=False) == "contradicted"
    assert said(holds=None) == "cannot tell"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"world": "small"}, "of a LinearWorld, got str"),
        ({"horizon": 10}, "horizon"),
        ({"replications": 1}, "replications"),
        ({"seed": -1}, "seed"),
        ({"delta": 0.0}, "delta"),
        ({"world": linear(context_distribution="student-t")}, "sub-Gaussian"),
        ({"world": linear(context_distribution="rademacher")}, "nothing to audit.*R2 is infinite"),
        ({"world": linear(sensing_distribution="uniform")}, "not both normal"),
        ({"world": linear(reward_distribution="student-t")}, "R1 is infinite"),
        ({"world": linear(sensing_covariance=0.0)}, "sensing noise in every direction"),
        ({"world": kh.LinearWorld(sensing=[[1.0]], coefficients=[[1.0]])}, "two arms or more"),
    ],
)
def test_nonsense(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(kh.InvalidValue, match=message):
        Scope(**{"world": WORLD, **settings})
