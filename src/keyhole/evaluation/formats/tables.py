"""Tables with an entry for each round and arm."""

from __future__ import annotations

from keyhole.errors import InvalidValue

# Bytes of a table beyond which it is refused.
MAX_BYTES = 1 << 33


def check_size(name: str, rows: int, columns: int, remedy: str) -> None:
    """Raise if a table of numbers would take more than 8 GB.

    Parameters
    ----------
    name : str
        Name of the table in the error message.
    rows, columns : int
        Its shape.
    remedy : str
        What takes less.
    """
    size = 8 * rows * columns
    if size > MAX_BYTES:
        raise InvalidValue(
            f"{name} would take {size / 2**30:,.0f} GB for {rows:,} rounds x {columns:,} columns, "
            f"and at most {MAX_BYTES >> 30} GB are taken: read fewer files, or {remedy}"
        )
