"""What a log knows of each event: where its rows are, and whether its reward was learned."""

from __future__ import annotations

from array import array
from typing import Final

UNKNOWN: Final = 0
DECIDED: Final = 1
LEARNED: Final = 2
FORGOTTEN: Final = 3
WORDS: Final = ("unknown", "decided", "learned", "forgotten")
# A batch of decisions takes one number; this many in a row cost less than ids by their text.
MOST_MISSING: Final = 100
# The ids of a bandit's decisions are the name of its run, of this length, a dash and a number, and
# those of a batch, a dot and their place besides.
NAME: Final = 16


class Run:
    """Events whose ids are consecutive numbers: the decisions of one run, or of one batch."""

    __slots__ = ("first", "lasts", "places", "states")

    def __init__(self, first: int) -> None:
        self.first = first
        self.places = array("q")  # of the row of the decision
        self.lasts = array("q")  # of the row that the term of its reward follows from, or -1
        self.states = bytearray()


class Events:
    """The state and the rows of every event of a log.

    The ids of a run's own decisions are its name and consecutive numbers: they take 17 bytes each.
    All others are kept by their text.
    """

    def __init__(self) -> None:
        self._runs: dict[str, Run] = {}
        self._others: dict[str, tuple[int, int, int]] = {}  # place, last and state
        self._more: dict[str, list[int]] = {}  # further places, of the few that have such

    def add(self, event: str, place: int) -> None:
        """Add a decision.

        Parameters
        ----------
        event : str
            Its id.
        place : int
            The place of its row.
        """
        name, number = _split(event)
        if number >= 0:
            run = self._runs.get(name)
            if run is None:
                run = self._runs[name] = Run(number)
            missing = number - run.first - len(run.places)
            if missing == 0:
                run.places.append(place)
                run.lasts.append(-1)
                run.states.append(DECIDED)
                return
            if 0 < missing <= MOST_MISSING:
                run.places.extend([-1] * missing + [place])
                run.lasts.extend([-1] * (missing + 1))
                run.states.extend([UNKNOWN] * missing + [DECIDED])
                return
        self._set(event, place, -1, DECIDED)  # which may be a number that was passed over

    def _find(self, event: str) -> tuple[Run, int] | None:
        name, number = _split(event)
        run = self._runs.get(name)
        if run is None or not 0 <= number - run.first < len(run.places):
            return None
        return run, number - run.first

    def _get(self, event: str) -> tuple[int, int, int]:
        """Return place, last and state."""
        found = self._find(event)
        if found is None:
            return self._others.get(event, (-1, -1, UNKNOWN))
        run, index = found
        return run.places[index], run.lasts[index], run.states[index]

    def _set(self, event: str, place: int, last: int, state: int) -> None:
        found = self._find(event)
        if found is None:
            self._others[event] = (place, last, state)
        else:
            run, index = found
            run.places[index], run.lasts[index], run.states[index] = place, last, state

    def state(self, event: str) -> int:
        """Return the state of an event: one of the numbers of `WORDS`."""
        return self._get(event)[2]

    def place(self, event: str) -> int:
        """Return the place of the row of a decision, the last if several; -1 if there is none."""
        return self._get(event)[0]

    def places(self, event: str) -> list[int]:
        """Return the places of the rows that the decision and its terms follow from, in order."""
        place, last, _ = self._get(event)
        found = {place, last, *self._more.get(event, ())}
        return sorted(found - {-1})

    def learn(self, event: str, place: int) -> None:
        """Note the reward of an event.

        Parameters
        ----------
        event : str
            Its id.
        place : int
            The place of the row.
        """
        decided, last, state = self._get(event)
        if last >= 0:
            self.also(event, place)
        elif state != FORGOTTEN:
            self._set(event, decided, place, LEARNED)

    def change(self, event: str, place: int) -> None:
        """Note a row that says all of the term of an event.

        Parameters
        ----------
        event : str
            Its id.
        place : int
            The place of the row.
        """
        if event in self._more:
            self.also(event, place)
        else:
            decided, _, state = self._get(event)
            self._set(event, decided, place, state)

    def also(self, event: str, place: int) -> None:
        """Note a further row of an event.

        Parameters
        ----------
        event : str
            Its id.
        place : int
            The place of the row.
        """
        self._more.setdefault(event, []).append(place)

    def forget(self, event: str) -> None:
        """Note that an event was forgotten. Its rows stay: a replay may need them."""
        place, last, _ = self._get(event)
        self._set(event, place, last, FORGOTTEN)

    def counts(self) -> dict[str, int]:
        """Return how many events are in each state."""
        total = bytearray().join(run.states for run in self._runs.values())
        total += bytes(state for _, _, state in self._others.values())
        return {word: total.count(state) for state, word in enumerate(WORDS) if state}


def _split(event: str) -> tuple[str, int]:
    """Return the name of a run or batch, and the number; -1 if the id is not of that form."""
    if event[NAME : NAME + 1] != "-":
        return "", -1
    name, _, text = event.rpartition("." if "." in event else "-")
    # "07" is another event than "7", and so is a number of other digits than ours.
    if not text.isascii() or not text.isdecimal() or (text[0] == "0" and text != "0"):
        return "", -1
    return name, int(text)
