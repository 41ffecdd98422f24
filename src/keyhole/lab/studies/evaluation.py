"""`evaluation`: intervals from logs of Thompson sampling, held against the truth."""

from __future__ import annotations

from typing import Any

import xarray as xr

from keyhole.lab.studies import choices
from keyhole.lab.studies.campaigns import OPEN_BANDIT, SHOP_POLICIES, CampaignCell, campaigns
from keyhole.lab.studies.evaluation_cells import IntervalsCell, WatchedCell
from keyhole.lab.studies.evaluation_controls import ControlsCell
from keyhole.lab.studies.evaluation_figure import figure
from keyhole.lab.studies.evaluation_parts import (
    CONTROLS,
    INTERVALS,
    SHOP,
    WATCHED,
    WORLDS,
    covered,
    part,
)
from keyhole.lab.studies.evaluation_verdicts import (
    CONTROL,
    EVER,
    EVERYWHERE,
    HIGHEST,
    LOWEST,
    OBJECTED,
    RMSE_ELSEWHERE,
    verdicts,
)
from keyhole.lab.studies.study import Cell, Settings, Study
from keyhole.lab.studies.thompson_logs import TARGETS, ThompsonLogs


def cells(settings: Settings) -> list[Cell]:
    """Return the cells of all four parts: intervals, sequences, controls, and the shop's logs."""
    made: list[Cell] = [
        IntervalsCell(
            where={"part": INTERVALS, "case": name},
            world=ThompsonLogs(n_arms=2, signal=signal, epsilon=epsilon),
            policies=TARGETS,
            **_sizes(settings, rounds, 400),
        )
        for name, (signal, epsilon, rounds) in WORLDS.items()
    ]
    made.append(
        WatchedCell(
            where={"part": WATCHED, "case": "floor 2%"},
            world=ThompsonLogs(n_arms=2, signal=0.3, epsilon=0.02),
            policies={name: TARGETS[name] for name in ("fixed arm", "uniform", "v/2")},
            **_sizes(settings, 2_000, 200),
        )
    )
    made.append(
        ControlsCell(
            where={"part": CONTROLS, "case": "floor 10%"},
            world=ThompsonLogs(n_arms=3, signal=0.3, epsilon=0.1),
            policies={"uniform": TARGETS["uniform"]},
            **_sizes(settings, 2_000, 150),
        )
    )
    made.extend(
        CampaignCell(
            where={"part": SHOP, "case": one.name},
            world=one,
            policies=SHOP_POLICIES,
            horizon=max(len(frame) for frame in one.frames.values()),
            replications=1,
            seed=settings.seed,
        )
        for one in campaigns(settings)
    )
    return made


def _sizes(settings: Settings, horizon: int, replications: int) -> dict[str, Any]:
    """Return the sizes of a cell; a quick look has a tenth of the logs, and no shorter ones."""
    logs = max(replications // 10, 10) if settings.quick else replications
    return {
        "horizon": settings.horizon or horizon,
        "replications": settings.replications or logs,
        "seed": settings.seed,
    }


def curves(table: xr.Dataset) -> xr.DataArray:
    """Return whether each interval contains the truth, 0 or 1, at the end of its log."""
    at_end = part(table, INTERVALS)["value"].notnull()
    return covered(table).astype(float).where(at_end).rename(case="cell")


EVALUATION = Study(
    name="evaluation",
    title="Other policies from a log",
    claim="From a log of Thompson sampling with exact propensities MinVar's intervals cover the "
    "value of other policies as often as they say, where plain DR's do not; confidence sequences "
    "may be watched; and wrong propensities show.",
    setting="Intervals: logs of 500 rounds, in one world of 5,000, with 2 arms, a constant and two "
    "normal features, and normal rewards; coefficients have a standard deviation of 0.6 (signal) "
    "or are 0, and the logged policy has no floor, or one of 2% or 10%. Targets are the first arm, "
    "the best one, uniform choices, and Thompson sampling with half and twice v. Sequences: 2,000 "
    "rounds, rewards of 0 or 1, 40 looks from round 50 on. Controls: 2,000 rounds with 3 arms, and "
    "propensities counted from 100 draws, 1, or 1 / K.",
    rule=f"Shares of logs have exact 99% intervals. A coverage of {LOWEST:.0%} to {HIGHEST:.0%} "
    "is decided for each target over all worlds, of which one alone has too few logs; there at "
    f"least {EVERYWHERE:.0%} must be covered. Plain DR must cover less than that for a fixed arm "
    "without a floor. MinVar's RMSE must be at most a quarter of plain DR's there, and at most "
    f"{RMSE_ELSEWHERE:g} times elsewhere, which half as many rounds again make up for; where a few "
    f"logs decide a ratio its interval is wider. Sequences may ever miss in {EVER:.0%} of logs; "
    "normal intervals must miss four times as often. Wrong propensities must make IPS cover less "
    f"than {CONTROL:.0%}, ten points below the nominal level, and exact ones more. The audit must "
    f"object to {OBJECTED:.0%} of logs with wrong ones, and to at most {1 - OBJECTED:.0%} of the "
    "others. A value from the log of the other policy must be within half of the policy's own "
    "mean: 10,000 rows with 50 clicks show no smaller difference.",
    choices=choices.OURS,
    cells=cells,
    curves=curves,
    figure=figure,
    verdicts=verdicts,
    data=OPEN_BANDIT,
    notes="No estimate is refused here, however small its effective size, but for the logs of the "
    "shop. The value of a target that does not learn is that at a new context, of one that learns "
    "that over the rounds of its log. The whole grid, also with 5 arms and with 1,000 logs in each "
    "cell, is in benchmarks/evaluation.py.",
    worst=False,
)
