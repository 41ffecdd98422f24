"""Reading of Vowpal Wabbit's text, block by block, into the columns of a log."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from keyhole.core import Arm, Floats, Ints
from keyhole.errors import FileError, UnknownArm
from keyhole.evaluation.formats.cb_features import Features
from keyhole.evaluation.formats.cb_lines import Groups, Row, is_unlabelled, place, single_rows
from keyhole.evaluation.formats.sources import Block
from keyhole.evaluation.formats.tables import check_size

# A line with a label and perhaps a tag before its bar. All lines of a block are found at once.
SIMPLE = re.compile(rb"^[ \t]*(\d{1,7}):([^\s:|]+):([^\s:|]+)[ \t]+[^\s|]*\|(.*)$", re.MULTILINE)
MAX_ACTION = 1_000_000


class Part(NamedTuple):
    """Rounds of a block."""

    action: Ints
    cost: Floats
    probability: Floats
    candidates: Sequence[tuple[int, ...] | None] | None  # None if all actions are


class Reader:
    """The rounds of one or more files.

    Parameters
    ----------
    arms : sequence or None
        Names of the actions 1, 2, ...
    """

    def __init__(self, arms: Sequence[Arm] | None) -> None:
        self._arms = arms
        self._features = Features()
        self._parts: list[Part] = []
        self._groups = Groups()
        self._is_multiline: bool | None = None
        self._path = ""

    @property
    def n_rounds(self) -> int:
        """How many rounds were taken in."""
        return sum(len(part.action) for part in self._parts)

    def add(self, block: Block) -> None:
        """Take in a block of lines, or raise `FileError`."""
        if self._is_multiline is None:
            self._is_multiline = any(map(is_unlabelled, block.data.split(b"\n")))
        if block.first == 1:
            self.finish()
        self._path = block.path
        if self._is_multiline:
            self._keep(self._groups.rows(block))
        elif not self._add_simple(block):
            self._keep(single_rows(block))

    def finish(self) -> None:
        """Take in the last round of a file."""
        self._keep(self._groups.end())

    def columns(self) -> dict[str, Any]:
        """Return the columns of a log."""
        parts, n = self._parts, self.n_rounds
        action = np.concatenate([part.action for part in parts])
        listed = [one for part in parts for one in part.candidates or ()]
        largest = max(int(action.max()), max((max(one) for one in listed if one), default=0))
        arms = tuple(range(1, largest + 1)) if self._arms is None else self._arms
        columns: dict[str, Any] = {
            "arms": arms,
            "chosen": action - 1,
            "probability": np.concatenate([part.probability for part in parts]),
            "reward": 0.0 - np.concatenate([part.cost for part in parts]),
            "observation": self._features.table,
        }
        if any(one is not None for one in listed):
            check_size("candidates", n, len(arms), "give files with fewer actions")
            columns["candidates"] = self._candidates(len(arms))
        return columns

    def _candidates(self, k: int) -> Any:
        found = np.ones((self.n_rounds, k), bool)
        t = 0
        for part in self._parts:
            for i, one in enumerate(part.candidates or ()):
                if one is not None:
                    found[t + i] = False
                    found[t + i, np.array(one) - 1] = True
            t += len(part.action)
        return found

    def _add_simple(self, block: Block) -> bool:
        """Take in a block whose lines are all of one form, and return whether they are."""
        found = SIMPLE.findall(block.data)
        n = block.data.count(b"\n") + (not block.data.endswith(b"\n"))
        if len(found) != n:
            return False
        actions, costs, probabilities, features = zip(*found, strict=True)
        try:
            cost, p = (np.array(list(map(float, one))) for one in (costs, probabilities))
        except ValueError:  # the other way says of which line
            return False
        part = Part(np.array(list(map(int, actions))), cost, p, None)
        self._check(part, range(block.first, block.first + n))
        self._parts.append(part)
        self._features.add(list(features))
        return True

    def _keep(self, rows: Iterable[Row]) -> None:
        found = list(rows)
        if not found:
            return
        lines, actions, costs, probabilities, features, candidates = zip(*found, strict=True)
        part = Part(np.array(actions), np.array(costs), np.array(probabilities), candidates)
        self._check(part, lines)
        self._parts.append(part)
        self._features.add(list(features))

    def _check(self, part: Part, lines: Sequence[int]) -> None:
        """Raise if a number is out of its range."""
        cost, p, action = part.cost, part.probability, part.action
        rules = (
            ("probability", p, ~(p > 0.0) | ~(p <= 1.0), "above 0 and at most 1"),
            ("cost", cost, ~(np.abs(cost) <= 1e50), "a number"),
            ("action", action, (action < 1) | (action > MAX_ACTION), f"from 1 to {MAX_ACTION:,}"),
        )
        for field, values, wrong, rule in rules:
            if wrong.any():
                i = int(wrong.argmax())
                raise FileError(
                    f"{place(self._path, lines[i])}: {field} must be {rule}, got {values[i]:g}"
                )
        if self._arms is None:
            return
        largest = action.copy()
        for i, others in enumerate(part.candidates or ()):
            largest[i] = max((largest[i], *(others or ())))
        if (largest > len(self._arms)).any():
            i = int((largest > len(self._arms)).argmax())
            raise UnknownArm(
                f"{place(self._path, lines[i])}: action must be at most {len(self._arms)}, the "
                f"number of the given arms, got {largest[i]}"
            )
