"""What stays in sums of a term that is taken out of them: its rounding, 1e-16 of its square."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from keyhole.core import LearnerState, Term
from keyhole.errors import InvalidValue, Message

# Squares that are taken out, as multiples of those that stay, from which on a warning is given:
# sums then keep less than half of their digits.
WARNS = 1e8
# And from which on nothing is taken out. An observation leaves a relative error of 1e-4 in the
# precision then. In the moment, rounding is 1e-16 of r y, which is compared by its square.
LOST, LOST_MOMENT = 1e12, 1e24


class Loss(NamedTuple):
    """Squares that are taken out of sums, as multiples of those that stay.

    Attributes
    ----------
    observation, reward, moment : float
        The largest of any number of the observation, that of the reward, and the largest of any
        product of both; a moment is at most the root of the product of the other two sums.
    """

    observation: float = 0.0
    reward: float = 0.0
    moment: float = 0.0

    @classmethod
    def of(cls, learned: LearnerState, terms: Sequence[Term], *, forgets: bool) -> Loss:
        """Return what taking out the terms of one event would leave.

        Parameters
        ----------
        learned : LearnerState
            What was learned.
        terms : sequence of Term
            The terms, all of the same arm.
        forgets : bool
            Whether observations are taken out, and not rewards alone.
        """
        if not terms:
            return cls()
        posterior, i = learned.posterior, learned.arms.parameter(terms[0].arm)
        if forgets and posterior.count[i] == len(terms):
            return cls()  # the sums become those of the prior, whatever was rounded
        weights = np.array([one.weight for one in terms])
        rewards = np.array([one.reward for one in terms]) - learned.observer.offset
        rows = np.array([learned.of_arm(one) for one in terms])
        taken = float(weights @ rewards**2)
        rest = max(float(posterior.squares[i]) - taken, 1.0)
        squares = weights @ rows**2
        stays = np.diagonal(posterior.precision[i])
        if forgets:
            stays = np.maximum(stays - squares, posterior.prior_precision)
        moment = (weights * np.abs(rewards)) @ np.abs(rows)
        return cls(
            observation=float((squares / stays).max()) if forgets else 0.0,
            reward=taken / rest,
            moment=float((moment**2 / (stays * rest)).max()),
        )

    def check(self, arm: object) -> None:
        """Raise `InvalidValue` if only rounding would be left in the sums."""
        for what, square, largest in (
            ("observation", self.observation, LOST),
            ("reward times its observation", self.moment, LOST_MOMENT),
        ):
            if square > largest:
                raise InvalidValue(
                    f"the {what} of arm {arm!r} must be at most 1e{math.log10(largest) / 2:.0f} "
                    "times those of its other events to be forgotten or amended, got "
                    f"{math.sqrt(square):.3g}: export the log, fit its other rows with kh.fit, "
                    "and go on with that bandit"
                )

    def messages(self, arm: object, rewards: Sequence[float]) -> list[str]:
        """Return warnings of what stays.

        Parameters
        ----------
        arm : str or int
            The arm.
        rewards : sequence of float
            The rewards that were taken out.
        """
        rest = (
            f"of arm {arm!r} is taken out, but it was so much larger than the others that its "
            "rounding stays in the sums: {} are wrong by it. kh.fit of Log.to_parquet adds up the "
            "others alone"
        )
        found = []
        if self.observation > WARNS:
            found.append("an observation " + rest.format("estimates"))
        if self.reward > WARNS:
            said, size = rest.format("errors and a learned v"), max(map(abs, rewards))
            found.append(Message(f"the reward {size:g} {said}", f"a reward {said}"))
        return found
