"""Why an arm was chosen: what each feature added to its score and to the runner-up's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from keyhole.core import Arm, Floats, LearnerState, Rule, choice_probabilities
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
    """

    arm: Arm
    runner_up: Arm | None
    terms: dict[str, tuple[float, float]]
    expected: tuple[float, float]
    score: float | None
    probabilities: dict[Arm, float]

    def __str__(self) -> str:
        arms = [self.arm] if self.runner_up is None else [self.arm, self.runner_up]
        rows = [["", *map(str, arms)]]
        for name, pair in {**self.terms, "expected reward": self.expected}.items():
            rows.append([name, *(f"{value:+.3g}" for value in pair[: len(arms)])])
        if self.score is not None:
            drawn = f"{self.score - self.expected[0]:+.3g}"
            rows.append(["drawn", drawn, *([""] * (len(arms) - 1))])
        rows.append(["probability", *(f"{self.probabilities[arm]:.1%}" for arm in arms)])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        first, *rest = widths
        return "\n".join(
            (row[0].ljust(first) + "".join(map(_right, row[1:], rest))).rstrip() for row in rows
        )


def explained(
    learned: LearnerState, rule: Rule, decision: Decision, names: tuple[Arm, ...], rows: Floats
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
    """
    arms, observer = learned.arms.among(names), learned.observer
    _, design = learned.prepared(rows)
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
    for j, field in enumerate(observer.layout.design_fields(intercept=observer.intercept)):
        before = terms.get(field, (0.0, 0.0))
        both = added[pair, j] + (observer.offset if observer.intercept and j == 0 else 0.0)
        terms[field] = (before[0] + float(both[0]), before[1] + float(both[1]))
    expected = [sum(values) for values in zip(*terms.values(), strict=True)]
    return Explanation(
        decision.arm,
        arms.names[others[0]] if others else None,
        terms,
        (float(expected[0]), float(expected[1])),
        decision.score,
        dict(zip(arms.names, chances.tolist(), strict=True)),
    )


def _right(cell: str, width: int) -> str:
    return "  " + cell.rjust(width)
