"""Explanations of decisions: contributions of features to the scores of two arms."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from keyhole.core import Arm, Fill, Floats, Layout, LearnerState, Rule, choice_probabilities
from keyhole.errors import InvalidValue
from keyhole.online.decision import Decision

# What replaces a missing field, by the treatment of missing entries.
_REPLACED: dict[Fill | None, str] = {"predict": "predicted: ", "mean": "its mean is taken: "}


@dataclass(frozen=True)
class Explanation:
    """The parts of a decision's score, by the present posterior.

    Attributes
    ----------
    arm : str or int
        The chosen arm.
    runner_up : str, int or None
        The other arm that is most likely to be chosen; None if there is no other.
    terms : dict of str to tuple of float
        For each field, and for the constant: its contribution to the expected reward of the chosen
        arm, and to that of the runner-up.
    expected : tuple of float
        The sums of the terms: both arms' expected rewards.
    score : float or None
        The score with which the arm was chosen: expected + optimism - learned_since + drawn.
    probabilities : dict of arm to float
        The probability of each arm to be chosen at this observation.
    optimism : float
        The amount that the policy adds to the expected reward of the chosen arm for its
        uncertainty.
    learned_since : float or None
        The change of the chosen arm's expected reward, and of its optimism, since the decision was
        made. It is None if the decision does not hold the parts of its score: one that came through
        JSON, from another bandit, or from one with probabilities=False.
    drawn : float or None
        The random part of the score; None if `learned_since` is.
    predicted : dict of str to dict of str to float
        For each field that was missing, the replacement of each of its columns: one for a number, a
        share for each level of a category.
    missing : {"predict", "mean", "zero", "drop"} or None
        How missing entries are replaced.
    """

    arm: Arm
    runner_up: Arm | None
    terms: dict[str, tuple[float, float]]
    expected: tuple[float, float]
    score: float | None
    probabilities: dict[Arm, float]
    optimism: float = 0.0
    learned_since: float | None = None
    drawn: float | None = None
    predicted: dict[str, dict[str, float]] = field(default_factory=dict)
    missing: Fill | None = None

    def __str__(self) -> str:
        arms = [self.arm] if self.runner_up is None else [self.arm, self.runner_up]
        rows = [["", *map(str, arms)]]
        for name, pair in {**self.terms, "expected reward": self.expected}.items():
            rows.append([name, *(_signed(value) for value in pair[: len(arms)])])
        for name, value in self._rest().items():
            rows.append([name, _signed(value), *([""] * (len(arms) - 1))])
        rows.append(["probability", *(f"{self.probabilities[arm]:.1%}" for arm in arms)])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        first, *rest = widths
        lines = [
            (row[0].ljust(first) + "".join(map(_right, row[1:], rest))).rstrip() for row in rows
        ]
        for name, columns in self.predicted.items():
            replaced = "counts as 0" if self.missing == "zero" else _prediction(name, columns)
            lines.append(f"{name} was missing, and {_REPLACED.get(self.missing, '')}{replaced}")
        return "\n".join(lines)

    def _rest(self) -> dict[str, float]:
        """Return the terms between the expected reward and the score, by name."""
        found: dict[str, float] = {}
        if self.learned_since:
            found["learned since"] = self.learned_since
        if self.optimism:
            found["optimism"] = self.optimism
        if self.drawn is not None:
            if self.drawn or not self.optimism:
                found["drawn"] = self.drawn
        elif self.score is not None:
            found["drawn, and learned since"] = self.score - self.expected[0] - self.optimism
        return found


def explained(
    learned: LearnerState,
    rule: Rule,
    decision: Decision,
    names: tuple[Arm, ...],
    rows: Floats,
    raw: Floats,
    is_own: bool,
) -> Explanation:
    """Return a decision in parts.

    Parameters
    ----------
    learned : LearnerState
        The state.
    rule : Rule
        The rule that scores arms.
    decision : Decision
        The decision.
    names : tuple of arms
        The arms that were available.
    rows : ndarray of shape (1, dim) or (n_arms, dim)
        Their observations.
    raw : ndarray of shape (dim,)
        The decision's own observation, NaN where an entry was missing.
    is_own : bool
        Whether this very bandit has made the decision, which counts rewards from the same zero.
    """
    arms, observer = learned.arms.among(names), learned.observer
    filled, design = learned.prepared(rows)
    seen = learned.placed(design, arms)
    rule = learned.rule_now(rule)
    location, scale = learned.posterior.scores(
        rule, arms.parameter_of, seen[None] if len(seen) > 1 else seen
    )
    rate = learned.posterior.uniform_rate(rule)
    chances = choice_probabilities(location, scale, epsilon=rate)[0]
    chosen = arms.names.index(decision.arm)
    others = [k for k in np.argsort(-chances, kind="stable").tolist() if k != chosen]
    added = np.broadcast_to(design, (len(names), design.shape[1]))
    if arms.is_open:
        means = learned.posterior.mean[arms.parameter_of]
    else:
        means = learned.means()[learned.arms.blocks(arms.names)]
    added = added * means
    terms: dict[str, tuple[float, float]] = {}
    pair = [chosen, others[0] if others else chosen]
    for j, name in enumerate(observer.layout.design_fields(intercept=observer.intercept)):
        before = terms.get(name, (0.0, 0.0))
        both = added[pair, j] + (observer.offset if observer.intercept and j == 0 else 0.0)
        terms[name] = (before[0] + float(both[0]), before[1] + float(both[1]))
    expected = [sum(values) for values in zip(*terms.values(), strict=True)]
    now = float(location[0, chosen]) + observer.offset
    # Terms may be large and cancel: what is left of them is exact to their size.
    size = abs(observer.offset) + sum(abs(pair[0]) for pair in terms.values())
    optimism = now - expected[0] if rule.optimism or rule.radius else 0.0
    then = _location_then(decision, observer.offset) if is_own else None
    return Explanation(
        decision.arm,
        arms.names[others[0]] if others else None,
        terms,
        (float(expected[0]), float(expected[1])),
        decision.score,
        dict(zip(arms.names, chances.tolist(), strict=True)),
        optimism,
        None if then is None else _unless_rounding(now - then, size),
        None if then is None else _unless_rounding((decision.score or 0.0) - then, size),
        _predicted(filled[chosen if len(filled) > 1 else 0], raw, observer.layout),
        observer.missing,
    )


def _location_then(decision: Decision, offset: float) -> float | None:
    """Return the location of the chosen arm's score when it was chosen; None if not kept.

    Parameters
    ----------
    decision : Decision
        The decision.
    offset : float
        The zero that rewards are counted from. It is fixed before any arm is scored.
    """
    if decision._score_params is None or decision.score is None:
        return None
    if decision._epsilon == 1.0:  # picked uniformly, so that nothing was added to the score
        return decision.score
    return float(decision._score_params[0, decision._column]) + offset


def _unless_rounding(difference: float, size: float) -> float:
    """Return a difference of two numbers, 0 if it is of the size of their rounding errors."""
    return difference if abs(difference) > 1e-12 * size else 0.0


def check_not_joint(rule: Rule) -> None:
    """Raise if arms are scored by one sample of a shared parameter."""
    if rule.joint:
        raise InvalidValue(
            "explain needs draw='per-arm': with draw='joint' one sample of the shared parameter "
            "scores all arms, and neither their probabilities nor the runner-up are known"
        )


def check_for_all(decision: Decision) -> None:
    """Raise unless a decision is known to hold the observation of all arms."""
    if decision._is_for_all:
        return
    if decision._n_arms:
        raise InvalidValue(
            "this decision holds the observation of the chosen arm only: give the observation of "
            "all arms, explain(decision, y)"
        )
    raise InvalidValue(
        "a decision that came through JSON, or was made by hand, does not say whether its "
        "observation is that of all arms: give the observation of all arms, explain(decision, y)"
    )


def check_available(decision: Decision, n_arms: int) -> None:
    """Raise if a decision was made among more or fewer arms.

    Parameters
    ----------
    decision : Decision
        The decision; one that came through JSON does not have the number.
    n_arms : int
        The number of arms it is to be explained among.
    """
    made = decision._n_arms
    if made and made != n_arms:
        raise InvalidValue(
            f"this decision was made among {made} {'arm' if made == 1 else 'arms'}, not {n_arms}: "
            "give the arms that were available then, explain(decision, ..., among=...)"
        )


def check_observed(decision: Decision, own: Floats, given: Floats, layout: Layout) -> None:
    """Raise unless a decision was made from the given observation.

    Parameters
    ----------
    decision : Decision
        The decision.
    own, given : ndarray of shape (dim,)
        Its own observation and the one that is given, NaN where an entry is missing.
    layout : Layout
        The columns.
    """
    # A transformer may round a single row otherwise than the same one among others.
    same = np.isclose(own, given, rtol=1e-9, atol=1e-12, equal_nan=True)
    if not same.all():
        j = int(np.argmin(same))
        fields = layout.fields or layout.names
        name = f"entry {j}" if fields is None else fields[j]
        column = "" if fields is None or layout.names is None else layout.names[j]
        of = f" ({column})" if column not in ("", name) else ""
        raise InvalidValue(
            f"y must be the observation that the decision for {decision.arm!r} was made from: "
            f"{name}{of} was {_value(own[j])}, got {_value(given[j])}. Give that observation, or "
            "choose anew and explain the new decision"
        )


def _value(number: float) -> str:
    return "missing" if np.isnan(number) else f"{number:.12g}"


def _predicted(filled: Floats, raw: Floats, layout: Layout) -> dict[str, dict[str, float]]:
    """Return the predictions by field, and in it by column."""
    found: dict[str, dict[str, float]] = {}
    fields = layout.fields or layout.names or tuple(map(str, range(layout.dim)))
    names = layout.names or fields
    for j in np.flatnonzero(np.isnan(raw) & ~np.isnan(filled)).tolist():
        if names[j]:
            found.setdefault(fields[j], {})[names[j]] = float(filled[j])
    return found


def _prediction(field: str, columns: dict[str, float]) -> str:
    """Return a prediction as text: a number, or the likeliest levels of a category."""
    if set(columns) == {field}:
        return f"{columns[field]:.4g}"
    likely = sorted(columns.items(), key=lambda pair: -pair[1])
    shares = [f"{name.removeprefix(field + '=')} {share:.0%}" for name, share in likely[:3]]
    return ", ".join(shares) + (", ..." if len(likely) > 3 else "")


def _signed(value: float) -> str:
    """Return a number with its sign: three digits, and all of those before the point."""
    return f"{value:+,.0f}" if 1e3 <= abs(value) < 1e15 else f"{value:+.3g}"


def _right(cell: str, width: int) -> str:
    return "  " + cell.rjust(width)
