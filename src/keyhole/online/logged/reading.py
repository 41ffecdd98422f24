"""`ReadsRows`: what a bandit does with rows that were read from a log, and not written by it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from keyhole import checks
from keyhole.core import Arm, Encoder, Floats, Layout, choice_probabilities, widened
from keyhole.online.log import rows
from keyhole.online.logged.keyed import KeyedChoices
from keyhole.online.logged.terms import Terms


class ReadsRows(KeyedChoices):
    """A bandit of a linear learner that takes in rows of a log."""

    _terms: Terms

    def _set(self, *parts: Any) -> None:
        super()._set(*parts)
        self._learned.fixed = []
        self._terms = Terms(self._learned)

    @property
    def terms(self) -> Terms:
        """Where the sums have the rewards of earlier rows; not part of the bandit's file."""
        return self._terms

    # -- taking note of rows ----------------------------------------------------------------------

    def believe(self, y: Floats) -> None:
        """Do what the choice, or choices, of one call have changed besides the random stream.

        Parameters
        ----------
        y : ndarray of shape (n, dim)
            What was observed, with NaN where an entry is missing.
        """
        super().believe(y)
        if not self._learned.is_plain:
            self._see(y)

    def count_decisions(self, n: int) -> None:
        """Count decisions of the log that need not be made again."""
        self._lineage.decisions += n

    def note_row(self, seq: int) -> None:
        """Take note of what a row has changed that was read, and not written."""
        self._terms.follow(self._learned, seq - 1, self._lineage.decisions)

    def end_notes(self) -> None:
        """Take no notes any more: no row will be written."""
        self._learned.fixed = None

    def note_key(self, key: str, event: str) -> None:
        """Take note of a reward that waits or is provisional.

        Parameters
        ----------
        key : str
            What it is found by.
        event : str
            The id of its decision.
        """
        self._terms.events[key] = event

    def note_counted(self, key: str | None) -> None:
        """Take note that the log has the term of a reward that waited."""
        fixed = self._learned.fixed or []
        self._learned.fixed = [one for one in fixed if one.key != key]
        self._terms.events.pop(key or "", None)

    # -- rewards without their decisions ----------------------------------------------------------

    @property
    def is_plain(self) -> bool:
        """True if choices change nothing that is learned."""
        return self._learned.is_plain

    @property
    def learns_in_order(self) -> bool:
        """True if a reward changes nothing but the sums of its arm, by what was seen of it."""
        learned = self._learned
        is_simple = learned.is_plain and learned.is_everyday and learned.grown is None
        return is_simple and not self._rule.weighted

    def learn_in_order(
        self, arms: Sequence[Arm], y: Floats, rewards: Floats, events: Sequence[str]
    ) -> bool:
        """Learn rewards of the log one after another, to the bit as `learn` does; write nothing.

        It is for a bandit that `learns_in_order`.

        Parameters
        ----------
        arms : sequence of str or int
            The arm of each.
        y : ndarray of shape (n, dim)
            What was seen of it.
        rewards : ndarray of shape (n,)
            The rewards.
        events : sequence of str
            The ids of their decisions.

        Returns
        -------
        bool
            False if `learn` would refuse one of them; nothing was changed then.
        """
        learned, recent = self._learned, self._once.recent
        parameters = [learned.arms.parameters.get(arm) for arm in arms]
        are_usable = (np.abs(y) <= checks.LARGEST).all() and (
            np.abs(rewards) <= checks.LARGEST
        ).all()
        are_new = len(set(events)) == len(events) and not any(one in recent for one in events)
        if None in parameters or not are_usable or not are_new:
            return False
        with self._lock:
            self._finish()
            learned.posterior.learn_in_order(np.array(parameters, dtype=np.int64), y, rewards)
            for event in events:
                recent.add(event)
            self._lineage.additions += len(events)
        return True

    # -- contexts of other rounds -----------------------------------------------------------------

    def chances(self, contexts: Sequence[tuple[rows.Decision, list[Arm]]]) -> list[Floats]:
        """Return the probability of each candidate at the contexts of other rounds, now.

        Parameters
        ----------
        contexts : sequence of (Decision, list of arms)
            The rows of these rounds, and their candidates, all of which the bandit has.
        """
        groups: dict[Any, list[int]] = {}
        for k, (row, arms) in enumerate(contexts):
            groups.setdefault((tuple(arms), row.levels, len(row.y)), []).append(k)
        found: list[Floats] = [np.empty(0)] * len(contexts)
        for (arms, levels, _), places in groups.items():
            seen = np.array([contexts[k][0].y for k in places], dtype=np.float64)
            chances = self._chances(self.in_present_columns(seen, levels), arms)
            for k, one in zip(places, chances, strict=True):
                found[k] = one
        return found

    def _chances(self, seen: Floats, names: tuple[Arm, ...]) -> Floats:
        """Return the probabilities of some arms at observations, (m, 1 or n_arms, dim)."""
        learned, arms = self._learned, self._learned.arms.among(names)
        _, design = learned.prepared(seen)
        if learned.arms.is_hybrid:
            design = learned.placed(design, arms)
        rule = learned.rule_now(self._rule)
        location, scale = learned.posterior.scores(
            rule, arms.parameter_of, design if design.shape[1] > 1 else design[:, 0]
        )
        epsilon = learned.posterior.uniform_rate(rule)
        return choice_probabilities(location, scale, epsilon=epsilon)

    def in_present_columns(self, seen: Floats, levels: int | None) -> Floats:
        """Return observations, (m, n, dim), of a time with fewer levels in the present columns."""
        encoder, grown = self._learned.encoder, self._learned.grown
        if encoder is None or grown is None:
            return seen
        then = grown[:levels]
        if encoder.has_columns_of(then, seen.shape[-1]):
            return seen
        made, wider = Layout.of(Encoder(encoder.features, then)), Layout.of(encoder)
        places, siblings = made.places_in(wider), made.siblings_of(wider)
        flat = [widened(row, places, siblings) for row in seen.reshape(-1, seen.shape[-1])]
        return np.array(flat).reshape(*seen.shape[:2], wider.dim)
