"""The verdicts of the study `evaluation`, and the limits that decide them."""

from __future__ import annotations

import numpy as np
import xarray as xr
from scipy.stats import norm
from scipy.stats import t as student

from keyhole.core import Floats
from keyhole.lab.evidence import (
    LEVEL,
    Estimate,
    Share,
    Verdict,
    all_of,
    at_least,
    at_most,
    counted,
    share,
    within,
)
from keyhole.lab.studies.campaigns import STAND_IN
from keyhole.lab.studies.evaluation_cells import METHODS
from keyhole.lab.studies.evaluation_controls import PROPENSITIES
from keyhole.lab.studies.evaluation_parts import (
    CONTROLS,
    HARD,
    SHOP,
    covered,
    intervals,
    missed,
    part,
)

# Limits of the claims; `EVALUATION.rule` has the reasons.
LOWEST, HIGHEST = 0.93, 0.97
EVERYWHERE = 0.90
RMSE_HARD, RMSE_ELSEWHERE = 0.25, 1.25
EVER, WATCHED_LIMIT = 0.05, 0.20
CONTROL, OBJECTED = 0.85, 0.95
# Of a policy's own click rate.
OWN_SHARE = 0.5


def verdicts(table: xr.Dataset) -> list[Verdict]:
    """Decide the claims of all parts."""
    return [
        *_intervals(table),
        *_errors(table),
        *_watched(table),
        *_controls(table),
        _shop(table),
    ]


def _intervals(table: xr.Dataset) -> list[Verdict]:
    """Decide what nominal 95% intervals cover."""
    inside = covered(table)
    minvar, plain = (inside.sel(estimator=name) for name in inside.estimator.values)
    pooled = {str(name): share(minvar.sel(policy=name).values) for name in minvar.policy.values}
    each = {
        f"{cell}, {policy}": share(minvar.sel(case=cell, policy=policy).values)
        for cell in minvar.case.values
        for policy in minvar.policy.values
    }
    hard = {case: share(plain.sel(case=case, policy="fixed arm").values) for case in HARD}
    return [
        counted(
            "over all worlds MinVar's 95% intervals cover each target in 93 to 97% of logs",
            {
                name: all_of([at_least(one.estimate, LOWEST), at_most(one.estimate, HIGHEST)])
                for name, one in pooled.items()
            },
            f"Covered: {_shares(pooled)}.",
        ),
        counted(
            f"MinVar's 95% intervals cover at least {EVERYWHERE:.0%} in every world",
            {name: at_least(one.estimate, EVERYWHERE) for name, one in each.items()},
            f"Covered: {_ends(each)}.",
        ),
        counted(
            f"without a floor plain DR covers a fixed arm in less than {EVERYWHERE:.0%} of logs",
            {case: at_most(one.estimate, EVERYWHERE) for case, one in hard.items()},
            f"Covered: {_shares(hard)}.",
        ),
    ]


def _errors(table: xr.Dataset) -> list[Verdict]:
    """Decide how the errors of MinVar compare with those of plain DR."""
    ratios = rmse_ratios(table)
    hard = {case: ratios.pop(f"{case}, fixed arm") for case in HARD}
    return [
        counted(
            "without a floor MinVar's RMSE for a fixed arm is at most a quarter of plain DR's",
            {case: at_most(one, float(np.log(RMSE_HARD))) for case, one in hard.items()},
            f"Ratio: {'; '.join(f'{case}: {_ratio(one)}' for case, one in hard.items())}. A few "
            f"logs decide it; of median absolute errors it is {_medians(table)}.",
        ),
        counted(
            f"elsewhere MinVar's RMSE is at most {RMSE_ELSEWHERE:g} times plain DR's",
            {name: at_most(one, float(np.log(RMSE_ELSEWHERE))) for name, one in ratios.items()},
            f"Ratio: {_ends_of_ratios(ratios)}.",
        ),
    ]


def rmse_ratios(table: xr.Dataset) -> dict[str, Estimate]:
    """Return the logarithm of MinVar's RMSE over plain DR's, for each world and target."""
    one = intervals(table)
    squares = (one["value"] - one["truth"]) ** 2
    return {
        f"{case}, {policy}": log_ratio(
            *squares.sel(case=case, policy=policy).transpose("estimator", "replication").values
        )
        for case in squares.case.values
        for policy in squares.policy.values
    }


def _medians(table: xr.Dataset) -> str:
    """Return MinVar's median absolute error over plain DR's, in the worlds without a floor."""
    one = intervals(table).sel(policy="fixed arm")
    errors = abs(one["value"] - one["truth"]).median("replication")
    mine, theirs = errors.transpose("estimator", ...)
    return " and ".join(f"{float((mine / theirs).sel(case=case)):.2f}" for case in HARD)


