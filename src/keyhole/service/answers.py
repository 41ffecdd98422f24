"""The answer to a request, from the row of its decision: the same row gives the same answer."""

from __future__ import annotations

from keyhole.core import Arm, kernels
from keyhole.online import rows
from keyhole.service.requests import DecideAnswer

# Numbers of candidates whose memory is kept: most requests of a loop name all its arms.
MAX_KEPT = 8


class Answers:
    """The answers of one loop; the memory for their probabilities is used again.

    One thread uses it.
    """

    def __init__(self) -> None:
        self._chances: dict[int, kernels.Chances] = {}

    def of(self, row: rows.Decision | rows.Served) -> DecideAnswer:
        """Return the answer of the row of a decision."""
        if isinstance(row, rows.Served):
            return DecideAnswer(
                event_id=row.event,
                action=str(row.arm),
                probability=1.0,
                probabilities=_certain(row.arms, row.arm),
                score=None,
                version=row.seq - 1,
                mode="off",
            )
        names, served = row.arms or [], row.served
        chance = row.probability if served is None else 1.0
        assert chance is not None  # settings refuse policies whose probabilities are unknown
        certain = None if served is None else _certain(names, served)
        return DecideAnswer(
            event_id=row.event,
            action=str(row.arm if served is None else served),
            probability=chance,
            probabilities=certain or self._probabilities(row, names),
            score=row.score,
            version=row.version,
            mode="online" if served is None else "shadow",
            proposed=None if served is None else str(row.arm),
        )

    def _probabilities(self, row: rows.Decision, names: list[Arm]) -> dict[str, float]:
        """Return the exact probability of every candidate of a decision."""
        # Only rows of custom learners have no scores, and a loop has a linear one.
        assert row.mean is not None
        assert row.width is not None
        assert row.optimism is not None
        assert row.dispersion is not None
        chances = self._chances.get(len(row.mean))
        if chances is None:
            chances = self._memory(len(row.mean))
        # The numbers were checked when they were made.
        mean = row.mean if row.centred is None else row.centred
        listed = chances.of(mean, row.width, row.optimism, row.dispersion, row.epsilon)
        found = dict(zip(map(str, names), listed, strict=True))
        if row.probability is not None:
            found[str(row.arm)] = row.probability  # the same number, to the last digit
        return found

    def _memory(self, n: int) -> kernels.Chances:
        """Return memory for n candidates, 64 bytes for each."""
        if len(self._chances) >= MAX_KEPT:
            self._chances.clear()
        made = self._chances[n] = kernels.Chances(n)
        return made


def _certain(names: list[Arm], served: Arm) -> dict[str, float]:
    return {str(name): float(name == served) for name in names}
