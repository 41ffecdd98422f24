"""Which growths each study accepts and refuses, at full size and with its own scatter.

The curves have a known growth. Their scatter is that of real replications of the study: each
replication's curve over the mean curve (or over the expected worst curve, where a claim is about
that), times the known growth. So a verdict meets the noise that it has to decide in.
"""

from typing import Any

import numpy as np
import pytest
import xarray as xr

from keyhole.lab import evidence
from keyhole.lab.evidence import WORST_OF, Estimate
from keyhole.lab.studies import STUDIES, Outcome
from keyhole.lab.studies.arms import GREEDY
from keyhole.lab.studies.study import THOMPSON
from tests.growths import Growth, real, with_mean, with_worst

HOLDS, FAILS, CANNOT = Outcome.HOLDS, Outcome.FAILS, Outcome.UNDECIDED
STAND_INS = frozenset(table.name for table in STUDIES["fig6"].data)


def log(power: float) -> Growth:
    return lambda t: np.log(t) ** power


def time(power: float) -> Growth:
    return lambda t: t**power


def outcomes(name: str, table: xr.Dataset) -> list[Outcome]:
    return [verdict.outcome for verdict in STUDIES[name].verdicts(table)]


# -- fig1 -----------------------------------------------------------------------------------------

# (d_y, d_x) = (10, 10), with the largest scatter of the sixteen, and (40, 80), with the smallest.
FIG1 = (0, 11)


@pytest.mark.parametrize(
    ("growth", "expected"),
    [
        (log(1), HOLDS),
        (log(2), HOLDS),
        (log(2.25), CANNOT),
        (log(2.5), FAILS),
        (log(3), FAILS),
        (lambda t: log(2)(t) * t**0.1, FAILS),
        (time(0.3), FAILS),
        (time(1), FAILS),
    ],
)
def test_what_fig1_accepts_and_refuses(growth: Growth, expected: Outcome) -> None:
    table = real("fig1", FIG1)
    table["regret"] = with_mean(table["regret"], growth)
    assert outcomes("fig1", table) == [expected]


def test_fig1_refuses_a_faster_growth_in_every_cell_alone() -> None:
    for place in FIG1:
        table = real("fig1", [place])
        table["regret"] = with_mean(table["regret"], log(2.5))
        assert outcomes("fig1", table) != [HOLDS]


def test_fig1_itself() -> None:
    assert outcomes("fig1", real("fig1", FIG1)) == [HOLDS]


# -- fig2 -----------------------------------------------------------------------------------------

FIG2 = (1,)  # d_x = d_y = 20, with the largest scatter of the three


@pytest.mark.parametrize(
    ("power", "expected"),
    [(-0.6, HOLDS), (-0.5, HOLDS), (-0.45, CANNOT), (-0.4, FAILS), (-0.35, FAILS), (0.0, FAILS)],
)
def test_what_fig2_accepts_and_refuses(power: float, expected: Outcome) -> None:
    table = real("fig2", FIG2)
    table["error"] = with_mean(table["error"], time(power))
    assert outcomes("fig2", table) == [expected]
    # Every arm is decided alike.
    for arm in table.arm.values:
        assert outcomes("fig2", table.sel(arm=[arm])) == [expected]


def test_fig2_itself() -> None:
    assert outcomes("fig2", real("fig2", FIG2)) == [HOLDS]


# -- fig3 -----------------------------------------------------------------------------------------

FIG3 = (4,)  # one context for all of 20 arms


def fig3(places: tuple[int, ...], greedy: Growth, thompson: Growth) -> list[Outcome]:
    """The three verdicts on worst cases of these growths."""
    table = real("fig3", places)
    for policy, growth in ((GREEDY, greedy), (THOMPSON, thompson)):
        one = {"policy": policy}
        table["regret"].loc[one] = with_worst(table["regret"].sel(one), growth, WORST_OF)
    kept = outcomes("fig3", table)
    assert len(kept) == 3  # no verdict about contexts of which there are no cells
    return kept


@pytest.mark.parametrize(
    ("growth", "expected"),
    [
        (time(1), HOLDS),
        (time(0.9), CANNOT),
        (time(0.8), FAILS),
        (time(0.6), FAILS),
        (log(3), FAILS),
        (log(1), FAILS),
    ],
)
def test_what_fig3_accepts_as_a_line(growth: Growth, expected: Outcome) -> None:
    assert fig3(FIG3, growth, log(1))[0] == expected


