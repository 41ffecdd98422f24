"""`OwnBandit`: a bandit of any learner that starts, chooses and learns."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from keyhole import checks
from keyhole.core import (
    AnyLearner,
    Arm,
    Arms,
    Chosen,
    Draws,
    Floats,
    Seed,
    checked_choice,
    choice_streams,
    kernels,
)
from keyhole.errors import InvalidValue, shown
from keyhole.online import arguments
from keyhole.online.bandit import Bandit
from keyhole.online.decision import Decision
from keyhole.online.holding import held_interrupts
from keyhole.online.lineage import Lineage
from keyhole.online.once import Once


class OwnBandit(Bandit):
    """A bandit for any `AnyLearner`.

    It chooses by the names of arms and learns each reward once. Effects, merging and files need a
    posterior, and are refused.

    Parameters
    ----------
    learner : AnyLearner
        The learner.
    arms, dim, seed, probabilities
        As in `Bandit`.
    log : None
        `Bandit(learner, log=path)` makes one with a log.
    """

    # For a log: the rows of the last choice, and whether the learner itself was at work.
    _last_rows: Floats
    _is_in_learner = False

    def __init__(
        self,
        learner: AnyLearner,
        *,
        arms: int | Iterable[Arm],
        dim: int,
        seed: Seed = None,
        probabilities: bool = True,
        log: None = None,
    ) -> None:
        del log  # a bandit with one is of another class
        self._probabilities = checks.flag("probabilities", probabilities)
        self._columns = None
        self._own, self._arms = learner, Arms(arguments.arm_names(arms), shared=False)
        self._dim, self._random = checks.integer("dim", dim), choice_streams(seed)
        self._state = learner.start(len(self._arms.names), self._dim)
        self._counts = [0] * len(self._arms.names)
        self._lineage, self._once = Lineage(), Once()
        self._share()

    def _begin_anew(self) -> None:
        self._lineage = Lineage(self._lineage.everything())
        self._random = choice_streams(None)

    @property
    def learner(self) -> Any:
        """The learner."""
        return self._own

    @property
    def dim(self) -> int:
        """The length of an observation."""
        return self._dim

    @property
    def probabilities(self) -> bool:
        """True if decisions have a probability, where the learner gives one."""
        return self._probabilities

    @property
    def arms(self) -> tuple[Arm, ...]:
        """The names of the arms."""
        return self._arms.names

    @property
    def counts(self) -> dict[Arm, int]:
        """The number of rewards learned for each arm."""
        with self._lock:
            return dict(zip(self.arms, self._counts, strict=True))

    def __repr__(self) -> str:
        size = f"{len(self.arms)} arms, dim={self.dim}, {sum(self._counts)} rewards learned"
        return f"Bandit({self._own!r}, {size})"

    # -- choosing and learning --------------------------------------------------------------------

    def choose(
        self, y: Any, *, among: Iterable[Arm] | None = None, sensor: object = None
    ) -> Decision:
        """Choose an arm, as `Bandit.choose`.

        Parameters
        ----------
        y : array_like of shape (dim,) or (n_arms, dim)
            One observation for all arms, or a row for each.
        among : None
            Refused: the learner was started with as many arms as there are.
        sensor : None
            Refused, as it needs a `SensorLearner`.
        """
        if among is not None:
            self._refuse("among")
        if sensor is not None:
            self._refuse("sensor")
        rows = np.atleast_2d(checks.with_missing("y", y))
        arguments.check_rows(y, rows.shape, len(self.arms), self.dim)
        with self._lock:
            columns = self._checked_columns(y)
            chosen = self._chosen(rows)
            self._columns, self._last_rows = columns, rows
            self._lineage.decisions += 1
            decision = Decision(
                arm=self.arms[chosen.arm],
                observation=rows[chosen.arm if len(rows) > 1 else 0],
                probability=chosen.probability if self._probabilities else None,
                id=f"{self._lineage.run}-{self._lineage.decisions}",
            )
            decision._is_for_all = len(rows) == 1
            return decision

    def _chosen(self, rows: Floats) -> Chosen:
        n = len(self.arms)
        draws = Draws(np.empty(n), np.empty(2))
        kernels.fill_normals(self._random[0], draws.normals)
        kernels.fill_uniforms(self._random[1], draws.uniforms)
        observation = (rows[0] if len(rows) == 1 else rows).copy()  # which the learner may change
        self._is_in_learner = True
        return checked_choice(self._own.choose(self._state, observation, draws), self._own, n)

    def learn(
        self,
        decision: Decision | str,
        reward: float,
        *,
        again: bool = False,
        context: Any = None,
    ) -> None:
        """Learn the reward of a decision, once, as `Bandit.learn`.

        Parameters
        ----------
        decision : Decision
            The decision, from `choose` or carried through JSON.
        reward : float
            Its reward; True and False are 1 and 0.
        again : bool, default False
            Learn one more reward of a decision that was learned already.
        context : None
            Refused, as it needs a `SensorLearner`.
        """
        if context is not None:
            self._refuse("context")
        decision = arguments.checked_decision(decision)
        number = arguments.reward_number(reward)
        checks.flag("again", again)
        arguments.check_observation(decision._observation, self.dim)
        with self._lock:
            place = self._arms.parameter(decision.arm)
            if not again:
                self._once.check(decision)
            self._is_in_learner = True
            with held_interrupts():  # the learner's state, counts and ids change together
                self._own.learn(self._state, place, decision.raw, number)
                self._counts[place] += 1
                self._once.add(decision)
                self._lineage.additions += 1

    # -- what needs a posterior -------------------------------------------------------------------

    def _refuse(self, what: str) -> NoReturn:
        raise InvalidValue(
            f"{what} needs a linear-Gaussian learner, such as Learner(ThompsonSampling()), "
            f"got {shown(self._own)}"
        )

    policy = property(lambda self: self._refuse("policy"))
    posterior = property(lambda self: self._refuse("posterior"))
    waiting = property(lambda self: self._refuse("waiting"))
    effects = property(lambda self: self._refuse("effects"))

    def choose_many(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: a user-defined learner chooses round by round."""
        self._refuse("choose_many")

    def learn_many(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: a user-defined learner learns round by round."""
        self._refuse("learn_many")

    def choice_probabilities(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: there is no posterior."""
        self._refuse("choice_probabilities")

    def explain(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: there are no coefficients of features."""
        self._refuse("explain")

    def observe(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: there are no units to learn."""
        self._refuse("observe")

    def learn_context(self, decision: Decision, context: ArrayLike) -> None:
        """Refuse: it needs a `SensorLearner`.

        Parameters
        ----------
        decision, context
            As in `Bandit.learn_context`.
        """
        super().learn_context(decision, context)

    def merge(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: there are no sums to add."""
        self._refuse("merge")

    def add_arms(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: the learner was started with as many arms as there are."""
        self._refuse("add_arms")

    def remove_arms(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: the learner was started with as many arms as there are."""
        self._refuse("remove_arms")

    def save(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: the content of the learner's state is not known."""
        self._refuse("save")

    def to_bytes(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse, as `save`."""
        self._refuse("to_bytes")

    @classmethod
    def load(cls, *_: Any, **__: Any) -> NoReturn:
        """Refuse: there are no files of such bandits."""
        raise InvalidValue("bandits of a user-defined learner have no files")

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            kept = ("_own", "_arms", "_dim", "_counts", "_probabilities", "_columns")
            own = {name: getattr(self, name) for name in kept}
            # A copy: two bandits must not learn into one state.
            own["_state"] = copy.deepcopy(self._state)
            return {**own, "pasts": self._lineage.everything(), "ids": self._once.recent.listed()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._lineage, self._once = Lineage(state.pop("pasts")), Once(state.pop("ids"))
        vars(self).update(state)
        self._counts, self._random = list(self._counts), choice_streams(None)
        self._share()
