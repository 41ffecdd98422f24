"""The simulator: against the textbook, closed forms and theory, and the same wherever it runs."""

import dataclasses
import json
import pickle
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import xarray as xr

import keyhole as kh
from keyhole.core import Streams, child_seed, kernels, seed_sequence
from keyhole.core.kernels.playing import add_regret
from keyhole.lab.simulation import replication
from keyhole.lab.simulation.plan import Plan
from keyhole.lab.simulation.runs import SUMS, CompiledRun
from tests.policies import every_policy
from tests.textbook import Textbook
from tests.worlds import WORLDS, linear

WORLD = linear(dim=3)
RECIPE = kh.RandomLinearWorld(n_arms=4, context_dim=3, dim=5)
TS = kh.ThompsonSampling(v="oracle")


def run(world: Any = WORLD, policies: Any = TS, **settings: Any) -> xr.Dataset:
    usual: dict[str, Any] = {"horizon": 300, "replications": 4, "seed": 5, "progress": False}
    return kh.simulate(world, policies, **{**usual, **settings})


# -- what it does ---------------------------------------------------------------------------------


@pytest.mark.parametrize("shared_context", [False, True])
@pytest.mark.parametrize("policy", every_policy(), ids=str)
def test_it_is_the_textbook_on_the_same_rounds(policy: kh.Policy, shared_context: bool) -> None:
    """Arm for arm, error for error: the textbook draws its vectors along the scalar normals."""
    world, horizon = linear(shared_context=shared_context), 400
    runs = run(world, policy, horizon=horizon, replications=1, checkpoints=range(1, horizon + 1))

    source = Streams(child_seed(seed_sequence(5), 0))
    rounds = world.sample(horizon, source)
    z = source["policy"].standard_normal((horizon, 3))
    uniforms = source["coin"].random((horizon, 2))
    book, regret, latent = Textbook(policy, 3, 3), 0.0, 0.0
    for t in range(horizon):
        y = np.broadcast_to(rounds.observations[t], (3, 3))
        directions = [
            np.linalg.cholesky(np.linalg.inv(book.B[book.parameter(i)])).T @ y[i] for i in range(3)
        ]
        normals = np.array([z[t, i] * d / np.linalg.norm(d) for i, d in enumerate(directions)])
        arm = book.choose(y, normals, *uniforms[t]).arm
        book.learn(arm, y[arm], rounds.rewards[t, arm])
        regret += rounds.values[t].max() - rounds.values[t, arm]
        latent += rounds.latent[t].max() - rounds.latent[t, arm]

        here = runs.isel(policy=0, replication=0, time=t)
        before = runs.pulls.isel(policy=0, replication=0, time=t - 1).values if t else 0
        assert (here.pulls.values - before).argmax() == arm
        np.testing.assert_allclose(here.regret, regret, rtol=1e-9)
        np.testing.assert_allclose(here.latent_regret, latent, rtol=1e-9)
    for i in range(3):
        p = book.parameter(i)
        error = np.linalg.norm(np.linalg.solve(book.B[p], book.b[p]) - world.eta[i])
        np.testing.assert_allclose(here.error[i], error, rtol=1e-8)


def test_labels_and_attributes() -> None:
    runs = run(WORLD, [TS, kh.Greedy()])
    assert runs.regret.dims == runs.latent_regret.dims == ("policy", "replication", "time")
    assert runs.optimal.dims == ("policy", "replication", "time")
    assert runs.pulls.dims == runs.error.dims == ("policy", "replication", "time", "arm")
    assert runs.policy.values.tolist() == ["ThompsonSampling(v='oracle')", "Greedy()"]
    assert runs.time.values[-1] == 300
    assert json.loads(runs.attrs["world"])["kind"] == "LinearWorld"
    assert json.loads(runs.attrs["policies"])["Greedy()"]["name"] == "Greedy"
    assert json.loads(runs.attrs["seed"]) == [5, []]
    assert json.loads(runs.attrs["versions"])["keyhole"] == kh.__version__
    assert all("long_name" in runs[name].attrs for name in runs.data_vars)


def test_invariants() -> None:
    runs = run(RECIPE, every_policy(), horizon=200)
    assert (runs.pulls.sum("arm") == runs.time).all()
    assert (runs.regret.diff("time") >= 0).all()
    assert (runs.latent_regret.diff("time") >= 0).all()
    assert ((runs.optimal >= 0) & (runs.optimal <= 1)).all()
    assert (runs.error > 0).all()


