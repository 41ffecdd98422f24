"""What many replications say together, and what is drawn of it."""

from collections.abc import Callable
from pathlib import Path

import matplotlib.colors
import numpy as np
import pytest
import xarray as xr

import keyhole as kh

# The figures of what `simulate` returns; those of the theory are in tests/theory.
OF_RUNS = [
    name for name in kh.plots.__all__ if name not in ("certificate", "looseness", "overview")
]


def curves(values: np.ndarray) -> xr.DataArray:
    return xr.DataArray(
        values, dims=("replication", "time"), coords={"time": np.arange(1, values.shape[1] + 1)}
    )


@pytest.fixture(scope="module")
def runs() -> xr.Dataset:
    world = kh.RandomLinearWorld(n_arms=3, context_dim=4, dim=3)
    policies = {"thompson": kh.ThompsonSampling(v="oracle"), "greedy": kh.Greedy()}
    return kh.simulate(world, policies, horizon=400, replications=20, seed=1, progress=False)


def test_by_hand() -> None:
    summary = kh.summary.summarize(curves(np.array([[1.0, 2.0], [3.0, 6.0], [5.0, 4.0]])))
    assert summary["mean"].values.tolist() == [3.0, 4.0]
    assert summary["worst"].values.tolist() == [5.0, 6.0]
    np.testing.assert_allclose(summary["standard_error"], [2 / np.sqrt(3)] * 2)
    assert (summary["low"] <= summary["mean"]).all()
    assert (summary["high"] >= summary["mean"]).all()


def test_the_bootstrap_band_covers() -> None:
    """A 90% band for the mean of 50 normals covers the truth in about 90% of 600 cases; a
    percentile bootstrap of 50 is narrow by sqrt(49/50), which costs less than a standard error."""
    rng = np.random.default_rng(1)
    summary = kh.summary.summarize(curves(rng.standard_normal((50, 600))), level=0.9, draws=2000)
    covered = float(((summary.low <= 0) & (summary.high >= 0)).mean())
    assert abs(covered - 0.9) <= 4 * np.sqrt(0.9 * 0.1 / 600)


def test_the_band_has_the_standard_errors_width() -> None:
    rng = np.random.default_rng(2)
    summary = kh.summary.summarize(curves(rng.standard_normal((400, 50))), draws=4000)
    ratio = (summary.high - summary.low) / (2 * 1.96 * summary.standard_error)
    assert abs(float(ratio.mean()) - 1) < 0.03


def test_one_replication_has_no_standard_error() -> None:
    summary = kh.summary.summarize(curves(np.array([[1.0, 2.0]])))
    assert np.isnan(summary.standard_error).all()
    assert summary["mean"].values.tolist() == summary.low.values.tolist() == [1.0, 2.0]


def test_normalisations_by_hand() -> None:
    flat = curves(np.log(np.arange(1, 50.0))[None] ** 2 * 7)
    np.testing.assert_allclose(kh.summary.over_log_squared(flat), 7.0)
    assert kh.summary.over_log_squared(flat).time[0] == 2
    np.testing.assert_allclose(kh.summary.times_root(curves(np.arange(1, 9.0)[None] ** -0.5)), 1.0)
    # 1 of 1, then 1 of the next 1, then 0 of the next 2.
    share = xr.DataArray(
        [[1.0, 1.0, 0.5]], dims=("replication", "time"), coords={"time": [1, 2, 4]}
    )
    np.testing.assert_allclose(kh.summary.rate_between(share), [[1.0, 1.0, 0.0]])


def test_bad_input(runs: xr.Dataset) -> None:
    with pytest.raises(kh.InvalidValue, match="replication"):
        kh.summary.summarize(runs.regret.mean("replication"))
    with pytest.raises(kh.InvalidValue, match="level"):
        kh.summary.summarize(runs.regret, level=0.0)
    with pytest.raises(kh.InvalidValue, match="'optimal'"):
        kh.plots.pulls(runs, policy="optimal")


@pytest.mark.parametrize("name", OF_RUNS)
def test_every_figure(name: str, runs: xr.Dataset, tmp_path: Path) -> None:
    """Labels, a legend that lies outside the axes, Okabe-Ito colours, a file in every format."""
    figure = getattr(kh.plots, name)(runs)
    axes = figure.axes[0]
    assert axes.get_xlabel() == "round"
    assert axes.get_ylabel()
    figure.savefig(tmp_path / "figure.png")
    legend = axes.get_legend()
    assert legend.get_window_extent().x0 > axes.get_window_extent().x1
    shown = {matplotlib.colors.to_hex(line.get_color()).upper() for line in axes.lines[:2]}
    assert shown <= set(kh.plots.COLOURS)
    for kind in ("svg", "pdf"):
        figure.savefig(tmp_path / f"figure.{kind}")
        assert (tmp_path / f"figure.{kind}").stat().st_size > 1000


