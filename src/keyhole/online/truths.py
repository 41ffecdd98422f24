"""`Truths`: rewards whose context is not known yet, and decisions whose context is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from keyhole.core import SensorReward
from keyhole.core.kernels import REMEMBERED, RecentIds
from keyhole.errors import AlreadyLearned, InvalidValue
from keyhole.online.decision import Decision


class Truths:
    """Rewards as they were learned, for contexts that arrive after their reward.

    Rewards of the last 10,000 decisions are remembered, and the ids of as many whose context is
    known.

    Parameters
    ----------
    rewards : mapping of str to list of SensorReward, optional
        The rewards by the id of their decision, the oldest first.
    known : iterable of str, optional
        The ids of decisions whose context is known.
    """

    def __init__(
        self,
        rewards: Mapping[str, list[SensorReward]] | None = None,
        known: Iterable[str] = (),
    ) -> None:
        self.rewards = {key: list(each) for key, each in (rewards or {}).items()}
        self.known = RecentIds(known)

    def is_known(self, decision: Decision) -> bool:
        """Return whether the context of this decision was learned."""
        return decision.id is not None and decision.id in self.known

    def of(self, decision: Decision) -> list[SensorReward]:
        """Return the rewards of a decision that were learned without its context."""
        return self.rewards.get(decision.id or "", [])

    def check(self, decision: Decision) -> list[SensorReward]:
        """Return the rewards of a decision, or raise if its context cannot be learned now."""
        if decision.id is None:
            raise InvalidValue(
                "decision.id must be given where a context arrives after its reward, got None"
            )
        if self.is_known(decision):
            raise AlreadyLearned(f"the context of decision {decision.id!r} was learned already")
        rewards = self.of(decision)
        if not rewards:
            raise InvalidValue(
                f"no reward of decision {decision.id!r} is remembered (the last {REMEMBERED:,} "
                "are): give both together, learn(decision, reward, context=...)"
            )
        return rewards

    def add_reward(self, decision: Decision, reward: SensorReward) -> None:
        """Remember a reward that was learned without its context.

        Parameters
        ----------
        decision : Decision
            Its decision.
        reward : SensorReward
            The reward as it was learned.
        """
        if decision.id is None or self.is_known(decision):
            return
        self.rewards.setdefault(decision.id, []).append(reward)
        while len(self.rewards) > REMEMBERED:
            del self.rewards[next(iter(self.rewards))]

    def add_context(self, decision: Decision) -> None:
        """Remember that the context of a decision was learned."""
        if decision.id is not None:
            self.rewards.pop(decision.id, None)
            self.known.add(decision.id)

    def merged(self, other: Truths, base: Truths | None) -> Truths:
        """Return what both remember, or raise if both have learned a context of their base.

        Parameters
        ----------
        other : Truths
            That of the other bandit.
        base : Truths or None
            That of the bandit from which both went on.
        """
        before = Truths() if base is None else base
        twice = sorted(self.known.common(other.known).intersection(before.rewards))
        if twice:
            raise InvalidValue(
                f"the context of decision {twice[0]!r} was learned by both of these bandits after "
                "their base had learned its reward, and would count twice"
            )
        made = Truths(known=self.known.listed())
        made.known.merge(other.known)
        for key in {**self.rewards, **other.rewards}:
            theirs = other.rewards.get(key, [])[len(before.rewards.get(key, [])) :]
            both = [*self.rewards.get(key, []), *theirs]
            if both and key not in made.known:
                made.rewards[key] = both
        for key in list(made.rewards)[: max(len(made.rewards) - REMEMBERED, 0)]:
            del made.rewards[key]
        return made