def test_netcdf_there_and_back(tmp_path: Path) -> None:
    runs = run(WORLD, {"thompson": TS, "greedy": kh.Greedy()})
    runs.to_netcdf(tmp_path / "runs.nc", engine="h5netcdf")
    assert xr.load_dataset(tmp_path / "runs.nc", engine="h5netcdf").identical(runs)


def test_checkpoints() -> None:
    assert run(checkpoints=np.int64(3)).time.values.tolist() == [100, 200, 300]
    assert run(checkpoints=[7, 3, 7]).time.values.tolist() == [3, 7, 300]
    assert run(checkpoints=1000).time.values.tolist() == list(range(1, 301))
    assert run(horizon=1).time.values.tolist() == [1]
    fine, coarse = run(checkpoints=range(1, 301)), run(checkpoints=5)
    assert coarse.drop_attrs().identical(fine.drop_attrs().sel(time=coarse.time))


def test_every_policy_sees_the_same_rounds_whoever_else_plays() -> None:
    together = run(RECIPE, [TS, kh.Greedy(), kh.Uniform()]).drop_attrs()
    alone = run(RECIPE, kh.Greedy()).drop_attrs()
    assert together.sel(policy=["Greedy()"]).identical(alone)


def test_a_recipe_is_drawn_anew_and_a_world_is_kept() -> None:
    """With eta known at the start, the first error is |eta| of the world that was drawn."""
    policy = kh.Uniform(prior_precision=1e40)
    drawn = run(RECIPE, policy, checkpoints=[1]).error.isel(time=0, policy=0)
    kept = run(WORLD, policy, checkpoints=[1]).error.isel(time=0, policy=0)
    np.testing.assert_allclose(kept, np.tile(np.linalg.norm(WORLD.eta, axis=1), (4, 1)))
    expected = RECIPE.draw(Streams(child_seed(seed_sequence(5), 2))).eta
    np.testing.assert_allclose(drawn[2], np.linalg.norm(expected, axis=1))
    assert len(np.unique(drawn.values)) == drawn.size


def test_v_is_told_for_each_world() -> None:
    first = RECIPE.draw(Streams(child_seed(seed_sequence(5), 0)))
    told = run(RECIPE, {"x": TS}, replications=1)
    given = run(RECIPE, {"x": kh.ThompsonSampling(v=first.noise_scale)}, replications=1)
    assert told.drop_attrs().identical(given.drop_attrs())
    with pytest.raises(kh.InvalidValue, match="oracle"):
        kh.Bandit(TS, arms=2, dim=2)


@pytest.mark.parametrize("policy", every_policy(), ids=str)
def test_decisions_depend_on_nothing_hidden(policy: kh.Policy) -> None:
    """Values, latent values, eta and the rewards of arms not pulled: other numbers, same arms."""
    rng, n, d, rounds = np.random.default_rng(4), 3, 2, 300
    y, rewards = rng.standard_normal((rounds, n, d)), rng.standard_normal((rounds, n))
    z, uniforms = rng.standard_normal((rounds, n)), rng.random((rounds, 2))

    def pulls(rewards: np.ndarray, hidden: np.ndarray, eta: np.ndarray) -> np.ndarray:
        plan = Plan.of(linear(dim=d), policy, rounds, 1, range(1, rounds + 1))
        player = CompiledRun(kh.Learner(policy), linear(dim=d), plan.checkpoints)
        block = kernels.Block(y, rewards, z, uniforms)
        truth = kernels.Oracle(hidden, -hidden, np.empty(0, np.int64), eta)
        kernels.run_block(player.chooser, block, truth, 0, player.record)
        pulls = player.record.results[:, len(SUMS) :][:, :n]
        arms: np.ndarray = np.diff(pulls, axis=0, prepend=0.0).argmax(axis=1)
        return arms

    arms = pulls(rewards, np.zeros((rounds, n)), np.zeros((n, d)))
    other = rng.standard_normal((rounds, n))
    pulled = np.arange(n) == arms[:, None]
    disguised = np.where(pulled, rewards, other)
    hidden = rng.standard_normal((rounds, n))
    np.testing.assert_array_equal(pulls(disguised, hidden, np.ones((n, d))), arms)
    # The negative control: the rewards that were seen do matter (but not to Uniform).
    changed = pulls(np.where(pulled, other, rewards), hidden, np.ones((n, d)))
    assert np.array_equal(changed, arms) == isinstance(policy, kh.Uniform)


