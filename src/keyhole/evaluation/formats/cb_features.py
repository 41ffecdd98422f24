"""Features of Vowpal Wabbit's text, where they are vectors: the same names in every line.

    |user age:41 income:2.5 |item price:3

has the features user^age, user^income and item^price. A feature without a value is 1.
"""

from __future__ import annotations

import re

import numpy as np

from keyhole.core import Floats


class Features:
    """The features of the lines of a file; none, as soon as a line has others than the first."""

    def __init__(self) -> None:
        self._names: tuple[bytes, ...] | None = None
        self._pattern: re.Pattern[bytes] | None = None
        self._parts: list[Floats] = []
        self._are_vectors = True

    def add(self, texts: list[bytes]) -> None:
        """Take in the features of lines, each the text after its first bar."""
        if not self._are_vectors or not texts:
            return
        if self._names is None:
            first = parsed(texts[0])
            self._names = () if first is None else tuple(first)
            self._pattern = _pattern(texts[0])
        table = self._by_pattern(texts) if self._names else None
        table = self._one_by_one(texts) if table is None and self._names else table
        if table is None:
            self._are_vectors, self._parts = False, []
        else:
            self._parts.append(table)

    @property
    def table(self) -> Floats | None:
        """The features of every line, (n, d), or None if they are no vectors."""
        return np.concatenate(self._parts) if self._are_vectors and self._parts else None

    def _by_pattern(self, texts: list[bytes]) -> Floats | None:
        """Return the values of lines that look like the first, or None if one does not."""
        assert self._pattern is not None
        found = self._pattern.findall(b"\n".join(texts))
        if len(found) != len(texts):
            return None
        try:
            values: Floats = np.array(found).astype(np.float64).reshape(len(texts), -1)
        except ValueError:
            return None
        is_right = values.shape[1] == len(self._names or ()) and np.isfinite(values).all()
        return values if is_right else None

    def _one_by_one(self, texts: list[bytes]) -> Floats | None:
        rows = []
        for text in texts:
            found = parsed(text)
            if found is None or found.keys() != set(self._names or ()):
                return None
            rows.append([found[name] for name in self._names or ()])
        return np.array(rows)


def parsed(text: bytes) -> dict[bytes, float] | None:
    """Return features by name; None if one is there twice, or its value is no number."""
    found: dict[bytes, float] = {}
    # Text after a bar begins with a namespace, unless a space follows the bar.
    for part in text.split(b"|"):
        words = part.split()
        space = words.pop(0) if words and not part[:1].isspace() else b""
        name, _, weight = space.partition(b":")
        for word in words:
            feature, colon, value = word.rpartition(b":")
            key = name + b"^" + (feature if colon else word)
            try:
                number = (float(value) if colon else 1.0) * (float(weight) if weight else 1.0)
            except ValueError:
                return None
            if key in found or not np.isfinite(number):
                return None
            found[key] = number
    return found


def _pattern(text: bytes) -> re.Pattern[bytes]:
    """Return a pattern of lines with the same names, whose groups are the values.

    Where a namespace has a weight, or a feature no value, it matches fewer groups than there are
    features, and lines are parsed one by one.
    """
    words = [
        re.escape(name) + rb":([^\s|:]+)" if colon else re.escape(word)
        for word in text.split()
        for name, colon, _ in [word.rpartition(b":")]
    ]
    start = rb"" if text[:1].strip() else rb"[ \t]+"
    return re.compile(rb"^" + start + rb"[ \t]+".join(words) + rb"[ \t\r]*$", re.MULTILINE)
