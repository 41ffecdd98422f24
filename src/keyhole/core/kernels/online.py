"""Single decisions and rewards, with as little as can be between Python and the work.

What a bandit does to every reward is done here in one call, which no signal interrupts: it is
learned, counted and remembered, or nothing of it.
"""

from __future__ import annotations

from typing import Any

import cython
import numpy as np
from cython.cimports.libc.math import fabs, isnan

from keyhole.core.kernels.types import Floats

if cython.compiled:
    from cython.cimports.keyhole.core.kernels.choosing import Chooser
    from cython.cimports.keyhole.core.kernels.normals import draw_normals, next_uniform
    from cython.cimports.keyhole.core.kernels.observing import RowObserver, sample
    from cython.cimports.keyhole.core.kernels.pointers import row_of, start_of
    from cython.cimports.keyhole.core.kernels.probability import chance_of, mixed
    from cython.cimports.keyhole.core.kernels.recent import RecentIds
else:
    from keyhole.core.kernels.choosing import Chooser
    from keyhole.core.kernels.normals import draw_normals, next_uniform
    from keyhole.core.kernels.observing import RowObserver, sample
    from keyhole.core.kernels.pointers import row_of, start_of
    from keyhole.core.kernels.probability import chance_of, mixed
    from keyhole.core.kernels.recent import RecentIds

FLOAT64 = np.dtype(np.float64)


@cython.cfunc
@cython.exceptval(-1, check=False)
def all_floats(numbers: list) -> cython.bint:  # type: ignore[type-arg]
    """Return whether a list holds floats only: NumPy may convert other objects by surprise."""
    for number in numbers:  # noqa: SIM110 - a generator is slower
        if type(number) is not float:
            return False
    return True


@cython.cfunc
def list_of(row: cython.double[:], offset: cython.double, once: cython.bint) -> list:  # type: ignore[type-arg]
    """Return numbers plus an offset as a list; with `once`, one number in place of equal ones."""
    k: cython.Py_ssize_t
    n: cython.Py_ssize_t = row.shape[0]
    if once:
        for k in range(1, n):
            if row[k] != row[0]:
                break
        else:
            n = 1
    # Without an offset also -0.0 stays what it is.
    return [float(row[k] + offset) if offset != 0.0 else float(row[k]) for k in range(n)]


def score_lists(description: cython.double[:, :], offset: cython.double) -> tuple[Any, ...]:
    """Return the parts of every arm's score as lists: mean, width, optimism and dispersion.

    Parameters
    ----------
    description : ndarray of shape (4, n_arms)
        The parts.
    offset : float
        The zero that rewards are counted from.
    """
    return (
        list_of(description[0], offset, False),
        list_of(description[1], 0.0, False),
        list_of(description[2], 0.0, True),
        list_of(description[3], 0.0, True),
    )


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
        self._grown: tuple[tuple[str, str], ...] | None = None
        self._recipe: str | None = None
        # For a log: the parts of every arm's score, and the row that the posterior saw.
        self._description: Any = None
        self._design: Any = None
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
        chance: float = mixed(best, self._epsilon, self._n_arms)
        return chance


@cython.cclass
class Tally:
    """The name of a run, and how many decisions and additions it has made."""

    def __init__(self, run: str) -> None:
        self.run = run
        self.decisions = self.additions = 0


@cython.final
@cython.cclass
class Everyday:
    """The conversion of observations and rewards of a learner whose units are fixed.

    Parameters
    ----------
    observer : RowObserver
        What is done to observations.
    offset : float
        The zero that rewards are counted from.
    next_look : float
        How often a feature must have been seen for units to be looked at again.
    predicted : float
        How often a feature must have been seen for predictions to be final.
    rewards : tuple of arrays or None
        Values, counts and strides of the sample of rewards.
    """

    def __init__(
        self, observer: RowObserver, offset: float, next_look: float, predicted: float, rewards: Any
    ) -> None:
        self.observer, self.offset = observer, offset
        self.next_look, self.predicted = next_look, predicted
        self.predicts = observer.fill in (1, 2)
        self.n_values, self.reward = 0, np.empty((1, 1))
        if rewards is not None:
            self.reward_values, self.reward_seen, self.reward_stride = rewards
            self.n_values = self.reward_values.shape[0]