# -- the same however and wherever ----------------------------------------------------------------


class NotARule(kh.Policy):
    @property
    def rule(self) -> Any:
        return (1.0, 2.0)


class Backwards(ThreadPoolExecutor):
    """An executor whose work ends in the opposite order."""

    def __init__(self) -> None:
        super().__init__(max_workers=1)
        self.kept: list[tuple[Any, ...]] = []
        self.futures: list[Future[Any]] = []

    def submit(self, fn: Any, /, *args: Any, **_: Any) -> Future[Any]:
        self.kept.append((fn, args))
        self.futures.append(Future())
        if len(self.kept) == 4:
            for future, (work, given) in reversed(list(zip(self.futures, self.kept, strict=True))):
                future.set_result(work(*given))
        return self.futures[-1]


def test_the_result_depends_on_the_seed_alone() -> None:
    expected = run(RECIPE, [TS, kh.LinUCB()])
    assert run(RECIPE, [TS, kh.LinUCB()]).identical(expected)
    for workers in (1, 2, 3):
        assert run(RECIPE, [TS, kh.LinUCB()], workers=workers).identical(expected)
    assert run(RECIPE, [TS, kh.LinUCB()], executor=Backwards()).identical(expected)
    with ThreadPoolExecutor(2) as threads:
        assert run(RECIPE, [TS, kh.LinUCB()], executor=threads).identical(expected)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        assert run(RECIPE, [TS, kh.LinUCB()], executor=processes).identical(expected)
    assert not run(RECIPE, [TS, kh.LinUCB()], seed=6).identical(expected)
    more = run(RECIPE, [TS, kh.LinUCB()], replications=6)
    assert more.isel(replication=slice(4)).identical(expected)


def test_the_block_size_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same arms in any blocks; sums to rounding, since products of other sizes may differ."""
    expected = run(RECIPE, horizon=1000)
    for floats in (20 * 17, 20 * 100, 20 * 333):
        monkeypatch.setattr(replication, "BLOCK_FLOATS", floats)
        other = run(RECIPE, horizon=1000)
        np.testing.assert_array_equal(other.pulls, expected.pulls)
        xr.testing.assert_allclose(other, expected, rtol=1e-10)


def test_a_plan_travels() -> None:
    plan = Plan.of(RECIPE, TS, 100, 1, None)
    twin = pickle.loads(pickle.dumps(plan))
    here, there = replication.replicate(plan, 3), replication.replicate(twin, 3)
    for name, array in here.items():
        np.testing.assert_array_equal(array, there[name])


# -- closed forms and theory ----------------------------------------------------------------------


def test_first_round_regret_in_closed_form() -> None:
    """The first choice of Greedy is blind: its regret is E max y'eta on average, in 4 errors."""
    runs = run(WORLD, [kh.Greedy(), kh.Uniform()], horizon=1, replications=4000)
    first = runs.regret.isel(time=0)
    error = first.std("replication") / np.sqrt(4000)
    assert (abs(first.mean("replication") - WORLD.best_value[0]) <= 4 * error).all()


def test_uniform_play_has_linear_regret_and_known_pulls() -> None:
    runs = run(WORLD, kh.Uniform(), horizon=500, replications=200).isel(policy=0, time=-1)
    per_round = runs.regret / 500
    error = per_round.std() / np.sqrt(200)
    assert abs(per_round.mean() - WORLD.best_value[0]) <= 4 * error
    assert (abs(runs.pulls.mean("replication") - 500 / 3) <= 4 * np.sqrt(500 * 2 / 9 / 200)).all()
    p, _ = WORLD.optimality
    assert abs(runs.optimal.mean() - 1 / 3) <= 4 * np.sqrt(1 / 3 * 2 / 3 / (500 * 200))
    assert p.max() > 1 / 3 + 0.01  # so that a policy that knew would do better