@pytest.mark.parametrize(
    ("growth", "expected"),
    [
        (log(1), HOLDS),
        (log(2), HOLDS),
        (log(2.5), CANNOT),
        (log(3), FAILS),
        (time(0.3), FAILS),
        (time(1), FAILS),
    ],
)
def test_what_fig3_accepts_as_a_logarithm(growth: Growth, expected: Outcome) -> None:
    """With 30 arms, where the scatter is smallest; with 20, (log t)^2 and ^3 are undecided."""
    assert fig3((5,), time(1), growth)[1] == expected


# Own contexts with 10 arms, and one context with 10, 20 and 30.
@pytest.mark.parametrize("place", [0, 3, 4, 5])
def test_no_cell_of_fig3_takes_a_cubed_logarithm_or_a_slower_power(place: int) -> None:
    line, logarithm, _ = fig3((place,), time(0.8), log(3))
    assert line != HOLDS
    assert logarithm != HOLDS


def test_all_cells_of_fig3_together_refuse_a_cubed_logarithm() -> None:
    """Undecided with 10 and 20 arms, and refuted with 30."""
    line, logarithm, _ = fig3((3, 4, 5), time(0.8), log(3))
    assert (line, logarithm) == (FAILS, FAILS)


@pytest.mark.parametrize(("ratio", "expected"), [(1.5, HOLDS), (1.0, CANNOT), (0.6, FAILS)])
def test_which_worst_case_of_fig3_is_the_worse(ratio: float, expected: Outcome) -> None:
    assert fig3(FIG3, lambda t: ratio * log(2)(t), log(2))[2] == expected


# -- fig4 and fig5 --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("behind", "expected"),
    [(0.0, HOLDS), (0.01, HOLDS), (0.02, CANNOT), (0.03, FAILS), (-0.03, FAILS)],
)
def test_what_fig4_and_fig5_accept(behind: float, expected: Outcome) -> None:
    table = real("fig6", (0, 1), STAND_INS)
    centred = table["correct"] - table["correct"].mean("replication")
    best = table["best_correct"].mean("replication")
    table["correct"] = (centred + best - behind).transpose(*table["correct"].dims)
    table["best_correct"] = table["best_correct"] * 0 + best
    assert outcomes("fig4", table) == outcomes("fig5", table) == [expected]


# -- fig6 -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("growth", "logistic"),
    [
        (log(1), HOLDS),
        (log(1.8), HOLDS),
        (log(2.25), CANNOT),
        (log(3), FAILS),
        (time(0.5), FAILS),
        (time(1), FAILS),
    ],
)
def test_what_fig6_accepts_and_refuses(growth: Growth, logistic: Outcome) -> None:
    """On digits, the stand-in for eye movements; `test_paper_data` has eye movements and EEG."""
    table = real("fig6", (0, 1), STAND_INS)
    table["regret"] = with_mean(table["regret"], growth)
    faster = {HOLDS: FAILS, FAILS: HOLDS, CANNOT: CANNOT}[logistic]
    assert outcomes("fig6", table) == [logistic, faster]


# -- scaling --------------------------------------------------------------------------------------


def scaling(v: tuple[float, float, float]) -> Any:
    """The verdict on v, of final regrets with these powers between neighbours."""
    factors = STUDIES["scaling"]
    rng = np.random.default_rng(5)
    x = np.array([0.5, 1.0, 2.0, 4.0])
    means = np.exp(np.concatenate([[0.0], np.cumsum(np.array(v) * np.log(2.0))])) * 600
    # A tenth of the mean, as at full size.
    values = means[:, None] * (1 + 0.1 * rng.standard_normal((4, 50)))
    names = ("n_arms", "dim", "v", "gap")
    table = xr.Dataset(
        {
            "regret": (
                ("cell", "policy", "replication", "time"),
                np.tile(values, (4, 1))[:, None, :, None],
            )
        },
        coords={
            "policy": [THOMPSON],
            "time": [10_000],
            "cell": np.arange(16),
            "factor": ("cell", np.repeat(names, 4)),
            "value": ("cell", np.tile(x, 4)),
        },
    )
    return factors.verdicts(table)[2]


@pytest.mark.parametrize(
    ("powers", "expected"),
    [
        ((0.9, 0.9, 0.9), HOLDS),
        ((1.1, 1.1, 1.1), CANNOT),
        ((1.5, 1.5, 1.5), FAILS),
        ((0.2, 0.9, 1.6), FAILS),  # 0.9 on the whole, and more than the bound at the end
    ],
)
def test_what_scaling_accepts(powers: tuple[float, float, float], expected: Outcome) -> None:
    assert scaling(powers).outcome == expected


