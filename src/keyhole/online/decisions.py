"""Many decisions at once, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple, overload

import numpy as np

from keyhole.core import Arm, kernels
from keyhole.core.kernels import Floats, Ints
from keyhole.errors import InvalidValue
from keyhole.online.decision import Chance, Decision


class Batch(NamedTuple):
    """All that a bandit has computed for many rounds."""

    arms: list[Arm]
    scores: Floats  # (n,)
    observations: Floats  # (n, dim), missing entries predicted
    missing: Any  # (n, dim) of bool: which entries were, or None if none was
    score_params: (
        tuple[Floats, Floats, float, Ints] | None
    )  # locations, scales, epsilon, chosen places
    id: str
    is_for_all: bool
    grown: tuple[tuple[str, str], ...] | None = None  # levels that columns stand for
    recipe: str | None = None  # that of the features


class Decisions(Sequence[Decision]):
    """Many decisions, made by `Bandit.choose_many`: a sequence of `Decision`, and arrays of all.

    The id of a decision is that of the batch, a dot and its place.
    """

    def __init__(self, batch: Batch) -> None:
        if not isinstance(batch, Batch):
            raise InvalidValue("Decisions are made by Bandit.choose_many, or as a list of Decision")
        self._batch = batch
        self._learned_by: tuple[object, ...] = ()

    @property
    def id(self) -> str:
        """The unique id of this batch."""
        return self._batch.id

    @property
    def arms(self) -> list[Arm]:
        """The names of the chosen arms."""
        return list(self._batch.arms)

    @property
    def scores(self) -> Floats:
        """The scores of the chosen arms, (n,), read-only."""
        return _locked(self._batch.scores)

    @property
    def observations(self) -> Floats:
        """The observations of the chosen arms, (n, dim), read-only; missing entries predicted."""
        return _locked(self._batch.observations)

    @property
    def raw(self) -> Floats:
        """The observations with NaN for every entry that was missing, (n, dim)."""
        batch = self._batch
        if batch.missing is None:
            return batch.observations.copy()
        return np.where(batch.missing, np.nan, batch.observations)

    @cached_property
    def probabilities(self) -> Floats | None:
        """The exact probability of each choice, (n,); None if it was not kept."""
        if self._batch.score_params is None:
            return None
        location, scale, epsilon, places = self._batch.score_params
        best = kernels.chance_rows(location, scale, places).clip(0.0, 1.0)
        chances: Floats = (1.0 - epsilon) * best + epsilon / location.shape[1]
        return chances

    def __len__(self) -> int:
        return len(self._batch.arms)

    @overload
    def __getitem__(self, index: int) -> Decision: ...
    @overload
    def __getitem__(self, index: slice) -> list[Decision]: ...
    def __getitem__(self, index: int | slice) -> Decision | list[Decision]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        i = range(len(self))[index]
        batch, chance = self._batch, self._chance(i)
        left = np.isnan(batch.observations[i])
        missing = left[:0] if batch.missing is None else batch.missing[i] & ~left
        # Rows are copied: a decision that is kept does not keep the whole batch.
        decision = Decision.made(
            batch.arms[i],
            float(batch.scores[i]),
            batch.observations[i].copy(),
            chance,
            f"{batch.id}.{i}",
            batch.is_for_all,
            tuple(np.flatnonzero(missing).tolist()),
            bool(left.any()),
        )
        decision._learned_by, decision._grown = self._learned_by, batch.grown
        decision._recipe = batch.recipe
        return decision

    def _chance(self, i: int) -> Chance | None:
        if self._batch.score_params is None:
            return None
        location, scale, epsilon, places = self._batch.score_params
        score_params = np.array([location[i], scale[i], np.ones_like(scale[i])])
        return Chance(score_params, int(places[i]), epsilon, score_params.shape[1])

    def __copy__(self) -> Decisions:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Decisions:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, tuple(self._batch)

    def __repr__(self) -> str:
        return f"Decisions({len(self)} of arms {sorted(set(self._batch.arms), key=str)})"


def _restored(*batch: Any) -> Decisions:
    """Return decisions from a pickle, whose arrays may be read-only, which kernels do not take."""

    def writable(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(writable, value))  # of arrays, or of levels
        return np.array(value) if isinstance(value, np.ndarray) else value

    return Decisions(Batch(*map(writable, batch)))


def _locked(array: Floats) -> Floats:
    view = array.view()
    view.flags.writeable = False
    return view
