"""A decision: what was chosen, how likely it was, and at which observation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from keyhole import checks
from keyhole.core import Arm, arm_name
from keyhole.core.kernels import Choice, Floats
from keyhole.errors import InvalidValue, shown


class Chance(NamedTuple):
    """Inputs of the probability of a decision, which is computed on its first read."""

    score_params: (
        Floats  # (3, n)  location and scale of each score that counts, and how many share them
    )
    column: int  # that of the chosen arm
    epsilon: float
    n_arms: int


LONGEST_ID = 200


class Decision(Choice):
    """One choice: `arm`, its `probability`, its `score`, and the `observation` of that arm.

    It is all that `Bandit.learn` needs besides the reward, which may come much later and in another
    process. `to_dict` and `Decision.from_dict` carry it through JSON, a queue or a database. It
    cannot be changed; `instead` is the same decision with another arm.

    Parameters
    ----------
    arm : str or int
        The name of the arm.
    observation : array_like of shape (dim,)
        The observation of that arm, with NaN or None for missing entries.
    probability : float, optional
        The probability with which the arm was chosen.
    score : float, optional
        The arm's score.
    id : str, optional
        A unique id. A bandit gives each of its decisions one, and refuses a second reward for the
        same id.
    predicted : sequence of int, optional
        The entries of the observation that were missing, and predicted from the others.
    levels : sequence of (str, str), optional
        The levels of growing categories, (field, level), that the observation has columns for.
    recipe : str, optional
        A digest of the features that encoded the observation, or of the sensor that measured it.
    sensor : str or int, optional
        The name of the sensor that the observation is a measurement of.

    Examples
    --------
    >>> import keyhole as kh
    >>> decision = kh.Decision(arm="B", observation=[0.5, -1.0], probability=0.62, id="visit 17")
    >>> decision.to_dict()
    {'id': 'visit 17', 'arm': 'B', 'probability': 0.62, 'score': None, 'observation': [0.5, -1.0]}
    >>> kh.Decision.from_dict(decision.to_dict()) == decision
    True
    """

    __slots__ = ("_sensor",)

    def __init__(
        self,
        *,
        arm: Arm,
        observation: ArrayLike,
        probability: float | None = None,
        score: float | None = None,
        id: str | None = None,  # noqa: A002 - the field's word
        predicted: ArrayLike = (),
        levels: Sequence[tuple[str, str]] | None = None,
        sensor: Arm | None = None,
        recipe: str | None = None,
    ) -> None:
        seen = checks.with_missing("observation", observation)
        if seen.ndim != 1:
            raise InvalidValue(
                f"a decision's observation is that of the chosen arm, one vector; "
                f"got shape {seen.shape}"
            )
        if score is not None:
            score = checks.real("score", score, min_value=-np.inf, max_value=np.inf)
        if probability is not None:
            probability = checks.real("probability", probability, min_value=0.0, max_value=1.0)
        if not (id is None or (isinstance(id, str) and 0 < len(id) <= LONGEST_ID)):
            raise InvalidValue(
                f"id must be a text of 1 to {LONGEST_ID} characters, got {shown(id)}"
            )
        self._set(arm_name(arm), score, seen, False)
        self._id, self._probability = id, probability
        self._has_missing = bool(np.isnan(seen).any())
        self._predicted = _places(predicted, seen.size)
        self._grown = None if levels is None else _levels(levels)
        if not (recipe is None or isinstance(recipe, str)):
            raise InvalidValue(f"recipe must be a text, got {shown(recipe)}")
        self._recipe = recipe
        self._sensor: Arm | None = None if sensor is None else arm_name(sensor)

    @classmethod
    def made(
        cls,
        arm: Arm,
        score: float | None,
        observation: Floats,
        chance: Chance | None,
        number: str,
        is_for_all: bool,
        predicted: tuple[int, ...] = (),
        has_missing: bool = False,
    ) -> Decision:
        """Return a decision that a bandit has just made; its parts need no checks.

        Parameters
        ----------
        arm, score, observation
            As in the constructor.
        chance
            Inputs of the probability, which is computed on its first read.
        number
            The id.
        is_for_all
            Whether the observation is that of all arms.
        predicted
            The entries that were predicted.
        has_missing
            Whether some could not be.
        """
        decision = cls.__new__(cls)
        decision._set(arm, score, observation, is_for_all)
        decision._id = number
        if chance is not None:
            decision._score_params, decision._column, decision._epsilon, decision._n_arms = chance
        decision._predicted, decision._has_missing = predicted, has_missing
        return decision

    @property
    def id(self) -> str | None:
        """The unique id of this decision; None if it was made by hand without one."""
        name: str | None = self._name()
        return name

    @property
    def arm(self) -> Arm:
        """The name of the chosen arm."""
        arm: Arm = self._arm
        return arm

    @property
    def score(self) -> float | None:
        """The score of the chosen arm; None if it is not known."""
        return self._score

    @property
    def probability(self) -> float | None:
        """The exact probability with which the arm was chosen; None if it was not kept."""
        if self._probability is None and self._score_params is not None:
            self._probability = self._chance()
        probability: float | None = self._probability
        return probability

    @property
    def observation(self) -> Floats:
        """The observation of the chosen arm, (dim,), read-only; missing entries predicted."""
        view = self._observation.view()
        view.flags.writeable = False
        return view

    @property
    def predicted(self) -> tuple[int, ...]:
        """The entries of the observation that were missing, and predicted from the others."""
        return self._predicted

    @property
    def sensor(self) -> Arm | None:
        """The name of the sensor that the observation is a measurement of, if there is one."""
        return getattr(self, "_sensor", None)  # which compiled code does not set

    @property
    def has_missing(self) -> bool:
        """True if an entry is still missing: one that was never seen cannot be predicted."""
        return self._has_missing

    @property
    def raw(self) -> Floats:
        """The observation with NaN for every entry that was missing, (dim,)."""
        row = self._observation.copy()
        row[list(self._predicted)] = np.nan
        return row

    def instead(self, arm: Arm, observation: ArrayLike | None = None) -> Decision:
        """Return this decision for another arm, which was taken in place of the chosen one.

        It has the same id, if there is one, so that only one of the two is learned, and no
        probability, which is not known for the other arm.

        Parameters
        ----------
        arm : str or int
            The arm that was taken.
        observation : array_like of shape (dim,), optional
            The observation of that arm. It is needed if the decision was made from a row for each
            arm, or was carried through JSON.

        Examples
        --------
        >>> import keyhole as kh
        >>> bandit = kh.Bandit(kh.ThompsonSampling(), arms=["A", "B"], dim=1, seed=2)
        >>> decision = bandit.choose([1.0])
        >>> decision.arm, decision.instead("B").arm
        ('A', 'B')
        """
        if observation is None and not self._is_for_all:
            raise InvalidValue(
                "this decision holds the observation of its own arm alone: "
                "give that of the other one, instead(arm, observation)"
            )
        seen, predicted = (
            (self._observation, self._predicted) if observation is None else (observation, ())
        )
        other = Decision(
            arm=arm,
            observation=seen,
            id=self.id,
            predicted=predicted,
            levels=self._grown,
            recipe=self._recipe,
            sensor=self.sensor,
        )
        other._learned_by = self._learned_by
        other._is_for_all = self._is_for_all and observation is None
        return other

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, strings and lists; the last three keys only if they are needed."""
        record = self._but_probability()
        ordered = {
            name: self.probability if name == "probability" else record[name]
            for name in ("id", "arm", "probability", "score", "observation")
        }
        rest = {"predicted": record["predicted"]} if self._predicted else {}
        for name, value in (
            ("levels", self._grown),
            ("recipe", self._recipe),
            ("sensor", self.sensor),
        ):
            if value is not None:
                rest[name] = record[name]
        return {**ordered, **rest}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Decision:
        """Return the decision of a record from `to_dict`; unknown keys are ignored."""
        if not isinstance(record, Mapping):
            raise InvalidValue(f"a decision's record is a dict, got {type(record).__name__}")
        if not {"arm", "observation"} <= set(record):
            raise InvalidValue(
                f"a decision's record has at least the keys 'arm' and 'observation', "
                f"got {sorted(map(str, record))}"
            )
        known = (
            *("arm", "observation", "probability", "score", "id", "predicted"),
            *("levels", "recipe", "sensor"),
        )
        return cls(**{name: record[name] for name in known if name in record})

    def __eq__(self, other: object) -> bool:
        if self is other or not isinstance(other, Decision):
            return self is other
        if self._but_probability() != other._but_probability():
            return False
        if self._probability is None and other._probability is None:
            # Not read yet, and no reason to: they are alike if what they follow from is.
            mine, theirs = ((one._column, one._epsilon, one._n_arms) for one in (self, other))
            return mine == theirs and np.array_equal(self._score_params, other._score_params)
        return self.probability == other.probability

    def _but_probability(self) -> dict[str, Any]:
        """Return the record without the probability, which has to be integrated."""
        return {
            "id": self.id,
            "arm": self.arm,
            "score": self.score,
            "observation": [None if x != x else x for x in self._observation.tolist()],
            "predicted": list(self._predicted),
            "levels": None if self._grown is None else [list(pair) for pair in self._grown],
            "recipe": self._recipe,
            "sensor": self.sensor,
        }

    __hash__ = None  # type: ignore[assignment]

    def __copy__(self) -> Decision:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Decision:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # An array that comes out of a pickle may be read-only, which kernels do not take.
        return Decision.from_dict, (self.to_dict(),)

    def __repr__(self) -> str:
        # A probability that nobody has read is not integrated to be shown.
        record = {**self._but_probability(), "probability": self._probability}
        shown_fields = ("id", "arm", "probability", "score", "observation", "predicted", "sensor")
        left_out = {"predicted"} if not self._predicted else set()
        left_out |= {"sensor"} if self.sensor is None else set()
        if self._probability is None and self._score_params is not None:
            left_out.add("probability")
        fields = ", ".join(f"{k}={record[k]!r}" for k in shown_fields if k not in left_out)
        return f"Decision({fields})"


def _levels(given: Any) -> tuple[tuple[str, str], ...]:
    pairs = list(given) if checks.is_listing(given) else [given]
    for pair in pairs:
        is_pair = isinstance(pair, tuple | list) and len(pair) == 2
        if not is_pair or not all(isinstance(text, str) for text in pair):
            raise InvalidValue(f"levels must be pairs of a field and a level, got {shown(given)}")
    return tuple((field, level) for field, level in pairs)


def _places(predicted: ArrayLike, size: int) -> tuple[int, ...]:
    places = checks.floats("predicted", predicted)
    if places.ndim != 1 or any(place not in range(size) for place in places.tolist()):
        raise InvalidValue(
            f"predicted must be positions from 0 to {size - 1}, got {shown(predicted)}"
        )
    return tuple(map(int, places))
