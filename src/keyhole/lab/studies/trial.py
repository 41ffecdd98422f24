"""`trial`: a randomised trial of four HIV treatments as a log, and the value of other policies."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.stats import norm

from keyhole.core import Floats, Greedy, Learner, ThompsonSampling
from keyhole.lab import datasets, plots
from keyhole.lab.evidence import LEVEL, Estimate, Verdict, at_least, at_most, counted
from keyhole.lab.studies import choices, panels, simulated
from keyhole.lab.studies.cd4 import noise_share, without_means
from keyhole.lab.studies.patients import windows
from keyhole.lab.studies.replay import Log, ReplayCell, Value, inverse_propensity, weighted
from keyhole.lab.studies.study import THOMPSON, Cell, Settings, Study, Table, sized

ARMS = (
    "zidovudine",
    "zidovudine + didanosine",
    "zidovudine + zalcitabine",
    "didanosine",
)
WORST, BEST = 0, 1
# What was known of a patient before randomisation.
FEATURES = (
    *("age", "wtkg", "hemo", "homo", "drugs", "karnof", "oprior", "z30", "preanti", "race"),
    *("gender", "str2", "symptom", "cd40", "cd80"),
)
GREEDY, TRIAL_ITSELF = "Greedy", "the trial itself"
# CD4 cells per cubic millimetre: less than a tenth of the spread of one patient's change.
MARGIN = 10.0
# A count says more of the patient than of the measurement.
NOISE_LIMIT = 0.5
# The level of the intervals on the figure; verdicts have that of all studies.
FIGURE_LEVEL = 0.95

ACTG175 = Table(
    name="actg175",
    title="ACTG175",
    dim=len(FEATURES),
    sizes="2,139 patients in four randomised arms, 15 features",
    stand_in=Table(
        name="simulated trial",
        title="Simulated trial",
        dim=len(FEATURES),
        sizes="2,139 simulated patients in four random arms, 15 features",
    ),
)


@lru_cache(maxsize=2)
def log(table: Table, data_dir: Path | None) -> Log:
    """Return the log of a table: standardised features, arms, and CD4 change at 20 weeks.

    Parameters
    ----------
    table : Table
        The trial, or its stand-in.
    data_dir : Path or None
        A folder with the trial's file.
    """
    real = table.name in datasets.TABLES
    frame = datasets.table(table.name, data_dir=data_dir) if real else simulated.actg175()
    x = frame[list(FEATURES)].to_numpy(dtype=np.float64)
    return Log(
        name=table.name,
        features=(x - x.mean(axis=0)) / x.std(axis=0),
        arms=frame["arms"].to_numpy(dtype=np.int64),
        rewards=(frame["cd420"] - frame["cd40"]).to_numpy(dtype=np.float64),
        n_arms=len(ARMS),
        before=frame["cd40"].to_numpy(dtype=np.float64),
    )


def cells(settings: Settings) -> list[Cell]:
    """Return one cell: both learners replay the trial in the same random orders."""
    used = ACTG175.used(settings)
    made = log(used, settings.data_dir)
    sizes = sized(settings, replications=50)
    patients = len(made.arms)
    full = patients if settings.horizon is None and not settings.quick else sizes["horizon"]
    sizes["horizon"] = min(full, patients)
    return [
        ReplayCell(
            where={"data": used.name},
            world=made,
            policies={
                THOMPSON: Learner(ThompsonSampling(), intercept=True),
                GREEDY: Learner(Greedy(), intercept=True),
            },
            checkpoints=windows(sizes["horizon"]),
            **sizes,
        )
    ]


def curves(table: xr.Dataset) -> xr.DataArray:
    """Return the mean reward of the patients that counted so far."""
    return table["value"]


def values(table: xr.Dataset) -> dict[str, Value]:
    """Return the value of each fixed arm, of the trial itself, and of each learner."""
    one = table.isel(cell=0)
    rewards = one.reward.values
    found = {
        name: weighted((one.arm_given.values == arm).astype(float), rewards)
        for arm, name in enumerate(ARMS)
    }
    found[TRIAL_ITSELF] = weighted(np.ones(len(rewards)), rewards)
    for policy in one.policy.values:
        last = one.value.sel(policy=policy).isel(time=-1).values
        made = weighted(one.weight.sel(policy=policy).values, rewards)
        found[str(policy)] = made._replace(order_variance=last.var(ddof=1) / last.size)
    return found


def plain_values(table: xr.Dataset) -> dict[str, Value]:
    """Return the value of each fixed arm by inverse propensities that are not normalised."""
    one = table.isel(cell=0)
    given, rewards = one.arm_given.values, one.reward.values
    weights: list[Floats] = [len(ARMS) * (given == arm).astype(float) for arm in range(len(ARMS))]
    return {
        name: inverse_propensity(weight, rewards)
        for name, weight in zip(ARMS, weights, strict=True)
    }


def noise(table: xr.Dataset) -> dict[str, Estimate]:
    """Return upper bounds of the share of noise in the variance of a CD4 count.

    The first is of the patients who were given the worst arm, the second of all less the means of
    their arms: effects that differ between patients add to it.
    """
    one = table.isel(cell=0)
    arms, before = one.arm_given.values, one.before.values
    after = before + one.reward.values
    same = arms == WORST
    return {
        f"{ARMS[WORST]} only": noise_share(before[same], after[same]),
        "all arms, less their means": noise_share(
            without_means(before, arms), without_means(after, arms)
        ),
    }


def figure(table: xr.Dataset) -> Figure:
    """Draw the values with their 95% intervals, and the learners' values as they learn."""
    drawing, (left, right) = panels.panels(1, 2, same_x=False)
    reach = float(norm.ppf(0.5 + FIGURE_LEVEL / 2))
    found, plain = values(table), plain_values(table)
    rows = range(len(found), 0, -1)
    for row, (name, value) in zip(rows, found.items(), strict=True):
        colour = plots.colour(name) if name in table.policy.values else "0.2"
        left.errorbar(value.value, row, xerr=reach * value.error, fmt="o", color=colour, ms=4)
        if name in plain:
            other = plain[name]
            left.errorbar(
                other.value,
                row - 0.3,
                xerr=reach * other.error,
                fmt="o",
                color="0.65",
                ms=2.5,
                lw=1,
            )
    left.errorbar([], [], xerr=[], fmt="o", color="0.2", ms=4, label="self-normalised, 95%")
    left.errorbar([], [], xerr=[], fmt="o", color="0.65", ms=2.5, label="plain IPS, 95%")
    plots.dressed(left, "", "value of each policy")
    # One long label would take half of the panel's width.
    labels = [name.replace(" + ", "\n+ ").replace("Thompson ", "Thompson\n") for name in found]
    left.set_yticks(list(rows), labels, fontsize="x-small", linespacing=0.9)
    left.axvline(0.0, color="0.8", linewidth=0.8, zorder=0)
    left.set_ylim(0.4, len(found) + 0.6)
    offered = table.isel(cell=0).time
    for policy in table.policy.values:
        one = table.value.isel(cell=0).sel(policy=policy)
        right.plot(offered, one.mean("replication"), color=plots.colour(policy), label=policy)
        low, high = one.quantile([0.1, 0.9], "replication").values
        right.fill_between(offered, low, high, color=plots.colour(policy), alpha=0.15, lw=0)
    for arm, style in ((BEST, "-."), (WORST, ":")):
        level = found[ARMS[arm]].value
        right.axhline(level, color="0.4", linestyle=style, linewidth=0.9, label=ARMS[arm])
    plots.dressed(right, "", "replay, with 80% of the orders")
    right.autoscale(axis="y")
    finished = panels.finished(drawing, [left, right], ylabel="")
    finished.supylabel("")
    data = str(table.data.values[0])
    if data != ACTG175.name:
        finished.suptitle(f"Simulated trial (stand-in for {ACTG175.title})", fontsize="medium")
    share = next(iter(noise(table).values()))
    left.set_xlabel(
        "CD4 change at 20 weeks (cells / mm³)\n"
        f"noise is at most {share.value:.0%} ± {share.margin:.0%} of the variance of a count",
        fontsize="small",
    )
    right.set(xlabel="patients offered", ylabel="CD4 change at 20 weeks")
    return finished