def test_estimation_error_of_least_squares() -> None:
    """Under Uniform play n |mean - eta|^2 goes to sigma_i^2 trace(Sy^-1), up to 1/n."""
    horizon = 6000
    runs = run(WORLD, kh.Uniform(), horizon=horizon, replications=200).isel(policy=0, time=-1)
    scaled = runs.pulls * runs.error**2
    variance = WORLD.reward_scale**2 + np.diag(WORLD.unseen_covariance)
    expected = variance * np.trace(np.linalg.inv(WORLD.observation_covariance))
    error = scaled.std("replication") / np.sqrt(200)
    assert (abs(scaled.mean("replication") - expected) <= 4 * error + 10 * expected / 2000).all()


def slopes(curve: xr.DataArray) -> tuple[float, float]:
    """Mean and standard error, over replications, of a straight line's slope in the last half."""
    half = curve.sel(time=curve.time > curve.time[-1] / 2)
    t = half.time - half.time.mean()
    each = (half * t).sum("time") / (t**2).sum("time")
    return float(each.mean()), float(each.std(ddof=1) / np.sqrt(each.size))


@pytest.fixture(scope="module")
def many_arms() -> xr.Dataset:
    recipe = kh.RandomLinearWorld(n_arms=20, context_dim=10, dim=10)
    policies = {"thompson": TS, "greedy": kh.Greedy(), "uniform": kh.Uniform()}
    return run(recipe, policies, horizon=10_000, replications=50, checkpoints=100)


def test_thompson_samplings_regret_over_log_squared_flattens(many_arms: xr.Dataset) -> None:
    """Its slope over the last half is not above zero by four standard errors. Uniform's is."""
    curves = kh.summary.over_log_squared(many_arms.regret)
    slope, error = slopes(curves.sel(policy="thompson"))
    assert slope <= 4 * error
    control, error = slopes(curves.sel(policy="uniform"))
    assert control > 4 * error


def misfit(curve: xr.DataArray, shape: np.ndarray) -> float:
    """The sum of squares that the best a + b shape leaves."""
    design = np.stack([np.ones(shape.size), shape], axis=1)
    return float(np.linalg.lstsq(design, curve.values, rcond=None)[1][0])


def line_over_log(curve: xr.DataArray) -> float:
    """Below 1 if the curve is more like a line, above if it is more like (log t)^2."""
    t = curve.time.values.astype(float)
    return misfit(curve, t) / misfit(curve, np.log(t) ** 2)


def test_greedys_worst_case_is_linear_at_twenty_arms(many_arms: xr.Dataset) -> None:
    """Its worst curve is a line rather than (log t)^2, by more than a factor of two in squared
    misfit, Thompson sampling's the reverse; and it still grows more than twice as fast."""
    worst = many_arms.regret.max("replication")
    greedy, thompson = worst.sel(policy="greedy"), worst.sel(policy="thompson")
    assert line_over_log(greedy) < 1 / 2
    assert line_over_log(thompson) > 2
    growth = worst.isel(time=-1) - worst.isel(time=49)
    assert growth.sel(policy="greedy") > 2 * growth.sel(policy="thompson")


def test_greedys_worst_case_is_not_yet_linear_at_ten_arms() -> None:
    """The negative control of the test above."""
    recipe = kh.RandomLinearWorld(n_arms=10, context_dim=10, dim=10)
    runs = run(recipe, kh.Greedy(), horizon=10_000, replications=50, checkpoints=100)
    assert line_over_log(runs.regret.max("replication").isel(policy=0)) > 2


@pytest.mark.parametrize("name", WORLDS)
def test_every_world_can_be_played(name: str) -> None:
    runs = run(WORLDS[name], [TS, kh.ThompsonSampling()], horizon=100, replications=2)
    assert np.isfinite(runs.regret).all()
    assert np.isfinite(runs.error).all()


# -- a world of one's own ------------------------------------------------------------------------


class Coins(kh.World):
    """Two arms that pay 1 at known rates, seen through a constant; anything can be broken in it."""

    n_arms = 2
    dim = 1
    noise_scale = 0.5

    def __init__(self, rates: tuple[float, float] = (0.7, 0.3), **broken: Any) -> None:
        self.rates = np.array(rates)
        self.broken = broken

    @property
    def eta(self) -> np.ndarray:
        return self.rates[:, None]

    def rounds(self, state: Any, n: int) -> kh.Rounds:
        paid = state["coins"].random((n, 2)) < self.rates
        values = np.tile(self.rates, (n, 1))
        block = kh.Rounds(np.ones((n, 1, 1)), paid.astype(float), values, np.full((n, 2), np.nan))
        return dataclasses.replace(block, **self.broken)


