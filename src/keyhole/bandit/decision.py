"""A decision, or many: what was chosen, how likely it was, and at which observation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike

from keyhole import checks
from keyhole.bandit.arms import Arm, arm_name
from keyhole.choice import choice_probabilities
from keyhole.errors import InvalidValue
from keyhole.kernels import Floats, Ints

# What a probability follows from: locations and scales of the candidates' scores, epsilon, and the
# chosen place. The integral is done when somebody asks: who never looks does not pay for it.
Chance: TypeAlias = tuple[Floats, Floats, float, int]


class Decision:
    """One choice: `arm`, its `probability`, its `score`, and the `observation` of that arm.

    It is all that `Bandit.learn` needs besides the reward, however much later and wherever that
    comes. `to_dict` and `Decision.from_dict` carry it through JSON, a queue or a database.

    >>> import keyhole as kh
    >>> decision = kh.Decision(arm="B", observation=[0.5, -1.0], probability=0.62, score=1.3)
    >>> decision.to_dict()
    {'arm': 'B', 'probability': 0.62, 'score': 1.3, 'observation': [0.5, -1.0]}
    >>> kh.Decision.from_dict(decision.to_dict()) == decision
    True
    """

    __slots__ = ("_chance", "_observation", "arm", "has_gaps", "score")

    def __init__(
        self,
        *,
        arm: Arm,
        observation: ArrayLike,
        probability: float | None = None,
        score: float | None = None,
    ) -> None:
        self.arm = arm_name(arm)
        # Gaps are allowed where a bandit fills them, but for entries it has never seen.
        self._observation = checks.gappy("observation", observation)
        self.has_gaps = bool(np.isnan(self._observation).any())
        if self._observation.ndim != 1:
            raise InvalidValue(
                f"a decision's observation is that of the chosen arm, one vector; "
                f"got shape {self._observation.shape}"
            )
        self.score = (
            score if score is None else checks.number("score", score, least=-np.inf, most=np.inf)
        )
        self._chance: float | Chance | None = probability
        if probability is not None:
            self._chance = checks.number("probability", probability, least=0.0, most=1.0)

    @classmethod
    def made(cls, arm: Arm, score: float, observation: Floats, chance: Chance | None) -> Decision:
        """A decision that the bandit has just made; its parts need no checks."""
        decision = object.__new__(cls)
        decision.arm, decision.score = arm, score
        decision._observation, decision._chance = observation, chance
        decision.has_gaps = False
        return decision

    @property
    def probability(self) -> float | None:
        """The exact probability with which the arm was chosen; None if it was not kept."""
        if isinstance(self._chance, tuple):
            location, scale, epsilon, place = self._chance
            self._chance = float(choice_probabilities(location, scale, epsilon=epsilon)[place])
        return self._chance

    @property
    def observation(self) -> Floats:
        """What was observed of the chosen arm, (dim,), read-only."""
        view = self._observation.view()
        view.flags.writeable = False
        return view

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings and lists."""
        return {
            "arm": self.arm,
            "probability": self.probability,
            "score": self.score,
            "observation": [None if x != x else x for x in self._observation.tolist()],
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Decision:
        """The decision that `to_dict` wrote down; keys that it does not know are left alone."""
        if not isinstance(record, Mapping):
            raise InvalidValue(f"a decision's record is a dict, got {type(record).__name__}")
        if not {"arm", "observation"} <= set(record):
            raise InvalidValue(
                f"a decision's record has at least the keys 'arm' and 'observation', "
                f"got {sorted(map(str, record))}"
            )
        known = ("arm", "observation", "probability", "score")
        return cls(**{name: record[name] for name in known if name in record})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Decision) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self.to_dict().items())
        return f"Decision({fields})"


class Decisions(Sequence[Decision]):
    """Many decisions at once, as arrays: `arms`, `probabilities`, `scores`, `observations`."""

    def __init__(
        self,
        arms: Sequence[Arm],
        scores: Floats,
        observations: Floats,
        law: tuple[Floats, Floats, float, Ints] | None,
    ) -> None:
        self.arms = list(arms)
        self.scores = scores
        self.observations = observations
        self._law = law

    @cached_property
    def probabilities(self) -> Floats | None:
        """The exact probability of each choice, (n,); None if it was not kept."""
        if self._law is None:
            return None
        location, scale, epsilon, places = self._law
        rows = choice_probabilities(location, scale, epsilon=epsilon)
        return rows[np.arange(len(self)), places]

    def __len__(self) -> int:
        return len(self.arms)

    @overload
    def __getitem__(self, index: int) -> Decision: ...
    @overload
    def __getitem__(self, index: slice) -> list[Decision]: ...
    def __getitem__(self, index: int | slice) -> Decision | list[Decision]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        i = range(len(self))[index]
        chance = None
        if self._law is not None:
            location, scale, epsilon, places = self._law
            chance = location[i], scale[i], epsilon, int(places[i])
        return Decision.made(self.arms[i], float(self.scores[i]), self.observations[i], chance)

    def __repr__(self) -> str:
        return f"Decisions({len(self)} of arms {sorted(set(self.arms), key=str)})"
