"""Choosing and learning of a bandit, once its arguments are checked and the lock is held.

Decisions from plain arrays and their rewards go through one compiled object, `kernels.Online`,
which is kept for as long as arms and posterior are the same. Observations with missing entries,
units or a constant are prepared here first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from keyhole import checks
from keyhole.core import (
    Arm,
    Arms,
    Chosen,
    Draws,
    Floats,
    Ints,
    LearnerState,
    Rule,
    choose_jointly,
    kernels,
)
from keyhole.errors import InvalidValue
from keyhole.online import arguments, labels
from keyhole.online.calls import WholeCalls
from keyhole.online.decision import Chance, Decision
from keyhole.online.decisions import Batch, Decisions


class Rounds(WholeCalls):
    """Choices and rewards of a bandit."""

    # Whether decisions keep the parts of every arm's score, for a log.
    _describes = False
    # Of the last batch then: these parts, the rows that the posterior saw of the chosen arms (None
    # if they are the observations themselves), and all observations.
    _last_batch: tuple[Floats, Floats | None, Floats]

    # -- choosing ---------------------------------------------------------------------------------

    def _choose(self, y: ArrayLike, among: Iterable[Arm] | None) -> Decision:
        learned = self._learned
        if learned.encoder is not None and among is None:  # a record is an array by now
            everyday = self._begun()
            made: Decision | None = None if everyday is None else everyday.choose(y)
            if made is not None:
                return made
            self._everyday = None
        plain = learned.is_plain
        arms = learned.arms if among is None else self._among(among)
        arguments.check_arms(arms)
        columns = self._columns if type(y) is np.ndarray else self._checked_columns(y)
        rows = filled = design = self._observed(learned, y, arms.parameter_of.size)
        rule, offset = self._rule, 0.0
        if not plain:
            learned.observer.note_clipped(rows, columns)
            filled, design = learned.prepared(rows)
            rule, offset = learned.rule_now(rule), learned.observer.offset
            design = learned.placed(design, arms)
        if rule.joint:
            parts = self._described(design[None], arms, rule)[0] if self._describes else None
            chosen, score = self._choose_jointly(design, rule, arms.parameter_of.size)
            place, score_params, column = chosen.arm, None, -1
        else:
            place, score, score_params, column, parts = self._online(arms, rule).choose_rows(design)
        row = place if len(rows) > 1 else 0
        own = filled[row].copy() if len(rows) > 1 else filled[0]
        self._lineage.decisions += 1
        decision = Decision.made(
            arms.names[place],
            score + offset,
            own,
            None
            if score_params is None
            else Chance(
                score_params, column, learned.posterior.uniform_rate(rule), arms.parameter_of.size
            ),
            f"{self._lineage.run}-{self._lineage.decisions}",
            len(rows) == 1,
            *(() if plain else _missing_in(rows[row], own)),
        )
        decision._grown, decision._recipe = learned.grown, learned.recipe
        if parts is not None:
            decision._description = parts
            decision._design = None if plain else design[place if len(design) > 1 else 0]
        if rule.joint and self._probabilities:
            decision._probability = chosen.probability
        self._columns = columns
        if not plain:
            self._see(rows)
        return decision

    def _described(self, design: Floats, arms: Arms, rule: Rule) -> Floats:
        """Return the parts of every arm's score, (n, 4, n_arms): see `kernels.Chooser`.

        Parameters
        ----------
        design : ndarray of shape (n, 1 or n_arms, n_columns)
            The rows of n rounds, as the posterior sees them.
        arms : Arms
            The arms.
        rule : Rule
            The rule that scores them.
        """
        posterior, parameter_of = self._learned.posterior, arms.parameter_of
        rows = design if design.shape[1] > 1 else design[:, 0]
        mean, width = posterior.predict(parameter_of, rows)
        explored = [part[parameter_of] for part in posterior.explorations(rule)]
        both = np.broadcast_to(np.array(explored), (len(design), 2, parameter_of.size))
        parts: Floats = np.concatenate([np.stack([mean, width], axis=1), both], axis=1)
        return parts

    def _choose_jointly(self, rows: Floats, rule: Rule, n_arms: int) -> tuple[Chosen, float]:
        """Choose by one sample of the shared parameter, with the next random numbers."""
        draws = Draws(np.empty(n_arms), np.empty(2))
        kernels.fill_normals(self._random[0], draws.normals)
        kernels.fill_uniforms(self._random[1], draws.uniforms)
        return choose_jointly(self._learned.posterior, rule, rows, n_arms, draws)

    def _among(self, names: Iterable[Arm]) -> Arms:
        """Return some of the arms; those of the last call are kept, as they often come again."""
        if not isinstance(names, tuple):  # which may have changed since
            return self._learned.arms.among(names)
        # By identity: (True,) equals (1,), and is refused.
        if self._subset is None or not (
            self._subset[0] is self._learned.arms and self._subset[1] is names
        ):
            self._subset = self._learned.arms, names, self._learned.arms.among(names)
        return self._subset[2]

    def _begun(self) -> kernels.Online | None:
        """Return the compiled part if it can decide alone: features are plain, or units fixed."""
        self._finish()
        learned = self._learned
        if learned.arms.names and learned.is_everyday and not self._rule.joint:
            self._everyday = self._online(self._learned.arms, self._rule)
        return self._everyday

    def _online(self, arms: Arms, rule: Rule) -> kernels.Online:
        """Return the compiled part for a rule among some arms; that for all arms is kept."""
        learned, once = self._learned, self._once
        is_usual = arms is learned.arms and rule is self._rule
        kept = self._kept if is_usual else self._kept_subset
        names = None if kept is None else kept.names
        is_same = names is arms.names and rule is self._rule
        everyday = learned.everyday if is_usual else None
        is_current = kept is not None and kept.chooser.core is learned.posterior.core
        if kept is not None and is_same and is_current and kept.everyday is everyday:
            return kept
        chooser = kernels.Chooser(
            learned.posterior.core, rule, arms.parameter_of, self._probabilities, self._describes
        )
        online = kernels.Online(
            chooser,
            arms.names,
            arms.parameters,
            self._random,
            self._lineage,
            once.recent,
            once.token,
            Decision,
            checks.LARGEST,
            everyday,
            learned.grown,
            learned.recipe,
        )
        if is_usual:
            self._kept = online
        elif rule is self._rule:
            self._kept_subset = online
        return online

    def _choose_many(self, y: ArrayLike, among: Iterable[Arm] | None) -> Decisions:
        if self._rule.joint:
            raise InvalidValue("choose_many needs draw='per-arm': choose jointly one by one")
        arms = self._learned.arms if among is None else self._learned.arms.among(among)
        arguments.check_arms(arms)
        parameter_of, observer = arms.parameter_of, self._observer
        columns, rounds = self._checked_columns(y), observer.numbers(y)
        n, n_arms, dim = len(rounds) if rounds.ndim else 0, parameter_of.size, observer.dim
        if rounds.shape not in ((n, dim), (n, n_arms, dim)):
            raise InvalidValue(
                f"y must have shape (n, {dim}), or (n, {n_arms}, {dim}) with a row for each of the "
                f"{n_arms} arms, got {rounds.shape}"
            )
        observer.note_clipped(rounds, columns)
        filled, design = self._learned.prepared(rounds)
        if self._learned.arms.is_hybrid:
            each = design if design.ndim == 3 else design[:, None]
            design = self._learned.placed(each, arms)
        rule = self._learned.rule_now(self._rule)
        each = design if design.ndim == 3 else design[:, None]
        parts = self._described(each, arms, rule) if self._describes else None
        places, scores, location, scale = self._choose_rounds(design, rule, parameter_of)
        rate = self._learned.posterior.uniform_rate(rule)
        chosen, lineage = (np.arange(n), places), self._lineage
        if parts is not None:
            seen = design[chosen] if design.ndim == 3 else design
            self._last_batch = parts, None if self._learned.is_plain else seen, rounds
        own, for_all = filled if filled.ndim == 2 else filled[chosen], filled.ndim == 2
        missing = np.isnan(rounds if for_all else rounds[chosen])
        lineage.decisions += 1
        batch = Batch(
            [arms.names[place] for place in places],
            scores + observer.offset,
            own,
            missing if missing.any() else None,
            (location, scale, rate, places) if self._probabilities else None,
            f"{lineage.run}-{lineage.decisions}",
            for_all,
            self._learned.grown,
            self._learned.recipe,
        )
        self._columns = columns
        self._see(rounds.reshape(math.prod(rounds.shape[:-1]), dim))
        return Decisions(batch)

    def _choose_rounds(
        self, design: Floats, rule: Rule, parameter_of: Ints
    ) -> tuple[Ints, Floats, Floats, Floats]:
        """Return places and scores of the chosen arms, (n,), and the inputs of probabilities."""
        n, n_arms = len(design), parameter_of.size
        chooser = kernels.Chooser(
            self._learned.posterior.core, rule, parameter_of, self._probabilities
        )
        z, uniforms = np.empty((n, n_arms)), np.empty((n, 2))
        kernels.fill_normals(self._random[0], z.reshape(-1))
        kernels.fill_uniforms(self._random[1], uniforms.reshape(-1))
        rows = design if design.ndim == 3 else design[:, None]
        chosen: tuple[Ints, Floats, Floats, Floats] = chooser.choose_rounds(rows, z, uniforms)
        return chosen

    def _scores(
        self, learned: LearnerState, y: ArrayLike, among: Iterable[Arm] | None
    ) -> tuple[tuple[Arm, ...], Floats, Floats, float]:
        """Return the arms, location and scale of their scores, (1, n_arms), and epsilon."""
        arms = learned.arms if among is None else learned.arms.among(among)
        arguments.check_arms(arms)
        self._checked_columns(y)
        rows = self._observed(learned, y, arms.parameter_of.size)
        _, design = learned.prepared(rows)
        design = learned.placed(design, arms)
        rule = learned.rule_now(self._rule)
        location, scale = learned.posterior.scores(
            rule, arms.parameter_of, design[None] if len(design) > 1 else design
        )
        return arms.names, location, scale, learned.posterior.uniform_rate(rule)

    # -- learning ---------------------------------------------------------------------------------

    def _key(self) -> str:
        """Return what tells the rewards that are learned next from all others."""
        return self._lineage.key()

    def _rows_of(self, decision: Decision) -> tuple[Floats, Floats]:
        """Return a decision's observation, filled in, and with NaN where entries were missing."""
        arguments.check_observation(decision._observation, self._observer.dim)
        self._check_missing(decision._observation)
        return decision._observation, decision.raw

    def _check_missing(self, y: Floats) -> None:
        """Raise if decisions' observations have missing entries, and may not."""
        observer = self._observer
        if observer.missing is None and (observer.layout.unseen or np.isnan(y).any()):
            raise InvalidValue(
                "this decision's observation has missing entries, which need missing='predict'"
            )

    def _rows_of_all(self, decisions: Decisions | list[Decision]) -> tuple[Floats, Floats]:
        """Return the same of many decisions, (n, dim) each."""
        y, raw = arguments.many_rows(decisions, self._observer.dim)
        self._check_missing(y)
        return y, raw

    def _check_recipe(self, recipe: str | None, sensor: Arm | None) -> None:
        """Raise if a decision was made from other columns, whatever their number."""
        if sensor is not None:
            raise InvalidValue(
                f"this decision was made through the sensor {sensor!r}, which needs a SensorLearner"
            )
        if recipe is None and self._learned.recipe is not None:
            raise InvalidValue(
                "this decision was made without features, and this bandit has some: its numbers "
                "would be taken for columns. Choose with this bandit; of a decision made by hand "
                "from columns, give recipe=features.start().digest"
            )
        if recipe is not None and recipe != self._learned.recipe:
            raise InvalidValue(
                "this decision was made with other features: their fields, levels, order or fit "
                "differ, and its numbers would be taken for others"
            )

    def _learn(self, decision: Decision, reward: float, again: bool) -> None:
        self._check_recipe(decision._recipe, decision.sensor)
        parameter = self._learned.arms.parameter(decision.arm)
        if not again:
            self._once.check(decision)
        y, raw = self._rows_of(decision)  # which may bring in new levels
        learned = self._learned
        observer, additions = learned.observer, self._lineage.additions + 1
        weights = self._weights([decision])
        if learned.is_plain:
            n = learned.posterior.core.state.n
            # Ctrl-C may come between any two lines: the next call then does what is left.
            self._plan(
                partial(
                    self._note_learned,
                    decision,
                    partial(n.item, parameter),
                    n.item(parameter),
                    additions,
                )
            )
            learned.posterior.learn_rows(
                np.array([parameter]), y[None], np.array([reward]), weights
            )
        else:
            if observer.watches and not self._has_seen(decision):
                # Made elsewhere: it is seen and learned, or neither, so that a retry counts once.
                self._learn_rows([decision], y[None], raw[None], np.array([reward]))
                return
            self._plan(
                partial(self._note_learned, decision, learned.total, learned.total(), additions)
            )
            learned.add([decision.arm], y[None], raw[None], np.array([reward]), self._key())
        self._finish()

    def _learn_many(self, given: arguments.Rewards, again: bool) -> None:
        decisions, rewards, arms = given.decisions, given.rewards, given.arms
        if isinstance(decisions, Decisions):
            self._check_recipe(decisions._batch.recipe, None)
        else:
            for each in decisions:
                self._check_recipe(each._recipe, each.sensor)
        self._learned.arms.parameters_of(arms)  # which raises if there is no such arm
        if not again:
            self._once.check_many(decisions)
        y, raw = self._rows_of_all(decisions)  # which may bring in new levels
        self._learn_rows(decisions, y, raw, rewards)

    def _learn_rows(
        self, decisions: Decisions | list[Decision], y: Floats, raw: Floats, rewards: Floats
    ) -> None:
        """See observations that are not known yet, and learn the rewards: all of it, or nothing.

        Parameters
        ----------
        decisions : Decisions or list of Decision
            The decisions.
        y, raw : ndarray of shape (n, dim)
            Their observations: filled in, and with NaN.
        rewards : ndarray of shape (n,)
            Their rewards.
        """
        learned, weights = self._learned, self._weights(decisions)
        arms = (
            decisions.arms if isinstance(decisions, Decisions) else [each.arm for each in decisions]
        )
        self._plan(self._undoing(np.unique(learned.arms.parameters_of(arms))))
        try:
            if learned.observer.watches:
                unseen = self._unseen(decisions, raw)
                learned.see(unseen)
                self._lineage.additions += len(unseen)
            learned.add(arms, y, raw, rewards, self._key(), weights)
        except BaseException:
            self._finish()
            raise
        additions = self._lineage.additions + len(decisions)
        self._plan(partial(self._note_all_learned, decisions, additions))
        self._finish()

    def _weights(self, decisions: Decisions | list[Decision]) -> Floats | None:
        """Return the weights of the rewards of some decisions; None if the policy has none."""
        if not self._rule.weighted:
            return None
        batch = decisions.probabilities if isinstance(decisions, Decisions) else None
        found = [each.probability for each in decisions] if batch is None else batch.tolist()
        for probability in found:
            if probability is None or not probability > 0.0:
                raise InvalidValue(
                    "a policy that weighs rewards needs the probability of each decision, above 0, "
                    f"got {probability}: learn decisions of a bandit with probabilities=True"
                )
        return self._learned.weights(self._rule, np.array(found, dtype=np.float64))

    def _unseen(self, decisions: Decisions | list[Decision], raw: Floats) -> Floats:
        """Return the observations of the decisions that this bandit has not seen yet."""
        if isinstance(decisions, Decisions):
            return raw[:0] if self._lineage.has_seen(decisions.id) else raw
        unseen = np.array([not self._has_seen(each) for each in decisions], dtype=bool)
        rows: Floats = raw[unseen]
        return rows

    def _has_seen(self, decision: Decision) -> bool:
        """Tell whether the observation of a decision was seen when it was made."""
        # A decision whose id was given to it knows its run alone.
        return decision._run == self._lineage.run or self._lineage.has_seen(decision.id)

    def _see(self, rows: Floats) -> None:
        """Add observations to the sums, if units or predictions depend on them.

        The sums change in one compiled call. If Ctrl-C comes after it, the next call updates units
        and predictions.
        """
        observer = self._observer
        if observer.watches:
            # Rows without any entry count, too, as they do in compiled calls.
            seen = observer.moments.seen.sum() + np.count_nonzero(~np.isnan(rows))
            additions = self._lineage.additions + len(rows)
            self._plan(partial(self._finish_seeing, observer.next_look, seen, additions))
            observer.rows.see_rows(rows)
            self._finish()

    # -- observations -----------------------------------------------------------------------------

    def _checked_columns(self, y: object) -> tuple[str, ...] | None:
        """Return the names of features, by this observation or by one before."""
        names = None if type(y) in (np.ndarray, list, tuple) else labels.labels_of(y)
        return self._columns if names is None else labels.checked(names, self._columns)

    def _observed(self, learned: LearnerState, y: ArrayLike, n_arms: int) -> Floats:
        """Return y as our own array of (1, dim) or (n_arms, dim), every number usable."""
        observer = learned.observer
        plain = type(y) is np.ndarray and y.dtype == np.float64 and observer.missing is None
        plain = plain and not observer.layout.unseen
        rows = np.array(y if plain else observer.numbers(y), order="C", ndmin=2)
        arguments.check_rows(y, rows.shape, n_arms, observer.dim)
        if plain and not checks.are_usable(rows):
            observer.numbers(y)  # says which number it is, and where
        return rows


def _missing_in(raw: Floats, filled: Floats) -> tuple[tuple[int, ...], bool]:
    """Return which entries of a row were missing, and whether one could not be predicted."""
    missing, left = np.isnan(raw), np.isnan(filled)
    return tuple(np.flatnonzero(missing & ~left).tolist()), bool(left.any())
