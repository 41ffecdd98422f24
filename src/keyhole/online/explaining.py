"""Why an arm was chosen: what each feature added to its score and to the runner-up's."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from keyhole.core import Arm, Floats, Layout, LearnerState, Rule, choice_probabilities
from keyhole.errors import InvalidValue
from keyhole.online.decision import Decision


@dataclass(frozen=True)
class Explanation:
    """A decision in parts, by what the bandit knows now.

    Attributes
    ----------
    arm : str or int
        The chosen arm.
    runner_up : str, int or None
        The other arm that is most likely to be chosen; None if there is no other.
    terms : dict of str to tuple of float
        For each field, and for the constant: what it adds to the expected reward of the chosen
        arm, and to that of the runner-up.
    expected : tuple of float
        The sums of the terms: both arms' expected rewards.
    score : float or None
        The score with which the arm was chosen. What it has beyond the expected reward was drawn,
        or is optimism; and what was learned since.
    probabilities : dict of arm to float
        How likely each arm is to be chosen at this observation.
    predicted : dict of str to dict of str to float
        For each field that was missing, the prediction of each of its columns: one for a number, a
        share for each level of a category.
    """

    arm: Arm
    runner_up: Arm | None
    terms: dict[str, tuple[float, float]]
    expected: tuple[float, float]
    score: float | None
    probabilities: dict[Arm, float]
    predicted: dict[str, dict[str, float]] = field(default_factory=dict)

    def __str__(self) -> str:
        arms = [self.arm] if self.runner_up is None else [self.arm, self.runner_up]
        rows = [["", *map(str, arms)]]
        for name, pair in {**self.terms, "expected reward": self.expected}.items():
            rows.append([name, *(_signed(value) for value in pair[: len(arms)])])
        if self.score is not None:
            drawn = _signed(self.score - self.expected[0])
            rows.append(["drawn", drawn, *([""] * (len(arms) - 1))])
        rows.append(["probability", *(f"{self.probabilities[arm]:.1%}" for arm in arms)])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        first, *rest = widths
        lines = [
            (row[0].ljust(first) + "".join(map(_right, row[1:], rest))).rstrip() for row in rows
        ]
        for name, columns in self.predicted.items():
            lines.append(f"{name} was missing, and predicted: {_prediction(name, columns)}")
        return "\n".join(lines)


def explained(
    learned: LearnerState,
    rule: Rule,
    decision: Decision,
    names: tuple[Arm, ...],
    rows: Floats,
    raw: Floats,
) -> Explanation:
    """Return a decision in parts.

    Parameters
    ----------
    learned : LearnerState
        What is known.
    rule : Rule
        How arms are scored.
    decision : Decision
        The decision.
    names : tuple of arms
        The arms that were available.
    rows : ndarray of shape (1, dim) or (n_arms, dim)
        What was observed of them.
    raw : ndarray of shape (dim,)
        The decision's own observation, NaN where an entry was missing.
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
    return Explanation(
        decision.arm,
        arms.names[others[0]] if others else None,
        terms,
        (float(expected[0]), float(expected[1])),
        decision.score,
        dict(zip(arms.names, chances.tolist(), strict=True)),
        _predicted(filled[chosen if len(filled) > 1 else 0], raw, observer.layout),
    )


def check_available(decision: Decision, n_arms: int) -> None:
    """Raise if a decision was made among more or fewer arms.

    Parameters
    ----------
    decision : Decision
        The decision; one that came through JSON does not know.
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
    """Raise unless what is given is what a decision was made from.

    Parameters
    ----------
    decision : Decision
        The decision.
    own, given : ndarray of shape (dim,)
        Its own observation and the one that is given, NaN where an entry is missing.
    layout : Layout
        What the columns are.
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
            f"this is not what the decision for {decision.arm!r} was made from: {name}{of} was "
            f"{_value(own[j])}, got {_value(given[j])}. Give what was seen then, or choose "
            "anew and explain that decision"
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