def test_scaling_says_its_local_powers_and_its_lack_of_fit() -> None:
    bent, straight = scaling((0.2, 0.9, 1.6)).evidence, scaling((0.9, 0.9, 0.9)).evidence
    assert bent.count(" from ") == 3
    margins = [
        float(text.split("One power for all: ")[1].split(" ± ")[1].split(",")[0])
        for text in (bent, straight)
    ]
    assert margins[0] > 1.0  # no single power fits
    assert margins[1] < 0.5


# -- shared and missing ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("growth", "expected"), [(log(1), HOLDS), (log(2.5), FAILS), (time(0.5), FAILS)]
)
def test_what_shared_accepts(growth: Growth, expected: Outcome) -> None:
    table = real("shared", (0, 1, 2))
    table["regret"] = with_mean(table["regret"], growth)
    assert outcomes("shared", table)[0] == expected


@pytest.mark.parametrize(("saved", "expected"), [(0.3, HOLDS), (0.0, CANNOT), (-0.3, FAILS)])
def test_what_missing_accepts(saved: float, expected: Outcome) -> None:
    rng = np.random.default_rng(6)
    cells = [
        (c, f, s)
        for c in (0.0, 10.0)
        for f in ("predict", "mean", "zero", "drop")
        for s in (0.1, 0.3, 0.5)
    ]
    level = np.array([1.0 - saved if fill == "predict" else 1.0 for _, fill, _ in cells])
    values = level[:, None] * (1 + 0.1 * rng.standard_normal((len(cells), 20)))
    centres, fills, shares = zip(*cells, strict=True)
    table = xr.Dataset(
        {"regret": (("cell", "policy", "replication", "time"), values[:, None, :, None])},
        coords={
            "centre": ("cell", list(centres)),
            "fill": ("cell", list(fills)),
            "share": ("cell", list(shares)),
            "time": [2000],
        },
    )
    assert set(outcomes("missing", table)) == {expected}


@pytest.mark.parametrize(
    ("alone", "saved", "more", "expected"),
    [
        (0.0, 0.6, 0.0, [HOLDS, HOLDS, HOLDS]),
        (0.3, 0.6, 0.0, [FAILS, HOLDS, HOLDS]),
        (-0.3, 0.4, 0.0, [FAILS, FAILS, HOLDS]),
        (0.2, 0.5, 0.25, [CANNOT, CANNOT, CANNOT]),
        (0.0, 0.6, 0.4, [HOLDS, HOLDS, FAILS]),
    ],
)
def test_what_sensors_accepts(
    alone: float, saved: float, more: float, expected: list[Outcome]
) -> None:
    """Regret of learning mu: 1 with 10 sensors; with 50 of them more, by a share."""
    rng = np.random.default_rng(7)
    cases = [(1, 5), (10, 5), (50, 5), (1, 40)]
    pooled = np.array([1.0, 1.0, 1.0 + more, 1.0])
    separate = pooled / (1.0 - np.array([alone, saved, saved, saved]))
    level = np.stack([pooled, separate], axis=1)[:, :, None]
    values = level * (1 + 0.03 * rng.standard_normal((4, 2, 16)))
    table = xr.Dataset(
        {"regret": (("cell", "policy", "replication", "time"), values[..., None])},
        coords={
            "n_sensors": ("cell", [case[0] for case in cases]),
            "dim": ("cell", [case[1] for case in cases]),
            "policy": ["mu, through all sensors", "eta, for each sensor"],
            "time": [1500],
        },
    )
    assert outcomes("sensors", table) == expected


# -- the statistics -------------------------------------------------------------------------------


def test_the_burden_of_proof_is_on_the_claim() -> None:
    assert evidence.at_most(Estimate(1.0, 0.5), 2.0) == HOLDS
    assert evidence.at_most(Estimate(1.0, 1.5), 2.0) == CANNOT  # not told apart: not granted
    assert evidence.at_most(Estimate(3.0, 0.5), 2.0) == FAILS
    assert evidence.at_least(Estimate(3.0, 0.5), 2.0) == HOLDS
    assert evidence.at_least(Estimate(1.0, 0.5), 2.0) == FAILS
    assert evidence.within(Estimate(-0.5, 0.4), 1.0) == HOLDS
    assert evidence.within(Estimate(-0.5, 0.6), 1.0) == CANNOT
    assert evidence.within(Estimate(-2.0, 0.5), 1.0) == FAILS
    nothing = Estimate(float("nan"), float("nan"))
    assert evidence.at_most(nothing, 2.0) == evidence.at_least(nothing, 2.0) == CANNOT