def test_a_curve_is_the_mean_and_the_dashed_one_the_worst(runs: xr.Dataset) -> None:
    axes = kh.plots.regret(runs).axes[0]
    heights = [(line, np.asarray(line.get_ydata())) for line in axes.lines]
    solid = [(line, y) for line, y in heights if line.get_linestyle() == "-"]
    dashed = [y for line, y in heights if line.get_linestyle() == "--" and y.size]
    for i, policy in enumerate(("thompson", "greedy")):
        regret = runs.regret.sel(policy=policy)
        np.testing.assert_allclose(solid[i][1], regret.mean("replication"))
        np.testing.assert_allclose(dashed[i], regret.max("replication"))
        assert solid[i][0].get_label() == policy
    assert len(axes.collections) >= 2  # the bands


def test_a_legend_of_many_arms_leaves_the_data_their_room() -> None:
    world = kh.RandomLinearWorld(n_arms=30, context_dim=2, dim=2)
    runs = kh.simulate(world, kh.Uniform(), horizon=50, replications=3, seed=1, progress=False)
    figure = kh.plots.pulls(runs)
    figure.draw_without_rendering()
    axes = figure.axes[0]
    width = axes.get_window_extent().width / figure.dpi
    legend = axes.get_legend()
    assert width > 3.5
    assert legend is not None
    assert legend.get_window_extent().x1 <= figure.bbox.x1


def test_one_policy_picked_out_still_has_its_figures(runs: xr.Dataset) -> None:
    one = runs.sel(policy="greedy")
    for name in OF_RUNS:
        assert getattr(kh.plots, name)(one).axes
    with pytest.raises(kh.InvalidValue, match="time of at least 2"):
        kh.plots.normalized_regret(runs.isel(time=[0]))
    with pytest.raises(kh.InvalidValue, match=r"runs\.regret"):
        kh.summary.summarize(runs)  # type: ignore[arg-type]


def test_every_figure_shows_its_quantity(runs: xr.Dataset) -> None:
    """The first solid line of each, by hand."""
    late, greedy = runs.sel(time=runs.time >= 10), runs.sel(policy="greedy")
    expected = {
        "normalized_regret": (late.regret / np.log(late.time) ** 2).isel(policy=0),
        "estimation_error": (greedy.error * np.sqrt(greedy.time)).isel(arm=0),
        "pulls": (greedy.pulls / greedy.time).isel(arm=0).sel(time=greedy.time >= 10),
    }
    for name, curve in expected.items():
        settings = {} if name == "normalized_regret" else {"policy": "greedy"}
        axes = getattr(kh.plots, name)(runs, **settings).axes[0]
        shown = np.asarray(axes.lines[0].get_ydata())
        np.testing.assert_allclose(shown, curve.mean("replication"))
        band = axes.collections[0].get_paths()[0].get_extents()
        assert band.height > 0


def test_a_certificate_beside_runs(tmp_path: Path) -> None:
    """Logarithmic axes, both bounds, the mean and the worst run, and other bounds by name."""
    world, policy = kh.LinearWorld.random(n_arms=2, context_dim=2, dim=2, seed=1), kh.Greedy()
    bound = kh.theory.certificate(world, policy, 3_000)
    seen = kh.simulate(world, policy, horizon=3_000, replications=5, seed=2)
    theorem = np.full(len(bound.times), 1e9)
    figure = kh.plots.certificate(bound, seen, lines={"theorem $2$": theorem})
    figure.savefig(tmp_path / "certificate.png")
    axes = figure.axes[0]
    assert axes.get_xscale() == axes.get_yscale() == "log"
    lines = {str(line.get_label()): np.asarray(line.get_ydata()) for line in axes.lines}
    np.testing.assert_array_equal(lines["certificate"], bound.values)
    np.testing.assert_array_equal(lines["trivial"], bound.trivials)
    np.testing.assert_array_equal(lines[r"theorem \$2\$"], theorem)
    np.testing.assert_allclose(lines["simulated mean"], seen.regret[0].mean("replication"))
    np.testing.assert_allclose(lines["worst run"], seen.regret[0].max("replication"))
    alone = kh.plots.certificate(bound).axes[0]
    assert len(alone.lines) == 2
    assert kh.plots.certificate(bound, axes=alone) is alone.get_figure()
    with pytest.raises(kh.InvalidValue, match="found must be a Certificate, got Dataset"):
        kh.plots.certificate(seen)  # type: ignore[arg-type]
    with pytest.raises(kh.InvalidValue, match="Dataset that simulate returned"):
        kh.plots.certificate(bound, 5)  # type: ignore[arg-type]
    with pytest.raises(kh.InvalidValue, match=r"the line 'x' must have .* values"):
        kh.plots.certificate(bound, lines={"x": [1.0]})
    with pytest.raises(kh.InvalidValue, match="axes must be"):
        kh.plots.certificate(bound, axes="here")  # type: ignore[arg-type]


