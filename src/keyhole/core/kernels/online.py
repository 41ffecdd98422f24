"""Single decisions and rewards, with as little as can be between Python and the work.

What a bandit does to every reward is done here in one call, which no signal interrupts: it is
learned, counted and remembered, or nothing of it.
"""

from __future__ import annotations

from typing import Any

import cython
import numpy as np
from cython.cimports.libc.math import fabs

from keyhole.core.kernels.types import Floats

if cython.compiled:
    from cython.cimports.keyhole.core.kernels.choosing import Chooser
    from cython.cimports.keyhole.core.kernels.normals import draw_normals, next_uniform
    from cython.cimports.keyhole.core.kernels.pointers import start_of
    from cython.cimports.keyhole.core.kernels.probability import chance_of
    from cython.cimports.keyhole.core.kernels.recent import RecentIds
else:
    from keyhole.core.kernels.choosing import Chooser
    from keyhole.core.kernels.normals import draw_normals, next_uniform
    from keyhole.core.kernels.pointers import start_of
    from keyhole.core.kernels.probability import chance_of
    from keyhole.core.kernels.recent import RecentIds

FLOAT64 = np.dtype(np.float64)


@cython.cfunc
@cython.exceptval(-1, check=False)
def all_floats(numbers: list) -> cython.bint:  # type: ignore[type-arg]
    """Whether a list holds floats alone: of anything else, NumPy might make what was not meant."""
    for number in numbers:  # noqa: SIM110 - a generator is slower
        if type(number) is not float:
            return False
    return True


@cython.cclass
class Choice:
    """The fields of a decision, where compiled code finds them.

    `_id` is None until somebody asks for it, and then made of `_run` and `_number`; `_probability`
    is None until then too, and follows from `_score_params`, `_column`, `_epsilon` and `_n_arms`.
    """

    @cython.ccall
    def _set(self, arm: Any, score: Any, observation: Any, is_for_all: cython.bint) -> None:
        """Fill in what every decision has."""
        self._arm: Any = arm
        self._score: float | None = score
        self._is_for_all: bool = is_for_all
        self._observation: Floats = observation
        self.y = observation
        self._id: str | None = None
        self._run: str | None = None
        self._number: int = 0
        self._probability: float | None = None
        self._score_params: Any = None
        self._column: int = 0
        self._epsilon: float = 0.0
        self._n_arms: int = 0
        self._predicted: tuple[int, ...] = ()
        self._has_missing: bool = False
        self._learned_by: tuple[object, ...] = ()

    @cython.ccall
    def _name(self) -> str:
        """Return the id, or None if there is none."""
        if self._id is None and self._run is not None:
            self._id = f"{self._run}-{self._number}"
        return self._id  # type: ignore[return-value] # Cython knows no str | None

    def _chance(self) -> float | None:
        """Return the exact probability with which the arm was chosen, or None if it is unknown."""
        if self._score_params is None:
            return None
        score_params: cython.double[:, ::1] = self._score_params
        best: cython.double = chance_of(
            score_params[0], score_params[1], score_params[2], self._column
        )
        chance: float = (1.0 - self._epsilon) * min(max(best, 0.0), 1.0)
        return chance + self._epsilon / self._n_arms


@cython.cclass
class Tally:
    """The name of a run, and how many decisions and additions it has made."""

    def __init__(self, run: str) -> None:
        self.run = run
        self.decisions = self.additions = 0


