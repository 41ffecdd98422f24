"""`Layout`: the names of columns, which of them are indicators, and which products follow them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from keyhole.core.kernels import Ints

if TYPE_CHECKING:
    from keyhole.core.observers.encoder import Encoder

# The name of the constant among the columns of a design.
CONSTANT = "constant"


class Layout(NamedTuple):
    """The columns of an observation.

    Attributes
    ----------
    names : tuple of str or None
        The names of the columns; None if they have none. That of a spare column, which waits for a
        level, is empty.
    is_indicator : ndarray of bool of shape (dim,)
        Columns of 0 and 1, whose unit is 1.
    crosses : ndarray of int of shape (m, 2)
        Pairs of columns whose product is one more column of the design each.
    cross_names : tuple of str
        The names of these; empty where one of the two is spare.
    group : ndarray of int of shape (dim,)
        Columns of one category have one number; every other column has a number of its own.
    fields : tuple of str or None
        The field that each column was made of.
    unseen : tuple of str
        Growing categories without a level, which are missing in every row.
    """

    names: tuple[str, ...] | None
    is_indicator: Any
    crosses: Ints
    cross_names: tuple[str, ...]
    group: Ints
    fields: tuple[str, ...] | None = None
    unseen: tuple[str, ...] = ()

    @classmethod
    def plain(cls, dim: int) -> Layout:
        """Return the layout of numbers without names."""
        none = np.empty((0, 2), dtype=np.int64)
        return cls(None, np.zeros(dim, dtype=bool), none, (), np.arange(dim))

    @classmethod
    def of(cls, encoder: Encoder) -> Layout:
        """Return the layout of the columns that an encoder makes."""
        return cls(
            encoder.names,
            encoder.is_indicator,
            encoder.crosses,
            encoder.cross_names,
            encoder.group,
            encoder.column_fields,
            tuple(field for field, levels in encoder.levels.items() if not levels),
        )

    @property
    def dim(self) -> int:
        """The number of columns of an observation."""
        return len(self.is_indicator)

    @property
    def is_plain(self) -> bool:
        """True if a design has only the columns of the observation."""
        return len(self.crosses) == 0

    def design_names(self, *, intercept: bool) -> tuple[str, ...]:
        """Return the names of the columns of a design."""
        names = self.names or tuple(str(j) for j in range(self.dim))
        return ((CONSTANT,) if intercept else ()) + names + self.cross_names

    def design_fields(self, *, intercept: bool) -> tuple[str, ...]:
        """Return the field, or pair of fields, that each column of a design was made of."""
        names = self.names or tuple(str(j) for j in range(self.dim))
        fields = self.fields or names
        pairs = tuple(f"{fields[p]}:{fields[q]}" for p, q in self.crosses.tolist())
        return ((CONSTANT,) if intercept else ()) + fields + pairs

    def is_renamed_in(self, other: Layout) -> bool:
        """Return whether another layout has these very columns, with names for spare ones."""
        mine, theirs = self.names or (), other.names or ()
        same = len(mine) == len(theirs) and all(
            not one or one == two for one, two in zip(mine, theirs, strict=True)
        )
        return same and np.array_equal(self.crosses, other.crosses)

    def places_in(self, other: Layout) -> Ints:
        """Return the index of each column of an observation in a wider layout.

        A spare column was 0 wherever its category was seen, and so was every level that was not
        known: it becomes the next column of its category that has no other place here.
        """
        place = {name: j for j, name in enumerate(other.names or ()) if name}
        places = [place.get(name, -1) if name else -1 for name in self.names or ()]
        if -1 in places:
            taken, left = set(places), dict[str, list[int]]()
            for j, field in reversed(list(enumerate(other.fields or ()))):
                if j not in taken:
                    left.setdefault(field, []).append(j)
            for k, field in enumerate(self.fields or ()):
                if places[k] < 0:
                    places[k] = left[field].pop()
        return np.array(places, dtype=np.int64)

    def design_places_in(self, other: Layout, *, intercept: bool) -> Ints:
        """Return the index of each column of a design in a wider layout.

        Parameters
        ----------
        other : Layout
            The wider layout.
        intercept : bool
            Whether designs begin with a constant.
        """
        places = self.places_in(other)
        crossed = {(p, q): k for k, (p, q) in enumerate(other.crosses.tolist())}
        products = [crossed[p, q] for p, q in places[self.crosses].tolist()]
        first = int(intercept)
        return np.concatenate(
            [
                np.arange(first),
                first + places,
                first + other.dim + np.array(products, dtype=np.int64),
            ]
        ).astype(np.int64)

    def siblings_of(self, other: Layout) -> Ints:
        """Return, for each column of a wider layout, a column here of the same category, or -1.

        A column that is here is its own sibling. A new level of a category was 0 wherever another
        level of it was seen, and missing where that was.
        """
        first: dict[str, int] = {}
        for j, field in enumerate(self.fields or ()):
            first.setdefault(field, j)
        siblings = np.array([first.get(field, -1) for field in other.fields or ()], dtype=np.int64)
        siblings[self.places_in(other)] = np.arange(self.dim)
        return siblings

    def baseline(self) -> Ints:
        """Return which columns are 1 in the record that effects are counted from.

        Numbers are 0, booleans are False, and each category has its first level.
        """
        _, first = np.unique(self.group, return_index=True)
        return np.sort(first[self.is_level[first]])

    @property
    def is_level(self) -> Any:
        """Mask of the columns that are levels of a category, be it the only one so far."""
        pairs = zip(self.names or (), self.fields or self.names or (), strict=True)
        named = np.array([name != field for name, field in pairs], dtype=bool)
        return named if self.names else np.zeros(self.dim, dtype=bool)
