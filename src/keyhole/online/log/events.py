"""An index of the events of a log: the place of each decision, and the state of its reward."""

from __future__ import annotations

from array import array
from typing import Final

UNKNOWN: Final = 0
DECIDED: Final = 1
LEARNED: Final = 2
FORGOTTEN: Final = 3
# A batch of decisions takes one number; this many in a row cost less than ids by their text.
MOST_MISSING: Final = 100
WORDS: Final = ("unknown", "decided", "learned", "forgotten")


class Run:
    """The decisions of one run, which are numbered from some number on."""

    def __init__(self, first: int) -> None:
        self.first = first
        self.places = array("q")  # of their rows in the file
        self.states = bytearray()


class Events:
    """The state and the row of every event of a log.

    The ids of a run's own decisions are its name and consecutive numbers: they take nine bytes
    each. All others are kept by their text.
    """

    def __init__(self) -> None:
        self._runs: dict[str, Run] = {}
        self._others: dict[str, tuple[int, int]] = {}  # place and state

    def add(self, event: str, place: int) -> None:
        """Add a decision.

        Parameters
        ----------
        event : str
            Its id.
        place : int
            The place of its row in the file.
        """
        found = self._find(event)
        if found is not None:  # a number that was passed over
            found[0].places[found[1]], found[0].states[found[1]] = place, DECIDED
            return
        name, _, text = event.partition("-")
        if text.isdecimal() and str(int(text)) == text:  # "07" is another event than "7"
            run = self._runs.setdefault(name, Run(int(text)))
            missing = int(text) - run.first - len(run.places)
            if 0 <= missing <= MOST_MISSING:
                run.places.extend([-1] * missing + [place])
                run.states.extend([UNKNOWN] * missing + [DECIDED])
                return
        self._others[event] = (place, DECIDED)

    def _find(self, event: str) -> tuple[Run, int] | None:
        name, _, text = event.partition("-")
        run = self._runs.get(name)
        if run is None or not text.isdecimal():
            return None
        index = int(text) - run.first
        is_there = 0 <= index < len(run.places) and str(int(text)) == text
        return (run, index) if is_there else None

    def state(self, event: str) -> int:
        """Return the state of an event: one of the numbers of `WORDS`."""
        found = self._find(event)
        if found is None:
            return self._others.get(event, (0, UNKNOWN))[1]
        return found[0].states[found[1]]

    def place(self, event: str) -> int:
        """Return the place of the row of a known event."""
        found = self._find(event)
        return self._others[event][0] if found is None else found[0].places[found[1]]

    def set(self, event: str, state: int) -> None:
        """Set the state of an event; one that was unknown has no row.

        Parameters
        ----------
        event : str
            Its id.
        state : int
            The state.
        """
        found = self._find(event)
        if found is None:
            self._others[event] = (self._others.get(event, (-1, 0))[0], state)
        else:
            found[0].states[found[1]] = state

    def counts(self) -> dict[str, int]:
        """Return how many events are in each state."""
        total = bytearray().join(run.states for run in self._runs.values())
        total += bytes(state for _, state in self._others.values())
        return {word: total.count(state) for state, word in enumerate(WORDS) if state}