def verdicts(table: xr.Dataset) -> list[Verdict]:
    """Decide which arms differ, and the value of learners."""
    found = values(table)
    data = str(table.data.values[0])
    where = "" if data == ACTG175.name else "Simulated trial (stand-in): "
    best = found[ARMS[BEST]]
    over_worst = {
        name: interval(found[name].less(found[ARMS[WORST]]))
        for arm, name in enumerate(ARMS)
        if arm != WORST
    }
    under_best = {
        name: interval(best.less(found[name])) for arm, name in enumerate(ARMS) if arm != BEST
    }
    learners = [str(name) for name in table.policy.values]
    over_trial = {name: interval(found[name].less(found[TRIAL_ITSELF])) for name in learners}
    over_best = {name: interval(found[name].less(best)) for name in learners}
    shares = noise(table)
    return [
        counted(
            f"{where}every other arm raises CD4 more than {ARMS[WORST]} alone",
            {name: at_least(gain, 0.0) for name, gain in over_worst.items()},
            f"Difference in cells: {_cells(over_worst)}.",
        ),
        counted(
            f"{where}{ARMS[BEST]} raises CD4 more than every other arm",
            {name: at_least(gain, 0.0) for name, gain in under_best.items()},
            f"Difference in cells: {_cells(under_best)}.",
        ),
        counted(
            f"{where}learning while treating would have earned more than the trial's allocation",
            {name: at_least(gain, 0.0) for name, gain in over_trial.items()},
            f"Difference in cells: {_cells(over_trial)}.",
        ),
        counted(
            f"{where}learning while treating would have earned as much as {ARMS[BEST]} for all",
            {name: at_least(gain, -MARGIN) for name, gain in over_best.items()},
            f"Difference in cells: {_cells(over_best)}; the limit is -{MARGIN:g}.",
        ),
        Verdict(
            f"{where}at most half of the variance of a CD4 count is noise",
            at_most(next(iter(shares.values())), NOISE_LIMIT),
            f"Upper bounds of the share: {_percent(shares)}; the limit is {NOISE_LIMIT:.0%} for "
            "the first.",
        ),
    ]