def test_a_world_of_ones_own() -> None:
    """Known rates, nothing else: Uniform's regret is 0.2 a round; nobody knows the latent one."""
    runs = run(Coins(), [kh.Uniform(), kh.ThompsonSampling()], horizon=2000, replications=20)
    regret = runs.regret.isel(time=-1)
    spread = np.sqrt(2000 * 0.25 * 0.4**2 / 20)
    assert abs(regret.sel(policy="Uniform()").mean() - 400) <= 4 * spread
    assert regret.sel(policy="ThompsonSampling(v='learned')").max() < 40
    assert np.isnan(runs.latent_regret).all()


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ({"observations": np.ones((300, 2, 2))}, "observations"),
        ({"observations": np.ones((299, 1, 1))}, "observations"),
        ({"rewards": np.ones((300, 3))}, "rewards"),
        ({"values": np.ones(300)}, "values"),
        ({"latent": np.ones((1, 2))}, "latent"),
        ({"observations": np.full((300, 1, 1), np.nan)}, "missing entries"),
        ({"rewards": np.full((300, 2), np.inf)}, "finite"),
        ({"values": np.full((300, 2), np.nan)}, "finite"),
        ({"rewards": np.ones((300, 2), dtype=complex)}, "numbers"),
        ({"rewards": np.ones((300, 2), dtype=object)}, "numbers"),
        ({"rewards": np.full((300, 2), 1e51)}, "up to 1e\\+50"),
        ({"observations": np.full((300, 1, 1), -1e51)}, "up to 1e\\+50"),
        ({"values": np.full((300, 2), 1e300)}, "up to 1e\\+50"),
        ({"latent": np.full((300, 2), np.inf)}, "latent"),
        ({"latent": np.full((300, 2), -1e51)}, "latent"),
        ({"rewards": np.full((300, 2), np.timedelta64(1, "s"))}, "numbers"),
    ],
)
def test_rounds_that_are_wrong_are_refused(broken: dict[str, Any], message: str) -> None:
    """Rather than read by compiled code beyond their end."""
    with pytest.raises(kh.InvalidValue, match=message):
        run(Coins(**broken))


class Plainly(kh.World):
    """All members set in `__init__`, as most would write it."""

    def __init__(self, **broken: Any) -> None:
        self.n_arms, self.dim = 2, 1  # type: ignore[misc] # a property for all that mypy knows
        self.eta, self.noise_scale = np.array([[0.7], [0.3]]), 0.5  # type: ignore[misc]
        self.shared_context = True
        for name, value in broken.items():
            setattr(self, name, value)

    def rounds(self, state: Any, n: int) -> kh.Rounds:
        return Coins().rounds(state, n)


def test_members_may_be_set_in_init() -> None:
    made = run(Plainly(), [kh.Greedy(), kh.ThompsonSampling(v="oracle")]).drop_attrs()
    expected = run(Coins(), [kh.Greedy(), kh.ThompsonSampling(v="oracle")]).drop_attrs()
    assert made.identical(expected)
    assert kh.MissingWorld(Plainly(), share=0.5).dim == 1
    twin = pickle.loads(pickle.dumps(Plainly()))
    assert (twin.n_arms, twin.dim, twin.noise_scale) == (2, 1, 0.5)


@pytest.mark.parametrize("name", ["n_arms", "dim", "eta", "noise_scale"])
def test_a_member_that_is_missing_is_named(name: str) -> None:
    world = Plainly()
    delattr(world, name)
    with pytest.raises(kh.InvalidValue, match=f"Plainly has no {name}: set it in"):
        run(world)
    with pytest.raises(AttributeError, match=f"Plainly has no {name}"):
        getattr(world, name)


@pytest.mark.parametrize(
    "broken",
    [
        {"n_arms": 2.5},
        {"n_arms": 0},
        {"n_arms": 3},
        {"dim": "1"},
        {"eta": np.full((2, 1), np.nan)},
        {"eta": np.full((2, 1), 1e51)},
        {"eta": "eta"},
        {"noise_scale": -1.0},
        {"noise_scale": np.timedelta64(1, "s")},
        {"noise_scale": np.ones(2)},
        {"shared_context": "no"},
    ],
    ids=lambda broken: next(iter(broken)),
)
def test_members_that_are_wrong_are_refused(broken: dict[str, Any]) -> None:
    with pytest.raises(kh.InvalidValue, match=f"Plainly.({next(iter(broken))}|eta)"):
        run(Plainly(**broken))