@cython.final
@cython.cclass
class Online:
    """A bandit's everyday work: choose by a plain array, learn the reward of a decision.

    Whatever is not plain is left to the bandit: `choose` then returns None, and `learn` False.
    It is for one thread at a time. With an observer, what is not plain includes every call after
    which units or early predictions are looked at again.

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
    everyday : Everyday, optional
        What is done to observations and rewards before the posterior sees them.
    grown : tuple, optional
        The levels of growing categories that columns stand for.
    recipe : str, optional
        What tells the columns of features from those of others.
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
        everyday: Everyday | None = None,
        grown: Any = None,
        recipe: Any = None,
    ) -> None:
        self.chooser, self.core = chooser, chooser.core
        self.names, self.parameters = names, parameters
        self.normals, self.uniforms = streams
        self.tally, self.recent, self.token, self.kind = tally, recent, (token,), kind
        self.largest, self.z = largest, np.empty(chooser.n_arms)
        self.dim, self.offset = self.core.dim, 0.0
        self.everyday: Any = everyday
        self.grown, self.recipe = grown, recipe
        self.takes_missing, self.last_row = False, 0
        if everyday is not None:
            self.dim, self.offset = everyday.observer.dim, everyday.offset
            self.takes_missing = everyday.observer.fill != 0
            self.design = np.empty((chooser.n_arms, self.core.dim))
            self.spare = np.empty((1, self.core.dim))
        self.last: Choice | None = None
        self.last_stamp = self.last_slot = -1

    def choose(self, y: Any) -> Any:
        """Return a decision, if y is a plain array or list of usable floats, as many as needed."""
        own: Any = None
        if type(y) is list and all_floats(y):
            y = own = np.array(y)
        if type(y) is not np.ndarray or y.dtype is not FLOAT64:
            return None
        n_axes: cython.int = y.ndim
        rows: cython.Py_ssize_t = 1
        if n_axes == 2 and y.shape[1] == self.dim:
            rows = y.shape[0]
            if rows != 1 and rows != self.chooser.n_arms:
                return None
        elif n_axes != 1:
            return None
        if own is None:
            own = y.copy()
        if self.everyday is not None:
            return self.choose_observed(own if n_axes == 2 else own[None], rows)
        if n_axes == 2:
            own = own.reshape(-1)
        seen: cython.double[::1] = own
        if seen.shape[0] != rows * self.dim or not self.usable(seen):
            return None
        self.last = None  # its P y is about to be written over
        place = self.place_of(start_of(seen), self.dim if rows > 1 else 0)
        if rows > 1:
            own = own[place * self.dim : (place + 1) * self.dim].copy()
        return self.made(place, own, rows)

    @cython.cfunc
    def choose_observed(self, own: Any, n: cython.Py_ssize_t) -> Any:
        """Return a decision by n rows, (n, dim), that are not plain yet; or None."""
        everyday: Everyday = self.everyday
        observer: RowObserver = everyday.observer
        raw: cython.double[:, ::1] = own
        if raw.shape[1] != self.dim:
            return None
        is_missing: cython.int = self.missing_in(raw)
        if is_missing < 0 or observer.seen + n >= everyday.next_look or observer.is_far(raw, 0, n):
            return None
        self.last = None
        filled: Any = own
        if is_missing:
            filled = own.copy()
            rows: cython.double[:, ::1] = filled
            observer.fill_in(rows, 0, n)
            observer.convert(rows, 0, self.design, 0, n)
        else:
            observer.convert(raw, 0, self.design, 0, n)
        place: cython.Py_ssize_t = self.place_of(
            row_of(self.design, 0), self.core.dim if n > 1 else 0
        )
        self.last_row = place if n > 1 else 0
        # A copy: a decision that is kept does not keep the rows of the other arms.
        choice: Choice = self.made(place, filled[self.last_row].copy() if n > 1 else filled[0], n)
        if self.chooser.describes:
            choice._design = np.array(self.design[self.last_row])
        if is_missing:
            choice._has_missing = self.has_missing(choice.y)
            choice._predicted = tuple(
                [
                    j
                    for j in range(self.dim)
                    if isnan(raw[self.last_row, j]) and not isnan(choice.y[j])
                ]
            )
        if observer.watches:
            observer.see(raw, 0, n)
            self.tally.additions += n
        return choice

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def place_of(self, y: cython.p_double, stride: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Return the place of the arm that is chosen at what the posterior sees."""
        draw_normals(self.normals, self.z, self.chooser.n_arms)
        coin: cython.double = next_uniform(self.uniforms)
        tie: cython.double = next_uniform(self.uniforms)
        return self.chooser.choose(y, stride, start_of(self.z), coin, tie)

    @cython.cfunc
    def made(self, place: cython.Py_ssize_t, seen: Any, n: cython.Py_ssize_t) -> Any:
        """Return the decision for the arm at a place, which was `seen`, one of n rows."""
        chooser: Chooser = self.chooser
        choice: Choice = Choice.__new__(self.kind)
        if cython.compiled:
            # All other fields are None or 0 in a new object: 3% of a round of 5 arms.
            choice._arm, choice._score = self.names[place], chooser.value + self.offset
            choice._observation, choice.y, choice._is_for_all = seen, seen, n == 1
            choice._predicted = choice._learned_by = ()
        else:
            choice._set(self.names[place], chooser.value + self.offset, seen, n == 1)
        choice._run, choice._grown, choice._recipe = self.tally.run, self.grown, self.recipe
        if chooser.keeps:
            score_params: Any = chooser.score_params
            if chooser.n_columns < chooser.n_arms:
                score_params = score_params[:, : chooser.n_columns]
            choice._score_params = score_params.copy()
            choice._column, choice._n_arms = chooser.column, chooser.n_arms
            choice._epsilon = chooser.explorer.rate
        if chooser.describes:
            choice._description = chooser.description.copy()
        self.tally.decisions += 1
        choice._number = self.tally.decisions
        if chooser.slot >= 0:
            self.last, self.last_stamp, self.last_slot = choice, self.core.stamp, chooser.slot
        return choice

    def choose_rows(self, y: Floats) -> tuple[int, float, Floats | None, int, Floats | None]:
        """Choose by checked rows, (1 or n_arms, d).

        Returns the place of the arm, its score, the score parameters or None, the arm's column
        there, and the parts of every score or None.
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
        description = chooser.description.copy() if chooser.describes else None
        return int(place[0]), float(score[0]), score_params, chooser.column, description

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
            or choice.y.shape[0] != self.dim
            or not fabs(reward) <= self.largest
            or key is None
            or choice._run is None
            or choice._learned_by != ()
            or self.recent.has(key)
            or choice._grown is not self.grown
            or choice._recipe is not self.recipe
            or self.chooser.explorer.weighted
            or (self.everyday is not None and not self.is_everyday(choice))
        ):
            return False
        known: cython.bint = choice is self.last and self.core.stamp == self.last_stamp
        self.last = None
        i: cython.Py_ssize_t = parameter
        slot: cython.Py_ssize_t = self.last_slot if known else 0
        if self.everyday is None:
            self.core.update(i, start_of(choice.y), reward, slot, known)
        else:
            self.learn_observed(i, choice, reward, slot, known)
        choice._learned_by = self.token
        self.recent.add(key)
        self.tally.additions += 1
        return True

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def is_everyday(self, choice: Choice) -> cython.bint:
        """Return whether nothing follows from learning a decision but the posterior's update."""
        everyday: Everyday = self.everyday
        observer: RowObserver = everyday.observer
        # An observation that was made elsewhere counts as seen once it is learned.
        if observer.watches and choice._run != self.tally.run:
            return False
        if everyday.predicts and observer.seen < everyday.predicted and choice._predicted != ():
            return False
        if everyday.n_values == 0:
            return True
        # The unit of rewards is recomputed when their number doubles.
        n: cython.longlong = everyday.reward_seen[0]
        return (n + 1) & n != 0

    @cython.cfunc
    def learn_observed(
        self,
        i: cython.Py_ssize_t,
        choice: Choice,
        reward: cython.double,
        slot: cython.Py_ssize_t,
        known: cython.bint,
    ) -> None:
        """Learn a reward at an observation that is converted first, unless that was just done."""
        everyday: Everyday = self.everyday
        if known:
            self.core.update(
                i, row_of(self.design, self.last_row), reward - self.offset, slot, True
            )
        else:
            seen: cython.double[:, ::1] = choice._observation.reshape(1, self.dim)
            everyday.observer.convert(seen, 0, self.spare, 0, 1)
            self.core.update(i, row_of(self.spare, 0), reward - self.offset, slot, False)
        if everyday.n_values > 0:
            everyday.reward[0, 0] = reward
            sample(
                everyday.reward_values,
                everyday.reward_seen,
                everyday.reward_stride,
                everyday.reward,
                0,
                1,
            )

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def has_missing(self, y: cython.double[::1]) -> cython.bint:
        """Return whether a number is NaN."""
        found: cython.bint = False
        for j in range(y.shape[0]):
            found = found or y[j] != y[j]
        return found

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def usable(self, y: cython.double[::1]) -> cython.bint:
        """Return whether no number is NaN, infinite or too large."""
        usable: cython.bint = True
        for j in range(y.shape[0]):
            usable = usable and fabs(y[j]) <= self.largest
        return usable

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def missing_in(self, rows: cython.double[:, ::1]) -> cython.int:
        """Return 1 if a number is missing, else 0; -1 if one is unusable, or missing in vain."""
        t: cython.Py_ssize_t
        j: cython.Py_ssize_t
        n_usable: cython.Py_ssize_t = 0
        n_missing: cython.Py_ssize_t = 0
        for t in range(rows.shape[0]):
            for j in range(rows.shape[1]):
                n_usable += fabs(rows[t, j]) <= self.largest
                n_missing += rows[t, j] != rows[t, j]
        if n_usable + n_missing < rows.shape[0] * rows.shape[1]:
            return -1
        if n_missing > 0 and not self.takes_missing:
            return -1
        return n_missing > 0
