"""`Encoder`: records and frames to columns of numbers, by a recipe and the levels seen so far."""

from __future__ import annotations

import copy
import hashlib
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from keyhole import checks
from keyhole.core.kernels import Floats, Ints
from keyhole.core.observers import records
from keyhole.core.observers.layout import CONSTANT
from keyhole.errors import InvalidValue, shown

if TYPE_CHECKING:
    from keyhole.core.observers.features import Features

# Most levels of a category that has a column for each.
MOST_LEVELS = 1_000
# Most columns of a design, crossed ones too: a posterior of this many takes 210 megabytes per arm.
# A category that is hashed into the most columns fits in, with another of the most levels.
MOST_COLUMNS = 5_120
# Put before the fields of an arm's record.
ARM = "arm."
# From this many levels on, a growing category that needs a column gets spare ones as well, an
# eighth of its levels: sums then move to larger arrays 50 times on the way to 1,000 levels, not
# 1,000.
FEW_LEVELS = 16
SPARE = 8

_ABSENT = object()
_PLAIN = frozenset({float, int, np.float64})
_ZERO_ONE = frozenset({0.0, 1.0})
_CONVERT: dict[str, Callable[[str, object], Any]] = {
    "number": records.number,
    "boolean": lambda field, value: bool(records.boolean(field, value)),
}


def bucket(level: str, n: int) -> int:
    """Return the column of a hashed level: the CRC-32 of its UTF-8 bytes, modulo n.

    It is the same in every process, on every machine and in every version.

    Parameters
    ----------
    level : str
        The level.
    n : int
        Number of columns.
    """
    return zlib.crc32(level.encode("utf-8", "surrogatepass")) % n


def digest_of(content: Any) -> str:
    """Return 12 hexadecimal digits of a hash of something that JSON can hold."""
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:12]


# Field in the record and in messages, column of each level, columns of all levels, whether an
# unknown level gets a column.
_Levelled: TypeAlias = tuple[str, str, dict[str, int], list[int], bool]


class _Plan(NamedTuple):
    """A plan for writing one kind of record, a context's or an arm's, into columns.

    Entries begin with the field's name in the record and its name in messages.
    """

    what: str
    fields: tuple[str, ...]
    numbers: list[tuple[str, str, int]]
    booleans: list[tuple[str, str, int]]
    levelled: list[_Levelled]
    hashed: list[tuple[str, str, int, int]]  # first column, number of columns