def test_labels_in_some_blocks_only_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Forgetful(Coins):
        begun: ClassVar[list[int]] = []

        def rounds(self, state: Any, n: int) -> kh.Rounds:
            made = super().rounds(state, n)
            first = not self.begun
            self.begun.append(n)
            return dataclasses.replace(made, labels=np.zeros(n, int) if first else None)

    monkeypatch.setattr(replication, "BLOCK_FLOATS", 3 * 100)
    with pytest.raises(kh.InvalidValue, match="labels always or never"):
        run(Forgetful())


def test_labels_in_some_replications_only_are_refused() -> None:
    class Odd(Coins):
        def rounds(self, state: Any, n: int) -> kh.Rounds:
            known = state.seed.spawn_key[0] % 2 == 0
            made = super().rounds(state, n)
            return dataclasses.replace(made, labels=np.zeros(n, int) if known else None)

    with pytest.raises(kh.InvalidValue, match="labels in all replications or in none"):
        run(Odd())


def test_the_rounds_of_a_replication_can_be_had() -> None:
    """Those of world.sample(horizon, seed=SeedSequence(seed, spawn_key=(k,)))."""
    runs = run(WORLD, kh.Uniform(), horizon=1, replications=3)
    for k in range(3):
        rounds = WORLD.sample(1, seed=np.random.SeedSequence(5, spawn_key=(k,)))
        arm = int(runs.pulls.values[0, k, 0].argmax())
        regret = rounds.values[0].max() - rounds.values[0, arm]
        np.testing.assert_allclose(runs.regret.isel(policy=0, replication=k, time=0), regret)


def test_an_eta_of_the_wrong_shape_is_refused() -> None:
    class Odd(Coins):
        @property
        def eta(self) -> np.ndarray:
            return np.ones((2, 3))

    with pytest.raises(kh.InvalidValue, match="eta"):
        run(Odd())


def test_numbers_come_in_many_forms() -> None:
    """An eta of lists, arrays read-only or of whole numbers: the same."""

    class Plain(Coins):
        @property
        def eta(self) -> Any:
            return [[0.7], [0.3]]

        def rounds(self, state: Any, n: int) -> kh.Rounds:
            made = super().rounds(state, n)
            made.values.flags.writeable = False
            return dataclasses.replace(made, rewards=made.rewards.astype(int))

    assert run(Plain()).drop_attrs().identical(run(Coins()).drop_attrs())


@pytest.mark.parametrize("arm", [0, 1])
def test_a_best_that_nobody_knows_is_not_known(arm: int) -> None:
    latent = np.ones((300, 2))
    latent[200:, arm] = np.nan
    regret = run(Coins(latent=latent), kh.Uniform(), checkpoints=[200, 201]).latent_regret
    assert (regret.sel(time=200) == 0.0).all()
    assert np.isnan(regret.sel(time=201)).all()


@pytest.mark.parametrize("arms", [1, 3, 9, 13])
def test_regrets_are_judged_wherever_the_best_arm_is(arms: int) -> None:
    """A round for each place. A latent value may be infinite, and one that is NaN tells nothing."""
    best = np.eye(arms) > 0
    values = np.where(best, 5.0, -1.0 - np.arange(arms))
    latent = np.where(best | (np.arange(arms) < arms - 1), values, -np.inf)
    for seen, unknown in ((latent, False), (np.where(best, np.nan, values), True)):
        truth = kernels.Oracle(values, seen, np.empty(0, np.int64), np.zeros((arms, 1)))
        for t in range(arms):
            record = kernels.Record(np.arange(1), np.empty((0, 0)), np.zeros(5), np.zeros(arms))
            now = slice(t, t + 1)
            one = truth._replace(values=values[now], latent=seen[now])
            add_regret(np.zeros(1, np.int64), one, record)
            lost = 0.0 if t == 0 else 6.0
            expected = [lost, np.nan if unknown else lost, t == 0]
            np.testing.assert_array_equal(record.sums[:3], expected)


