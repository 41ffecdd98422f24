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
    """What the columns of an observation are.

    Attributes
    ----------
    names : tuple of str or None
        The names of the columns; None if they have none.
    is_indicator : ndarray of bool of shape (dim,)
        Columns of 0 and 1, whose unit is 1.
    crosses : ndarray of int of shape (m, 2)
        Pairs of columns whose product is one more column of the design each.
    cross_names : tuple of str
        The names of these.
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
        """Whether a design has no columns but those of the observation."""
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

    def places_in(self, other: Layout) -> Ints:
        """Return where each column of an observation is in a wider layout."""
        place = {name: j for j, name in enumerate(other.names or ())}
        return np.array([place[name] for name in self.names or ()], dtype=np.int64)

    def design_places_in(self, other: Layout, *, intercept: bool) -> Ints:
        """Return where each column of a design is in a wider layout.

        Parameters
        ----------
        other : Layout
            The wider layout.
        intercept : bool
            Whether designs begin with a constant.
        """
        place = {key: j for j, key in enumerate(other._design_keys(intercept))}
        mine = self._design_keys(intercept)
        return np.array([place[key] for key in mine], dtype=np.int64)

    def _design_keys(self, intercept: bool) -> list[tuple[str, ...]]:
        """Return what tells the columns of a design apart, whatever their names look like."""
        names = self.names or ()
        pairs = [(names[p], names[q]) for p, q in self.crosses.tolist()]
        return [*([()] if intercept else []), *((name,) for name in names), *pairs]

    def siblings_of(self, other: Layout) -> Ints:
        """Return, for each column of a wider layout, a column here of the same category, or -1.

        A column that is here is its own sibling. A new level of a category was 0 wherever another
        level of it was seen, and missing where that was.
        """
        mine = {name: j for j, name in enumerate(self.names or ())}
        names = other.names or ()
        first: dict[int, int] = {}
        for j, name in enumerate(names):
            if name in mine:
                first.setdefault(int(other.group[j]), mine[name])
        return np.array(
            [mine.get(name, first.get(int(other.group[j]), -1)) for j, name in enumerate(names)],
            dtype=np.int64,
        )

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