def interval(value: Value) -> Estimate:
    """Return a value with the interval that verdicts use."""
    return Estimate(value.value, float(norm.ppf(0.5 + LEVEL / 2)) * value.error)


def _cells(found: dict[str, Estimate]) -> str:
    return "; ".join(f"{name}: {one.value:+.0f} ± {one.margin:.0f}" for name, one in found.items())


def _percent(found: dict[str, Estimate]) -> str:
    return "; ".join(f"{name}: {one.value:.0%} ± {one.margin:.0%}" for name, one in found.items())


TRIAL = Study(
    name="trial",
    title="A randomised trial as a log",
    claim="From a trial whose arms were drawn with probability 1/4 each, the value of any policy "
    "can be estimated: of each arm for all patients, and of learners that decide as they learn.",
    setting="The reward is the change of CD4 cells from baseline to 20 weeks. A learner is offered "
    "the patients in random orders; a patient counts, and is learned from, if the learner chooses "
    "the arm that the patient was given. About a quarter does.",
    rule="Values are weighted means, with standard errors over patients and, for learners, over "
    "orders. Differences must be more than 0. A learner counts as good as the best arm if it "
    f"loses less than {MARGIN:g} cells / mm³ against it. The share of noise in the variance of a "
    f"CD4 count must be at most {NOISE_LIMIT:.0%}.",
    choices=choices.OURS,
    cells=cells,
    curves=curves,
    figure=figure,
    verdicts=verdicts,
    data=(ACTG175,),
    notes="Intervals are over patients: they say what as many other patients of the same kind "
    "would leave open. A replayed learner has about 535 patients to learn from, so that much of "
    "its value is the price of learning. It was not run in the trial, and CD4 at 20 weeks is not "
    "survival. Two counts of a patient, 20 weeks apart, calibrate the sensor of CD4. True changes "
    "in between count as noise, so that its share is an upper bound. With one sensor for all "
    "patients the coefficients of a reading are all that choices need: they have that noise in "
    "them. Which arms the claims name as the best and the worst was chosen after the arms' means "
    "in this table were seen, and the limit of the noise after its share was: those three claims "
    "describe this trial, and are not tests of a hypothesis that came before it.",
    worst=False,
)
