"""`warfarin`: three dose classes for patients whose records are incomplete, by clinic."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from keyhole.core import (
    Chosen,
    Draws,
    Floats,
    Learner,
    LearnerState,
    SensorLearner,
    ThompsonSampling,
)
from keyhole.lab import datasets, plots
from keyhole.lab.evidence import Estimate, Verdict, at_least, estimate, within
from keyhole.lab.simulation import Playable
from keyhole.lab.studies import choices, dose_records, panels, simulated
from keyhole.lab.studies.fixed_arm import FixedArm
from keyhole.lab.studies.patients import ORACLE, windows
from keyhole.lab.studies.population import population
from keyhole.lab.studies.study import Cell, Settings, Study, Table, sized
from keyhole.lab.summary import rate_between, summarize
from keyhole.lab.worlds import CohortWorld

MEDIUM = dose_records.CLASSES.index("medium")
SENSORS = "sensors pooled"
PREDICTED, MEANS, ZEROS = "predicted", "means", "zeros"
COMPLETE, COMPLETE_ELSE = "complete cases", "complete cases, else medium"
ALWAYS = "always medium"
# The beginnings of claims.
WORDS = {PREDICTED: "prediction of missing entries gives", SENSORS: "pooled sensors give"}
# The colours of policies: grey for the one that does not learn, and the oracle last.
COLOURS = dict(
    zip(
        (SENSORS, PREDICTED, MEANS, ZEROS, COMPLETE_ELSE, COMPLETE, ALWAYS, ORACLE),
        (*plots.COLOURS[:-1], "0.6", plots.COLOURS[-1]),
        strict=True,
    )
)
# Rates are compared over this last share of the patients, and one over as many at the start.
THIRD = 1 / 3
# Two patients of a hundred, as in figure 4. The share of always medium in 6,037 patients is itself
# known to 1.6 of a hundred only.
MARGIN = 0.02

DOSES = Table(
    name="warfarin",
    title="Warfarin doses",
    dim=dose_records.DIM,
    sizes="6,037 patients of 22 clinics with a known stable dose, 24 features, 3 arms",
    stand_in=Table(
        name="simulated doses",
        title="Simulated doses",
        dim=dose_records.DIM,
        sizes="about 6,000 simulated patients of 22 clinics, 24 features, 3 arms",
    ),
)


@dataclass(frozen=True)
class CompleteElse:
    """A learner of complete observations, with one arm for all others.

    Parameters
    ----------
    learner : Learner
        The learner of complete observations.
    arm : int
        The arm for observations with a missing entry.
    """

    learner: Learner
    arm: int

    def start(self, n_arms: int, dim: int) -> LearnerState:
        """Return the learner's state.

        Parameters
        ----------
        n_arms, dim
            As in `AnyLearner.start`.
        """
        return self.learner.start(n_arms, dim)

    def choose(self, state: LearnerState, observation: Floats, draws: Draws) -> Chosen:
        """Choose by the learner if nothing is missing.

        Parameters
        ----------
        state, observation, draws
            As in `AnyLearner.choose`.
        """
        if np.isnan(observation).any():
            return Chosen(self.arm, 1.0)
        return self.learner.choose(state, observation, draws)

    def learn(self, state: LearnerState, arm: int, observation: Floats, reward: float) -> None:
        """Learn from complete observations.

        Parameters
        ----------
        state, arm, observation, reward
            As in `AnyLearner.learn`.
        """
        if not np.isnan(observation).any():
            self.learner.learn(state, arm, observation, reward)


def policies(records: Floats) -> dict[str, Playable]:
    """Return the policies by name: Thompson sampling with each treatment of missing entries.

    The sensors are the clinics: one that does not record a field is a sensor without that row. They
    share the moments of all records, which this policy knows from the start.
    """

    def filling(missing: str) -> Learner:
        return Learner(
            ThompsonSampling(),
            intercept=True,
            missing=missing,  # type: ignore[arg-type] # one of the words below
        )

    return {
        # Rare levels are far from their mean by what they are, and no glitches.
        SENSORS: SensorLearner(ThompsonSampling(), population(records), intercept=True, clip=None),
        PREDICTED: filling("predict"),
        MEANS: filling("mean"),
        ZEROS: filling("zero"),
        COMPLETE: filling("drop"),
        COMPLETE_ELSE: CompleteElse(filling("drop"), MEDIUM),
        ALWAYS: FixedArm(MEDIUM),
    }


@lru_cache(maxsize=2)
def world(table: Table, data_dir: Path | None) -> CohortWorld:
    """Return the patients of a table as a world.

    Parameters
    ----------
    table : Table
        The table of doses, or its stand-in.
    data_dir : Path or None
        A folder with the table's file.
    """
    real = table.name in datasets.TABLES
    frame = datasets.table(table.name, data_dir=data_dir) if real else simulated.warfarin()
    features, rewards = dose_records.cohort(frame)
    return CohortWorld(features, rewards, name=table.name)


def cells(settings: Settings) -> list[Cell]:
    """Return one cell: every policy sees the same patients in the same random orders."""
    used = DOSES.used(settings)
    made = world(used, settings.data_dir)
    sizes = sized(settings, replications=20)
    if settings.horizon is None and not settings.quick:
        sizes["horizon"] = len(made.features)
    return [
        Cell(
            where={"data": used.name},
            world=made,
            policies=policies(made.features),
            checkpoints=windows(sizes["horizon"]),
            **sizes,
        )
    ]


def curves(table: xr.Dataset) -> xr.DataArray:
    """Return the share of right doses in each window, for each policy and for the oracle."""
    oracle = table.best_correct.expand_dims(policy=[ORACLE])
    return rate_between(xr.concat([table.correct, oracle], "policy"))


def late_rates(table: xr.Dataset) -> dict[str, xr.DataArray]:
    """Return the share of right doses over the last patients, over replications, by policy."""
    start = int((1.0 - THIRD) * table.sizes["time"]) - 1
    last = curves(table.isel(time=[start, -1])).isel(cell=0, time=-1)
    return {str(name): last.sel(policy=name) for name in last.policy.values}


def early_rates(table: xr.Dataset) -> dict[str, xr.DataArray]:
    """Return the share of right doses over the first patients, over replications, by policy."""
    end = max(int(THIRD * table.sizes["time"]), 1) - 1
    first = curves(table.isel(time=[end])).isel(cell=0, time=0)
    return {str(name): first.sel(policy=name) for name in first.policy.values}


def figure(table: xr.Dataset) -> Figure:
    """Draw the rates as patients come, and the final rates with their intervals."""
    drawing, (left, right) = panels.panels(1, 2, same_x=False)
    tenth = max(1, table.sizes["time"] // 10)
    wide = curves(table.isel(time=slice(tenth - 1, None, tenth))).isel(cell=0)
    for name in COLOURS:
        summary = summarize(wide.sel(policy=name))
        left.plot(wide.time, summary["mean"], color=COLOURS[name], label=name, linewidth=1.2)
        left.fill_between(
            wide.time, summary.low, summary.high, color=COLOURS[name], alpha=0.2, linewidth=0
        )
    late = late_rates(table)
    rows = range(len(COLOURS), 0, -1)
    for row, name in zip(rows, COLOURS, strict=True):
        found = estimate(late[name])
        reach = found.margin if np.isfinite(found.margin) else 0.0
        right.errorbar(found.value, row, xerr=reach, fmt="o", color=COLOURS[name], ms=4)
    plots.dressed(left, "", "right doses as patients come")
    plots.dressed(right, "", "over the last third, 99%")
    left.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    right.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    left.autoscale(axis="y")
    right.set_yticks(list(rows), [name.replace(", ", ",\n") for name in COLOURS], fontsize="small")
    right.set_ylim(0.4, len(COLOURS) + 0.6)
    finished = panels.finished(drawing, [left, right], ylabel="")
    finished.supylabel("")
    if str(table.data.values[0]) != DOSES.name:
        finished.suptitle(f"Simulated doses (stand-in for {DOSES.title})", fontsize="medium")
    left.set(xlabel="patients", ylabel="share of right doses")
    right.set_xlabel("share of right doses")
    return finished


def verdicts(table: xr.Dataset) -> list[Verdict]:
    """Decide whether prediction and pooled sensors beat other policies, and equal the oracle."""
    late, early = late_rates(table), early_rates(table)
    levels = "; ".join(f"{name}: {float(rate.mean()):.1%}" for name, rate in late.items())
    found = [_more(late, PREDICTED, ALWAYS)]
    found += [_more(late, PREDICTED, other) for other in (COMPLETE, COMPLETE_ELSE, ZEROS, MEANS)]
    found.append(_as_oracle(late, PREDICTED, f" All rates: {levels}."))
    found += [_more(late, SENSORS, other) for other in (ALWAYS, COMPLETE_ELSE, PREDICTED)]
    found += [_more(early, SENSORS, PREDICTED, "first"), _as_oracle(late, SENSORS)]
    where = "" if str(table.data.values[0]) == DOSES.name else "Simulated doses (stand-in): "
    return [replace(verdict, claim=where + verdict.claim) for verdict in found]


def _more(rates: dict[str, xr.DataArray], one: str, other: str, third: str = "last") -> Verdict:
    """Decide whether one policy gives more right doses than another by the margin."""
    gain = estimate(rates[one] - rates[other])
    over = "" if third == "last" else f" over the {third} third"
    return Verdict(
        f"{WORDS[one]} more right doses than {other}{over}",
        at_least(gain, MARGIN),
        f"Difference over the {third} third: {gain.percent}; it must be at least {MARGIN:.0%}.",
    )


def _as_oracle(rates: dict[str, xr.DataArray], one: str, more: str = "") -> Verdict:
    """Decide whether the rate of a policy differs from the oracle's by at most the margin."""
    gap: Estimate = estimate(rates[ORACLE] - rates[one])
    return Verdict(
        f"{WORDS[one]} as many right doses as the oracle",
        within(gap, MARGIN),
        f"The oracle's less its own over the last third: {gap.percent}, at most {MARGIN:.0%} in "
        f"size.{more}",
    )


