"""The Open Bandit data: logs of two policies that ran side by side in a shop.

A campaign has a log of uniform choices and one of Bernoulli Thompson sampling ("bts"), so that the
value of each from the log of the other can be held against its own mean. A row is an item at one of
three positions, with the probability of that item there.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from keyhole import checks
from keyhole.errors import InvalidValue
from keyhole.lab.datasets.open_bandit_files import CAMPAIGNS, POLICIES, table_name
from keyhole.lab.datasets.packaged import table
from keyhole.lab.datasets.reading import Folder

AFFINITY = "user-item_affinity_"


def open_bandit(
    campaign: str, *, data_dir: Folder = None, patience: float | None = None
) -> dict[str, pd.DataFrame]:
    """Load the logs of a campaign, as published, in the order of time.

    `keyhole.evaluation.Logged.of(frame, format="open-bandit")` makes a log of each.

    Parameters
    ----------
    campaign : str
        "all", "men" or "women".
    data_dir : str or path, optional
        A folder with the files; by default the value of the environment variable KEYHOLE_DATA.
    patience : float, optional
        The seconds to wait for pip, by default 300.

    Returns
    -------
    dict of str to pandas.DataFrame
        The logs of "random" and "bts".

    Raises
    ------
    DataUnavailable
        If a table is not on this machine and cannot be fetched.
    """
    if not isinstance(campaign, str) or campaign not in CAMPAIGNS:
        raise checks.unknown("campaign", campaign, CAMPAIGNS)
    return {
        policy: table(table_name(campaign, policy), data_dir=data_dir, patience=patience)
        for policy in POLICIES
    }


def daily_shares(log: pd.DataFrame, rows: pd.DataFrame) -> NDArray[np.float64]:
    """Return how often a log showed each item on the day and at the position of other rows.

    A log of Thompson sampling has the probability of the item that it chose, and not those of the
    others, which change every few minutes. Its shares of a day estimate their mean over the day
    without bias. Where the clicks of an item at a position do not change within a day, the value of
    choosing by these shares is that of the policy itself.

    Parameters
    ----------
    log : pandas.DataFrame
        The log, a table of Open Bandit.
    rows : pandas.DataFrame
        Rows of another one.

    Returns
    -------
    ndarray of shape (n, K)
        For each row the shares of all items, a target for `keyhole.evaluate`.

    Raises
    ------
    InvalidValue
        If the log has no row of that day and position.
    """
    k = sum(name.startswith(AFFINITY) for name in log.columns)
    k = k or 1 + int(max(log["item_id"].max(), rows["item_id"].max()))
    shares = {
        key: np.bincount(group["item_id"], minlength=k) / len(group)
        for key, group in log.groupby([_day(log), log["position"]])
    }
    keys = list(zip(_day(rows), rows["position"], strict=True))
    for i, key in enumerate(keys):
        if key not in shares:
            raise InvalidValue(
                f"log must have rows of {key[0]} at position {key[1]}, as row {i} of rows is, got "
                "none"
            )
    return np.array([shares[key] for key in keys])


def _day(frame: pd.DataFrame) -> pd.Series:
    return frame["timestamp"].astype(str).str[:10].rename("day")
