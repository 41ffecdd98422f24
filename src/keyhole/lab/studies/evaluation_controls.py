"""The controls of the study `evaluation`: logs whose propensities are wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from keyhole.core import Floats
from keyhole.evaluation import audit_log, evaluate
from keyhole.lab.studies import thompson_logs as logs
from keyhole.lab.studies.evaluation_cells import LogsCell, Measured

PROPENSITIES = ("exact", "100 draws", "1", "1/K")
# A doubly robust estimate with a good model would hide wrong weights, and so would IPS of rewards
# about 0: they are raised by this much.
RAISED = 2.0


@dataclass(frozen=True, kw_only=True)
class ControlsCell(LogsCell):
    """Intervals of IPS and the audit of each log, with its propensities and with wrong ones."""

    @property
    def dims(self) -> dict[str, tuple[str, ...]]:
        """The dimensions of each variable of a log."""
        return dict.fromkeys(("covered", "objected", "objected_bare"), ("propensity",))

    @property
    def coords(self) -> dict[str, Any]:
        """The coordinates of these dimensions."""
        return {"propensity": list(PROPENSITIES)}

    def measure(self, rng: np.random.Generator) -> Measured:
        """Draw a log, and return the variables measured on it."""
        made = self.world.draw(rng, self.horizon)
        found = np.array([control(made, name, rng) for name in PROPENSITIES], dtype=float)
        return dict(zip(self.dims, found.T, strict=True))


def control(
    made: logs.SimulatedLog, propensity: str, rng: np.random.Generator
) -> tuple[bool, bool, bool]:
    """Return whether IPS covers uniform choices, and whether the audit objects to a log.

    The second audit is of the same log without means and widths.

    Parameters
    ----------
    made : SimulatedLog
        The log.
    propensity : str
        Which propensities the log is given, one of `PROPENSITIES`.
    rng : Generator
        Source of counted propensities.
    """
    log = made.log
    bare = {
        "arms": log.arms,
        "chosen": log.chosen,
        "probability": logged_as(propensity, log.probability, log.n_arms, rng),
        "reward": log.reward + RAISED,
    }
    scores = {"mean": log.mean, "width": log.width, "dispersion": 1.0, "epsilon": log.epsilon}
    scored = {**bare, **scores}
    [row] = evaluate(scored, "uniform", estimator="ips", min_size=0.0, check=False).rows
    truth = RAISED + logs.truth(made, "uniform")
    objected, bare_objected = (not audit_log(one).is_sound for one in (scored, bare))
    return row.low <= truth <= row.high, objected, bare_objected


def logged_as(propensity: str, exact: Floats, n_arms: int, rng: np.random.Generator) -> Floats:
    """Return propensities as other libraries log them.

    Parameters
    ----------
    propensity : str
        One of `PROPENSITIES`.
    exact : ndarray of shape (n,)
        The exact ones.
    n_arms : int
        Number of arms.
    rng : Generator
        Source of counted propensities.
    """
    if propensity == "exact":
        return exact
    if propensity == "100 draws":
        counted: Floats = np.maximum(rng.binomial(100, exact), 1) / 100.0
        return counted
    return np.full(len(exact), 1.0 if propensity == "1" else 1.0 / n_arms)