DATA_NOTES = (
    "Intervals are over orders of these patients, not over other patients: hence a margin of two "
    "in a hundred. Complete cases take an arm at random where an entry is missing, which is so for "
    "three patients in four; with medium for them they are the fairer comparison. The label is the "
    "dose that the clinic found to be stable, whatever the class that a policy would have begun "
    "with, and a wrong class is not a measure of harm. Pooled sensors know mean and covariance of "
    "all records, without doses, from the start; prediction estimates them from the records so "
    "far. The two differ in that, and in how much a reward of an incomplete record counts."
)

WARFARIN = Study(
    name="warfarin",
    title="Doses from incomplete records",
    claim="Where clinics record different things, predicting what they did not record beats "
    "learning from complete records only, and beats the usual dose for all.",
    setting="The reward is 1 if the class of the dose is right: low (below 21 mg a week), medium "
    "or high (above 49). What is missing depends on the clinic. Each patient comes once, in random "
    "order; the oracle is a regression on all patients in hindsight. For pooled sensors a clinic "
    "that does not record a field is a sensor without that row, and mu is learned through all.",
    rule="Shares of right doses over the last third of the patients. Prediction beats another "
    f"policy if it is right for at least {MARGIN:.0%} more patients, and is as good as the oracle "
    f"if it differs by at most {MARGIN:.0%}. The same holds for pooled sensors.",
    choices=choices.OURS,
    cells=cells,
    curves=curves,
    figure=figure,
    verdicts=verdicts,
    data=(DOSES,),
    notes=DATA_NOTES,
    worst=False,
)
