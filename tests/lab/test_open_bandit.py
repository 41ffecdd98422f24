"""Open Bandit: the logs of two policies, and each one's value from the log of the other."""

import io
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from benchmarks.formats import open_bandit as benchmark

import keyhole as kh
from keyhole.evaluation import Logged
from keyhole.lab.datasets import TABLES, daily_shares, open_bandit
from keyhole.lab.studies import simulated


def frame(*rows: tuple[str, int, int]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["timestamp", "item_id", "position"])


def test_shares_of_a_day_by_hand() -> None:
    log = frame(
        *[("2019-11-24 01:00:00+00:00", item, 1) for item in (0, 0, 2, 1)],
        ("2019-11-24 02:00:00+00:00", 2, 2),
        ("2019-11-25 02:00:00+00:00", 1, 1),
    )
    rows = frame(
        ("2019-11-24 05:00:00+00:00", 1, 1),
        ("2019-11-25 05:00:00+00:00", 0, 1),
        ("2019-11-24 05:00:00+00:00", 0, 2),
    )
    assert daily_shares(log, rows).tolist() == [[0.5, 0.25, 0.25], [0, 1, 0], [0, 0, 1]]
    with pytest.raises(kh.InvalidValue, match="rows of 2019-11-26 at position 1, as row 0"):
        daily_shares(log, frame(("2019-11-26 05:00:00+00:00", 1, 1)))


def test_each_policy_from_the_log_of_the_other() -> None:
    """In the stand-in, 95% intervals of both directions contain the mean of the other log."""
    frames = simulated.open_bandit()
    logs = {name: Logged.of(one, format="open-bandit") for name, one in frames.items()}
    assert all(log.n_arms == simulated.ITEMS for log in logs.values())
    assert all(kh.evaluation.audit_log(log).is_sound for log in logs.values())
    means = {name: one["click"].mean() for name, one in frames.items()}
    assert means["bts"] > 1.2 * means["random"]
    shares = daily_shares(frames["bts"], frames["random"])
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    for name, log, target in (
        ("random", logs["bts"], "uniform"),
        ("bts", logs["random"], shares),
    ):
        [row] = kh.evaluate(log, {"other": target}).rows
        spread = np.sqrt(row.error**2 + means[name] / len(frames[name]))
        assert abs(row.value - means[name]) < 3.0 * spread
    # A control: the value of the other policy is not that of the logged one.
    [row] = kh.evaluate(logs["bts"], "uniform").rows
    assert row.gain_high < 0.0


def test_the_tables_are_in_the_catalogue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [name for name in TABLES if name.startswith("open-bandit")]
    assert len(names) == 6
    assert {TABLES[name].requirement for name in names} == {"obp==0.4.1"}
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    with pytest.raises(kh.DataUnavailable, match="open-bandit-men-random could not be fetched"):
        open_bandit("men")
    with pytest.raises(kh.InvalidValue, match="campaign must be one of all, men, women, got 'man'"):
        open_bandit("man")


@pytest.mark.data
def test_the_docs_have_the_values_of_real_logs() -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "evaluation.md").read_text()
    printed = io.StringIO()
    with redirect_stdout(printed):
        benchmark()
    assert len(printed.getvalue().splitlines()) == 8
    assert printed.getvalue() in page