def test_rounds_must_be_rounds() -> None:
    class Bare(Coins):
        def rounds(self, state: Any, n: int) -> Any:
            return dataclasses.astuple(super().rounds(state, n))

    with pytest.raises(kh.InvalidValue, match="must return Rounds, got"):
        run(Bare())


def test_a_recipe_that_draws_something_else() -> None:
    class Wrong(kh.RandomLinearWorld):
        def draw(self, seed: Any = None) -> Any:
            return linear() if self.n_arms == 4 else seed

    for n_arms in (4, 5):
        with pytest.raises(kh.InvalidValue, match="must draw Worlds"):
            run(Wrong(n_arms=n_arms, context_dim=3, dim=3))


def test_worlds_of_ones_own_are_told_apart(tmp_path: Path) -> None:
    run(Coins(), resume=tmp_path, horizon=10)
    with pytest.raises(kh.InvalidValue, match="differs in world"):
        run(Coins((0.6, 0.3)), resume=tmp_path, horizon=10)


def test_an_executor_that_takes_no_more_work() -> None:
    class Full(ThreadPoolExecutor):
        def submit(self, fn: Any, /, *args: Any, **_: Any) -> Future[Any]:
            if args[1] == 2:
                raise RuntimeError("the queue is full")
            return super().submit(fn, *args)

    with Full(1) as executor, pytest.raises(RuntimeError, match="full"):
        run(executor=executor)


# -- guards ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"world": "linear"}, "world"),
        ({"policies": []}, "at least one entry, got none"),
        ({"policies": ["greedy"]}, "learners must be"),
        ({"policies": [kh.Greedy(), kh.Greedy()]}, "the same"),
        ({"policies": {1: kh.Greedy()}}, "name of a learner must be a string, got 1"),
        ({"horizon": 0}, "horizon"),
        ({"horizon": 10.0}, "horizon"),
        ({"replications": 0}, "replications"),
        ({"seed": -1}, "seed"),
        ({"workers": -1}, "workers"),
        ({"workers": 0}, "workers"),
        ({"policies": None}, "learners"),
        ({"policies": kh.Greedy}, "learners"),
        ({"policies": "greedy"}, "learners"),
        ({"policies": [NotARule()]}, "must be a Rule"),
        ({"horizon": 10**30}, "horizon"),
        ({"replications": 10**30}, "replications"),
        ({"executor": "threads"}, "get_executor"),
        ({"executor": Backwards(), "workers": 2}, "workers"),
        ({"checkpoints": 0}, "checkpoints"),
        ({"checkpoints": []}, "checkpoints"),
        ({"checkpoints": [0]}, "checkpoints"),
        ({"checkpoints": [301]}, "checkpoints"),
        ({"checkpoints": [1.5]}, "checkpoints"),
        ({"checkpoints": "all"}, "checkpoints"),
        ({"resume": "somewhere", "seed": None}, "seed"),
        ({"resume": 5}, "resume must be a path"),
        ({"resume": b"kept"}, "resume must be a path"),
        ({"resume": ["kept"]}, "resume must be a path"),
        ({"seed": 10**5000}, "seed"),
        ({"seed": -(10**5000)}, "seed"),
        ({"seed": np.timedelta64(1, "s")}, "seed"),
        ({"seed": np.random.SeedSequence(10**5000)}, "seed"),
        ({"progress": "yes"}, "progress"),
        ({"progress": np.array([1, 2])}, "progress"),
        ({"policies": [10**5000]}, "learners must be"),
        ({"policies": {10**5000: kh.Greedy()}}, "name of a learner must be a string"),
        ({"policies": np.array(["greedy"])}, "learners"),
        ({"checkpoints": [1e30]}, "checkpoints"),
        ({"checkpoints": 10**12, "horizon": 10**14}, "checkpoints"),
        ({"world": 10**5000}, "world"),
        ({"world": kh.RandomMissingWorld}, "world"),
    ],
)
def test_bad_settings_are_refused_before_any_work(
    settings: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def work(*_: Any) -> None:
        raise AssertionError("work has started")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(replication, "replicate", work)
    monkeypatch.setattr("keyhole.lab.simulation.run.replicate", work)
    with pytest.raises(kh.InvalidValue, match=message):
        run(**settings)
    assert list(tmp_path.iterdir()) == []