@dataclass(frozen=True)
class Encoder:
    """A recipe, and the levels of its growing categories that were seen so far.

    It never changes: a level that is seen for the first time gives a new encoder. Its columns come
    after all others, so that earlier columns keep their places.

    Parameters
    ----------
    features : Features
        The recipe.
    grown : sequence of (field, level), default ()
        The levels of growing categories, in the order in which they were seen.

    Attributes
    ----------
    names : tuple of str
        Names of the columns; empty for a spare column, which waits for a level and is 0 wherever
        its category was seen.
    is_indicator : ndarray of bool, shape (dim,)
        Columns of booleans and categories, whose unit is 1 and whose middle is 0.
    group : ndarray of int, shape (dim,)
        Columns of one category have one number; every other column has its own.
    column_fields : tuple of str
        The field that each column is of.
    crosses : ndarray of int, shape (n, 2)
        Crossed columns, as the indices of the two columns that are multiplied. Those of a later
        encoder come after those of an earlier one.
    cross_names : tuple of str
        Names of the crossed columns; empty where one of the two is spare.
    columns : mapping
        Field -> tuple of the indices of its columns.
    levels : mapping
        Growing category -> tuple of its levels so far.
    full : frozenset of str
        Growing categories that were shown a level beyond the limit: it is missing, and so is every
        later one.

    Examples
    --------
    >>> from keyhole.core import Features
    >>> encoder = Features(numbers=["age"], categories={"device": ["mobile", "desktop"]}).start()
    >>> encoder.names
    ('age', 'device=mobile', 'device=desktop')
    >>> row, encoder = encoder.encode({"age": 41, "device": "desktop"})
    >>> row.tolist()
    [41.0, 0.0, 1.0]
    """

    features: Features
    grown: tuple[tuple[str, str], ...] = ()
    names: tuple[str, ...] = field(init=False, repr=False, compare=False)
    is_indicator: NDArray[np.bool_] = field(init=False, repr=False, compare=False)
    group: Ints = field(init=False, repr=False, compare=False)
    column_fields: tuple[str, ...] = field(init=False, repr=False, compare=False)
    crosses: Ints = field(init=False, repr=False, compare=False)
    cross_names: tuple[str, ...] = field(init=False, repr=False, compare=False)
    columns: Mapping[str, tuple[int, ...]] = field(init=False, repr=False, compare=False)
    levels: Mapping[str, tuple[str, ...]] = field(init=False, repr=False, compare=False)
    full: frozenset[str] = field(init=False, repr=False, compare=False)
    _tables: dict[str, dict[str, int]] = field(init=False, repr=False, compare=False)
    _layout: _Layout = field(init=False, repr=False, compare=False)
    _plan: _Plan = field(init=False, repr=False, compare=False)
    _arm_plan: _Plan | None = field(init=False, repr=False, compare=False)
    # Columns of booleans, then of one category after the other, and the range of each category
    # among these.
    _indicators: Ints = field(init=False, repr=False, compare=False)
    _spans: tuple[tuple[int, int], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        grown = _pairs(self.grown)
        layout = _Layout(self.features)
        for name, level in grown:
            layout.grow(name, level)
        self._set(grown, layout)

    def _set(self, grown: tuple[tuple[str, str], ...], layout: _Layout) -> None:
        """Set the fields that follow from a layout."""
        values: dict[str, Any] = {
            "grown": grown,
            "names": tuple(layout.names),
            "is_indicator": _frozen(np.array(layout.is_indicator, dtype=bool)),
            "group": _frozen(np.array(layout.group, dtype=np.int64)),
            "column_fields": tuple(layout.fields),
            "crosses": _frozen(np.array(layout.crosses, dtype=np.int64).reshape(-1, 2)),
            "cross_names": tuple(layout.name_of(i, j) for i, j in layout.crosses),
            "columns": MappingProxyType({k: tuple(v) for k, v in layout.columns.items()}),
            "levels": MappingProxyType({k: tuple(v) for k, v in layout.tables.items()}),
            "full": frozenset(layout.full),
            "_tables": layout.tables,
            "_layout": layout,
            "_plan": layout.plans[0],
            "_arm_plan": layout.plans[1] if len(layout.plans) > 1 else None,
        }
        values["_indicators"], values["_spans"] = _indicators(layout.plans)
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __reduce__(self) -> tuple[type[Encoder], tuple[Any, ...]]:
        return Encoder, (self.features, self.grown)

    @property
    def dim(self) -> int:
        """Number of columns, without those that are crossed."""
        return len(self.names)

    @property
    def n_columns(self) -> int:
        """Number of columns, with those that are crossed and the constant."""
        return len(self.names) + len(self.crosses) + 1

    @property
    def digest(self) -> str:
        """A digest that identifies the columns of this recipe."""
        return digest_of(self.features.to_dict())

    @property
    def takes_rows(self) -> bool:
        """True if arrays are encoded too, and not read as columns: never here."""
        return False

    @property
    def can_grow(self) -> bool:
        """True if a category may get more levels."""
        return bool(self.levels)

    def merged(self, other: Encoder) -> Encoder:
        """Return an encoder that also has the levels that another one has seen."""
        return self.with_levels(other.grown)

    def with_levels(self, grown: Sequence[tuple[str, str]]) -> Encoder:
        """Return an encoder that also has these levels of growing categories, or raise."""
        new = [(name, level) for name, level in grown if level not in self._tables.get(name, ())]
        if not new:
            return self
        layout = self._layout.copy()
        for name, level in new:
            layout.grow(name, level)
        return self._with(tuple(new), layout)

    def has_columns_of(self, grown: tuple[tuple[str, str], ...], dim: int) -> bool:
        """Return whether an encoder of these levels and `dim` columns has the columns of this one.

        Columns keep their places while levels are added: those of an earlier encoder are these,
        unless there are more by now.

        Parameters
        ----------
        grown : tuple of (field, level)
            The levels of the other encoder.
        dim : int
            The number of its columns.
        """
        return dim == self.dim and grown == self.grown[: len(grown)]

    def reference(self, field: str) -> str | None:
        """Return the first level of a category, which effects of its other levels are against.

        It is None for a hashed category, and for a growing one of which no level was seen.
        """
        spec = self.features.category(field)
        levels: Sequence[str] = self.levels.get(field, ())
        return next(iter(levels if isinstance(spec, int | str) else spec), None)

    def encode(
        self, record: Any, arms: Sequence[Any] | Any | None = None
    ) -> tuple[Floats, Encoder]:
        """Return the columns of a record, and the encoder that they are of.

        Parameters
        ----------
        record : record
            Values by field. A field that is not there is missing.
        arms : sequence of records, optional
            One record per arm, if the recipe has features of arms.

        Returns
        -------
        columns : ndarray of shape (dim,), or (n_arms, dim) with `arms`
            NaN where a value is missing: for a category, in all of its columns.
        encoder : Encoder
            This one, or one that also has the levels that were seen here for the first time.

        Raises
        ------
        InvalidValue
            If a value cannot be used, or a field is unknown.
        """
        new: list[tuple[str, str]] = []
        if arms is None and self._arm_plan is None:
            row: Floats = np.zeros(len(self.names))
            _write(row, 0, record, self._plan, new)
            return (row, self) if not new else self._grow(new).encode(record)
        arm_records, plan = self._checked_arms(arms)
        dim = len(self.names)
        rows: Floats = np.zeros((len(arm_records), dim))
        flat = rows.reshape(-1)
        _write(flat, 0, record, self._plan, new)
        rows[1:] = rows[0]
        for k, arm_record in enumerate(arm_records):
            _write(flat, k * dim, arm_record, plan, new)
        return (rows, self) if not new else self._grow(new).encode(record, arm_records)

    def encode_frame(self, frame: Any) -> tuple[Floats, Encoder]:
        """Return the columns of the rows of a frame, and the encoder that they are of.

        The rows are those that `encode` gives, one after the other. Features of arms are columns
        named "arm.price": one arm per row.

        Parameters
        ----------
        frame : frame
            A column for each field, in any order.

        Returns
        -------
        rows : ndarray of shape (n, dim)
            NaN where a value is missing.
        encoder : Encoder
            This one, or one that also has the levels that were seen here for the first time.

        Raises
        ------
        InvalidValue
            If a value cannot be used, or the frame's columns are not those of the recipe.
        """
        fields = self.features.frame_fields
        columns = records.frame_columns(frame, fields)
        option = "fields" if self.features.arms is None else "frame_fields"
        records.check_columns(columns, fields, f"frame[list(features.{option})]")
        categories = {
            name: records.category_column(name, columns[name])
            for name in fields
            if self.features.kind(name) not in ("number", "boolean")
        }
        new = [
            (row, place, full, level)
            for place, (full, table) in enumerate(self._tables.items())
            for level, row in zip(*categories[full][1:], strict=True)
            if level not in table
        ]
        # In the order in which single records would have shown them.
        encoder = self._grow([(full, level) for _, _, full, level in sorted(new)]) if new else self
        return encoder._rows(columns, categories), encoder

    def encode_rounds(self, rounds: Any, arms: Sequence[Any]) -> tuple[Floats, Encoder]:
        """Return the columns of many records, each with the same arms, and their encoder.

        Parameters
        ----------
        rounds : list of records, or frame
            A record per round.
        arms : sequence of records
            One record per arm.

        Returns
        -------
        rows : ndarray of shape (n, n_arms, dim)
            What `encode` gives for each round.
        encoder : Encoder
            This one, or one that also has the levels that were seen here for the first time.
        """
        listed, encoder = records.record_list("the rounds", rounds), self
        for each in listed:
            encoder = encoder.encode(each, arms)[1]
        rows = [encoder.encode(each, arms)[0] for each in listed]
        return np.array(rows).reshape(len(rows), len(arms), encoder.dim), encoder

    def check_columns(self, rows: Floats) -> None:
        """Raise unless rows of columns could come of records.

        A boolean is 0, 1 or missing; of a category one column is 1 and the others are 0, or all
        are missing. Numbers may be any, and crossed columns are made later.

        Parameters
        ----------
        rows : ndarray of shape (..., dim)
            The rows, NaN where an entry is missing.
        """
        if not len(self._indicators):
            return
        if rows.ndim == 1:  # a list is faster than an array for the columns of one row
            row = rows.take(self._indicators).tolist()
            if _ZERO_ONE.issuperset(row) and all(sum(row[a:b]) == 1.0 for a, b in self._spans):
                return
        given = rows.reshape(-1, self.dim)[:, self._indicators]
        usable = (given == 0.0) | (given == 1.0) | np.isnan(given)
        if not usable.all():
            place, k = np.argwhere(~usable)[0].tolist()
            column = int(self._indicators[k])
            name = self.names[column] or f"a spare column of {self.column_fields[column]}"
            raise InvalidValue(
                f"{name} is a column of 0 and 1, or NaN where it is missing, got "
                f"{shown(float(given[place, k]))}; give records, which are encoded"
            )
        for low, high in self._spans:
            levels = given[:, low:high]
            wrong = (levels.sum(axis=1) != 1.0) & ~np.isnan(levels).all(axis=1)
            if wrong.any():
                field = self.column_fields[int(self._indicators[low])]
                raise InvalidValue(
                    f"one column of the category {field} must be 1 and the others 0, or all NaN if "
                    f"it is missing, got {shown(levels[int(wrong.argmax())].tolist())}; give "
                    "records, which are encoded"
                )

    def arm_records(self, arms: Sequence[Any]) -> tuple[list[dict[str, Any]], Encoder]:
        """Return records of arms in plain values, ready for JSON, and an encoder for them.

        Parameters
        ----------
        arms : sequence of records
            One record per arm.
        """
        context: dict[str, Any] = {}
        encoder, plain = self.encode(context, arms)[1], []
        assert self.features.arms is not None
        for record in arms:
            mapping, kept = records.record_mapping(record), {}
            for name, value in mapping.items():
                kind = self.features.arms.kind(name)
                if not records.is_missing(value):
                    convert = _CONVERT.get(kind, records.category)
                    kept[name] = convert(name, value)
            plain.append(kept)
        return plain, encoder

    def _rows(
        self, columns: records.Columns, categories: dict[str, tuple[Ints, list[str], list[int]]]
    ) -> Floats:
        n = len(next(iter(columns.values())))
        rows: Floats = np.zeros((n, len(self.names)))
        for plan in (self._plan, self._arm_plan):
            if plan is None:
                continue
            for _, full, column in plan.numbers:
                rows[:, column] = records.number_column(full, columns[full])
            for _, full, column in plan.booleans:
                rows[:, column] = records.boolean_column(full, columns[full])
            for _, full, table, places, _ in plan.levelled:
                codes, levels, _ = categories[full]
                _mark(rows, codes, [table.get(level, -1) for level in levels], places)
            for _, full, first, width in plan.hashed:
                codes, levels, _ = categories[full]
                places = list(range(first, first + width))
                _mark(rows, codes, [first + bucket(level, width) for level in levels], places)
        return rows

    def limit(self, name: str) -> str | None:
        """Return why a growing category can have no further level; None if it can."""
        return self._layout.limit(name)

    def _checked_arms(self, arms: Any) -> tuple[Sequence[Any], _Plan]:
        if self._arm_plan is None:
            raise InvalidValue(
                "arms must be None: the recipe has no features of arms; describe them with "
                "Features(..., arms=Features(...))"
            )
        if arms is None:
            raise InvalidValue(
                "the recipe has features of arms: give arms, a list with a record for each "
                f"({', '.join(self._arm_plan.fields)})"
            )
        arm_records = records.record_list("arms", arms)
        if not arm_records:
            raise InvalidValue("arms must have a record for each arm, got none")
        return arm_records, self._arm_plan

    def _grow(self, new: list[tuple[str, str]]) -> Encoder:
        """Return an encoder with more levels, or with categories that are full."""
        wanted = dict.fromkeys(pair for pair in new if pair[0] not in self.full)
        if not wanted:
            return self
        layout, added = self._layout.copy(), []
        for name, level in wanted:
            if layout.limit(name) is None:
                layout.grow(name, level)
                added.append((name, level))
            else:
                layout.close(name)
        return self._with(tuple(added), layout)

    def _with(self, added: tuple[tuple[str, str], ...], layout: _Layout) -> Encoder:
        """Return an encoder with more levels, without laying out again those that there are."""
        wider = object.__new__(Encoder)
        object.__setattr__(wider, "features", self.features)
        wider._set((*self.grown, *added), layout)
        return wider


class _Layout:
    """The columns of an encoder while they are laid out.

    Parameters
    ----------
    features : Features
        The recipe; its growing categories have no column yet.
    """

    def __init__(self, features: Features) -> None:
        self.names: list[str] = []
        self.is_indicator: list[bool] = []
        self.group: list[int] = []
        self.fields: list[str] = []
        self.columns: dict[str, list[int]] = {}  # of each field
        self.crosses: list[tuple[int, int]] = []
        self.pairs: Sequence[tuple[str, str]] = features.all_crosses
        self.tables: dict[str, dict[str, int]] = {}  # of growing categories
        self.spare: dict[str, list[int]] = {}  # columns of these without a level, the last first
        self.full: set[str] = set()  # those of them that were shown a level beyond the limit
        self.known = {CONSTANT}  # names of columns, crossed ones too
        self.n_groups = 0
        self.plans = [self._add_record("the record", "", features)]
        if features.arms is not None:
            self.plans.append(self._add_record("an arm's record", ARM, features.arms))
        for one, other in self.pairs:
            for i in self.columns[one]:
                for j in self.columns[other]:
                    self._cross(i, j)

    def copy(self) -> _Layout:
        """Return a layout that can grow by itself."""
        twin = copy.copy(self)
        for name in ("names", "is_indicator", "group", "fields", "crosses", "known", "full"):
            setattr(twin, name, getattr(self, name).copy())
        twin.columns = {
            name: columns.copy() if name in self.tables else columns
            for name, columns in self.columns.items()
        }
        twin.tables = {name: table.copy() for name, table in self.tables.items()}
        twin.spare = {name: columns.copy() for name, columns in self.spare.items()}
        twin.plans = [
            plan._replace(levelled=list(map(twin._own, plan.levelled))) for plan in self.plans
        ]
        return twin

    def _own(self, levelled: _Levelled) -> _Levelled:
        """Return the entry of a plan with the table and the columns of this layout."""
        name, full, table, columns, grows = levelled
        return (
            (name, full, self.tables[full], self.columns[full], grows)
            if full in self.tables
            else (name, full, table, columns, grows)
        )

    def _add_record(self, what: str, prefix: str, features: Features) -> _Plan:
        """Lay out the columns of one kind of record; growing categories have none yet."""
        plan = _Plan(what, features.fields, [], [], [], [])
        for name in features.numbers:
            plan.numbers.append(
                (name, prefix + name, self._add(prefix + name, prefix + name, False))
            )
        for name in features.booleans:
            plan.booleans.append(
                (name, prefix + name, self._add(prefix + name, prefix + name, True))
            )
        for name, spec in features.categories.items():
            full = prefix + name
            if isinstance(spec, int):
                plan.hashed.append((name, full, len(self.names), spec))
                for k in range(spec):
                    self._add(full, f"{full}#{k}", True)
            elif isinstance(spec, str):
                table = self.tables[full] = {}
                self.columns[full], self.spare[full] = [], []
                plan.levelled.append((name, full, table, self.columns[full], True))
            else:
                levels = {level: self._add(full, f"{full}={level}", True) for level in spec}
                plan.levelled.append((name, full, levels, self.columns[full], False))
        return plan

    def name_of(self, i: int, j: int) -> str:
        """Return the name of a crossed column; empty if one of its columns is spare.

        Parameters
        ----------
        i, j : int
            The two columns that are multiplied.
        """
        one, other = self.names[i], self.names[j]
        return f"{one}:{other}" if one and other else ""

    def grow(self, field: str, level: str) -> None:
        """Add the column of a level and its crossed columns, in spare places if there are any.

        Parameters
        ----------
        field : str
            The growing category.
        level : str
            The new level.
        """
        table = self.tables.get(field)
        if table is None:
            raise checks.unknown("a growing category", field, self.tables)
        if not level or level in table:
            raise InvalidValue(f"{field} must grow by a new level, got {shown(level)}")
        if (limit := self.limit(field)) is not None:
            raise InvalidValue(f"{limit}, and {shown(level)} is one more; {_hashing(field)}")
        if not self.spare[field]:
            n = len(table) // SPARE if len(table) >= FEW_LEVELS else 0
            n = min(n, MOST_LEVELS - len(table) - 1, self._n_further(field) - 1)
            self.spare[field] = [self._add_crossed(field) for _ in range(1 + n)][::-1]
        column = table[level] = self.spare[field].pop()
        self.names[column] = self._new_name(f"{field}={level}")
        for i, j in self._crosses_of(field, column):
            if name := self.name_of(i, j):
                self._new_name(name)

    def limit(self, field: str) -> str | None:
        """Return why a growing category can have no further level; None if it can."""
        n = len(self.tables[field])
        if n >= MOST_LEVELS:
            return f"{field} has {MOST_LEVELS:,} levels, the most that get columns"
        if not self.spare[field] and self._n_further(field) < 1:
            return (
                f"{field} has {n:,} levels, the most that get columns: with crossed ones there "
                f"are {len(self.names) + len(self.crosses):,} of {MOST_COLUMNS:,}"
            )
        return None

    def _n_further(self, field: str) -> int:
        """Return how many levels of a category there is room for, with their crossed columns."""
        each = 1 + len(self._crosses_of(field, -1))
        return (MOST_COLUMNS - len(self.names) - len(self.crosses)) // each

    def close(self, field: str) -> None:
        """Have further levels of a growing category be missing."""
        self.full.add(field)
        for plan in self.plans:
            plan.levelled[:] = [
                (*one[:4], False) if one[1] == field else one for one in plan.levelled
            ]

    def _add_crossed(self, field: str) -> int:
        """Append a spare column, and the crossed columns that it is in."""
        column = self._add(field, "", True)
        self.crosses += self._crosses_of(field, column)
        return column

    def _crosses_of(self, field: str, column: int) -> list[tuple[int, int]]:
        """Return the crossed columns that a column of a field is in."""
        found: list[tuple[int, int]] = []
        for one, other in self.pairs:
            if one == field:
                found += [(column, j) for j in self.columns[other]]
            elif other == field:
                found += [(i, column) for i in self.columns[one]]
        return found

    def _cross(self, i: int, j: int) -> None:
        """Append a crossed column."""
        self.crosses.append((i, j))
        self._new_name(self.name_of(i, j))

    def _new_name(self, name: str) -> str:
        """Return the name of a column; raise if another one has it, or the constant."""
        if name in self.known:
            raise InvalidValue(
                f"two columns would have the name {name!r}: rename the field; a cross is named "
                f"'one:other', and the constant {CONSTANT!r}"
            )
        self.known.add(name)
        return name

    def _add(self, field: str, name: str, is_indicator: bool) -> int:
        """Append one column, a spare one without a name, and return its index."""
        column = len(self.names)
        before = self.columns.setdefault(field, [])
        self.group.append(self.group[before[0]] if before else self.n_groups)
        self.n_groups += not before
        before.append(column)
        self.names.append(self._new_name(name) if name else "")
        self.fields.append(field)
        self.is_indicator.append(is_indicator)
        return column


def _indicators(plans: list[_Plan]) -> tuple[Ints, tuple[tuple[int, int], ...]]:
    """Return the columns of booleans and categories, and the range of each category among them."""
    found = [column for plan in plans for _, _, column in plan.booleans]
    spans = []
    for plan in plans:
        levelled: list[Sequence[int]] = [columns for _, _, _, columns, _ in plan.levelled]
        hashed = [range(first, first + width) for _, _, first, width in plan.hashed]
        for columns in (*levelled, *hashed):
            if columns:
                spans.append((len(found), len(found) + len(columns)))
                found += columns
    return _frozen(np.array(found, dtype=np.int64)), tuple(spans)


# Usual values are checked in the loops below, and others by the functions of `records`: a call for
# each value would take twice the time. Each loop returns the number of fields that are not there.


def _write(flat: Floats, start: int, record: Any, plan: _Plan, new: list[tuple[str, str]]) -> None:
    """Write a record into flat[start:], which is 0; levels without a column are added to `new`."""
    mapping = record if type(record) is dict else records.record_mapping(record)
    get = mapping.get
    n_absent = _write_numbers(flat, start, get, plan)
    if plan.booleans:
        n_absent += _write_booleans(flat, start, get, plan)
    if plan.levelled:
        n_absent += _write_levels(flat, start, get, plan, new)
    if plan.hashed:
        n_absent += _write_hashed(flat, start, get, plan)
    if len(plan.fields) - n_absent != len(mapping):
        records.check_fields(plan.what, mapping, plan.fields)


def _write_numbers(flat: Floats, start: int, get: Callable[..., Any], plan: _Plan) -> int:
    n_absent = 0
    for name, full, column in plan.numbers:
        value = get(name, _ABSENT)
        if type(value) in _PLAIN and -checks.LARGEST <= value <= checks.LARGEST:
            flat[start + column] = value
        elif value is _ABSENT:
            n_absent += 1
            flat[start + column] = np.nan
        else:
            flat[start + column] = records.number(full, value)
    return n_absent


def _write_booleans(flat: Floats, start: int, get: Callable[..., Any], plan: _Plan) -> int:
    n_absent = 0
    for name, full, column in plan.booleans:
        value = get(name, _ABSENT)
        if value is True:
            flat[start + column] = 1.0
        elif value is _ABSENT:
            n_absent += 1
            flat[start + column] = np.nan
        elif value is not False:
            flat[start + column] = records.boolean(full, value)
    return n_absent


def _write_levels(
    flat: Floats,
    start: int,
    get: Callable[..., Any],
    plan: _Plan,
    new: list[tuple[str, str]],
) -> int:
    n_absent = 0
    for name, full, table, columns, grows in plan.levelled:
        value = get(name, _ABSENT)
        if type(value) is str and value in table:
            flat[start + table[value]] = 1.0
            continue
        n_absent += value is _ABSENT
        level = None if value is _ABSENT else records.category(full, value)
        if level in table:
            flat[start + table[level]] = 1.0
        elif grows and level is not None:
            new.append((full, level))
        else:
            for column in columns:
                flat[start + column] = np.nan
    return n_absent


def _write_hashed(flat: Floats, start: int, get: Callable[..., Any], plan: _Plan) -> int:
    n_absent = 0
    for name, full, first, width in plan.hashed:
        value = get(name, _ABSENT)
        n_absent += value is _ABSENT
        level = None if value is _ABSENT else records.category(full, value)
        if level is None:
            flat[start + first : start + first + width] = np.nan
        else:
            flat[start + first + bucket(level, width)] = 1.0
    return n_absent


def _mark(rows: Floats, codes: Ints, places: list[int], columns: list[int]) -> None:
    """Write one category of a frame: 1 at the place of each row's level, NaN if it has none.

    Parameters
    ----------
    rows : ndarray of shape (n, dim)
        Zeros in the category's columns, to be written.
    codes : ndarray of shape (n,)
        Index of each row's level, -1 where it is missing.
    places : list of int
        Column of each level, -1 for an unknown one.
    columns : list of int
        All columns of the category.
    """
    place = np.array([*places, -1])[codes]
    known = place >= 0
    rows[np.flatnonzero(known), place[known]] = 1.0
    rows[np.ix_(~known, np.array(columns, dtype=np.intp))] = np.nan


def _hashing(field: str) -> str:
    """Return the usual way out where a category has too many levels."""
    name = field.removeprefix(ARM)
    return f"hash it: categories={{{name!r}: 256}}"


def _pairs(grown: Any) -> tuple[tuple[str, str], ...]:
    """Return levels of growing categories as pairs of text; JSON has lists in place of tuples."""
    pairs = tuple(grown) if checks.is_listing(grown) else (grown,)
    for pair in pairs:
        is_pair = isinstance(pair, tuple | list) and len(pair) == 2
        if not is_pair or not all(isinstance(one, str) for one in pair):
            raise InvalidValue(f"grown must be pairs of a field and a level, got {shown(pair)}")
    return tuple((name, level) for name, level in pairs)


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array
