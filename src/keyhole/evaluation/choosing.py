"""Choosing v of Thompson sampling from a log."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from keyhole import checks
from keyhole.core import ThompsonSampling
from keyhole.errors import InvalidValue
from keyhole.evaluation.evaluating import evaluate
from keyhole.evaluation.logged import Logged
from keyhole.evaluation.result import Evaluation
from keyhole.evaluation.targets import WithFloor

# Multiples of the logged dispersion that are compared by default.
MULTIPLES = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)


@dataclass(frozen=True)
class ChosenV:
    """Result of `choose_v`.

    Parameters
    ----------
    v : float or None
        The v with the largest gain among those that are better than the logged policy for sure;
        None if there is none.
    evaluation : Evaluation
        A row for each v, with intervals that hold for all of them at once.
    """

    v: float | None
    evaluation: Evaluation

    def __str__(self) -> str:
        said = "keep the logged policy: no v is better for sure"
        return f"{self.evaluation}\n{said if self.v is None else f'v = {self.v:g}'}"


def choose_v(
    log: object,
    values: ArrayLike | None = None,
    *,
    level: float = 0.95,
    estimator: str = "minvar",
    check: bool = True,
) -> ChosenV:
    """Compare values of v on a log, and return the best if it is better for sure.

    The gain is that of choosing with this v from the logged posteriors, with the logged epsilon. A
    run with a smaller v would have explored less and known less, which no log of another run can
    show: a small v looks better here than it is.

    Parameters
    ----------
    log : Logged, mapping or object with `columns()`
        A log with mean and width of every arm.
    values : array_like, optional
        Values of v. By default multiples from 0 to 2 of the median logged dispersion.
    level : float, default 0.95
        Confidence level for all intervals together, by Bonferroni's inequality.
    estimator : str, default "minvar"
        As in `evaluate`.
    check : bool, default True
        As in `evaluate`.

    Returns
    -------
    ChosenV
        The choice, and the evaluation it rests on.

    Raises
    ------
    InvalidValue
        If the log has no scores, or `values` are not valid.
    """
    given = Logged.of(log)
    level = checks.real("level", level, above=0.0, max_value=1.0 - 1e-12)
    if values is None:
        if given.dispersion is None:
            raise InvalidValue("log must have the column 'dispersion', or give values")
        values = np.multiply(MULTIPLES, float(np.median(given.dispersion)))
    grid = np.unique(checks.floats("values", values))
    if grid.size == 0 or grid[0] < 0.0:
        raise InvalidValue(f"values must be one or more numbers of at least 0, got {values}")
    targets = {
        f"v = {v:.4g}": WithFloor(
            ThompsonSampling(
                v=float(v), sharing=given.sharing, prior_precision=given.prior_precision
            )
        )
        for v in grid
    }
    each = 1.0 - (1.0 - level) / len(targets)
    found = evaluate(given, targets, estimator=estimator, level=each, check=check)
    surely = [
        (row.gain, float(v)) for row, v in zip(found.rows, grid, strict=True) if row.gain_low > 0.0
    ]
    return ChosenV(max(surely)[1] if surely else None, found)
