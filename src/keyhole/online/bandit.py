"""`Bandit`: a learner and what it has learned, used online by the names of arms."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from keyhole import checks
from keyhole.core import (
    AnyLearner,
    Arm,
    Effects,
    Learner,
    Policy,
    Posterior,
    Recipe,
    Seed,
    SensorLearner,
    choice_probabilities,
    choice_streams,
    kernels,
    seed_sequence,
)
from keyhole.errors import InvalidValue, KeyholeWarning, UnknownArm, shown
from keyhole.files import Path, Source, Target, given_name
from keyhole.online import arguments, storage
from keyhole.online.arguments import Observed, ObservedMany
from keyhole.online.decision import Decision
from keyhole.online.decisions import Decisions
from keyhole.online.explaining import (
    Explanation,
    check_available,
    check_for_all,
    check_not_joint,
    check_observed,
    explained,
)
from keyhole.online.lineage import Lineage
from keyhole.online.named import Named

if TYPE_CHECKING:
    from keyhole.online.log import Log

# Types of rewards that compiled code takes as they are.
PLAIN_NUMBERS = frozenset({float, np.float64, bool})


class Bandit(Named):
    """Choose among named arms from observations, and learn from the rewards.

    A bandit may be shared between threads: each call is done as a whole before the next. A forked
    child, a copy, and a bandit out of a pickle draw random numbers of their own.

    With a learner that fits an intercept, standardizes or fills in missing entries, the posterior
    is that of the converted observations and rewards: the constant first, features in their units,
    centred rewards. `effects` are in the original units.

    Parameters
    ----------
    learner : Learner, Policy or AnyLearner
        The learner; a policy stands for `Learner(policy)`. An object of your own with the three
        functions of `AnyLearner` can choose and learn; operations that need a posterior (effects,
        probabilities of all arms, merging, files) are refused.
    arms : int or iterable of str or int
        The names of the arms, or how many there are; or a dict from their names to their records,
        for features of arms that are always the same.
    dim : int, optional
        The length of an observation. Not needed if the learner has features.
    seed : int or numpy.random.SeedSequence, optional
        Seed of the random streams. With the seed of a replication of `simulate`, which is
        `SeedSequence(seed, spawn_key=(k,))`, the bandit chooses the arms that are chosen there.
    probabilities : bool, default True
        Keep the inputs of each decision's probability. With very many arms, False is faster: the
        widths of arms that lose this draw but could win another are then not computed.
    log : Log or path-like, optional
        Log of all decisions and rewards. Rewards can then be learned by the id of a decision, too,
        and each event is learned once, however old it is.

    Examples
    --------
    >>> import keyhole as kh
    >>> bandit = kh.Bandit(kh.ThompsonSampling(v=1.0), arms=["A", "B", "C"], dim=2, seed=7)
    >>> decision = bandit.choose([0.5, -1.0])
    >>> bandit.learn(decision, reward=1.0)
    >>> sum(bandit.counts.values())
    1
    """

    def __new__(cls, learner: Any = None, *, log: Any = None, **_: Any) -> Self:
        """Return a bandit of the kind that fits the learner."""
        if cls is not Bandit:
            return object.__new__(cls)
        linear = isinstance(learner, Learner | Policy | type) or not isinstance(learner, AnyLearner)
        made: Any = object.__new__(_kind_of(learner, linear, log is not None))
        return made  # type: ignore[no-any-return] # of this kind

    def __init__(
        self,
        learner: Learner | Policy | AnyLearner,
        *,
        arms: int | Iterable[Arm] | Mapping[Arm, Any],
        dim: int | None = None,
        seed: Seed = None,
        probabilities: bool = True,
        log: Log | Path | None = None,
    ) -> None:
        if log is not None:
            self._begin_log(log)
        learner = Learner.of(learner)
        length = None if dim is None else checks.integer("dim", dim)
        learned = learner.start(arguments.arm_names(arms), length)
        self._set(
            learner, learned, choice_streams(seed), checks.flag("probabilities", probabilities)
        )
        records, encoder = self._checked_records(arms)
        if encoder is not None:
            self._know(encoder)
        self._learned.arm_records = records

    # -- properties -------------------------------------------------------------------------------

    @property
    def learner(self) -> Learner:
        """The learner. It cannot be replaced: what the bandit has learned depends on it."""
        return self._learner

    @property
    def policy(self) -> Policy:
        """The policy, which scores arms."""
        return self._learner.policy

    @property
    def dim(self) -> int:
        """The length of an observation."""
        return self._learned.observer.dim

    @property
    def probabilities(self) -> bool:
        """True if decisions have a probability."""
        return self._probabilities

    @property
    def log(self) -> Log | None:
        """The log that the bandit writes to, if there is one."""
        return None

    @property
    def arms(self) -> tuple[Arm, ...]:
        """The names of the arms."""
        return self._learned.arms.names

    @property
    def posterior(self) -> Posterior:
        """A copy of the posterior, as sums."""
        with self._lock:
            self._finish()
            return self._learned.posterior.copy()

    @property
    def counts(self) -> dict[Arm, int]:
        """The number of rewards learned by the parameter of each arm ("shared": one for all)."""
        with self._lock:
            self._finish()
            return self._learned.counts

    @property
    def waiting(self) -> dict[Arm, int]:
        """The number of rewards of each arm that wait until units and the zero are fixed."""
        with self._lock:
            self._finish()
            return self._learned.waiting_counts

    @property
    def effects(self) -> dict[Arm, Effects]:
        """The effects of features on each arm's reward, in the features' own units.

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

    def choose(
        self, y: Observed, *, among: Iterable[Arm] | None = None, sensor: object = None
    ) -> Decision:
        """Choose an arm from an observation.

        Parameters
        ----------
        y : array_like of shape (dim,) or (n_arms, dim), or record
            One observation for all arms, or a row for each. Column names, if there are any, must be
            those of the first observation, in the same order. With features, a record: a dict or a
            row of a frame.
        among : iterable of names, or dict of names and records, optional
            The arms available this time; rows of y are then theirs, in that order. With features
            of arms, their records by name. With a shared parameter these arms may be new.
        sensor : str, int or Sensor, optional
            The sensor that y is a measurement of, for a `SensorLearner`.
        """
        if sensor is not None:
            raise InvalidValue(f"sensor needs a SensorLearner, got {shown(self._learner)}")
        with self._lock:
            if among is None:
                everyday = self._everyday or self._begun()
                # With features, records are encoded first.
                if everyday is not None and (self._takes_numbers or self._is_array(y)):
                    made: Decision | None = everyday.choose(y)
                    if made is not None:
                        return made
            # Units and predictions may change now, and with them what a decision takes.
            self._everyday = None
            self._finish()
            decision = self._choose(*self._numbers_of(y, among))
        if self._learned.observer.messages:
            self._warn()
        return decision

    def choose_many(self, y: ObservedMany, *, among: Iterable[Arm] | None = None) -> Decisions:
        """Choose an arm for each of n rounds from the present posterior.

        Parameters
        ----------
        y : array_like of shape (n, dim) or (n, n_arms, dim)
            One row for all arms of a round, or a row for each arm.
        among : iterable of names, optional
            The arms available this time; rows of y are then theirs, in that order.
        """
        with self._at_work():
            return self._choose_many(*self._encoded_many(y, among))

    def choice_probabilities(
        self, y: Observed, *, among: Iterable[Arm] | None = None
    ) -> dict[Arm, float]:
        """Return the exact probability of each arm being chosen at y, now; nothing is drawn.

        Parameters
        ----------
        y : array_like of shape (dim,) or (n_arms, dim)
            As in `choose`.
        among : iterable of names, optional
            As in `choose`.
        """
        arguments.check_not_joint(self._rule)
        with self._at_work():
            rows, arms, encoder = self._encoded(y, among)
            learned = self._learned if encoder is None else self._learned.in_columns_of(encoder)
            names, location, scale, epsilon = self._scores(learned, rows, arms)
        chances = choice_probabilities(location, scale, epsilon=epsilon)
        return dict(zip(names, chances[0].tolist(), strict=True))

    def explain(
        self, decision: Decision, y: Any = None, *, among: Iterable[Arm] | None = None
    ) -> Explanation:
        """Explain a decision by the contribution of each feature; nothing changes.

        Policies with draw="joint" are refused: probabilities of their arms are not known.

        Parameters
        ----------
        decision : Decision
            The decision.
        y : array_like or record, optional
            The observation of all arms that the decision was made from. It is needed if arms had a
            row or a record each, since a decision holds that of the chosen arm only, and for a
            decision that came through JSON. Another observation is refused.
        among : iterable of names, or dict of names and records, optional
            The arms that were available, as in `choose`.

        Examples
        --------
        >>> import keyhole as kh
        >>> features = kh.Features(numbers=["age"], booleans=["member"])
        >>> bandit = kh.Bandit(kh.Learner(kh.Greedy(), features), arms=["A", "B"], seed=1)
        >>> for age in range(100):
        ...     decision = bandit.choose({"age": age, "member": age % 2 == 0})
        ...     bandit.learn(decision, reward=(decision.arm == "A") + 0.1 * age)
        >>> bandit.explain(bandit.choose({"age": 50, "member": True})).arm
        'A'
        """
        check_not_joint(self._rule)
        decision = arguments.checked_decision(decision)
        with self._at_work():
            if y is None:
                check_for_all(decision)
            self._check_recipe(decision._recipe, decision.sensor)
            encoder = self._encoder_of([decision])
            if y is None:
                names = tuple(among) if isinstance(among, Mapping) else among
                rows: Any = self._in_columns(decision, encoder)[0]
            else:
                rows, names, wider = self._encoded(y, among, encoder)
                encoder = wider or encoder  # numbers are columns of what is known
            learned = self._learned if encoder is None else self._learned.in_columns_of(encoder)
            arms = learned.arms if names is None else learned.arms.among(names)
            if decision.arm not in arms.names:
                raise UnknownArm(f"{decision.arm!r} is none of the arms {list(arms.names)[:10]}")
            check_available(decision, len(arms.names))
            seen = self._observed(learned, rows, arms.parameter_of.size)
            own, raw = self._in_columns(decision, encoder)
            if y is not None:
                row = arms.names.index(decision.arm) if len(seen) > 1 else 0
                check_observed(decision, raw, seen[row], learned.observer.layout)
            if len(seen) == 1:
                seen = own[None].copy()  # with the predictions that it was chosen by
            is_own = (decision.id or "").startswith(f"{self._lineage.run}-")
            return explained(learned, self._rule, decision, arms.names, seen, raw, is_own)

    # -- learning ---------------------------------------------------------------------------------

    def learn(
        self,
        decision: Decision | str,
        reward: float,
        *,
        again: bool = False,
        context: ArrayLike | None = None,
    ) -> None:
        """Learn the reward of a decision, now or much later, in any order, once.

        The observation of a decision that was made elsewhere counts as seen.

        Parameters
        ----------
        decision : Decision or str
            The decision, from `choose` or carried through JSON; with a log, its id.
        reward : float
            Its reward; True and False are 1 and 0.
        again : bool, default False
            Learn one more reward of a decision that was learned already.
        context : array_like of shape (context_dim,), optional
            The context, if it is known by now, for a `SensorLearner`.

        Raises
        ------
        AlreadyLearned
            If its reward was learned already: with this very object, or with one of the same id
            among the last 10,000 learned.
        """
        if context is not None:
            raise InvalidValue(f"context needs a SensorLearner, got {shown(self._learner)}")
        if again is False and (
            type(reward) is float  # first: a set takes 15 ns
            or type(reward) in PLAIN_NUMBERS
            or (type(reward) is int and abs(reward) < 2**53)
        ):
            with self._lock:
                everyday = self._everyday or self._begun()
                if everyday is not None and everyday.learn(decision, reward):
                    return
        decision = arguments.checked_decision(decision)
        if type(reward) is not float or not abs(reward) <= checks.LARGEST:
            reward = arguments.reward_number(reward)
        checks.flag("again", again)
        with self._lock:
            # What is learned may be replaced now, and compiled code would go on with the old.
            self._everyday = None
            self._finish()
            self._learn(decision, reward, again)
        if self._learned.observer.messages:
            self._warn()

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
        given = arguments.many_rewards(decisions, rewards)
        checks.flag("again", again)
        with self._at_work():
            self._learn_many(given, again)

    def learn_context(self, decision: Decision, context: ArrayLike) -> None:  # noqa: ARG002
        """Learn the context of a decision whose reward was learned, with a `SensorLearner`.

        Parameters
        ----------
        decision : Decision
            The decision.
        context : array_like of shape (context_dim,)
            The context.

        Raises
        ------
        InvalidValue
            If the learner is not a `SensorLearner`.
        """
        raise InvalidValue(f"learn_context needs a SensorLearner, got {shown(self.learner)}")

    def amend(self, event: str, reward: float) -> None:  # noqa: ARG002
        """Replace the reward of a decision that was learned: b += (new - old) y, exactly.

        It needs a log. Where rewards have a zero of their own, or features units, these stay as
        they are.

        Parameters
        ----------
        event : str
            The id of the decision.
        reward : float
            The reward that replaces the one that was learned.

        Raises
        ------
        UnknownEvent
            If no decision of the log has this id.
        ForgottenEvent
            If it was forgotten.
        InvalidValue
            If it has no reward yet, or several, or the learner has no sums; or as `forget`.

        Examples
        --------
        >>> import os, tempfile
        >>> import keyhole as kh
        >>> path = os.path.join(tempfile.mkdtemp(), "decisions.jsonl")
        >>> bandit = kh.Bandit(kh.Greedy(), arms=["A"], dim=1, log=path)
        >>> decision = bandit.choose([2.0])
        >>> bandit.learn(decision, reward=0.0)  # what is known so far
        >>> bandit.amend(decision.id, reward=3.0)
        >>> bandit.posterior.moment.tolist(), bandit.counts
        ([[6.0]], {'A': 1})
        """
        raise InvalidValue("amend needs a log, in which events are found: Bandit(..., log=path)")

    def forget(self, event: str) -> None:  # noqa: ARG002
        """Take the rewards of a decision out again: the sums are those of a log without them.

        It needs a log. From then on a reward for this event is refused. The rows stay in the file.
        Units of features and predictions of missing entries, which follow from all observations,
        stay as they are.

        Parameters
        ----------
        event : str
            The id of the decision.

        Raises
        ------
        UnknownEvent
            If no decision of the log has this id.
        ForgottenEvent
            If it was forgotten already.
        InvalidValue
            If the learner has no sums, or its numbers are so much larger than all others that their
            rounding would be all that stays in the sums.
        """
        raise InvalidValue("forget needs a log, in which events are found: Bandit(..., log=path)")

    def observe(self, y: ObservedMany) -> None:
        """Add observations without a decision.

        Units and predictions of missing entries are computed from all observations: with a table of
        earlier ones they are available from the first decision on.

        Parameters
        ----------
        y : array_like of shape (n, dim) or (dim,)
            The observations.
        """
        with self._at_work():
            seen: Any = y
            if self._learned.encoder is not None and not self._is_columns(y):
                seen, wider = self._learned.encoder.encode_frame(y)
                self._know(wider, seen)
            else:
                self._check_columns(y)
            columns, rows = self._checked_columns(seen), self._observer.numbers(seen)
            if rows.shape[-1:] != (self.dim,):
                raise InvalidValue(f"observations have {self.dim} numbers each, got {rows.shape}")
            self._columns = columns
            self._see(rows.reshape(math.prod(rows.shape[:-1]), self.dim))

    def merge(self, other: Bandit, *, base: Bandit | None = None) -> None:
        """Add the rewards that another bandit has learned; arms are matched by name.

        Arms that only the other has are added, and arms of the base that one of them has removed
        stay removed.

        Parameters
        ----------
        other : Bandit
            The bandit whose rewards are added.
        base : Bandit, optional
            The bandit that both started from, as it was then, whose rewards count once. If a common
            base is missing, or another bandit is given, rewards would count twice and the merge is
            refused.
        """
        for each in (other, base):
            if each is self:
                raise InvalidValue("a bandit cannot be merged with itself")
            if not isinstance(each, Bandit | None) or other is None:
                raise InvalidValue(
                    f"merge takes another Bandit, and one as base, got {shown(each)}"
                )
            if each is not None and not self._can_merge(each):
                raise InvalidValue(
                    "only bandits of the same learner and dim can be merged, "
                    f"got {self.learner} of {self.dim} and {each.learner} of {each.dim}"
                )
        self._merge(other, base)
        self._warn()

    def _can_merge(self, other: Bandit) -> bool:
        """Tell whether another bandit learns in the same way; it may have levels of its own."""
        same_dim = self.dim == other.dim or self._learned.encoder is not None
        return self.learner == other.learner and same_dim

    # -- arms -------------------------------------------------------------------------------------

    def add_arms(self, arms: Iterable[Arm]) -> None:
        """Add arms of which nothing is known yet.

        Parameters
        ----------
        arms : iterable of names, or dict of names and records
            The arms. With features of arms, their records by name, if the bandit keeps those of
            its other arms.
        """
        with self._at_work():
            self._check_described(arms)
            records, encoder = self._checked_records(arms)
            if encoder is not None:
                self._learned.arms.plus(arms)  # or raise, before anything changes
                self._know(encoder)
            self._learned.add_arms(arms)
            self._learned.arm_records = {**self._learned.arm_records, **records}

    def remove_arms(self, arms: Iterable[Arm]) -> None:
        """Remove arms and what was learned about them ("shared": only the names)."""
        with self._at_work():
            before = self._learned.arms
            try:
                self._learned.remove_arms(arms)
            finally:
                # A base without this arm would not have all that was learned before.
                self._lineage.additions += self._learned.arms is not before

    # -- files ------------------------------------------------------------------------------------

    def save(self, target: Target) -> None:
        """Write the bandit to one file: policy, arms, posterior and the random streams' states.

        A path is replaced in one step: after a crash in the middle, the old file is there. An open
        file is written from where it stands, and stays open. A bandit that `load` would refuse is
        refused here, before anything is written.

        Parameters
        ----------
        target : path-like or binary file
            The file.

        Raises
        ------
        FileError
            If the folder does not exist or cannot be written to, or the disk is full.
        """
        record = self._snapshot()
        storage.parse(record, self.policy, self._learner.features)
        storage.write(target, record)

    def to_bytes(self) -> bytes:
        """Return the content that `save` writes, for a database or a message; `load` reads it.

        Examples
        --------
        >>> import keyhole as kh
        >>> bandit = kh.Bandit(kh.ThompsonSampling(), arms=["A", "B"], dim=2, seed=7)
        >>> kh.Bandit.load(bandit.to_bytes()).arms
        ('A', 'B')
        """
        return storage.as_bytes(self.save)

    @classmethod
    def load(
        cls,
        source: Source,
        *,
        policy: Policy | None = None,
        features: Recipe | None = None,
        resume: bool = False,
        seed: Seed = None,
        log: Log | Path | None = None,
    ) -> Bandit:
        """Return a saved bandit, with a random stream of its own.

        Two bandits loaded from one file therefore choose independently, as two servers should.

        Parameters
        ----------
        source : path-like, binary file or bytes
            A path, an open file that can seek and holds nothing after the bandit, or the result of
            `to_bytes`.
        policy : Policy, optional
            Needed only for a policy class of your own, with the settings it was saved with.
        features : Transformed, optional
            Needed only for features around a transformer, which no file can hold.
        resume : bool, default False
            Continue the saved random stream, so that choices equal those of the saved bandit to the
            bit. It is for one process that replaces another: two that resume one file make the same
            choices. Ids of decisions are new in any case, since rewards of earlier ones may still
            arrive. Another build of the kernels agrees to rounding only, and warns.
        seed : int, optional
            Seed of a new random stream.
        log : Log or path-like, optional
            A new log, as in `Bandit`.

        Raises
        ------
        FileError
            If there is no file, it cannot be read, or it is damaged.

        Examples
        --------
        >>> import io
        >>> import keyhole as kh
        >>> file = io.BytesIO()  # or "bandit.npz", or open("bandit.npz", "wb")
        >>> kh.Bandit(kh.Greedy(), arms=["A", "B"], dim=2).save(file)
        >>> kh.Bandit.load(file)
        Bandit(Greedy(), 2 arms, dim=2, 0 rewards learned)
        """
        if checks.flag("resume", resume) and seed is not None:
            raise InvalidValue("resume=True goes on with the saved random stream: give no seed")
        if not isinstance(policy, Policy | None):
            raise InvalidValue(f"policy must be a Policy, got {shown(policy)}")
        random = None if resume else choice_streams(seed_sequence(seed))
        if not isinstance(features, Recipe | None):
            raise InvalidValue(f"features must be a Transformed, got {shown(features)}")
        kind: type[Bandit] = cls
        if log is not None:
            from keyhole.online.logged import LoggedBandit

            kind = LoggedBandit
        bandit, build = storage.load(
            source, partial(kind._of_record, policy=policy, features=features, random=random)
        )
        if log is not None:
            bandit._begin_log(log)
        if resume and build != kernels.BUILD:
            warnings.warn(
                f"{given_name(source)} was written by the build {shown(build)} of the kernels, and "
                f"this one is {kernels.BUILD!r}: choices will agree to rounding, not to the bit. "
                "The environment variable KEYHOLE_BUILD names the build to use",
                KeyholeWarning,
                stacklevel=2,
            )
        return bandit

    @classmethod
    def from_log(
        cls,
        log: Log | Path,
        *,
        policy: Policy | None = None,
        features: Recipe | None = None,
        learner: AnyLearner | None = None,
    ) -> Bandit:
        """Restore the bandit that wrote a log, to the bit, and continue the log.

        It is for one process that replaces another, after a crash or a restart. Ids of its
        decisions are new; rewards of earlier decisions are learned as before.

        Parameters
        ----------
        log : Log or path-like
            The log.
        policy, features
            As in `load`.
        learner : AnyLearner, optional
            Needed only for a learner of your own, with the settings that it had. Its state follows
            from its calls, which are made again.

        Raises
        ------
        FileError
            If there is no log, or a row does not follow from those before it.

        Examples
        --------
        >>> import os, tempfile
        >>> import keyhole as kh
        >>> path = os.path.join(tempfile.mkdtemp(), "decisions.jsonl")
        >>> bandit = kh.Bandit(kh.ThompsonSampling(), arms=["A", "B"], dim=1, log=path)
        >>> event = bandit.choose([1.0]).id
        >>> bandit.log.close()  # as a crash would
        >>> again = kh.Bandit.from_log(path)
        >>> again.learn(event, reward=1.0)
        >>> sum(again.counts.values())
        1
        """
        from keyhole.online.log.replaying import Own, resumed

        return resumed(log, Own(policy, features, learner))

    def _begin_log(self, log: Log | Path) -> None:
        """Begin to write to a log; bandits that do are of another class."""
        raise InvalidValue(f"log={shown(log)} needs Bandit itself, got a {type(self).__name__}")

    @classmethod
    def _of_record(
        cls,
        record: storage.Record,
        *,
        policy: Policy | None,
        features: Recipe | None,
        random: kernels.Bits | None,
    ) -> Bandit:
        """Return the bandit of a file's content, of the kind that it is."""
        if record.header["format"] == storage.SENSOR_FORMAT:
            from keyhole.online import sensor_storage
            from keyhole.online.sensing import SensorBandit

            return SensorBandit.of_parts(sensor_storage.parse(record, policy), random)
        parts = storage.parse(record, policy, features)
        bandit = object.__new__(cls)
        bandit._restore(parts, parts.random if random is None else random)
        return bandit

    def _snapshot(self) -> storage.Record:
        with self._lock:
            self._finish()
            return storage.snapshot(
                storage.Parts(
                    self._learner,
                    self._learned,
                    self._random,
                    self._probabilities,
                    self._lineage.everything(),
                    self._once,
                    self._columns,
                )
            )

    def _restore(self, parts: storage.Parts, random: kernels.Bits) -> None:
        self._set(
            parts.learner,
            parts.learned,
            random,
            parts.probabilities,
            Lineage(parts.pasts),
            parts.once,
            parts.columns,
        )

    def __getstate__(self) -> dict[str, Any]:
        learner = self._learner
        return {
            "record": self._snapshot(),
            "policy": learner.policy,
            "features": learner.features,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Arrays out of a pickle may be read-only, or memory that others use.
        record = state["record"].copy()
        parts = storage.parse(record, state["policy"], state["features"])
        self._restore(parts, choice_streams(None))


def _kind_of(learner: object, linear: bool, logged: bool) -> type[Bandit]:
    """Return the class of the bandits of a learner.

    Parameters
    ----------
    learner : object
        The learner.
    linear : bool
        Whether it is a `Learner`, a policy, or none at all, which is then refused.
    logged : bool
        Whether there is a log.
    """
    if linear and not logged:
        return Bandit
    from keyhole.online.own import OwnBandit
    from keyhole.online.sensing import SensorBandit

    has_sensors = isinstance(learner, SensorLearner)
    if not logged:
        return SensorBandit if has_sensors else OwnBandit
    from keyhole.online.logged import LoggedBandit, LoggedOwnBandit, LoggedSensorBandit

    return LoggedBandit if linear else LoggedSensorBandit if has_sensors else LoggedOwnBandit