def log_ratio(mine: Floats, theirs: Floats) -> Estimate:
    """Return the logarithm of a ratio of RMSEs, from the squared errors of the same logs.

    A few logs may decide it, and its error is then itself uncertain: the interval has Student's
    quantile with (sum s)^2 / sum s^2 degrees of freedom, s the squared contributions of the logs.

    Parameters
    ----------
    mine, theirs : ndarray of shape (n,)
        The squared errors.
    """
    contribution = 0.5 * (mine / mine.mean() - theirs / theirs.mean()) / len(mine)
    value = float(0.5 * np.log(mine.mean() / theirs.mean()))
    if len(mine) < 2:
        return Estimate(value, np.inf)
    squares = contribution**2
    if not (squares @ squares) > 0.0:
        # MinVar is plain DR for a target that learns: equal errors have the ratio 1 for certain.
        return Estimate(value, 0.0)
    freedom = max(float(squares.sum() ** 2 / (squares @ squares)), 1.0)
    reach = float(student.ppf(0.5 + LEVEL / 2, freedom)) * float(np.sqrt(squares.sum()))
    return Estimate(value, reach)


def _watched(table: xr.Dataset) -> list[Verdict]:
    """Decide how often bounds that are looked at again and again ever miss."""
    ever = missed(table).any("look")
    found = {
        method: {
            str(name): share(ever.sel(bounds=method, watched=name).values)
            for name in ever.watched.values
        }
        for method in METHODS
    }
    sequence, normal = (found[method] for method in METHODS)
    return [
        counted(
            f"confidence sequences ever miss in at most {EVER:.0%} of logs",
            {name: at_most(one.estimate, EVER) for name, one in sequence.items()},
            f"Ever missed: {_shares(sequence)}.",
        ),
        counted(
            f"normal 95% intervals that are watched ever miss in at least {WATCHED_LIMIT:.0%}",
            {name: at_least(one.estimate, WATCHED_LIMIT) for name, one in normal.items()},
            f"Ever missed: {_shares(normal)}.",
        ),
    ]


def _controls(table: xr.Dataset) -> list[Verdict]:
    """Decide whether wrong propensities show."""
    one = part(table, CONTROLS).isel(case=0)
    inside, objected, bare = (
        {name: share(one[what].sel(propensity=name).values == 1.0) for name in PROPENSITIES}
        for what in ("covered", "objected", "objected_bare")
    )
    wrong = PROPENSITIES[1:]
    right = PROPENSITIES[0]
    return [
        counted(
            f"control: with wrong propensities 95% intervals cover less than {CONTROL:.0%}",
            {
                right: at_least(inside[right].estimate, CONTROL),
                **{name: at_most(inside[name].estimate, CONTROL) for name in wrong},
            },
            f"IPS covers uniform choices: {_shares(inside)}.",
        ),
        counted(
            "the audit objects to wrong propensities, and to no others",
            {
                right: at_most(objected[right].estimate, 1.0 - OBJECTED),
                **{name: at_least(objected[name].estimate, OBJECTED) for name in wrong},
            },
            f"Objected: {_shares(objected)}. Without means and widths in the log: {_shares(bare)}.",
        ),
    ]


def _shop(table: xr.Dataset) -> Verdict:
    """Decide whether values from the log of the other policy are those of a policy's own log."""
    one = part(table, SHOP)
    outcomes, said, inside, known = {}, [], 0, 0
    for case in one.case.values:
        for policy in one.shop_policy.values:
            row = one.sel(case=case, shop_policy=policy)
            own, name = float(row.own), f"{case}, {policy}"
            if np.isnan(row.other):
                said.append(f"{name}: refused, effective size {float(row.other_size):.0f}")
                continue
            reach = np.hypot(norm.ppf(0.5 + LEVEL / 2) * row.own_error, row.other_reach)
            apart = Estimate(float(row.other) - own, float(reach))
            outcomes[name] = within(apart, OWN_SHARE * own)
            inside += bool(row.other_low <= own <= row.other_high)
            known += 1
            said.append(f"{name}: {float(row.other):.4f} and {own:.4f}")
    stand_in = "Simulated shop (stand-in): " if STAND_IN.name in one.case.values else ""
    return counted(
        f"{stand_in}the value of a policy from the log of another is its own mean to within half",
        outcomes,
        f"From the other log, and own mean: {'; '.join(said)}. {inside} of {known} 95% intervals "
        "from the other log contain the policy's own mean.",
    )


def _said(one: Share) -> str:
    return f"{one.value:.1%} ({one.estimate.low:.1%} to {one.estimate.high:.1%})"


def _shares(found: dict[str, Share]) -> str:
    return "; ".join(f"{name}: {_said(one)}" for name, one in found.items())


def _ends(found: dict[str, Share]) -> str:
    """Return the smallest and the largest of several shares, as text."""
    low, high = (pick(found, key=lambda name: found[name].value) for pick in (min, max))
    return f"from {_said(found[low])} ({low}) to {_said(found[high])} ({high})"


def _ratio(one: Estimate) -> str:
    value, low, high = np.exp([one.value, one.low, one.high])
    return f"{value:.2f} ({low:.2f} to {high:.2f})"


def _ends_of_ratios(found: dict[str, Estimate]) -> str:
    low, high = (pick(found, key=lambda name: found[name].value) for pick in (min, max))
    return f"from {_ratio(found[low])} ({low}) to {_ratio(found[high])} ({high})"