@cython.final
@cython.cclass
class Online:
    """A bandit's everyday work: choose by a plain array, learn the reward of a decision.

    Whatever is not plain is left to the bandit: `choose` then returns None, and `learn` False.
    It is for one thread at a time.

    Parameters
    ----------
    chooser : Chooser
        How arms are chosen.
    names : tuple
        The names of the arms.
    parameters : dict
        The parameter of each name.
    streams : ndarray of uint64 of shape (2, 4)
        The states of a stream of normals and of one of uniform numbers.
    tally : Tally
        Where decisions and additions are counted.
    recent : RecentIds
        Where learned decisions are remembered.
    token : object
        What a decision remembers of the bandit that has learned it.
    kind : type
        The class of decisions, a subclass of `Choice`.
    largest : float
        The largest number that is allowed.
    """

    def __init__(
        self,
        chooser: Chooser,
        names: tuple[Any, ...],
        parameters: dict[Any, int],
        streams: Any,
        tally: Tally,
        recent: RecentIds,
        token: object,
        kind: type[Choice],
        largest: float,
    ) -> None:
        self.chooser, self.core = chooser, chooser.core
        self.names, self.parameters = names, parameters
        self.normals, self.uniforms = streams
        self.tally, self.recent, self.token, self.kind = tally, recent, (token,), kind
        self.largest, self.z = largest, np.empty(chooser.n_arms)
        self.last: Choice | None = None
        self.last_stamp = self.last_slot = -1

    def choose(self, y: Any) -> Any:
        """Return a decision, if y is a plain array or list of usable floats, as many as needed."""
        if type(y) is list and all_floats(y):
            y = np.array(y)
        if type(y) is not np.ndarray or y.dtype is not FLOAT64:
            return None
        chooser: Chooser = self.chooser
        dim: cython.Py_ssize_t = self.core.dim
        stride: cython.Py_ssize_t = 0
        own: Any = y.copy()
        if y.ndim == 2 and y.shape[1] == dim:
            own = own.reshape(-1)
            stride = dim if y.shape[0] > 1 else 0
        elif y.ndim != 1:
            return None
        seen: cython.double[::1] = own
        if seen.shape[0] != (chooser.n_arms * dim if stride else dim) or not self.usable(seen):
            return None
        self.last = None  # its P y is about to be written over
        draw_normals(self.normals, self.z, chooser.n_arms)
        coin: cython.double = next_uniform(self.uniforms)
        tie: cython.double = next_uniform(self.uniforms)
        place: cython.Py_ssize_t = chooser.choose(
            start_of(seen), stride, start_of(self.z), coin, tie
        )

        choice: Choice = Choice.__new__(self.kind)
        if stride:
            own = own[place * dim : (place + 1) * dim].copy()
        choice._set(self.names[place], chooser.value, own, stride == 0)
        choice._run = self.tally.run
        if chooser.keeps:
            score_params: Any = chooser.score_params
            if chooser.n_columns < chooser.n_arms:
                score_params = score_params[:, : chooser.n_columns]
            choice._score_params = score_params.copy()
            choice._column, choice._n_arms = chooser.column, chooser.n_arms
            choice._epsilon = chooser.explorer.epsilon
        self.tally.decisions += 1
        choice._number = self.tally.decisions
        if chooser.slot >= 0:
            self.last, self.last_stamp, self.last_slot = choice, self.core.stamp, chooser.slot
        return choice

    def choose_rows(self, y: Floats) -> tuple[int, float, Floats | None, int]:
        """Choose by checked rows, (1 or n_arms, d).

        Returns the place of the arm, its score, the score parameters or None, and the arm's
        column there.
        """
        chooser: Chooser = self.chooser
        self.last = None
        z, uniforms = np.empty((1, chooser.n_arms)), np.empty((1, 2))
        draw_normals(self.normals, z[0], chooser.n_arms)
        uniforms[0] = next_uniform(self.uniforms), next_uniform(self.uniforms)
        place, score, _, _ = chooser.choose_rounds(y[None], z, uniforms)
        score_params = (
            chooser.score_params[:, : chooser.n_columns].copy() if chooser.keeps else None
        )
        return int(place[0]), float(score[0]), score_params, chooser.column

    def learn(self, decision: Any, reward: cython.double) -> bool:
        """Learn a reward, and say whether that was done."""
        if not isinstance(decision, Choice):
            return False
        choice: Choice = decision
        parameter: object = self.parameters.get(choice._arm)
        key: str = choice._name()
        if (
            parameter is None
            or choice._has_missing
            or choice.y.shape[0] != self.core.dim
            or not fabs(reward) <= self.largest
            or key is None
            or choice._run is None
            or choice._learned_by != ()
            or self.recent.has(key)
        ):
            return False
        known: cython.bint = choice is self.last and self.core.stamp == self.last_stamp
        self.last = None
        i: cython.Py_ssize_t = parameter
        self.core.update(i, start_of(choice.y), reward, self.last_slot if known else 0, known)
        choice._learned_by = self.token
        self.recent.add(key)
        self.tally.additions += 1
        return True

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def usable(self, y: cython.double[::1]) -> cython.bint:
        """Whether no number is NaN, infinite or too large."""
        usable: cython.bint = True
        for j in range(y.shape[0]):
            usable = usable and fabs(y[j]) <= self.largest
        return usable