# -- names, colours and guards --------------------------------------------------------------------


def shown_colours(runs: xr.Dataset) -> dict[str, str]:
    lines = [line for line in kh.plots.regret(runs).axes[0].lines if line.get_linestyle() == "-"]
    return {str(line.get_label()): matplotlib.colors.to_hex(line.get_color()) for line in lines}


def test_a_policy_keeps_its_colour_whichever_others_are_shown(runs: xr.Dataset) -> None:
    both, turned = shown_colours(runs), shown_colours(runs.isel(policy=[1, 0]))
    assert both == turned
    assert shown_colours(runs.sel(policy=["greedy"])) == {"greedy": both["greedy"]}
    assert both["greedy"] != both["thompson"]


def test_policies_of_one_kind_still_have_different_lines(runs: xr.Dataset) -> None:
    names = [f"thompson {i}" for i in range(20)]
    many = xr.concat([runs.isel(policy=0)] * 20, "policy").assign_coords(policy=names)
    lines = kh.plots.regret(many).axes[0].lines
    styles = [
        (line.get_color(), str(line.get_linestyle())) for line in lines if line.get_label() in names
    ]
    assert len(set(styles)) == 20


def test_an_arm_keeps_its_colour(runs: xr.Dataset) -> None:
    colours = [
        {str(line.get_label()): line.get_color() for line in kh.plots.pulls(chosen).axes[0].lines}
        for chosen in (runs, runs.isel(arm=[2]))
    ]
    assert colours[0]["arm 2"] == colours[1]["arm 2"]


@pytest.mark.parametrize("name", ["_x", r"$\frac{$", "$a_b$", "50% & <more>", "a\nb", ""])
def test_any_name_of_a_policy_can_be_drawn(name: str, runs: xr.Dataset, tmp_path: Path) -> None:
    named = runs.assign_coords(policy=[name, "greedy"])
    for kind in OF_RUNS:
        figure = getattr(kh.plots, kind)(named)
        for suffix in ("png", "svg", "pdf"):
            figure.savefig(tmp_path / f"figure.{suffix}")
    legend = kh.plots.regret(named).axes[0].get_legend()
    assert legend is not None
    assert len(legend.get_texts()) == 4  # both policies, the worst case, the band


@pytest.mark.parametrize("plot", OF_RUNS)
def test_figures_of_what_is_not_a_simulation(plot: str, runs: xr.Dataset) -> None:
    draw = getattr(kh.plots, plot)
    for wrong in (5, None, "runs", runs.regret, np.ones(3)):
        with pytest.raises(kh.InvalidValue, match="Dataset that simulate returned"):
            draw(wrong)
    with pytest.raises(kh.InvalidValue, match="must have the variable"):
        draw(runs[["optimal"]])
    with pytest.raises(kh.InvalidValue, match="'replication'"):
        draw(runs.mean("replication"))
    with pytest.raises(kh.InvalidValue, match="'time'"):
        draw(runs.isel(time=-1))
    with pytest.raises(kh.InvalidValue, match="must not be empty"):
        draw(runs.isel(replication=[]))
    with pytest.raises(kh.InvalidValue, match="axes must be"):
        draw(runs, axes="here")


@pytest.mark.parametrize(
    "function", [kh.summary.over_log_squared, kh.summary.times_root, kh.summary.rate_between]
)
def test_summaries_of_what_are_not_curves(function: Callable[..., object]) -> None:
    times = np.arange(1, 5)
    for wrong in (5, None, [1.0, 2.0], np.ones(4)):
        with pytest.raises(kh.InvalidValue, match="must be one variable"):
            function(wrong)
    with pytest.raises(kh.InvalidValue, match="dimension 'time'"):
        function(xr.DataArray(np.ones(4), dims="t"))
    with pytest.raises(kh.InvalidValue, match="coordinate 'time'"):
        function(xr.DataArray(np.ones(4), dims="time"))
    with pytest.raises(kh.InvalidValue, match="real numbers"):
        function(xr.DataArray(list("abcd"), dims="time", coords={"time": times}))


def test_summarize_checks_its_settings(runs: xr.Dataset) -> None:
    for wrong in ({"draws": 0}, {"draws": 10**9}, {"draws": 2.5}, {"seed": -1}, {"seed": "x"}):
        with pytest.raises(kh.InvalidValue, match=next(iter(wrong))):
            kh.summary.summarize(runs.regret, **wrong)
    with pytest.raises(kh.InvalidValue, match="must not be empty"):
        kh.summary.summarize(runs.regret.isel(replication=[]))
