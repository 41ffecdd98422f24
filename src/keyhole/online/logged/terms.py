"""`Terms`: where the sums of a bandit have the rewards of a log, whatever changed since.

A row of a log has what the posterior saw, in the units and columns of its time. Units are replaced
and columns are added in the course of a log; the sums are converted then. Here is what converts
the rows of earlier times, and which rewards wait still.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from keyhole.core import Arm, Floats, Ints, LearnerState, Observer, Units, spread_design


class Step(NamedTuple):
    """A change of units or columns."""

    seq: int  # the last row before it
    units: Units | None  # those of before
    places: Ints | None  # the new place of each feature, if there are more now
    design_places: Ints | None  # and of each column of a design
    sizes: tuple[int, int]  # the number of features and of columns afterwards


class Terms:
    """What converts the terms of earlier rows to those of the present sums.

    Parameters
    ----------
    learned : LearnerState
        What was learned when the log began.
    """

    def __init__(self, learned: LearnerState) -> None:
        self.steps: list[Step] = []
        # The event of each reward that waits or is provisional, by its key.
        self.events: dict[str, str] = {}
        # The last row before each arm was removed, and before any was.
        self.removed: dict[Arm, int] = {}
        self.last_removed = -1
        # How many decisions the run had made when units or columns changed last: what the posterior
        # saw of later ones is what it sees now.
        self.n_before = 0
        self._layout, self._units = learned.observer.layout, learned.observer.units
        self._names = learned.arms.names

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, from which `restore` makes the same."""
        steps = [
            {
                "seq": step.seq,
                "units": None if step.units is None else [one.tolist() for one in step.units],
                "places": _listed(step.places),
                "design_places": _listed(step.design_places),
                "sizes": list(step.sizes),
            }
            for step in self.steps
        ]
        removed = [list(pair) for pair in self.removed.items()]
        return {
            "steps": steps,
            "events": dict(self.events),
            "removed": removed,
            "last_removed": self.last_removed,
            "n_before": self.n_before,
        }

    def restore(self, record: dict[str, Any]) -> None:
        """Take over what `to_dict` returned."""
        self.steps = [
            Step(
                step["seq"],
                None if step["units"] is None else Units(*map(as_floats, step["units"])),
                _whole(step["places"]),
                _whole(step["design_places"]),
                (step["sizes"][0], step["sizes"][1]),
            )
            for step in record["steps"]
        ]
        self.events = dict(record["events"])
        self.removed = dict(record["removed"])
        self.last_removed = record["last_removed"]
        self.n_before = record["n_before"]

    def follow(self, learned: LearnerState, seq: int, n_decisions: int) -> None:
        """Take note of what a call has changed.

        Parameters
        ----------
        learned : LearnerState
            What is learned now.
        seq : int
            The last row before the call.
        n_decisions : int
            How many decisions the run has made by now.
        """
        observer = learned.observer
        if observer.layout is not self._layout or observer.units is not self._units:
            self._step(observer, seq)
            self.n_before = n_decisions
        if learned.arms.names is not self._names:
            for name in self._names:
                if name not in learned.arms:
                    self.removed[name] = self.last_removed = seq
            self._names = learned.arms.names

    def _step(self, observer: Observer, seq: int) -> None:
        before, places, design_places = self._layout, None, None
        if before is not observer.layout and not before.is_renamed_in(observer.layout):
            places = before.places_in(observer.layout)
            design_places = before.design_places_in(observer.layout, intercept=observer.intercept)
        if places is not None or self._units is not observer.units:
            sizes = observer.dim, observer.n_columns
            self.steps.append(Step(seq, self._units, places, design_places, sizes))
        self._layout, self._units = observer.layout, observer.units

    def present(self, x: Floats, seq: int, observer: Observer) -> Floats:
        """Return a design of an earlier row in present units and columns.

        Parameters
        ----------
        x : ndarray of shape (n_columns,)
            The design.
        seq : int
            The number of its row.
        observer : Observer
            What is done to observations now.
        """
        later = [step for step in self.steps if step.seq >= seq]
        if not later:
            return x
        units = later[0].units
        for step in later:
            if step.places is None or step.design_places is None:
                continue
            x = spread_design(x, step.design_places, step.sizes[1])
            if units is not None:
                wider = Units.unknown(step.sizes[0])
                wider.middle[step.places], wider.scale[step.places] = units
                units = wider
        converted: Floats = observer.from_units(units) @ x
        return converted

    def is_gone(self, arm: Arm, seq: int) -> bool:
        """Return whether an arm was removed since a row, and with it what was learned of it.

        Parameters
        ----------
        arm : str or int
            The arm.
        seq : int
            The number of the row.
        """
        return self.removed.get(arm, -1) >= seq


def _listed(places: Ints | None) -> list[int] | None:
    return None if places is None else places.tolist()


def _whole(places: list[int] | None) -> Ints | None:
    return None if places is None else np.array(places, dtype=np.int64)


def as_floats(values: list[float | None]) -> Floats:
    """Return numbers of a row as an array; null is NaN."""
    return np.array(values, dtype=np.float64)
