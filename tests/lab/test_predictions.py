"""What theory predicts, beside what was simulated."""

import json
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

import keyhole as kh
from keyhole.lab.predictions import predicted
from keyhole.lab.worlds import as_text, from_text

WORLD = kh.LinearWorld.random(n_arms=3, context_dim=4, dim=2, seed=1)


@pytest.fixture(scope="module")
def runs() -> xr.Dataset:
    policies: dict[str, kh.Policy | kh.Learner] = {
        "mine": kh.ThompsonSampling(v="oracle"),
        "greedy": kh.Greedy(),
        "learned": kh.ThompsonSampling(),
        "constant": kh.Learner(kh.Greedy(), intercept=True),
        "ucb": kh.LinUCB(),
    }
    return kh.simulate(WORLD, policies, horizon=300, replications=3, seed=1)


def test_a_world_comes_back_from_its_text_to_the_bit() -> None:
    text = as_text(WORLD)
    assert text is not None
    again = from_text(text)
    assert again.describe() == WORLD.describe()
    assert (again.sensing == WORLD.sensing).all()


def test_large_and_other_worlds_have_no_text() -> None:
    assert as_text(kh.LinearWorld.random(n_arms=2, context_dim=80, dim=80, seed=1)) is None
    assert as_text(kh.MissingWorld(WORLD, 0.1)) is None


def test_runs_carry_their_world_and_the_file_too(runs: xr.Dataset, tmp_path: object) -> None:
    path = f"{tmp_path}/runs.nc"
    runs.to_netcdf(path, engine="h5netcdf")
    with xr.open_dataset(path, engine="h5netcdf") as loaded:
        assert set(predicted(loaded)) == {"mine", "greedy"}


def test_plain_learners_with_an_asymptote_have_a_prediction(runs: xr.Dataset) -> None:
    found = predicted(runs)
    assert set(found) == {"mine", "greedy"}
    expected = kh.theory.asymptote(WORLD, kh.ThompsonSampling(v="oracle"), horizon=300)
    np.testing.assert_array_equal(found["mine"].rates, expected.rates)
    np.testing.assert_array_equal(predicted(runs, WORLD)["mine"].rates, expected.rates)


def test_a_prediction_is_dashed_in_the_colour_of_its_policy(runs: xr.Dataset) -> None:
    axes = kh.plots.regret(runs, asymptote=True).axes[0]
    lines = [line for line in axes.lines if line.get_linestyle() == "--"]
    dashed = [line for line in lines if np.size(line.get_xdata())]  # without that of the legend
    assert len(dashed) == 2
    solid = {line.get_label(): line.get_color() for line in axes.lines}
    assert [line.get_color() for line in dashed] == [solid["mine"], solid["greedy"]]
    curve = predicted(runs)["mine"].regret(runs.time.values)
    np.testing.assert_allclose(np.asarray(dashed[0].get_ydata(), float), curve)
    legend = axes.get_legend()
    assert legend is not None
    assert "predicted" in [text.get_text() for text in legend.get_texts()]


def test_a_policy_that_was_left_out_has_no_line(runs: xr.Dataset) -> None:
    axes = kh.plots.regret(runs.sel(policy=["greedy", "ucb"]), asymptote=WORLD).axes[0]
    assert sum(line.get_linestyle() == "--" for line in axes.lines) == 2  # and one in the legend


def test_a_policy_whose_curve_is_refused_has_no_line() -> None:
    policies = {"mine": kh.ThompsonSampling(v="oracle"), "stiff": kh.Greedy(prior_precision=1e4)}
    runs = kh.simulate(WORLD, policies, horizon=5, replications=1, seed=1)
    assert set(predicted(runs)) == {"mine"}
    with pytest.raises(kh.InvalidValue, match=r"stiff: the regret before the end .* kappa"):
        predicted(runs.assign_attrs(policies=json.dumps(
            {"stiff": json.loads(runs.attrs["policies"])["stiff"]}
        )))  # fmt: skip


class Greedy(kh.Greedy):
    """A class of one's own with the name of ours."""

    @property
    def rule(self) -> kh.Rule:
        return kh.Rule(optimism=1.0)


def test_what_cannot_be_predicted_is_said(runs: xr.Dataset) -> None:
    with pytest.raises(kh.InvalidValue, match="from another world"):
        kh.plots.regret(runs, asymptote=replace(WORLD, reward_scale=2.0))
    with pytest.raises(kh.InvalidValue, match="asymptote must be True, False or a world"):
        kh.plots.regret(runs, asymptote="yes")  # type: ignore[arg-type]
    recipe = kh.RandomLinearWorld(n_arms=2, context_dim=2, dim=2)
    drawn = kh.simulate(recipe, kh.Greedy(), horizon=5, replications=1, seed=1)
    with pytest.raises(kh.InvalidValue, match="carry no world"):
        kh.plots.regret(drawn, asymptote=True)
    own = kh.simulate(WORLD, [Greedy()], horizon=5, replications=1, seed=1)
    assert json.loads(own.attrs["policies"])["Greedy()"]["name"] == "Greedy"
    with pytest.raises(kh.InvalidValue, match=r"no policy of these runs .* policies of Keyhole"):
        kh.plots.regret(own, asymptote=True)
    with pytest.raises(kh.InvalidValue, match="attribute 'world'"):
        kh.plots.regret(runs.drop_attrs(), asymptote=True)