def test_one_failing_cell_refutes_and_one_undecided_cell_leaves_open() -> None:
    made = evidence.counted("all", {"a": HOLDS, "b": CANNOT, "c": FAILS}, "Numbers.")
    assert made.outcome == FAILS
    assert made.evidence == "holds for 1 of 3, does not hold for c, cannot tell for b. Numbers."
    assert evidence.counted("all", {"a": HOLDS, "b": CANNOT}, "").outcome == CANNOT
    assert evidence.counted("all", {"a": HOLDS}, "").outcome == HOLDS


TIME = np.arange(10, 10_001, 10)


def curves(values: Any) -> xr.DataArray:
    return xr.DataArray(values, dims=("replication", "time"), coords={"time": TIME})


def test_powers_of_exact_curves() -> None:
    factors = np.linspace(0.5, 1.5, 5)[:, None]
    for power in (1.0, 2.0, 2.5):
        found = evidence.power_of_log(curves(7 + factors * np.log(TIME) ** power))
        # The constant is gone; middles of stretches stand for the whole of them.
        assert found.value == pytest.approx(power, abs=0.005)
        assert found.margin == pytest.approx(0.0, abs=1e-9)
    for power in (0.8, 1.0):
        found = evidence.power_of_time(curves(7 + factors * TIME**power))
        assert found.value == pytest.approx(power, abs=0.01)
    assert evidence.rate_of_decay(curves(factors * TIME**-0.5)).value == pytest.approx(-0.5)


def test_what_stands_still_or_has_too_few_replications_is_not_decided() -> None:
    still = evidence.power_of_log(curves(np.ones((5, TIME.size))))
    assert evidence.at_most(still, 2.25) == CANNOT
    for n in (1, 2):
        few = evidence.power_of_log(curves(np.tile(np.log(TIME), (n, 1))))
        assert few.margin == np.inf
        assert evidence.at_most(few, 2.25) == CANNOT
    assert evidence.estimate(xr.DataArray([1.0], dims="replication")).margin == np.inf


def test_too_few_checkpoints_say_so() -> None:
    short = curves(np.tile(TIME, (3, 1))).isel(time=[-2, -1])
    with pytest.raises(ValueError, match="too few to fit the growth of curves"):
        evidence.power_of_log(short)


def test_the_jackknife_of_a_mean_is_students_interval() -> None:
    values = np.random.default_rng(1).standard_normal(20)
    one = evidence.jackknife(values, lambda samples: float(samples.mean()))
    other = evidence.estimate(xr.DataArray(values, dims="replication"))
    assert one == pytest.approx(other)


def test_intervals_of_powers_cover() -> None:
    """Of 400 experiments of 50 replications, 99% have the truth in their interval.

    Curves are sums of independent gains, which have a standard deviation as large as their mean,
    times a factor of the replication's own. The standard error of the share is 0.5%.
    """
    rng, hits = np.random.default_rng(2), 0
    edges = np.concatenate([[0.0], np.log(TIME)])
    for _ in range(400):
        gains = rng.exponential(np.diff(edges), size=(50, TIME.size))
        scale = rng.lognormal(sigma=0.3, size=(50, 1))
        found = evidence.power_of_log(curves(np.cumsum(scale * gains, axis=1)))
        hits += found.low <= 1.0 <= found.high
    assert abs(hits / 400 - 0.99) <= 4 * 0.005


def test_the_expected_worst_by_counting_all_sets() -> None:
    from itertools import combinations

    samples = np.array([[1.0, 5.0], [2.0, 9.0], [3.0, 1.0], [0.5, 7.0], [4.0, 2.0]])
    for size in (1, 2, 4, 5):
        worst = [
            max(chosen, key=lambda row: row[-1]) for chosen in combinations(samples.tolist(), size)
        ]
        np.testing.assert_allclose(evidence.expected_worst(samples, size), np.mean(worst, axis=0))
    np.testing.assert_allclose(evidence.expected_worst(samples, 50), samples[1])


def test_estimates_never_print_a_margin_of_nothing() -> None:
    assert str(Estimate(1.234, 0.0123)) == "1.234 ± 0.012"
    assert str(Estimate(1.234, 0.5)) == "1.23 ± 0.50"
    assert Estimate(0.1234, 0.02).percent == "+12.3% ± 2.0%"
