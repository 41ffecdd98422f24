"""Lines of Vowpal Wabbit's text for contextual bandits: labels, and rounds of several lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from keyhole.errors import FileError
from keyhole.evaluation.formats.sources import Block

# action:cost:probability, and what may follow it up to the bar.
LABEL = re.compile(rb"\s*\d+:[^\s:|]+:[^\s:|]+\s+[^|]*\|")
SHARED = b"shared"


class Row(NamedTuple):
    """A round."""

    line: int  # the number of the line with the label
    action: int
    cost: float
    probability: float
    features: bytes
    candidates: tuple[int, ...] | None  # numbers of the actions; None are all


class Label(NamedTuple):
    """What stands before the bar of a line."""

    action: int
    cost: float
    probability: float
    others: tuple[int, ...]  # further actions, which could be chosen too


def place(path: str, line: int) -> str:
    """Return the name of a line in error messages."""
    return f"line {line:,} of {path}"


def single_rows(block: Block) -> Iterator[Row]:
    """Yield the rounds of a block with a line for each."""
    for i, text in enumerate(block.data.split(b"\n")):
        if not text.strip():
            continue
        before, features = _halves(block, i, text)
        found = _label(block, i, before)
        if found is None:
            raise FileError(f"{block.place(i)}: action:cost:probability must stand before |")
        others = (found.action, *found.others) if found.others else None
        yield Row(block.first + i, *found[:3], features, others)


class Groups:
    """Rounds with a line for each action; a blank line, or the end of a file, ends a round."""

    def __init__(self) -> None:
        self._path = ""
        self._first = 0  # the line at which the round began
        self._shared: bytes | None = None
        self._n = 0  # actions so far
        self._found: tuple[int, int, Label] | None = None  # line, number and label of the chosen

    def rows(self, block: Block) -> Iterator[Row]:
        """Yield the rounds that end in a block."""
        self._path = block.path
        # What follows the last newline of a block is a line only at the end of a file.
        lines = block.data.split(b"\n")
        for i, text in enumerate(lines[:-1] if not lines[-1] else lines):
            if not text.strip():
                yield from self.end()
            else:
                self._add(block, i, text)

    def end(self) -> Iterator[Row]:
        """Yield the round that is open, if there is one."""
        if self._n == 0 and self._shared is None:
            return
        if self._found is None:
            raise FileError(
                f"{place(self._path, self._first)}: one action of the round must have a label, "
                f"action:cost:probability, got none of {self._n}"
            )
        line, number, label = self._found
        candidates = tuple(range(1, self._n + 1))
        yield Row(line, number, *label[1:3], self._shared or b"", candidates)
        self._shared, self._n, self._found = None, 0, None

    def _add(self, block: Block, i: int, text: bytes) -> None:
        before, features = _halves(block, i, text)
        if self._n == 0 and self._shared is None:
            self._first = block.first + i
        if before.split()[:1] == [SHARED]:
            if self._n or self._shared is not None:
                raise FileError(f"{block.place(i)}: shared must be the first line of a round")
            self._shared = features
            return
        self._n += 1
        label = _label(block, i, before)
        if label is None:
            return
        if self._found is not None:
            raise FileError(
                f"{block.place(i)}: one action of a round has a label, and line "
                f"{self._found[0]:,} has one"
            )
        self._found = block.first + i, self._n, label


def is_unlabelled(text: bytes) -> bool:
    """Return whether a line is part of a round of several lines: an action that was not chosen."""
    before, bar, _ = text.partition(b"|")
    words = before.split()
    return bool(bar) and (not words or words[0] == SHARED or b":" not in before)


def _halves(block: Block, i: int, text: bytes) -> tuple[bytes, bytes]:
    before, bar, features = text.partition(b"|")
    if not bar:
        raise FileError(f"{block.place(i)}: | must stand between label and features, got none")
    return before, features


def _label(block: Block, i: int, before: bytes) -> Label | None:
    """Return the label before a bar, or None if there is none."""
    words = before.split()
    if words and (words[-1].startswith(b"'") or not before[-1:].isspace()):
        tag = words.pop()
        if b":" in tag and not words:
            raise FileError(
                f"{block.place(i)}: a space must stand between {tag.decode()} and |, or Vowpal "
                "Wabbit takes it for a tag"
            )
    costed = [word for word in words if b":" in word]
    if not costed:
        return None
    if len(costed) > 1:
        raise FileError(f"{block.place(i)}: one action has a cost, got {len(costed)}")
    parts = costed[0].split(b":")
    if len(parts) != 3:
        raise FileError(
            f"{block.place(i)}: the label must be action:cost:probability, got {costed[0].decode()}"
        )
    others = tuple(_number(block, i, "action", word) for word in words if word is not costed[0])
    return Label(
        _number(block, i, "action", parts[0]),
        _real(block, i, "cost", parts[1]),
        _real(block, i, "probability", parts[2]),
        others,
    )


def _number(block: Block, i: int, field: str, word: bytes) -> int:
    if not word.isdigit() or len(word) > 7:
        raise FileError(
            f"{block.place(i)}: {field} must be a whole number from 1, got {word.decode()}"
        )
    return int(word)


def _real(block: Block, i: int, field: str, word: bytes) -> float:
    try:
        return float(word)
    except ValueError:
        raise FileError(
            f"{block.place(i)}: {field} must be a number, got {word.decode()}"
        ) from None
