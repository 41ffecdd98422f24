"""`LearnerState`: the posterior of a learner's arms, and the rewards that wait for units."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from keyhole.core import kernels
from keyhole.core.kernels import Floats, Ints, Rule
from keyhole.core.learners.arms import Arm, Arms
from keyhole.core.learners.blocks import in_every_block, placed
from keyhole.core.learners.blocks import places as places_of
from keyhole.core.learners.protocol import Chosen
from keyhole.core.learners.terms import Term
from keyhole.core.observers import (
    MIN_SEEN,
    PREDICTED,
    REWARDS,
    Effects,
    Encoder,
    Layout,
    Moments,
    Observer,
)
from keyhole.core.posterior import Posterior
from keyhole.errors import InvalidValue

# While nothing can be learned yet, an arm is picked uniformly.
PICK = Rule(epsilon=1.0)
# No warning below this many waiting rewards.
PATIENCE = 100
# In place of the names of arms, where none is known beforehand.
SHARED = "shared"
# No limit: more rounds than one call plays.
MANY = 2**40


class Waiting(NamedTuple):
    """A reward that cannot be learned yet; missing entries of the observation are NaN."""

    arm: Arm
    observation: Floats
    reward: float
    key: str  # unique


class Provisional(NamedTuple):
    """A reward that was learned by a prediction of missing entries that was young then."""

    arm: Arm
    observation: Floats  # missing entries are NaN
    design: Floats  # as the posterior's sums have it
    reward: float
    key: str = ""  # what tells it from all others


class Added(NamedTuple):
    """Rewards that were learned at once."""

    places: Sequence[int]  # among those that were given: others were dropped
    design: Floats  # (n, n_columns)
    rewards: list[float]  # as they counted


Kept = TypeVar("Kept", Waiting, Provisional)


class LearnerState:
    """A posterior of arms by name, of observations that are converted by an observer.

    `waiting` rewards came before the units were fixed, and are learned when those are.
    `provisional` ones were learned by early predictions. At the counts in `LOOKS` they are
    predicted anew, and exchanged in the sums.

    Parameters
    ----------
    arms : Arms
        The names of the arms.
    observer : Observer
        The conversion of observations.
    posterior : Posterior
        The posterior of the arms' parameters.
    encoder : Encoder, optional
        How records become observations.
    """

    def __init__(
        self,
        arms: Arms,
        observer: Observer,
        posterior: Posterior,
        encoder: Encoder | None = None,
    ) -> None:
        self.arms = arms
        self.encoder = encoder
        self._recipe: str | None = None
        # The records of arms that are always the same.
        self.arm_records: dict[Arm, dict[str, Any]] = {}
        self.observer = observer
        self.waiting: list[Waiting] = []
        self.provisional: list[Provisional] = []
        self.posterior = posterior
        # The observation of the last choice by index, as it came and as it was filled in.
        self.last: tuple[Floats, Floats] = (np.empty(0), np.empty(0))
        # The arm of that choice, and its probability.
        self.last_chosen = Chosen(-1)
        # Rewards of observations that were left out because an entry was missing.
        self.n_dropped = 0
        # The last rewards that were learned at once, for a log.
        self.added: Added | None = None
        # Rewards that waited or were provisional and have their final term now, for a log, which
        # takes them out of here; None if nobody does.
        self.fixed: list[Term] | None = None

    @property
    def counts(self) -> dict[Arm, int]:
        """The number of rewards learned by the parameter of each arm."""
        return self._by_arm(self.posterior.count.tolist())

    @property
    def waiting_counts(self) -> dict[Arm, int]:
        """The number of rewards that wait for units, for the parameter of each arm."""
        counts = [0] * self.posterior.n_parameters
        for reward in self.waiting:
            counts[self.arms.parameter(reward.arm)] += 1
        return self._by_arm(counts)

    def total(self) -> float:
        """Return the number of rewards so far: learned, waiting or left out."""
        return float(self.posterior.count.sum()) + len(self.waiting) + self.n_dropped

    def _by_arm(self, numbers: list[int]) -> dict[Arm, int]:
        if not self.arms.names:
            return {SHARED: numbers[0]}
        parameter_of = self.arms.parameter_of.tolist()
        return {arm: numbers[i] for arm, i in zip(self.arms.names, parameter_of, strict=True)}

    @property
    def effects(self) -> dict[Arm, Effects]:
        """The effects of features on each arm's reward, in the features' own units."""
        steps, kept = self.observer.steps(), self.observer.effect_rows()
        steps = steps[kept]
        names = self.observer.layout.design_names(intercept=self.observer.intercept)
        names = tuple(names[k] for k in kept.tolist())
        arms = self.arms.names or (SHARED,)
        n, m = len(self.arms.names), len(steps)
        if self.arms.is_hybrid:
            rows = placed(np.tile(steps, (n, 1)), np.repeat(np.arange(n), m), n)
            estimate, error = (part.reshape(n, m) for part in self.posterior.least_squares(rows))
        else:
            parameter_of = self.arms.parameter_of if n else np.zeros(1, dtype=np.int64)
            estimate, error = (part[parameter_of] for part in self.posterior.least_squares(steps))
        error[:, ~(steps.any(axis=1) & self.observer.is_ready)] = np.inf
        if self.observer.intercept:
            estimate[:, 0] += self.observer.offset
        return {
            arm: Effects(estimate[k].copy(), error[k].copy(), names) for k, arm in enumerate(arms)
        }

    def means(self) -> Floats:
        """Return the posterior mean of each arm's parameter, (n_arms, n_columns)."""
        mean = self.posterior.mean
        if not self.arms.is_hybrid:
            return mean[self.arms.parameter_of]
        parts = mean.reshape(-1, self.observer.n_columns)
        return parts[:1] + parts[1:]

    # -- records ----------------------------------------------------------------------------------

    def numbers(self, observation: Any) -> Floats:
        """Return an observation as usable numbers, NaN where one is missing and may be.

        A record becomes a row of numbers, if there are features; the levels that it brings in are
        known from then on.
        """
        encoder = self.encoder
        is_array = isinstance(observation, np.ndarray) and observation.dtype.names is None
        if encoder is None or (is_array and not encoder.takes_rows):
            return self.observer.numbers(observation)
        if is_array and observation.ndim == 2:
            rows, encoder = encoder.encode_frame(observation)
        else:
            rows, encoder = encoder.encode(observation)
        self.know(encoder)
        return self.observer.numbers(rows)

    @property
    def grown(self) -> tuple[tuple[str, str], ...] | None:
        """The levels of growing categories that have columns; None if no category can grow."""
        return None if self.encoder is None or not self.encoder.can_grow else self.encoder.grown

    @property
    def recipe(self) -> str | None:
        """A digest that identifies the columns of these features; None without features."""
        if self.encoder is not None and self._recipe is None:
            self._recipe = self.encoder.digest
        return self._recipe

    def know(self, encoder: Encoder) -> None:
        """Add the columns of levels that were not seen before; nothing that was learned changes."""
        if encoder is self.encoder:
            return
        wider = self.in_columns_of(encoder)
        self.waiting, self.provisional = wider.waiting, wider.provisional
        self.posterior, self.observer, self.encoder = wider.posterior, wider.observer, encoder

    def in_columns_of(self, encoder: Encoder) -> LearnerState:
        """Return the same knowledge in the columns of a wider encoder.

        A new level was 0 wherever its category was seen, and missing where that was: sums are
        those of a learner that had its column from the beginning. Arrays are shared with this state
        where levels took spare columns.
        """
        if self.encoder is None or encoder.names == self.encoder.names:
            return self
        old, new = self.observer.layout, Layout.of(encoder)
        observer, posterior = self.observer.in_layout(new), self.posterior
        if old.is_renamed_in(new):  # levels took spare columns, and no number has changed
            wider = LearnerState(self.arms, observer, posterior, encoder)
            wider.n_dropped, wider.arm_records = self.n_dropped, self.arm_records
            wider.waiting, wider.provisional = self.waiting, self.provisional
            wider.fixed = self.fixed
            return wider
        places, siblings = old.places_in(new), old.siblings_of(new)
        design_places = old.design_places_in(new, intercept=self.observer.intercept)
        posterior = posterior.copy()
        if self.arms.is_hybrid:
            n = len(self.arms.names)
            every = places_of(np.arange(n), design_places, observer.n_columns)
            posterior.spread((1 + n) * observer.n_columns, every)
        else:
            posterior.spread(observer.n_columns, design_places)
        wider = LearnerState(self.arms, observer, posterior, encoder)
        wider.n_dropped, wider.arm_records = self.n_dropped, self.arm_records
        wider.waiting = [
            one._replace(observation=widened(one.observation, places, siblings))
            for one in self.waiting
        ]
        for one in self.provisional:
            design = spread_design(one.design, design_places, observer.n_columns)
            seen = widened(one.observation, places, siblings)
            wider.provisional.append(one._replace(observation=seen, design=design))
        if self.fixed is not None:
            wider.fixed = [
                one._replace(design=spread_design(one.design, design_places, observer.n_columns))
                for one in self.fixed
            ]
        return wider

    # -- choosing ---------------------------------------------------------------------------------

    def prepared(self, rows: Floats) -> tuple[Floats, Floats]:
        """Return rows, (..., dim), with predictions, and the same as the posterior sees them.

        Missing entries are predicted from earlier observations. Before units are fixed the
        posterior sees zeros.
        """
        observer = self.observer
        flat = rows.reshape(math.prod(rows.shape[:-1]), observer.dim)
        filled = observer.filled(flat).reshape(rows.shape)
        if observer.is_ready:
            return filled, observer.design(filled)
        return filled, np.zeros((*rows.shape[:-1], observer.n_columns))

    def placed(self, design: Floats, arms: Arms) -> Floats:
        """Return a design, (1 or n_arms, n_columns), as the posterior sees it for some arms.

        Parameters
        ----------
        design : ndarray
            The result of `prepared`.
        arms : Arms
            The arms that the rows are of.
        """
        if not self.arms.is_hybrid:
            return design
        n = len(self.arms.names)
        if design.ndim == 2:
            return placed(design, self.arms.blocks(arms.names), n)
        return np.array([placed(rows, self.arms.blocks(arms.names), n) for rows in design])

    def _of_arms(self, design: Floats, arms: Sequence[Arm]) -> Floats:
        """Return rows, (n, n_columns), each of an arm, as the posterior sees them."""
        if not self.arms.is_hybrid:
            return design
        return placed(design, self.arms.blocks(arms), len(self.arms.names))

    def of_arm(self, term: Term) -> Floats:
        """Return the row of a term as the posterior sees it."""
        row: Floats = self._of_arms(term.design[None], [term.arm])[0]
        return row

    def _change(self, matrix: Floats) -> Floats:
        """Return a change of columns as the posterior sees it."""
        return in_every_block(matrix, len(self.arms.names)) if self.arms.is_hybrid else matrix

    def rule_now(self, rule: Rule) -> Rule:
        """Return a policy's rule, or one that picks uniformly before units are fixed."""
        return rule if self.observer.is_ready else PICK

    @property
    def is_plain(self) -> bool:
        """True if the posterior sees observations as they are."""
        return self.observer.is_plain and not self.arms.is_hybrid

    @property
    def is_everyday(self) -> bool:
        """True if choosing and learning change nothing but the posterior and running sums."""
        if self.arms.is_hybrid:
            return False
        if self.encoder is not None and self.encoder.takes_rows:
            return False
        if self.observer.layout.unseen:
            return False
        return self.observer.is_plain or (self.observer.is_steady and not self.waiting)

    @property
    def everyday(self) -> kernels.Everyday | None:
        """The compiled conversion of observations and rewards; None if none is needed."""
        return None if self.is_plain or not self.is_everyday else self.observer.everyday

    def n_rounds_ahead(self, rows: int) -> int:
        """Return how many rounds of `rows` rows each change neither units nor predictions.

        Units and early predictions are checked again at the counts in `LOOKS`; until then, the
        posterior's view of later rounds does not depend on choices.
        """
        observer = self.observer
        if not observer.is_steady or self.waiting:
            return 0
        if not observer.watches:
            return MANY
        return max(int((observer.next_look - 1 - observer.seen) // rows), 0)

    def see_rounds(self, rounds: Floats) -> Floats:
        """Add rounds one after another, (T, n, dim); return them as the posterior sees them.

        There may be at most `n_rounds_ahead`. Each is filled in from the rounds before it.
        """
        return self.observer.see_rounds(rounds)

    # -- learning ---------------------------------------------------------------------------------

    def weights(self, rule: Rule, probabilities: Floats) -> Floats:
        """Return the weights of rewards that are learned one after another from now on.

        Parameters
        ----------
        rule : Rule
            The rule, which weighs rewards.
        probabilities : ndarray of shape (n,)
            The propensity of each choice, above 0.
        """
        n_arms, learned = len(self.arms.names), float(self.posterior.core.state.n.sum())
        rates = [self.posterior.uniform_rate(rule, learned + k) for k in range(len(probabilities))]
        pairs = zip(rates, probabilities.tolist(), strict=True)
        return np.array([kernels.propensity_weight(rate, n_arms, p) for rate, p in pairs])

    def add(
        self,
        arms: Sequence[Arm],
        y: Floats,
        raw: Floats,
        rewards: Floats,
        key: str,
        weights: Floats | None = None,
    ) -> None:
        """Learn many rewards, or keep them until units are fixed.

        Parameters
        ----------
        arms : sequence of names
            The arm of each reward.
        y : ndarray of shape (n, dim)
            Observations with missing entries predicted.
        raw : ndarray of shape (n, dim)
            The same with missing entries NaN.
        rewards : ndarray of shape (n,)
            The rewards.
        key : str
            A unique key of these rewards.
        weights : ndarray of shape (n,), optional
            The weight of each reward, if observations are learned as they are.
        """
        places: Sequence[int] = range(len(arms))
        if self.observer.missing == "drop" and self.observer.dropped(raw).any():
            used = ~self.observer.dropped(raw)
            self.arms.parameters_of(arms)  # which raises if there is no such arm
            self.n_dropped += int((~used).sum())
            places = np.flatnonzero(used).tolist()
            arms = [arms[k] for k in places]
            y, raw, rewards = y[used], raw[used], rewards[used]
        parameters = self.arms.parameters_of(arms)
        if self.observer.is_ready:
            design = self.observer.design(y)
            given = self.observer.limited(rewards, self.observer.n_rewards)
            rows = self._of_arms(design, arms)
            self.posterior.learn_rows(parameters, rows, given - self.observer.offset, weights)
            self.observer.see_rewards(rewards)
            if self.fixed is not None:
                self.added = Added(places, design, given.tolist())
            if self._is_provisional:
                keys = [f"{key}.{k}" for k in places]
                self.keep_provisional(arms, raw, design, given.tolist(), keys)
        else:
            before = len(self.waiting)
            keys = [f"{key}.{k}" for k in places]
            self.waiting = self.waiting + list(
                map(Waiting, arms, raw.copy(), rewards.tolist(), keys)
            )
            self.flush()
            if before < PATIENCE <= len(self.waiting):
                self._warn()

    @property
    def _is_provisional(self) -> bool:
        """Whether predictions of missing entries will get better."""
        return self.observer.missing in ("predict", "mean") and self.observer.seen < PREDICTED

    def keep_provisional(
        self,
        arms: Sequence[Arm],
        raw: Floats,
        design: Floats,
        rewards: Sequence[float],
        keys: Sequence[str] = (),
    ) -> None:
        """Remember which of these rewards were learned by predictions that will get better.

        Parameters
        ----------
        arms : sequence of names
            The arm of each reward.
        raw : ndarray of shape (n, dim)
            Observations, with NaN where an entry is missing.
        design : ndarray of shape (n, n_columns)
            What the posterior saw.
        rewards : sequence of float
            The rewards as they counted.
        keys : sequence of str, optional
            What tells each from all others.
        """
        if not self._is_provisional:
            return
        for k in np.flatnonzero(self.observer.dropped(raw)).tolist():
            key = keys[k] if keys else ""
            self.provisional.append(
                Provisional(arms[k], raw[k].copy(), design[k].copy(), rewards[k], key)
            )

    def see(self, rows: Floats, look: float | None = None) -> None:
        """Add observations, and update units and predictions that are due.

        Parameters
        ----------
        rows : ndarray of shape (n, dim)
            The observations, with NaN where an entry is missing.
        look : float, optional
            How often a feature must have been seen for units and predictions to be checked again;
            by default the count after all observations before these.
        """
        due = self.observer.next_look if look is None else look
        self.observer.see(rows)
        self._do_what_is_due(due)

    def _do_what_is_due(self, look: float) -> None:
        """Check units and predictions again if features were seen `look` times; flush."""
        if self.observer.watches and self.observer.seen >= look:
            self._look_again()
        if self.waiting:
            self.flush()

    def flush(self) -> None:
        """Learn the rewards that wait, if units and the rewards' zero are fixed by now."""
        if not self.waiting:
            return
        # Copies learn, so that whatever happens nothing is lost or half learned.
        rewards, observer = np.array([one.reward for one in self.waiting]), self.observer.copy()
        observer.fix_zero(rewards.tolist())
        if not observer.is_ready:
            return
        observer.see_rewards(rewards)
        posterior = self.posterior.copy()
        design, given = self._teach(posterior, observer, self.waiting)
        waiting = self.waiting
        raw = np.array([one.observation for one in waiting])
        observer.note_clipped(raw, None)
        self.waiting, self.posterior, self.observer = [], posterior, observer
        arms, keys = [one.arm for one in waiting], [one.key for one in waiting]
        self.keep_provisional(arms, raw, design, given.tolist(), keys)
        self._fix(_terms(waiting, design, given))

    def _fix(self, terms: Iterable[Term]) -> None:
        """Tell a log of rewards that have their final term, unless they are provisional."""
        if self.fixed is not None:
            provisional = {one.key for one in self.provisional}
            self.fixed = self.fixed + [one for one in terms if one.key not in provisional]

    def _teach(
        self, posterior: Posterior, observer: Observer, rewards: Sequence[Waiting]
    ) -> tuple[Floats, Floats]:
        """Learn rewards that waited into a posterior; return design and limited rewards."""
        if not rewards:
            return np.empty((0, observer.n_columns)), np.empty(0)
        names = [one.arm for one in rewards]
        parameter_of = np.array([self.arms.parameter(arm) for arm in names], dtype=np.int64)
        rows = observer.filled(np.array([one.observation for one in rewards]))
        design = observer.design(rows)
        given = observer.limited(np.array([one.reward for one in rewards]), before=0)
        placed_rows = self._of_arms(design, names)
        posterior.learn_rows(parameter_of, placed_rows, given - observer.offset)
        return design, given

    def _look_again(self) -> None:
        """Predict early missing entries anew, and replace units that turned out far from right."""
        posterior, provisional = self.posterior.copy(), self.provisional
        self.observer.renew_predictions()
        if provisional:
            raw = np.array([one.observation for one in provisional])
            new = self.observer.design(self.observer.filled(raw))
            old = np.array([one.design for one in provisional])
            rewards = np.array([one.reward for one in provisional]) - self.observer.offset
            parameter_of = np.array([self.arms.parameter(one.arm) for one in provisional])
            names = [one.arm for one in provisional]
            posterior.exchange(
                parameter_of, self._of_arms(old, names), self._of_arms(new, names), rewards
            )
            provisional = [
                one._replace(design=row) for one, row in zip(provisional, new, strict=True)
            ]
        observer, units = self.observer, self.observer.better_units()
        if units is not None:
            observer = self.observer.with_units(units)
            change = observer.from_units_of(self.observer)
            posterior.change_units(self._change(change))
            provisional = [one._replace(design=change @ one.design) for one in provisional]
            if self.fixed is not None:
                self.fixed = [one._replace(design=change @ one.design) for one in self.fixed]
        done = self.observer.seen >= PREDICTED
        self.posterior, self.observer = posterior, observer
        self.provisional = [] if done else provisional
        if done:
            self._fix(Term(one.arm, one.design, one.reward, one.key) for one in provisional)

    def _warn(self) -> None:
        """Warn that rewards wait for long, with the reason."""
        cause = f"the zero of rewards is fixed by the first {REWARDS}"
        if self.observer.standardize and self.observer.units is None:
            seen = self.observer.seen
            cause = f"units are fixed when a feature was seen {MIN_SEEN} times, and the one "
            cause += f"that was seen most was seen {seen:.0f} times"
        self.observer.messages.append(
            f"{len(self.waiting)} rewards wait and are not learned: {cause}"
        )

    # -- arms -------------------------------------------------------------------------------------

    def add_arms(self, names: Iterable[Arm]) -> None:
        """Add arms of which nothing is known yet."""
        wider = self.arms.plus(names)
        self.posterior, self.arms = self._aligned(wider), wider

    def remove_arms(self, names: Iterable[Arm]) -> None:
        """Remove arms and what was learned about them ("shared": only the names)."""
        gone = self.arms.among(names)
        left = [arm for arm in self.arms.names if arm not in gone]
        fewer = self.arms.named(left)
        records = {name: one for name, one in self.arm_records.items() if name in left}
        waiting, provisional = _of(fewer, self.waiting), _of(fewer, self.provisional)
        self.posterior, self.arms, self.waiting, self.provisional, self.arm_records = (
            self._aligned(fewer),
            fewer,
            waiting,
            provisional,
            records,
        )

    # -- merging ----------------------------------------------------------------------------------

    def merged(self, other: LearnerState, base: LearnerState | None) -> LearnerState:
        """Return the merged state of both.

        An arm of the base that one of the two has removed since stays removed.

        Parameters
        ----------
        other : LearnerState
            The state to add.
        base : LearnerState or None
            The state that both started from, whose rewards count once.
        """
        if self.encoder is not None and other.encoder is not None:
            encoder = self.encoder.merged(other.encoder)
            if (self.encoder.names, other.encoder.names) != (encoder.names, encoder.names):
                return self.in_columns_of(encoder).merged(
                    other.in_columns_of(encoder),
                    None if base is None else base.in_columns_of(encoder),
                )
        arms = self._merged_arms(other, base)
        observer = self.observer.copy()
        observer.take_units_of(other.observer)
        known = Moments.empty(len(observer.moments.origin))
        if base is not None:
            known = base.observer.moments
        observer.merge_moments(other.observer.moments, known)
        observer.sample.merge(other.observer.sample)
        observer.merge_rewards(other.observer)
        if observer.is_ready:
            posterior, taught = self._converted(observer, arms)
            posterior.merge(
                other._converted(observer, arms)[0],
                base=None if base is None else base._converted(observer, arms)[0],
                is_sure=True,  # their lineage tells: early predictions may have been made again
            )
            result = LearnerState(arms, observer, posterior, self.encoder)
            # Those of the other one stay as they were predicted there.
            change = observer.from_units_of(self.observer)
            result.provisional = [
                one._replace(design=change @ one.design) for one in _of(arms, self.provisional)
            ]
            if self.fixed is not None:
                fixed = [one._replace(design=change @ one.design) for one in self.fixed]
                result.fixed = fixed + taught
        else:
            result = LearnerState(arms, observer, self._aligned(arms), self.encoder)
            result.fixed = self.fixed
            mine = {one.key for one in self.waiting}
            theirs = [one for one in other.waiting if one.key not in mine]
            gone = set() if base is None else {one.key for one in base.waiting} - mine
            theirs = [one for one in theirs if one.key not in gone]
            result.waiting = _of(arms, self.waiting + theirs)
        both = {**other.arm_records, **self.arm_records}
        result.arm_records = {name: one for name, one in both.items() if name in arms}
        result.observer.see(np.empty((0, observer.dim)))  # which fixes units that are due
        result._do_what_is_due(self.observer.next_look)
        return result

    def _merged_arms(self, other: LearnerState, base: LearnerState | None) -> Arms:
        old: tuple[Arm, ...] = () if base is None else base.arms.names
        gone = {arm for arm in old if arm not in self.arms or arm not in other.arms}
        mine = [arm for arm in self.arms.names if arm not in gone]
        new = [arm for arm in other.arms.names if arm not in self.arms and arm not in gone]
        if not mine + new and not self.arms.is_open:
            raise InvalidValue(
                "every arm was removed from one of these bandits: none would be left"
            )
        if base is not None and base.observer.is_ready:
            before, here, there = base.counts, self.counts, other.counts
            for arm in (arm for arm in mine if arm in base.arms):
                if min(here[arm], there[arm]) < before[arm]:
                    raise InvalidValue(
                        f"arm {arm!r} was removed and added again in one of these bandits since "
                        "their base: remove it from that one before they are merged"
                    )
        return self.arms.named(mine + new)

    def _converted(self, observer: Observer, arms: Arms) -> tuple[Posterior, list[Term]]:
        """Return a copy of all that was learned, in the units of `observer` and for these arms.

        With it come the terms of the rewards that had waited until then.
        """
        posterior = self._aligned(arms)
        change = observer.from_units_of(self.observer)
        posterior.change_units(
            in_every_block(change, len(arms.names)) if arms.is_hybrid else change
        )
        if self.observer.is_ready:  # else all of it waits, and the posterior is empty
            posterior.move_rewards(self.observer.offset - observer.offset)
        twin, waiting = (
            LearnerState(arms, observer, posterior, self.encoder),
            _of(arms, self.waiting),
        )
        return posterior, _terms(waiting, *twin._teach(posterior, observer, waiting))

    def _aligned(self, arms: Arms) -> Posterior:
        """Return a copy of the posterior with the parameters of `arms`, in their order."""
        posterior = self.posterior.copy()
        if arms.is_hybrid:
            width = self.observer.n_columns
            kept = [name for name in self.arms.names if name in arms]
            columns = np.arange(width)
            posterior.marginal(places_of(self.arms.blocks(kept), columns, width))
            posterior.spread(
                (1 + len(arms.names)) * width, places_of(arms.blocks(kept), columns, width)
            )
        if not arms.shared:
            unknown = [arm for arm in arms.names if arm not in self.arms]
            if unknown:
                posterior.extend(len(unknown))
            place = {arm: i for i, arm in enumerate((*self.arms.names, *unknown))}
            posterior.keep([place[arm] for arm in arms.names])
        return posterior


def widened(observation: Floats, places: Ints, siblings: Ints) -> Floats:
    """Return an observation in wider columns: 0 where a category was seen, missing elsewhere.

    Parameters
    ----------
    observation : ndarray of shape (d,)
        The observation.
    places : ndarray of int of shape (d,)
        The new place of each column.
    siblings : ndarray of int of shape (new d,)
        For each new place, a column of the same category; -1 if no level of it was known.
    """
    result = np.full(len(siblings), np.nan)
    known = siblings >= 0
    result[known] = np.where(np.isnan(observation[siblings[known]]), np.nan, 0.0)
    result[places] = observation
    return result


def spread_design(design: Floats, places: Ints, n_columns: int) -> Floats:
    """Return a design in more columns, which are 0 where it had none.

    Parameters
    ----------
    design : ndarray of shape (c,)
        The design.
    places : ndarray of int of shape (c,)
        The new place of each column.
    n_columns : int
        The new number of columns.
    """
    wider = np.zeros(n_columns)
    wider[places] = design
    return wider


def _terms(waiting: Sequence[Waiting], design: Floats, rewards: Floats) -> list[Term]:
    """Return the terms of rewards that waited, by their design and as they counted."""
    pairs = zip(waiting, design, rewards.tolist(), strict=True)
    return [Term(one.arm, row.copy(), reward, one.key) for one, row, reward in pairs]


def _of(arms: Arms, rewards: list[Kept]) -> list[Kept]:
    """Return the rewards of these arms; where arms share a parameter, all of them."""
    if arms.shared:
        # An open set of arms takes any name.
        if arms.is_open:
            return rewards
        if arms.is_hybrid:
            return [one for one in rewards if one.arm in arms]
        first = arms.names[0]
        return [one if one.arm in arms else one._replace(arm=first) for one in rewards]
    return [one for one in rewards if one.arm in arms]
