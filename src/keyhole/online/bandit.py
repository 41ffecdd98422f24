"""`Bandit`: a learner and what it has learned, used online by the names of arms."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from keyhole import checks
from keyhole.core import (
    MOST_ARMS,
    AnyLearner,
    Arm,
    Arms,
    Effects,
    Features,
    Floats,
    Ints,
    Learner,
    LearnerState,
    Policy,
    Posterior,
    Rule,
    Seed,
    choice_probabilities,
    choice_streams,
    kernels,
    seed_sequence,
)
from keyhole.errors import InvalidValue, KeyholeWarning, shown
from keyhole.files import Path
from keyhole.online import labels, records, sharing, storage
from keyhole.online.decision import Chance, Decision
from keyhole.online.decisions import Batch, Decisions
from keyhole.online.lineage import Lineage, Past
from keyhole.online.once import Once

# Types of rewards that compiled code takes as they are.
PLAIN_NUMBERS = frozenset({float, np.float64, bool})


class Bandit(sharing.Shared):
    """Choose among named arms from what is seen of them, and learn from the rewards.

    A bandit may be shared between threads: each call is done as a whole before the next. A forked
    child, a copy, and a bandit out of a pickle draw random numbers of their own.

    With a learner that fits an intercept, standardizes or fills in missing entries, the posterior
    is about what these make of observations and rewards: the constant first, features in their
    units, centred rewards. `effects` reports it in yours.

    Parameters
    ----------
    learner : Learner, Policy or AnyLearner
        How to choose and learn; a policy stands for the plain learner of it. An object of your own
        with the three functions of `AnyLearner` can choose and learn; what needs a posterior
        (effects, probabilities of all arms, merging, files) is refused.
    arms : int or iterable of str or int
        The names of the arms, or how many there are.
    dim : int
        The length of an observation.
    seed : int or numpy.random.SeedSequence, optional
        For a run that can be repeated. With the seed of a replication of `simulate`, which is
        `SeedSequence(seed, spawn_key=(k,))`, the bandit chooses the arms that are chosen there.
    probabilities : bool, default True
        Keep what the probability of each decision follows from. With very many arms, False is
        faster: it saves the widths of arms that lose this draw and could win another.

    Examples
    --------
    >>> import keyhole as kh
    >>> bandit = kh.Bandit(kh.ThompsonSampling(v=1.0), arms=["A", "B", "C"], dim=2, seed=7)
    >>> decision = bandit.choose([0.5, -1.0])
    >>> bandit.learn(decision, reward=1.0)
    >>> sum(bandit.counts.values())
    1
    """

    def __new__(cls, learner: Any = None, **_: Any) -> Self:
        """Return a bandit of the kind that fits the learner."""
        linear = isinstance(learner, Learner | Policy | type)
        if cls is Bandit and not linear and isinstance(learner, AnyLearner):
            from keyhole.online.own import OwnBandit

            return object.__new__(OwnBandit)  # type: ignore[return-value] # of this kind
        return object.__new__(cls)

    def __init__(
        self,
        learner: Learner | Policy | AnyLearner,
        *,
        arms: int | Iterable[Arm],
        dim: int,
        seed: Seed = None,
        probabilities: bool = True,
    ) -> None:
        learner = Learner.of(learner)
        is_number = isinstance(arms, Integral)
        names: Any = range(checks.integer("arms", arms, max_value=MOST_ARMS)) if is_number else arms
        learned = learner.start(names, checks.integer("dim", dim))
        self._set(
            learner, learned, choice_streams(seed), checks.flag("probabilities", probabilities)
        )

    def _set(
        self,
        learner: Learner,
        learned: LearnerState,
        random: kernels.Bits,
        probabilities: bool,
        lineage: Lineage | None = None,
        once: Once | None = None,
        columns: tuple[str, ...] | None = None,
    ) -> None:
        """Put a bandit together from its parts."""
        self._learner, self._rule = learner, learner.policy.plain_rule()
        self._learned, self._random = learned, random
        self._probabilities, self._columns = probabilities, columns
        self._lineage = Lineage() if lineage is None else lineage
        self._once = Once() if once is None else once
        # The compiled part for all arms; and the same if it is all that a decision takes: features
        # are plain, and nothing is left to do. The first is gone when arms or posterior may change.
        self._kept: kernels.Online | None = None
        self._everyday: kernels.Online | None = None
        # The same for the arms of the last `among`.
        self._subset: tuple[Arms, tuple[Arm, ...], Arms] | None = None
        self._kept_subset: kernels.Online | None = None
        # What an interrupted call has left to do, or to undo; the next call begins with it.
        self._unfinished: Callable[[], None] | None = None
        self._share()

    def _begin_anew(self) -> None:
        """Begin a run of its own, with random numbers of its own."""
        self._finish()
        self._lineage = Lineage(self._lineage.everything())
        self._random = choice_streams(None)
        self._kept = self._kept_subset = self._everyday = None

    # -- what it is -------------------------------------------------------------------------------

    @property
    def learner(self) -> Learner:
        """How the bandit chooses and learns. It keeps it: what it has learned depends on it."""
        return self._learner

    @property
    def policy(self) -> Policy:
        """How arms are scored."""
        return self._learner.policy

    @property
    def dim(self) -> int:
        """The length of an observation."""
        return self._learned.features.dim

    @property
    def probabilities(self) -> bool:
        """Whether decisions have a probability."""
        return self._probabilities

    @property
    def arms(self) -> tuple[Arm, ...]:
        """The names of the arms."""
        return self._learned.arms.names

    @property
    def _features(self) -> Features:
        return self._learned.features

    @property
    def posterior(self) -> Posterior:
        """A copy of what has been learned, as sums."""
        with self._lock:
            self._finish()
            return self._learned.posterior.copy()

    @property
    def counts(self) -> dict[Arm, int]:
        """How many rewards the parameter of each arm has learned ("shared": one for all)."""
        with self._lock:
            self._finish()
            return self._learned.counts

    @property
    def waiting(self) -> dict[Arm, int]:
        """How many rewards of each arm wait until units, and the rewards' zero, are fixed."""
        with self._lock:
            self._finish()
            return self._learned.waiting_counts

    @property
    def effects(self) -> dict[Arm, Effects]:
        """What each arm's reward was learned to be made of, in the features' own units.

        The estimates are those of least squares: unlike the posterior's mean they do not lean
        towards zero. An error is infinite while the rewards do not determine its effect.

        >>> import keyhole as kh
        >>> learner = kh.Learner(kh.Greedy(), intercept=True)
        >>> bandit = kh.Bandit(learner, arms=["A"], dim=1, seed=1)
        >>> for metres in range(100):
        ...     bandit.learn(bandit.choose([metres]), reward=20.0 + 3.0 * metres)
        >>> bandit.effects["A"].estimate.round(6).tolist()
        [20.0, 3.0]
        """
        with self._lock:
            self._finish()
            return self._learned.effects

    def __repr__(self) -> str:
        with self._lock:
            self._finish()
            learned = int(self._learned.posterior.state.n.sum())
            waiting = len(self._learned.waiting)
        size = f"{len(self.arms)} arms, dim={self.dim}, {learned} rewards learned"
        shown_learner = self.policy if self._learner.is_plain else self._learner
        return f"Bandit({shown_learner}, {size}{f', {waiting} waiting' if waiting else ''})"

    # -- choosing ---------------------------------------------------------------------------------

    def choose(self, y: ArrayLike, *, among: Iterable[Arm] | None = None) -> Decision:
        """Choose an arm from what is seen.

        Parameters
        ----------
        y : array_like of shape (dim,) or (n_arms, dim)
            What is seen for all arms, or a row for each. Where it has column names, they must be
            those that came first, in the same order.
        among : iterable of names, optional
            The arms available this time; rows of y are then theirs, in that order.
        """
        with self._lock:
            if among is None:
                everyday = self._everyday or self._begun()
                made: Decision | None = None if everyday is None else everyday.choose(y)
                if made is not None:
                    return made
            # Units and predictions may change now, and with them what a decision takes.
            self._everyday = None
            self._finish()
            decision = self._choose(y, among)
        if self._learned.features.messages:
            self._warn()
        return decision

    def _choose(self, y: ArrayLike, among: Iterable[Arm] | None) -> Decision:
        learned = self._learned
        plain = learned.features.is_plain
        arms = learned.arms if among is None else self._among(among)
        columns = self._columns if type(y) is np.ndarray else self._checked_columns(y)
        rows = filled = design = self._observed(y, arms.parameter_of.size)
        rule, offset = self._rule, 0.0
        if not plain:
            learned.features.note_clipped(rows, columns)
            filled, design = learned.prepared(rows)
            rule, offset = learned.rule_now(rule), learned.features.offset
        place, score, score_params, column = self._online(arms, rule).choose_rows(design)
        row = place if len(rows) > 1 else 0
        own = filled[row].copy() if len(rows) > 1 else filled[0]
        self._lineage.decisions += 1
        decision = Decision.made(
            arms.names[place],
            score + offset,
            own,
            None
            if score_params is None
            else Chance(score_params, column, rule.epsilon, arms.parameter_of.size),
            f"{self._lineage.run}-{self._lineage.decisions}",
            len(rows) == 1,
            *(() if plain else _missing_in(rows[row], own)),
        )
        self._columns = columns
        if not plain:
            self._see(rows)
        return decision

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
        """Return what is all that a decision takes, if features are plain or their units fixed."""
        self._finish()
        if self._learned.is_everyday:
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
            learned.posterior.core, rule, arms.parameter_of, self._probabilities
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
        )
        if is_usual:
            self._kept = online
        elif rule is self._rule:
            self._kept_subset = online
        return online

    def choose_many(self, y: ArrayLike, *, among: Iterable[Arm] | None = None) -> Decisions:
        """Choose an arm for each of n rounds from what is known now.

        Parameters
        ----------
        y : array_like of shape (n, dim) or (n, n_arms, dim)
            One row for all arms of a round, or a row for each arm.
        among : iterable of names, optional
            The arms available this time; rows of y are then theirs, in that order.
        """
        with self._at_work():
            return self._choose_many(y, among)

    def _choose_many(self, y: ArrayLike, among: Iterable[Arm] | None) -> Decisions:
        arms = self._learned.arms if among is None else self._learned.arms.among(among)
        parameter_of, features = arms.parameter_of, self._features
        columns, rounds = self._checked_columns(y), features.numbers(y)
        n, n_arms, dim = len(rounds) if rounds.ndim else 0, parameter_of.size, self.dim
        if rounds.shape not in ((n, dim), (n, n_arms, dim)):
            raise InvalidValue(
                f"y must have shape (n, {dim}), or (n, {n_arms}, {dim}) with a row for each of the "
                f"{n_arms} arms, got {rounds.shape}"
            )
        features.note_clipped(rounds, columns)
        filled, design = self._learned.prepared(rounds)
        rule = self._learned.rule_now(self._rule)
        chooser = kernels.Chooser(
            self._learned.posterior.core, rule, parameter_of, self._probabilities
        )
        z, uniforms = np.empty((n, n_arms)), np.empty((n, 2))
        kernels.fill_normals(self._random[0], z.reshape(-1))
        kernels.fill_uniforms(self._random[1], uniforms.reshape(-1))
        places, scores, location, scale = chooser.choose_rounds(
            design if design.ndim == 3 else design[:, None], z, uniforms
        )
        chosen, lineage = (np.arange(n), places), self._lineage
        own, for_all = filled if filled.ndim == 2 else filled[chosen], filled.ndim == 2
        missing = np.isnan(rounds if for_all else rounds[chosen])
        lineage.decisions += 1
        batch = Batch(
            [arms.names[place] for place in places],
            scores + features.offset,
            own,
            missing if missing.any() else None,
            (location, scale, rule.epsilon, places) if self._probabilities else None,
            f"{lineage.run}-{lineage.decisions}",
            for_all,
        )
        self._columns = columns
        self._see(rounds.reshape(-1, dim))
        return Decisions(batch)

    def choice_probabilities(
        self, y: ArrayLike, *, among: Iterable[Arm] | None = None
    ) -> dict[Arm, float]:
        """Return the exact probability of each arm being chosen at y, now; nothing is drawn.

        Parameters
        ----------
        y : array_like of shape (dim,) or (n_arms, dim)
            As in `choose`.
        among : iterable of names, optional
            As in `choose`.
        """
        with self._at_work():
            arms = self._learned.arms if among is None else self._learned.arms.among(among)
            parameter_of = arms.parameter_of
            self._checked_columns(y)
            rows = self._observed(y, parameter_of.size)
            _, design = self._learned.prepared(rows)
            rule = self._learned.rule_now(self._rule)
            location, scale = self._learned.posterior.scores(
                rule, parameter_of, design[None] if len(rows) > 1 else design
            )
        chances = choice_probabilities(location, scale, epsilon=rule.epsilon)
        return dict(zip(arms.names, chances[0].tolist(), strict=True))

    # -- learning ---------------------------------------------------------------------------------

    def learn(self, decision: Decision, reward: float, *, again: bool = False) -> None:
        """Learn the reward of a decision, now or much later, in any order, once.

        The observation of a decision that was made elsewhere counts as seen.

        Parameters
        ----------
        decision : Decision
            What `choose` gave, or was carried through JSON.
        reward : float
            Its reward; True and False are 1 and 0.
        again : bool, default False
            Learn one more reward of a decision that was learned already.

        Raises
        ------
        AlreadyLearned
            If its reward was learned: by this very object, or by one of the same id among the
            last 10,000 that were.
        """
        if again is False and (
            type(reward) in PLAIN_NUMBERS or (type(reward) is int and abs(reward) < 2**53)
        ):
            with self._lock:
                if self._everyday is not None and self._everyday.learn(decision, reward):
                    return
        if not isinstance(decision, Decision):
            raise InvalidValue(f"learn takes a Decision and its reward, got {shown(decision)}")
        if type(reward) is not float or not abs(reward) <= checks.LARGEST:
            yes_or_no = isinstance(reward, bool | np.bool_)
            reward = checks.real("reward", float(reward) if yes_or_no else reward)
        checks.flag("again", again)
        with self._lock:
            self._finish()
            self._learn(decision, reward, again)
        if self._learned.features.messages:
            self._warn()

    def _learn(self, decision: Decision, reward: float, again: bool) -> None:
        learned = self._learned
        features, y = learned.features, decision._observation
        if y.shape != (features.dim,):
            raise InvalidValue(
                f"this decision's observation has shape {y.shape}, not ({self.dim},)"
            )
        if decision._has_missing and features.missing is None:
            raise InvalidValue(
                "this decision's observation has missing entries, which need missing='predict'"
            )
        parameter = learned.arms.parameter(decision.arm)
        if not again:
            self._once.check(decision)
        if features.is_plain:
            n = learned.posterior.core.state.n
            # Ctrl-C may come between any two lines: the next call then does what is left.
            self._plan(
                partial(self._note_learned, decision, partial(n.item, parameter), n.item(parameter))
            )
            learned.posterior.learn_rows(np.array([parameter]), y[None], np.array([reward]))
        else:
            rows = y[None]
            raw = decision.raw[None] if decision._predicted else rows
            if features.watches and not self._lineage.has_seen(decision.id):
                self._see(raw)
            self._plan(partial(self._note_learned, decision, learned.total, learned.total()))
            learned.add([decision.arm], rows, raw, np.array([reward]), self._lineage.key())
        self._finish()

    def _note_learned(self, decision: Decision, total: Callable[[], float], before: float) -> None:
        """Remember that a reward was learned, if there are more now than before."""
        if total() > before:
            self._once.add(decision)
            self._lineage.additions += 1

    def learn_many(
        self, decisions: Iterable[Decision], rewards: ArrayLike, *, again: bool = False
    ) -> None:
        """Learn the rewards of many decisions: all of them, or, if one cannot be used, none.

        Parameters
        ----------
        decisions : Decisions or iterable of Decision
            The decisions.
        rewards : array_like of shape (n,)
            Their rewards.
        again : bool, default False
            As in `learn`.
        """
        if isinstance(decisions, Decisions):
            listed: Decisions | list[Decision] = decisions
            arms, y, raw = decisions.arms, decisions.observations, decisions.raw
        else:
            given_list: Any = decisions
            listed = list(given_list) if checks.is_listing(given_list) else [given_list]
            if strange := [each for each in listed if not isinstance(each, Decision)]:
                raise InvalidValue(f"learn_many takes Decisions, got {shown(strange[0])}")
            if shapes := {each.observation.shape for each in listed} - {(self.dim,)}:
                raise InvalidValue(f"an observation has shape {shapes.pop()}, not ({self.dim},)")
            arms = [each.arm for each in listed]
            y = np.array([each.observation for each in listed]).reshape(-1, self.dim)
            raw = np.array([each.raw for each in listed]).reshape(-1, self.dim)
        given = checks.floats("rewards", rewards)
        if given.shape != (len(arms),):
            raise InvalidValue(
                f"{len(arms)} decisions need as many rewards, got an array of shape {given.shape}"
            )
        if y.shape != (len(arms), self.dim):
            raise InvalidValue(f"observations have shape {y.shape}, not ({len(arms)}, {self.dim})")
        checks.flag("again", again)
        with self._at_work():
            if self._features.missing is None and np.isnan(y).any():
                raise InvalidValue(
                    "an observation has missing entries, which need missing='predict'"
                )
            indices = np.array([self._learned.arms.parameter(arm) for arm in arms], dtype=np.int64)
            if not again:
                self._once.check_many(listed)
            if self._features.watches:
                self._see(self._unseen(listed, raw))
            self._plan(self._undoing(np.unique(indices)))
            try:
                self._learned.add(arms, y, raw, given, self._lineage.key())
            except BaseException:
                self._finish()
                raise
            self._plan(partial(self._note_all_learned, listed))
            self._finish()

    def _unseen(self, decisions: Decisions | list[Decision], raw: Floats) -> Floats:
        """Return the observations of the decisions that this bandit has not seen yet."""
        if isinstance(decisions, Decisions):
            return raw[:0] if self._lineage.has_seen(decisions.id) else raw
        unseen = np.array([not self._lineage.has_seen(each.id) for each in decisions], dtype=bool)
        rows: Floats = raw[unseen]
        return rows

    def _note_all_learned(self, decisions: Decisions | list[Decision]) -> None:
        """Remember that these rewards were learned."""
        self._once.add_many(decisions)
        self._lineage.additions += len(decisions)

    def _undoing(self, indices: Ints) -> Callable[[], None]:
        """Return what takes back whatever is learned of these parameters from now on."""
        learned = self._learned
        posterior, features = learned.posterior, learned.features
        learned.features = features.copy()  # which is what changes
        rows, waiting, provisional = posterior.rows(indices), learned.waiting, learned.provisional
        n_provisional = len(provisional)

        def undo() -> None:
            self._kept = self._kept_subset = self._everyday = None
            posterior.put_back(indices, rows)
            learned.posterior, learned.features = posterior, features
            learned.waiting, learned.provisional = waiting, provisional[:n_provisional]

        return undo

    def observe(self, y: ArrayLike) -> None:
        """Take note of observations that no decision is wanted for.

        Units and predictions of missing entries follow from all that was observed: with a table of
        earlier observations they are there from the first decision on.

        Parameters
        ----------
        y : array_like of shape (n, dim) or (dim,)
            The observations.
        """
        with self._at_work():
            columns, rows = self._checked_columns(y), self._features.numbers(y)
            if rows.shape[-1:] != (self.dim,):
                raise InvalidValue(f"observations have {self.dim} numbers each, got {rows.shape}")
            self._columns = columns
            self._see(rows.reshape(-1, self.dim))

    def merge(self, other: Bandit, *, base: Bandit | None = None) -> None:
        """Add what another bandit has learned apart from this one; arms are matched by name.

        Arms that only the other has are added, and arms of the base that one of them has removed
        stay removed.

        Parameters
        ----------
        other : Bandit
            The bandit whose knowledge is added.
        base : Bandit, optional
            What both have in common: the bandit from which both went on. Without it, or with one
            that is not it, what they have in common would count twice, and the merge is refused.
        """
        for each in (other, base):
            if each is self:
                raise InvalidValue("a bandit cannot be merged with itself")
            if not isinstance(each, Bandit | None) or other is None:
                raise InvalidValue(
                    f"merge takes another Bandit, and one as base, got {shown(each)}"
                )
            if each is not None and (each.learner, each.dim) != (self.learner, self.dim):
                raise InvalidValue(
                    "only bandits of the same learner and dim can be merged, "
                    f"got {self.learner} of {self.dim} and {each.learner} of {each.dim}"
                )
        with sharing.all_locked(*(each for each in (self, other, base) if each is not None)):
            for each in (self, other, base):
                if each is not None:
                    each._finish()
            if other._columns is not None:
                labels.checked(other._columns, self._columns)
            self._lineage.check_merge(other._lineage, None if base is None else base._lineage)
            learned = self._learned.merged(other._learned, None if base is None else base._learned)
            twice = self._once.twice(other._once, None if base is None else base._once)
            if twice:
                learned.features.messages.append(
                    f"{twice} decisions were learned by both of these bandits, and count twice: a "
                    "reward was sent to two of them"
                )
            # All of it, or nothing: an interrupted assignment is done again by the next call.
            self._plan(
                partial(
                    self._take_over,
                    learned,
                    self._lineage.merged(other._lineage),
                    self._once.merged(other._once),
                    self._columns or other._columns,
                )
            )
            self._finish()
        self._warn()

    def _take_over(
        self,
        learned: LearnerState,
        pasts: dict[str, Past],
        once: Once,
        columns: tuple[str, ...] | None,
    ) -> None:
        """Know what a merge has put together."""
        self._kept = self._kept_subset = self._everyday = None
        self._learned, self._once, self._columns = learned, once, columns
        self._lineage.pasts = pasts

    # -- arms -------------------------------------------------------------------------------------

    def add_arms(self, arms: Iterable[Arm]) -> None:
        """Add arms of which nothing is known yet."""
        with self._at_work():
            self._learned.add_arms(arms)

    def remove_arms(self, arms: Iterable[Arm]) -> None:
        """Remove arms, and with them what was learned of them ("shared": only the names)."""
        with self._at_work():
            before = self._learned.arms
            try:
                self._learned.remove_arms(arms)
            finally:
                # A base without this arm would not have all that was learned before.
                self._lineage.additions += self._learned.arms is not before

    # -- files ------------------------------------------------------------------------------------

    def save(self, path: Path) -> None:
        """Write all of it to one file: policy, arms, posterior, and the random stream's place.

        The file takes its place in one step: after a crash in the middle, the old one is there.
        What `load` would refuse is refused here.
        """
        header, arrays = self.__getstate__()["file"]
        records.parse(header, arrays, self.policy)
        storage.write(path, header, arrays)

    @classmethod
    def load(
        cls,
        path: Path,
        *,
        policy: Policy | None = None,
        resume: bool = False,
        seed: Seed = None,
    ) -> Bandit:
        """Return the bandit of a file, with a random stream of its own.

        Two bandits loaded from one file therefore choose independently, as two servers should.

        Parameters
        ----------
        path : path-like
            The file.
        policy : Policy, optional
            Needed only for a policy class of your own, with the settings it was saved with.
        resume : bool, default False
            Choose to the bit as the saved one would have, with its random stream. It is for one
            process that takes the place of another: two that resume one file choose alike. Ids of
            decisions are new ones in any case: those given out before a crash may still come back.
            Another build of the kernels agrees to rounding only, and warns.
        seed : int, optional
            For a random stream that can be repeated.
        """
        if checks.flag("resume", resume) and seed is not None:
            raise InvalidValue("resume=True goes on with the saved random stream: give no seed")
        if not isinstance(policy, Policy | None):
            raise InvalidValue(f"policy must be a Policy, got {shown(policy)}")
        start = seed_sequence(seed)
        bandit = object.__new__(cls)
        header, arrays = storage.read(path)
        bandit._restore(records.parse(header, arrays, policy), resume)
        build = header["written_by"]["build"]
        if resume and build != kernels.BUILD:
            warnings.warn(
                f"{path} was written by the build {shown(build)} of the kernels, and this one is "
                f"{kernels.BUILD!r}: choices will agree to rounding, not to the bit. The "
                "environment variable KEYHOLE_BUILD names the build to use",
                KeyholeWarning,
                stacklevel=2,
            )
        if not resume:
            bandit._random[:] = choice_streams(start)
        return bandit

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            self._finish()
            parts = records.Saved(
                self._learner,
                self._learned,
                self._random.copy(),
                self._probabilities,
                self._lineage.everything(),
                self._once,
                self._columns,
            )
            return {"file": records.recorded(parts), "policy": self.policy}

    def __setstate__(self, state: dict[str, Any]) -> None:
        header, arrays = state["file"]
        self._restore(records.parse(header, arrays, state["policy"]), resume=False)

    def _restore(self, saved: records.Saved, resume: bool) -> None:
        self._set(
            saved.learner,
            saved.learned,
            saved.random if resume else choice_streams(None),
            saved.probabilities,
            Lineage(saved.pasts),
            saved.once,
            saved.columns,
        )

    # -- inside -----------------------------------------------------------------------------------

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        """Hold the lock, after what an interrupted call has left; warn at the end."""
        with self._lock:
            self._finish()
            self._everyday = None
            yield
        self._warn(stacklevel=5)  # of whoever called the method that is at work

    def _plan(self, unfinished: Callable[[], None]) -> None:
        """Have something done by `_finish`, by the next call if this one is interrupted."""
        self._everyday = None
        self._unfinished = unfinished

    def _finish(self) -> None:
        """Do what is unfinished. It may be done twice, if it is interrupted itself."""
        if self._unfinished is not None:
            self._unfinished()
            self._unfinished = None

    def _warn(self, stacklevel: int = 3) -> None:
        """Give the warnings that have gathered, now that all is done."""
        with self._lock:
            messages = self._learned.features.messages
            given, messages[:] = messages[:], []
        for message in given:
            warnings.warn(message, KeyholeWarning, stacklevel=stacklevel)

    def _checked_columns(self, y: object) -> tuple[str, ...] | None:
        """Return the names of features, by this observation or by one before."""
        names = None if type(y) in (np.ndarray, list, tuple) else labels.labels_of(y)
        return self._columns if names is None else labels.checked(names, self._columns)

    def _observed(self, y: ArrayLike, n_arms: int) -> Floats:
        """Return y as our own array of (1, dim) or (n_arms, dim), every number usable."""
        features = self._learned.features
        plain = type(y) is np.ndarray and y.dtype == np.float64 and features.missing is None
        rows = np.array(y if plain else features.numbers(y), order="C", ndmin=2)
        shape, dim = rows.shape, features.dim
        if shape != (1, dim) and shape != (n_arms, dim):
            raise InvalidValue(
                f"y must have shape ({dim},), or ({n_arms}, {dim}) with a row for each of the "
                f"{n_arms} arms, got {np.shape(y)}"
            )
        if plain and not checks.are_usable(rows):
            features.numbers(y)  # says which number it is, and where
        return rows

    def _see(self, rows: Floats) -> None:
        """Add observations to what was seen, where anything follows from that."""
        if self._features.watches:
            self._learned.see(rows)
            self._lineage.additions += len(rows)


def _missing_in(raw: Floats, filled: Floats) -> tuple[tuple[int, ...], bool]:
    """Return which entries of a row were missing, and whether one could not be predicted."""
    missing, left = np.isnan(raw), np.isnan(filled)
    return tuple(np.flatnonzero(missing & ~left).tolist()), bool(left.any())
