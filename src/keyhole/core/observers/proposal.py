"""Proposal of a recipe from a frame, and a recipe as a table to read."""

from __future__ import annotations

from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from keyhole.core.observers import records
from keyhole.errors import InvalidValue, shown

if TYPE_CHECKING:
    from keyhole.core.observers.features import Features

# Most levels that are listed; a category of more is hashed.
MOST_LISTED = 20
# Most columns that a category is hashed into.
MOST_BUCKETS = 256
# Levels that a table names; others are counted.
_SHOWN = 5


class Proposed(NamedTuple):
    """One field of a frame: a kind and levels, or the reason for leaving it out."""

    kind: str
    spec: Any = None
    share_missing: float = 0.0
    note: str = ""


class Proposal(NamedTuple):
    """A proposal for each field of a frame."""

    fields: dict[str, Proposed]

    @property
    def left_out(self) -> str:
        """The fields that were left out, with the reasons."""
        return ", ".join(f"{name} ({one.note})" for name, one in self.fields.items() if one.note)

    def options(self, prefix: str) -> dict[str, Any]:
        """Return the options of a recipe: of the fields with this prefix, or of those without one.

        Fields of arms have the prefix "arm.".
        """
        chosen = {
            name.removeprefix(prefix): one
            for name, one in self.fields.items()
            if name.startswith("arm.") == bool(prefix) and not one.note
        }
        return {
            "numbers": [name for name, one in chosen.items() if one.kind == "number"],
            "booleans": [name for name, one in chosen.items() if one.kind == "boolean"],
            "categories": {n: one.spec for n, one in chosen.items() if one.kind == "category"},
        }


def propose(frame: Any) -> Proposal:
    """Return a proposal for the fields of a frame."""
    columns = records.frame_columns(frame)
    for name in columns:
        if not isinstance(name, str):
            raise InvalidValue(f"columns of a frame must have names, got {shown(name)}")
    return Proposal({name: _propose(name, column) for name, column in columns.items()})


def _propose(name: str, column: NDArray[Any]) -> Proposed:
    values = column.tolist() if column.dtype.kind in "OUbiuf" else list(column)
    there = [value for value in values if not records.is_missing(value)]
    share = 1.0 - len(there) / len(values) if values else 0.0
    if not there:
        return Proposed("none", note="no value is there")
    if all(isinstance(value, bool | np.bool_) for value in there):
        varies = any(there) and not all(there)
        return _unless_constant(varies, Proposed("boolean", share_missing=share))
    if all(isinstance(value, str) for value in there):
        return _propose_category(name, column, share)
    if not all(_is_number(value) for value in there):
        odd = next(value for value in there if not _is_number(value))
        return Proposed("none", note=f"neither numbers, booleans nor text: {shown(odd)}")
    numbers = records.number_column(name, column)
    varies = bool(np.nanmin(numbers) < np.nanmax(numbers))
    return _unless_constant(varies, Proposed("number", share_missing=share))


def _propose_category(name: str, column: NDArray[Any], share: float) -> Proposed:
    codes, levels, _ = records.category_column(name, column)
    counts = np.bincount(codes[codes >= 0], minlength=len(levels))
    if len(levels) < 2:
        return _unless_constant(False, Proposed("category"))
    if 2 * len(levels) > counts.sum():
        return Proposed("none", note="more than half of its values are distinct")
    share = max(share, float(np.mean(codes < 0)))  # empty text is missing
    if len(levels) > MOST_LISTED:
        width = min(1 << (len(levels) - 1).bit_length(), MOST_BUCKETS)
        return Proposed("category", width, share)
    by_count = [levels[k] for k in np.argsort(-counts, kind="stable")]
    return Proposed("category", by_count, share)


def _unless_constant(varies: bool, proposed: Proposed) -> Proposed:
    return proposed if varies else Proposed("none", note="its value is the same in every row")


def _is_number(value: object) -> bool:
    odd = isinstance(value, bool | np.bool_ | np.timedelta64)
    return not odd and isinstance(value, Real | Decimal)


def table(features: Features, proposal: Proposal | None) -> str:
    """Return a recipe as plain text: a line per field, aligned.

    Parameters
    ----------
    features : Features
        The recipe.
    proposal : Proposal or None
        The proposal that it was made from: shares of missing values, and the fields that were left
        out.
    """
    columns = features.start().columns
    rows = [["field", "kind", "columns", "missing", "levels"]]
    for name in features.frame_fields:
        kind, share = features.kind(name), proposal.fields[name].share_missing if proposal else 0.0
        count = "as seen" if kind == "growing" else str(len(columns[name]))
        rows.append([name, kind, count, f"{share:.0%}", _levels(features, name)])
    for one, other in features.all_crosses:
        grows = "growing" in (features.kind(one), features.kind(other))
        count = "as seen" if grows else str(len(columns[one]) * len(columns[other]))
        rows.append([f"{one}:{other}", "cross", count, "", ""])
    if proposal is None:
        rows = [[*row[:3], row[4]] for row in rows]
    lines = _aligned(rows)
    if proposal and proposal.left_out:
        lines.append(f"left out: {proposal.left_out}")
    return "\n".join(lines)


def _levels(features: Features, name: str) -> str:
    if features.kind(name) != "category":
        return ""
    levels: Any = features.category(name)
    more = f", and {len(levels) - _SHOWN} more" if len(levels) > _SHOWN else ""
    return ", ".join(levels[:_SHOWN]) + more


def _aligned(rows: list[list[str]]) -> list[str]:
    """Return lines whose cells are aligned: names to the left, numbers to the right."""
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    last = len(widths) - 1
    return [
        "  ".join(
            cell.ljust(width) if k in (0, 1, last) else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
