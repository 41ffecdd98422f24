"""The value of two policies of a shop, each from the log of the other, beside its own mean."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from keyhole.evaluation import Logged, PolicyValue, evaluate
from keyhole.lab import datasets
from keyhole.lab.evidence import LEVEL
from keyhole.lab.studies import simulated
from keyhole.lab.studies.study import Cell, Settings, Table
from keyhole.lab.worlds import digest

CAMPAIGNS = ("all", "men", "women")
SHOP_POLICIES = {"random": "uniform choices", "bts": "Thompson sampling"}
STAND_IN = Table(
    name="simulated shop",
    title="Simulated shop",
    dim=1,
    sizes="two simulated logs of 10,000 items",
)
OPEN_BANDIT = tuple(
    Table(
        name=f"open-bandit-{campaign}-{policy}",
        title="Open Bandit",
        dim=1,
        sizes="three campaigns of a shop with two logs of 10,000 items each",
        stand_in=STAND_IN,
    )
    for campaign in CAMPAIGNS
    for policy in SHOP_POLICIES
)


@dataclass(frozen=True, eq=False)
class Campaign:
    """The logs of a campaign.

    Parameters
    ----------
    name : str
        The name of the campaign, or of the stand-in.
    frames : dict of str to DataFrame
        The log of each policy, as published.
    """

    name: str
    frames: dict[str, pd.DataFrame]

    def describe(self) -> dict[str, Any]:
        """Return the sizes of the logs, and a digest of their choices and clicks."""
        columns = ("item_id", "position", "click", "propensity_score")
        arrays = [frame[name].to_numpy() for frame in self.frames.values() for name in columns]
        rows = {policy: len(frame) for policy, frame in self.frames.items()}
        return {
            "kind": type(self).__name__,
            "data": self.name,
            "rows": rows,
            "sha256": digest(*arrays),
        }

    def log(self, policy: str) -> Logged:
        """Return the log of a policy; the order of rows does not matter here."""
        frame = self.frames[policy]
        n_items = sum(name.startswith("user-item_affinity_") for name in frame.columns)
        return Logged(
            arms=range(n_items),
            chosen=frame["item_id"].to_numpy(),
            probability=frame["propensity_score"].to_numpy(),
            reward=frame["click"].to_numpy(dtype=np.float64),
        )

    def from_other_log(self, policy: str, level: float = 0.95) -> PolicyValue:
        """Return the value of a policy from the log of the other, by SNIPS.

        Thompson sampling has the probability of the chosen item only. Its target is therefore its
        shares of each day and position, see `daily_shares`.

        Parameters
        ----------
        policy : str
            The policy.
        level : float, default 0.95
            The level of the interval.
        """
        if policy == "random":
            target: Any = "uniform"
            other = "bts"
        else:
            target = datasets.daily_shares(self.frames["bts"], self.frames["random"])
            other = "random"
        return evaluate(self.log(other), {policy: target}, estimator="snips", level=level).rows[0]


@lru_cache(maxsize=4)
def campaign(name: str, data_dir: Path | None) -> Campaign:
    """Return the logs of a campaign, or the stand-in.

    Parameters
    ----------
    name : str
        The name of the campaign or of the stand-in.
    data_dir : Path or None
        A folder with the files.
    """
    if name == STAND_IN.name:
        return Campaign(name, simulated.open_bandit())
    return Campaign(name, datasets.open_bandit(name, data_dir=data_dir))


def campaigns(settings: Settings) -> list[Campaign]:
    """Return all campaigns, or the stand-in alone if one of their tables is absent."""
    absent = any(table.used(settings) is not table for table in OPEN_BANDIT)
    names = (STAND_IN.name,) if absent else CAMPAIGNS
    return [campaign(name, settings.data_dir) for name in names]


@dataclass(frozen=True, kw_only=True)
class CampaignCell(Cell):
    """A cell that evaluates both policies of a campaign; it has no replications.

    Parameters
    ----------
    world : Campaign
        The logs.
    policies : dict of str to str
        The policies by name, in words.
    """

    world: Campaign  # type: ignore[assignment] # its logs were collected, and nothing is drawn
    policies: dict[str, str]  # type: ignore[assignment] # they were played by the shop

    def identity(self) -> dict[str, Any]:
        """Return the properties that identify the result; see `Cell.identity`."""
        return {"kind": type(self).__name__, "logs": self.world.describe()}

    def results(
        self,
        kept: Path,
        *,
        executor: Executor | None,
        workers: int | None,
        progress: Callable[[int], None],
    ) -> xr.Dataset:
        """Evaluate both policies; see `Cell.results`.

        Parameters
        ----------
        kept : Path
            Not used.
        executor : Executor, optional
            Not used.
        workers : int, optional
            Not used.
        progress : callable
            Receives the number of rows.

        Returns
        -------
        Dataset
            Over `shop_policy`: `own` and `own_error`, the mean of its own log; `other`, its value
            from the log of the other, with `other_low` and `other_high` at 95% and half the width
            `other_reach` at 99%, NaN if refused; `other_size`, its effective sample size.
        """
        del kept, executor, workers
        own = [self.world.log(policy).reward for policy in self.policies]
        rows = [self.world.from_other_log(policy) for policy in self.policies]
        wide = [self.world.from_other_log(policy, LEVEL) for policy in self.policies]
        progress(self.horizon)
        variables = {
            "own": [clicks.mean() for clicks in own],
            "own_error": [clicks.std() / np.sqrt(len(clicks)) for clicks in own],
            "other": [row.value for row in rows],
            "other_low": [row.low for row in rows],
            "other_high": [row.high for row in rows],
            "other_reach": [(row.high - row.low) / 2.0 for row in wide],
            "other_size": [row.effective_size for row in rows],
        }
        return xr.Dataset(
            {name: ("shop_policy", values) for name, values in variables.items()},
            {"shop_policy": list(self.policies)},
        )
