"""Plain-text tables."""

from __future__ import annotations

from collections.abc import Sequence


def table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Return an aligned table: the first column to the left, the others to the right.

    Parameters
    ----------
    header : tuple of str
        Names of the columns.
    rows : sequence of tuple of str
        The cells.
    """
    lines = [header, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
