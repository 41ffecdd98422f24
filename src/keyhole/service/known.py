"""`KnownIds`: a Bloom filter of event ids, which finds most new ones without a query.

Most decisions are of a new event. A query for its id takes 10 us, a fifth of a request; the filter
0.5 us. An id that is not in the filter is certainly new; any other has to be looked up.
"""

from __future__ import annotations

from collections.abc import Iterable

# Bits of the filters, which are filled one after another: a loop with few events has a small one.
# The last takes all that come, and says "perhaps" more and more often.
SIZES = (1 << 17, 1 << 21, 1 << 25)
# Bits of a filter for each id, of which two are set: each full filter says "perhaps" of 1.4% of new
# ids, all three of 4.1%. They are low and higher bits of Python's hash of texts, which is keyed per
# process, so that a client cannot construct collisions.
BITS_OF_AN_ID = 16
SHIFT = 25


class KnownIds:
    """The ids of the events of a loop; 4.5 MB at most.

    Attributes
    ----------
    is_complete : bool
        Whether all ids of the database were added. Until then every id is perhaps known.
    last : str
        The last id of the database that was added, in their order.
    """

    def __init__(self) -> None:
        self.is_complete, self.last = False, ""
        # Each with its last place, in bits.
        self._filters: list[tuple[bytearray, int]] = []
        self._left = 0  # how many ids the last filter is still made for

    def add(self, name: str) -> None:
        """Add an id."""
        if self._left <= 0 and len(self._filters) < len(SIZES):
            size = SIZES[len(self._filters)]
            self._filters.append((bytearray(size >> 3), size - 1))
            self._left = size // BITS_OF_AN_ID
        bits, mask = self._filters[-1]
        value = hash(name)
        one, two = value & mask, (value >> SHIFT) & mask
        bits[one >> 3] |= 1 << (one & 7)
        bits[two >> 3] |= 1 << (two & 7)
        self._left -= 1

    def add_all(self, names: Iterable[str]) -> None:
        """Add the next ids of the database, in order; an empty page marks the end."""
        before = self.last
        for name in names:
            self.add(name)
            self.last = name
        self.is_complete = self.last == before

    def is_new(self, name: str) -> bool:
        """Tell whether an id was surely never added."""
        if not self.is_complete:
            return False
        value = hash(name)
        for bits, mask in self._filters:
            one, two = value & mask, (value >> SHIFT) & mask
            if bits[one >> 3] >> (one & 7) & bits[two >> 3] >> (two & 7) & 1:
                return False
        return True
