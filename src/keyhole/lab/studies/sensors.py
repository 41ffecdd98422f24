"""`sensors`: the worth of knowing the sensors, and of learning mu through all of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from keyhole.core import (
    Chosen,
    Draws,
    Floats,
    Learner,
    LearnerState,
    Seed,
    Sensor,
    SensorLearner,
    SensorName,
    Streams,
    ThompsonSampling,
    streams,
)
from keyhole.lab import plots
from keyhole.lab.evidence import (
    Estimate,
    Verdict,
    at_least,
    at_most,
    counted,
    estimate,
    within,
)
from keyhole.lab.studies import choices, panels
from keyhole.lab.studies.study import Cell, Settings, Study, regret, sized
from keyhole.lab.worlds import LinearWorld, SensorWorld

POOLED, SEPARATE = "mu, through all sensors", "eta, for each sensor"
CONTEXT_DIM = 10
# The numbers of sensors and of entries that each of them shows.
CASES = ((1, 5), (10, 5), (50, 5), (1, 40))
# Knowing the only sensor saves or costs at most this share: the priors of the two differ.
SAME = 0.2
# What is saved with several sensors, or with one that shows more entries than the context has.
SAVED = 0.5
# With 50 sensors mu costs at most this much more than with 10.
MORE = 0.25


@dataclass(frozen=True, kw_only=True)
class RandomSensorWorld:
    """A recipe for worlds with sensors whose matrices have standard normal entries.

    Parameters
    ----------
    n_sensors : int
        The number of sensors.
    dim : int
        The number of entries that each of them shows.
    n_arms : int, default 5
        The number of arms.
    """

    n_sensors: int
    dim: int
    n_arms: int = 5

    def draw(self, seed: Seed | Streams = None) -> SensorWorld:
        """Draw one world; its mu depends on the seed alone."""
        source = streams(seed)
        mu = source["coefficients"].standard_normal((self.n_arms, CONTEXT_DIM))
        shape = (self.n_sensors, self.dim, CONTEXT_DIM)
        sensors = [
            Sensor(sensing=matrix, sensing_covariance=0.25)
            for matrix in source["instance"].standard_normal(shape)
        ]
        world: Any = LinearWorld(sensors=sensors, coefficients=mu, reward_scale=0.5)
        made: SensorWorld = world
        return made

    def describe(self) -> dict[str, Any]:
        """Return the settings of the recipe."""
        return {"kind": type(self).__name__, **asdict(self)}


@dataclass(frozen=True)
class PerSensor:
    """A plain learner for each sensor, which know nothing of each other.

    Parameters
    ----------
    learner : Learner
        The learner of each sensor's measurements.
    """

    learner: Learner

    def start(self, n_arms: int, dim: int) -> tuple[dict[SensorName, LearnerState], int, int]:
        """Return the states of the learners, initially none, and the sizes.

        Parameters
        ----------
        n_arms, dim
            As in `AnyLearner.start`.
        """
        return {}, n_arms, dim

    def choose(
        self, state: Any, observation: Floats, draws: Draws, *, sensor: SensorName = 0
    ) -> Chosen:
        """Choose by the learner of this round's sensor, as `AnyLearner.choose`.

        Parameters
        ----------
        state, observation, draws
            As there.
        sensor : str or int
            The sensor.
        """
        states, n_arms, dim = state
        if sensor not in states:
            states[sensor] = self.learner.start(n_arms, dim)
        return self.learner.choose(states[sensor], observation, draws)

    def learn(
        self, state: Any, arm: int, observation: Floats, reward: float, *, sensor: SensorName = 0
    ) -> None:
        """Teach the learner of this round's sensor, as `AnyLearner.learn`.

        Parameters
        ----------
        state, arm, observation, reward
            As there.
        sensor : str or int
            The sensor.
        """
        self.learner.learn(state[0][sensor], arm, observation, reward)


def cells(settings: Settings) -> list[Cell]:
    """Return a cell for each number of sensors and of entries."""
    sizes = sized(settings, replications=16)
    if settings.horizon is None:
        sizes["horizon"] = 300 if settings.quick else 1500
    if settings.replications is None and settings.quick:
        sizes["replications"] = 5
    policy = ThompsonSampling()
    return [
        Cell(
            where={"n_sensors": n_sensors, "dim": dim},
            world=RandomSensorWorld(n_sensors=n_sensors, dim=dim),
            policies={
                POOLED: SensorLearner(policy, "oracle"),
                SEPARATE: PerSensor(Learner(policy)),
            },
            **sizes,
        )
        for n_sensors, dim in CASES
    ]


def _of(table: xr.Dataset, n_sensors: int, dim: int) -> xr.DataArray:
    """Return the regret of a case, (policy, replication, time)."""
    chosen = (table["n_sensors"] == n_sensors) & (table["dim"] == dim)
    return table["regret"].isel(cell=int(np.flatnonzero(chosen.values).item()), drop=True)


def _saved(table: xr.Dataset, n_sensors: int, dim: int) -> Estimate:
    """Return the share of the regret of learning eta that learning mu saves."""
    last = _of(table, n_sensors, dim).isel(time=-1)
    return estimate(1.0 - last.sel(policy=POOLED) / last.sel(policy=SEPARATE))


def _title(n_sensors: int, dim: int) -> str:
    sensors = "1 sensor" if n_sensors == 1 else f"{n_sensors} sensors"
    return f"{sensors} of {dim} entries"


def figure(table: xr.Dataset) -> Figure:
    """Draw a panel for each case, with a line for each learner."""
    drawing, axes = panels.panels(1, len(CASES), same_y=True)
    for one, case in zip(axes, CASES, strict=True):
        plots.curves(_of(table, *case), "", by="policy", worst=None, title=_title(*case), axes=one)
    return panels.finished(drawing, axes, ylabel="regret", xlabel="rounds")


def verdicts(table: xr.Dataset) -> list[Verdict]:
    """Decide the worth of knowing one sensor, and the regret that pooling several saves."""
    alone = _saved(table, 1, 5)
    saved = {_title(*case): _saved(table, *case) for case in CASES[1:]}
    many, few = (_of(table, m, 5).isel(time=-1).sel(policy=POOLED) for m in (50, 10))
    more = estimate((many - few) / float(few.mean()))
    return [
        counted(
            "with one sensor of fewer entries than the context, knowing it gains nothing",
            {_title(1, 5): within(alone, SAME)},
            f"Regret saved: {alone.percent}; the margin is {SAME:.0%}.",
        ),
        counted(
            "with several sensors, or more entries than the context has, learning mu saves at "
            "least half of the regret",
            {name: at_least(one, SAVED) for name, one in saved.items()},
            f"Regret saved: {'; '.join(f'{name}: {one.percent}' for name, one in saved.items())}.",
        ),
        counted(
            "what learning mu costs does not depend on the number of sensors",
            {"50 sensors": at_most(more, MORE)},
            f"Regret with 50 sensors over that with 10: {more.percent}; the limit is +{MORE:.0%}.",
        ),
    ]


SENSORS = Study(
    name="sensors",
    title="What knowing the sensors is worth",
    claim="Where one of several known sensors is there in each round, or one that shows more "
    "entries than the context has, learning mu through beliefs about the context has at most half "
    "of the regret of learning eta for each sensor; with one sensor of few entries it is the same.",
    setting=f"5 arms, contexts of {CONTEXT_DIM} numbers, and one of 1, 10 or 50 sensors drawn at "
    "random in each round. Entries of the sensing matrices and of mu are standard normal, drawn "
    "anew in each replication; the sensing noise and the rewards' noise have variance 0.25. v is "
    "learned.",
    rule=f"With one sensor of 5 entries, mu must save or cost at most {SAME:.0%}: the priors of mu "
    "and eta differ, and so do early rounds. In the other cases it must save at least "
    f"{SAVED:.0%}. With 50 sensors mu may cost at most {MORE:.0%} more than with 10.",
    choices=choices.OURS,
    cells=cells,
    curves=regret,
    figure=figure,
    verdicts=verdicts,
    notes="Regret is against the best observer, who knows mu and the sensor of each round.",
)
