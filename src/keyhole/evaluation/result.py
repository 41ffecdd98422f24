"""`Evaluation`: estimates of several policies, labelled."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from keyhole.evaluation import extras
from keyhole.evaluation.tables import table


@dataclass(frozen=True)
class PolicyValue:
    """The estimated value of one policy by one estimator.

    Numbers are NaN where the estimate was refused; `note` then has the reason.

    Parameters
    ----------
    policy, estimator : str
        Names of the policy and of the estimator.
    value, error : float
        Estimate of the mean reward, and its standard error.
    low, high : float
        Confidence interval of the value.
    gain, gain_low, gain_high : float
        Difference to the mean reward of the logged policy, with its confidence interval.
    mean_weight : float
        Mean importance weight, 1 in expectation.
    effective_size : float
        Effective sample size of the weights that the estimator uses.
    max_weight : float
        Largest importance weight.
    unsupported : float
        Share of the policy's choices with a logged probability below 1 / (10 sqrt(n)); NaN if the
        log does not have the probability of every arm.
    note : str
        Why the estimate was refused or has to be doubted; empty otherwise.
    """

    policy: str
    estimator: str
    value: float
    error: float
    low: float
    high: float
    gain: float
    gain_low: float
    gain_high: float
    mean_weight: float
    effective_size: float
    max_weight: float
    unsupported: float
    note: str


@dataclass(frozen=True)
class Evaluation:
    """Result of `evaluate`: a row for each policy and estimator.

    Each value is that of choosing so in the logged rounds, given the data that were collected. It
    is not the value of a run of the policy, which would have collected other data.

    Parameters
    ----------
    rows : tuple of PolicyValue
        The estimates.
    level : float
        Confidence level of the intervals.
    n_used, n_rounds : int
        Number of rounds before the first missing reward, which were used, and of all rounds.
    logged : float
        Mean reward of the logged policy in the rounds used.
    left_out : tuple of (str, int), default ()
        How many further decisions of the log are not among the rounds, by reason, as in `LogAudit`.
    missing : str, default ""
        How many rounds have no reward, and which is the first; empty if all have one.
    """

    rows: tuple[PolicyValue, ...]
    level: float
    n_used: int
    n_rounds: int
    logged: float
    left_out: tuple[tuple[str, int], ...] = ()
    missing: str = ""

    def __getitem__(self, policy: str) -> PolicyValue:
        """Return the first row of a policy."""
        for row in self.rows:
            if row.policy == policy:
                return row
        raise KeyError(policy)

    def to_frame(self) -> Any:
        """Return the rows as a pandas DataFrame."""
        return extras.load("pandas", "Evaluation.to_frame").DataFrame(map(asdict, self.rows))

    def plot(self) -> Any:
        """Draw a forest plot of the intervals; needs matplotlib."""
        return extras.load("keyhole.evaluation.plots", "Evaluation.plot").forest(self)

    def __str__(self) -> str:
        percent = f"{100 * self.level:g}%"
        header = ("policy", "estimator", "value", percent, "gain", percent, "size")
        rows = [
            (
                row.policy,
                row.estimator,
                f"{row.value:.4f}",
                f"[{row.low:.4f}, {row.high:.4f}]",
                f"{row.gain:+.4f}",
                f"[{row.gain_low:+.4f}, {row.gain_high:+.4f}]",
                f"{row.effective_size:,.0f}",
            )
            for row in self.rows
        ]
        notes = [f"{row.policy}: {row.note}" for row in self.rows if row.note]
        used = f"{self.n_used:,} of {self.n_rounds:,} rounds, mean reward {self.logged:.4f}"
        if self.left_out:
            counts = (f"{n:,} {reason}" for reason, n in self.left_out)
            used += f"; left out: {', '.join(counts)}"
        lost = [self.missing] if self.missing else []
        return "\n".join([used, *lost, table(header, rows), *notes])
